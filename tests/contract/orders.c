#include "contract/orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { RUNS_MAX = 400, TURNS_MAX = 4000, TURN_NS = 300 * 1000 };

struct stopper {
    struct gb_timer timer;
    struct gb_loop *loop;
};

static void stop_loop(struct gb_timer *timer)
{
    gb_loop_stop(GB_CONTAINER_OF(timer, struct stopper, timer)->loop);
}

/* One turn. */
static void pump(const struct orders_side *side)
{
    struct gb_reactor *reactor = gb_loop_reactor(side->loop);
    struct stopper s = {.loop = side->loop};
    assert_int_equal(gb_timer_init(&s.timer, reactor, stop_loop).code, GB_OK);
    gb_timer_start(&s.timer, gb_reactor_now_ns(reactor) + (uint64_t)TURN_NS);
    gb_loop_run(s.loop);
    gb_timer_deinit(&s.timer);
}

/* True: a request waits at the proxy; false: the operation is over. */
static bool settle_down(const struct orders *o, const struct orders_side *side)
{
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        if (*side->waiting == 0) return false;
        if (dynamodb_rig_held(o->rig, side->client) > 0) return true;
        pump(side);
    }
    fail_msg("client %s: neither a request nor an end", side->client);
    return false;
}

/* `choices` says who goes where both could; what was not yet decided is A's. Answers how many
 * decisions there were. */
static size_t run(struct orders *o, char *choices, size_t decided)
{
    char schedule[ORDERS_STEPS_MAX + 1] = "";
    size_t decisions = 0;
    dynamodb_rig_clear(o->rig);
    o->prepare(o->arg);
    dynamodb_rig_rule(o->rig, "\"effect\": \"pass\", \"hold\": \"request\", \"times\": 0");
    o->start(o->arg);
    for (size_t step = 0;; step++) {
        assert_true(step < ORDERS_STEPS_MAX);
        bool a_waits = settle_down(o, &o->sides[0]);
        bool b_waits = settle_down(o, &o->sides[1]);
        if (!a_waits && !b_waits) break;
        char who = a_waits ? 'A' : 'B';
        if (a_waits && b_waits) {
            if (decisions >= decided) choices[decisions] = 'A';
            who = choices[decisions++];
        }
        schedule[step] = who;
        const struct orders_side *side = &o->sides[who == 'A' ? 0 : 1];
        dynamodb_rig_release(o->rig, side->client);
        pump(side);
    }
    dynamodb_rig_clear(o->rig);
    o->check(o->arg, schedule);
    return decisions;
}

unsigned orders_run(struct orders *o)
{
    char choices[ORDERS_STEPS_MAX] = "";
    size_t decided = 0;
    unsigned runs = 0;
    for (;;) {
        size_t decisions = run(o, choices, decided);
        assert_true(++runs < RUNS_MAX);
        while (decisions > 0 && choices[decisions - 1] == 'B') decisions--;
        if (decisions == 0) return runs;
        choices[decisions - 1] = 'B';
        decided = decisions;
    }
}
