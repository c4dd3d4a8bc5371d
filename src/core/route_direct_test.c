#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/route.h"
#include "domain/reserved.h"
#include "support/core_fixture.h"

/* direct_hold (spec 02 §6), settlement and stop (§4, §5, §11) with fake ports. */

struct fixture {
    struct core_fixture x;
    struct gb_ledger *ledger;
    struct gb_route *route;
    struct gb_route_binding binding;
    struct gb_route_cfg cfg;
    unsigned wedged;
    struct gb_op stop;
    unsigned stopped;
    struct gb_timer late;
    struct gb_bytes seen_tenant, seen_override, seen_trace;
};

static void on_wedged(void *arg, const char *route_id, struct gb_err cause)
{
    struct fixture *f = arg;
    assert_string_equal(route_id, "r");
    assert_int_equal(cause.code, GB_TIMEOUT);
    f->wedged++;
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
    f.binding = (struct gb_route_binding){.id = "b", .sender = &f.x.sender.sender, .address = "a"};
    f.cfg = (struct gb_route_cfg){
        .id = "r",
        .instance_id = "i1",
        .source_session_id = "src",
        .policy = gb_policy_default(),
        .bindings = &f.binding,
        .binding_count = 1,
        .reactor = f.x.reactor,
        .metrics = f.x.metrics,
        .receiver = &f.x.receiver.receiver,
        .dlq = &f.x.dlq.dlq,
        .ledger = f.ledger,
        .wedged = on_wedged,
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
    struct gb_err err = gb_route_new(&f->cfg, &f->route);
    assert_int_equal(err.code, GB_OK);
    gb_route_start(f->route);
    assert_int_equal(f->x.receiver.starts, 1);
}

static uint32_t in_flight(const struct fixture *f)
{
    struct gb_route_state s;
    gb_route_get_state(f->route, &s);
    return s.in_flight;
}

/* --- outcomes of one delivery --- */

static const struct outcome_row {
    const char *name;
    enum gb_code send; /* what every send answers */
    int64_t budget_ns;
    bool can_retry;
    uint32_t receive_count;
    enum gb_terminal_action on_permanent;
    bool no_dlq;
    enum gb_code dlq; /* what every DLQ write answers */
    enum fake_fate fate;
    unsigned entries;
    const char *word; /* category of DLQEntries or reason of MessagesDropped */
    bool dropped;
} outcome_rows[] = {
    {"accepted", GB_OK, 0, true, 0, GB_ACTION_DLQ, false, GB_OK, FAKE_ACKED, 0, NULL, false},
    {"permanent to the DLQ", GB_FORBIDDEN, 0, true, 0, GB_ACTION_DLQ, false, GB_OK, FAKE_ACKED, 1,
     "permanent", false},
    {"permanent dropped", GB_FORBIDDEN, 0, true, 0, GB_ACTION_DROP, false, GB_OK, FAKE_ACKED, 0,
     "permanent", true},
    {"permanent without a DLQ store", GB_FORBIDDEN, 0, true, 0, GB_ACTION_DLQ, true, GB_OK,
     FAKE_ACKED, 0, "permanent", true},
    {"rejected to the DLQ", GB_INVALID_PAYLOAD, 0, true, 0, GB_ACTION_DLQ, false, GB_OK, FAKE_ACKED,
     1, "rejected", false},
    {"permanent, DLQ down: handed back", GB_FORBIDDEN, 0, true, 0, GB_ACTION_DLQ, false,
     GB_UNAVAILABLE, FAKE_RETRIED, 0, NULL, false},
    {"transient, budget off: handed back", GB_UNAVAILABLE, 0, true, 1, GB_ACTION_DLQ, false, GB_OK,
     FAKE_RETRIED, 0, NULL, false},
    {"transient, native count at the cap", GB_UNAVAILABLE, 0, true, 5, GB_ACTION_DLQ, false, GB_OK,
     FAKE_ACKED, 1, "max_retries", false},
    {"transient, cap, drop policy", GB_UNAVAILABLE, 0, true, 5, GB_ACTION_DROP, false, GB_OK,
     FAKE_ACKED, 0, "max_retries", true},
    {"transient, source can't take back", GB_UNAVAILABLE, 0, false, 0, GB_ACTION_DROP, false, GB_OK,
     FAKE_ACKED, 1, "retry_unsupported", false},
    {"can't take back, no DLQ store", GB_UNAVAILABLE, 0, false, 0, GB_ACTION_DLQ, true, GB_OK,
     FAKE_ACKED, 0, "retry_unsupported", true},
    {"can't take back, DLQ down", GB_UNAVAILABLE, 0, false, 0, GB_ACTION_DLQ, false, GB_UNAVAILABLE,
     FAKE_ACKED, 0, "retry_unsupported_dlq_failed", true},
    {"transient, budget spent", GB_UNAVAILABLE, 5 * GB_SEC, true, 1, GB_ACTION_DLQ, false, GB_OK,
     FAKE_RETRIED, 0, NULL, false},
};

static void test_outcomes(void **state)
{
    for (size_t i = 0; i < sizeof outcome_rows / sizeof outcome_rows[0]; i++) {
        const struct outcome_row *row = &outcome_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->cfg.policy.send_retry_budget_ns = row->budget_ns;
        f->cfg.policy.on_permanent_failure = row->on_permanent;
        if (row->no_dlq) f->cfg.dlq = NULL;
        fake_script_always(&f->x.sender.script, row->send == GB_OK ? FAKE_DO : FAKE_FAIL,
                           row->send);
        fake_script_always(&f->x.dlq.script, row->dlq == GB_OK ? FAKE_DO : FAKE_FAIL, row->dlq);
        start(f);
        struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
        d->delivery.can_retry = row->can_retry;
        d->delivery.receive_count = row->receive_count;
        fake_receiver_emit(d);
        assert_int_equal(f->x.receiver.last_emit, GB_EMIT_TAKEN);
        core_fixture_run(&f->x, 60 * GB_SEC);
        assert_int_equal(d->fate, row->fate);
        assert_int_equal(d->calls, 1);
        assert_int_equal(f->x.dlq.count, row->entries);
        assert_int_equal(in_flight(f), 0);
        assert_int_equal(core_fixture_count(&f->x, "MessagesSent"), row->send == GB_OK);
        assert_int_equal(core_fixture_count(&f->x, "DLQEntries"), row->entries);
        assert_int_equal(core_fixture_count(&f->x, "MessagesDropped"), row->dropped);
        if (row->dropped) {
            assert_int_equal(core_fixture_count_of(&f->x, "MessagesDropped", "reason", row->word),
                             1);
        }
        if (row->entries > 0)
            assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", row->word), 1);
        if (i + 1 < sizeof outcome_rows / sizeof outcome_rows[0]) teardown(state);
    }
}

static void test_entry_names_route_binding_address_and_code(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_FORBIDDEN);
    start(f);
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.dlq.count, 1); /* acceptance 6 */
    const struct gb_dlq_entry *e = f->x.dlq.entries[0];
    assert_string_equal(e->route_id, "r");
    assert_string_equal(e->binding_id, "b");
    assert_string_equal(e->address, "a");
    assert_string_equal(e->error_code, "FORBIDDEN");
    assert_string_equal(e->session_id, "src");
    assert_string_equal(e->source_id, "i1");
    assert_true(gb_bytes_equal_c(e->envelope->id, "m1"));
}

static void test_expired_message_is_not_sent(void **state)
{
    struct fixture *f = *state;
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    d->delivery.envelope->expires_at_ms = CORE_FIXTURE_WALL_MS;
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED); /* acceptance 7 */
    assert_int_equal(f->x.sender.count, 0);
    assert_int_equal(f->x.dlq.count, 1);
    assert_string_equal(f->x.dlq.entries[0]->error_code, "MESSAGE_EXPIRED");
    assert_string_equal(f->x.dlq.entries[0]->category, "expired");
    assert_int_equal(core_fixture_count(&f->x, "MessagesExpired"), 0);
}

static void test_expired_message_under_drop(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.on_expired = GB_ACTION_DROP;
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    d->delivery.envelope->expires_at_ms = CORE_FIXTURE_WALL_MS + 1000; /* equality is expired */
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.sender.count + f->x.dlq.count, 0);
    assert_int_equal(core_fixture_count(&f->x, "MessagesExpired"), 1);
    assert_int_equal(core_fixture_count(&f->x, "MessagesDropped"), 0);
}

static void test_dlq_down_then_back(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_FORBIDDEN);
    fake_script_always(&f->x.dlq.script, FAKE_FAIL, GB_UNAVAILABLE);
    start(f);
    for (int i = 0; i < 20; i++) { /* acceptance 20; uncharged, so no cap is reached */
        struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
        core_fixture_run(&f->x, 20 * GB_SEC);
        assert_int_equal(d->fate, FAKE_RETRIED);
    }
    assert_int_equal(gb_ledger_size(f->ledger), 0);
    assert_int_equal(core_fixture_count(&f->x, "DLQWriteFailures"), 20);
    fake_script_always(&f->x.dlq.script, FAKE_DO, GB_OK);
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.dlq.count, 1);
}

/* --- headers --- */

static void look_at_headers(void *arg, const struct gb_send *q)
{
    struct fixture *f = arg;
    f->seen_tenant = gb_envelope_text(q->envelope, GB_H_TENANT_ID);
    f->seen_override = gb_envelope_text(q->envelope, GB_H_ROUTE_OVERRIDE);
    f->seen_trace = gb_envelope_text(q->envelope, "traceparent");
}

static void check_trust(struct fixture *f, bool trust)
{
    f->cfg.trust_bridge_headers = trust;
    f->x.sender.observe = look_at_headers;
    f->x.sender.observe_arg = f;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    struct gb_envelope *e = d->delivery.envelope;
    assert_int_equal(gb_envelope_put_text(e, "x-bridge.tenant-id", gb_bytes_c("t1")).code, GB_OK);
    assert_int_equal(gb_envelope_put_text(e, "X-Bridge.Route-Override", gb_bytes_c("zzz")).code,
                     GB_OK);
    assert_int_equal(gb_envelope_put_text(e, "traceparent", gb_bytes_c("00-1")).code, GB_OK);
    fake_receiver_emit(d);
    assert_int_equal(f->x.sender.count, 1); /* acceptance 11 */
    assert_true(gb_bytes_equal_c(f->seen_tenant, trust ? "t1" : ""));
    assert_true(gb_bytes_equal_c(f->seen_override, ""));
    assert_true(gb_bytes_equal_c(f->seen_trace, "00-1"));
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
}

static void test_untrusted_bridge_headers_are_stripped(void **state)
{
    check_trust(*state, false);
}

static void test_trusted_bridge_headers_pass_but_never_steer(void **state)
{
    check_trust(*state, true);
}

static void test_forged_receive_count_does_not_dead_letter(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.send_retry_budget_ns = 0;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_UNAVAILABLE);
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    assert_int_equal(
        gb_envelope_put_text(d->delivery.envelope, GB_H_SQS_RECEIVE_COUNT, gb_bytes_c("999")).code,
        GB_OK);
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_RETRIED); /* acceptance 13 */
    assert_int_equal(f->x.dlq.count, 0);
}

static const struct address_row {
    const char *name, *tmpl, *header;
    bool mqtt;
    const char *address, *code;
} address_rows[] = {
    {"expanded", "factory/{factory_id}/events", "A", true, "factory/A/events", NULL},
    {"missing", "factory/{factory_id}/events", NULL, true, NULL, "ADDRESS_TEMPLATE"},
    {"empty", "factory/{factory_id}/events", "", true, NULL, "ADDRESS_TEMPLATE"},
    {"wildcard", "factory/{factory_id}/events", "A#", true, NULL, "INVALID_TOPIC"},
    {"empty level", "factory/{factory_id}/events", "A//B", true, NULL, "INVALID_TOPIC"},
    {"empty level elsewhere", "q/{factory_id}", "A//B", false, "q/A//B", NULL},
    {"one pass", "factory/{factory_id}/events", "{x}", true, "factory/{x}/events", NULL},
    {"control character elsewhere", "q/{factory_id}", "A\x7f", false, NULL, "INVALID_TOPIC"},
};

static void test_addresses(void **state)
{
    for (size_t i = 0; i < sizeof address_rows / sizeof address_rows[0]; i++) {
        const struct address_row *row = &address_rows[i]; /* acceptance 24 */
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->binding.address = row->tmpl;
        f->binding.mqtt = row->mqtt;
        start(f);
        struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
        if (row->header != NULL) {
            assert_int_equal(
                gb_envelope_put_text(d->delivery.envelope, "factory_id", gb_bytes_c(row->header))
                    .code,
                GB_OK);
        }
        fake_receiver_emit(d);
        core_fixture_run(&f->x, GB_SEC);
        assert_int_equal(d->fate, FAKE_ACKED);
        if (row->code == NULL) {
            assert_int_equal(f->x.sender.count, 1);
            assert_string_equal(f->x.sender.sent[0].address, row->address);
        } else {
            assert_int_equal(f->x.sender.count, 0);
            assert_string_equal(f->x.dlq.entries[0]->error_code, row->code);
            assert_int_equal(core_fixture_count(&f->x, "AddressTemplateErrors"),
                             strcmp(row->code, "ADDRESS_TEMPLATE") == 0);
        }
        if (i + 1 < sizeof address_rows / sizeof address_rows[0]) teardown(state);
    }
}

/* --- retries --- */

static void test_backoff_between_tries(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.send_retry_budget_ns = 200 * GB_SEC;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_UNAVAILABLE);
    start(f);
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, 150 * GB_SEC);
    static const int64_t delays_s[] = {1, 2, 4, 8, 16, 30, 30}; /* acceptance 14 */
    for (size_t i = 0; i < sizeof delays_s / sizeof delays_s[0]; i++) {
        assert_int_equal(f->x.sender.sent[i + 1].at_ns - f->x.sender.sent[i].at_ns,
                         delays_s[i] * GB_SEC);
    }
}

static void test_retry_after_wins(void **state)
{
    struct fixture *f = *state;
    struct gb_err hint = gb_err(GB_THROTTLED, "slow down");
    hint.retry_after_ns = 7 * GB_SEC;
    f->x.sender.fail_id = "m1";
    f->x.sender.fail_times = 1;
    f->x.sender.fail_answer = (struct fake_answer){FAKE_FAIL, hint};
    start(f);
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, 10 * GB_SEC);
    assert_int_equal(f->x.sender.count, 2);
    assert_int_equal(f->x.sender.sent[1].at_ns - f->x.sender.sent[0].at_ns, 7 * GB_SEC);
}

static void test_destination_down_ten_seconds(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, 10 * GB_SEC);
    assert_int_equal(d->fate, FAKE_HELD);
    fake_script_always(&f->x.sender.script, FAKE_DO, GB_OK);
    core_fixture_run(&f->x, 30 * GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED); /* acceptance 15 */
    assert_int_equal(d->calls, 1);
    assert_int_equal(f->x.dlq.count, 0);
    assert_true(core_fixture_count(&f->x, "SendRetries") > 0);
    assert_int_equal(core_fixture_count(&f->x, "RouteErrors"), 0);
}

static void test_anonymous_message_is_unstable(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.send_retry_budget_ns = 0;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "minted");
    d->delivery.derived = GB_DERIVED_GENERATED_ID;
    assert_int_equal(
        gb_envelope_put_text(d->delivery.envelope, GB_H_GENERATED_ID, gb_bytes_c("true")).code,
        GB_OK);
    fake_receiver_emit(d);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED); /* acceptance 16 */
    assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", "unstable_identity"),
                     1);
}

static unsigned deliveries_until_dead_letter(struct fixture *f, bool native)
{
    f->cfg.policy.send_retry_budget_ns = 0;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    for (unsigned n = 1; n < 20; n++) {
        struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
        if (native) d->delivery.receive_count = n;
        fake_receiver_emit(d);
        core_fixture_run(&f->x, GB_SEC);
        if (d->fate == FAKE_ACKED) return n;
        assert_int_equal(d->fate, FAKE_RETRIED);
        /* Spec 02 §5.1: n = effective attempt + 1; the ledger counts from 0, SQS from 1. */
        assert_int_equal(d->retry_delay_ns, GB_SEC << (native ? n : n - 1));
    }
    return 0;
}

static void test_native_count_ends_on_delivery_five(void **state)
{
    assert_int_equal(deliveries_until_dead_letter(*state, true), 5); /* acceptance 17 */
}

static void test_ledger_ends_on_delivery_six(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(deliveries_until_dead_letter(f, false), 6); /* acceptance 17 */
    assert_int_equal(gb_ledger_size(f->ledger), 0);              /* forgotten after the ack */
    assert_string_equal(f->x.dlq.entries[0]->error_code, "POISON_MESSAGE");
}

static void test_charge_stays_when_the_acknowledge_fails(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.send_retry_budget_ns = 0;
    fake_script_add(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(gb_ledger_size(f->ledger), 1);
    f->x.receiver.settle_result = gb_err(GB_CONNECTION_LOST, "gone");
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(gb_ledger_size(f->ledger), 1);
    f->x.receiver.settle_result = gb_ok();
    fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(gb_ledger_size(f->ledger), 0);
}

static void test_message_that_would_expire_is_not_retried(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    struct fake_delivery *d = fake_receiver_make(&f->x.receiver, "m1");
    d->delivery.envelope->expires_at_ms = CORE_FIXTURE_WALL_MS + 1000 + 2500;
    fake_receiver_emit(d);
    core_fixture_run(&f->x, 5 * GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.sender.count, 2); /* at 0 and 1 s; the third would be at 3 s */
    assert_string_equal(f->x.dlq.entries[0]->error_code, "MESSAGE_EXPIRED");
}

static void test_source_refuses_the_hand_back(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.send_retry_budget_ns = 0;
    fake_script_always(&f->x.sender.script, FAKE_FAIL, GB_CONNECTION_LOST);
    start(f);
    f->x.receiver.settle_result = gb_err(GB_NOT_SUPPORTED, "no");
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    gb_reactor_run(f->x.reactor, f->x.now_ns, CORE_FIXTURE_WALL_MS);
    f->x.receiver.settle_result = gb_ok();
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", "retry_unsupported"),
                     1);
    assert_int_equal(in_flight(f), 0);
}

/* --- slots --- */

static void test_max_in_flight(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.max_in_flight = 2;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    start(f);
    fake_receiver_push(&f->x.receiver, "m1");
    fake_receiver_push(&f->x.receiver, "m2");
    fake_receiver_push(&f->x.receiver, "m3");
    assert_int_equal(f->x.receiver.last_emit, GB_EMIT_FULL);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.sender.held_count, 2); /* acceptance 33 */
    assert_int_equal(f->x.receiver.resumes, 0);
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.receiver.resumes, 1);
    fake_receiver_push(&f->x.receiver, "m3");
    assert_int_equal(f->x.receiver.last_emit, GB_EMIT_TAKEN);
    assert_int_equal(f->x.sender.held_max, 2);
    fake_sender_answer(&f->x.sender, GB_OK);
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(in_flight(f), 0);
}

static void test_conservation(void **state)
{
    struct fixture *f = *state;
    f->cfg.policy.on_expired = GB_ACTION_DROP;
    f->cfg.policy.send_retry_budget_ns = 0;
    start(f);
    for (unsigned i = 0; i < 1000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "m%u", i);
        struct fake_delivery *d = fake_receiver_make(&f->x.receiver, id);
        d->delivery.can_retry = false;
        if (i % 7 == 0) d->delivery.envelope->expires_at_ms = 1;
        if (i % 5 == 0) fake_script_add(&f->x.sender.script, FAKE_FAIL, GB_FORBIDDEN);
        if (i % 11 == 0) fake_script_always(&f->x.dlq.script, FAKE_FAIL, GB_UNAVAILABLE);
        fake_receiver_emit(d);
        core_fixture_run(&f->x, 20 * GB_SEC);
        fake_script_always(&f->x.dlq.script, FAKE_DO, GB_OK);
        f->x.sender.script.next = f->x.sender.script.count = 0;
    }
    uint64_t dlq_failed =
        core_fixture_count_of(&f->x, "MessagesDropped", "reason", "retry_unsupported_dlq_failed");
    assert_true(dlq_failed > 0);
    assert_int_equal(core_fixture_count(&f->x, "MessagesReceived"), 1000); /* acceptance 31 */
    assert_int_equal(core_fixture_count(&f->x, "MessagesSent") +
                         core_fixture_count(&f->x, "MessagesDropped") +
                         core_fixture_count(&f->x, "MessagesExpired") +
                         core_fixture_count(&f->x, "DLQEntries") + in_flight(f),
                     1000);
    assert_int_equal(fake_receiver_fates(&f->x.receiver, FAKE_ACKED), 1000);
}

/* --- hung senders (spec 02 §6.1) --- */

static void test_hung_sender_wedges_the_route(void **state)
{
    struct fixture *f = *state;
    fake_script_add(&f->x.sender.script, FAKE_FAIL, GB_UNAVAILABLE);
    fake_script_add(&f->x.sender.script, FAKE_HOLD, GB_OK);
    f->cfg.policy.send_timeout_ns = 10 * GB_SEC;
    f->cfg.policy.backoff.initial_ns = 16 * GB_SEC;
    start(f);
    struct fake_delivery *waiting = fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_MS);
    struct fake_delivery *hung = fake_receiver_push(&f->x.receiver, "m2");
    core_fixture_run(&f->x, 15 * GB_SEC - 2 * GB_MS);
    assert_int_equal(f->wedged, 0);
    core_fixture_run(&f->x, 2 * GB_MS);
    assert_int_equal(f->wedged, 1); /* acceptance 30 */
    assert_int_equal(f->x.receiver.stops, 1);
    fake_receiver_push(&f->x.receiver, "m3");
    assert_int_equal(f->x.receiver.last_emit, GB_EMIT_REFUSED);
    core_fixture_run(&f->x, 60 * GB_SEC);
    assert_int_equal(f->x.sender.count, 2); /* no second send starts */
    assert_int_equal(waiting->fate, FAKE_ABANDONED);
    assert_int_equal(hung->fate, FAKE_HELD);
    fake_sender_answer(&f->x.sender, GB_TIMEOUT);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(hung->fate, FAKE_ABANDONED);
    assert_int_equal(f->wedged, 1);
    stop_route(f, GB_SEC);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.receiver.stops, 1); /* told once */
}

static void answer_late(struct gb_timer *t)
{
    struct fixture *f = GB_CONTAINER_OF(t, struct fixture, late);
    fake_sender_answer(&f->x.sender, GB_OK);
}

static void test_result_together_with_the_ceiling_wins(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    f->cfg.policy.send_timeout_ns = 10 * GB_SEC;
    start(f);
    assert_int_equal(gb_timer_init(&f->late, f->x.reactor, answer_late).code, GB_OK);
    gb_timer_start(&f->late, f->x.now_ns + (uint64_t)(15 * GB_SEC)); /* fires first */
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, 20 * GB_SEC);
    gb_timer_deinit(&f->late);
    assert_int_equal(f->wedged, 0);
    assert_int_equal(d->fate, FAKE_ACKED);
}

/* --- stop --- */

static void test_stop_lets_deliveries_end(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.sender.script, FAKE_HOLD, GB_OK);
    start(f);
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    stop_route(f, 25 * GB_SEC);
    assert_int_equal(f->x.receiver.stops, 1);
    core_fixture_run(&f->x, 5 * GB_SEC);
    assert_int_equal(f->stopped, 0);
    fake_receiver_push(&f->x.receiver, "m2");
    assert_int_equal(f->x.receiver.last_emit, GB_EMIT_REFUSED);
    fake_sender_answer(&f->x.sender, GB_OK);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->stop.result.code, GB_OK);
    assert_int_equal(d->fate, FAKE_ACKED);
}

static const struct stop_row {
    const char *name;
    enum fake_action send, dlq;
    enum gb_code send_code, dlq_code;
    bool hold_settled;
    enum fake_fate fate;
    enum gb_code result;
} stop_rows[] = {
    {"while sending", FAKE_HOLD, FAKE_DO, GB_OK, GB_OK, false, FAKE_ABANDONED, GB_TIMEOUT},
    {"while waiting for a retry", FAKE_FAIL, FAKE_DO, GB_UNAVAILABLE, GB_OK, false, FAKE_ABANDONED,
     GB_TIMEOUT},
    {"while the DLQ writes", FAKE_FAIL, FAKE_HOLD, GB_FORBIDDEN, GB_OK, false, FAKE_ABANDONED,
     GB_TIMEOUT},
    {"while the DLQ write waits", FAKE_FAIL, FAKE_FAIL, GB_FORBIDDEN, GB_UNAVAILABLE, false,
     FAKE_ABANDONED, GB_TIMEOUT},
    {"while settling", FAKE_DO, FAKE_DO, GB_OK, GB_OK, true, FAKE_ACKED, GB_OK},
};

static void test_stop_deadline_cancels_and_leaves_unsettled(void **state)
{
    for (size_t i = 0; i < sizeof stop_rows / sizeof stop_rows[0]; i++) {
        const struct stop_row *row = &stop_rows[i]; /* acceptance 19 */
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        f->cfg.policy.backoff.initial_ns = 30 * GB_SEC;
        f->x.receiver.hold_settled = row->hold_settled;
        fake_script_always(&f->x.sender.script, row->send, row->send_code);
        fake_script_always(&f->x.dlq.script, row->dlq, row->dlq_code);
        start(f);
        struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
        core_fixture_run(&f->x, 100 * GB_MS);
        stop_route(f, 100 * GB_MS);
        core_fixture_run(&f->x, 99 * GB_MS);
        assert_int_equal(f->stopped, 0);
        core_fixture_run(&f->x, GB_MS);
        if (row->hold_settled) {
            assert_int_equal(f->stopped, 0); /* the acknowledge after a send is still issued */
            fake_receiver_settle(d);
            core_fixture_run(&f->x, GB_MS);
        }
        assert_int_equal(f->stopped, 1);
        assert_int_equal(f->stop.result.code, row->result);
        assert_int_equal(d->fate, row->fate);
        assert_int_equal(d->calls, 1);
        assert_int_equal(core_fixture_count(&f->x, "MessagesDropped") +
                             core_fixture_count(&f->x, "DLQEntries") +
                             core_fixture_count(&f->x, "RouteErrors"),
                         0);
        assert_int_equal(gb_ledger_size(f->ledger), 0);
        if (i + 1 < sizeof stop_rows / sizeof stop_rows[0]) teardown(state);
    }
}

static void test_stop_never_started(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gb_route_new(&f->cfg, &f->route).code, GB_OK);
    stop_route(f, GB_SEC);
    core_fixture_run(&f->x, GB_MS);
    assert_int_equal(f->stopped, 1);
    assert_int_equal(f->x.receiver.stops, 0);
}

static void test_bad_configurations(void **state)
{
    struct fixture *f = *state;
    struct gb_route *r = NULL;
    struct gb_route_cfg cfg = f->cfg;
    cfg.binding_count = 0;
    assert_int_equal(gb_route_new(&cfg, &r).code, GB_INVALID_CONFIG);
    cfg = f->cfg;
    cfg.delivery_mode = GB_SHARED_OUTBOX;
    struct gb_err err = gb_route_new(&cfg, &r);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "shared_outbox requires stores.outbox"));
    assert_null(r);
}

static void test_direct_hold_with_two_plans_sends_nothing(void **state)
{
    struct fixture *f = *state;
    struct gb_route_binding two[] = {f->binding, f->binding};
    two[1].id = "c";
    f->cfg.bindings = two;
    f->cfg.binding_count = 2;
    f->cfg.every_binding = true;
    start(f);
    struct fake_delivery *d = fake_receiver_push(&f->x.receiver, "m1");
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(d->fate, FAKE_ACKED);
    assert_int_equal(f->x.sender.count, 0);
    assert_string_equal(f->x.dlq.entries[0]->error_code, "INTERNAL");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_outcomes),
        TEST(test_entry_names_route_binding_address_and_code),
        TEST(test_expired_message_is_not_sent),
        TEST(test_expired_message_under_drop),
        TEST(test_dlq_down_then_back),
        TEST(test_untrusted_bridge_headers_are_stripped),
        TEST(test_trusted_bridge_headers_pass_but_never_steer),
        TEST(test_forged_receive_count_does_not_dead_letter),
        TEST(test_addresses),
        TEST(test_backoff_between_tries),
        TEST(test_retry_after_wins),
        TEST(test_destination_down_ten_seconds),
        TEST(test_anonymous_message_is_unstable),
        TEST(test_native_count_ends_on_delivery_five),
        TEST(test_ledger_ends_on_delivery_six),
        TEST(test_charge_stays_when_the_acknowledge_fails),
        TEST(test_message_that_would_expire_is_not_retried),
        TEST(test_source_refuses_the_hand_back),
        TEST(test_max_in_flight),
        TEST(test_conservation),
        TEST(test_hung_sender_wedges_the_route),
        TEST(test_result_together_with_the_ceiling_wins),
        TEST(test_stop_lets_deliveries_end),
        TEST(test_stop_deadline_cancels_and_leaves_unsettled),
        TEST(test_stop_never_started),
        TEST(test_bad_configurations),
        TEST(test_direct_hold_with_two_plans_sends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
