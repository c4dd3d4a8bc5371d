#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <uv.h>

#include "base/duration.h"
#include "base/reactor.h"
#include "io/loop.h"

/* The loop on the real clock: order of I/O callbacks and turns, wake-up precision, signals. */

struct fixture {
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    struct gb_timer timer;
    struct gb_task task;
    uint64_t fired_ns;
    int turns;
    int callbacks;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    assert_int_equal(gb_loop_new(&f.loop).code, GB_OK);
    f.reactor = gb_loop_reactor(f.loop);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    gb_timer_deinit(&f->timer);
    gb_loop_drain_closing(f->loop);
    gb_loop_free(f->loop);
    return 0;
}

static void stop_at_timer(struct gb_timer *t)
{
    struct fixture *f = GB_CONTAINER_OF(t, struct fixture, timer);
    f->fired_ns = uv_hrtime();
    gb_loop_stop(f->loop);
}

static void clock_is_set_before_the_first_turn(void **state)
{
    struct fixture *f = *state;
    uint64_t now_ns = uv_hrtime();
    assert_in_range(gb_reactor_now_ns(f->reactor), now_ns - (uint64_t)GB_SEC, now_ns);
    assert_true(gb_reactor_wall_ms(f->reactor) > INT64_C(1700000000000));
}

/* The machine may be busy, so a late wake-up is tried again; an early one is wrong at once. */
static void timer_is_never_early_and_at_most_a_millisecond_late(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gb_timer_init(&f->timer, f->reactor, stop_at_timer).code, GB_OK);
    uint64_t best_late_ns = UINT64_MAX;
    for (int i = 0; i < 20 && best_late_ns > 1500000; i++) {
        uint64_t deadline_ns = uv_hrtime() + 3300000;
        gb_timer_start(&f->timer, deadline_ns);
        gb_loop_run(f->loop);
        assert_true(f->fired_ns >= deadline_ns);
        if (f->fired_ns - deadline_ns < best_late_ns) best_late_ns = f->fired_ns - deadline_ns;
    }
    assert_true(best_late_ns <= 1500000);
}

static void count_turn(struct gb_task *task)
{
    struct fixture *f = GB_CONTAINER_OF(task, struct fixture, task);
    f->turns++;
    gb_loop_stop(f->loop);
}

static void on_ready(uv_async_t *async)
{
    struct fixture *f = async->data;
    f->callbacks++;
    gb_loop_refresh_clock(f->loop);
    assert_true(uv_hrtime() - gb_reactor_now_ns(f->reactor) < (uint64_t)GB_SEC);
    gb_reactor_flush(f->reactor, &f->task);
}

static void one_turn_follows_the_callbacks_of_one_poll(void **state)
{
    struct fixture *f = *state;
    f->task.run = count_turn;
    uv_async_t async[8];
    for (int i = 0; i < 8; i++) {
        assert_int_equal(uv_async_init(gb_loop_uv(f->loop), &async[i], on_ready), 0);
        async[i].data = f;
        assert_int_equal(uv_async_send(&async[i]), 0);
    }
    gb_loop_run(f->loop);
    assert_int_equal(f->callbacks, 8);
    assert_int_equal(f->turns, 1);
    for (int i = 0; i < 8; i++) uv_close((uv_handle_t *)&async[i], NULL);
    gb_loop_drain_closing(f->loop); /* the handles are on this stack */
}

static void task_without_timer_runs(void **state)
{
    struct fixture *f = *state;
    f->task.run = count_turn;
    gb_reactor_defer(f->reactor, &f->task);
    gb_loop_run(f->loop);
    assert_int_equal(f->turns, 1);
}

static void stop_at_signal(void *arg, int signum)
{
    struct fixture *f = arg;
    f->callbacks = signum;
    gb_loop_stop(f->loop);
}

static void signal_reaches_the_loop(void **state)
{
    struct fixture *f = *state;
    struct gb_signal *s = NULL;
    assert_int_equal(gb_signal_new(f->loop, SIGUSR1, stop_at_signal, f, &s).code, GB_OK);
    assert_int_equal(raise(SIGUSR1), 0);
    gb_loop_run(f->loop);
    assert_int_equal(f->callbacks, SIGUSR1);
    gb_signal_free(s);
}

static void signal_that_cannot_be_caught_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct gb_signal *s = NULL;
    struct gb_err err = gb_signal_new(f->loop, SIGKILL, stop_at_signal, f, &s);
    assert_int_equal(err.code, GB_UNAVAILABLE);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clock_is_set_before_the_first_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timer_is_never_early_and_at_most_a_millisecond_late, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_turn_follows_the_callbacks_of_one_poll, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(task_without_timer_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signal_reaches_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signal_that_cannot_be_caught_is_an_error, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
