#include "base/reactor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 8 };

/* A timer and a task under one letter; what runs is written to the trace. */
struct bench;
struct item {
    struct gb_timer timer;
    struct gb_task task;
    struct bench *bench;
    char name;
    void (*act)(struct item *self); /* what it does when it runs, NULL: nothing */
    struct item *other;             /* for `act` */
};
struct bench {
    struct gb_reactor *r;
    struct item items[ITEMS];
    char trace[64];
    size_t traced;
    unsigned wakes;
};

static void trace(struct item *item)
{
    struct bench *b = item->bench;
    assert_true(b->traced + 1 < sizeof b->trace);
    b->trace[b->traced++] = item->name;
    b->trace[b->traced] = '\0';
    if (item->act != NULL) item->act(item);
}

static void on_timer(struct gb_timer *timer)
{
    assert_false(gb_timer_running(timer));
    trace(GB_CONTAINER_OF(timer, struct item, timer));
}

static void on_task(struct gb_task *task)
{
    trace(GB_CONTAINER_OF(task, struct item, task));
}

static void on_wake(void *arg)
{
    ((struct bench *)arg)->wakes++;
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL || gb_failed(gb_reactor_new(1, &b->r))) return -1;
    for (size_t i = 0; i < ITEMS; i++) {
        struct item *item = &b->items[i];
        if (gb_failed(gb_timer_init(&item->timer, b->r, on_timer))) return -1;
        item->task.run = on_task;
        item->bench = b;
        item->name = (char)('a' + i);
    }
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < ITEMS; i++) {
        gb_timer_deinit(&b->items[i].timer);
        gb_task_cancel(&b->items[i].task);
    }
    gb_reactor_free(b->r);
    free(b);
    return 0;
}

/* Runs a turn and compares what ran in it. */
static void turn(struct bench *b, uint64_t now_ns, const char *want)
{
    b->traced = 0;
    b->trace[0] = '\0';
    gb_reactor_run(b->r, now_ns, 0);
    assert_string_equal(b->trace, want);
}

static const struct timer_row {
    const char *name;
    uint64_t deadlines[ITEMS]; /* of a, b, ..., started in this order; 0 = not started */
    uint64_t now_ns;
    const char *want;
    uint64_t next_ns;
} timer_rows[] = {
    {"none", {0}, 100, "", UINT64_MAX},
    {"by deadline", {30, 10, 20}, 100, "bca", UINT64_MAX},
    {"ties by start order", {20, 10, 20, 10, 20}, 100, "bdace", UINT64_MAX},
    {"right child first", {1, 30, 20, 40}, 100, "acbd", UINT64_MAX},
    {"not before its time", {101, 100, 99}, 100, "cb", 101},
    {"first in order, last late", {500, 400, 300, 200, 100}, 250, "ed", 300},
    {"the last moment", {UINT64_MAX, 1}, UINT64_MAX - 1, "b", UINT64_MAX},
};

static void timers_fire_in_order(void **state)
{
    for (size_t i = 0; i < sizeof timer_rows / sizeof timer_rows[0]; i++) {
        const struct timer_row *row = &timer_rows[i];
        struct bench *b;
        assert_int_equal(setup(state), 0);
        b = *state;
        for (size_t t = 0; t < ITEMS; t++) {
            if (row->deadlines[t] != 0) gb_timer_start(&b->items[t].timer, row->deadlines[t]);
        }
        print_message("%s\n", row->name);
        turn(b, row->now_ns, row->want);
        assert_int_equal(gb_reactor_next_ns(b->r), row->next_ns);
        assert_int_equal(gb_reactor_now_ns(b->r), row->now_ns);
        turn(b, row->now_ns, "");
        assert_int_equal(teardown(state), 0);
    }
}

static void restart_moves_and_stop_forgets(void **state)
{
    struct bench *b = *state;
    for (size_t i = 0; i < 5; i++) gb_timer_start(&b->items[i].timer, 10 + i);
    gb_timer_start(&b->items[0].timer, 12); /* now after c, which has the same deadline */
    gb_timer_stop(&b->items[1].timer);
    gb_timer_stop(&b->items[1].timer);
    gb_timer_start(&b->items[4].timer, 1);
    assert_true(gb_timer_running(&b->items[0].timer));
    assert_false(gb_timer_running(&b->items[1].timer));
    assert_int_equal(gb_reactor_next_ns(b->r), 1);
    turn(b, 20, "ecad");
}

static void start_again_at_once(struct item *self)
{
    gb_timer_start(&self->timer, 0);
}

static void timer_in_the_past_waits_for_the_next_turn(void **state)
{
    struct bench *b = *state;
    b->items[0].act = start_again_at_once;
    gb_timer_start(&b->items[0].timer, 10);
    gb_timer_start(&b->items[1].timer, 20);
    turn(b, 20, "ab");
    assert_int_equal(gb_reactor_next_ns(b->r), 0);
    turn(b, 20, "a");
    b->items[0].act = NULL;
    turn(b, 21, "a");
    turn(b, 22, "");
}

static void stop_other(struct item *self)
{
    assert_true(gb_timer_running(&self->other->timer));
    gb_timer_stop(&self->other->timer);
}

static void start_other_later(struct item *self)
{
    gb_timer_start(&self->other->timer, 50);
}

static void due_timer_can_be_stopped_or_moved_by_an_earlier_one(void **state)
{
    struct bench *b = *state;
    b->items[0].act = stop_other;
    b->items[0].other = &b->items[2];
    b->items[1].act = start_other_later;
    b->items[1].other = &b->items[3];
    for (size_t i = 0; i < 5; i++) gb_timer_start(&b->items[i].timer, 10 + i);
    turn(b, 20, "abe");
    assert_int_equal(gb_reactor_next_ns(b->r), 50);
    turn(b, 50, "d");
}

static void deinit_other(struct item *self)
{
    gb_timer_deinit(&self->other->timer);
    gb_timer_deinit(&self->timer);
    memset(&self->timer, 0, sizeof self->timer);
}

static void timers_can_go_away_while_firing(void **state)
{
    struct bench *b = *state;
    b->items[0].act = deinit_other;
    b->items[0].other = &b->items[1];
    for (size_t i = 0; i < 3; i++) gb_timer_start(&b->items[i].timer, 10);
    turn(b, 20, "ac");
}

static void many_timers_in_random_order(void **state)
{
    enum { COUNT = 2000 };
    struct bench *b = *state;
    struct item *items = calloc(COUNT, sizeof *items);
    assert_non_null(items);
    for (size_t i = 0; i < COUNT; i++) {
        items[i].bench = b;
        items[i].name = '.';
        assert_false(gb_failed(gb_timer_init(&items[i].timer, b->r, on_timer)));
    }
    for (size_t i = 0; i < (size_t)4 * COUNT; i++) {
        struct gb_timer *t = &items[gb_reactor_random_below(b->r, COUNT)].timer;
        if (i % 3 == 0) {
            gb_timer_stop(t);
        } else {
            gb_timer_start(t, 1 + gb_reactor_random_below(b->r, 500));
        }
    }
    /* At each step exactly the timers of this deadline fire, so the heap's top was the earliest. */
    while (gb_reactor_next_ns(b->r) != UINT64_MAX) {
        uint64_t now_ns = gb_reactor_next_ns(b->r);
        size_t due = 0;
        for (size_t i = 0; i < COUNT; i++) {
            if (!gb_timer_running(&items[i].timer)) continue;
            assert_true(items[i].timer.deadline_ns >= now_ns);
            due += items[i].timer.deadline_ns == now_ns;
        }
        b->traced = 0;
        gb_reactor_run(b->r, now_ns, 0);
        assert_int_equal(b->traced, due);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_false(gb_timer_running(&items[i].timer));
        gb_timer_deinit(&items[i].timer);
    }
    free(items);
}

static void defer_other(struct item *self)
{
    gb_reactor_defer(self->bench->r, &self->other->task);
}

static void flush_other(struct item *self)
{
    gb_reactor_flush(self->bench->r, &self->other->task);
}

static void tasks_run_in_order_and_once(void **state)
{
    struct bench *b = *state;
    b->items[0].act = defer_other;
    b->items[0].other = &b->items[3];
    gb_reactor_defer(b->r, &b->items[1].task);
    gb_reactor_defer(b->r, &b->items[0].task);
    gb_reactor_defer(b->r, &b->items[1].task);
    gb_reactor_defer(b->r, &b->items[2].task);
    assert_int_equal(gb_reactor_next_ns(b->r), 0);
    turn(b, 1, "bacd");
    assert_int_equal(gb_reactor_next_ns(b->r), UINT64_MAX);
}

static void timers_run_before_tasks(void **state)
{
    struct bench *b = *state;
    b->items[0].act = defer_other;
    b->items[0].other = &b->items[1];
    gb_timer_start(&b->items[0].timer, 5);
    gb_reactor_defer(b->r, &b->items[2].task);
    turn(b, 5, "acb");
}

static void flushes_run_when_no_task_is_left(void **state)
{
    struct bench *b = *state;
    gb_reactor_flush(b->r, &b->items[0].task);
    gb_reactor_flush(b->r, &b->items[0].task);
    assert_int_equal(gb_reactor_next_ns(b->r), 0);
    b->items[0].act = defer_other; /* a flush task's own task runs in the same turn */
    b->items[0].other = &b->items[4];
    b->items[1].act = defer_other;
    b->items[1].other = &b->items[2];
    b->items[2].act = flush_other;
    b->items[2].other = &b->items[3];
    gb_reactor_defer(b->r, &b->items[1].task);
    turn(b, 1, "bcaed");
}

static void cancelled_task_does_not_run(void **state)
{
    struct bench *b = *state;
    gb_task_cancel(&b->items[0].task);
    gb_reactor_defer(b->r, &b->items[0].task);
    gb_reactor_defer(b->r, &b->items[1].task);
    gb_reactor_flush(b->r, &b->items[2].task);
    gb_task_cancel(&b->items[0].task);
    gb_task_cancel(&b->items[2].task);
    turn(b, 1, "b");
    gb_reactor_defer(b->r, &b->items[0].task);
    turn(b, 2, "a");
}

static void defer_again(struct item *self)
{
    self->bench->traced = 0; /* too often for the trace */
    self->bench->wakes++;
    gb_reactor_defer(self->bench->r, &self->task);
}

static void endless_tasks_end_the_turn(void **state)
{
    struct bench *b = *state;
    b->items[0].act = defer_again;
    gb_reactor_defer(b->r, &b->items[0].task);
    gb_reactor_run(b->r, 1, 0);
    assert_int_equal(b->wakes, GB_REACTOR_TURN_MAX);
    assert_int_equal(gb_reactor_next_ns(b->r), 0);
}

static void wakes_the_driver_only_from_outside(void **state)
{
    struct bench *b = *state;
    gb_reactor_on_wake(b->r, on_wake, b);
    gb_timer_start(&b->items[0].timer, 100);
    assert_int_equal(b->wakes, 1);
    gb_timer_start(&b->items[1].timer, 200); /* not the earliest */
    assert_int_equal(b->wakes, 1);
    gb_timer_start(&b->items[2].timer, 60);
    assert_int_equal(b->wakes, 2);
    gb_reactor_defer(b->r, &b->items[3].task);
    assert_int_equal(b->wakes, 3);
    gb_reactor_flush(b->r, &b->items[4].task); /* a task waits already */
    assert_int_equal(b->wakes, 3);
    b->items[4].act = start_other_later; /* the earliest then, but the driver is awake */
    b->items[4].other = &b->items[5];
    turn(b, 10, "de");
    assert_int_equal(gb_reactor_next_ns(b->r), 50);
    assert_int_equal(b->wakes, 3);
    gb_reactor_on_wake(b->r, NULL, NULL);
    gb_reactor_defer(b->r, &b->items[3].task);
    assert_int_equal(b->wakes, 3);
}

static void clocks_are_those_of_the_turn(void **state)
{
    struct bench *b = *state;
    gb_reactor_run(b->r, 7, 1000);
    gb_reactor_run(b->r, 8, 900); /* the wall clock may step back */
    assert_int_equal(gb_reactor_now_ns(b->r), 8);
    assert_int_equal(gb_reactor_wall_ms(b->r), 900);
    assert_int_equal(gb_reactor_boot_ns(b->r), 8);
    gb_reactor_set_suspended(b->r, 100);
    gb_reactor_set_suspended(b->r, 50); /* never falls */
    assert_int_equal(gb_reactor_boot_ns(b->r), 108);
    assert_int_equal(gb_reactor_now_ns(b->r), 8);
}

static void random_numbers_follow_the_seed(void **state)
{
    (void)state;
    struct gb_reactor *a, *b, *c;
    assert_false(gb_failed(gb_reactor_new(0, &a)));
    assert_false(gb_failed(gb_reactor_new(0, &b)));
    assert_false(gb_failed(gb_reactor_new(1, &c)));
    /* First outputs of xoshiro256** seeded by splitmix64(0), as the reference code prints them. */
    assert_true(gb_reactor_random(a) == UINT64_C(0x99EC5F36CB75F2B4));
    assert_true(gb_reactor_random(a) == UINT64_C(0xBF6E1F784956452A));
    assert_true(gb_reactor_random(b) == UINT64_C(0x99EC5F36CB75F2B4));
    assert_true(gb_reactor_random(c) != UINT64_C(0x99EC5F36CB75F2B4));
    gb_reactor_free(a);
    gb_reactor_free(b);
    gb_reactor_free(c);
    gb_reactor_free(NULL);
}

static void random_below_is_even(void **state)
{
    struct bench *b = *state;
    unsigned seen[6] = {0};
    for (int i = 0; i < 6000; i++) {
        uint64_t value = gb_reactor_random_below(b->r, 6);
        assert_true(value < 6);
        seen[value]++;
    }
    for (size_t i = 0; i < 6; i++) assert_in_range(seen[i], 850, 1150);
    assert_int_equal(gb_reactor_random_below(b->r, 0), 0);
    assert_int_equal(gb_reactor_random_below(b->r, 1), 0);
    unsigned high = 0; /* with a plain remainder two thirds would be in the lower half */
    for (int i = 0; i < 6000; i++) {
        uint64_t bound = (UINT64_C(1) << 63) + (UINT64_C(1) << 62);
        high += gb_reactor_random_below(b->r, bound) >= bound / 2;
    }
    assert_in_range(high, 2800, 3200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test_setup_teardown(restart_moves_and_stop_forgets, setup, teardown),
        cmocka_unit_test_setup_teardown(timer_in_the_past_waits_for_the_next_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(due_timer_can_be_stopped_or_moved_by_an_earlier_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(timers_can_go_away_while_firing, setup, teardown),
        cmocka_unit_test_setup_teardown(many_timers_in_random_order, setup, teardown),
        cmocka_unit_test_setup_teardown(tasks_run_in_order_and_once, setup, teardown),
        cmocka_unit_test_setup_teardown(timers_run_before_tasks, setup, teardown),
        cmocka_unit_test_setup_teardown(flushes_run_when_no_task_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelled_task_does_not_run, setup, teardown),
        cmocka_unit_test_setup_teardown(endless_tasks_end_the_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(wakes_the_driver_only_from_outside, setup, teardown),
        cmocka_unit_test_setup_teardown(clocks_are_those_of_the_turn, setup, teardown),
        cmocka_unit_test(random_numbers_follow_the_seed),
        cmocka_unit_test_setup_teardown(random_below_is_even, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
