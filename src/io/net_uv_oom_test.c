#include "io/net_uv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/oom.h"

/* Allocations of ours fail one by one; those inside libuv and OpenSSL are their own. */

static struct gb_loop *loop;
static struct gb_net *net;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(gb_loop_new(&loop).code, GB_OK);
    gb_oom_fail_at(1);
    assert_int_equal(gb_net_uv_new(loop, &net).code, GB_UNAVAILABLE);
    gb_oom_off();
    return gb_net_uv_new(loop, &net).code == GB_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    gb_net_uv_free(net);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
    return 0;
}

static void on_event(void *arg)
{
    (void)arg;
    fail_msg("no stream may connect here");
}

static void on_data(void *arg, struct gb_bytes bytes)
{
    (void)bytes;
    on_event(arg);
}

static void on_closed(void *arg, struct gb_err reason)
{
    struct gb_err *out = arg;
    *out = reason;
    gb_loop_stop(loop);
}

static const struct gb_stream_events events = {on_event, on_data, on_event, on_closed};

static void dial_without_memory_is_an_error(void **state)
{
    (void)state;
    struct gb_stream_cfg cfg = {.host = "127.0.0.1", .port = 1, .tls = true, .ws_path = "/mqtt"};
    struct gb_stream *stream = NULL;
    struct gb_err reason = {0};
    unsigned failures = 0;
    for (unsigned n = 1;; n++) {
        gb_oom_fail_at(n);
        struct gb_err err = net->ops->dial(net, &cfg, &events, &reason, &stream);
        gb_oom_off();
        if (!gb_failed(err)) break;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(stream);
        failures++;
    }
    assert_in_range(failures, 6, 20); /* three layers, host names, the request, the look-up */
    gb_loop_run(loop);
    assert_int_equal(reason.code, GB_CONNECTION_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dial_without_memory_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net_uv_oom", tests, NULL, NULL);
}
