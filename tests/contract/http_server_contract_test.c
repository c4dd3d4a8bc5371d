#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "io/http_server.h"

/* The HTTP server against clients that mean well and such that do not: one thread, real sockets. */

enum { ROOM = 1 << 18, CONNECTIONS = 8 };
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

struct rig {
    struct gb_loop *loop;
    struct gb_timer timer;
    struct gb_http_server *server;
    unsigned handled;
    char received[ROOM];
    size_t size;
};

static void handle(void *arg, const struct gb_http_server_request *r,
                   struct gb_http_server_answer *a)
{
    struct rig *t = arg;
    const char *echo = gb_http_server_query(r, "q");
    const char *header = gb_http_server_header(r, "x-given");
    t->handled++;
    a->status = 200;
    gb_http_server_add(a, "X-Echo", header);
    gb_str_appendf(&a->body, "%s %s %s %zu %s", r->method, r->path, echo == NULL ? "-" : echo,
                   r->body.size, r->peer);
}

static void timer_fired(struct gb_timer *timer)
{
    gb_loop_stop(GB_CONTAINER_OF(timer, struct rig, timer)->loop);
}

static void pump(struct rig *t, int64_t ms)
{
    gb_timer_start(&t->timer, gb_reactor_now_ns(gb_loop_reactor(t->loop)) + (uint64_t)(ms * GB_MS));
    gb_loop_run(t->loop);
}

static int set_up(void **state)
{
    struct rig *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_false(gb_failed(gb_loop_new(&t->loop)));
    assert_false(gb_failed(gb_timer_init(&t->timer, gb_loop_reactor(t->loop), timer_fired)));
    const struct gb_http_server_cfg cfg = {.loop = t->loop,
                                           .address = "127.0.0.1:0",
                                           .connections_max = CONNECTIONS,
                                           .body_max = 1000,
                                           .request_ns = 700 * GB_MS,
                                           .idle_ns = 1500 * GB_MS,
                                           .handle = handle,
                                           .arg = t};
    assert_false(gb_failed(gb_http_server_new(&cfg, &t->server)));
    pump(t, 1);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *t = *state;
    gb_http_server_free(t->server);
    gb_timer_deinit(&t->timer);
    gb_loop_drain_closing(t->loop);
    gb_loop_free(t->loop);
    free(t);
    return 0;
}

static int dial(const struct rig *t)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)gb_http_server_port(t->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void say(int fd, const char *text, size_t size)
{
    (void)send(fd, text, size, MSG_NOSIGNAL);
}

static void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

/* Until the end of the stream or `ms`; true at the end. */
static bool listen_to(struct rig *t, int fd, int64_t ms)
{
    t->size = 0;
    for (; ms > 0; ms -= 10) {
        pump(t, 10);
        for (;;) {
            ssize_t n = recv(fd, t->received + t->size, ROOM - 1 - t->size, 0);
            if (n > 0) {
                t->size += (size_t)n;
                t->received[t->size] = '\0';
                continue;
            }
            if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return true;
            break;
        }
    }
    t->received[t->size] = '\0';
    return false;
}

static unsigned answers(const struct rig *t, const char *status)
{
    unsigned count = 0;
    for (const char *p = t->received; (p = strstr(p, status)) != NULL; p++) count++;
    return count;
}

static void answers_one(void **state)
{
    struct rig *t = *state;
    int fd = dial(t);
    say_text(
        fd,
        "POST /a%20b?q=%41&q=2 HTTP/1.1\r\nHost: a\r\nX-Given: me\r\nContent-Length: 3\r\n\r\nabc");
    assert_false(listen_to(t, fd, 100));
    assert_non_null(strstr(t->received, "X-Echo: me\r\n"));
    assert_non_null(strstr(t->received, "POST /a b A 3 127.0.0.1"));
    say_text(fd, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_false(listen_to(t, fd, 100));
    assert_non_null(strstr(t->received, "Content-Length: 20\r\n"));
    assert_memory_equal(t->received + t->size - 4, "\r\n\r\n", 4);
    (void)close(fd);
}

static void pipelined_requests_keep_their_order(void **state)
{
    struct rig *t = *state;
    int fd = dial(t);
    char all[4096];
    size_t size = 0;
    for (int i = 0; i < 50; i++)
        size += (size_t)snprintf(all + size, sizeof all - size, GET("/%d"), i);
    say(fd, all, size);
    (void)listen_to(t, fd, 300);
    assert_int_equal(t->handled, 50);
    const char *p = t->received;
    for (int i = 0; i < 50; i++) {
        char want[32];
        (void)snprintf(want, sizeof want, "GET /%d - 0", i);
        p = strstr(p, want);
        assert_non_null(p);
    }
    (void)close(fd);
}

static void garbage_is_refused(void **state)
{
    struct rig *t = *state;
    static const char *const texts[] = {
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls?\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\r\n\r\n\r\n\r\nfoo bar baz quux\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: banana\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int fd = dial(t);
        say_text(fd, texts[i]);
        if (!listen_to(t, fd, 2000)) fail_msg("text %zu holds the connection", i);
        if (answers(t, "HTTP/1.1 200") > 0) fail_msg("text %zu was answered", i);
        (void)close(fd);
    }
    assert_int_equal(t->handled, 0);
    int fd = dial(t);
    say_text(fd, GET("/"));
    (void)listen_to(t, fd, 100);
    assert_int_equal(t->handled, 1);
    (void)close(fd);
}

static void big_headers_and_bodies_are_refused(void **state)
{
    struct rig *t = *state;
    char *big = calloc(1, 1 << 17);
    memset(big, 'a', (1 << 17) - 1);
    int fd = dial(t);
    say_text(fd, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    say(fd, big, 1 << 17);
    assert_true(listen_to(t, fd, 2500));
    assert_int_equal(answers(t, " 200 "), 0);
    (void)close(fd);
    fd = dial(t);
    say_text(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
    (void)listen_to(t, fd, 100);
    assert_int_equal(answers(t, "HTTP/1.1 413"), 1);
    (void)close(fd);
    fd = dial(t);
    say_text(fd, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n");
    say(fd, big, 2000);
    say_text(fd, "\r\n0\r\n\r\n");
    (void)listen_to(t, fd, 200);
    assert_int_equal(answers(t, "HTTP/1.1 413"), 1);
    assert_int_equal(t->handled, 0);
    (void)close(fd);
    free(big);
}

/* A byte now and then keeps neither headers nor body open beyond request_ns. */
static void slow_clients_are_cut(void **state)
{
    struct rig *t = *state;
    static const char *const begins[] = {
        "", "GET / HTTP/1.1\r\nX", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        int fd = dial(t);
        bool ended = false;
        say_text(fd, begins[i]);
        for (int n = 0; n < 40 && !ended; n++) {
            ended = listen_to(t, fd, 100);
            if (!ended) say(fd, i == 0 ? "G" : "a", 1);
        }
        if (!ended) fail_msg("begin %zu is never cut", i);
        assert_int_equal(answers(t, " 200 "), 0);
        (void)close(fd);
    }
    int idle = dial(t); /* nor does an idle connection stay for ever */
    say_text(idle, GET("/"));
    assert_false(listen_to(t, idle, 900));
    assert_int_equal(answers(t, " 200 "), 1);
    assert_true(listen_to(t, idle, 1700));
    (void)close(idle);
}

/* Ten thousand connections that say nothing: all but the bound are cut, and one that asks is
 * answered meanwhile. */
static void connections_are_bounded(void **state)
{
    struct rig *t = *state;
    enum { ALL = 10000, BATCH = 100 };
    unsigned ended = 0, answered = 0;
    int fds[BATCH];
    for (int round = 0; round < ALL / BATCH; round++) {
        for (int i = 0; i < BATCH; i++) fds[i] = dial(t);
        int asks = dial(t);
        say_text(asks, GET("/"));
        (void)listen_to(t, asks, 30);
        answered += answers(t, " 200 ") == 1;
        (void)close(asks);
        for (int i = 0; i < BATCH; i++) {
            char c;
            ended += recv(fds[i], &c, 1, 0) == 0;
            (void)close(fds[i]);
        }
    }
    assert_int_equal(answered, ALL / BATCH);
    assert_true(ended >= ALL - (ALL / BATCH) * CONNECTIONS);
}

static void addresses(void **state)
{
    struct rig *t = *state;
    char taken[32];
    (void)snprintf(taken, sizeof taken, "127.0.0.1:%u", gb_http_server_port(t->server));
    const struct {
        const char *address;
        enum gb_code code;
    } rows[] = {
        {taken, GB_UNAVAILABLE},
        {"8081", GB_INVALID_CONFIG},
        {"a.invalid:1", GB_INVALID_CONFIG},
        {":", GB_INVALID_CONFIG},
        {":banana", GB_INVALID_CONFIG},
        {"[::1]:0", GB_OK},
        {":0", GB_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_http_server *s = NULL;
        const struct gb_http_server_cfg cfg = {.loop = t->loop,
                                               .address = rows[i].address,
                                               .connections_max = 1,
                                               .handle = handle,
                                               .arg = t};
        struct gb_err err = gb_http_server_new(&cfg, &s);
        if (err.code != rows[i].code) fail_msg("%s: %s", rows[i].address, err.message);
        gb_http_server_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pipelined_requests_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbage_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(big_headers_and_bodies_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_clients_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(connections_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
