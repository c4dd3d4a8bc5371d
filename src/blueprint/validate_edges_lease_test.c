#include "blueprint/edge_rows.h"

/* Both sides of each bound of leases and clusters (rows that scripts/mutate.py asked for). */

#define CLUSTER "bridge: {id: x, deployment_mode: clustered}\n"
#define SESSIONS(keys) "sessions: [{id: s, transport: mqtt" keys "}]\n"

static const struct edge_row topic_rows[] = {
    {"plain topic",
     CLUSTER SESSIONS("") "receivers: [{id: r, session_id: s, topics: [{topic: t}]}]", GB_RULE_C2,
     "topics[0]", true},
    {"plain topic, alone", SESSIONS("") "receivers: [{id: r, session_id: s, topics: [{topic: t}]}]",
     GB_RULE_C2, "topics[0]", false},
    {"second topic",
     CLUSTER SESSIONS("") "receivers: [{id: r, session_id: s, topics: [{topic: $share/g/t}, "
                          "{topic: t}]}]",
     GB_RULE_C2, "topics[1]", true},
    {"exclusive",
     CLUSTER SESSIONS(", session_mode: exclusive") "receivers: [{id: r, session_id: s, topics: "
                                                   "[{topic: t}]}]",
     GB_RULE_C2, "topics[0]", false},
    {"unreadable mode",
     CLUSTER SESSIONS(", session_mode: bogus") "receivers: [{id: r, session_id: s, topics: "
                                               "[{topic: t}]}]",
     GB_RULE_C2, "topics[0]", false},
    {"SQS receiver on a session",
     CLUSTER SESSIONS("") "receivers: [{id: r, transport: sqs, session_id: s, topics: [{topic: "
                          "t}]}]",
     GB_RULE_C2, "topics[0]", false},
    {"no session", CLUSTER "receivers: [{id: r, transport: mqtt, topics: [{topic: t}]}]",
     GB_RULE_C2, "topics[0]", false},
    {"shared under one client_id",
     CLUSTER SESSIONS("") "receivers: [{id: r, session_id: s, topics: [{topic: $share/g/t}]}]",
     GB_RULE_C4, "client_id", true},
    {"shared under many",
     CLUSTER SESSIONS(", options: {session: {client_id_suffix: nonce}}") "receivers: [{id: r, "
                                                                         "session_id: s, topics: "
                                                                         "[{topic: $share/g/t}]}]",
     GB_RULE_C4, "client_id", false},
    {"unreadable suffix",
     CLUSTER SESSIONS(", options: {session: {client_id_suffix: bogus}}") "receivers: [{id: r, "
                                                                         "session_id: s, topics: "
                                                                         "[{topic: $share/g/t}]}]",
     GB_RULE_C4, "client_id", false},
};

static const struct edge_row owner_rows[] = {
    {"HTTP beside a session block",
     CLUSTER SESSIONS("") "receivers: [{id: r, transport: http}]\n"
                          "routes: [{id: q, receiver_id: r, session: {session_id: s}}]",
     GB_RULE_C6, "direct_hold", true},
    {"HTTP without",
     CLUSTER "receivers: [{id: r, transport: http}]\nroutes: [{id: q, receiver_id: r}]", GB_RULE_C6,
     "direct_hold", false},
    {"HTTP on an exclusive session",
     CLUSTER SESSIONS(", session_mode: exclusive") "receivers: [{id: r, transport: http, "
                                                   "session_id: s}]\n"
                                                   "routes: [{id: q, receiver_id: r}]",
     GB_RULE_C6, "direct_hold", true},
    {"HTTP on another session",
     CLUSTER SESSIONS("") "receivers: [{id: r, transport: http, session_id: s}]\n"
                          "routes: [{id: q, receiver_id: r}]",
     GB_RULE_C6, "direct_hold", false},
    {"SQS beside a session block",
     CLUSTER SESSIONS("") "receivers: [{id: r, transport: sqs}]\n"
                          "routes: [{id: q, receiver_id: r, session: {session_id: s}}]",
     GB_RULE_C6, "direct_hold", false},
    {"unknown receiver", CLUSTER "routes: [{id: q, receiver_id: r, session: {session_id: s}}]",
     GB_RULE_C6, "direct_hold", false},
    {"unreadable delivery mode",
     CLUSTER "receivers: [{id: r, transport: http}]\n"
             "routes: [{id: q, receiver_id: r, delivery_mode: bogus, session: {session_id: s}}]",
     GB_RULE_C6, "direct_hold", false},
    {"outbox",
     CLUSTER "receivers: [{id: r, transport: http}]\n"
             "routes: [{id: q, receiver_id: r, delivery_mode: shared_outbox, session: {session_id: "
             "s}}]",
     GB_RULE_C6, "direct_hold", false},
};

#define DRAINED(sender, binding, route)                                                            \
    CLUSTER "senders: [{id: o, transport: sqs" sender "}]\n"                                       \
            "bindings: [{id: b, sender_id: o" binding "}]\n"                                       \
            "routes: [{id: q, delivery_mode: shared_outbox, bindings: [b]" route "}]"

static const struct edge_row partition_rows[] = {
    {"nobody drains", DRAINED("", "", ""), GB_RULE_C9, "bindings[0]", true},
    {"unknown session of the sender", DRAINED(", session_id: n", "", ""), GB_RULE_C9, "bindings[0]",
     false},
    {"unknown session of the binding", DRAINED("", ", session_id: n", ""), GB_RULE_C9,
     "bindings[0]", false},
    {"unknown session of the route", DRAINED("", "", ", session: {session_id: n}"), GB_RULE_C9,
     "bindings[0]", false},
    {"unknown sender",
     CLUSTER "bindings: [{id: b, sender_id: n}]\n"
             "routes: [{id: q, delivery_mode: shared_outbox, bindings: [b]}]",
     GB_RULE_C9, "bindings[0]", true},
    {"direct",
     CLUSTER "bindings: [{id: b, sender_id: n}]\n"
             "routes: [{id: q, delivery_mode: direct_hold, bindings: [b]}]",
     GB_RULE_C9, "bindings[0]", false},
};

#define LEASED(mode, options, block)                                                               \
    "stores: {lease: {type: sqlite, options: {path: /l}}}\n"                                       \
    "sessions: [{id: s, transport: mqtt, session_mode: " mode                                      \
    ", options: {session: {client_id: c, " options "}}}]\n"                                        \
    "receivers: [{id: i, session_id: s}]\n"                                                        \
    "routes: [{id: r, receiver_id: i, session: {session_id: s, " block "}}]"

static const struct edge_row activation_rows[] = {
    {"too short to connect", LEASED("exclusive", "", "lease_ttl: 40s"), GB_RULE_W2, "lease_ttl",
     true},
    {"as long as connecting",
     LEASED("exclusive", "", "lease_ttl: 75s, renew_interval: 10s, renew_call_timeout: 5s"),
     GB_RULE_W2, "lease_ttl", true},
    {"1ns longer",
     LEASED("exclusive", "",
            "lease_ttl: 75000000001ns, renew_interval: 10s, renew_call_timeout: 5s"),
     GB_RULE_W2, "lease_ttl", false},
    {"unreadable mode", LEASED("bogus", "", "lease_ttl: 40s"), GB_RULE_W2, "lease_ttl", false},
    {"unreadable connect_timeout", LEASED("exclusive", "connect_timeout: x", "lease_ttl: 40s"),
     GB_RULE_W2, "lease_ttl", false},
    {"unreadable reconcile_timeout", LEASED("exclusive", "reconcile_timeout: x", "lease_ttl: 40s"),
     GB_RULE_W2, "lease_ttl", false},
    {"unreadable unmatched_grace", LEASED("exclusive", "unmatched_grace: x", "lease_ttl: 40s"),
     GB_RULE_W2, "lease_ttl", false},
};

#define OBJECTIVE(keys)                                                                            \
    LEASED("exclusive", "", "failover_slo: 1s, broker_health_step_down: off, " keys)

static const struct edge_row objective_rows[] = {
    {"shortest ttl", OBJECTIVE("lease_ttl: 5s"), GB_RULE_P1, "failover_slo", true},
    {"shorter ttl", OBJECTIVE("lease_ttl: 4999999999ns"), GB_RULE_P1, "failover_slo", false},
    {"shortest renewal", OBJECTIVE("renew_interval: 250ms"), GB_RULE_P1, "failover_slo", true},
    {"shorter renewal", OBJECTIVE("renew_interval: 249999999ns"), GB_RULE_P1, "failover_slo",
     false},
    {"shortest poll", OBJECTIVE("acquire_poll_interval: 250ms"), GB_RULE_P1, "failover_slo", true},
    {"shorter poll", OBJECTIVE("acquire_poll_interval: 249999999ns"), GB_RULE_P1, "failover_slo",
     false},
    {"interval cut", LEASED("exclusive", "", "lease_ttl: 10s, renew_interval: 3s"), GB_RULE_V40,
     "renew_interval 3s to ", true},
    {"only the call cut",
     LEASED("exclusive", "", "lease_ttl: 10s, renew_interval: 1ms, renew_call_timeout: 4s"),
     GB_RULE_V40, "renew_call_timeout 4s to 2.999s", true},
    {"startup of 1ns", OBJECTIVE("startup_allowance: 1ns"), GB_RULE_P1, "startup 1ns", true},
    {"no startup", OBJECTIVE("startup_allowance: 0s"), GB_RULE_P1, "startup", false},
    {"stepping down in 1ns",
     LEASED("exclusive", "", "failover_slo: 1s, broker_health_step_down: 1ns"), GB_RULE_P2,
     "failover_slo", true},
    {"call cut",
     LEASED("exclusive", "", "lease_ttl: 10s, renew_interval: 1s, renew_call_timeout: 4s"),
     GB_RULE_V40, "renew_call_timeout 4s to ", true},
};

#define TWO(store, mode, first, second)                                                            \
    store "sessions: [{id: s, transport: mqtt, session_mode: " mode "}]\n"                         \
          "routes: [{id: a, session: {session_id: s, " first "}}, {id: b, session: {session_id: "  \
          "s, " second "}}]"
#define LEASES "stores: {lease: {type: sqlite, options: {path: /l}}}\n"

static const struct edge_row agreement_rows[] = {
    {"1ns and off",
     TWO(LEASES, "exclusive", "broker_health_step_down: 1ns", "broker_health_step_down: off"),
     GB_RULE_P3, "1ns and off", true},
    {"nothing and off", TWO(LEASES, "exclusive", "", "broker_health_step_down: off"), GB_RULE_P3,
     "nothing and off", true},
    {"exclusive, nobody uses it",
     "sessions: [{id: s, transport: mqtt, session_mode: exclusive, options: {session: {broker_url: "
     "a, client_id: c}}}]",
     GB_RULE_P5, "session_mode", false},
    {"exclusive, used without a lease",
     "sessions: [{id: s, transport: mqtt, session_mode: exclusive, options: {session: {broker_url: "
     "a, client_id: c}}}]\n"
     "receivers: [{id: i, session_id: s}]\n"
     "senders: [{id: o, transport: sqs, options: {queue_name: q}}]\n"
     "bindings: [{id: b, sender_id: o, address: a}]\n"
     "routes: [{id: r, receiver_id: i, bindings: [b]}]",
     GB_RULE_P5, "session_mode", true},
    {"equal", TWO(LEASES, "exclusive", "lease_ttl: 60s", "lease_ttl: 1m"), GB_RULE_P3, "differ",
     false},
    {"not leased", TWO("", "persistent", "lease_ttl: 60s", "lease_ttl: 61s"), GB_RULE_P3, "differ",
     false},
    {"leased", TWO(LEASES, "persistent", "lease_ttl: 60s", "lease_ttl: 61s"), GB_RULE_P3, "differ",
     true},
    {"first unread", TWO(LEASES, "exclusive", "lease_ttl: x", "lease_ttl: 61s"), GB_RULE_P3,
     "differ", false},
    {"second unread", TWO(LEASES, "exclusive", "lease_ttl: 61s", "lease_ttl: x"), GB_RULE_P3,
     "differ", false},
};

static void clusters(void **state)
{
    (void)state;
    EDGES(topic_rows);
    EDGES(owner_rows);
    EDGES(partition_rows);
}

static void leases(void **state)
{
    (void)state;
    EDGES(activation_rows);
    EDGES(objective_rows);
    EDGES(agreement_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters),
        cmocka_unit_test(leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
