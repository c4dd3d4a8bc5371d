#include "blueprint/normal.h"
#include "blueprint/rule_rows.h"

/* Documents laid over documents, as the program loads them (spec 01 §8). */

enum { PARTS_MAX = 4 };

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct parts {
    const char *overlays[PARTS_MAX]; /* NULL ends */
    const char *sets[PARTS_MAX];     /* PATH=VALUE */
    struct gb_blueprint_env env;
};

static struct gb_err load(const char *base, const struct parts *p, struct gb_str *said,
                          struct gb_blueprint **out)
{
    static const char *const files[] = {"one.yaml", "two.yaml", "three.yaml", "four.yaml"};
    static const char *const flags[] = {"-set 1", "-set 2", "-set 3", "-set 4"};
    struct gb_blueprint_layer layers[PARTS_MAX + 1] = {
        {.name = "base.yaml", .bytes = gb_bytes_c(base)}};
    struct gb_blueprint_override overrides[PARTS_MAX];
    char paths[PARTS_MAX][128];
    struct gb_blueprint_input in = {
        .layers = layers, .layer_count = 1, .overrides = overrides, .env = p->env};
    for (size_t i = 0; i < PARTS_MAX && p->overlays[i] != NULL; i++) {
        layers[in.layer_count++] =
            (struct gb_blueprint_layer){.name = files[i], .bytes = gb_bytes_c(p->overlays[i])};
    }
    for (size_t i = 0; i < PARTS_MAX && p->sets[i] != NULL; i++) {
        const char *equals = strchr(p->sets[i], '=');
        assert_non_null(equals);
        (void)snprintf(paths[i], sizeof paths[i], "%.*s", (int)(equals - p->sets[i]), p->sets[i]);
        overrides[in.override_count++] =
            (struct gb_blueprint_override){flags[i], paths[i], gb_bytes_c(equals + 1)};
    }
    const char *names[GB_BLUEPRINT_NAMES_MAX];
    struct gb_findings findings = {0};
    struct gb_err err = gb_blueprint_load_layers(&in, &findings, out);
    gb_blueprint_names(&in, names);
    gb_str_append_c(said, "");
    gb_findings_print(&findings, names, said);
    gb_findings_deinit(&findings);
    return err;
}

/* The normal form of what is loaded; anything said fails the test. To be freed. */
static char *normal_of(const char *name, const char *base, const struct parts *p)
{
    struct gb_str said = {0};
    struct gb_str form = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = load(base, p, &said, &b);
    if (gb_failed(err) || said.size > 0) fail_msg("%s: %s\n%s", name, err.message, said.data);
    assert_false(gb_failed(gb_normal_document(b, &form)));
    gb_blueprint_free(b);
    gb_str_deinit(&said);
    return gb_str_take(&form);
}

/* What the parts change in the base, told as one replacement in its text. */
static const struct same_row {
    const char *name;
    struct parts parts;
    const char *find, *replace;
} same_rows[] = {
    {"nothing", {.overlays = {"", "{}"}}, "bridge:", "bridge:"},
    {"check 29: instance_id alone changes only that",
     {.overlays = {"bridge: {instance_id: two}"}},
     "instance_id: one",
     "instance_id: two"},
    {"check 29: a session overlay keeps its options",
     {.overlays = {"sessions: [{id: plant, session_mode: exclusive}]",
                   "sessions: [{id: plant, session_mode: persistent}]"}},
     "bridge:",
     "bridge:"},
    {"check 29: a route overlay replaces all",
     {.overlays = {"routes: [{id: ingest, receiver_id: telemetry-in, delivery_mode: shared_outbox, "
                   "bindings: [to-sqs]}]"}},
     "    policy: {max_in_flight: 7}\n",
     ""},
    {"check 29: the marker keeps the key",
     {.overlays = {"http: {admin_api_key: \"[REDACTED]\", monitor_api_key: \"\"}"}},
     "bridge:",
     "bridge:"},
    {"the last layer wins",
     {.overlays = {"bridge: {instance_id: two}", "bridge: {instance_id: three}"},
      .sets = {"bridge.instance_id=four", "bridge.instance_id=five"}},
     "instance_id: one",
     "instance_id: five"},
    {"options of another kind go",
     {.overlays = {"senders: [{id: sqs-out, transport: http}]",
                   "senders: [{id: sqs-out, transport: sqs, options: {queue_url: "
                   "https://sqs.eu-central-1.amazonaws.com/123456789/telemetry-events}}]"}},
     "bridge:",
     "bridge:"},
    {"set below options",
     {.sets = {"sessions[plant].options.session.keep_alive=5"}},
     "client_id: plant-bridge",
     "client_id: plant-bridge\n        keep_alive: 5"},
    {"set a duration",
     {.sets = {"bridge.drain_timeout=7s"}},
     "id: plant-bridge\n",
     "id: plant-bridge\n  drain_timeout: 7s\n"},
    {"set a list",
     {.sets = {"receivers[telemetry-in].topics=[{topic: a/b, qos: 2}]"}},
     "topic: \"telemetry/#\", qos: 1",
     "topic: a/b, qos: 2"},
    {"set a policy",
     {.sets = {"routes[ingest].policy.max_in_flight=9"}},
     "max_in_flight: 7",
     "max_in_flight: 9"},
    {"the environment is no content",
     {.env = {.instance_id = "e", .admin_api_key = "0123456789abcdef"}},
     "bridge:",
     "bridge:"},
};

/* The document of the tests with a value of its own, and keys. */
static char *base_document(void)
{
    char *text = read_document(DOCUMENTS "standalone.yaml");
    const struct rule_row policy = {"policy", "policy: {}\n",
                                    "policy: {max_in_flight: 7}\nhttp: {admin_api_key: "
                                    "0123456789abcdef, monitor_api_key: fedcba9876543210}\n",
                                    NULL};
    char *base = patched(text, &policy);
    free(text);
    return base;
}

static void layers_give_what_one_document_gives(void **state)
{
    (void)state;
    static const struct parts none = {0};
    char *base = base_document();
    for (size_t i = 0; i < sizeof same_rows / sizeof same_rows[0]; i++) {
        const struct same_row *row = &same_rows[i];
        const struct rule_row change = {row->name, row->find, row->replace, NULL};
        char *one = patched(base, &change);
        char *want = normal_of(row->name, one, &none);
        char *got = normal_of(row->name, base, &row->parts);
        if (strcmp(got, want) != 0) fail_msg("%s:\n%s\n%s", row->name, got, want);
        free(one);
        free(want);
        free(got);
    }
    free(base);
}

static const struct said_row {
    const char *name;
    struct parts parts;
    const char *want; /* all that is said */
} said_rows[] = {
    {"a finding names the overlay's place",
     {.overlays = {"bridge:\n  log_levl: x\n"}},
     "one.yaml:2:3: error: unknown key \"bridge.log_levl\"; did you mean "},
    {"each layer is decoded strictly, also what is replaced later",
     {.overlays = {"bridge: {log_level: x}", "bridge: {log_level: info}"}},
     "one.yaml:1:21: error: bridge.log_level \"x\" is invalid; "},
    {"findings of all layers, in their order",
     {.overlays = {"a: 1", "[", "b: 1"}},
     "one.yaml:1:1: error: unknown key \"a\"; remove it, known here: version, bridge, "
     "config_watch, "
     "stores, sessions, receivers, senders, bindings, routes, processors, http, telemetry [K1]\n"
     "two.yaml:2:1: error: invalid YAML: "},
    {"what a merged document breaks",
     {.overlays = {"bridge: {id: \"\"}"}},
     "one.yaml:1:14: error: bridge.id is required"},
    {"the same by an overlay alone",
     {.overlays = {"bindings: [{id: to-sqs, sender_id: x}]"}},
     "one.yaml:1:36: error: bindings[0] (to-sqs): "},
    {"options are read by the merged kind",
     {.overlays = {"sessions: [{id: plant, options: {session: {keep_alive: x}}}]"}},
     "one.yaml:1:34: error: sessions[0] (plant): options.session.client_id is required"},
    {"a known key that is no key of the kind",
     {.overlays = {"senders:\n - id: sqs-out\n   options: {queue_url: https://h/q, mode: sse}"}},
     "one.yaml:3:38: error: senders[0] (sqs-out): unknown key \"options.mode\""},
    {"an id twice in an overlay",
     {.overlays = {"bindings: [{id: to-sqs}, {id: to-sqs, sender_id: sqs-out, address: a}]"}},
     "one.yaml:1:31: error: bindings[1] (to-sqs): duplicate id \"to-sqs\""},
    {"set: unknown key",
     {.sets = {"bridge.id=a", "bridge.log_levl=x"}},
     "-set 2: error: unknown key \"bridge.log_levl\"; did you mean "},
    {"set: a block that does not exist", {.sets = {"bridg.id=a"}}, "-set 1: error: unknown key "},
    {"set: unknown id",
     {.sets = {"routes[ingst].policy.max_in_flight=1"}},
     "-set 1: error: routes has no entry \"ingst\"; did you mean \"ingest\"?; known: ingest [V5]"},
    {"set: wrong type",
     {.sets = {"routes[ingest].policy.max_in_flight=x"}},
     "-set 1: error: routes[0] (ingest): policy.max_in_flight must be a whole number, not "},
    {"set: all mistakes at once",
     {.sets = {"a[0]=1", "bridge.id=[", "bridge.x=1", "bridge.log_level=x"}},
     "-set 1: error: "},
    {"a marker with nothing to keep",
     {.overlays = {"http: {admin_addr: \":1\"}"}, .sets = {"http.admin_api_key=\"[REDACTED]\""}},
     "-set 1: error: http.admin_api_key is the marker [REDACTED], and no layer below holds a "
     "secret "
     "that it could keep; write the secret [K7]\n"},
    {"a marker where none keeps",
     {.overlays = {"sessions: [{id: plant, options: {session: {broker_url: tls://h, client_id: c,"
                   "\n username: u, password: \"[REDACTED]\"}}}]"}},
     "one.yaml:2:25: error: sessions[0] (plant): options.session.password is the marker"},
    {"a key of the environment that is too short",
     {.sets = {"http={}"}, .env = {.admin_api_key = "short", .monitor_api_key = "brief"}},
     "environment: error: GOBRIDGE_ADMIN_API_KEY has 5 bytes; at least 16 are required, use a "
     "longer key [V10]\n"
     "environment: error: GOBRIDGE_MONITOR_API_KEY has 5 bytes; "},
    {"a document's key makes the environment's unimportant",
     {.env = {.admin_api_key = "short", .monitor_api_key = "brief"}},
     ""},
    {"a name of 256 bytes from the environment",
     {.env = {.instance_id = X64 X64 X64 X64}},
     "environment: error: GOBRIDGE_INSTANCE_ID "
     "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxx...\" has 256 bytes, and at most 255 are accepted; shorten it [V3]\n"},
    {"a name of 255 bytes", {.env = {.instance_id = &(X64 X64 X64 X64)[1]}}, ""},
    {"a name over two lines",
     {.env = {.instance_id = "a\nb"}},
     "environment: error: GOBRIDGE_INSTANCE_ID \"a?b\" must be UTF-8 without control characters; "
     "remove them [V3]\n"},
    {"a name that is no UTF-8",
     {.env = {.instance_id = "a\xFF"}},
     "environment: error: GOBRIDGE_INSTANCE_ID \"a\" must be UTF-8 without control characters; "
     "remove them [V3]\n"},
    {"an absent key that the environment gives",
     {.sets = {"http={}"}, .env = {.admin_api_key = "0123456789abcdef"}},
     ""},
    {"an absent key that it does not give",
     {.sets = {"http={}"}, .env = {.monitor_api_key = "0123456789abcdef"}},
     "-set 1: error: http.admin_api_key is required"},
};

static void findings_name_their_layer(void **state)
{
    (void)state;
    char *base = base_document();
    for (size_t i = 0; i < sizeof said_rows / sizeof said_rows[0]; i++) {
        const struct said_row *row = &said_rows[i];
        struct gb_str said = {0};
        struct gb_blueprint *b = NULL;
        struct gb_err err = load(base, &row->parts, &said, &b);
        bool ok = row->want[0] == '\0' ? said.size == 0
                                       : strncmp(said.data, row->want, strlen(row->want)) == 0;
        if (!ok || gb_failed(err) != (row->want[0] != '\0'))
            fail_msg("%s:\n%snot: %s", row->name, said.data, row->want);
        gb_blueprint_free(b);
        gb_str_deinit(&said);
    }
    free(base);
}

static void a_broken_base_is_named(void **state)
{
    (void)state;
    static const struct parts parts = {.overlays = {"bridge: {id: a}"}, .sets = {"bridge.id=b"}};
    struct gb_str said = {0};
    struct gb_blueprint *b = NULL;
    assert_int_equal(load("bridg: 1\n", &parts, &said, &b).code, GB_INVALID_CONFIG);
    assert_non_null(strstr(said.data, "base.yaml:1:1: error: unknown key \"bridg\""));
    gb_str_deinit(&said);
}

static void an_empty_base_may_be_filled(void **state)
{
    (void)state;
    static const struct parts parts = {.overlays = {"bridge: {id: a}"}};
    static const struct parts sets = {.sets = {"bridge.id=a"}};
    char *one = normal_of("overlay", "", &parts);
    char *two = normal_of("set", "", &sets);
    assert_string_equal(one, two);
    free(one);
    free(two);
}

/* Identity and keys: which source counts (spec 01 §8.2, 08 §2). */
static void order_of_sources(void **state)
{
    (void)state;
    char *base = base_document();
    static const struct {
        struct parts parts;
        const char *instance, *admin, *monitor;
    } rows[] = {
        {{.env = {0}}, "one", "0123456789abcdef", "fedcba9876543210"},
        {{.env = {"env", "envenvenvenvenvenv", "envenvenvenvenvenv"}},
         "env",
         "0123456789abcdef",
         "fedcba9876543210"},
        {{.sets = {"http=", "bridge.instance_id="}, .env = {NULL, "envenvenvenvenvenv", NULL}},
         NULL,
         "envenvenvenvenvenv",
         NULL},
        {{.sets = {"http.monitor_api_key="}, .env = {NULL, NULL, "envenvenvenvenvenv"}},
         "one",
         "0123456789abcdef",
         "envenvenvenvenvenv"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str said = {0};
        struct gb_blueprint *b = NULL;
        assert_false(gb_failed(load(base, &rows[i].parts, &said, &b)));
        const char *got[] = {gb_blueprint_instance_id(b), gb_blueprint_admin_api_key(b),
                             gb_blueprint_monitor_api_key(b)};
        const char *want[] = {rows[i].instance, rows[i].admin, rows[i].monitor};
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(got[k] == NULL, want[k] == NULL);
            if (want[k] != NULL) assert_string_equal(got[k], want[k]);
        }
        gb_blueprint_free(b);
        gb_str_deinit(&said);
    }
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_give_what_one_document_gives),
        cmocka_unit_test(findings_name_their_layer),
        cmocka_unit_test(a_broken_base_is_named),
        cmocka_unit_test(an_empty_base_may_be_filled),
        cmocka_unit_test(order_of_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
