#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/loop.h"
#include "support/oom.h"

/* The n-th allocation fails until the constructor succeeds; libuv's own allocations are its own
 * tests' matter. */

static void loop_without_memory_is_an_error(void **state)
{
    (void)state;
    struct gb_loop *loop = NULL;
    unsigned n = 1;
    for (;; n++) {
        gb_oom_fail_at(n);
        struct gb_err err = gb_loop_new(&loop);
        gb_oom_off();
        if (!gb_failed(err)) break;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(loop);
    }
    assert_int_equal(n, 3); /* the loop and its reactor */
    gb_loop_free(loop);
}

static void ignore_signal(void *arg, int signum)
{
    (void)arg;
    (void)signum;
}

static void signal_without_memory_is_an_error(void **state)
{
    (void)state;
    struct gb_loop *loop = NULL;
    struct gb_signal *s = NULL;
    assert_int_equal(gb_loop_new(&loop).code, GB_OK);
    gb_oom_fail_at(1);
    assert_int_equal(gb_signal_new(loop, SIGUSR1, ignore_signal, NULL, &s).code, GB_UNAVAILABLE);
    gb_oom_off();
    assert_null(s);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loop_without_memory_is_an_error),
        cmocka_unit_test(signal_without_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("loop_oom", tests, NULL, NULL);
}
