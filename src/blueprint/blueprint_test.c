#include "blueprint/document.h"
#include "blueprint/rule_rows.h"

static struct gb_blueprint *load(const char *text)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    if (gb_failed(err)) fail_msg("%s: %s", err.message, findings.items[0].text);
    gb_findings_deinit(&findings);
    return b;
}

static struct gb_blueprint *load_seed(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, DOCUMENTS "%s.yaml", name);
    char *text = read_document(path);
    struct gb_blueprint *b = load(text);
    free(text);
    return b;
}

static void examples_validate(void **state)
{
    (void)state;
    static const char *const files[] = {"examples/mqtt-to-sqs.yaml", "examples/direct.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = read_document(files[i]);
        struct gb_err err;
        char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
        if (said[0] != '\0') fail_msg("%s:\n%s", files[i], said);
        free(said);
        free(text);
    }
}

/* The document of spec 01 §7 runs; nothing is found but the one warning (row 1). */
static void the_cluster_document_runs(void **state)
{
    (void)state;
    struct gb_err err;
    char *text = read_document(DOCUMENTS "cluster.yaml");
    char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
    assert_int_equal(err.code, GB_OK);
    assert_non_null(strstr(said, "stale_claim_duration 35s"));
    assert_int_equal(strchr(said, '\n') - said + 1, strlen(said)); /* one line */
    free(said);
    free(text);
}

static void all_findings_come_in_one_pass(void **state)
{
    (void)state;
    static const char text[] = "bridge: {shutdown_timout: 3s, log_level: verbose}\n"
                               "sessions: [{id: a, transport: kafka}, {transport: mqtt}]\n"
                               "routes: [{id: r, receiver_id: x, bindings: [y]}]\n";
    static const char want[] =
        "doc:1:1: error: bridge.id is required; write the name of the logical bridge, equal on "
        "every instance [V1]\n"
        "doc:1:10: error: unknown key \"bridge.shutdown_timout\"; did you mean "
        "\"shutdown_timeout\"? [K1]\n"
        "doc:1:42: error: bridge.log_level \"verbose\" is invalid; must be one of: debug, info, "
        "warn, warning, error [K5]\n"
        "doc:2:31: error: sessions[0] (a): transport \"kafka\" is invalid; must be one of: mqtt, "
        "mqtt.paho [K5]\n"
        "doc:2:39: error: sessions[1]: id is required; add it [K2]\n"
        "doc:2:39: error: sessions[1]: options.session is required; add it with the broker_url and "
        "the client_id [K2]\n"
        "doc:3:10: warning: routes[0] (r): policy: expired and refused messages are dropped with a "
        "metric, since there is no stores.dlq; configure it, or write on_expired: drop and "
        "on_permanent_failure: drop [W4]\n"
        "doc:3:10: warning: routes[0] (r): delivery_mode: direct_hold has no fencing between "
        "instances; use shared_outbox, or say with policy.allow_unfenced: true that this is known "
        "[W1]\n"
        "doc:3:31: error: routes[0] (r): receiver_id \"x\" not found in receivers; add it there or "
        "correct the id [V5]\n"
        "doc:3:45: error: routes[0] (r): bindings[0] \"y\" not found in bindings; add it there or "
        "correct the id [V5]\n";
    struct gb_err err;
    char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
    assert_string_equal(said, want);
    free(said);
}

static void secrets_stay_out_of_findings(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "http: {admin_api_key: hunter2}",
        "http: {admin_api_key: [hunter2]}",
        "http: {admin_api_key: 72617}",
        "sessions: [{id: a, transport: mqtt, options: {session: {password: [hunter2]}}}]",
        "sessions: [{transport: mqtt, options: {session: {broker_url: a, password: hunter2}}}]",
        "sessions: [{id: a, transport: mqtt, options: {session: {tls: {key_pem: hunter2}}}}]",
        "receivers: [{id: a, transport: http, options: {api_key: hunter2}}]",
        "bridge: {cluster: {forwarder: {forward_token: {a: hunter2}}}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct gb_err err;
        char *said = findings_of(texts[i], GB_BLUEPRINT_YAML, &err);
        assert_true(said[0] != '\0');
        if (strstr(said, "hunter2") != NULL || strstr(said, "72617") != NULL) {
            fail_msg("%s:\n%s", texts[i], said);
        }
        free(said);
    }
}

static void formats_follow_the_name(void **state)
{
    (void)state;
    assert_int_equal(gb_blueprint_format_of("a/b.json"), GB_BLUEPRINT_JSON);
    assert_int_equal(gb_blueprint_format_of("b.yaml"), GB_BLUEPRINT_YAML);
    assert_int_equal(gb_blueprint_format_of("json"), GB_BLUEPRINT_YAML);
    assert_int_equal(gb_blueprint_format_of(""), GB_BLUEPRINT_YAML);
}

static void defaults_and_links(void **state)
{
    (void)state;
    struct gb_blueprint *b = load_seed("standalone");
    const struct gb_bp_route *r = &b->routes[0];
    assert_string_equal(b->bridge.instance_id, "one");
    assert_ptr_equal(r->receiver, &b->receivers[0]);
    assert_ptr_equal(r->bindings[0], &b->bindings[0]);
    assert_ptr_equal(r->bindings[0]->sender, &b->senders[0]);
    assert_ptr_equal(r->receiver->session, &b->sessions[0]);
    assert_ptr_equal(b->sessions[0].receiver, &b->receivers[0]);
    assert_true(b->sessions[0].in_use);
    assert_int_equal(b->receivers[0].transport.value, GB_BP_MQTT);
    assert_false(b->receivers[0].transport.given);
    const struct gb_bp_mqtt_session *m = &b->sessions[0].mqtt;
    assert_int_equal(m->urls.count, 1);
    assert_string_equal(m->urls.items[0], "tcp://localhost:1883");
    assert_int_equal(m->keep_alive.value, 30);
    assert_int_equal(m->receive_maximum.value, 192);
    assert_int_equal(m->max_payload_bytes.value, 262144);
    assert_int_equal(m->session_expiry_interval.value, 86400);
    assert_int_equal(m->reconnect_max_delay.ns, 120 * GB_SEC);
    assert_int_equal(b->senders[0].sqs.batch_size.value, 10);
    assert_int_equal(b->senders[0].sqs.max_message_bytes.value, 1048576);
    assert_int_equal(b->stores[GB_BP_DLQ].auto_redrive_window.ns, 24 * GB_HOUR);
    assert_null(b->stores[GB_BP_LEASE].node);
    assert_null(b->http.node);
    assert_int_equal(gb_blueprint_activation_ns(&b->sessions[0]), 240 * GB_SEC);
    assert_ptr_equal(gb_blueprint_session(b, "plant"), &b->sessions[0]);
    assert_null(gb_blueprint_session(b, "x"));
    assert_null(gb_blueprint_session(b, NULL));
    gb_blueprint_free(b);
}

static void policies_resolve(void **state)
{
    (void)state;
    struct gb_blueprint *b = load_seed("standalone");
    struct gb_policy got = gb_blueprint_route_policy(&b->routes[0]);
    assert_int_equal(got.max_in_flight, 100);
    assert_int_equal(got.max_replay_attempts, 5);
    assert_int_equal(got.replay_budget_ns, 15 * GB_MINUTE);
    assert_int_equal(got.send_timeout_ns, 30 * GB_SEC);
    assert_int_equal(got.send_retry_budget_ns, 60 * GB_SEC);
    assert_int_equal(got.processor_timeout_ns, 30 * GB_SEC);
    assert_int_equal(got.max_outbox_depth, 10000);
    assert_int_equal(got.depth_cache_ttl_ns, GB_SEC);
    assert_int_equal(got.on_expired, GB_ACTION_DLQ);
    assert_int_equal(got.on_permanent_failure, GB_ACTION_DLQ);
    assert_int_equal(got.on_filtered, GB_ACTION_DROP);
    assert_int_equal(got.backoff.initial_ns, GB_SEC);
    assert_int_equal(got.backoff.max_ns, 30 * GB_SEC);
    assert_true(got.backoff.multiplier == 2.0 && got.backoff.jitter == 0.2);
    gb_blueprint_free(b);
}

/* A row is a change of the standalone document: of `bridge` and of the route's session block. */
static const struct drain_row {
    const char *name, *bridge, *session;
    enum gb_drain_strategy_type type;
    int64_t interval, min, per_record, max, legacy, stale;
    uint32_t batch;
} drain_rows[] = {
    {"nothing written", "", "", GB_DRAIN_ADAPTIVE, GB_SEC, 100 * GB_MS, 3 * GB_SEC, 10 * GB_SEC, 0,
     30 * GB_SEC, 100},
    {"drain_interval", "", "drain_interval: 2s, drain_batch_size: 7", GB_DRAIN_FIXED, 2 * GB_SEC,
     100 * GB_MS, 3 * GB_SEC, 10 * GB_SEC, 0, 30 * GB_SEC, 7},
    {"fixed poll", "", "drain_strategy: {type: fixed_poll}", GB_DRAIN_FIXED, GB_SEC, 100 * GB_MS,
     3 * GB_SEC, 10 * GB_SEC, 0, 30 * GB_SEC, 100},
    {"adaptive", "", "drain_strategy: {min_interval: 1s}", GB_DRAIN_ADAPTIVE, GB_SEC, GB_SEC,
     3 * GB_SEC, 10 * GB_SEC, 0, 30 * GB_SEC, 100},
    {"legacy ceiling", "drain_timeout: 20s", "", GB_DRAIN_ADAPTIVE, GB_SEC, 100 * GB_MS, 0,
     10 * GB_SEC, 20 * GB_SEC, 30 * GB_SEC, 100},
    {"scaled keys win", "drain_timeout: 20s\n  max_drain_timeout: 30s", "", GB_DRAIN_ADAPTIVE,
     GB_SEC, 100 * GB_MS, 3 * GB_SEC, 30 * GB_SEC, 0, 30 * GB_SEC, 100},
    {"01 row 22, derived", "", "step_down_grace: 20s", GB_DRAIN_ADAPTIVE, GB_SEC, 100 * GB_MS,
     3 * GB_SEC, 10 * GB_SEC, 0, 35 * GB_SEC, 100},
    {"01 row 22, short grace", "", "step_down_grace: 5s", GB_DRAIN_ADAPTIVE, GB_SEC, 100 * GB_MS,
     3 * GB_SEC, 10 * GB_SEC, 0, 30 * GB_SEC, 100},
};

static void drain_policies_resolve(void **state)
{
    (void)state;
    char *base = read_document(DOCUMENTS "standalone.yaml");
    for (size_t i = 0; i < sizeof drain_rows / sizeof drain_rows[0]; i++) {
        const struct drain_row *row = &drain_rows[i];
        char bridge[128];
        char session[256] = "    policy: {}\n";
        (void)snprintf(bridge, sizeof bridge, "  instance_id: one\n  %s\n", row->bridge);
        if (row->session[0] != '\0') {
            (void)snprintf(session, sizeof session,
                           "    session: {session_id: plant, sender_id: sqs-out, %s}\n",
                           row->session);
        }
        char *half =
            patched(base, &(struct rule_row){row->name, "  instance_id: one\n", bridge, ""});
        char *text = patched(half, &(struct rule_row){row->name, "    policy: {}\n", session, ""});
        struct gb_blueprint *b = load(text);
        struct gb_drain_policy p = gb_blueprint_drain_policy(b, &b->routes[0]);
        if (p.type != row->type || p.interval_ns != row->interval ||
            p.min_interval_ns != row->min || p.per_record_timeout_ns != row->per_record ||
            p.max_timeout_ns != row->max || p.legacy_ceiling_ns != row->legacy ||
            p.stale_claim_ns != row->stale || p.batch_size != row->batch) {
            fail_msg("%s", row->name);
        }
        assert_int_equal(p.max_batch_size, 500);
        assert_int_equal(p.max_concurrency, 10);
        gb_blueprint_free(b);
        free(half);
        free(text);
    }
    free(base);
}

/* Spec 02 §2.4. */
static const struct partition_row {
    const char *name, *binding, *session, *want;
} partition_rows[] = {
    {"no session at all", "", "", "BINDING#to-sqs"},
    {"the route's", "", "    session: {session_id: plant, sender_id: sqs-out}\n", "SESSION#plant"},
    {"the binding's own", "session_id: plant, ", "", "SESSION#plant"},
};

static void partitions_follow_the_effective_session(void **state)
{
    (void)state;
    char *base = read_document(DOCUMENTS "standalone.yaml");
    for (size_t i = 0; i < sizeof partition_rows / sizeof partition_rows[0]; i++) {
        const struct partition_row *row = &partition_rows[i];
        char binding[64];
        (void)snprintf(binding, sizeof binding, "%ssender_id", row->binding);
        char *half = patched(base, &(struct rule_row){row->name, "sender_id", binding, ""});
        char *text = patched(
            half,
            &(struct rule_row){row->name, "    policy: {}\n",
                               row->session[0] == '\0' ? "    policy: {}\n" : row->session, ""});
        struct gb_blueprint *b = load(text);
        char got[GB_BLUEPRINT_PARTITION_MAX];
        gb_blueprint_partition(&b->routes[0], b->routes[0].bindings[0], got);
        if (strcmp(got, row->want) != 0) fail_msg("%s: %s", row->name, got);
        gb_blueprint_free(b);
        free(half);
        free(text);
    }
    free(base);
    struct gb_blueprint *b = load_seed("direct"); /* the sender's */
    char got[GB_BLUEPRINT_PARTITION_MAX];
    gb_blueprint_partition(&b->routes[0], b->routes[0].bindings[0], got);
    assert_string_equal(got, "SESSION#centre");
    assert_int_equal(gb_blueprint_activation_ns(b->senders[0].session), 0);
    assert_false(gb_blueprint_every_binding(&b->routes[0]));
    gb_blueprint_free(b);
}

/* A long send is not claimed again under way. */
static void stale_claims_outlast_sends(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        int64_t want;
    } rows[] = {{"    policy: {send_timeout: 30s}\n", 30 * GB_SEC},
                {"    policy: {send_timeout: 60s}\n", 75 * GB_SEC},
                {"    policy: {send_timeout: 9223372036s}\n", INT64_MAX}};
    char *base = read_document(DOCUMENTS "standalone.yaml");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct rule_row row = {"send_timeout", "    policy: {}\n", rows[i].policy, ""};
        char *text = patched(base, &row);
        struct gb_blueprint *b = load(text);
        assert_int_equal(gb_blueprint_stale_claim_ns(b), rows[i].want);
        gb_blueprint_free(b);
        free(text);
    }
    free(base);
}

static void findings_are_bounded(void **state)
{
    (void)state;
    struct gb_str text = {0};
    gb_str_append_c(&text, "bridge: {id: a}\n");
    for (int i = 0; i < 300; i++) gb_str_appendf(&text, "k%d: 1\n", i);
    struct gb_err err;
    char *said = findings_of(text.data, GB_BLUEPRINT_YAML, &err);
    assert_non_null(strstr(said, "doc: 100 further findings are not shown\n"));
    assert_string_equal(err.message, "doc: config validation failed: 300 errors");
    free(said);
    gb_str_deinit(&text);
}

static void lists_are_bounded(void **state)
{
    (void)state;
    struct gb_str text = {0};
    gb_str_append_c(&text, "bridge: {id: a}\nroutes:\n");
    for (int i = 0; i < 10001; i++) gb_str_append_c(&text, "- {}\n");
    struct gb_err err;
    char *said = findings_of(text.data, GB_BLUEPRINT_YAML, &err);
    assert_string_equal(said,
                        "doc:2:1: error: routes has 10001 entries, and at most 10000 are accepted; "
                        "remove some, or use several bridges [K4]\n");
    free(said);
    gb_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_validate),
        cmocka_unit_test(the_cluster_document_runs),
        cmocka_unit_test(all_findings_come_in_one_pass),
        cmocka_unit_test(secrets_stay_out_of_findings),
        cmocka_unit_test(formats_follow_the_name),
        cmocka_unit_test(defaults_and_links),
        cmocka_unit_test(policies_resolve),
        cmocka_unit_test(drain_policies_resolve),
        cmocka_unit_test(partitions_follow_the_effective_session),
        cmocka_unit_test(stale_claims_outlast_sends),
        cmocka_unit_test(findings_are_bounded),
        cmocka_unit_test(lists_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
