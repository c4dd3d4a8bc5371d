#include "core/drainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/core_fixture.h"

/* The outbox drainer (spec 02 §7.3-7.7) with fake ports. */

struct fixture {
    struct core_fixture x;
    struct gb_drainer *drainer;
    struct gb_drainer_target target;
    struct gb_drainer_cfg cfg;
    bool has_lease;
    uint64_t version;
    unsigned stalled;
    struct gb_op stop;
    unsigned stopped;
};

static bool current(void *ctx, struct gb_token *out)
{
    struct fixture *f = ctx;
    *out = (struct gb_token){.owner = gb_bytes_c("i1#boot"), .version = f->version};
    return f->has_lease;
}

static void on_stalled(void *arg, const char *partition, struct gb_err cause)
{
    assert_string_equal(partition, "SESSION#s");
    assert_int_equal(cause.code, GB_TIMEOUT);
    ((struct fixture *)arg)->stalled++;
}

static void on_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct fixture *)arg)->stopped++;
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.has_lease = true, .version = 7};
    core_fixture_init(&f.x);
    f.target = (struct gb_drainer_target){.route_id = "r",
                                          .binding_id = "b",
                                          .sender = &f.x.sender.sender,
                                          .policy = gb_policy_default()};
    f.cfg = (struct gb_drainer_cfg){
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
        .authority = {.current = current, .ctx = &f},
        .stalled = on_stalled,
        .arg = &f,
    };
    *state = &f;
    return 0;
}

static void stop_drainer(struct fixture *f, int64_t within_ns)
{
    f->stop.deadline_ns = f->x.now_ns + (uint64_t)within_ns;
    gb_drainer_stop(f->drainer, &f->stop, on_stopped, f);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->drainer != NULL && f->stopped == 0) {
        if (!gb_op_pending(&f->stop)) stop_drainer(f, 0);
        core_fixture_run(&f->x, 20 * GB_SEC);
        assert_int_equal(f->stopped, 1);
    }
    gb_drainer_free(f->drainer);
    core_fixture_deinit(&f->x);
    return 0;
}

static void start(struct fixture *f)
{
    assert_int_equal(gb_drainer_new(&f->cfg, &f->drainer).code, GB_OK);
    gb_drainer_start(f->drainer);
}

static void add_records(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "m%u", i + 1);
        fake_outbox_add(&f->x.outbox, id, NULL);
    }
}

/* --- the cycle --- */

static void test_sends_and_completes_in_claim_order(void **state)
{
    struct fixture *f = *state;
    add_records(f, 3);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 3);
    assert_string_equal(f->x.sender.sent[0].id, "m1");
    assert_string_equal(f->x.sender.sent[1].id, "m2");
    assert_string_equal(f->x.sender.sent[2].id, "m3");
    assert_int_equal(core_fixture_count(&f->x, "OutboxCompletions"), 3);
    assert_int_equal(core_fixture_count(&f->x, "MessagesSent"), 3);
}

static unsigned claims_in(struct fixture *f, int64_t duration_ns)
{
    unsigned before = f->x.outbox.calls[FAKE_CLAIM];
    core_fixture_run(&f->x, duration_ns);
    return f->x.outbox.calls[FAKE_CLAIM] - before;
}

static void test_adaptive_backoff(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.min_interval_ns = 500 * GB_MS;
    f->cfg.policy.max_interval_ns = 10 * GB_SEC;
    f->cfg.policy.multiplier = 1.5;
    start(f);
    core_fixture_run(&f->x, 120 * GB_SEC);
    unsigned idle = claims_in(f, 100 * GB_SEC); /* acceptance 4: about 10 s apart, +-25 % */
    assert_in_range(idle, 8, 14);
    f->cfg.policy.batch_size = 1;
    for (int i = 0; i < 20; i++) { /* a found record resets to about 0.5 s */
        add_records(f, 1);
        (void)snprintf(f->x.outbox.rows[f->x.outbox.count - 1].id, 64, "r%d", i);
        gb_drainer_wake(f->drainer);
        core_fixture_run(&f->x, GB_SEC);
        assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_PENDING), 0);
    }
    unsigned busy = f->x.outbox.calls[FAKE_CLAIM];
    assert_true(busy > 0);
}

static void test_busy_polls_are_one_interval_apart(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.min_interval_ns = 500 * GB_MS;
    f->cfg.policy.batch_size = 1;
    f->cfg.policy.max_batch_size = 1;
    add_records(f, 100);
    start(f);
    unsigned polls = claims_in(f, 20 * GB_SEC);
    assert_in_range(polls, 32, 55); /* 20 s / 0.5 s, +-25 % */
}

static void test_fixed_poll(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.type = GB_DRAIN_FIXED;
    f->cfg.policy.interval_ns = 2 * GB_SEC;
    start(f);
    assert_in_range(claims_in(f, 100 * GB_SEC), 40, 67);
}

static void test_wake_shortens_the_wait(void **state)
{
    struct fixture *f = *state;
    start(f);
    core_fixture_run(&f->x, 300 * GB_SEC); /* idle: polls are up to 30 s apart */
    add_records(f, 1);
    gb_drainer_wake(f->drainer);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 1);
}

static void test_wake_during_an_empty_claim_is_not_lost(void **state)
{
    struct fixture *f = *state;
    start(f);
    core_fixture_run(&f->x, 300 * GB_SEC);
    fake_script_add(&f->x.outbox.script[FAKE_CLAIM], FAKE_HOLD, GB_OK);
    unsigned before = f->x.outbox.calls[FAKE_CLAIM];
    while (f->x.outbox.calls[FAKE_CLAIM] == before) core_fixture_run(&f->x, 100 * GB_MS);
    add_records(f, 1); /* after the store looked, before it answers "nothing" */
    gb_drainer_wake(f->drainer);
    fake_outbox_answer(&f->x.outbox, GB_OK);
    core_fixture_run(&f->x, 2 * GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 1);
}

static void test_standby_claims_nothing(void **state)
{
    struct fixture *f = *state;
    f->has_lease = false;
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_CLAIM], 0); /* acceptance 3 */
    assert_int_equal(f->x.outbox.calls[FAKE_EXPIRE], 0);
    assert_true(core_fixture_count(&f->x, "DrainSkippedNoLease") > 1);
}

static void test_destination_not_ready_claims_nothing(void **state)
{
    struct fixture *f = *state;
    f->x.sender.not_ready = true;
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_CLAIM], 0);
    f->x.sender.not_ready = false;
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 1);
}

static void test_batch_size_adapts(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.batch_size = 4;
    f->cfg.policy.max_batch_size = 12;
    add_records(f, 40);
    start(f);
    core_fixture_run(&f->x, 3 * GB_SEC);
    assert_int_equal(f->x.outbox.last_limit, 12);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 40);
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_UNAVAILABLE);
    add_records(f, 1);
    f->x.outbox.rows[40].id[0] = 'x';
    gb_drainer_wake(f->drainer);
    core_fixture_run(&f->x, 30 * GB_SEC);
    assert_int_equal(f->x.outbox.last_limit, 4); /* halved, not below the configured size */
}

static void test_failed_claim_waits_five_seconds(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.outbox.script[FAKE_CLAIM], FAKE_FAIL, GB_STALE_FENCING_TOKEN);
    start(f);
    assert_in_range(claims_in(f, 21 * GB_SEC), 4, 5);
}

/* --- records --- */

static const struct record_row {
    const char *name;
    enum fake_action action;
    enum gb_code code;
    enum gb_terminal_action on_permanent;
    bool no_dlq;
    enum gb_code dlq;
    enum gb_outbox_status status;
    unsigned entries, dropped;
} record_rows[] = {
    {"sent", FAKE_DO, GB_OK, GB_ACTION_DLQ, false, GB_OK, GB_OUTBOX_COMPLETED, 0, 0},
    {"transient", FAKE_FAIL, GB_UNAVAILABLE, GB_ACTION_DLQ, false, GB_OK, GB_OUTBOX_PENDING, 0, 0},
    {"permanent", FAKE_FAIL, GB_FORBIDDEN, GB_ACTION_DLQ, false, GB_OK, GB_OUTBOX_COMPLETED, 1, 0},
    {"dropped", FAKE_FAIL, GB_FORBIDDEN, GB_ACTION_DROP, false, GB_OK, GB_OUTBOX_COMPLETED, 0, 1},
    {"no store", FAKE_FAIL, GB_FORBIDDEN, GB_ACTION_DLQ, true, GB_OK, GB_OUTBOX_COMPLETED, 0, 1},
    {"DLQ down", FAKE_FAIL, GB_FORBIDDEN, GB_ACTION_DLQ, false, GB_UNAVAILABLE, GB_OUTBOX_PENDING,
     0, 0},
};

static void test_record_outcomes(void **state)
{
    for (size_t i = 0; i < sizeof record_rows / sizeof record_rows[0]; i++) {
        const struct record_row *row = &record_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->target.policy.on_permanent_failure = row->on_permanent;
        if (row->no_dlq) f->cfg.dlq = NULL;
        fake_script_always(&f->x.sender.script, row->action, row->code);
        fake_script_always(&f->x.dlq.script, row->dlq == GB_OK ? FAKE_DO : FAKE_FAIL, row->dlq);
        add_records(f, 1);
        start(f);
        core_fixture_run(&f->x, 3 * GB_SEC);
        assert_int_equal(f->x.outbox.rows[0].status, row->status);
        assert_int_equal(f->x.dlq.count, row->entries);
        assert_int_equal(core_fixture_count(&f->x, "MessagesDropped"), row->dropped);
        assert_int_equal(core_fixture_count(&f->x, "MessagesSent"), row->code == GB_OK);
        assert_int_equal(core_fixture_count(&f->x, "DLQEntries"), row->entries);
        if (row->entries > 0) {
            assert_string_equal(f->x.dlq.entries[0]->binding_id, "b");
            assert_string_equal(f->x.dlq.entries[0]->address, "a");
        }
        assert_int_equal(f->x.sender.count, 1);
        if (row->status == GB_OUTBOX_PENDING) { /* tried again, at least 5 s later */
            core_fixture_run(&f->x, 10 * GB_SEC);
            assert_true(f->x.sender.count > 1);
            assert_true(f->x.sender.sent[1].at_ns - f->x.sender.sent[0].at_ns >= 5 * GB_SEC);
        }
        if (i + 1 < sizeof record_rows / sizeof record_rows[0]) teardown(state);
    }
}

static void test_expired_record(void **state)
{
    struct fixture *f = *state;
    fake_outbox_add(&f->x.outbox, "m1", NULL)->expires_at_ms = CORE_FIXTURE_WALL_MS;
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.count, 0);
    assert_string_equal(f->x.dlq.entries[0]->error_code, "MESSAGE_EXPIRED");
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_COMPLETED);
    assert_int_equal(core_fixture_count(&f->x, "OutboxExpiredBeforeSend"), 1);
    core_fixture_run(&f->x, 100 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_EXPIRE], 0); /* under dlq no sweep */
}

static void test_sweep_under_drop(void **state)
{
    struct fixture *f = *state;
    f->target.policy.on_expired = GB_ACTION_DROP;
    f->x.sender.not_ready = true; /* so that only the sweep moves it */
    fake_outbox_add(&f->x.outbox, "m1", NULL)->expires_at_ms = CORE_FIXTURE_WALL_MS + 1;
    start(f);
    core_fixture_run(&f->x, 50 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_EXPIRE], 0); /* the first sweep comes after 60 s */
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_EXPIRED);
    assert_int_equal(core_fixture_count(&f->x, "MessagesExpired"), 1);
}

static const struct poison_row {
    const char *name;
    uint32_t claims;
    int64_t age_ns;
    bool poison;
} poison_rows[] = {
    {"many claims, little time", 20, 60 * GB_SEC, false}, /* acceptance 21 */
    {"much time, few claims", 4, 3600 * GB_SEC, false},
    {"at the limit of claims", 4, 900 * GB_SEC, false},
    {"both", 5, 900 * GB_SEC, true},
};

static void test_poison_needs_both(void **state)
{
    for (size_t i = 0; i < sizeof poison_rows / sizeof poison_rows[0]; i++) {
        const struct poison_row *row = &poison_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        struct fake_row *record = fake_outbox_add(&f->x.outbox, "m1", NULL);
        record->replay_count = row->claims; /* the claim adds one */
        record->first_attempted_at_ms = CORE_FIXTURE_WALL_MS + 1000 - row->age_ns / GB_MS;
        start(f);
        core_fixture_run(&f->x, GB_SEC);
        assert_int_equal(f->x.sender.count, !row->poison);
        assert_int_equal(f->x.dlq.count, row->poison);
        if (row->poison) {
            assert_string_equal(f->x.dlq.entries[0]->error_code, "POISON_MESSAGE");
            assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", "poison"), 1);
        }
        assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_COMPLETED);
        if (i + 1 < sizeof poison_rows / sizeof poison_rows[0]) teardown(state);
    }
}

static void test_unknown_binding_stays_in_the_outbox(void **state)
{
    struct fixture *f = *state;
    (void)snprintf(fake_outbox_add(&f->x.outbox, "m1", NULL)->binding, 32, "gone");
    fake_outbox_add(&f->x.outbox, "m2", NULL);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_PENDING);
    assert_int_equal(f->x.outbox.rows[1].status, GB_OUTBOX_COMPLETED);
}

/* Spent like a poisoned record, it must not stand before all others for ever. */
static void test_unknown_binding_ends_in_the_dlq(void **state)
{
    struct fixture *f = *state;
    struct fake_row *row = fake_outbox_add(&f->x.outbox, "m1", NULL);
    (void)snprintf(row->binding, 32, "gone");
    row->replay_count = 6;
    row->first_attempted_at_ms = CORE_FIXTURE_WALL_MS - 15 * INT64_C(60000);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.dlq.count, 1);
    assert_string_equal(f->x.dlq.entries[0]->error_code, "NOT_FOUND");
    assert_string_equal(f->x.dlq.entries[0]->binding_id, "gone");
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_COMPLETED);
}

/* --- order --- */

static void test_order_of_a_key_survives_a_failure(void **state)
{
    struct fixture *f = *state;
    char id[16];
    for (int i = 1; i <= 10; i++) { /* acceptance 22 */
        (void)snprintf(id, sizeof id, "k%d", i);
        fake_outbox_add(&f->x.outbox, id, "key");
        (void)snprintf(id, sizeof id, "o%d", i);
        fake_outbox_add(&f->x.outbox, id, "other");
    }
    f->x.sender.fail_id = "k4";
    f->x.sender.fail_times = 1;
    f->x.sender.fail_answer = (struct fake_answer){FAKE_FAIL, gb_err(GB_UNAVAILABLE, "once")};
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(fake_sender_accepted(&f->x.sender, "o10"), 1); /* meanwhile */
    assert_int_equal(fake_sender_accepted(&f->x.sender, "k5"), 0);
    core_fixture_run(&f->x, 20 * GB_SEC);
    int want = 1;
    for (size_t i = 0; i < f->x.sender.count; i++) {
        const struct fake_sent *s = &f->x.sender.sent[i];
        if (s->id[0] != 'k' || !s->accepted) continue;
        (void)snprintf(id, sizeof id, "k%d", want++);
        assert_string_equal(s->id, id);
    }
    assert_int_equal(want, 11);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 20);
}

static void test_one_key_is_one_send_at_a_time(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    for (int i = 0; i < 5; i++) fake_outbox_add(&f->x.outbox, "k", "key");
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.held_count, 1);
    for (int i = 0; i < 5; i++) {
        fake_sender_answer(&f->x.sender, GB_OK);
        core_fixture_run(&f->x, GB_MS);
    }
    assert_int_equal(f->x.sender.held_max, 1);
}

static void test_concurrency_limit(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_concurrency = 3;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 10);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.held_count, 3);
    for (int i = 0; i < 10; i++) {
        fake_sender_answer(&f->x.sender, GB_OK);
        core_fixture_run(&f->x, GB_MS);
    }
    assert_int_equal(f->x.sender.held_max, 3);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 10);
}

static void test_concurrency_counts_requests_of_a_batching_sender(void **state)
{
    struct fixture *f = *state; /* docs/decisions/0003 */
    f->cfg.policy.max_concurrency = 2;
    f->x.sender.sender.batch_max = 10;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 30);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.held_count, 20);
    for (int i = 0; i < 30; i++) {
        fake_sender_answer(&f->x.sender, GB_OK);
        core_fixture_run(&f->x, GB_MS);
    }
}

/* --- fencing --- */

static void test_former_holder_is_fenced(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_concurrency = 1;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 3);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    f->x.outbox.mark = 8; /* the next holder claimed */
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    fake_sender_answer(&f->x.sender, GB_OK); /* started before the stale answer was known */
    core_fixture_run(&f->x, 4 * GB_SEC);
    assert_int_equal(f->x.sender.count, 2); /* acceptance 9: the third is not sent */
    assert_int_equal(core_fixture_count(&f->x, "OutboxDuplicateRisk"), 2);
    assert_int_equal(core_fixture_count(&f->x, "OutboxCompletions"), 0);
}

static void test_lease_is_checked_before_each_send(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_concurrency = 1;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 3);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    f->has_lease = false;
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.count, 1);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_COMPLETED); /* within the grace */
    assert_int_equal(f->x.outbox.rows[1].status, GB_OUTBOX_PENDING);
    assert_int_equal(f->x.outbox.rows[2].status, GB_OUTBOX_PENDING);
}

static void test_next_holder_takes_what_was_claimed(void **state)
{
    struct fixture *f = *state; /* acceptance 2, one process */
    add_records(f, 2);
    f->x.outbox.rows[0].status = GB_OUTBOX_CLAIMED;
    f->x.outbox.rows[0].version = 6;
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 2);
}

static void test_complete_that_fails_risks_a_duplicate(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.outbox.script[FAKE_COMPLETE], FAKE_FAIL, GB_UNAVAILABLE);
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(core_fixture_count(&f->x, "OutboxDuplicateRisk"), 1);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_CLAIMED);
}

/* --- time budget (spec 02 §7.4) --- */

static const struct ceiling_row {
    const char *name;
    unsigned records;
    int64_t send_timeout_ns; /* small, so that the configured ceiling governs */
    int64_t want_ns;
} ceiling_rows[] = {
    {"4 records", 4, GB_SEC, 12 * GB_SEC}, /* acceptance 8, and 08 acceptance 35 */
    {"5 records", 5, GB_SEC, 15 * GB_SEC},
    {"20 records", 20, GB_SEC, 30 * GB_SEC},
    {"50 records", 50, 100 * GB_MS, 30 * GB_SEC},
    {"one slow send", 1, 30 * GB_SEC, 35 * GB_SEC}, /* never cut short */
};

static void test_ceiling(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.per_record_timeout_ns = 3 * GB_SEC;
    f->cfg.policy.max_timeout_ns = 30 * GB_SEC;
    for (size_t i = 0; i < sizeof ceiling_rows / sizeof ceiling_rows[0]; i++) {
        const struct ceiling_row *row = &ceiling_rows[i];
        print_message("  %s\n", row->name);
        assert_int_equal(gb_drain_budget_ns(&f->cfg.policy, row->records, 1, row->send_timeout_ns),
                         row->want_ns);
    }
}

static void test_over_budget_defers_what_has_not_started(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_concurrency = 1;
    f->cfg.policy.per_record_timeout_ns = GB_SEC;
    f->cfg.policy.max_timeout_ns = GB_SEC;
    f->target.policy.send_timeout_ns = 2 * GB_SEC;
    fake_script_add(&f->x.sender.script, FAKE_FAIL, GB_FORBIDDEN);
    fake_script_always(&f->x.dlq.script, FAKE_HOLD, GB_OK);
    add_records(f, 2);
    start(f);
    core_fixture_run(&f->x, 8 * GB_SEC - GB_MS); /* budget = 2 * (2 s + 2 s) */
    assert_int_equal(core_fixture_count(&f->x, "OutboxDeferred"), 0);
    core_fixture_run(&f->x, 2 * GB_MS);
    fake_dlq_answer(&f->x.dlq, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(core_fixture_count(&f->x, "OutboxDeferred"), 1);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_COMPLETED);
    assert_int_equal(f->x.outbox.rows[1].status, GB_OUTBOX_PENDING);
    assert_int_equal(f->x.sender.count, 1);
    assert_int_equal(f->stalled, 0);
}

static void test_batch_over_budget_by_thirty_seconds_stalls(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.per_record_timeout_ns = GB_SEC;
    f->cfg.policy.max_timeout_ns = GB_SEC;
    f->target.policy.send_timeout_ns = GB_SEC;
    fake_script_add(&f->x.outbox.script[FAKE_COMPLETE], FAKE_HOLD, GB_OK);
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, 32 * GB_SEC - GB_MS); /* the floor of 2 s, and 30 s more */
    assert_int_equal(f->stalled, 0);
    core_fixture_run(&f->x, 2 * GB_MS);
    assert_int_equal(f->stalled, 1);
    fake_outbox_answer(&f->x.outbox, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->stalled, 1);
}

static void test_hung_sender_stalls_the_drainer(void **state)
{
    struct fixture *f = *state;
    f->x.sender.ignore_cancel = true;
    fake_script_add(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 3);
    start(f);
    core_fixture_run(&f->x, 35 * GB_SEC - GB_MS);
    assert_int_equal(f->stalled, 0);
    core_fixture_run(&f->x, 2 * GB_MS);
    assert_int_equal(f->stalled, 1); /* acceptance 30: send_timeout + 5 s */
    assert_int_equal(core_fixture_count(&f->x, "OutboxDrainStalled"), 1);
    unsigned claims = f->x.outbox.calls[FAKE_CLAIM];
    core_fixture_run(&f->x, 100 * GB_SEC);
    assert_int_equal(f->x.outbox.calls[FAKE_CLAIM], claims); /* no more batches */
    fake_sender_answer(&f->x.sender, GB_OK);                 /* far too late, and harmless */
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->stalled, 1);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 3);
    stop_drainer(f, GB_SEC);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->stop.result.code, GB_TIMEOUT);
}

static void test_stall_ends_a_pending_stop(void **state)
{
    struct fixture *f = *state;
    f->x.sender.ignore_cancel = true;
    fake_script_add(&f->x.sender.script, FAKE_HOLD, GB_OK);
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    stop_drainer(f, 100 * GB_SEC);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->stop.result.code, GB_TIMEOUT);
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
}

/* --- stop --- */

static void test_stop_drains_once_more(void **state)
{
    struct fixture *f = *state;
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, 60 * GB_SEC);
    add_records(f, 1);
    f->x.outbox.rows[1].id[0] = 'x';
    stop_drainer(f, 10 * GB_SEC);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->stop.result.code, GB_OK);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_COMPLETED), 2);
}

static void test_stop_with_a_failing_destination_is_clean(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_UNAVAILABLE);
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, GB_MS);
    stop_drainer(f, 10 * GB_SEC);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->stop.result.code, GB_OK);
    assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_PENDING), 1);
}

static void test_stop_without_having_drained_ends_at_once(void **state)
{
    struct fixture *f = *state;
    f->has_lease = false;
    start(f);
    core_fixture_run(&f->x, GB_SEC);
    stop_drainer(f, 10 * GB_SEC);
    core_fixture_run(&f->x, 0);
    assert_int_equal(f->stopped, 1);
}

static const struct stop_row {
    const char *name;
    enum fake_outbox_kind kind; /* held; FAKE_OUTBOX_KINDS: the send is */
    enum gb_code result;
} stop_rows[] = {
    {"while claiming", FAKE_CLAIM, GB_TIMEOUT},
    {"while sending", FAKE_OUTBOX_KINDS, GB_TIMEOUT},
    {"while counting", FAKE_STATS, GB_TIMEOUT},
};

static void test_stop_deadline(void **state)
{
    for (size_t i = 0; i < sizeof stop_rows / sizeof stop_rows[0]; i++) {
        const struct stop_row *row = &stop_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        if (row->kind == FAKE_OUTBOX_KINDS) {
            fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
        } else {
            fake_script_add(&f->x.outbox.script[row->kind], FAKE_HOLD, GB_OK);
        }
        add_records(f, 2);
        start(f);
        core_fixture_run(&f->x, GB_MS);
        stop_drainer(f, 2 * GB_SEC);
        core_fixture_run(&f->x, 1999 * GB_MS);
        assert_int_equal(f->stopped, 0);
        core_fixture_run(&f->x, 10 * GB_MS);
        assert_int_equal(f->stopped, 1);
        assert_int_equal(f->stop.result.code, row->result);
        assert_int_equal(fake_outbox_rows(&f->x.outbox, GB_OUTBOX_CLAIMED), 0);
        if (i + 1 < sizeof stop_rows / sizeof stop_rows[0]) teardown(state);
    }
}

static void test_stop_while_the_sweep_runs(void **state)
{
    struct fixture *f = *state;
    f->target.policy.on_expired = GB_ACTION_DROP;
    fake_script_add(&f->x.outbox.script[FAKE_EXPIRE], FAKE_HOLD, GB_OK);
    start(f);
    while (f->x.outbox.calls[FAKE_EXPIRE] == 0) core_fixture_run(&f->x, GB_SEC);
    stop_drainer(f, GB_SEC);
    core_fixture_run(&f->x, 2 * GB_SEC);
    assert_int_equal(f->stopped, 1);
}

static void test_dlq_write_is_cancelled_at_the_stop_deadline(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_FORBIDDEN);
    fake_script_always(&f->x.dlq.script, FAKE_HOLD, GB_OK);
    add_records(f, 1);
    start(f);
    core_fixture_run(&f->x, GB_MS);
    stop_drainer(f, GB_SEC);
    core_fixture_run(&f->x, 2 * GB_SEC);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->x.outbox.rows[0].status, GB_OUTBOX_PENDING);
    assert_int_equal(f->x.dlq.count, 0);
}

static void test_bad_configuration(void **state)
{
    struct fixture *f = *state;
    f->cfg.target_count = 0;
    struct gb_drainer *d = NULL;
    assert_int_equal(gb_drainer_new(&f->cfg, &d).code, GB_INVALID_CONFIG);
    assert_null(d);
}

/* --- local token (spec 02 §2.4) --- */

static void on_read(struct gb_op *op, void *arg)
{
    (void)op;
    (*(unsigned *)arg)++;
}

static void test_local_token_is_above_the_mark(void **state)
{
    struct fixture *f = *state;
    struct gb_local_authority a;
    struct gb_op op = {.deadline_ns = f->x.now_ns + (uint64_t)GB_SEC};
    unsigned done = 0;
    f->x.outbox.mark = 41;
    fake_script_add(&f->x.outbox.script[FAKE_STATS], FAKE_FAIL, GB_UNAVAILABLE);
    for (int i = 0; i < 2; i++) {
        struct gb_token token;
        const struct gb_local_authority_cfg cfg = {.reactor = f->x.reactor,
                                                   .outbox = &f->x.outbox.outbox,
                                                   .owner = "i1#n",
                                                   .partition = "SESSION#s"};
        gb_local_authority_start(&a, &cfg, &op, on_read, &done);
        struct gb_authority authority = gb_local_authority(&a);
        assert_false(authority.current(authority.ctx, &token));
        core_fixture_run(&f->x, GB_MS);
        assert_int_equal(done, i + 1);
        assert_int_equal(authority.current(authority.ctx, &token), i == 1);
        if (i == 1) {
            assert_int_equal(token.version, 42);
            assert_true(gb_bytes_equal_c(token.owner, "i1#n"));
        }
        gb_local_authority_deinit(&a);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sends_and_completes_in_claim_order),
        TEST(test_adaptive_backoff),
        TEST(test_busy_polls_are_one_interval_apart),
        TEST(test_fixed_poll),
        TEST(test_wake_shortens_the_wait),
        TEST(test_wake_during_an_empty_claim_is_not_lost),
        TEST(test_standby_claims_nothing),
        TEST(test_destination_not_ready_claims_nothing),
        TEST(test_batch_size_adapts),
        TEST(test_failed_claim_waits_five_seconds),
        TEST(test_record_outcomes),
        TEST(test_expired_record),
        TEST(test_sweep_under_drop),
        TEST(test_poison_needs_both),
        TEST(test_unknown_binding_stays_in_the_outbox),
        TEST(test_unknown_binding_ends_in_the_dlq),
        TEST(test_order_of_a_key_survives_a_failure),
        TEST(test_one_key_is_one_send_at_a_time),
        TEST(test_concurrency_limit),
        TEST(test_concurrency_counts_requests_of_a_batching_sender),
        TEST(test_former_holder_is_fenced),
        TEST(test_lease_is_checked_before_each_send),
        TEST(test_next_holder_takes_what_was_claimed),
        TEST(test_complete_that_fails_risks_a_duplicate),
        TEST(test_ceiling),
        TEST(test_over_budget_defers_what_has_not_started),
        TEST(test_batch_over_budget_by_thirty_seconds_stalls),
        TEST(test_hung_sender_stalls_the_drainer),
        TEST(test_stall_ends_a_pending_stop),
        TEST(test_stop_drains_once_more),
        TEST(test_stop_with_a_failing_destination_is_clean),
        TEST(test_stop_without_having_drained_ends_at_once),
        TEST(test_stop_deadline),
        TEST(test_stop_while_the_sweep_runs),
        TEST(test_dlq_write_is_cancelled_at_the_stop_deadline),
        TEST(test_bad_configuration),
        TEST(test_local_token_is_above_the_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
