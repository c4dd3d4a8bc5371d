#include "base/reactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/oom.h"

static unsigned fired;

static void on_timer(struct gb_timer *timer)
{
    (void)timer;
    fired++;
}

static void new_reports_no_memory(void **state)
{
    (void)state;
    struct gb_reactor *r = NULL;
    gb_oom_fail_at(1);
    struct gb_err err = gb_reactor_new(1, &r);
    gb_oom_off();
    assert_int_equal(err.code, GB_UNAVAILABLE);
    assert_null(r);
}

static void timer_init_reports_and_start_never_needs_memory(void **state)
{
    (void)state;
    enum { TIMERS = 40 };
    static struct gb_timer timers[TIMERS];
    struct gb_reactor *r;
    unsigned failures = 0;
    fired = 0;
    assert_false(gb_failed(gb_reactor_new(1, &r)));
    for (size_t i = 0; i < TIMERS; i++) {
        struct gb_err err = gb_err(GB_UNAVAILABLE, "not yet tried");
        for (unsigned n = 1; gb_failed(err); n++) {
            assert_true(n < 10);
            memset(&timers[i], 0xA5, sizeof timers[i]);
            gb_oom_fail_at(n);
            err = gb_timer_init(&timers[i], r, on_timer);
            gb_oom_off();
            if (!gb_failed(err)) break;
            failures++;
            assert_int_equal(err.code, GB_UNAVAILABLE);
            gb_timer_deinit(&timers[i]); /* right for a timer whose init failed, too */
        }
        gb_oom_fail_at(1);
        gb_timer_start(&timers[i], 100 - i);
        gb_oom_off();
    }
    assert_int_equal(failures, 3 * 2); /* two arrays, grown to 16, 32 and 64 */
    gb_oom_fail_at(1);
    gb_reactor_run(r, 100, 0);
    gb_oom_off();
    assert_int_equal(fired, TIMERS);
    for (size_t i = 0; i < TIMERS; i++) gb_timer_deinit(&timers[i]);
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_reports_no_memory),
        cmocka_unit_test(timer_init_reports_and_start_never_needs_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
