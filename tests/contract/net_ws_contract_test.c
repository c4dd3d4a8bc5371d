#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract/net_fixture.h"
#include "io/ws_codec.h"

/* What the WebSocket layer does with a peer that refuses, breaks the rules, pings or says
 * goodbye. */

static bool read_request(struct gb_peer_conn *c)
{
    char head[4096];
    size_t size = 0;
    while (gb_ws_head_size(gb_bytes(head, size)) == 0) {
        if (size == sizeof head || gb_peer_read(c, head + size, 1) == 0) return false;
        size++;
    }
    return true;
}

static void wait_for_end(struct gb_peer_conn *c)
{
    char data[4096];
    while (gb_peer_read(c, data, sizeof data) > 0) {
    }
}

static void refuse(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    static const char answer[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    if (read_request(c)) (void)gb_peer_write(c, answer, sizeof answer - 1);
    wait_for_end(c);
}

static void accept_wrongly(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    static const char answer[] = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    if (read_request(c)) (void)gb_peer_write(c, answer, sizeof answer - 1);
    wait_for_end(c);
}

static void never_end_the_head(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    if (!read_request(c)) return;
    bool more = gb_peer_write(c, "HTTP/1.1 101 X\r\n", 16);
    while (more) more = gb_peer_write(c, "X-Filler: abc\r\n", 15);
}

static void end_after_the_request(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    (void)read_request(c);
}

static void failed_upgrades(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        gb_peer_fn *peer;
        const char *message;
    } rows[] = {
        {"refused", refuse, "WebSocket upgrade: refused with HTTP status 404"},
        {"wrong accept", accept_wrongly, "Sec-WebSocket-Accept does not fit the key"},
        {"endless head", never_end_the_head, "the answer's head is above 16384 bytes"},
        {"ended", end_after_the_request, "WebSocket upgrade: the peer has closed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s\n", rows[i].name);
        gb_net_fixture_start(&(struct gb_net_fixture_cfg){.ws = true, .raw = rows[i].peer});
        gb_net_dial("localhost");
        gb_net_run_until(gb_net_is_closed);
        print_message("     %s\n", gb_net.reason.message);
        assert_int_equal(gb_net.connected, 0);
        assert_int_equal(gb_net.reason.code, GB_CONNECTION_LOST);
        assert_non_null(strstr(gb_net.reason.message, rows[i].message));
        assert_non_null(strstr(gb_net.reason.message, "localhost:"));
        gb_net_fixture_stop();
    }
}

/* Reads one masked frame of up to 125 bytes; -1 at the end. */
static int read_frame(struct gb_peer_conn *c, uint8_t *payload, size_t *size)
{
    uint8_t head[6];
    if (!gb_peer_read_all(c, head, sizeof head)) return -1;
    *size = head[1] & 127;
    GB_ASSERT((head[1] & 128) != 0 && *size <= 125);
    if (!gb_peer_read_all(c, payload, *size)) return -1;
    for (size_t i = 0; i < *size; i++) payload[i] ^= head[2 + i % 4];
    return head[0];
}

static void ping(struct gb_peer_app *a)
{
    uint8_t payload[125];
    size_t size = 0;
    (void)gb_peer_write(a->conn, "\x89\x05hello\x82\x02hi", 11);
    int first = read_frame(a->conn, payload, &size);
    a->orderly_end = first == (0x80 | GB_WS_PONG) && size == 5 && memcmp(payload, "hello", 5) == 0;
    a->total = size;
    (void)gb_peer_wait(a->conn, 20000);
}

static bool has_hi(void)
{
    return gb_net.received.size == 2;
}

static void ping_is_answered(void **state)
{
    (void)state;
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.ws = true, .app = ping});
    gb_net_dial(NULL);
    gb_net_run_until(has_hi);
    gb_net_close_and_expect(GB_CANCELLED);
    gb_net_fixture_stop();
    assert_int_equal(gb_net.app.total, 5);
    assert_true(gb_net.app.orderly_end);
}

/* The client's answer must be a close frame with the same code, then the end. */
static void say_close(struct gb_peer_app *a)
{
    uint8_t payload[125];
    size_t size = 0;
    (void)gb_peer_write(a->conn,
                        "\x82\x02hi\x88\x05\x03\xe9"
                        "bye\x82\x02no",
                        15);
    int first = read_frame(a->conn, payload, &size);
    char more;
    a->orderly_end = first == (0x80 | GB_WS_CLOSE) && size == 2 && payload[1] == 0xe9 &&
                     gb_peer_read(a->conn, &more, 1) == 0;
}

static void close_frame_is_answered_and_ends(void **state)
{
    (void)state;
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.ws = true, .app = say_close});
    gb_net_dial(NULL);
    gb_net_run_until(gb_net_is_closed);
    assert_int_equal(gb_net.reason.code, GB_OK);
    assert_int_equal(gb_net.received.size, 2); /* nothing after the close frame */
    gb_net_fixture_stop();
    assert_true(gb_net.app.orderly_end);
}

static void break_the_rules(struct gb_peer_app *a)
{
    uint8_t payload[125];
    size_t size = 0;
    (void)gb_peer_write(a->conn, "\x82\x02hi\x81\x02no\x82\x02no", 12);
    int first = read_frame(a->conn, payload, &size);
    a->orderly_end = first == (0x80 | GB_WS_CLOSE) && size == 2 && payload[1] == 0xea; /* 1002 */
}

static void broken_frame_ends_with_protocol_error(void **state)
{
    (void)state;
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.ws = true, .app = break_the_rules});
    gb_net_dial("localhost");
    gb_net_run_until(gb_net_is_closed);
    print_message("     %s\n", gb_net.reason.message);
    assert_int_equal(gb_net.reason.code, GB_CONNECTION_LOST);
    assert_non_null(strstr(gb_net.reason.message, "WebSocket frame: a text frame"));
    assert_int_equal(gb_net.received.size, 2);
    gb_net_fixture_stop();
    assert_true(gb_net.app.orderly_end);
}

/* Pings without reading the pongs: what waits for the kernel must stay bounded. */
static void flood_with_pings(struct gb_peer_app *a)
{
    uint8_t frame[127] = {0x89, 125};
    bool more = true;
    for (int i = 0; i < 200000 && more; i++) {
        more = gb_peer_write(a->conn, frame, sizeof frame);
        a->total++;
    }
    (void)gb_peer_write(a->conn, "\x82\x02hi", 4);
    (void)gb_peer_wait(a->conn, 20000);
}

static void pongs_are_bounded(void **state)
{
    (void)state;
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.ws = true, .app = flood_with_pings});
    gb_net_dial(NULL);
    gb_net_run_until(has_hi);
    size_t pending = gb_net.stream->ops->pending(gb_net.stream);
    assert_in_range(pending, 1, 65536 + 131);
    gb_net.stream->ops->close(gb_net.stream, 0);
    gb_net_run_until(gb_net_is_closed);
    gb_net_fixture_stop();
    assert_int_equal(gb_net.app.total, 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_upgrades),
        cmocka_unit_test(ping_is_answered),
        cmocka_unit_test(close_frame_is_answered_and_ends),
        cmocka_unit_test(broken_frame_ends_with_protocol_error),
        cmocka_unit_test(pongs_are_bounded),
    };
    return cmocka_run_group_tests_name("net_ws", tests, NULL, NULL);
}
