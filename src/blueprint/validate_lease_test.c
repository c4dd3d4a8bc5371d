#include "blueprint/patched_document.h"

#include "blueprint/blueprint.h"

/* Rules of leases and clusters: each row changes one place of a valid document and lists all that
 * is said then, but for the standing warnings of that document. */
struct row {
    const char *name;
    const char *find, *replace;
    const char *want; /* lines without file and position */
};

/* Rules whose texts are this file's matter; of the others only the name is expected. */
static const enum gb_rule judged[] = {GB_RULE_V40, GB_RULE_V41, GB_RULE_V43, GB_RULE_W2, GB_RULE_C2,
                                      GB_RULE_C4,  GB_RULE_C6,  GB_RULE_C9,  GB_RULE_P1, GB_RULE_P2,
                                      GB_RULE_P3,  GB_RULE_P5,  GB_RULE_NONE};
/* Warnings that the documents draw as they are. */
static const enum gb_rule cluster_draws[] = {GB_RULE_V32, GB_RULE_V33, GB_RULE_NONE};
static const enum gb_rule mixed_draws[] = {GB_RULE_M4, GB_RULE_W1, GB_RULE_NONE};
static const enum gb_rule nothing[] = {GB_RULE_NONE};

static bool is_among(const enum gb_rule *rules, enum gb_rule rule)
{
    for (; *rules != GB_RULE_NONE; rules++) {
        if (*rules == rule) return true;
    }
    return false;
}

/* What is said about the text, line by line; to be freed. */
static char *said(const char *text, const enum gb_rule *standing)
{
    static const char *const no_name[] = {""};
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str out = {0};
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    assert_int_equal(gb_failed(err), findings.error_count > 0);
    gb_str_append_c(&out, "");
    for (size_t i = 0; i < findings.count; i++) {
        struct gb_finding *f = &findings.items[i];
        struct gb_str line = {0};
        if (f->severity == GB_FINDING_WARNING && is_among(standing, f->rule)) continue;
        f->line = 0; /* not printed */
        gb_finding_print(f, no_name, &line);
        if (is_among(judged, f->rule)) {
            gb_str_appendf(&out, "%s\n", line.data + strlen(": "));
        } else {
            gb_str_appendf(&out, "[%s]\n", gb_rule_name(f->rule));
        }
        gb_str_deinit(&line);
    }
    gb_findings_deinit(&findings);
    gb_blueprint_free(b);
    char *taken = gb_str_take(&out);
    assert_non_null(taken);
    return taken;
}

static void check(const char *document, const enum gb_rule *standing, const struct row *rows,
                  size_t count)
{
    char *base = read_text(document);
    for (size_t i = 0; i < count; i++) {
        char *text = with_change(base, rows[i].find, rows[i].replace);
        char *got = said(text, standing);
        if (strcmp(got, rows[i].want) != 0) {
            fail_msg("%s: expected\n%sgot\n%s", rows[i].name, rows[i].want, got);
        }
        free(got);
        free(text);
    }
    free(base);
}

#define CLUSTER(rows)                                                                              \
    check(DOCUMENTS "cluster.yaml", cluster_draws, (rows), sizeof(rows) / sizeof((rows)[0]))
#define MIXED(rows)                                                                                \
    check(DOCUMENTS "mixed.yaml", mixed_draws, (rows), sizeof(rows) / sizeof((rows)[0]))

static const struct row cadence_rows[] = {
    {"01 check 16, span", "      lease_ttl: 300s\n",
     "      lease_ttl: 10s\n"
     "      renew_interval: 3s\n",
     "error: routes[0] (ingest): session.lease_ttl 10s is too short: 3 renewals take 13.5s; it "
     "would cut renew_interval 3s to 1.5s; raise it, or lower them or max_renew_fails [V40]\n"
     "warning: routes[0] (ingest): session.lease_ttl 10s is not greater than 1m3s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"01 check 16, accepted",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n",
     "      lease_ttl: 30s\n",
     "warning: routes[0] (ingest): session.lease_ttl 30s is not greater than 1m5.416666665s, the "
     "time to connect, reconcile and renew once; raise it, or lower connect_timeout and "
     "reconcile_timeout [W2]\n"},
    {"01 check 16, 4s", "      lease_ttl: 300s\n", "      lease_ttl: 4s\n",
     "error: routes[0] (ingest): session.lease_ttl 4s is too short: 3 renewals take 4.499999997s; "
     "it would cut renew_interval 444.444444ms to 200ms; raise it, or lower them or "
     "max_renew_fails [V40]\n"
     "error: routes[0] (ingest): session.lease_ttl resolves to 4s; at least 5s is required, raise "
     "it [V41]\n"
     "warning: routes[0] (ingest): session.lease_ttl 4s is not greater than 1m1.2s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"06 check 12, 6s and 4 fails",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n",
     "      lease_ttl: 6s\n"
     "      max_renew_fails: 4\n",
     "error: routes[0] (ingest): session.lease_ttl 6s is too short: 4 renewals take 6.25s; it "
     "would cut renew_interval 500ms to 350ms; raise it, or lower them or max_renew_fails [V40]\n"
     "warning: routes[0] (ingest): session.lease_ttl 6s is not greater than 1m1.35s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"06 check 12, 5s and 5 fails",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n",
     "      lease_ttl: 5s\n"
     "      max_renew_fails: 5\n",
     "error: routes[0] (ingest): session.lease_ttl 5s is too short: 5 renewals take 6.874999995s; "
     "it would cut renew_interval 333.333333ms to 1ms, renew_call_timeout 1s to 899ms; raise it, "
     "or lower them or max_renew_fails [V40]\n"
     "warning: routes[0] (ingest): session.lease_ttl 5s is not greater than 1m0.9s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"06 4.2, 45s and 50 fails",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n",
     "      lease_ttl: 45s\n"
     "      max_renew_fails: 50\n",
     "error: routes[0] (ingest): session.lease_ttl 45s is too short: 50 renewals take 1m6.875s; it "
     "would cut renew_interval 300ms to 1ms, renew_call_timeout 1s to 809ms; raise it, or lower "
     "them or max_renew_fails [V40]\n"
     "warning: routes[0] (ingest): session.lease_ttl 45s is not greater than 1m0.81s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"06 check 12, 4.999s", "      lease_ttl: 300s\n", "      lease_ttl: 4.999s\n",
     "error: routes[0] (ingest): session.lease_ttl resolves to 4.999s; at least 5s is required, "
     "raise it [V41]\n"
     "warning: routes[0] (ingest): session.lease_ttl 4.999s is not greater than 1m1.624874999s, "
     "the time to connect, reconcile and renew once; raise it, or lower connect_timeout and "
     "reconcile_timeout [W2]\n"},
    {"01 check 18", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      acquire_poll_interval: 100ms\n",
     "error: routes[0] (ingest): session.acquire_poll_interval resolves to 100ms; at least 250ms "
     "is required, raise it [V41]\n"},
    {"06 check 12, poll 249ms", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      acquire_poll_interval: 249ms\n",
     "error: routes[0] (ingest): session.acquire_poll_interval resolves to 249ms; at least 250ms "
     "is required, raise it [V41]\n"},
    {"poll 250ms",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n",
     "      lease_ttl: 300s\n"
     "      acquire_poll_interval: 250ms\n"
     "      step_down_grace: 20s\n",
     "error: routes[0] (ingest): budget 2h22m35.625s of session \"mqtt-conn\" exceeds declared "
     "failover_slo 16m20s; raise it, or lower lease_ttl 5m0s + polls 625ms + calls 2h13m25s + "
     "activation 4m0s + startup 10s [P1]\n"},
    {"interval 249ms", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      renew_interval: 249ms\n",
     "error: routes[0] (ingest): session.renew_interval resolves to 249ms; at least 250ms is "
     "required, raise it [V41]\n"},
    {"only the call is cut", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      renew_interval: 1s\n"
     "      renew_call_timeout: 100s\n",
     "error: routes[0] (ingest): session.lease_ttl 5m0s is too short: 3 renewals take 5m3s; it "
     "would cut renew_interval 1s to 1ms, renew_call_timeout 1m40s to 1m29.999s; raise it, or "
     "lower them or max_renew_fails [V40]\n"},
    {"call and interval are cut", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      renew_interval: 100s\n"
     "      renew_call_timeout: 100s\n",
     "error: routes[0] (ingest): session.lease_ttl 5m0s is too short: 3 renewals take 10m0s; it "
     "would cut renew_interval 1m40s to 1ms, renew_call_timeout 1m40s to 1m29.999s; raise it, or "
     "lower them or max_renew_fails [V40]\n"},
    {"no 64 bits hold the span", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      renew_interval: 2562047h\n"
     "      renew_call_timeout: 2562047h\n",
     "error: routes[0] (ingest): session.lease_ttl 5m0s is too short: 3 renewals take longer than "
     "any duration; it would cut renew_interval 2562047h0m0s to 1ms, renew_call_timeout "
     "2562047h0m0s to 1m29.999s; raise it, or lower them or max_renew_fails [V40]\n"},
    {"jitter shed", "      lease_ttl: 300s\n",
     "      lease_ttl: 300s\n"
     "      lease_renew_jitter: 200s\n",
     "warning: routes[0] (ingest): session.lease_renew_jitter 3m20s is shortened to 45.555555556s, "
     "since 3 renewals have to fit into nine tenths of lease_ttl 5m0s; write the shorter one "
     "[V40]\n"},
    {"01 W2", "      lease_ttl: 300s\n", "      lease_ttl: 60s\n",
     "warning: routes[0] (ingest): session.lease_ttl 1m0s is not greater than 1m14.444444443s, the "
     "time to connect, reconcile and renew once; raise it, or lower connect_timeout and "
     "reconcile_timeout [W2]\n"},
    {"W2 without a lease before connecting",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n"
     "      connect_after_lease: true\n",
     "      lease_ttl: 60s\n"
     "      connect_after_lease: false\n",
     ""},
    {"an unreadable key silences the rest",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n",
     "      lease_ttl: soon\n"
     "      renew_interval: 300s\n"
     "      step_down_grace: 20s\n",
     "[K6]\n"},
    {"an unreadable mode silences the lease", "deployment_mode: clustered",
     "deployment_mode: cluster", "[K5]\n"},
};

static const struct row objective_rows[] = {
    {"01 check 2, 06 check 14, equality", "failover_slo: 980s", "failover_slo: 967.5s", ""},
    {"01 check 2, 03 check 20, one nanosecond less", "failover_slo: 980s",
     "failover_slo: 967499999999ns",
     "error: routes[0] (ingest): budget 16m7.5s of session \"mqtt-conn\" exceeds declared "
     "failover_slo 16m7.499999999s; raise it, or lower lease_ttl 5m0s + polls 12.5s + calls 6m45s "
     "+ activation 4m0s + startup 10s [P1]\n"},
    {"01 check 3, 03 check 21, undecided", "      broker_health_step_down: off\n", "",
     "error: routes[0] (ingest): session.failover_slo 16m20s needs broker_health_step_down to be "
     "decided: write \"off\" or a duration [V43]\n"},
    {"01 check 3, quoted", "broker_health_step_down: off", "broker_health_step_down: \"off\"", ""},
    {"01 check 3, 03 check 21, 30s", "broker_health_step_down: off", "broker_health_step_down: 30s",
     ""},
    {"01 check 3, true", "broker_health_step_down: off", "broker_health_step_down: true", "[K6]\n"},
    {"01 check 3, 0s", "broker_health_step_down: off", "broker_health_step_down: 0s", "[K4]\n"},
    {"01 check 3, 03 check 21, -1s", "broker_health_step_down: off", "broker_health_step_down: -1s",
     "[K4]\n"},
    {"03 check 21, maybe", "broker_health_step_down: off", "broker_health_step_down: maybe",
     "[K6]\n"},
    {"P2, equality", "broker_health_step_down: off", "broker_health_step_down: 597.500000001s", ""},
    {"P2, one nanosecond over", "broker_health_step_down: off",
     "broker_health_step_down: 597.500000002s",
     "error: routes[0] (ingest): budget 16m20.000000001s of session \"mqtt-conn\" exceeds declared "
     "failover_slo 16m20s; raise it, or lower broker_health_step_down 9m57.500000002s + renewal "
     "1m9.999999999s + closing 30s + polls 12.5s + calls 20s + activation 4m0s + startup 10s "
     "[P2]\n"},
    {"P2 has no value", "broker_health_step_down: off", "broker_health_step_down: 2562047h47m",
     "error: routes[0] (ingest): session.failover_slo 16m20s of session \"mqtt-conn\" can't be "
     "admitted, remove it: the failover budget has no value: the sum with one renewal exceeds the "
     "longest duration, 2562047h47m16.854775807s [P2]\n"},
    {"both budgets exceed",
     "failover_slo: 980s\n"
     "      startup_allowance: 10s\n"
     "      broker_health_step_down: off",
     "failover_slo: 300s\n"
     "      startup_allowance: 10s\n"
     "      broker_health_step_down: 30s",
     "error: routes[0] (ingest): budget 16m7.5s of session \"mqtt-conn\" exceeds declared "
     "failover_slo 5m0s; raise it, or lower lease_ttl 5m0s + polls 12.5s + calls 6m45s + "
     "activation 4m0s + startup 10s [P1]\n"
     "error: routes[0] (ingest): budget 6m52.499999999s of session \"mqtt-conn\" exceeds declared "
     "failover_slo 5m0s; raise it, or lower broker_health_step_down 30s + renewal 1m9.999999999s + "
     "closing 30s + polls 12.5s + calls 20s + activation 4m0s + startup 10s [P2]\n"},
    {"01 check 19, 10m",
     "failover_slo: 980s\n"
     "      startup_allowance: 10s",
     "failover_slo: 1600s\n"
     "      startup_allowance: 10m",
     ""},
    {"01 check 19, 10m1ns", "startup_allowance: 10s", "startup_allowance: 10m1ns", "[V42]\n"},
    {"01 check 19, -1s", "startup_allowance: 10s", "startup_allowance: -1s", "[V42]\n"},
    {"V42, 0s", "failover_slo: 980s", "failover_slo: 0s", "[V42]\n"},
    {"06 check 15, unknown activation", "session_mode: exclusive", "session_mode: ephemeral",
     "error: receivers[0] (telemetry-in): session \"mqtt-conn\" is not exclusive, and its "
     "instances would share one client_id; write client_id_suffix: hostname or nonce there [C4]\n"
     "warning: routes[0] (ingest): session \"mqtt-conn\" is not exclusive; this block makes it "
     "lease-managed all the same, write session_mode: exclusive if one owner is meant [P5]\n"
     "error: routes[0] (ingest): session.failover_slo 16m20s of session \"mqtt-conn\" can't be "
     "admitted, remove it: the failover budget has no value: the activation is unknown; only MQTT "
     "sessions of mode persistent or exclusive declare one [P1]\n"},
    {"06 9.4 row 9", "      lease_ttl: 300s\n", "      lease_ttl: 9223372036s\n",
     "error: routes[0] (ingest): session.failover_slo 16m20s of session \"mqtt-conn\" can't be "
     "admitted, remove it: the failover budget has no value: acquire calls x renew_call_timeout "
     "exceeds the longest duration, 2562047h47m16.854775807s [P1]\n"},
    {"an activation beyond 64 bits", "connect_timeout: 30s", "connect_timeout: 2562047h",
     "warning: routes[0] (ingest): session.lease_ttl 5m0s is not greater than "
     "2562047h1m44.999999999s, the time to connect, reconcile and renew once; raise it, or lower "
     "connect_timeout and reconcile_timeout [W2]\n"
     "error: routes[0] (ingest): session.failover_slo 16m20s of session \"mqtt-conn\" can't be "
     "admitted, remove it: the failover budget has no value: the sum with the activation exceeds "
     "the longest duration, 2562047h47m16.854775807s [P1]\n"},
    {"06 check 15, no objective", "      failover_slo: 980s\n", "", ""},
    {"a cut cadence has no budget",
     "      lease_ttl: 300s\n"
     "      step_down_grace: 20s\n"
     "      max_renew_fails: 3\n",
     "      lease_ttl: 6s\n"
     "      max_renew_fails: 4\n",
     "error: routes[0] (ingest): session.lease_ttl 6s is too short: 4 renewals take 6.25s; it "
     "would cut renew_interval 500ms to 350ms; raise it, or lower them or max_renew_fails [V40]\n"
     "warning: routes[0] (ingest): session.lease_ttl 6s is not greater than 1m1.35s, the time to "
     "connect, reconcile and renew once; raise it, or lower connect_timeout and reconcile_timeout "
     "[W2]\n"},
    {"an unreadable timeout has no budget", "connect_timeout: 30s", "connect_timeout: 30",
     "[K6]\n"},
};

static const struct row owner_rows[] = {
    {"P5, a block over a persistent session", "session_mode: exclusive", "session_mode: persistent",
     "error: receivers[0] (telemetry-in): session \"mqtt-conn\" is not exclusive, and its "
     "instances would share one client_id; write client_id_suffix: hostname there [C4]\n"
     "warning: routes[0] (ingest): session \"mqtt-conn\" is not exclusive; this block makes it "
     "lease-managed all the same, write session_mode: exclusive if one owner is meant [P5]\n"},
    {"P5, only a receiver uses the session",
     "      session_id: mqtt-conn\n"
     "      sender_id: sqs-out\n",
     "      session_id: other\n"
     "      sender_id: sqs-out\n",
     "error: sessions[0] (mqtt-conn): session_mode: exclusive needs a lease, which nothing asks "
     "for; name session \"mqtt-conn\" in routes[].session.session_id [P5]\n"
     "[V5]\n"},
    {"01 check 8", "client_id: telemetry-bridge",
     "client_id: telemetry-bridge\n"
     "        client_id_suffix: hostname",
     "[C3]\n"},
    {"01 check 5, no lease store",
     "  lease: {type: dynamodb, options: {table_name: gobridge-leases}}\n", "", "[V21]\n"},
};

static const struct row cluster_rows[] = {
    {"01 check 7, 02 §2.4, ephemeral", "\"$share/mixed/samples/#\"", "\"samples/#\"",
     "error: receivers[2] (samples-in): topics[0] \"samples/#\" requires $share/ topic prefix or "
     "exclusive session; else every instance gets each message [C2]\n"},
    {"C2, persistent", "\"$share/mixed/orders/#\"", "\"orders/#\"",
     "error: receivers[1] (orders-in): topics[0] \"orders/#\" requires $share/ topic prefix or "
     "exclusive session; else every instance gets each message [C2]\n"},
    {"C2, exclusive with $share", "\"plant/#\"", "\"$share/mixed/plant/#\"", ""},
    {"01 check 7, no group", "\"$share/mixed/samples/#\"", "\"$share//x\"", "[V9]\n"},
    {"01 check 7, no filter", "\"$share/mixed/samples/#\"", "\"$share/g/\"", "[V9]\n"},
    {"01 check 7, C4, no suffix", "        client_id_suffix: nonce\n", "",
     "error: receivers[2] (samples-in): session \"samples\" is not exclusive, and its instances "
     "would share one client_id; write client_id_suffix: hostname or nonce there [C4]\n"},
    {"01 check 7, hostname", "client_id_suffix: nonce", "client_id_suffix: hostname", ""},
    {"01 check 7, nonce on persistent",
     "client_id_suffix: hostname\n"
     "        assert_stable_client_identity: true",
     "client_id_suffix: nonce", "[M4]\n"},
    {"C4, persistent",
     "        client_id_suffix: hostname\n"
     "        assert_stable_client_identity: true\n",
     "",
     "error: receivers[1] (orders-in): session \"orders\" is not exclusive, and its instances "
     "would share one client_id; write client_id_suffix: hostname there [C4]\n"},
    {"C2, an unreadable mode is not judged", "session_mode: ephemeral", "session_mode: shared",
     "[K5]\n"},
    {"standalone needs no $share",
     "deployment_mode: clustered\n"
     "stores:",
     "deployment_mode: standalone\n"
     "stores:",
     ""},
    {"01 check 24, written",
     "  - id: copy-in\n"
     "    transport: sqs\n"
     "    options: {queue_url: \"https://sqs.us-west-1.amazonaws.com/123456789/inbox\", region: "
     "us-west-1}\n",
     "  - {id: copy-in, transport: http}\n", ""},
    {"C9, persistent",
     "    receiver_id: orders-in\n"
     "    delivery_mode: direct_hold",
     "    receiver_id: orders-in\n"
     "    delivery_mode: shared_outbox",
     "error: routes[1] (order-events): bindings[0] \"to-events\" has no session and owns no lease, "
     "so nobody would drain its outbox; put it on an exclusive session by session.session_id "
     "[C9]\n"},
    {"C9, no session at all",
     "    receiver_id: copy-in\n"
     "    delivery_mode: direct_hold",
     "    receiver_id: copy-in\n"
     "    delivery_mode: shared_outbox",
     "error: routes[3] (copy): bindings[0] \"to-events\" has no session and owns no lease, so "
     "nobody would drain its outbox; put it on an exclusive session by session.session_id [C9]\n"},
    {"C9, the binding's own exclusive session",
     "  - {id: to-events, sender_id: sqs-out, address: events}",
     "  - {id: to-events, sender_id: sqs-out, session_id: plant, address: events}",
     "[V27]\n"
     "[V27]\n"
     "[V27]\n"},
};

/* B2: both documents of scenario 8, and the cluster one is the text of spec 01 §7. */
static void scenario_8(void **state)
{
    (void)state;
    char *text = read_text(DOCUMENTS "cluster.yaml");
    char *got = said(text, nothing);
    assert_string_equal(got, "[V32]\n");
    free(got);
    free(text);
    text = read_text(DOCUMENTS "mixed.yaml");
    got = said(text, nothing);
    assert_string_equal(got, "[M4]\n[W1]\n");
    free(got);
    free(text);
}

/* Spec 01 check 33, 06 check 16. */
#define ROUTE(id, receiver, lease)                                                                 \
    "  - {id: " id ", receiver_id: " receiver ", delivery_mode: shared_outbox, "                   \
    "bindings: [out], session: {session_id: s, sender_id: q" lease "}}\n"
#define SHARED(routes)                                                                             \
    "bridge: {id: b}\n"                                                                            \
    "stores:\n"                                                                                    \
    "  lease: {type: dynamodb}\n"                                                                  \
    "  outbox: {type: dynamodb}\n"                                                                 \
    "  dlq: {type: dynamodb}\n"                                                                    \
    "  managed_subscriptions: {type: dynamodb}\n"                                                  \
    "sessions:\n"                                                                                  \
    "  - {id: s, transport: mqtt, session_mode: exclusive, options: {session: {broker_url: "       \
    "\"tcp://h\", client_id: c}}}\n"                                                               \
    "receivers:\n"                                                                                 \
    "  - {id: a, session_id: s, topics: [{topic: t, qos: 1}]}\n"                                   \
    "  - {id: z, transport: sqs, options: {queue_name: in}}\n"                                     \
    "senders: [{id: q, transport: sqs, options: {queue_name: out}}]\n"                             \
    "bindings: [{id: out, sender_id: q, address: x}]\n"                                            \
    "routes:\n" routes

static const struct agreement_row {
    const char *name, *left, *right; /* lease keys of the routes `first` and `second` */
    const char *want;
} agreement_rows[] = {
#define DIFFERS(key, a, b)                                                                         \
    "error: sessions[0] (s): routes \"first\" and \"second\" differ in session." key ": " a        \
    " and " b "; all users of a session share its lease, write the same [P3]\n"
    {"equal", ", lease_ttl: 300s", ", lease_ttl: 5m", ""},
    {"a default and the same written", "", ", lease_ttl: 360s, step_down_grace: 15s", ""},
    {"lease_ttl", ", lease_ttl: 300s", "", DIFFERS("lease_ttl", "5m0s", "6m0s")},
    {"fails", ", max_renew_fails: 2", "", DIFFERS("max_renew_fails", "2", "3")},
    {"interval", ", renew_interval: 20s", ", renew_interval: 21s",
     DIFFERS("renew_interval", "20s", "21s")},
    {"jitter", ", lease_renew_jitter: 1s", ", lease_renew_jitter: 2s",
     DIFFERS("lease_renew_jitter", "1s", "2s")},
    {"call", ", renew_call_timeout: 3s", "", DIFFERS("renew_call_timeout", "3s", "5s")},
    {"poll", "", ", acquire_poll_interval: 4s", DIFFERS("acquire_poll_interval", "5s", "4s")},
    {"grace", "", ", step_down_grace: 20s", DIFFERS("step_down_grace", "15s", "20s")},
    {"connecting", ", connect_after_lease: false", "",
     DIFFERS("connect_after_lease", "false", "true")},
    {"objective", ", failover_slo: 1h, broker_health_step_down: off",
     ", failover_slo: 2h, broker_health_step_down: off",
     DIFFERS("failover_slo", "1h0m0s", "2h0m0s")},
    {"allowance", ", startup_allowance: 1s", "", DIFFERS("startup_allowance", "1s", "0s")},
    {"off and undecided", ", broker_health_step_down: off", "",
     DIFFERS("broker_health_step_down", "off", "nothing")},
    {"threshold", ", broker_health_step_down: off", ", broker_health_step_down: 30s",
     DIFFERS("broker_health_step_down", "off", "30s")},
};

static void users_of_a_session_agree_in_either_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof agreement_rows / sizeof agreement_rows[0]; i++) {
        const struct agreement_row *row = &agreement_rows[i];
        for (int swapped = 0; swapped < 2; swapped++) {
            char *first = gb_asprintf(ROUTE("first", "a", "%s"), row->left);
            char *second = gb_asprintf(ROUTE("second", "z", "%s"), row->right);
            assert_true(first != NULL && second != NULL);
            char *text =
                gb_asprintf(SHARED("%s%s"), swapped ? second : first, swapped ? first : second);
            assert_non_null(text);
            char *got = said(text, nothing);
            if (strcmp(got, row->want) != 0) fail_msg("%s: %s", row->name, got);
            free(got);
            free(text);
            free(second);
            free(first);
        }
    }
}

/* P1 is judged once for a session, at the route of the least id. */
static void an_objective_is_judged_once(void **state)
{
    (void)state;
    char *got =
        said(SHARED(ROUTE("b", "a", ", failover_slo: 1s, broker_health_step_down: off")
                        ROUTE("a", "z", ", failover_slo: 1s, broker_health_step_down: off")),
             nothing);
    assert_string_equal(
        got, "error: routes[1] (a): budget 18m17.5s of session \"s\" exceeds declared failover_slo "
             "1s; raise it, or lower lease_ttl 6m0s + polls 12.5s + calls 8m5s + activation 4m0s "
             "[P1]\n");
    free(got);
}

/* Spec 01 P5: a binding alone may name the session; connect_after_lease: false is then
 * overruled. */
static void a_binding_names_a_session(void **state)
{
    (void)state;
    static const struct {
        const char *binding, *block, *want;
    } rows[] = {
        {"", ", connect_after_lease: false", ""},
        {", session_id: s", ", connect_after_lease: false", "[W5]\n"},
        {", session_id: s", NULL, ""},
        {"", NULL,
         "error: sessions[0] (s): session_mode: exclusive needs a lease, which nothing asks for; "
         "name session \"s\" in routes[].session.session_id [P5]\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *block =
            rows[i].block == NULL
                ? gb_strdup("")
                : gb_asprintf(", session: {session_id: s, sender_id: q%s}", rows[i].block);
        assert_non_null(block);
        char *text = gb_asprintf(
            "bridge: {id: b, deployment_mode: standalone}\n"
            "stores: {lease: {type: dynamodb}, outbox: {type: dynamodb}, dlq: {type: dynamodb}, "
            "managed_subscriptions: {type: dynamodb}}\n"
            "sessions: [{id: s, transport: mqtt, session_mode: exclusive, options: {session: "
            "{broker_url: \"tcp://h\", client_id: c}}}]\n"
            "receivers: [{id: a, session_id: s, topics: [{topic: t, qos: 1}]}]\n"
            "senders: [{id: q, transport: sqs, options: {queue_name: out}}]\n"
            "bindings: [{id: out, sender_id: q, address: x%s}]\n"
            "routes: [{id: r, receiver_id: a, delivery_mode: shared_outbox, bindings: [out]%s}]\n",
            rows[i].binding, block);
        assert_non_null(text);
        char *got = said(text, nothing);
        assert_string_equal(got, rows[i].want);
        free(got);
        free(text);
        free(block);
    }
}

/* Spec 01 check 24: written and by default; and what makes it legal. */
static void http_ingress_of_an_exclusive_route(void **state)
{
    (void)state;
#define HTTP(mode, delivery)                                                                       \
    "bridge: {id: b, deployment_mode: " mode "}\n"                                                 \
    "stores: {lease: {type: dynamodb}, outbox: {type: dynamodb}, dlq: {type: dynamodb}, "          \
    "managed_subscriptions: {type: dynamodb}}\n"                                                   \
    "sessions: [{id: s, transport: mqtt, session_mode: exclusive, options: {session: "             \
    "{broker_url: \"tcp://h\", client_id: c}}}]\n"                                                 \
    "receivers: [{id: a, transport: http}]\n"                                                      \
    "senders: [{id: q, transport: sqs, options: {queue_name: out}}]\n"                             \
    "bindings: [{id: out, sender_id: q, address: x}]\n"                                            \
    "routes: [{id: r, receiver_id: a" delivery ", bindings: [out], session: {session_id: s, "      \
    "sender_id: q}}]\n"
#define REFUSED(how)                                                                               \
    "error: routes[0] (r): delivery_mode: direct_hold" how " is refused on an exclusive route "    \
    "with HTTP receiver \"a\", since old and new owner may both send; use shared_outbox [C6]\n"
    static const struct {
        const char *text, *want;
    } rows[] = {
        {HTTP("clustered", ", delivery_mode: direct_hold"), REFUSED("")},
        {HTTP("clustered", ""), REFUSED(" (the default)")},
        {HTTP("clustered", ", delivery_mode: shared_outbox"), NULL},
        {HTTP("standalone", ""), NULL},
        {HTTP("clustered", ", delivery_mode: direct"), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *got = said(rows[i].text, nothing);
        const char *want = rows[i].want == NULL ? "[C6]" : rows[i].want;
        if ((strstr(got, want) != NULL) != (rows[i].want != NULL)) fail_msg("%zu: %s", i, got);
        free(got);
    }
}

/* Spec 01 check 25, C8. */
static void stateless_routes_beside_an_exclusive_one(void **state)
{
    (void)state;
    char *base = read_text(DOCUMENTS "cluster.yaml");
    char *received = with_change(base, "senders:\n",
                                 "  - {id: copy-in, transport: sqs, options: {queue_name: in}}\n"
                                 "senders:\n");
    char *text = with_change(received, "routes:\n",
                             "routes:\n"
                             "  - {id: copy, receiver_id: copy-in, bindings: [to-sqs]}\n");
    char *got = said(text, cluster_draws);
    assert_string_equal(got, "[W1]\n");
    free(got);
    free(text);
    free(received);
    free(base);
}

static void cadence(void **state)
{
    (void)state;
    CLUSTER(cadence_rows);
}

static void objective(void **state)
{
    (void)state;
    CLUSTER(objective_rows);
}

static void owner(void **state)
{
    (void)state;
    CLUSTER(owner_rows);
}

static void cluster(void **state)
{
    (void)state;
    MIXED(cluster_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_8),
        cmocka_unit_test(cadence),
        cmocka_unit_test(objective),
        cmocka_unit_test(owner),
        cmocka_unit_test(cluster),
        cmocka_unit_test(users_of_a_session_agree_in_either_order),
        cmocka_unit_test(an_objective_is_judged_once),
        cmocka_unit_test(a_binding_names_a_session),
        cmocka_unit_test(http_ingress_of_an_exclusive_route),
        cmocka_unit_test(stateless_routes_beside_an_exclusive_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
