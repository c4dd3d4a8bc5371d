#include "blueprint/rule_rows.h"

static const struct rule_row routes_rows[] = {
    {"01 row 14, unknown receiver", "receiver_id: telemetry-in", "receiver_id: in",
     "receiver_id \"in\" not found in receivers"},
    {"unknown binding", "bindings: [to-sqs]", "bindings: [to]",
     "bindings[0] \"to\" not found in bindings"},
    {"no binding", "bindings: [to-sqs]", "bindings: []", "needs at least one binding"},
    {"bindings missing", "    bindings: [to-sqs]\n", "", "needs at least one binding"},
    {"binding twice", "bindings: [to-sqs]", "bindings: [to-sqs, to-sqs]",
     "bindings[1] \"to-sqs\" is listed twice"},
    {"02 check 10, delivery", "delivery_mode: shared_outbox", "delivery_mode: drop",
     "must be one of: direct_hold, shared_outbox"},
    {"dispatch", "bindings: [to-sqs]", "bindings: [to-sqs]\n    dispatch_mode: fan_out", NULL},
    {"unknown dispatch", "bindings: [to-sqs]", "bindings: [to-sqs]\n    dispatch_mode: all",
     "must be one of: single, fan_out"},
    {"01 row 23", "    policy: {}\n", "    policy: {ack_after: target_accept}\n",
     "ack_after: target_accept is refused with shared_outbox"},
    {"explicit ack", "    policy: {}\n", "    policy: {ack_after: outbox_persist}\n", NULL},
    {"02 check 10, multiplier", "    policy: {}\n", "    policy: {backoff: {multiplier: 0.5}}\n",
     "policy.backoff.multiplier 0.5 is out of range"},
    {"01 row 21, jitter", "    policy: {}\n", "    policy: {backoff: {jitter: 20}}\n",
     "policy.backoff.jitter 20 is out of range; must be 0..1"},
    {"01 row 21, no jitter", "    policy: {}\n", "    policy: {backoff: {jitter: 0}}\n", NULL},
    {"not a number", "    policy: {}\n", "    policy: {backoff: {jitter: .nan}}\n",
     "must be a number"},
    {"02 check 10, negative", "    policy: {}\n",
     "    policy: {backoff: {initial_interval: -1s}}\n",
     "policy.backoff.initial_interval \"-1s\" must not be negative"},
    {"backoff upside down", "    policy: {}\n", "    policy: {backoff: {initial_interval: 1m}}\n",
     "warning: routes[0] (ingest): policy.backoff.max_interval is less"},
    {"negative in flight", "    policy: {}\n", "    policy: {max_in_flight: -1}\n",
     "policy.max_in_flight -1 is out of range"},
    {"default in flight", "    policy: {}\n", "    policy: {max_in_flight: 0}\n", NULL},
    {"zero send timeout", "    policy: {}\n", "    policy: {send_timeout: 0s}\n",
     "policy.send_timeout \"0s\" must be greater than zero"},
    {"retry budget off", "    policy: {}\n", "    policy: {send_retry_budget: 0s}\n", NULL},
    {"unknown action", "    policy: {}\n", "    policy: {on_expired: keep}\n",
     "must be one of: drop, dlq"},
    {"on_expired dlq", "    policy: {}\n", "    policy: {on_expired: dlq, on_filtered: dlq}\n",
     NULL},
    {"unknown policy key", "    policy: {}\n", "    policy: {send_time: 1s}\n",
     "unknown key \"policy.send_time\"; did you mean \"send_timeout\"?"},
    {"processors", "    policy: {}\n",
     "    policy: {}\n"
     "    processors: [f]\n"
     "processors: {f: {type: filter}}\n",
     "processors is not supported yet"},
    {"01 row 38, undefined processor", "    policy: {}\n",
     "    policy: {}\n"
     "    processors: [f]\n",
     "processors[0] \"f\" not found in processors"},
    {"01 row 38, unknown type", "    policy: {}\n",
     "    policy: {}\n"
     "processors: {f: {type: magic}}\n",
     "processors.f.type \"magic\" is invalid"},
    {"01 row 38, unknown key", "    policy: {}\n",
     "    policy: {}\n"
     "processors: {f: {type: filter, config: {conditons: []}}}\n",
     "unknown key \"processors.f.config.conditons\"; did you mean \"conditions\"?"},
    {"01 row 38, unused", "    policy: {}\n",
     "    policy: {}\n"
     "processors: {f: {type: filter, config: {max_payload_bytes: 9, routeTo: x}}}\n",
     "warning: processors.f is listed by no route"},
    {"tenant config", "    policy: {}\n",
     "    policy: {}\n"
     "processors: {t: {type: tenant, config: {tenants: {a: {maxInFlight: -1}}}}}\n",
     "processors.t.config.tenants.a.maxInFlight -1 is out of range"},
    {"processor name", "    policy: {}\n",
     "    policy: {}\n"
     "processors: {\"a b\": {type: filter}}\n",
     "must match [A-Za-z0-9._-]{1,64}"},
    {"01 P12, second route", "    policy: {}\n",
     "    policy: {}\n"
     "  - {id: again, receiver_id: telemetry-in, delivery_mode: shared_outbox, bindings: "
     "[to-sqs]}\n",
     "already feeds route \"ingest\""},
    {"P9, QoS 0 with DLQ", "qos: 1", "qos: 0", NULL},
};

static void routes(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", routes_rows);
}

static const struct rule_row resolvers_rows[] = {
    {"bad resolver type", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: random}\n",
     "resolver.type \"random\" is invalid; must be one of: rules, header_map, all, static"},
    {"static resolver", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: static}\n",
     NULL},
    {"resolver all", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: all}\n",
     NULL},
    {"resolver rules", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, default_binding: to-sqs}\n",
     "resolver.type: rules is not supported yet"},
    {"resolver header_map", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: header_map, header_key: k, header_map: {a: to-sqs}}\n",
     "resolver.type: header_map is not supported yet"},
    {"01 row 26, foreign default", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, default_binding: x}\n",
     "resolver.default_binding \"x\" not found in route bindings"},
    {"01 row 26, foreign value", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: header_map, header_key: k, header_map: {a: x}}\n",
     "resolver.header_map.a \"x\" not found in route bindings"},
    {"01 row 26, no key", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: header_map, header_map: {a: to-sqs}}\n",
     "resolver.header_key is required"},
    {"01 row 26, nothing to choose", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules}\n",
     "needs a rule or a default_binding"},
    {"01 row 26, operator", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, rules: [{binding_id: to-sqs, match: [{field: a, operator: like, "
     "value: b}]}]}\n",
     "resolver.rules[0].match[0].operator \"like\" is invalid"},
    {"01 row 26, foreign rule", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, rules: [{binding_id: to-sqs}, {binding_id: x}]}\n",
     "resolver.rules[1].binding_id \"x\" not found in route bindings"},
    {"01 row 26, number", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, rules: [{binding_id: to-sqs, match: [{field: a, operator: gt, "
     "value: b}]}]}\n",
     "resolver.rules[0].match[0].value must be a number"},
    {"01 row 26, list", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, rules: [{binding_id: to-sqs, match: [{field: a, operator: in, "
     "value: b}]}]}\n",
     "value must be a list"},
    {"01 row 26, no value", "    policy: {}\n",
     "    policy: {}\n"
     "    resolver: {type: rules, rules: [{binding_id: to-sqs, match: [{field: a, operator: "
     "eq}]}]}\n",
     "value must be written"},
    {"01 V7, empty header_map", "    policy: {}\n",
     "    policy: {}\n    resolver: {type: header_map, header_key: k, header_map: {}}\n",
     "resolver.header_map needs at least one entry"},
};

static void resolvers(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", resolvers_rows);
}

static const struct rule_row direct_routes_rows[] = {
    {"01 W1", "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {on_expired: drop, on_permanent_failure: drop}\n",
     "warning: routes[0] (alarms): direct_hold has no fencing"},
    {"01 W4", "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true}\n",
     "warning: routes[0] (alarms): expired and refused messages are dropped"},
    {"01 V25", "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: dlq}\n",
     "policy.on_expired: dlq requires stores.dlq"},
    {"01 V26", "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop, ack_after: "
     "outbox_persist}\n",
     "outbox_persist is refused with direct_hold"},
    {"01 V27, 02 check 10",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n"
     "    dispatch_mode: fan_out\n",
     "fan_out is refused with direct_hold"},
    {"01 V27, all",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n"
     "    resolver: {type: all}\n",
     "resolver.type: all is refused with direct_hold"},
    {"01 V27, exclusive target", "{id: centre, transport: mqtt,",
     "{id: centre, transport: mqtt, session_mode: exclusive,", "runs on an exclusive session"},
    {"01 P11, at the deadline",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop, "
     "send_retry_budget: 210s}\n",
     NULL},
    {"01 P11, above",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop, "
     "send_retry_budget: 210s1ns}\n",
     "policy.send_retry_budget + policy.send_timeout is 4m0.000000001s and must not exceed 4m0s"},
    {"01 P11, short timings", "client_id: c}}}\n  - {id: centre",
     "client_id: c, connect_timeout: 10s, reconcile_timeout: 10s, unmatched_grace: 5s}}}\n  - {id: "
     "centre",
     "must not exceed 1m10s"},
    {"03 check 34", "session_mode: persistent, ", "", "the source does not redeliver"},
    {"01 P9, clean start", "client_id: c}}}\n  - {id: centre",
     "client_id: c, clean_start: true}}}\n  - {id: centre", "the source does not redeliver"},
    {"03 check 34, QoS 0 without DLQ", "qos: 1", "qos: 0", "cannot redeliver (a QoS 0 topic)"},
    {"01 P9, loss accepted",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop}\n",
     "    policy: {allow_unfenced: true, on_expired: drop, on_permanent_failure: drop, "
     "allow_retry_drop: true}\n",
     NULL},
    {"01 P9, outbox to QoS 0 sender", "{id: out, session_id: centre}",
     "{id: out, session_id: centre, options: {sender: {qos: 0}}}", NULL},
    {"sender with foreign options", "{id: out, session_id: centre}",
     "{id: out, session_id: centre, options: {qos: 0}}", "unknown key \"options.qos\""},
    {"default topic", "{id: out, session_id: centre}",
     "{id: out, session_id: centre, options: {sender: {default_topic: a/#}}}",
     "options.sender.default_topic: "},
    {"literal target with wildcard", "x/{device}", "x/#", "address: "},
    {"literal target", "x/{device}", "x/y", NULL},
    {"01 W3, same session",
     "  - {id: out, session_id: centre}\n"
     "bindings:\n"
     "  - {id: to, sender_id: out, address: \"x/{device}\"}",
     "  - {id: out, session_id: edge}\n"
     "  - {id: spare, session_id: centre}\n"
     "bindings:\n"
     "  - {id: to, sender_id: out, address: \"alarms/a\"}\n"
     "  - {id: to2, sender_id: spare, address: y}",
     "warning: bindings[0] (to): address \"alarms/a\" is subscribed"},
    {"01 W5, several bindings",
     "\"x/{device}\"}\n"
     "routes:\n"
     "  - id: alarms\n"
     "    receiver_id: in\n"
     "    bindings: [to]",
     "\"x/{device}\"}\n"
     "  - {id: to2, sender_id: out, address: y}\n"
     "routes:\n"
     "  - id: alarms\n"
     "    receiver_id: in\n"
     "    bindings: [to, to2]",
     "warning: routes[0] (alarms): only the first binding is used"},
    {"01 P9, outbox to a QoS 0 sender",
     "{id: out, session_id: centre}\n"
     "bindings:\n"
     "  - {id: to, sender_id: out, address: \"x/{device}\"}\n"
     "routes:\n"
     "  - id: alarms\n",
     "{id: out, session_id: centre, options: {sender: {qos: 0}}}\n"
     "bindings:\n"
     "  - {id: to, sender_id: out, address: \"x/{device}\"}\n"
     "routes:\n"
     "  - id: alarms\n"
     "    delivery_mode: shared_outbox\n",
     "shared_outbox to an MQTT sender with qos: 0"},
};

static void direct_routes(void **state)
{
    (void)state;
    RULES(DOCUMENTS "direct.yaml", direct_routes_rows);
}

/* Spec 03 check 34: what a session that does not resume may feed without an outbox. */
static void direct_hold_of_an_ephemeral_session(void **state)
{
    (void)state;
    static const struct direct_row {
        int qos;
        bool dlq;
        const char *want; /* "": accepted */
    } rows[] = {
        {0, true, ""},
        {0, false, "cannot redeliver"},
        {1, true, "the source does not redeliver"},
        {2, true, "the source does not redeliver"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = gb_asprintf(
            "bridge: {id: edge}\n%s"
            "sessions:\n"
            "  - {id: edge, transport: mqtt, session_mode: ephemeral, options: {session: "
            "{broker_url: \"tcp://a\", client_id: c}}}\n"
            "receivers: [{id: in, session_id: edge, topics: [{topic: \"alarms/+\", qos: %d}]}]\n"
            "senders: [{id: out, transport: sqs, options: {queue_url: "
            "\"https://sqs.eu-central-1.amazonaws.com/123456789012/q\"}}]\n"
            "bindings: [{id: to, sender_id: out, address: q}]\n"
            "routes: [{id: alarms, receiver_id: in, bindings: [to], policy: {allow_unfenced: true%s"
            "}}]\n",
            rows[i].dlq
                ? "stores: {dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}}\n"
                : "",
            rows[i].qos, rows[i].dlq ? "" : ", on_expired: drop, on_permanent_failure: drop");
        struct gb_err err;
        char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
        if (strstr(said, rows[i].want) == NULL || (said[0] == '\0') != (rows[i].want[0] == '\0'))
            fail_msg("QoS %d, DLQ %d: %s", rows[i].qos, rows[i].dlq, said);
        free(said);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),
        cmocka_unit_test(resolvers),
        cmocka_unit_test(direct_routes),
        cmocka_unit_test(direct_hold_of_an_ephemeral_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
