#ifndef GB_BENCH_SINK_HTTP_H
#define GB_BENCH_SINK_HTTP_H

#include "base/bytes.h"
#include "base/str.h"

/* As much of HTTP/1.1 as an AWS client needs: requests with Content-Length on a kept connection.
 * Owns:   nothing: a request is views into the input.
 * Thread: any. Pure.
 * Errors: GB_BENCH_HTTP_BAD for what is no such request. */

enum { GB_BENCH_HTTP_BODY_MAX = 200 * 1024 };
enum gb_bench_http_result { GB_BENCH_HTTP_OK, GB_BENCH_HTTP_NEED_MORE, GB_BENCH_HTTP_BAD };
struct gb_bench_http_request {
    struct gb_bytes target; /* X-Amz-Target */
    struct gb_bytes body;
    bool expects_continue;
    size_t size; /* of head and body */
};
/* NEED_MORE with `out->expects_continue`: the client waits for "100 Continue" before its body. */
enum gb_bench_http_result gb_bench_http_next(struct gb_bytes input,
                                             struct gb_bench_http_request *out);
void gb_bench_http_answer(struct gb_str *out, unsigned status, struct gb_bytes body);

#endif
