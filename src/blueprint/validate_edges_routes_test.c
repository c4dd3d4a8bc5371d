#include "blueprint/edge_rows.h"

/* Both sides of each bound of sessions, routes and stores (rows that scripts/mutate.py asked
 * for). */

#define SESSION(options) "sessions: [{id: s, transport: mqtt, options: {session: {" options "}}}]"

static const struct edge_row mqtt_rows[] = {
    {"largest payload", SESSION("max_payload_bytes: 268304383"), GB_RULE_M6, "max_payload", false},
    {"one byte more", SESSION("max_payload_bytes: 268304384"), GB_RULE_M6, "max_payload", true},
    {"longest client_id", SESSION("client_id: @65535@"), GB_RULE_M6, "client_id", false},
    {"longer client_id", SESSION("client_id: @65536@"), GB_RULE_M6, "client_id", true},
    {"longest username", SESSION("username: @65535@"), GB_RULE_M6, "username", false},
    {"longer username", SESSION("username: @65536@"), GB_RULE_M6, "username", true},
    {"longest password", SESSION("password: @65535@"), GB_RULE_M6, "password", false},
    {"longer password", SESSION("password: @65536@"), GB_RULE_M6, "password", true},
    {"longest will", SESSION("will: {topic: t, payload: @65535@}"), GB_RULE_M6, "will", false},
    {"longer will", SESSION("will: {topic: t, payload: @65536@}"), GB_RULE_M6, "will", true},
    {"username in plain text", SESSION("broker_url: tcp://a, username: u"), GB_RULE_M3, "username",
     true},
    {"password in plain text", SESSION("broker_url: tcp://a, password: p"), GB_RULE_M3, "password",
     true},
    {"over TLS", SESSION("broker_url: tls://a, username: u, password: p"), GB_RULE_M3, "username",
     false},
    {"over both", SESSION("broker_urls: [tls://a, tcp://b], username: u"), GB_RULE_M3, "username",
     true},
    {"plain text accepted",
     SESSION("broker_url: tcp://a, username: u, allow_plaintext_credentials: true"), GB_RULE_M3,
     "username", false},
    {"no credentials", SESSION("broker_url: tcp://a"), GB_RULE_M3, "username", false},
    {"no URL", SESSION("client_id: c"), GB_RULE_M1, "broker_url", true},
    {"one URL", SESSION("broker_url: a"), GB_RULE_M1, "broker_url", false},
    {"one of several", SESSION("broker_urls: [a]"), GB_RULE_M1, "broker_url", false},
    {"TLS without effect", SESSION("broker_url: tcp://a, tls: {enable: true}"), GB_RULE_M2, "tls",
     true},
    {"TLS with effect", SESSION("broker_url: tls://a, tls: {enable: true}"), GB_RULE_M2, "tls",
     false},
    {"certificate alone", SESSION("tls: {cert_file: a}"), GB_RULE_M5, "cert_file", true},
    {"key alone", SESSION("tls: {key_file: a}"), GB_RULE_M5, "key_file", true},
    {"files together", SESSION("tls: {cert_file: a, key_file: a}"), GB_RULE_M5, "_file", false},
    {"PEM certificate alone", SESSION("tls: {cert_pem: a}"), GB_RULE_M5, "cert_pem", true},
    {"PEM key alone", SESSION("tls: {key_pem: a}"), GB_RULE_M5, "key_pem", true},
    {"PEM together", SESSION("tls: {cert_pem: a, key_pem: a}"), GB_RULE_M5, "_pem", false},
};

#define V311(mode, options)                                                                        \
    "sessions: [{id: s, transport: mqtt, session_mode: " mode                                      \
    ", options: {session: {protocol_version: v3.1.1, " options "}}}]"

static const struct edge_row v311_rows[] = {
    {"no_local", V311("ephemeral", "no_local: true"), GB_RULE_M7, "no_local", true},
    {"expiry", V311("ephemeral", "session_expiry_interval: 1"), GB_RULE_M7, "expiry", true},
    {"no expiry", V311("ephemeral", "session_expiry_interval: 0"), GB_RULE_M7, "expiry", false},
    {"password alone", V311("ephemeral", "password: p"), GB_RULE_M7, "password", true},
    {"with username", V311("ephemeral", "password: p, username: u"), GB_RULE_M7, "password", false},
    {"username alone", V311("ephemeral", "username: u"), GB_RULE_M7, "username", false},
    {"persistent clean start", V311("persistent", "clean_start: true"), GB_RULE_M7, "clean_start",
     true},
    {"exclusive clean start", V311("exclusive", "clean_start: true"), GB_RULE_M7, "clean_start",
     false},
    {"ephemeral clean start", V311("ephemeral", "clean_start: true"), GB_RULE_M7, "clean_start",
     false},
    {"content hash", V311("ephemeral", "message_id: content_hash"), GB_RULE_M7, "message_id",
     false},
    {"content hash under v5", SESSION("message_id: content_hash"), GB_RULE_M7, "message_id", true},
};

#define BLOCK(keys) "routes: [{id: r, session: {" keys "}}]"
#define STRATEGY(keys) BLOCK("drain_strategy: {type: adaptive_backoff, " keys "}")

static const struct edge_row drain_rows[] = {
    {"equal intervals", STRATEGY("min_interval: 2s, max_interval: 2s"), GB_RULE_V2, "max_interval",
     false},
    {"intervals 1ns apart", STRATEGY("min_interval: 2s, max_interval: 1999999999ns"), GB_RULE_V2,
     "max_interval", true},
    {"longer than the default", STRATEGY("min_interval: 31s"), GB_RULE_V2, "min_interval", true},
    {"multiplier of one", STRATEGY("multiplier: 1.0"), GB_RULE_V2, "multiplier", true},
    {"a little more", STRATEGY("multiplier: 1.005"), GB_RULE_V2, "multiplier", false},
    {"equal batches", BLOCK("drain_batch_size: 500"), GB_RULE_V2, "batch", false},
    {"larger batch", BLOCK("drain_batch_size: 501"), GB_RULE_V2, "batch", true},
    {"least batch", BLOCK("drain_batch_size: 1, drain_max_batch_size: 1"), GB_RULE_V2, "batch",
     false},
};

/* One route with a send_timeout of 30s and a grace of 20s. */
#define STALE(value)                                                                               \
    "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: " value "}}}\n"     \
    "routes: [{id: r, delivery_mode: shared_outbox, session: {session_id: s, step_down_grace: "    \
    "20s}}]"

static const struct edge_row store_rows[] = {
    {"as long as a send", STALE("30s"), GB_RULE_V31, "stale_claim", true},
    {"1ns longer", STALE("30000000001ns"), GB_RULE_V31, "stale_claim", false},
    {"as long as a batch", STALE("40s"), GB_RULE_V32, "stale_claim", true},
    {"1ns longer than a batch", STALE("40000000001ns"), GB_RULE_V32, "stale_claim", false},
    {"twice the grace", STALE("40s"), GB_RULE_V33, "stale_claim", false},
    {"1ns more than twice", STALE("40000000001ns"), GB_RULE_V33, "stale_claim", true},
};

#define GRACE(value)                                                                               \
    "stores: {outbox: {type: sqlite, options: {path: /o, stale_claim_duration: 31s}}}\n"           \
    "routes: [{id: q, delivery_mode: direct_hold, policy: {send_timeout: 99s}, session: "          \
    "{session_id: s, step_down_grace: 99s}},\n"                                                    \
    "  {id: r, delivery_mode: shared_outbox, session: {session_id: s, step_down_grace: " value     \
    "}},\n"                                                                                        \
    "  {id: t, delivery_mode: shared_outbox, session: {session_id: s, step_down_grace: 16s}}]"

static const struct edge_row grace_rows[] = {
    {"as long as the grace", GRACE("31s"), GB_RULE_V33, "stale_claim", true},
    {"1ns longer than the grace", GRACE("30999999999ns"), GB_RULE_V33, "stale_claim", false},
    {"only routes with an outbox count", GRACE("31s"), GB_RULE_V31, "stale_claim", false},
};

#define PATH(role, path) "stores: {" role ": {type: sqlite, options: {path: \"" path "\"}}}"

static const struct edge_row path_rows[] = {
    {"URI", PATH("outbox", "file:/a"), GB_RULE_V23, "path", true},
    {"almost a URI", PATH("outbox", "file/a"), GB_RULE_V23, "path", false},
    {"query", PATH("outbox", "/a?b"), GB_RULE_V23, "path", true},
    {"fragment", PATH("outbox", "/a#b"), GB_RULE_V23, "path", true},
    {"in memory", PATH("outbox", ":memory:"), GB_RULE_V23, "path", false},
    {"leases in memory", PATH("lease", ":memory:"), GB_RULE_V23, "path", true},
    {"history in memory", PATH("managed_subscriptions", ":memory:"), GB_RULE_V23, "path", true},
    {"relative outbox", PATH("outbox", "a"), GB_RULE_V23, "path", false},
    {"relative history", PATH("managed_subscriptions", "a"), GB_RULE_V23, "path", true},
    {"root", PATH("managed_subscriptions", "/"), GB_RULE_V23, "path", true},
    {"short", PATH("managed_subscriptions", "/a"), GB_RULE_V23, "path", false},
    {"trailing slash", PATH("managed_subscriptions", "/a/"), GB_RULE_V23, "path", true},
    {"doubled slash", PATH("managed_subscriptions", "/a//b"), GB_RULE_V23, "path", true},
    {"dot", PATH("managed_subscriptions", "/a/./b"), GB_RULE_V23, "path", true},
    {"dot at the end", PATH("managed_subscriptions", "/a/."), GB_RULE_V23, "path", true},
    {"two dots", PATH("managed_subscriptions", "/a/../b"), GB_RULE_V23, "path", true},
    {"name of one letter", PATH("managed_subscriptions", "/a/b/c"), GB_RULE_V23, "path", false},
    {"name of two letters", PATH("managed_subscriptions", "/aa/bb"), GB_RULE_V23, "path", false},
    {"hidden", PATH("managed_subscriptions", "/.a/b"), GB_RULE_V23, "path", false},
    {"two dots and more", PATH("managed_subscriptions", "/..a/b"), GB_RULE_V23, "path", false},
    {"letter and dot", PATH("managed_subscriptions", "/a./b"), GB_RULE_V23, "path", false},
    {"three dots", PATH("managed_subscriptions", "/.../b"), GB_RULE_V23, "path", false},
};

static void sessions(void **state)
{
    (void)state;
    EDGES(mqtt_rows);
    EDGES(v311_rows);
}

static void drains(void **state)
{
    (void)state;
    EDGES(drain_rows);
}

static void stores(void **state)
{
    (void)state;
    EDGES(store_rows);
    EDGES(grace_rows);
    EDGES(path_rows);
}

/* W3 holds every address against at most 300 topics. */
static void topics_of_a_loop(void **state)
{
    (void)state;
    for (int count = 300; count <= 301; count++) {
        struct gb_str s = {0};
        gb_str_append_c(&s, "sessions: [{id: s, transport: mqtt}]\n"
                            "senders: [{id: m, session_id: s}]\n"
                            "bindings: [{id: b, sender_id: m, address: a}]\n"
                            "receivers: [{id: r, session_id: s, topics: [{topic: a}");
        for (int i = 1; i < count; i++) gb_str_appendf(&s, ", {topic: t%d}", i);
        gb_str_append_c(&s, "]}]\n");
        const struct edge_row row = {"topics", s.data, GB_RULE_W3, "address", count == 300};
        check_edges(&row, 1);
        gb_str_deinit(&s);
    }
}

/* P6 remembers at most 20000 URLs. */
static void urls_of_all_sessions(void **state)
{
    (void)state;
    for (int count = 10000; count <= 10001; count++) {
        struct gb_str s = {0};
        gb_str_append_c(&s, "sessions:\n");
        for (int session = 0; session < 3; session++) {
            gb_str_appendf(&s,
                           " - {id: s%d, transport: mqtt, options: {session: {client_id: c%d, "
                           "broker_urls: [a",
                           session, session);
            int urls = session == 0 ? count - 1 : session == 1 ? 9999 : 2;
            for (int i = 1; i < urls; i++) gb_str_append_c(&s, ",a");
            gb_str_append_c(&s, "]}}}\n");
        }
        const struct edge_row row = {"URLs", s.data, GB_RULE_K4, "broker_urls", count == 10001};
        check_edges(&row, 1);
        gb_str_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions),
        cmocka_unit_test(drains),
        cmocka_unit_test(stores),
        cmocka_unit_test(topics_of_a_loop),
        cmocka_unit_test(urls_of_all_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
