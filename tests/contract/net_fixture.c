#include "contract/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/ws_codec.h"

struct gb_net_state gb_net;

/* --- the peer above TLS and WebSocket --- */

static bool accept_upgrade(struct gb_peer_app *a)
{
    char head[4096];
    size_t size = 0;
    while (gb_ws_head_size(gb_bytes(head, size)) == 0) {
        if (size + 1 >= sizeof head || gb_peer_read(a->conn, head + size, 1) == 0) return false;
        size++;
    }
    head[size] = '\0';
    const char *key = strstr(head, "Sec-WebSocket-Key: ");
    GB_ASSERT(key != NULL && strstr(head, "Sec-WebSocket-Protocol: mqtt\r\n") != NULL);
    char text[GB_WS_KEY_SIZE] = {0};
    memcpy(text, key + 19, sizeof text - 1);
    char accept[GB_WS_ACCEPT_SIZE];
    gb_ws_accept(text, accept);
    char *answer = gb_asprintf("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                               "Connection: Upgrade\r\nSec-WebSocket-Protocol: mqtt\r\n"
                               "Sec-WebSocket-Accept: %s\r\n\r\n",
                               accept);
    bool sent = gb_peer_write(a->conn, answer, strlen(answer));
    free(answer);
    return sent;
}

/* Reads frame heads up to one with data; false at the end. */
static bool next_frame(struct gb_peer_app *a)
{
    while (a->frame_left == 0) {
        uint8_t head[8];
        if (!gb_peer_read_all(a->conn, head, 2)) return false;
        GB_ASSERT((head[1] & 0x80) != 0); /* clients mask */
        if ((head[0] & 15) == GB_WS_CLOSE) a->got_close_frame = true;
        size_t length = head[1] & 127;
        size_t extra = length == 127 ? 8 : length == 126 ? 2 : 0;
        if (extra > 0) length = 0;
        if (!gb_peer_read_all(a->conn, head, extra)) return false;
        for (size_t i = 0; i < extra; i++) length = length << 8 | head[i];
        if (!gb_peer_read_all(a->conn, a->mask, 4)) return false;
        a->mask_at = 0;
        a->frame_left = length;
        if (a->got_close_frame) return false;
    }
    return true;
}

size_t gb_peer_app_read(struct gb_peer_app *a, void *data, size_t size_max)
{
    if (!a->ws) return gb_peer_read(a->conn, data, size_max);
    if (!next_frame(a)) return 0;
    size_t n = gb_peer_read(a->conn, data, size_max < a->frame_left ? size_max : a->frame_left);
    for (size_t i = 0; i < n; i++) ((uint8_t *)data)[i] ^= a->mask[a->mask_at++ % 4];
    a->frame_left -= n;
    return n;
}

bool gb_peer_app_write(struct gb_peer_app *a, const void *data, size_t size)
{
    if (a->ws) {
        /* Unmasked, 16-bit length, as the first of two fragments with an empty second. */
        uint8_t head[4] = {GB_WS_BINARY, (uint8_t)size, 0, 0};
        GB_ASSERT(size <= UINT16_MAX);
        if (size >= 126) {
            head[1] = 126;
            gb_put_u16(head + 2, (uint16_t)size);
        }
        static const uint8_t last[] = {0x80 | GB_WS_CONTINUATION, 0};
        return gb_peer_write(a->conn, head, size >= 126 ? 4 : 2) &&
               gb_peer_write(a->conn, data, size) && gb_peer_write(a->conn, last, sizeof last);
    }
    return gb_peer_write(a->conn, data, size);
}

void gb_peer_app_goodbye(struct gb_peer_app *a)
{
    static const uint8_t close_frame[] = {0x80 | GB_WS_CLOSE, 2, 0x03, 0xE8};
    if (a->ws) (void)gb_peer_write(a->conn, close_frame, sizeof close_frame);
    gb_peer_close_notify(a->conn);
}

bool gb_peer_app_ended_orderly(struct gb_peer_app *a)
{
    char more;
    if (a->ws && !a->got_close_frame) return false;
    while (gb_peer_read(a->conn, &more, 1) > 0) {
    } /* the close frame's payload */
    return gb_peer_got_close_notify(a->conn);
}

static void run_app(struct gb_peer_conn *c, void *arg)
{
    struct gb_net_state *n = arg;
    struct gb_peer_app a = {.conn = c, .ws = n->cfg.ws};
    if (a.ws && !accept_upgrade(&a)) return;
    n->cfg.app(&a);
    n->app = a; /* read by the test after gb_peer_stop has joined this thread */
}

/* --- events --- */

static void stop_when_done(void)
{
    if (gb_net.until != NULL && gb_net.until()) gb_loop_stop(gb_net.loop);
}

static void close_now(enum gb_net_close_at at)
{
    if (gb_net.close_at != at) return;
    uint64_t flush_ns = gb_net.close_flush_ns;
    gb_net.stream->ops->close(gb_net.stream, flush_ns == 0 ? 0 : gb_net_now() + flush_ns);
}

static void on_connected(void *arg)
{
    struct gb_net_state *n = arg;
    n->connected++;
    assert_int_equal(n->connected, 1);
    close_now(GB_NET_CLOSE_IN_CONNECTED);
    stop_when_done();
}

static void on_data(void *arg, struct gb_bytes bytes)
{
    struct gb_net_state *n = arg;
    assert_int_equal(n->connected, 1);
    assert_int_equal(n->closed, 0);
    assert_true(bytes.size > 0);
    n->chunks++;
    if (bytes.size > n->largest_chunk) n->largest_chunk = bytes.size;
    gb_str_append(&n->received, bytes);
    close_now(GB_NET_CLOSE_IN_DATA);
    stop_when_done();
}

static void on_drained(void *arg)
{
    struct gb_net_state *n = arg;
    n->drained++;
    stop_when_done();
}

static void on_closed(void *arg, struct gb_err reason)
{
    struct gb_net_state *n = arg;
    n->closed++;
    assert_int_equal(n->closed, 1);
    n->reason = reason;
    n->stream = NULL;
    stop_when_done();
}

static const struct gb_stream_events events = {on_connected, on_data, on_drained, on_closed};

/* --- the fixture --- */

static void on_watchdog(struct gb_timer *t)
{
    (void)t;
    fail_msg("what the test waits for did not happen");
}

static void on_close_task(struct gb_task *task)
{
    (void)task;
    if (gb_net.stream != NULL) close_now(GB_NET_CLOSE_NEXT_TURN);
}

void gb_net_fixture_start(const struct gb_net_fixture_cfg *cfg)
{
    gb_str_deinit(&gb_net.received);
    gb_net = (struct gb_net_state){.cfg = *cfg, .path = "/mqtt", .close_task.run = on_close_task};
    assert_int_equal(gb_loop_new(&gb_net.loop).code, GB_OK);
    assert_int_equal(gb_net_uv_new(gb_net.loop, &gb_net.net).code, GB_OK);
    struct gb_reactor *r = gb_loop_reactor(gb_net.loop);
    assert_int_equal(gb_timer_init(&gb_net.watchdog, r, on_watchdog).code, GB_OK);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"Test CA", NULL, NULL, -60, 3600}, &gb_net.ca);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"localhost", "127.0.0.1", &gb_net.ca, -60, 3600},
                      &gb_net.leaf);
    gb_net.tls_cfg.ca_pem = gb_net.ca.cert_pem;
    struct gb_peer_cfg peer = {.handle = cfg->raw != NULL ? cfg->raw : run_app,
                               .arg = &gb_net,
                               .receive_buffer = 16384,
                               .client_ca = cfg->client_ca};
    if (cfg->tls && cfg->raw == NULL) {
        peer.tls = cfg->server_cert != NULL ? cfg->server_cert : &gb_net.leaf;
    }
    gb_net.peer = gb_peer_start(&peer);
}

void gb_net_fixture_stop(void)
{
    assert_int_equal(gb_net.closed, gb_net.dialled);
    gb_timer_deinit(&gb_net.watchdog);
    gb_net_uv_free(gb_net.net);
    gb_loop_drain_closing(gb_net.loop);
    gb_loop_free(gb_net.loop);
    gb_peer_stop(gb_net.peer);
    gb_test_cert_deinit(&gb_net.ca);
    gb_test_cert_deinit(&gb_net.leaf);
    gb_str_deinit(&gb_net.received);
}

struct gb_err gb_net_try_dial(const char *host)
{
    if (gb_net.deadline_ns == 0) gb_net.deadline_ns = gb_net_now() + 10 * GB_SEC;
    struct gb_stream_cfg cfg = {
        .host = host == NULL ? "127.0.0.1" : host,
        .port = gb_net.port == 0 ? gb_peer_port(gb_net.peer) : gb_net.port,
        .tls = gb_net.cfg.tls,
        .tls_cfg = &gb_net.tls_cfg,
        .ws_path = gb_net.cfg.ws ? gb_net.path : NULL,
        .deadline_ns = gb_net.deadline_ns,
        .read_chunk_max = gb_net.read_chunk_max,
    };
    return gb_net.net->ops->dial(gb_net.net, &cfg, &events, &gb_net, &gb_net.stream);
}

void gb_net_dial(const char *host)
{
    struct gb_err err = gb_net_try_dial(host);
    if (gb_failed(err)) fail_msg("dial: %s", err.message);
    gb_net.dialled++;
    close_now(GB_NET_CLOSE_AT_DIAL);
    gb_reactor_defer(gb_loop_reactor(gb_net.loop), &gb_net.close_task);
}

void gb_net_write(const void *data, size_t size)
{
    struct gb_str bytes = {0};
    gb_str_append(&bytes, gb_bytes(data, size));
    gb_net.stream->ops->write(gb_net.stream, &bytes);
    assert_int_equal(bytes.size, 0);
    gb_str_deinit(&bytes);
}

uint64_t gb_net_now(void)
{
    return gb_reactor_now_ns(gb_loop_reactor(gb_net.loop));
}

void gb_net_run_until(bool (*until)(void))
{
    if (until()) return;
    gb_net.until = until;
    gb_timer_start(&gb_net.watchdog, gb_net_now() + 60 * GB_SEC);
    gb_loop_run(gb_net.loop);
    gb_timer_stop(&gb_net.watchdog);
    gb_net.until = NULL;
}

bool gb_net_is_connected(void)
{
    if (gb_net.closed > 0) fail_msg("closed: %s", gb_net.reason.message);
    return gb_net.connected > 0;
}

bool gb_net_is_connected_or_closed(void)
{
    return gb_net.connected > 0 || gb_net.closed > 0;
}

bool gb_net_is_closed(void)
{
    return gb_net.closed > 0;
}

bool gb_net_is_drained(void)
{
    return gb_net.drained > 0;
}

bool gb_net_has_received(void)
{
    return gb_net.received.size >= gb_net.want;
}

void gb_net_close_and_expect(enum gb_code reason)
{
    gb_net.stream->ops->close(gb_net.stream, gb_net_now() + GB_SEC);
    gb_net_run_until(gb_net_is_closed);
    assert_int_equal(gb_net.reason.code, reason);
}
