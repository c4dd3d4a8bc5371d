#ifndef GB_BENCH_STREAM_H
#define GB_BENCH_STREAM_H

#include "base/bytes.h"
#include "base/str.h"

/* TCP on 127.0.0.1 with one buffer for each direction.
 * Owns:   the stream its socket and buffers; close with gb_bench_stream_close.
 * Thread: one.
 * Errors: gb_bench_listen and gb_bench_connect end the process; a broken connection is `false`. */

enum { GB_BENCH_INPUT_MAX = 256 * 1024 };

int gb_bench_listen(uint16_t *port); /* 0 = any, set to what was taken; non-blocking */
int gb_bench_connect(uint16_t port); /* blocking */

struct gb_bench_stream {
    int fd; /* < 0: closed */
    size_t begin, end;
    struct gb_str out;
    size_t sent; /* of `out` */
    uint8_t input[GB_BENCH_INPUT_MAX];
};
/* Malloc'd; takes the socket over; no delay (Nagle) on it. */
struct gb_bench_stream *gb_bench_stream_new(int fd);
void gb_bench_stream_close(struct gb_bench_stream *s); /* frees; NULL ok */

static inline struct gb_bytes gb_bench_input(const struct gb_bench_stream *s)
{
    return gb_bytes(s->input + s->begin, s->end - s->begin);
}
static inline void gb_bench_consume(struct gb_bench_stream *s, size_t size)
{
    s->begin += size;
}
/* One recv. False: the peer is gone. True without new bytes: nothing there (EAGAIN), or no room. */
bool gb_bench_fill(struct gb_bench_stream *s);
/* Sends as much of `out` as the socket takes. False: the peer is gone. */
bool gb_bench_flush(struct gb_bench_stream *s);
static inline bool gb_bench_unsent(const struct gb_bench_stream *s)
{
    return s->out.size > s->sent;
}

#endif
