#include "blueprint/edge_rows.h"

/* Where the decoder has refused a key, no rule speaks about the default that stands in its place:
 * a row per key of each rule, beside one that shows that the rule would speak. */

#define ROUTE(keys) "routes: [{id: r, receiver_id: i, " keys "}]"
#define MQTT(mode, options, route)                                                                 \
    "sessions: [{id: s, transport: mqtt" mode ", options: {session: {client_id: c, " options       \
    "}}}]\n"                                                                                       \
    "receivers: [{id: i, session_id: s, topics: [{topic: t, qos: 1}]}]\n" ROUTE(route)
#define MEMORY(options, policy)                                                                    \
    MQTT("", "ingress_memory_budget_bytes: 1, " options, "policy: {" policy "}")
#define SQS(options, route)                                                                        \
    "receivers: [{id: i, transport: sqs, options: {queue_name: q, " options "}}]\n" ROUTE(route)

static const struct edge_row memory_rows[] = {
    {"too little", MEMORY("", ""), GB_RULE_P7, "policy", true},
    {"budget", MQTT("", "ingress_memory_budget_bytes: x", "policy: {max_in_flight: 1000000}"),
     GB_RULE_P7, "policy", false},
    {"payload", MEMORY("max_payload_bytes: x", ""), GB_RULE_P7, "policy", false},
    {"receive maximum", MEMORY("receive_maximum: x", ""), GB_RULE_P7, "policy", false},
    {"in flight", MEMORY("", "max_in_flight: x"), GB_RULE_P7, "policy", false},
};

static const struct edge_row redelivery_rows[] = {
    {"ephemeral", MQTT("", "", ""), GB_RULE_P9, "does not resume", true},
    {"mode", MQTT(", session_mode: x", "", ""), GB_RULE_P9, "does not resume", false},
    {"clean start", MQTT("", "clean_start: x", ""), GB_RULE_P9, "does not resume", false},
    {"delivery", MQTT("", "", "delivery_mode: x"), GB_RULE_P9, "does not resume", false},
    {"allowed", MQTT("", "", "policy: {allow_retry_drop: x}"), GB_RULE_P9, "stores.dlq", false},
    {"policy", MQTT("", "", "policy: x"), GB_RULE_P9, "stores.dlq", false},
    {"no policy", MQTT("", "", ""), GB_RULE_P9, "stores.dlq", true},
};

#define RECOVERY(options, policy)                                                                  \
    MQTT(", session_mode: persistent", options, "policy: {send_timeout: 999s, " policy "}")

static const struct edge_row recovery_rows[] = {
    {"too long", RECOVERY("", ""), GB_RULE_P11, "recovery", true},
    {"connect", RECOVERY("connect_timeout: x", ""), GB_RULE_P11, "recovery", false},
    {"reconcile", RECOVERY("reconcile_timeout: x", ""), GB_RULE_P11, "recovery", false},
    {"grace", RECOVERY("unmatched_grace: x", ""), GB_RULE_P11, "recovery", false},
    {"retry budget", RECOVERY("", "send_retry_budget: x"), GB_RULE_P11, "recovery", false},
};

#define SLOW "auto_extend: false, visibility_timeout: 30"

static const struct edge_row visibility_rows[] = {
    {"too long", SQS(SLOW, ""), GB_RULE_P11, "visibility_timeout", true},
    {"extend", SQS("auto_extend: x, visibility_timeout: 1", ""), GB_RULE_P11, "visibility_timeout",
     false},
    {"visibility", SQS("auto_extend: false, visibility_timeout: x", ""), GB_RULE_P11,
     "visibility_timeout", false},
    {"delivery", SQS(SLOW, "delivery_mode: x"), GB_RULE_P11, "visibility_timeout", false},
    {"processors", SQS(SLOW, "processors: x"), GB_RULE_P11, "visibility_timeout", false},
    {"processor timeout", SQS(SLOW, "policy: {processor_timeout: x}"), GB_RULE_P11,
     "visibility_timeout", false},
    {"retry budget", SQS(SLOW, "policy: {send_retry_budget: x}"), GB_RULE_P11, "visibility_timeout",
     false},
    {"send timeout", SQS(SLOW, "policy: {send_timeout: x}"), GB_RULE_P11, "visibility_timeout",
     false},
    {"an outbox takes no retries",
     SQS("auto_extend: false, visibility_timeout: 40",
         "delivery_mode: shared_outbox, policy: {send_timeout: 19999999999ns}"),
     GB_RULE_P11, "visibility_timeout", false},
    {"an outbox, to the nanosecond",
     SQS("auto_extend: false, visibility_timeout: 30",
         "delivery_mode: shared_outbox, policy: {send_timeout: 20s}"),
     GB_RULE_P11, "may take", false},
    {"an outbox, one more",
     SQS("auto_extend: false, visibility_timeout: 30",
         "delivery_mode: shared_outbox, policy: {send_timeout: 20000000001ns}"),
     GB_RULE_P11, "may take", true},
    {"half the window",
     SQS("auto_extend: false, visibility_timeout: 40",
         "delivery_mode: shared_outbox, policy: {send_timeout: 20s}"),
     GB_RULE_P11, "less than half", true},
};

#define SESSION(keys) ROUTE("session: {" keys "}")
#define STRATEGY(keys) SESSION("drain_strategy: {type: adaptive_backoff, " keys "}")
#define CLUSTER(keys, cluster)                                                                     \
    "bridge: {id: x, " keys " cluster: {rollout: coordinated, " cluster "}}"

static const struct edge_row route_rows[] = {
    {"intervals", STRATEGY("min_interval: 31s"), GB_RULE_V2, "less than", true},
    {"longest", STRATEGY("min_interval: 31s, max_interval: x"), GB_RULE_V2, "less than", false},
    {"shortest", STRATEGY("min_interval: x, max_interval: 1ns"), GB_RULE_V2, "less than", false},
    {"batches", SESSION("drain_batch_size: 501"), GB_RULE_V2, "less than", true},
    {"largest batch", SESSION("drain_batch_size: 501, drain_max_batch_size: x"), GB_RULE_V2,
     "less than", false},
    {"batch", SESSION("drain_batch_size: x, drain_max_batch_size: 99"), GB_RULE_V2, "less than",
     false},
    {"a block that is no map", ROUTE("session: x"), GB_RULE_V5, "session", false},
    {"rollout alone", CLUSTER("", ""), GB_RULE_C7, "clustered", true},
    {"mode", CLUSTER("deployment_mode: x,", ""), GB_RULE_C7, "deployment_mode: clustered", false},
    {"endpoints", CLUSTER("", "endpoints: x"), GB_RULE_C7, "deployment_mode: clustered", false},
    {"equal backoff", ROUTE("policy: {backoff: {initial_interval: 30s}}"), GB_RULE_W5, "backoff",
     false},
    {"longer backoff", ROUTE("policy: {backoff: {initial_interval: 31s}}"), GB_RULE_W5, "backoff",
     true},
    {"longest backoff", ROUTE("policy: {backoff: {initial_interval: 31s, max_interval: x}}"),
     GB_RULE_W5, "backoff", false},
    {"first backoff", ROUTE("policy: {backoff: {initial_interval: x, max_interval: 1ns}}"),
     GB_RULE_W5, "backoff", false},
    {"two bindings", ROUTE("bindings: [a, b]"), GB_RULE_W5, "bindings", true},
    {"two bindings, unread mode", ROUTE("dispatch_mode: x, bindings: [a, b]"), GB_RULE_W5,
     "bindings", false},
    {"last action", ROUTE("policy: {on_filtered: dlq}"), GB_RULE_V25, "on_filtered", true},
    {"resolver that is no map", ROUTE("resolver: x"), GB_RULE_V7, "resolver", false},
    {"rules that are no list", ROUTE("resolver: {type: rules, rules: x}"), GB_RULE_V7,
     "needs a rule", false},
    {"rules of nothing", ROUTE("resolver: {type: rules, rules: }"), GB_RULE_V7, "needs a rule",
     true},
    {"no rules", ROUTE("resolver: {type: rules}"), GB_RULE_V7, "needs a rule", true},
    {"first of two conditions",
     ROUTE("resolver: {type: rules, rules: [{binding_id: b, match: [{field: $x, operator: eq, "
           "value: 1}]}, {binding_id: b}]}"),
     GB_RULE_V7, "rules[0].match[0].field", true},
    {"unknown processor", ROUTE("processors: [p]"), GB_RULE_P8, "not found", true},
    {"empty name of a processor", ROUTE("processors: [\"\"]"), GB_RULE_P8, "not found", false},
    {"processors that are no map", "processors: x\n" ROUTE("processors: [p]"), GB_RULE_P8,
     "not found", false},
    {"no topics",
     "sessions: [{id: s, transport: mqtt, session_mode: persistent}]\n"
     "receivers: [{id: i, session_id: s, topics: []}]",
     GB_RULE_V22, "session_mode", false},
    {"a topic",
     "sessions: [{id: s, transport: mqtt, session_mode: persistent}]\n"
     "receivers: [{id: i, session_id: s, topics: [{topic: t}]}]",
     GB_RULE_V22, "session_mode", true},
};

#define STALE(value, route)                                                                        \
    "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: " value "}}}\n"     \
    "routes: [{id: q}, {id: r, delivery_mode: shared_outbox, " route "}, {id: t}]"

static const struct edge_row store_rows[] = {
    {"too short", STALE("1s", ""), GB_RULE_V31, "stale_claim", true},
    {"send timeout", STALE("1s", "policy: {send_timeout: x}"), GB_RULE_V31, "stale_claim", false},
    {"grace", STALE("1s", "session: {step_down_grace: x}"), GB_RULE_V31, "stale_claim", false},
    {"policy that is no map", STALE("1s", "policy: x"), GB_RULE_V31, "stale_claim", false},
    {"session that is no map", STALE("1s", "session: x"), GB_RULE_V31, "stale_claim", false},
    {"no outbox, no batch",
     "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: 1ns}}}\n"
     "routes: [{id: r}]",
     GB_RULE_V32, "stale_claim", false},
    {"of a direct route",
     "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: 1s}}}\n"
     "routes: [{id: q, policy: {send_timeout: x}}, {id: r, delivery_mode: shared_outbox}]",
     GB_RULE_V31, "stale_claim", true},
    {"only route",
     "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: 1s}}}\n"
     "routes: [{id: r, delivery_mode: shared_outbox, policy: {send_timeout: x}}]",
     GB_RULE_V31, "stale_claim", false},
    {"no outbox",
     "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: 1ns}}}\n"
     "routes: [{id: r}]",
     GB_RULE_V31, "stale_claim", false},
    {"local store", "bridge: {deployment_mode: clustered}\nstores: {outbox: {type: memory}}",
     GB_RULE_C1, "outbox", true},
    {"type", "bridge: {deployment_mode: clustered}\nstores: {outbox: {type: x}}", GB_RULE_C1,
     "outbox", false},
    {"no type", "bridge: {deployment_mode: clustered}\nstores: {outbox: {}}", GB_RULE_C1, "outbox",
     false},
};

/* `version: x` is refused, so that sections are asked whether all of their ids were read. */
#define MISSING(senders) "version: x\nbindings: [{id: b, sender_id: s}]\nsenders: " senders

static const struct edge_row missing_rows[] = {
    {"another id", MISSING("[{id: a}]"), GB_RULE_V5, "sender_id", true},
    {"a text in quotes", MISSING("[{id: \"5\"}]"), GB_RULE_V5, "sender_id", true},
    {"no id", MISSING("[{transport: sqs}]"), GB_RULE_V5, "sender_id", true},
    {"id of nothing", MISSING("[{id: }]"), GB_RULE_V5, "sender_id", true},
    {"nothing", MISSING(""), GB_RULE_V5, "sender_id", true},
    {"an empty list", MISSING("[]"), GB_RULE_V5, "sender_id", true},
    {"a number", MISSING("[{id: 5}]"), GB_RULE_V5, "sender_id", false},
    {"a list as id", MISSING("[{id: [s]}]"), GB_RULE_V5, "sender_id", false},
    {"a number behind", MISSING("[{id: a}, {id: 5}]"), GB_RULE_V5, "sender_id", false},
    {"no entry", MISSING("[s]"), GB_RULE_V5, "sender_id", false},
    {"no list", MISSING("s"), GB_RULE_V5, "sender_id", false},
};

static void sections_of_ten_thousand(void **state)
{
    (void)state;
    for (int count = 10000; count <= 10001; count++) {
        struct gb_str s = {0};
        gb_str_append_c(&s, MISSING("\n"));
        for (int i = 0; i < count; i++) gb_str_appendf(&s, "- {id: a%d, transport: http}\n", i);
        const struct edge_row row = {"ids", s.data, GB_RULE_V5, "sender_id", count == 10000};
        check_edges(&row, 1);
        gb_str_deinit(&s);
    }
}

static void references(void **state)
{
    (void)state;
    EDGES(missing_rows);
}

static void sources(void **state)
{
    (void)state;
    EDGES(memory_rows);
    EDGES(redelivery_rows);
    EDGES(recovery_rows);
    EDGES(visibility_rows);
}

static void routes_and_stores(void **state)
{
    (void)state;
    EDGES(route_rows);
    EDGES(store_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references),
        cmocka_unit_test(sections_of_ten_thousand),
        cmocka_unit_test(sources),
        cmocka_unit_test(routes_and_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
