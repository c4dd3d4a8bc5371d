#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/http_server.h"
#include "support/oom.h"

/* The n-th of our own allocations fails: the constructor gives an error, a client is answered or
 * cut, and the next one is served. */

static struct gb_loop *loop;

static void handle(void *arg, const struct gb_http_server_request *r,
                   struct gb_http_server_answer *a)
{
    (void)arg;
    (void)r;
    a->status = 200;
    gb_http_server_add(a, "X-Served", "yes");
    gb_str_append_c(&a->body, "served");
}

static const struct gb_http_server_cfg *config(void)
{
    static struct gb_http_server_cfg cfg; /* gb-exception: one test, one loop */
    cfg = (struct gb_http_server_cfg){.loop = loop,
                                      .address = "127.0.0.1:0",
                                      .connections_max = 2,
                                      .body_max = 10,
                                      .request_ns = 1000000000,
                                      .idle_ns = 1000000000,
                                      .handle = handle};
    return &cfg;
}

static void stop(struct gb_timer *timer)
{
    (void)timer;
    gb_loop_stop(loop);
}

static void pump(struct gb_timer *timer)
{
    gb_timer_start(timer, gb_reactor_now_ns(gb_loop_reactor(loop)) + 30000000);
    gb_loop_run(loop);
}

static int dial(const struct gb_http_server *s)
{
    static const char post[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)gb_http_server_port(s)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, post, sizeof post - 1, MSG_NOSIGNAL), sizeof post - 1);
    return fd;
}

static void server_without_memory_is_an_error(void **state)
{
    (void)state;
    struct gb_http_server *s = NULL;
    unsigned n = 1;
    assert_false(gb_failed(gb_loop_new(&loop)));
    for (;; n++) {
        gb_oom_fail_at(n);
        struct gb_err err = gb_http_server_new(config(), &s);
        gb_oom_off();
        if (!gb_failed(err)) break;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(s);
    }
    assert_in_range(n, 2, 10);
    gb_http_server_free(s);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
}

static void client_without_memory_is_answered_or_cut(void **state)
{
    (void)state;
    struct gb_http_server *s = NULL;
    struct gb_timer timer = {0};
    bool served = false;
    unsigned n = 1;
    assert_false(gb_failed(gb_loop_new(&loop)));
    assert_false(gb_failed(gb_timer_init(&timer, gb_loop_reactor(loop), stop)));
    assert_false(gb_failed(gb_http_server_new(config(), &s)));
    for (; !served; n++) {
        char text[1024];
        assert_true(n < 30);
        int fd = dial(s);
        gb_oom_fail_at(n);
        pump(&timer);
        served = gb_oom_count() < n;
        gb_oom_off();
        ssize_t size = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
        assert_true(size >= 0); /* neither an answer nor the end: it hangs */
        text[size] = '\0';
        if (size > 0 && strstr(text, " 200 ") != NULL) assert_non_null(strstr(text, "served"));
        if (served) assert_non_null(strstr(text, " 200 "));
        (void)close(fd);
        pump(&timer);
    }
    assert_true(n > 4);
    gb_http_server_free(s);
    gb_timer_deinit(&timer);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_without_memory_is_an_error),
        cmocka_unit_test(client_without_memory_is_answered_or_cut),
    };
    return cmocka_run_group_tests_name("http_server_oom", tests, NULL, NULL);
}
