#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/route.h"
#include "domain/reserved.h"
#include "support/core_fixture.h"

/* The ingress side of shared_outbox (spec 02 §7.1) with fake ports. */

struct fixture {
    struct core_fixture x;
    struct gb_ledger *ledger;
    struct gb_route *route;
    struct gb_route_binding bindings[3];
    struct gb_route_cfg cfg;
    unsigned persisted;
    struct gb_op stop;
    unsigned stopped;
};

static void on_persisted(void *arg, struct gb_bytes partition)
{
    struct fixture *f = arg;
    assert_true(partition.size > 0);
    assert_true(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_PENDING) > 0);
    f->persisted++;
}

static void on_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct fixture *)arg)->stopped++;
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    core_fixture_init(&f.x);
    if (gb_failed(gb_ledger_new(0, &f.ledger))) return -1;
    static const char *const ids[] = {"b0", "b1", "b2"};
    for (size_t i = 0; i < 3; i++) {
        f.bindings[i] = (struct gb_route_binding){
            .id = ids[i], .sender = &f.x.sender.sender, .address = "a", .session_id = "s"};
    }
    f.cfg = (struct gb_route_cfg){
        .id = "r",
        .instance_id = "i1",
        .delivery_mode = GB_SHARED_OUTBOX,
        .policy = gb_policy_default(),
        .bindings = f.bindings,
        .binding_count = 1,
        .reactor = f.x.reactor,
        .metrics = f.x.metrics,
        .receiver = &f.x.receiver.receiver,
        .outbox = &f.x.outbox.outbox,
        .dlq = &f.x.dlq.dlq,
        .ledger = f.ledger,
        .persisted = on_persisted,
        .arg = &f,
    };
    f.cfg.policy.backoff.jitter = 0;
    *state = &f;
    return 0;
}

static void stop_route(struct fixture *f, int64_t within_ns)
{
    f->stop.deadline_ns = f->x.now_ns + (uint64_t)within_ns;
    gb_route_stop(f->route, &f->stop, on_stopped, f);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->route != NULL && f->stopped == 0) {
        if (!gb_op_pending(&f->stop)) stop_route(f, 0);
        core_fixture_run(&f->x, GB_SEC);
        assert_int_equal(f->stopped, 1);
    }
    gb_route_free(f->route);
    gb_ledger_free(f->ledger);
    core_fixture_deinit(&f->x);
    return 0;
}

static void start(struct fixture *f)
{
    assert_int_equal(gb_route_new(&f->cfg, &f->route).code, GB_OK);
    gb_route_start(f->route);
}

static struct fake_delivery *deliver(struct fixture *f, const char *id, int64_t run_ns)
{
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, id);
    core_fixture_run(&f->x, run_ns);
    return d;
}

static void test_no_acknowledge_before_the_store_confirmed(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.outbox.script[FAKE_PERSIST], FAKE_HOLD, GB_OK);
    start(f);
    struct fake_delivery *d = deliver(f, "m1", 10 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_PERSIST], 1);
    assert_int_equal(d->fate, FAKE_HELD); /* acceptance 1 */
    assert_int_equal(f->persisted, 0);
    fake_outbox_add(&f->x.outbox, "m1", NULL); /* the store has it now */
    fake_outbox_answer(&f->x.outbox, GB_OK);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->persisted, 1);
}

static void test_record_carries_everything_but_counters(void **state)
{
    struct fixture *f = *state;
    f->bindings[0].address = "out/{to}";
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    struct gb_envelope *e = d->delivery.envelope;
    d->delivery.source_counts = true;
    d->delivery.receive_count = 3;
    d->delivery.derived = GB_DERIVED_ORDERING_KEY;
    e->expires_at_ms = CORE_FIXTURE_WALL_MS + 100000;
    assert_int_equal(gb_envelope_put_text(e, "to", gb_bytes_c("x")).code, GB_OK);
    assert_int_equal(gb_envelope_put_text(e, GB_H_ORDERING_KEY, gb_bytes_c("k")).code, GB_OK);
    assert_int_equal(gb_envelope_put_number(e, GB_H_SQS_RECEIVE_COUNT, GB_VALUE_INT, 3).code,
                     GB_OK);
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->x.outbox.count, 1);
    const struct fake_row *row = &f->x.outbox.rows[0];
    assert_string_equal(row->partition, "SESSION#s");
    assert_string_equal(row->route, "r");
    assert_string_equal(row->binding, "b0");
    assert_string_equal(row->address, "out/x");
    assert_string_equal(row->key, "k");
    assert_int_equal(strlen(row->id), 32);
    assert_int_equal(row->expires_at_ms, CORE_FIXTURE_WALL_MS + 100000);
    assert_int_equal(row->created_at_ms, CORE_FIXTURE_WALL_MS + 1000);
    assert_null(gb_envelope_get(row->envelope, GB_H_SQS_RECEIVE_COUNT));
}

static void test_partition_without_session(void **state)
{
    struct fixture *f = *state;
    f->bindings[0].session_id = NULL;
    start(f);
    deliver(f, "m1", GB_MS);
    assert_string_equal(f->x.outbox.rows[0].partition, "BINDING#b0");
}

static void test_same_identity_twice(void **state)
{
    struct fixture *f = *state;
    start(f);
    struct fake_delivery *first = deliver(f, "m1", GB_MS);
    struct fake_delivery *second = deliver(f, "m1", GB_MS);
    assert_int_equal(f->x.outbox.count, 1); /* acceptance 23 */
    assert_int_equal(first->fate, FAKE_ACKED);
    assert_int_equal(second->fate, FAKE_ACKED);
    assert_int_equal(core_fixture_count(&f->x, "OutboxDuplicateSuppressed"), 1);
}

static void test_fan_out_is_one_persist(void **state)
{
    struct fixture *f = *state;
    f->cfg.binding_count = 3;
    f->cfg.every_binding = true;
    f->bindings[2].session_id = "other";
    fake_script_add(&f->x.outbox.script[FAKE_PERSIST], FAKE_FAIL, GB_TIMEOUT);
    start(f);
    struct fake_delivery *d = deliver(f, "m1", 100 * GB_MS);
    assert_int_equal(d->fate, FAKE_RETRIED); /* acceptance 23: unacknowledged ... */
    d = deliver(f, "m1", 100 * GB_MS);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.outbox.count, 3); /* ... and exactly three records */
    assert_int_equal(f->persisted, 2);      /* once for each partition */
}

static void test_fan_out_adds_only_the_missing_legs(void **state)
{
    struct fixture *f = *state;
    f->cfg.binding_count = 3;
    f->cfg.every_binding = true;
    start(f);
    struct fake_row *stored = fake_outbox_add(&f->x.outbox, "m1", NULL);
    (void)snprintf(stored->binding, sizeof stored->binding, "b1");
    struct fake_delivery *d = deliver(f, "m1", GB_MS);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.outbox.count, 3);
    assert_int_equal(core_fixture_count(&f->x, "OutboxDuplicateSuppressed"), 0);
}

/* --- depth (spec 02 §7.1 item 2) --- */

/* An SQS-like source: it has a count and a clock of its own. */
static struct fake_delivery *deliver_counted(struct fixture *f, const char *id, int64_t wait_ns)
{
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, id);
    d->delivery.source_counts = true;
    d->delivery.receive_count = 1;
    fake_receiver_emit(d);
    core_fixture_run(&f->x, wait_ns);
    return d;
}

static void test_full_partition_hands_back_uncharged(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_outbox_depth = 10;
    start(f);
    f->x.outbox.force_depth = 10;
    for (int i = 0; i < 20; i++) { /* acceptance 18 */
        struct fake_delivery *d = deliver_counted(f, "m1", 2 * GB_SEC);
        assert_int_equal(d->fate, FAKE_RETRIED);
        assert_int_equal(d->retry_delay_ns, 5 * GB_SEC);
    }
    assert_int_equal(gb_ledger_size(f->ledger), 0);
    assert_int_equal(core_fixture_count(&f->x, "RouteErrors"), 0);
    f->x.outbox.force_depth = 9;
    assert_int_equal(deliver_counted(f, "m1", 2 * GB_SEC)->fate, FAKE_ACKED);
}

/* docs/decisions/0006: an MQTT message keeps its slot until there is room. */
static void test_full_partition_holds_other_sources(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_outbox_depth = 10;
    start(f);
    f->x.outbox.force_depth = 10;
    struct fake_delivery *d = deliver(f, "m1", 60 * GB_SEC);
    assert_int_equal(d->fate, FAKE_HELD);
    f->x.outbox.force_depth = 9;
    core_fixture_run(&f->x, 200 * GB_MS);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(core_fixture_count(&f->x, "RouteErrors"), 0);
}

/* What one answer allows bounds what follows it, however fast the source is. */
static void test_depth_cannot_be_overshot(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_outbox_depth = 10;
    start(f);
    for (int i = 0; i < 30; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "m%d", i);
        fake_receiver_push(&f->x.receiver, id);
    }
    core_fixture_run(&f->x, 300 * GB_MS);
    assert_int_equal(f->x.outbox.count, 10);
    assert_int_equal(fake_receiver_fates(&f->x.receiver, FAKE_ACKED), 10);
}

static void test_depth_failure_hands_back_uncharged(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.outbox.script[FAKE_DEPTH], FAKE_FAIL, GB_UNAVAILABLE);
    start(f);
    struct fake_delivery *d = deliver_counted(f, "m1", GB_SEC);
    assert_int_equal(d->fate, FAKE_RETRIED);
    assert_int_equal(d->retry_delay_ns, GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_PERSIST], 0);
    assert_int_equal(core_fixture_count(&f->x, "OutboxDepthFailures"), 1);
    assert_int_equal(gb_ledger_size(f->ledger), 0);
}

static void test_depth_answer_is_cached_and_shared(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.outbox.script[FAKE_DEPTH], FAKE_HOLD, GB_OK);
    start(f);
    for (int i = 0; i < 50; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "m%d", i);
        fake_receiver_push(&f->x.receiver, id);
    }
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 1);
    fake_outbox_answer(&f->x.outbox, GB_OK);
    core_fixture_run(&f->x, 100 * GB_MS);
    assert_int_equal(fake_receiver_fates(&f->x.receiver, FAKE_ACKED), 50);
    deliver(f, "again", 100 * GB_MS);
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 1);
    core_fixture_run(&f->x, 500 * GB_MS);
    deliver(f, "half", 100 * GB_MS); /* in the background */
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 2);
    core_fixture_run(&f->x, 2 * GB_SEC);
    deliver(f, "old", 100 * GB_MS);
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 3);
}

static void answer_depth_later(struct fixture *f)
{
    core_fixture_run(&f->x, 1500 * GB_MS);
    fake_outbox_answer(&f->x.outbox, GB_OK);
    core_fixture_run(&f->x, GB_MS);
}

static void test_store_slower_than_the_cache_does_not_ask_for_ever(void **state)
{
    struct fixture *f = *state;
    f->cfg.binding_count = 2;
    f->cfg.every_binding = true;
    f->bindings[1].session_id = "other";
    fake_script_always(&f->x.outbox.script[FAKE_DEPTH], FAKE_HOLD, GB_OK);
    start(f);
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    answer_depth_later(f);
    answer_depth_later(f);
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 2);
    assert_int_equal(d->fate, FAKE_ACKED);
}

static void test_stop_waits_for_a_background_query(void **state)
{
    struct fixture *f = *state;
    start(f);
    deliver(f, "m1", 600 * GB_MS);
    fake_script_always(&f->x.outbox.script[FAKE_DEPTH], FAKE_HOLD, GB_OK);
    assert_int_equal(deliver(f, "m2", GB_MS)->fate, FAKE_ACKED);
    assert_int_equal(f->x.outbox.calls[FAKE_DEPTH], 2);
    stop_route(f, GB_SEC);
    core_fixture_run(&f->x, 999 * GB_MS);
    assert_int_equal(f->stopped, 0); /* the query writes into the route's memory */
    core_fixture_run(&f->x, 10 * GB_MS);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->x.outbox.cancels, 1);
    assert_int_equal(f->stop.result.code, GB_OK);
}

/* --- persist failures (docs/decisions/0005) --- */

static const struct persist_row {
    const char *name;
    enum gb_code code;
    unsigned failures; /* then it works */
    int64_t budget_ns;
    bool can_retry;
    enum fake_fate fate;
    unsigned tries;
    unsigned charged;
    unsigned entries;
    enum gb_code entry_code;
} persist_rows[] = {
    {"disk full for a while", GB_UNAVAILABLE, 3, 60 * GB_SEC, true, FAKE_ACKED, 4, 0, 0, GB_OK},
    {"budget spent", GB_UNAVAILABLE, 99, 10 * GB_SEC, true, FAKE_RETRIED, 4, 0, 0, GB_OK},
    {"budget off", GB_UNAVAILABLE, 99, 0, true, FAKE_RETRIED, 1, 0, 0, GB_OK},
    {"over its deadline", GB_TIMEOUT, 1, 60 * GB_SEC, true, FAKE_RETRIED, 1, 0, 0, GB_OK},
    {"permanent", GB_INTERNAL, 1, 60 * GB_SEC, true, FAKE_RETRIED, 1, 1, 0, GB_OK},
    {"rejected", GB_PAYLOAD_TOO_LARGE, 1, 60 * GB_SEC, true, FAKE_ACKED, 1, 0, 1,
     GB_PAYLOAD_TOO_LARGE},
    {"source can't take back", GB_UNAVAILABLE, 99, 0, false, FAKE_ACKED, 1, 0, 1, GB_UNAVAILABLE},
};

static void test_persist_failures(void **state)
{
    for (size_t i = 0; i < sizeof persist_rows / sizeof persist_rows[0]; i++) {
        const struct persist_row *row = &persist_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->cfg.policy.send_retry_budget_ns = row->budget_ns;
        for (unsigned k = 0; k < row->failures && k < FAKE_SCRIPT_MAX; k++)
            fake_script_add(&f->x.outbox.script[FAKE_PERSIST], FAKE_FAIL, row->code);
        start(f);
        struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
        d->delivery.can_retry = row->can_retry;
        fake_receiver_emit(d);
        core_fixture_run(&f->x, 40 * GB_SEC);
        assert_int_equal(d->fate, row->fate);
        assert_int_equal(f->x.outbox.calls[FAKE_PERSIST], row->tries);
        assert_int_equal(gb_ledger_size(f->ledger), row->charged);
        assert_int_equal(f->x.dlq.count, row->entries);
        if (row->entries > 0)
            assert_string_equal(f->x.dlq.entries[0]->error_code, gb_code_name(row->entry_code));
        if (i + 1 < sizeof persist_rows / sizeof persist_rows[0]) teardown(state);
    }
}

static void test_permanent_store_failure_ends_at_the_cap(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.outbox.script[FAKE_PERSIST], FAKE_FAIL, GB_INTERNAL);
    start(f);
    unsigned n = 1;
    while (deliver(f, "m1", GB_SEC)->fate == FAKE_RETRIED && n < 20) n++;
    assert_int_equal(n, 6);
    assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", "max_retries"), 1);
}

static void test_applied_but_answer_lost(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.outbox.script[FAKE_PERSIST], FAKE_DO_THEN_FAIL, GB_UNAVAILABLE);
    start(f);
    struct fake_delivery *d = deliver(f, "m1", 5 * GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.outbox.count, 1);
}

static void test_missing_template_header_is_terminal(void **state)
{
    struct fixture *f = *state;
    f->bindings[0].address = "x/{y}";
    start(f);
    assert_int_equal(deliver(f, "m1", GB_SEC)->fate, FAKE_ACKED);
    assert_int_equal(f->x.outbox.count, 0);
    assert_string_equal(f->x.dlq.entries[0]->error_code, "ADDRESS_TEMPLATE");
    assert_string_equal(f->x.dlq.entries[0]->binding_id, "b0");
    assert_string_equal(f->x.dlq.entries[0]->address, "");
}

static void test_rejected_record_keeps_its_address(void **state)
{
    struct fixture *f = *state;
    f->bindings[0].address = "x/{y}";
    fake_script_always(&f->x.outbox.script[FAKE_PERSIST], FAKE_FAIL, GB_PAYLOAD_TOO_LARGE);
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    assert_int_equal(gb_envelope_put_text(d->delivery.envelope, "y", gb_bytes_c("1")).code, GB_OK);
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_string_equal(f->x.dlq.entries[0]->address, "x/1");
}

/* --- stop --- */

static const struct stop_row {
    const char *name;
    enum fake_outbox_kind kind;
    enum fake_action action;
    enum gb_code code;
} stop_rows[] = {
    {"while it asks for the depth", FAKE_DEPTH, FAKE_HOLD, GB_OK},
    {"while it persists", FAKE_PERSIST, FAKE_HOLD, GB_OK},
    {"while it waits to persist again", FAKE_PERSIST, FAKE_FAIL, GB_UNAVAILABLE},
};

static void test_stop_leaves_unsettled(void **state)
{
    for (size_t i = 0; i < sizeof stop_rows / sizeof stop_rows[0]; i++) {
        const struct stop_row *row = &stop_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->cfg.policy.backoff.initial_ns = 30 * GB_SEC;
        fake_script_always(&f->x.outbox.script[row->kind], row->action, row->code);
        start(f);
        struct fake_delivery *d = deliver(f, "m1", 100 * GB_MS);
        stop_route(f, 100 * GB_MS);
        core_fixture_run(&f->x, 99 * GB_MS);
        assert_int_equal(f->stopped, 0);
        core_fixture_run(&f->x, 2 * GB_MS);
        assert_int_equal(f->stopped, 1);
        assert_int_equal(f->stop.result.code, GB_TIMEOUT);
        assert_int_equal(d->fate, FAKE_ABANDONED);
        assert_int_equal(d->calls, 1);
        assert_int_equal(core_fixture_count(&f->x, "OutboxDepthFailures"), 0);
        if (i + 1 < sizeof stop_rows / sizeof stop_rows[0]) teardown(state);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_acknowledge_before_the_store_confirmed),
        TEST(test_record_carries_everything_but_counters),
        TEST(test_partition_without_session),
        TEST(test_same_identity_twice),
        TEST(test_fan_out_is_one_persist),
        TEST(test_fan_out_adds_only_the_missing_legs),
        TEST(test_full_partition_hands_back_uncharged),
        TEST(test_full_partition_holds_other_sources),
        TEST(test_depth_cannot_be_overshot),
        TEST(test_depth_failure_hands_back_uncharged),
        TEST(test_depth_answer_is_cached_and_shared),
        TEST(test_store_slower_than_the_cache_does_not_ask_for_ever),
        TEST(test_stop_waits_for_a_background_query),
        TEST(test_persist_failures),
        TEST(test_permanent_store_failure_ends_at_the_cap),
        TEST(test_applied_but_answer_lost),
        TEST(test_missing_template_header_is_terminal),
        TEST(test_rejected_record_keeps_its_address),
        TEST(test_stop_leaves_unsettled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
