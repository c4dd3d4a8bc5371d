#include "blueprint/rule_rows.h"

/* Values that follow from several keys (resolve.c), at their edges. */

static struct gb_blueprint *loaded(const char *text, struct gb_findings *findings)
{
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, findings, &b);
    if (gb_failed(err)) fail_msg("%s: %s", text, findings->items[0].text);
    return b;
}

static void which_queues_are_fifo(void **state)
{
    (void)state;
    static const struct {
        struct gb_bp_sqs_sender sender;
        bool want;
    } rows[] = {
        {{.queue = {.queue_name = "a"}}, false},
        {{.queue = {.queue_name = "fifo"}}, false},
        {{.queue = {.queue_name = ".fifo"}}, true},
        {{.queue = {.queue_name = "a.fifo"}}, true},
        {{.queue = {.queue_name = "a.fifo.b"}}, false},
        {{.queue = {.queue_url = "https://x/1/a.fifo"}}, true},
        {{.queue = {.queue_url = "https://x/1/a"}}, false},
        {{.queue = {.queue_name = "a"}, .fifo = {.value = true}}, true},
        {{.queue = {.queue_name = "a"}, .message_group_id = "g"}, true},
        {{.fifo = {.value = false}}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(gb_blueprint_sqs_fifo(&rows[i].sender), rows[i].want);
    }
}

static void which_routes_use_every_binding(void **state)
{
    (void)state;
    struct gb_bp_route r = {0};
    assert_false(gb_blueprint_every_binding(&r));
    r.dispatch_mode.value = GB_DISPATCH_FAN_OUT;
    assert_true(gb_blueprint_every_binding(&r));
    r.dispatch_mode.value = GB_DISPATCH_SINGLE;
    r.resolver.type.value = GB_BP_ALL;
    assert_true(gb_blueprint_every_binding(&r));
    r.resolver.type.value = GB_BP_RULES;
    assert_false(gb_blueprint_every_binding(&r));
}

/* `%s` and `%s`: policies of two routes; `%s`: the first one's session block. */
static const char two_routes[] =
    "bridge: {id: x}\n"
    "stores:\n"
    "  outbox: {type: sqlite, options: {path: /o}}\n"
    "  dlq: {type: sqlite, options: {path: /d}}\n"
    "  lease: {type: sqlite, options: {path: /l}}\n"
    "sessions: [{id: s, transport: mqtt, session_mode: exclusive, options: {session: {broker_url: "
    "tcp://a, client_id: c}}}]\n"
    "receivers: [{id: i, transport: sqs, options: {queue_name: q}}]\n"
    "senders: [{id: o, transport: sqs, options: {queue_name: p}}, {id: m, session_id: s}]\n"
    "bindings: [{id: b, sender_id: o, address: a}, {id: c, sender_id: m, address: a}]\n"
    "routes:\n"
    "  - {id: q, receiver_id: i, delivery_mode: shared_outbox, bindings: [b], policy: {%s}}\n"
    "  - {id: r, receiver_id: i, delivery_mode: shared_outbox, bindings: [c], policy: {%s}, "
    "session: {session_id: s, sender_id: m, %s}}\n"
    "  - {id: t, receiver_id: i, bindings: [b], policy: {send_timeout: 50s}}\n";

static void how_long_a_claim_lasts(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *session;
        int64_t want;
        enum gb_stale_claim_source source;
    } rows[] = {
        {"", "", "step_down_grace: 1s", 30 * GB_SEC, GB_STALE_CLAIM_LEAST},
        {"", "", "step_down_grace: 15s", 30 * GB_SEC, GB_STALE_CLAIM_LEAST},
        {"", "", "step_down_grace: 15000000001ns", 30 * GB_SEC + 1, GB_STALE_CLAIM_GRACE},
        {"", "", "step_down_grace: 20s", 35 * GB_SEC, GB_STALE_CLAIM_GRACE},
        {"send_timeout: 35s", "", "step_down_grace: 20s", 35 * GB_SEC, GB_STALE_CLAIM_GRACE},
        {"send_timeout: 36s", "", "step_down_grace: 20s", 51 * GB_SEC, GB_STALE_CLAIM_SEND},
        {"", "send_timeout: 36s", "step_down_grace: 20s", 51 * GB_SEC, GB_STALE_CLAIM_SEND},
        {"send_timeout: 30000000001ns", "", "step_down_grace: 1s", 45 * GB_SEC + 1,
         GB_STALE_CLAIM_SEND},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_findings findings = {0};
        struct gb_str s = {0};
        gb_str_appendf(&s, two_routes, rows[i].first, rows[i].second, rows[i].session);
        struct gb_blueprint *b = loaded(s.data, &findings);
        struct gb_stale_claim claim = gb_blueprint_stale_claim(b);
        assert_int_equal(claim.ns, rows[i].want);
        assert_int_equal(claim.source, rows[i].source);
        if (claim.source == GB_STALE_CLAIM_LEAST) assert_int_equal(claim.basis_ns, 0);
        assert_int_equal(gb_blueprint_stale_claim_ns(b), rows[i].want);
        gb_blueprint_free(b);
        gb_str_deinit(&s);
        gb_findings_deinit(&findings);
    }
}

static void no_route_has_an_outbox(void **state)
{
    (void)state;
    struct gb_bp_route route = {.delivery_mode = {.value = GB_DIRECT_HOLD},
                                .policy = {.send_timeout = {.ns = GB_HOUR}}};
    struct gb_blueprint b = {.routes = &route, .route_count = 1};
    struct gb_outbox_times times = gb_blueprint_outbox_times(&b);
    assert_int_equal(times.send_ns, 0);
    assert_int_equal(times.grace_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_queues_are_fifo),
        cmocka_unit_test(which_routes_use_every_binding),
        cmocka_unit_test(how_long_a_claim_lasts),
        cmocka_unit_test(no_route_has_an_outbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
