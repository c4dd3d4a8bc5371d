#include "blueprint/diff.h"

#include "blueprint/inspect.h"
#include "blueprint/rule_rows.h"

#define TENANTS DOCUMENTS "tenants.yaml"
#define CLUSTER DOCUMENTS "cluster.yaml"

/* What stops (-) and starts (+), class and swap, from the document as patched by `before` and then
 * by `after`. */
struct patch {
    const char *find, *replace;
};
static const struct diff_row {
    const char *name, *document;
    struct patch before, after;
    const char *routes, *sessions; /* retired and added alike, unless `want` says more */
    enum gb_diff_class class_;
    enum gb_diff_swap swap;
    const char *reason; /* of the class, else of the swap; NULL: neither has one */
} rows[] = {
    {"nothing", TENANTS, {"", ""}, {"", ""}, "", "", GB_DIFF_LIVE_SAFE, GB_DIFF_IN_PLACE, NULL},
    {"version",
     TENANTS,
     {"", ""},
     {"version: 1", "version: 9"},
     "",
     "",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"07 check 13: one route of one tenant",
     TENANTS,
     {"", ""},
     {"max_in_flight: 20", "max_in_flight: 21"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a binding",
     TENANTS,
     {"", ""},
     {"address: a2", "address: a3"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a sender, joined to a session by its own id",
     TENANTS,
     {"  - id: out-a\n    transport: sqs\n    options: {queue_name: a}\n",
      "  - {id: out-z, session_id: b}\n  - id: out-a\n    transport: sqs\n    options: "
      "{queue_name: "
      "a}\n  - {id: out-y, session_id: a, options: {sender: {qos: 1}}}\n"},
     {"{sender: {qos: 1}}", "{sender: {qos: 0}}"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"the last processor",
     TENANTS,
     {"processors: [only]", "processors: [only, unused]"},
     {"resetTimeout: 30s", "resetTimeout: 31s"},
     "route-b",
     "b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a sender",
     TENANTS,
     {"", ""},
     {"{queue_name: b}", "{queue_name: c}"},
     "route-b",
     "b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"topics of a durable session",
     TENANTS,
     {"", ""},
     {"{topic: y, qos: 1}", "{topic: z, qos: 1}"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a processor is content of the routes that list it",
     TENANTS,
     {"", ""},
     {"value: b", "value: c"},
     "route-b",
     "b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"an unused processor",
     TENANTS,
     {"", ""},
     {"resetTimeout: 30s", "resetTimeout: 31s"},
     "",
     "",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"07 check 14: a shared session joins two routes",
     TENANTS,
     {"{id: to-b, sender_id", "{id: to-b, session_id: a, sender_id"},
     {"max_in_flight: 20", "max_in_flight: 21"},
     "route-a route-b",
     "a b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"07 check 15: bridge-wide",
     TENANTS,
     {"", ""},
     {"{id: tenants}", "{id: tenants, log_level: "
                       "warn}"},
     "route-a route-b",
     "a b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "bridge"},
    {"config_watch",
     TENANTS,
     {"", ""},
     {"stores:", "config_watch: {mode: poll}\nstores:"},
     "route-a route-b",
     "a b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "config_watch"},
    {"07 check 17: another table",
     CLUSTER,
     {"", ""},
     {"gobridge-outbox", "another"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_SERIALIZED,
     "outbox changes from {\"table_name\":\"gobridge-outbox\",\"type\":\"dynamodb\"} to "
     "{\"table_name\":\"another\",\"type\":\"dynamodb\"}"},
    {"a store is removed",
     TENANTS,
     {"", ""},
     {"  dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}\n", ""},
     "route-a route-b",
     "a b",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_SERIALIZED,
     "dlq changes from {\"path\":\"/var/lib/gobridge/dlq.db\",\"type\":\"sqlite\"} to null"},
    {"a store is added",
     TENANTS,
     {"  dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}\n", ""},
     {"stores:\n", "stores:\n  dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}\n"},
     "route-a route-b",
     "a b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "stores"},
    {"retention of a store is no target",
     TENANTS,
     {"", ""},
     {"dlq.db}", "dlq.db, retention: 1h}"},
     "route-a route-b",
     "a b",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "stores"},
    {"client id of a durable session",
     TENANTS,
     {"", ""},
     {"client_id: bridge-a", "client_id: c"},
     "route-a",
     "a",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "the persistent session a gets another broker or client id"},
    {"broker of a durable session",
     TENANTS,
     {"", ""},
     {"tcp://a.example", "tcp://c.example"},
     "route-a",
     "a",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "the persistent session a gets another broker or client id"},
    {"suffix of a durable session",
     TENANTS,
     {"", ""},
     {"client_id: bridge-a",
      "client_id: bridge-a, client_id_suffix: hostname, assert_stable_client_identity: true"},
     "route-a",
     "a",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "the persistent session a gets another broker or client id"},
    {"a session block is added, which moves the partition",
     TENANTS,
     {"", ""},
     {"policy: {max_in_flight: 10}",
      "policy: {max_in_flight: 10}\n    session: {session_id: b, sender_id: out-b}"},
     "route-b",
     "b",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "no shared_outbox route drains the partition BINDING#to-b any more"},
    {"a session block is removed",
     TENANTS,
     {"policy: {max_in_flight: 10}",
      "policy: {max_in_flight: 10}\n    session: {session_id: b, sender_id: out-b}"},
     {"    session: {session_id: b, sender_id: out-b}\n", ""},
     "route-b",
     "b",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "session.session_id of route route-b changes"},
    {"another spelling of the same broker",
     TENANTS,
     {"", ""},
     {"tcp://a.example.com", "mqtt://a.example.com:1883"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a durable session that becomes ephemeral",
     TENANTS,
     {"", ""},
     {"    session_mode: persistent\n    options: {session: {broker_url: \"tcp://a",
      "    options: "
      "{session: {broker_url: \"tcp://a"},
     "route-a",
     "a",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "the persistent session a becomes ephemeral"},
    {"an ephemeral session may change",
     TENANTS,
     {"    session_mode: persistent\n    options: "
      "{session: {broker_url: \"tcp://a",
      "    options: {session: {broker_url: \"tcp://a"},
     {"client_id: bridge-a", "client_id: c"},
     "route-a",
     "a",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"a partition that nobody drains",
     TENANTS,
     {"", ""},
     {"bindings: [to-a1, to-a2]", "bindings: "
                                  "[to-a1]"},
     "route-a",
     "a",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_IN_PLACE,
     "no shared_outbox route drains the partition BINDING#to-a2 any more"},
    {"deployment_mode",
     CLUSTER,
     {"", ""},
     {"  deployment_mode: clustered\n", ""},
     "ingest",
     "mqtt-conn",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_SERIALIZED,
     "deployment_mode changes from \"clustered\" to \"standalone\""},
    {"rollout",
     CLUSTER,
     {"", ""},
     {"  log_level: info\n", "  log_level: info\n  cluster: {rollout: "
                             "independent}\n"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_SERIALIZED,
     "cluster.rollout changes from \"refuse\" to \"independent\""},
    {"07 check 23: members are a set",
     CLUSTER,
     {"  log_level: info\n", "  log_level: info\n  cluster: {rollout: coordinated, members: [a, "
                             "b]}\n"},
     {"members: [a, b]", "members: [b, a]"},
     "",
     "",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
    {"07 check 23: an added member",
     CLUSTER,
     {"  log_level: info\n", "  log_level: info\n  cluster: {rollout: coordinated, members: [a, "
                             "b]}\n"},
     {"members: [a, b]", "members: [b, a, c]"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_REPLACEMENT_REQUIRED,
     GB_DIFF_SERIALIZED,
     "cluster.members changes from [\"a\",\"b\"] to [\"a\",\"b\",\"c\"]"},
    {"confirm_window alone",
     CLUSTER,
     {"  log_level: info\n", "  log_level: info\n  cluster: {rollout: coordinated, members: [a], "
                             "confirm_window: 1s}\n"},
     {"confirm_window: 1s", "confirm_window: 2s"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "bridge"},
    {"derived stale_claim_duration",
     CLUSTER,
     {"      stale_claim_duration: 35s\n", ""},
     {"step_down_grace: 20s", "step_down_grace: 22s"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_SERIALIZED,
     "stale_claim_duration"},
    {"written stale_claim_duration",
     CLUSTER,
     {"", ""},
     {"step_down_grace: 20s", "step_down_grace: 22s"},
     "ingest",
     "mqtt-conn",
     GB_DIFF_LIVE_SAFE,
     GB_DIFF_IN_PLACE,
     NULL},
};

static struct gb_blueprint *load_text(const char *name, const char *text)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err =
        gb_blueprint_load(gb_bytes_c(text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    if (gb_failed(err)) fail_msg("%s: %s", name, findings.items[0].text);
    gb_findings_deinit(&findings);
    return b;
}

static char *patch(const char *name, const char *text, const struct patch *p)
{
    struct rule_row row = {.name = name, .find = p->find, .replace = p->replace};
    return patched(text, &row);
}

static void assert_ids(const struct gb_diff_ids *ids, const char *want)
{
    struct gb_str s = {0};
    gb_str_append_c(&s, "");
    for (size_t i = 0; i < ids->count; i++) {
        gb_str_appendf(&s, "%s%s", i == 0 ? "" : " ", ids->items[i]);
    }
    assert_string_equal(s.data, want);
    gb_str_deinit(&s);
}

static void check_diff(const struct diff_row *row)
{
    char *base = read_document(row->document);
    char *old = patch(row->name, base, &row->before);
    char *new = patch(row->name, old, &row->after);
    struct gb_blueprint *before = load_text(row->name, old);
    struct gb_blueprint *after = load_text(row->name, new);
    struct gb_diff diff;
    print_message("  %s\n", row->name);
    assert_int_equal(gb_diff_init(&diff, before, after).code, GB_OK);
    assert_ids(&diff.retired_routes, row->routes);
    assert_ids(&diff.added_routes, row->routes);
    assert_ids(&diff.retired_sessions, row->sessions);
    assert_ids(&diff.added_sessions, row->sessions);
    assert_string_equal(gb_diff_class_name(diff.class_), gb_diff_class_name(row->class_));
    assert_string_equal(gb_diff_swap_name(diff.swap), gb_diff_swap_name(row->swap));
    const char *reason = diff.reason_count > 0 ? diff.reasons[0] : diff.swap_reason;
    assert_string_equal(reason == NULL ? "" : reason, row->reason == NULL ? "" : row->reason);
    bool touched = row->routes[0] != '\0' || strstr(row->name, "unused") != NULL;
    assert_int_equal(diff.equal, !touched);
    if (diff.equal) assert_int_equal(diff.retired_units + diff.added_units, 0);
    gb_diff_deinit(&diff);
    gb_blueprint_free(before);
    gb_blueprint_free(after);
    free(base);
    free(old);
    free(new);
}

static void changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check_diff(&rows[i]);
}

static char *diff_of(const char *old, const char *new)
{
    struct gb_blueprint *before = load_text("before", old);
    struct gb_blueprint *after = load_text("after", new);
    struct gb_diff diff;
    struct gb_str out = {0};
    assert_int_equal(gb_diff_init(&diff, before, after).code, GB_OK);
    assert_int_equal(gb_diff_print(&diff, &out).code, GB_OK);
    gb_diff_deinit(&diff);
    gb_blueprint_free(before);
    gb_blueprint_free(after);
    return gb_str_take(&out);
}

static void two_documents_without_anything_in_common(void **state)
{
    (void)state;
    char *tenants = read_document(TENANTS);
    char *standalone = read_document(DOCUMENTS "standalone.yaml");
    char *got = diff_of(standalone, tenants);
    assert_string_equal(
        got, "{\"retired_routes\":[\"ingest\"],\"added_routes\":[\"route-a\",\"route-b\"],"
             "\"retired_sessions\":[\"plant\"],\"added_sessions\":[\"a\",\"b\"],"
             "\"class\":\"replacement-required\",\"reasons\":["
             "\"the persistent session plant is removed or renamed\","
             "\"no shared_outbox route drains the partition BINDING#to-sqs any more\"],"
             "\"swap\":\"serialized\",\"swap_reason\":\"bridge\"}\n");
    free(got);
    got = diff_of(tenants, "bridge: {id: tenants}\n");
    assert_string_equal(
        got,
        "{\"retired_routes\":[\"route-a\",\"route-b\"],\"added_routes\":[],"
        "\"retired_sessions\":[\"a\",\"b\"],\"added_sessions\":[],"
        "\"class\":\"replacement-required\",\"reasons\":["
        "\"outbox changes from "
        "{\\\"path\\\":\\\"/var/lib/gobridge/outbox.db\\\",\\\"type\\\":\\\"sqlite\\\"} to "
        "null\",\"dlq changes from "
        "{\\\"path\\\":\\\"/var/lib/gobridge/dlq.db\\\",\\\"type\\\":\\\"sqlite\\\"} to null\","
        "\"managed_subscriptions changes from "
        "{\\\"path\\\":\\\"/var/lib/gobridge/subs/subs.db\\\",\\\"type\\\":\\\"sqlite\\\"} to "
        "null\",\"the persistent session a is removed or renamed\","
        "\"the persistent session b is removed or renamed\","
        "\"no shared_outbox route drains the partition BINDING#to-a1 any more\","
        "\"no shared_outbox route drains the partition BINDING#to-a2 any more\","
        "\"no shared_outbox route drains the partition BINDING#to-b any more\"],"
        "\"swap\":\"overlap\",\"swap_reason\":\"stores\"}\n");
    free(got);
    free(tenants);
    free(standalone);
}

/* A touched unit that serves HTTP can't stay, so the whole runtime is replaced; another unit
 * can. */
static void units_with_http(void **state)
{
    (void)state;
    static const char web[] =
        "bridge: {id: b}\n"
        "receivers: [{id: in, transport: http, options: {api_key: 0a23456789abcdef}}]\n"
        "senders: [{id: out, transport: sqs, options: {queue_name: q}},\n"
        "  {id: other, transport: sqs, options: {queue_name: r}}]\n"
        "bindings: [{id: to, sender_id: out, address: x}]\n"
        "routes: [{id: r, receiver_id: in, bindings: [to], policy: {allow_retry_drop: true}}]\n";
    static const char session[] =
        "sessions: [{id: s, transport: mqtt, options: {session: {broker_url: \"tcp://b\", "
        "client_id: c}}}]\n";
    const struct patch key = {"abcdef", "abcdeg"};
    const struct patch queue = {"queue_name: r", "queue_name: s"};
    char *changed = patch("key", web, &key);
    char *got = diff_of(web, changed);
    assert_non_null(strstr(got, "\"retired_routes\":[\"r\"],"));
    assert_non_null(strstr(got, "\"swap\":\"overlap\",\"swap_reason\":\"http endpoints\""));
    assert_null(strstr(got, "0a23456789"));
    free(got);
    char *mqtt = gb_asprintf("%s%s", changed, session);
    got = diff_of(web, mqtt);
    assert_non_null(strstr(got, "\"swap\":\"serialized\",\"swap_reason\":\"http endpoints\""));
    free(got);
    got = diff_of(mqtt, web); /* nothing of the new document uses MQTT */
    assert_non_null(strstr(got, "\"swap\":\"overlap\""));
    free(got);
    char *elsewhere = patch("queue", web, &queue);
    got = diff_of(web, elsewhere);
    assert_non_null(strstr(got, "\"swap\":\"in-place\",\"swap_reason\":null"));
    free(got);
    const struct patch receiver = {
        "receivers: [{id: in, transport: http, options: {api_key: "
        "0a23456789abcdef}}]",
        "receivers: [{id: in, transport: sqs, options: {queue_name: i}}]"};
    char *without = patch("receiver", web, &receiver);
    got = diff_of(web, without); /* only what stops serves HTTP */
    assert_non_null(strstr(got, "\"swap\":\"overlap\",\"swap_reason\":\"http endpoints\""));
    free(got);
    got = diff_of(without, web); /* only what starts */
    assert_non_null(strstr(got, "\"swap\":\"overlap\",\"swap_reason\":\"http endpoints\""));
    free(got);
    free(without);
    free(elsewhere);
    free(mqtt);
    free(changed);
}

static void moved_lease(void **state)
{
    (void)state;
    char *cluster = read_document(CLUSTER);
    const struct patch rename[] = {
        {"id: mqtt-conn", "id: other"},
        {"session_id: mqtt-conn", "session_id: other"},
        {"session_id: mqtt-conn", "session_id: other"},
    };
    char *text = gb_strdup(cluster);
    for (size_t i = 0; i < 3; i++) {
        char *next = patch("rename", text, &rename[i]);
        free(text);
        text = next;
    }
    char *got = diff_of(cluster, text);
    assert_non_null(strstr(got, "\"reasons\":[\"the exclusive session mqtt-conn is removed or "
                                "renamed\",\"session.session_id of route ingest changes\","
                                "\"no shared_outbox route drains the partition SESSION#mqtt-conn "
                                "any more\"]"));
    assert_non_null(strstr(got, "\"retired_sessions\":[\"mqtt-conn\"],\"added_sessions\":"
                                "[\"other\"]"));
    free(got);
    got = diff_of(cluster, "bridge: {id: telemetry-bridge, deployment_mode: clustered}\n");
    assert_non_null(strstr(got, "\"the exclusive session mqtt-conn is removed or renamed\","
                                "\"no shared_outbox route drains the partition SESSION#mqtt-conn "
                                "any more\"]"));
    free(got);
    free(text);
    free(cluster);
}

/* Further reasons are left out, the verdict stays. */
static void reasons_are_bounded(void **state)
{
    (void)state;
    struct gb_str text = {0};
    gb_str_append_c(&text, "bridge: {id: b}\nsessions:\n");
    for (int i = 0; i < GB_DIFF_REASONS_MAX + 4; i++) {
        gb_str_appendf(&text,
                       "  - {id: s%02d, transport: mqtt, session_mode: persistent, options: "
                       "{session: {broker_url: \"tcp://b\", client_id: c%d}}}\n",
                       i, i);
    }
    struct gb_blueprint *before = load_text("many", text.data);
    struct gb_blueprint *after = load_text("none", "bridge: {id: b}\n");
    struct gb_diff diff;
    assert_int_equal(gb_diff_init(&diff, before, after).code, GB_OK);
    assert_int_equal(diff.class_, GB_DIFF_REPLACEMENT_REQUIRED);
    assert_int_equal(diff.reason_count, GB_DIFF_REASONS_MAX);
    assert_string_equal(diff.reasons[0], "the persistent session s00 is removed or renamed");
    assert_int_equal(diff.retired_sessions.count, GB_DIFF_REASONS_MAX + 4);
    assert_int_equal(diff.retired_units, GB_DIFF_REASONS_MAX + 4);
    assert_int_equal(diff.swap, GB_DIFF_IN_PLACE);
    gb_diff_deinit(&diff);
    gb_blueprint_free(before);
    gb_blueprint_free(after);
    gb_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes),
        cmocka_unit_test(two_documents_without_anything_in_common),
        cmocka_unit_test(units_with_http),
        cmocka_unit_test(moved_lease),
        cmocka_unit_test(reasons_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
