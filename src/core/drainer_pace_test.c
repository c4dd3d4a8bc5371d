#include "core/drainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_fixture.h"

/* The pace of the drainer (spec 02 §7.3 item 1, check 4) and the legs of one message (check 23). */

enum { LEGS = 3 };

struct fixture {
    struct core_fixture x;
    struct fake_sender refusing;
    struct gb_drainer *drainer;
    struct gb_drainer_target targets[LEGS];
    struct gb_drainer_cfg cfg;
    struct gb_op stop;
    bool stopped;
};

static bool current(void *ctx, struct gb_token *out)
{
    (void)ctx;
    *out = (struct gb_token){.owner = gb_bytes_c("i1#boot"), .version = 7};
    return true;
}

static void on_stalled(void *arg, const char *partition, struct gb_err cause)
{
    (void)arg;
    fail_msg("%s stalled: %s", partition, cause.message);
}

static void on_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct fixture *)arg)->stopped = true;
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    core_fixture_init(&f.x);
    fake_sender_init(&f.refusing, f.x.reactor);
    static const char *const ids[LEGS] = {"b", "b1", "b2"};
    for (size_t i = 0; i < LEGS; i++) {
        f.targets[i] =
            (struct gb_drainer_target){.route_id = "r",
                                       .binding_id = ids[i],
                                       .sender = i == 1 ? &f.refusing.sender : &f.x.sender.sender,
                                       .policy = gb_policy_default()};
    }
    f.cfg = (struct gb_drainer_cfg){
        .partition = "SESSION#s",
        .session_id = "s",
        .instance_id = "i1",
        .policy = gb_drain_policy_default(),
        .targets = f.targets,
        .target_count = LEGS,
        .reactor = f.x.reactor,
        .metrics = f.x.metrics,
        .outbox = &f.x.outbox.outbox,
        .dlq = &f.x.dlq.dlq,
        .authority = {.current = current},
        .stalled = on_stalled,
    };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->stop.deadline_ns = f->x.now_ns;
    gb_drainer_stop(f->drainer, &f->stop, on_stopped, f);
    core_fixture_run(&f->x, 20 * GB_SEC);
    assert_true(f->stopped);
    gb_drainer_free(f->drainer);
    fake_sender_deinit(&f->refusing);
    core_fixture_deinit(&f->x);
    return 0;
}

static void start(struct fixture *f)
{
    assert_int_equal(gb_drainer_new(&f->cfg, &f->drainer).code, GB_OK);
    gb_drainer_start(f->drainer);
}

/* Time to the next claim, in steps of 1 ms. */
static int64_t gap_ns(struct fixture *f)
{
    uint64_t from_ns = f->x.now_ns;
    unsigned before = f->x.outbox.calls[FAKE_CLAIM];
    while (f->x.outbox.calls[FAKE_CLAIM] == before) core_fixture_run(&f->x, GB_MS);
    return (int64_t)(f->x.now_ns - from_ns);
}

static void is_about(int64_t got_ns, int64_t want_ns)
{
    if (got_ns < want_ns / 4 * 3 - GB_MS || got_ns > want_ns / 4 * 5 + GB_MS) {
        fail_msg("%jd ms, not about %jd ms", (intmax_t)(got_ns / GB_MS),
                 (intmax_t)(want_ns / GB_MS));
    }
}

static void gaps_grow_and_a_found_record_resets(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.min_interval_ns = 500 * GB_MS;
    f->cfg.policy.max_interval_ns = 10 * GB_SEC;
    f->cfg.policy.multiplier = 1.5;
    start(f);
    (void)gap_ns(f);
    double want_ns = 500e6;
    for (int i = 0; i < 20; i++) { /* 0.75, 1.125 .. 10 s */
        want_ns = want_ns * 1.5 < 10e9 ? want_ns * 1.5 : 10e9;
        is_about(gap_ns(f), (int64_t)want_ns);
    }
    fake_outbox_add(&f->x.outbox, "m1", NULL); /* nobody wakes the drainer */
    is_about(gap_ns(f), 10 * GB_SEC);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 1);
    is_about(gap_ns(f) + GB_MS, 500 * GB_MS); /* reset */
    is_about(gap_ns(f), 750 * GB_MS);
}

static void one_failing_leg_resends_no_other(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->refusing.script, FAKE_FAIL, GB_UNAVAILABLE);
    for (size_t i = 0; i < LEGS; i++) {
        struct fake_row *row = fake_outbox_add(&f->x.outbox, "m1", NULL);
        (void)snprintf(row->binding, sizeof row->binding, "%s", f->targets[i].binding_id);
    }
    start(f);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_true(f->refusing.count > 2);
    assert_int_equal(f->x.sender.count, 2); /* the others, once each */
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 2);
    fake_script_always(&f->refusing.script, FAKE_DO, GB_OK);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), LEGS);
    assert_int_equal(f->x.sender.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gaps_grow_and_a_found_record_resets, setup, teardown),
        cmocka_unit_test_setup_teardown(one_failing_leg_resends_no_other, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
