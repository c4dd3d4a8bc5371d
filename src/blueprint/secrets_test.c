#include "blueprint/rule_rows.h"
#include "blueprint/schema.h"

/* Secrets stay out of everything that is said (spec 01 §8.2, check 34). */

#define MARK "Zx9hunterZx9"

/* ---- the flag is on the fields of the specification, and on no other ---- */

static void collect(const struct gb_block *block, struct gb_str *out)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        bool secret = (f->flags & GB_FIELD_SECRET) != 0;
        if (secret) gb_str_appendf(out, "%s.%s ", block->name, f->key);
        if (secret != gb_schema_is_secret(f->key)) fail_msg("%s.%s", block->name, f->key);
        if (f->block != NULL) collect(f->block, out);
    }
}

static void the_flagged_fields(void **state)
{
    (void)state;
    struct gb_str found = {0};
    collect(&gb_schema_root, &found);
    static const struct gb_block *const options[] = {
        &gb_schema_mqtt_session_options,  &gb_schema_mqtt_topic_options,
        &gb_schema_mqtt_receiver_options, &gb_schema_mqtt_sender_options,
        &gb_schema_sqs_receiver,          &gb_schema_sqs_sender,
        &gb_schema_http_receiver,         &gb_schema_http_sender,
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) collect(options[i], &found);
    for (int role = 0; role < GB_BP_ROLE_COUNT; role++) {
        for (int type = GB_BP_MEMORY; type <= GB_BP_DYNAMODB; type++) {
            const struct gb_block *b =
                gb_schema_store_options((enum gb_bp_role)role, (enum gb_bp_store_type)type);
            if (b != NULL) collect(b, &found);
        }
    }
    for (int type = GB_BP_FILTER; type <= GB_BP_TENANT; type++)
        collect(gb_schema_processor_config((enum gb_bp_processor_type)type), &found);
    assert_string_equal(found.data,
                        "forwarder.forward_token forwarder.cluster_api_key "
                        "forwarder.receiver_api_keys http.admin_api_key http.monitor_api_key "
                        "session.password tls.key_pem options.api_key options.api_key ");
    gb_str_deinit(&found);
}

/* ---- every secret, with every mistake, in every layer ---- */

static const char *const places[] = {
    "bridge.cluster.forwarder.forward_token",
    "bridge.cluster.forwarder.cluster_api_key",
    "bridge.cluster.forwarder.receiver_api_keys.in",
    "bridge.cluster.forwarder.receiver_api_keys",
    "sessions[s].options.session.password",
    "sessions[s].options.session.tls.key_pem",
    "receivers[in].options.api_key",
    "senders[out].options.api_key",
    "http.admin_api_key",
    "http.monitor_api_key",
};
enum { PLACES = sizeof places / sizeof places[0], KEYS_PLACE = 3 };

static const char *const parts[] = {
    "bridge:\n  id: b\n  cluster:\n    forwarder:\n      forward_token: ",
    "\n      cluster_api_key: ",
    "\n      receiver_api_keys:\n        in: ",
    NULL, /* the map around */
    "\nsessions:\n- id: s\n  transport: mqtt\n  options:\n    session:\n"
    "      broker_url: tls://h\n      client_id: c\n      username: u\n      password: ",
    "\n      tls:\n        cert_pem: x\n        key_pem: ",
    "\nreceivers:\n- id: in\n  transport: http\n  options:\n    api_key: ",
    "\nsenders:\n- id: out\n  transport: http\n  options:\n    at_most_once_accept_loss: true\n"
    "    api_key: ",
    "\nbindings: [{id: to, sender_id: out, address: x}]\n"
    "routes: [{id: r, receiver_id: in, bindings: [to]}]\nhttp:\n  admin_api_key: ",
    "\n  monitor_api_key: ",
};

/* No API key may equal the forward token (spec 04 C2). */
static const char *good(size_t place)
{
    if (place == KEYS_PLACE) return "{in: 0123456789abcdef}";
    return place == 0 ? "0123456789abcdef-token" : "0123456789abcdef";
}

/* `value` at one place and a good one at the others. To be freed. */
static char *document_with(size_t place, const char *value)
{
    struct gb_str s = {0};
    for (size_t i = 0; i < PLACES; i++) {
        if (parts[i] == NULL) continue;
        bool map = i == KEYS_PLACE - 1 && place == KEYS_PLACE;
        const char *part = parts[i];
        gb_str_append(
            &s, gb_bytes(part, map ? (size_t)(strstr(part, "\n        in") - part) : strlen(part)));
        if (map) gb_str_append_c(&s, " ");
        gb_str_append_c(&s, i == place || map ? value : good(i));
    }
    gb_str_append_c(&s, "\n");
    char *text = gb_str_take(&s);
    assert_non_null(text);
    return text;
}

static const char *const values[] = {
    MARK, /* plain, and too short for a key */
    MARK MARK,
    "\"" MARK "\"",
    "'" MARK "'",
    "\"" MARK "\\n" MARK "\"",
    "\"\\x01" MARK "\"",
    "\"" MARK "\\0" MARK "\"",
    "\"" MARK, /* never closed */
    "'" MARK,
    "[" MARK "]",
    "[" MARK,
    "[[" MARK "], {" MARK ": 1}]",
    "{" MARK "}",
    "{" MARK,
    "{" MARK ": " MARK "}",
    "{" MARK ": 1, " MARK ": 2}",
    "{a: {" MARK ": 1, " MARK ": 2}}",
    "{a: " MARK ", in: [" MARK "]}",
    "{in: " MARK ", in: " MARK "}",
    "{[" MARK "]: 1}",
    "{&" MARK " a: 1}",
    "{*" MARK " : 1}",
    "!" MARK " x",
    "!!" MARK " x",
    "!<" MARK "> x",
    "![" MARK "]",
    "[!" MARK " x, &" MARK " y, *" MARK "]",
    "!" MARK " [x]",
    "&" MARK " x",
    "&" MARK,
    "*" MARK,
    "@" MARK,
    "`" MARK,
    "%" MARK,
    "%s%n" MARK,
    "> " MARK,
    "|" MARK,
    "- " MARK,
    "? " MARK,
    MARK ": " MARK,
    MARK ": [" MARK,
    MARK " # " MARK,
    "\t" MARK,
    "\xFF" MARK,
    MARK "\xC3",
    "\xEF\xBB\xBF" MARK,
    MARK "\n---\n" MARK,
    MARK "\n...\n" MARK,
    "\n" MARK,
    "\"[REDACTED]\" " MARK,
};

static void check_silent(const char *what, const char *value, const struct gb_blueprint_input *in,
                         bool *refused)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str said = {0};
    const char *names[GB_BLUEPRINT_NAMES_MAX];
    gb_blueprint_names(in, names);
    struct gb_err err = gb_blueprint_load_layers(in, &findings, &b);
    if (b != NULL) (void)gb_blueprint_supported(b, &findings);
    gb_str_append_c(&said, err.message);
    gb_str_append_c(&said, "\n");
    gb_findings_print(&findings, names, &said);
    if (strstr(said.data, MARK) != NULL) fail_msg("%s, %s:\n%s", what, value, said.data);
    *refused = gb_failed(err);
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
    gb_str_deinit(&said);
}

static void check_place(size_t place, const char *value, bool refused[3])
{
    char *clean = document_with(PLACES, "");
    char *bad = document_with(place, value);
    struct gb_blueprint_layer layers[2] = {{.name = "base", .bytes = gb_bytes_c(clean)},
                                           {.name = "overlay", .bytes = gb_bytes_c(bad)}};
    struct gb_blueprint_layer alone = {.name = "base", .bytes = gb_bytes_c(bad)};
    struct gb_blueprint_override set = {"-set 1", places[place], gb_bytes_c(value)};
    check_silent(places[place], value,
                 &(struct gb_blueprint_input){.layers = &alone, .layer_count = 1}, &refused[0]);
    check_silent(places[place], value,
                 &(struct gb_blueprint_input){.layers = layers, .layer_count = 2}, &refused[1]);
    check_silent(places[place], value,
                 &(struct gb_blueprint_input){
                     .layers = layers, .layer_count = 1, .overrides = &set, .override_count = 1},
                 &refused[2]);
    free(clean);
    free(bad);
}

static void check_34_no_mistake_shows_a_secret(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++) {
        bool refused[3];
        size_t refusals = 0;
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            bool id = strncmp(values[v], "{" MARK, strlen("{" MARK)) == 0 ||
                      strncmp(values[v], MARK ":", strlen(MARK ":")) == 0;
            if (p == KEYS_PLACE && id) continue; /* its keys are ids of receivers */
            check_place(p, values[v], refused);
            refusals += refused[0];
        }
        assert_true(refusals >= 25);    /* most of them are mistakes */
        check_place(p, "[1]", refused); /* the place is the secret's: the type is refused */
        assert_true(refused[0] && refused[1] && refused[2]);
        /* and a good one is not */
        check_place(p, good(p), refused);
        assert_false(refused[0] || refused[1] || refused[2]);
    }
}

/* A misspelt key is quoted, its value never. */
static void check_34_misspelt_keys(void **state)
{
    (void)state;
    char *text = document_with(PLACES, "");
    for (size_t p = 0; p < PLACES; p++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%sx", places[p]);
        if (strstr(path, "receiver_api_keys.") != NULL) continue; /* any id is accepted there */
        struct gb_blueprint_layer layer = {.name = "base", .bytes = gb_bytes_c(text)};
        struct gb_blueprint_override set = {"-set 1", path, gb_bytes_c(MARK)};
        bool refused;
        check_silent(
            path, MARK,
            &(struct gb_blueprint_input){
                .layers = &layer, .layer_count = 1, .overrides = &set, .override_count = 1},
            &refused);
        assert_true(refused);
    }
    free(text);
}

static void check_34_json(void **state)
{
    (void)state;
    static const char *const json[] = {
        "\"" MARK "\"",
        "\"" MARK,
        MARK,
        "[\"" MARK "\"]",
        "{\"" MARK "\":1}",
        "{\"" MARK "\":1,\"" MARK "\":2}",
        "\"\\ud800" MARK "\"",
        "\"\\q" MARK "\"",
        "\"" MARK "\\u0000\"",
        "\"" MARK "\n\"",
        "\"" MARK "\" \"" MARK "\"",
        "\"\xFF" MARK "\"",
        "'" MARK "'",
    };
    static const char *const keys[] = {"\"admin_api_key\":", "\"monitor_api_key\":"};
    for (size_t i = 0; i < sizeof json / sizeof json[0] * 2; i++) {
        struct gb_str s = {0};
        gb_str_append_c(&s, "{\"bridge\":{\"id\":\"b\"},\"http\":{");
        if (i % 2 == 1) gb_str_append_c(&s, "\"admin_api_key\":\"0123456789abcdef\",");
        gb_str_append_c(&s, keys[i % 2]);
        gb_str_append_c(&s, json[i / 2]);
        gb_str_append_c(&s, "}}");
        struct gb_blueprint_layer layer = {
            .name = "base", .bytes = gb_str_bytes(&s), .format = GB_BLUEPRINT_JSON};
        bool refused;
        check_silent(keys[i % 2], json[i / 2],
                     &(struct gb_blueprint_input){.layers = &layer, .layer_count = 1}, &refused);
        assert_true(refused);
        gb_str_deinit(&s);
    }
}

static void check_34_environment(void **state)
{
    (void)state;
    struct gb_blueprint_layer layer = {.name = "base", .bytes = gb_bytes_c("bridge: {id: b}")};
    bool refused;
    check_silent(
        "environment", "keys",
        &(struct gb_blueprint_input){.layers = &layer, .layer_count = 1, .env = {NULL, MARK, MARK}},
        &refused);
    assert_true(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flagged_fields),
        cmocka_unit_test(check_34_no_mistake_shows_a_secret),
        cmocka_unit_test(check_34_misspelt_keys),
        cmocka_unit_test(check_34_json),
        cmocka_unit_test(check_34_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
