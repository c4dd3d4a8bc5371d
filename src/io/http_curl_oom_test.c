#include "io/http_curl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/oom.h"

/* Allocations of ours fail one by one; those inside libcurl are its own. */

static struct gb_loop *loop;

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
    gb_loop_stop(loop);
}

static struct gb_http *make_client(unsigned *tried)
{
    const struct gb_http_curl_cfg cfg = {.ca_file = "/a.pem", .ca_path = "/certs"};
    struct gb_http *http = NULL;
    for (*tried = 1;; (*tried)++) {
        gb_oom_fail_at(*tried);
        struct gb_err err = gb_http_curl_new(loop, &cfg, &http);
        gb_oom_off();
        if (!gb_failed(err)) return http;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(http);
    }
}

/* Nobody listens on port 1; the requests that memory lets pass end with CONNECTION_LOST. */
static void client_and_request_without_memory_are_errors(void **state)
{
    (void)state;
    assert_int_equal(gb_loop_new(&loop).code, GB_OK);
    unsigned tried = 0;
    struct gb_http *http = make_client(&tried);
    assert_in_range(tried, 4, 8); /* the client, two paths, the timer's room */

    unsigned failures = 0;
    struct gb_http_request q = {.method = "POST", .url = "http://127.0.0.1:1/"};
    for (unsigned n = 1;; n++) {
        gb_oom_fail_at(n);
        http->ops->request(http, &q, on_done, NULL);
        gb_loop_run(loop);
        bool reached = gb_oom_count() >= n;
        gb_oom_off();
        if (!reached) break;
        failures++;
        assert_true(q.op.result.code == GB_UNAVAILABLE || q.op.result.code == GB_CONNECTION_LOST);
    }
    assert_int_equal(q.op.result.code, GB_CONNECTION_LOST);
    assert_in_range(failures, 2, 40);
    gb_http_deinit(&q);

    struct gb_op op = {0};
    http->ops->close(http, &op, on_done, NULL);
    gb_loop_run(loop);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_and_request_without_memory_are_errors),
    };
    return cmocka_run_group_tests_name("http_curl_oom", tests, NULL, NULL);
}
