#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract/net_fixture.h"

/* The network's contract over each transport: bytes, ends, cuts, close, back-pressure,
 * deadlines. */

struct transport {
    const char *name;
    bool tls, ws;
};
static const struct transport transports[] = {
    {"tcp", false, false}, {"tls", true, false}, {"ws", false, true}, {"wss", true, true}};
enum { TRANSPORTS = 4 };
/* How late a busy machine may be; what should have been ended would have gone on for minutes. */
static const uint64_t late_max_ns = 10 * GB_SEC;

static void set_up(const struct transport *t, gb_peer_app_fn *app)
{
    print_message("transport: %s\n", t->name);
    gb_net_fixture_start(&(struct gb_net_fixture_cfg){.tls = t->tls, .ws = t->ws, .app = app});
}

/* --- bytes --- */

static void echo(struct gb_peer_app *a)
{
    char data[5000];
    for (;;) {
        size_t n = gb_peer_app_read(a, data, sizeof data);
        if (n == 0 || !gb_peer_app_write(a, data, n)) return;
    }
}

static void bytes_come_back_as_they_were(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 125, 126, 65535, 65536, 300000};
    for (size_t t = 0; t < TRANSPORTS; t++) {
        set_up(&transports[t], echo);
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_connected);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *sent = malloc(sizes[i]);
            for (size_t k = 0; k < sizes[i]; k++) sent[k] = (char)(k * 7 + k / 251);
            gb_str_clear(&gb_net.received);
            gb_net_write(sent, sizes[i]);
            gb_net.want = sizes[i];
            gb_net_run_until(gb_net_has_received);
            assert_memory_equal(gb_net.received.data, sent, sizes[i]);
            free(sent);
        }
        gb_net_close_and_expect(GB_CANCELLED);
        gb_net_fixture_stop();
    }
}

static void chunks_keep_their_limit(void **state)
{
    (void)state;
    for (size_t t = 0; t < TRANSPORTS; t++) {
        set_up(&transports[t], echo);
        gb_net.read_chunk_max = 1000;
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_connected);
        char sent[20000] = {1};
        gb_net_write(sent, sizeof sent);
        gb_net.want = sizeof sent;
        gb_net_run_until(gb_net_has_received);
        assert_in_range(gb_net.largest_chunk, 1, 1000);
        gb_net_close_and_expect(GB_CANCELLED);
        gb_net_fixture_stop();
    }
}

/* --- ends --- */

static void say_and_end(struct gb_peer_app *a)
{
    (void)gb_peer_app_write(a, "bye", 3);
    gb_peer_app_goodbye(a);
}

static void say_and_cut(struct gb_peer_app *a)
{
    (void)gb_peer_app_write(a, "bye", 3);
    /* no goodbye: the connection just ends */
}

static void reset(struct gb_peer_app *a)
{
    char c;
    (void)gb_peer_app_read(a, &c, 1); /* so that the client is connected */
    gb_peer_reset(a->conn);
}

static void ends_of_the_peer(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        gb_peer_app_fn *app;
        enum gb_code want_tcp, want_other;
        const char *received;
    } rows[] = {
        {"orderly", say_and_end, GB_OK, GB_OK, "bye"},
        {"without the layer's goodbye", say_and_cut, GB_OK, GB_CONNECTION_LOST, "bye"},
        {"reset", reset, GB_CONNECTION_LOST, GB_CONNECTION_LOST, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t t = 0; t < TRANSPORTS; t++) {
            print_message("row: %s, ", rows[i].name);
            set_up(&transports[t], rows[i].app);
            gb_net_dial(NULL);
            gb_net_run_until(gb_net_is_connected_or_closed);
            if (rows[i].app == reset) gb_net_write("x", 1);
            gb_net_run_until(gb_net_is_closed);
            assert_int_equal(gb_net.connected, 1);
            print_message("    %s\n", gb_net.reason.message);
            assert_int_equal(gb_net.reason.code, t == 0 ? rows[i].want_tcp : rows[i].want_other);
            assert_int_equal(gb_net.received.size, strlen(rows[i].received));
            if (rows[i].received[0] != '\0') assert_string_equal(gb_net.received.data, "bye");
            gb_net_fixture_stop();
        }
    }
}

/* --- close by the user --- */

static void close_works_in_any_state(void **state)
{
    (void)state;
    static const enum gb_net_close_at when[] = {GB_NET_CLOSE_AT_DIAL, GB_NET_CLOSE_NEXT_TURN,
                                                GB_NET_CLOSE_IN_CONNECTED, GB_NET_CLOSE_IN_DATA};
    static const uint64_t flush_ns[] = {0, GB_SEC};
    for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
        for (size_t t = 0; t < (size_t)2 * TRANSPORTS; t++) {
            print_message("row: %zu, ", i);
            set_up(&transports[t / 2], say_and_cut);
            gb_net.close_at = when[i];
            gb_net.close_flush_ns = flush_ns[t % 2];
            gb_net_dial(NULL);
            assert_int_equal(gb_net.closed, 0);
            gb_net_run_until(gb_net_is_closed);
            assert_int_equal(gb_net.reason.code, GB_CANCELLED);
            assert_true(gb_net.chunks <= 1); /* no data after the close */
            gb_net_fixture_stop();           /* and no second `closed` */
        }
    }
}

/* What the peer got, after the client is done. */
static void count_all(struct gb_peer_app *a)
{
    char data[65536];
    (void)gb_peer_app_write(a, "unread by the client", 20); /* would provoke an RST */
    (void)gb_peer_wait(a->conn, 100);                       /* lets the client's queue fill */
    for (;;) {
        size_t n = gb_peer_app_read(a, data, sizeof data);
        if (n == 0) break;
        a->total += n;
    }
    a->orderly_end = gb_peer_app_ended_orderly(a);
}

static void close_flushes_what_is_pending(void **state)
{
    (void)state;
    enum { BYTES = 16 << 20 };
    for (size_t t = 0; t < TRANSPORTS; t++) {
        set_up(&transports[t], count_all);
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_connected);
        char *data = calloc(1, BYTES);
        gb_net_write(data, BYTES);
        free(data);
        assert_true(gb_net.stream->ops->pending(gb_net.stream) > 0);
        gb_net.stream->ops->close(gb_net.stream, gb_net_now() + 60 * GB_SEC);
        gb_net.stream->ops->close(gb_net.stream, gb_net_now() + 60 * GB_SEC); /* idempotent */
        gb_net_run_until(gb_net_is_closed);
        assert_int_equal(gb_net.reason.code, GB_CANCELLED);
        assert_int_equal(gb_net.drained, 0); /* none after the close */
        gb_net_fixture_stop();
        assert_int_equal(gb_net.app.total, BYTES);
        assert_true(gb_net.app.orderly_end);
    }
}

static void read_slowly(struct gb_peer_app *a)
{
    char data[1024];
    while (gb_peer_wait(a->conn, 250)) { /* 4 KiB a second */
        if (gb_peer_app_read(a, data, sizeof data) == 0) return;
    }
}

static void flush_ends_at_its_deadline(void **state)
{
    (void)state;
    for (size_t t = 0; t < TRANSPORTS; t++) {
        set_up(&transports[t], read_slowly);
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_connected);
        char *data = calloc(1, 8 << 20);
        gb_net_write(data, 8 << 20);
        free(data);
        uint64_t deadline_ns = gb_net_now() + 300 * GB_MS;
        gb_net.stream->ops->close(gb_net.stream, deadline_ns);
        gb_net_run_until(gb_net_is_closed);
        assert_in_range(gb_net_now(), deadline_ns, deadline_ns + late_max_ns);
        assert_int_equal(gb_net.reason.code, GB_CANCELLED);
        gb_net_fixture_stop();
    }
}

static void a_later_cut_cuts_the_flush(void **state)
{
    (void)state;
    set_up(&transports[0], read_slowly);
    gb_net_dial(NULL);
    gb_net_run_until(gb_net_is_connected);
    char *data = calloc(1, 8 << 20);
    gb_net_write(data, 8 << 20);
    free(data);
    uint64_t start_ns = gb_net_now();
    gb_net.stream->ops->close(gb_net.stream, start_ns + 60 * GB_SEC);
    gb_net.stream->ops->close(gb_net.stream, 0);
    gb_net_run_until(gb_net_is_closed);
    assert_true(gb_net_now() - start_ns < late_max_ns);
    gb_net_fixture_stop();
}

/* --- back-pressure --- */

static void drained_follows_a_full_kernel(void **state)
{
    (void)state;
    for (size_t t = 0; t < TRANSPORTS; t++) {
        set_up(&transports[t], count_all);
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_connected);
        char *data = calloc(1, 8 << 20);
        gb_net_write(data, 8 << 20);
        gb_net_write(data, 8 << 20);
        free(data);
        assert_true(gb_net.stream->ops->pending(gb_net.stream) > 0);
        gb_net_run_until(gb_net_is_drained);
        assert_int_equal(gb_net.drained, 1);
        assert_int_equal(gb_net.stream->ops->pending(gb_net.stream), 0);
        gb_net_close_and_expect(GB_CANCELLED);
        gb_net_fixture_stop();
        assert_int_equal(gb_net.app.total, 16 << 20);
        assert_int_equal(gb_net.drained, 1); /* not for writes that the kernel took at once */
    }
}

/* --- dialling --- */

static void failed_dials(void **state)
{
    (void)state;
    static const struct {
        const char *name, *host;
        uint16_t port; /* 0 = the peer's */
        enum gb_code want;
        const char *message;
    } rows[] = {
        {"refused", "127.0.0.1", 1, GB_CONNECTION_LOST, "127.0.0.1:1: connect: connection refused"},
        {"all addresses refused", "localhost", 1, GB_CONNECTION_LOST, "localhost:1: connect: "},
        {"unknown name", "no-such-host.invalid", 1, GB_CONNECTION_LOST,
         "no-such-host.invalid:1: look-up: "},
        {"next address answers", "localhost", 0, GB_CANCELLED, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s, ", rows[i].name);
        set_up(&transports[0], echo);
        gb_net.port = rows[i].port;
        gb_net_dial(rows[i].host);
        gb_net_run_until(gb_net_is_connected_or_closed);
        if (gb_net.connected) gb_net_close_and_expect(GB_CANCELLED);
        print_message("    %s\n", gb_net.reason.message);
        assert_int_equal(gb_net.reason.code, rows[i].want);
        assert_non_null(strstr(gb_net.reason.message, rows[i].message));
        gb_net_fixture_stop();
    }
}

static void dials_that_never_start(void **state)
{
    (void)state;
    set_up(&transports[2], echo);
    static const char *const paths[] = {"", "mqtt", "/a b", "/a\r\nEvil: 1", "/#f"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        gb_net.path = paths[i];
        assert_int_equal(gb_net_try_dial("127.0.0.1").code, GB_INVALID_CONFIG);
    }
    gb_net.path = "/mqtt";
    assert_int_equal(gb_net_try_dial("").code, GB_INVALID_CONFIG);
    char name[400];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(gb_net_try_dial(name).code, GB_INVALID_CONFIG);
    gb_net_fixture_stop();
}

static void hang(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    (void)gb_peer_wait(c, 20000);
}

/* The peer accepts and then says nothing: TLS or the upgrade never ends. */
static void deadline_covers_the_layers(void **state)
{
    (void)state;
    static const char *const wants[] = {"", "TLS handshake: no answer by the deadline",
                                        "WebSocket upgrade: no answer by the deadline",
                                        "TLS handshake: no answer by the deadline"};
    for (size_t t = 1; t < TRANSPORTS; t++) {
        print_message("transport: %s\n", transports[t].name);
        gb_net_fixture_start(&(struct gb_net_fixture_cfg){
            .tls = transports[t].tls, .ws = transports[t].ws, .raw = hang});
        gb_net.deadline_ns = gb_net_now() + 300 * GB_MS;
        gb_net_dial(NULL);
        gb_net_run_until(gb_net_is_closed);
        assert_in_range(gb_net_now(), gb_net.deadline_ns, gb_net.deadline_ns + late_max_ns);
        assert_int_equal(gb_net.reason.code, GB_TIMEOUT);
        assert_non_null(strstr(gb_net.reason.message, wants[t]));
        gb_net_fixture_stop();
    }
}

/* TEST-NET-1 has no hosts: the machine says "unreachable" or nothing at all. */
static void deadline_covers_the_connect(void **state)
{
    (void)state;
    set_up(&transports[0], echo);
    gb_net.deadline_ns = gb_net_now() + 300 * GB_MS;
    gb_net_dial("192.0.2.1");
    gb_net_run_until(gb_net_is_closed);
    print_message("    %s\n", gb_net.reason.message);
    assert_true(gb_net_now() <= gb_net.deadline_ns + late_max_ns);
    assert_true(gb_net.reason.code == GB_TIMEOUT || gb_net.reason.code == GB_CONNECTION_LOST);
    gb_net_fixture_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back_as_they_were),
        cmocka_unit_test(chunks_keep_their_limit),
        cmocka_unit_test(ends_of_the_peer),
        cmocka_unit_test(close_works_in_any_state),
        cmocka_unit_test(close_flushes_what_is_pending),
        cmocka_unit_test(flush_ends_at_its_deadline),
        cmocka_unit_test(a_later_cut_cuts_the_flush),
        cmocka_unit_test(drained_follows_a_full_kernel),
        cmocka_unit_test(failed_dials),
        cmocka_unit_test(dials_that_never_start),
        cmocka_unit_test(deadline_covers_the_layers),
        cmocka_unit_test(deadline_covers_the_connect),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
