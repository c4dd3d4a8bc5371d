#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/drainer.h"
#include "core/route.h"
#include "support/core_fixture.h"
#include "support/oom.h"

/* Allocation ladders of the core: each allocation of a constructor fails once, and each of a
 * message's way through route and drainer. A message may then be handed back, but it is never
 * acknowledged without being sent, stored or dead-lettered, and nothing leaks (ASan). */

struct fixture {
    struct core_fixture x;
    struct gb_ledger *ledger;
    struct gb_route_binding bindings[2];
    struct gb_route_cfg route_cfg;
    struct gb_drainer_target target;
    struct gb_drainer_cfg drainer_cfg;
    unsigned done;
};

static bool current(void *ctx, struct gb_token *out)
{
    (void)ctx;
    *out = (struct gb_token){.owner = gb_bytes_c("i1#boot"), .version = 1};
    return true;
}

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct fixture *)arg)->done++;
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    core_fixture_init(&f.x);
    if (gb_failed(gb_ledger_new(0, &f.ledger))) return -1;
    f.bindings[0] = (struct gb_route_binding){
        .id = "b", .sender = &f.x.sender.sender, .address = "a", .session_id = "s"};
    f.bindings[1] = f.bindings[0];
    f.bindings[1].id = "a-binding-with-a-name-that-is-longer-than-the-first-piece-of-a-buffer-is";
    f.bindings[1].session_id = NULL;
    f.route_cfg = (struct gb_route_cfg){
        .id = "r",
        .instance_id = "i1",
        .policy = gb_policy_default(),
        .bindings = f.bindings,
        .binding_count = 1,
        .reactor = f.x.reactor,
        .metrics = f.x.metrics,
        .receiver = &f.x.receiver.receiver,
        .outbox = &f.x.outbox.outbox,
        .dlq = &f.x.dlq.dlq,
        .ledger = f.ledger,
    };
    f.route_cfg.policy.max_in_flight = 40; /* more timers than the reactor begins with */
    f.target = (struct gb_drainer_target){.route_id = "r",
                                          .binding_id = "b",
                                          .sender = &f.x.sender.sender,
                                          .policy = gb_policy_default()};
    f.drainer_cfg = (struct gb_drainer_cfg){
        .partition = "SESSION#s",
        .session_id = "s",
        .instance_id = "i1",
        .policy = gb_drain_policy_default(),
        .targets = &f.target,
        .target_count = 1,
        .reactor = f.x.reactor,
        .metrics = f.x.metrics,
        .outbox = &f.x.outbox.outbox,
        .dlq = &f.x.dlq.dlq,
        .authority = {.current = current},
    };
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gb_ledger_free(f->ledger);
    core_fixture_deinit(&f->x);
    return 0;
}

static void test_route_constructor(void **state)
{
    struct fixture *f = *state;
    f->route_cfg.delivery_mode = GB_SHARED_OUTBOX;
    f->route_cfg.every_binding = true;
    f->route_cfg.binding_count = 2;
    for (unsigned n = 1;; n++) {
        struct gb_route *r = NULL;
        gb_oom_fail_at(n);
        struct gb_err err = gb_route_new(&f->route_cfg, &r);
        bool failed = gb_oom_count() >= n;
        gb_oom_off();
        gb_route_free(r);
        if (!failed) {
            assert_int_equal(err.code, GB_OK);
            return;
        }
        /* A metric that can't be made yields the overflow handle, so not every failure shows. */
        if (err.code != GB_OK) assert_int_equal(err.code, GB_UNAVAILABLE);
    }
}

static void test_drainer_constructor(void **state)
{
    struct fixture *f = *state;
    for (unsigned n = 1;; n++) {
        struct gb_drainer *d = NULL;
        gb_oom_fail_at(n);
        struct gb_err err = gb_drainer_new(&f->drainer_cfg, &d);
        bool failed = gb_oom_count() >= n;
        gb_oom_off();
        gb_drainer_free(d);
        if (!failed) {
            assert_int_equal(err.code, GB_OK);
            return;
        }
        if (err.code != GB_OK) assert_int_equal(err.code, GB_UNAVAILABLE);
    }
}

static void test_ledger_constructor_and_charge(void **state)
{
    struct fixture *f = *state;
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    for (unsigned n = 1;; n++) {
        struct gb_ledger *l = NULL;
        gb_oom_fail_at(n);
        struct gb_err err = gb_ledger_new(2, &l);
        if (!gb_failed(err)) {
            gb_ledger_charge(l, d->delivery.envelope);
            gb_ledger_charge(l, d->delivery.envelope);
            gb_ledger_forget(l, d->delivery.envelope);
        }
        bool failed = gb_oom_count() >= n;
        gb_oom_off();
        gb_ledger_free(l);
        if (!failed) return;
    }
}

/* One message through a route whose n-th allocation fails; true when none failed. */
static bool deliver_failing_at(void **state, unsigned n, enum gb_delivery_mode mode,
                               enum gb_code answer)
{
    setup(state);
    struct fixture *f = *state;
    f->route_cfg.delivery_mode = mode;
    f->bindings[0].address = "x/{to}";
    struct gb_route *r = NULL;
    assert_int_equal(gb_route_new(&f->route_cfg, &r).code, GB_OK);
    gb_route_start(r);
    fake_script_always(&f->x.sender.script, answer == GB_OK ? FAKE_DO : FAKE_FAIL, answer);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    assert_int_equal(gb_envelope_put_text(d->delivery.envelope, "to", gb_bytes_c("y")).code, GB_OK);
    gb_oom_fail_at(n);
    fake_receiver_emit(d);
    core_fixture_run(&f->x, 100 * GB_SEC);
    bool failed = gb_oom_count() >= n;
    gb_oom_off();
    assert_int_equal(d->calls, 1);
    bool kept = fake_sender_accepted(&f->x.sender, NULL) + f->x.outbox.count + f->x.dlq.count > 0;
    if (d->fate == FAKE_ACKED) {
        assert_true(kept);
    } else {
        assert_int_equal(d->fate, FAKE_RETRIED);
    }
    if (!failed) assert_int_equal(d->fate, FAKE_ACKED);
    struct gb_op op = {.deadline_ns = f->x.now_ns};
    gb_route_stop(r, &op, on_done, f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->done, 1);
    gb_route_free(r);
    teardown(state);
    return !failed;
}

static void test_message_through_the_route(void **state)
{
    static const enum gb_code answers[] = {GB_OK, GB_FORBIDDEN};
    for (size_t i = 0; i < 2; i++) {
        unsigned n = 1;
        while (!deliver_failing_at(state, n, GB_DIRECT_HOLD, answers[i])) n++;
        assert_true(n > 1);
    }
    unsigned n = 1;
    while (!deliver_failing_at(state, n, GB_SHARED_OUTBOX, GB_OK)) n++;
    assert_true(n > 1);
}

static bool drain_failing_at(void **state, unsigned n, enum gb_code answer)
{
    setup(state);
    struct fixture *f = *state;
    struct gb_drainer *d = NULL;
    assert_int_equal(gb_drainer_new(&f->drainer_cfg, &d).code, GB_OK);
    fake_script_always(&f->x.sender.script, answer == GB_OK ? FAKE_DO : FAKE_FAIL, answer);
    fake_outbox_add(&f->x.outbox, "m1", "k");
    fake_outbox_add(&f->x.outbox, "m2", "k");
    gb_drainer_start(d);
    gb_oom_fail_at(n);
    core_fixture_run(&f->x, 20 * GB_SEC);
    bool failed = gb_oom_count() >= n;
    gb_oom_off();
    size_t kept = fake_sender_accepted(&f->x.sender, NULL) + f->x.dlq.count;
    assert_true(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED) <= kept);
    if (!failed) assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 2);
    struct gb_op op = {.deadline_ns = f->x.now_ns};
    gb_drainer_stop(d, &op, on_done, f);
    core_fixture_run(&f->x, 20 * GB_SEC);
    assert_int_equal(f->done, 1);
    gb_drainer_free(d);
    teardown(state);
    return !failed;
}

static void test_records_through_the_drainer(void **state)
{
    static const enum gb_code answers[] = {GB_OK, GB_FORBIDDEN};
    for (size_t i = 0; i < 2; i++) {
        unsigned n = 1;
        while (!drain_failing_at(state, n, answers[i])) n++;
        assert_true(n > 1);
    }
}

static void test_local_token(void **state)
{
    struct fixture *f = *state;
    for (unsigned n = 1;; n++) {
        struct gb_local_authority a;
        struct gb_op op = {.deadline_ns = f->x.now_ns + (uint64_t)GB_SEC};
        gb_oom_fail_at(n);
        const struct gb_local_authority_cfg cfg = {.reactor = f->x.reactor,
                                                   .outbox = &f->x.outbox.outbox,
                                                   .owner = "i1#n",
                                                   .partition = "SESSION#s"};
        gb_local_authority_start(&a, &cfg, &op, on_done, f);
        core_fixture_run(&f->x, GB_MS);
        bool failed = gb_oom_count() >= n;
        gb_oom_off();
        struct gb_token token;
        struct gb_authority authority = gb_local_authority(&a);
        assert_int_equal(authority.current(authority.ctx, &token), op.result.code == GB_OK);
        gb_local_authority_deinit(&a);
        if (!failed) return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_route_constructor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drainer_constructor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ledger_constructor_and_charge, setup, teardown),
        cmocka_unit_test(test_message_through_the_route),
        cmocka_unit_test(test_records_through_the_drainer),
        cmocka_unit_test_setup_teardown(test_local_token, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
