#include "blueprint/normal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "blueprint/decoded.h"

static const struct normal_row {
    const char *name; /* with the item of spec 01 §9.1 */
    const char *yaml;
    const char *want; /* behind {"bridge":{"drain_timeout":"30s", */
} rows[] = {
    {"4 filled", "bridge: {id: b}\n", "\"id\":\"b\",\"shutdown_timeout\":\"30s\"}}"},
    {"1 version", "version: 7\nbridge: {id: b}\n", "\"id\":\"b\",\"shutdown_timeout\":\"30s\"}}"},
    {"4 null is absent", "bridge: {id: b, drain_timeout: ~, shutdown_timeout: ''}\n",
     "\"id\":\"b\",\"shutdown_timeout\":\"30s\"}}"},
    {"4 written zero is kept", "bridge: {id: b, shutdown_timeout: 0}\n",
     "\"id\":\"b\",\"shutdown_timeout\":\"0s\"}}"},
    {"3 printing form", "bridge: {shutdown_timeout: 90000ms, max_drain_timeout: 1h}\n",
     "\"max_drain_timeout\":\"1h0m0s\",\"shutdown_timeout\":\"1m30s\"}}"},
    {"3 what is no duration stays", "bridge: {shutdown_timeout: soon}\n",
     "\"shutdown_timeout\":\"soon\"}}"},
    {"3 words with another spelling stay", "bridge: {log_level: warning, shutdown_timeout: 1s}\n",
     "\"log_level\":\"warning\",\"shutdown_timeout\":\"1s\"}}"},
    {"3 words stay", "bridge: {log_level: WARN, shutdown_timeout: 1s}\n",
     "\"log_level\":\"WARN\",\"shutdown_timeout\":\"1s\"}}"},
    {"2 members are a set", "bridge: {cluster: {members: [b, a, b]}, shutdown_timeout: 1s}\n",
     "\"shutdown_timeout\":\"1s\"}}"},
    {"6 empty collections",
     "bridge: {cluster: {members: [], endpoints: {}, locator: {}}}\n"
     "stores: {}\nsessions: []\nprocessors: {}\ntelemetry: {metrics: {}}\n",
     "\"shutdown_timeout\":\"30s\"}}"},
};

static void rows_of_the_bridge(void **state)
{
    (void)state;
    static const char head[] = "{\"bridge\":{\"drain_timeout\":\"30s\",";
    static const char members[] = "{\"bridge\":{\"cluster\":{\"members\":[\"a\",\"b\"]},"
                                  "\"drain_timeout\":\"30s\",";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_err err;
        const char *start = strstr(rows[i].name, "set") == NULL ? head : members;
        char want[256];
        (void)snprintf(want, sizeof want, "%s%s", start, rows[i].want);
        char *got = gb_decoded_normal(rows[i].yaml, GB_BLUEPRINT_YAML, &err);
        print_message("  %s\n", rows[i].name);
        assert_string_equal(err.message, "");
        assert_string_equal(got, want);
        free(got);
    }
}

/* Without a bridge, so that the whole text is the row. */
static const struct part_row {
    const char *name, *yaml, *want;
} part_rows[] = {
    {"nothing but what does not count", "{version: 1, sessions: [], http: ~}", "{}"},
    {"2 sections by id", "senders: [{id: b}, {id: a, transport: sqs}, {id: 'A'}]\n",
     "{\"senders\":[{\"id\":\"A\"},{\"id\":\"a\",\"transport\":\"sqs\"},{\"id\":\"b\"}]}"},
    {"2 other lists keep their order",
     "receivers: [{id: r, topics: [{topic: b}, {topic: a}]}]\nroutes: [{id: r, bindings: [b, a]}]",
     "{\"receivers\":[{\"id\":\"r\",\"topics\":[{\"topic\":\"b\"},{\"topic\":\"a\"}]}],"
     "\"routes\":[{\"bindings\":[\"b\",\"a\"],\"id\":\"r\"}]}"},
    {"an alias is its kind", "sessions: [{id: s, transport: mqtt.paho}]\n",
     "{\"sessions\":[{\"id\":\"s\",\"transport\":\"mqtt\"}]}"},
    {"3 options stay as written",
     "senders: [{id: s, transport: mqtt, options: {sender: {timeout: 90s, qos: 0}}}]\n",
     "{\"senders\":[{\"id\":\"s\",\"options\":{\"sender\":{\"qos\":0,\"timeout\":\"90s\"}},"
     "\"transport\":\"mqtt\"}]}"},
    {"3 options by the kind of the session",
     "sessions: [{id: m, transport: mqtt, options: {session: {username: off, clean_start: false, "
     "keep_alive: 5}}}]\nsenders: [{id: s, session_id: m, options: {sender: {default_topic: "
     "yes}}}]",
     "{\"senders\":[{\"id\":\"s\",\"options\":{\"sender\":{\"default_topic\":\"yes\"}},"
     "\"session_id\":\"m\"}],\"sessions\":[{\"id\":\"m\",\"options\":{\"session\":{\"clean_start\":"
     "false,\"keep_alive\":5,\"username\":\"off\"}},\"transport\":\"mqtt\"}]}"},
    {"3 options of a binding by the kind of its sender",
     "senders: [{id: s, transport: sqs}]\nbindings: [{id: b, sender_id: s, options: {fifo: true, "
     "linger: 5ms, batch_size: 3}}]\n",
     "{\"bindings\":[{\"id\":\"b\",\"options\":{\"batch_size\":3,\"fifo\":true,\"linger\":\"5ms\"},"
     "\"sender_id\":\"s\"}],\"senders\":[{\"id\":\"s\",\"transport\":\"sqs\"}]}"},
    {"3 commas in options are a text",
     "sessions: [{id: m, transport: mqtt, options: {session: {broker_urls: 'a, b'}}}]\n",
     "{\"sessions\":[{\"id\":\"m\",\"options\":{\"session\":{\"broker_urls\":\"a, b\"}},"
     "\"transport\":\"mqtt\"}]}"},
    {"commas elsewhere are a list", "http: {cors_origins: 'a,\tb '}\n",
     "{\"http\":{\"cors_origins\":[\"a\",\"b\"]}}"},
    {"options of a store", "stores: {dlq: {type: sqlite, options: {path: x, retention: 60m}}}\n",
     "{\"stores\":{\"dlq\":{\"options\":{\"path\":\"x\",\"retention\":\"60m\"},\"type\":\"sqlite\"}"
     "}}"},
    {"the window of the dlq is of the model", "stores: {dlq: {auto_redrive_window: 60m}}\n",
     "{\"stores\":{\"dlq\":{\"auto_redrive_window\":\"1h0m0s\"}}}"},
    {"options of a topic",
     "receivers: [{id: r, transport: mqtt, topics: [{topic: t, options: "
     "{subscription: {qos_recheck_interval: 60m}}}]}]\n",
     "{\"receivers\":[{\"id\":\"r\",\"topics\":[{\"options\":{\"subscription\":{"
     "\"qos_recheck_interval\":\"60m\"}},\"topic\":\"t\"}],\"transport\":\"mqtt\"}]}"},
    {"off stays off", "routes: [{id: r, session: {broker_health_step_down: off}}]\n",
     "{\"routes\":[{\"id\":\"r\",\"session\":{\"broker_health_step_down\":\"off\"}}]}"},
    {"numbers", "routes: [{id: r, policy: {backoff: {multiplier: 2.50, jitter: 1e-1}}}]\n",
     "{\"routes\":[{\"id\":\"r\",\"policy\":{\"backoff\":{\"jitter\":0.1,\"multiplier\":2.5}}}]}"},
    {"6 integers are exact",
     "senders: [{id: s, transport: sqs, options: {batch_size: "
     "9007199254740993}}]\n",
     "{\"senders\":[{\"id\":\"s\",\"options\":{\"batch_size\":9007199254740993},\"transport\":"
     "\"sqs\"}]}"},
    {"both spellings of a key",
     "processors: {p: {type: filter, config: {max_payload_bytes: 1, "
     "maxPayloadBytes: 2, route_to: x}}}\n",
     "{\"processors\":{\"p\":{\"config\":{\"maxPayloadBytes\":2,\"routeTo\":\"x\"},\"type\":"
     "\"filter\"}}}"},
    {"an entry of a map may be empty",
     "processors: {p: {type: tenant, config: {tenants: {b: ~, a: "
     "{}}}}}\n",
     "{\"processors\":{\"p\":{\"config\":{\"tenants\":{\"a\":{},\"b\":{}}},\"type\":\"tenant\"}}}"},
    {"null in a map of texts is the empty text",
     "telemetry: {metrics: {default_tags: {b: ~, a: x}}}\n",
     "{\"telemetry\":{\"metrics\":{\"default_tags\":{\"a\":\"x\",\"b\":\"\"}}}}"},
    {"null in place of a default, options or a table",
     "processors: {p: {type: transform, config: {mappings: [{defaultValue: ~}]}}, q: {config: ~}}\n"
     "senders: [{id: s, transport: sqs, options: ~}]\nstores: {dlq: ~}\nhttp: ~\n",
     "{\"processors\":{\"p\":{\"config\":{\"mappings\":[{}]},\"type\":\"transform\"},\"q\":{}},"
     "\"senders\":[{\"id\":\"s\",\"transport\":\"sqs\"}]}"},
    {"escapes",
     "bridge: {id: \"a\\\"\\\\\\n\\u0001\\u00e9\", drain_timeout: 1s, shutdown_timeout: "
     "1s}\n",
     "{\"bridge\":{\"drain_timeout\":\"1s\",\"id\":\"a\\\"\\\\\\n\\u0001\xc3\xa9\","
     "\"shutdown_timeout\":\"1s\"}}"},
};

static void rows_of_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof part_rows / sizeof part_rows[0]; i++) {
        struct gb_err err;
        char *got = gb_decoded_normal(part_rows[i].yaml, GB_BLUEPRINT_YAML, &err);
        print_message("  %s\n", part_rows[i].name);
        assert_string_equal(err.message, "");
        assert_string_equal(got, part_rows[i].want);
        free(got);
    }
}

/* Spec 01 §9.1 item 5. */
static const struct condition_row {
    const char *yaml, *json; /* of the value; NULL: YAML only */
    const char *want;
} condition_rows[] = {
    {"1", "1", "1"},
    {"1.0", "1.0", "1"},
    {"1e2", "1e2", "100"},
    {"-0", "-0", "0"},
    {"+5", NULL, "5"},
    {".5", "0.5", "0.5"},
    {"9007199254740993", "9007199254740993", "9007199254740992"},
    {"123456789012345678901234567890", "123456789012345678901234567890", "1.2345678901234568e+29"},
    {"true", "true", "true"},
    {"false", "false", "false"},
    {"True", "\"True\"", "\"True\""},
    {"0x1F", "\"0x1F\"", "\"0x1F\""},
    {".inf", "\".inf\"", "\".inf\""},
    {"yes", "\"yes\"", "\"yes\""},
    {"\"1\"", "\"1\"", "\"1\""},
    {"\"true\"", "\"true\"", "\"true\""},
    {"\"\"", "\"\"", "\"\""},
    {"~", "null", "null"},
    {"[]", "[]", "[]"},
    {"{}", "{}", "\"{}\""},
    {"\"{}\"", "\"{}\"", "\"{}\""},
    {"{b: 1, a: [x, ~]}", "{\"b\": 1, \"a\": [\"x\", null]}",
     "\"{\\\"a\\\":[\\\"x\\\",null],\\\"b\\\":1}\""},
    {"[1, \"1\", true, ~, [], a]", "[1, \"1\", true, null, [], \"a\"]",
     "[1,\"1\",true,null,[],\"a\"]"},
};

static char *condition_normal(const char *value, enum gb_blueprint_format format,
                              struct gb_err *err)
{
    char *text = gb_asprintf("{\"routes\": [{\"id\": \"r\", \"resolver\": {\"rules\": [{\"match\": "
                             "[{\"field\": \"f\", \"value\": %s}]}]}}]}",
                             value);
    assert_non_null(text);
    char *got = gb_decoded_normal(text, format, err);
    free(text);
    return got;
}

static void condition_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof condition_rows / sizeof condition_rows[0]; i++) {
        const struct condition_row *row = &condition_rows[i];
        struct gb_err err;
        print_message("  %s\n", row->yaml);
        char *want = gb_asprintf("{\"routes\":[{\"id\":\"r\",\"resolver\":{\"rules\":[{\"match\":["
                                 "{\"field\":\"f\",\"value\":%s}]}]}}]}",
                                 row->want);
        char *got = condition_normal(row->yaml, GB_BLUEPRINT_YAML, &err);
        assert_string_equal(err.message, "");
        assert_string_equal(got, want);
        free(got);
        if (row->json != NULL) {
            got = condition_normal(row->json, GB_BLUEPRINT_JSON, &err);
            assert_string_equal(err.message, "");
            assert_string_equal(got, want);
            free(got);
        }
        free(want);
    }
}

static void without_a_normal_form(void **state)
{
    (void)state;
    static const char *const values[] = {"1e999", "-1e999", "[[1e400]]"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gb_err err;
        free(condition_normal(values[i], GB_BLUEPRINT_JSON, &err));
        assert_int_equal(err.code, GB_INVALID_CONFIG);
        assert_non_null(strstr(err.message, "beyond the range of a double"));
        free(condition_normal(values[i], GB_BLUEPRINT_YAML, &err));
        assert_int_equal(err.code, GB_INVALID_CONFIG);
    }
}

/* A default of a transform is no condition: nothing is rounded or flattened. */
static void untyped_values_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *want;
    } values[] = {
        {"9007199254740993", "9007199254740993"},
        {"-00012345678901234567890123", "-12345678901234567890123"},
        {"+0", "0"},
        {"1.50", "1.5"},
        {"{b: {}, a: []}", "{\"a\":[],\"b\":{}}"},
        {"''", "\"\""},
        {"[~, off, 'x']", "[null,\"off\",\"x\"]"},
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct gb_err err;
        char *text = gb_asprintf("processors: {p: {type: transform, config: {mappings: [{default_"
                                 "value: %s}]}}}",
                                 values[i].yaml);
        char *want = gb_asprintf("{\"processors\":{\"p\":{\"config\":{\"mappings\":[{"
                                 "\"defaultValue\":%s}]},\"type\":\"transform\"}}}",
                                 values[i].want);
        char *got = gb_decoded_normal(text, GB_BLUEPRINT_YAML, &err);
        assert_string_equal(err.message, "");
        assert_string_equal(got, want);
        free(got);
        free(want);
        free(text);
    }
}

/* A piece ends inside a map that is then as far from where it began as an empty one would be: it
 * must not be taken back. */
static void hashed_in_pieces(void **state)
{
    (void)state;
    enum { PIECE = 65536, TAILS = 250 };
    char *fill = malloc(PIECE + 1);
    assert_non_null(fill);
    memset(fill, 'x', PIECE);
    fill[PIECE] = '\0';
    for (int tail = 0; tail < TAILS; tail++) {
        struct gb_err err;
        char *text =
            gb_asprintf("{\"stores\":{},\"receivers\":[{\"id\":\"r\",\"transport\":\"sqs\","
                        "\"topics\":[],\"options\":{\"queue_tags\":{\"a\":\"%s\",\"b\":"
                        "\"%.*s\"}}}]}",
                        fill, tail, fill);
        assert_non_null(text);
        free(gb_decoded_normal(text, GB_BLUEPRINT_JSON, &err));
        assert_int_equal(err.code, GB_OK);
        free(text);
    }
    free(fill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_bridge),       cmocka_unit_test(rows_of_parts),
        cmocka_unit_test(condition_values),         cmocka_unit_test(without_a_normal_form),
        cmocka_unit_test(untyped_values_elsewhere), cmocka_unit_test(hashed_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
