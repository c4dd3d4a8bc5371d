#ifndef GB_TESTS_CONTRACT_NET_FIXTURE_H
#define GB_TESTS_CONTRACT_NET_FIXTURE_H

#include "base/duration.h"
#include "contract/io_peer.h"
#include "io/net_uv.h"

/* One stream of the real network and its peer, over any transport; the one fixture of a network
 * test. Between start and stop exactly one `closed` is expected for each stream that was dialled.
 * Owns:   all; gb_net_fixture_stop frees it, but the counters stay readable.
 * Thread: the test's; an app runs on its connection's thread.
 * Errors: failures end the test. */

/* The peer's side above TLS and WebSocket. */
struct gb_peer_app {
    struct gb_peer_conn *conn;
    bool ws;
    size_t frame_left; /* of the client's data frame */
    uint8_t mask[4];
    size_t mask_at;
    bool got_close_frame;
    size_t total;     /* for the app's own use, read after gb_net_fixture_stop */
    bool orderly_end; /* as well */
};
typedef void gb_peer_app_fn(struct gb_peer_app *a);
size_t gb_peer_app_read(struct gb_peer_app *a, void *data, size_t size_max); /* 0 = the end */
bool gb_peer_app_write(struct gb_peer_app *a, const void *data, size_t size);
void gb_peer_app_goodbye(struct gb_peer_app *a);       /* close frame, close_notify */
bool gb_peer_app_ended_orderly(struct gb_peer_app *a); /* the client said its goodbye */

enum gb_net_close_at {
    GB_NET_CLOSE_NEVER,
    GB_NET_CLOSE_AT_DIAL,
    GB_NET_CLOSE_NEXT_TURN,
    GB_NET_CLOSE_IN_CONNECTED,
    GB_NET_CLOSE_IN_DATA,
};
struct gb_net_fixture_cfg {
    bool tls, ws;
    gb_peer_app_fn *app;
    gb_peer_fn *raw;                        /* instead of `app`: the bare connection, without TLS */
    const struct gb_test_cert *server_cert; /* NULL = one for localhost and 127.0.0.1 */
    const struct gb_test_cert *client_ca;
};
struct gb_net_state {
    struct gb_net_fixture_cfg cfg;
    struct gb_loop *loop;
    struct gb_net *net;
    struct gb_peer *peer;
    struct gb_stream *stream;
    struct gb_test_cert ca, leaf;
    struct gb_tls_cfg tls_cfg; /* trusts `ca`; tests change it */
    struct gb_peer_app app;    /* of the last connection, copied when it ended */
    /* how to dial */
    uint16_t port; /* 0 = the peer's */
    const char *path;
    uint64_t deadline_ns;
    size_t read_chunk_max;
    enum gb_net_close_at close_at;
    uint64_t close_flush_ns;
    /* what happened */
    int connected, drained, closed, dialled;
    size_t chunks, largest_chunk, want;
    struct gb_str received;
    struct gb_err reason;
    bool (*until)(void);
    struct gb_timer watchdog;
    struct gb_task close_task;
};
extern struct gb_net_state gb_net;

void gb_net_fixture_start(const struct gb_net_fixture_cfg *cfg);
void gb_net_fixture_stop(void);
struct gb_err gb_net_try_dial(const char *host);
void gb_net_dial(const char *host); /* NULL = 127.0.0.1 */
void gb_net_write(const void *data, size_t size);
uint64_t gb_net_now(void);
void gb_net_run_until(bool (*until)(void)); /* fails after 20 s */
bool gb_net_is_connected(void);
bool gb_net_is_connected_or_closed(void);
bool gb_net_is_closed(void);
bool gb_net_is_drained(void);
bool gb_net_has_received(void); /* `want` bytes */
void gb_net_close_and_expect(enum gb_code reason);

#endif
