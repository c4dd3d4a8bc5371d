#ifndef GB_TESTS_SUPPORT_FAKE_NET_H
#define GB_TESTS_SUPPORT_FAKE_NET_H

#include "io/net.h"

/* A network whose other ends are in the hands of the test: nothing moves by itself.
 * Owns:   its streams; gb_fake_net_free asserts that all were closed.
 * Thread: the test's.
 * Errors: none. */

enum { GB_FAKE_STREAMS_MAX = 64 };

struct gb_fake_stream {
    struct gb_stream base;
    struct gb_fake_net *net;
    const struct gb_stream_events *events;
    void *arg;
    char host[64];
    uint16_t port;
    bool tls;
    bool connected;
    bool closing, ended;
    uint64_t flush_deadline_ns; /* as given to close */
    struct gb_str written;      /* what the user wrote and the test has not taken */
    size_t writes;              /* number of write calls */
    struct gb_err reason;
    struct gb_task end_task;
};
struct gb_fake_net {
    struct gb_net base;
    struct gb_reactor *reactor;
    struct gb_fake_stream *streams[GB_FAKE_STREAMS_MAX]; /* in order of dialling */
    size_t dialled;
    struct gb_err refuse; /* not GB_OK: dial fails with it */
};

void gb_fake_net_init(struct gb_fake_net *n, struct gb_reactor *r);
void gb_fake_net_deinit(struct gb_fake_net *n);
/* The newest stream, or NULL. */
struct gb_fake_stream *gb_fake_net_last(const struct gb_fake_net *n);
void gb_fake_stream_connect(struct gb_fake_stream *s);
void gb_fake_stream_feed(struct gb_fake_stream *s, struct gb_bytes bytes);
/* The peer or the network ends it. */
void gb_fake_stream_cut(struct gb_fake_stream *s, struct gb_err reason);

#endif
