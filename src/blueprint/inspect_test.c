#include "blueprint/inspect.h"

#include "blueprint/rule_rows.h"

static char *inspection_of(const char *text)
{
    const char *name = "doc";
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_str out = {0};
    (void)gb_blueprint_load(gb_bytes_c(text), name, GB_BLUEPRINT_YAML, &findings, &b);
    struct gb_inspection of = {gb_bytes_c(text), &findings, &name, b};
    assert_int_equal(gb_inspect(&of, &out).code, GB_OK);
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
    char *got = gb_str_take(&out);
    assert_non_null(got);
    return got;
}

static void assert_part(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("no %s\nin %s", part, text);
}

static void the_cluster(void **state)
{
    (void)state;
    char *text = read_document(DOCUMENTS "cluster.yaml");
    char *got = inspection_of(text);
    assert_int_equal(
        strncmp(got, "{\"errors\":[],\"warnings\":[\"doc:15:29: warning: stores.outbox.", 60), 0);
    assert_part(got, "[V32]\"],\"raw_sha256\":\""
                     "16ccb2ccd448f9bdfd35056fc86ec89c537f8162ec52d3dedd263c1e650ff052\","
                     "\"bridge_id\":\"telemetry-bridge\",\"deployment_mode\":\"clustered\","
                     "\"shutdown_timeout_ns\":45000000000,\"cluster\":{\"rollout\":\"refuse\","
                     "\"members\":[],\"endpoints\":{}},\"stores\":{\"lease\":{\"type\":"
                     "\"dynamodb\",\"table_name\":\"gobridge-leases\",\"paths\":[]},");
    assert_part(got, "\"sessions\":[{\"id\":\"mqtt-conn\",\"transport\":\"mqtt\",\"mode\":"
                     "\"exclusive\",\"subscribes\":true,\"storage_identity\":"
                     "\"3fb3dc0546d135442b6e1b5a67dc0f63e321f306fae8183cda3a1eb5d64c7eb2\","
                     "\"client_id_suffix\":null}],\"routes\":[{\"id\":\"ingest\","
                     "\"receiver_session\":\"mqtt-conn\",\"binding_sessions\":[\"mqtt-conn\"],"
                     "\"session_id\":\"mqtt-conn\",\"delivery_mode\":\"shared_outbox\","
                     "\"ack_after\":\"outbox_persist\",\"failover_slo_ns\":980000000000,"
                     "\"startup_allowance_set\":true}],\"sqs\":[{\"role\":\"sender\",\"id\":"
                     "\"sqs-out\",\"queue_name\":null,\"queue_url\":\"https://sqs.us-west-1."
                     "amazonaws.com/123456789/telemetry-events\",\"queue_tags\":{},"
                     "\"queue_name_prefix\":null}],\"ssm_paths\":[],\"http_receivers\":[],"
                     "\"fingerprint\":"
                     "\"d5c252caed3b6097e4e6f9aec73388d931d94e34bb42dc2c3ec056f35fd5d6fb\","
                     "\"baseline_digest\":"
                     "\"376c8b3d2a87ba96182cdd506b6cb517108a4ae8af312cca2cc6e2aa1afb49c8\"}\n");
    free(got);
    free(text);
}

/* What the other examples lack. */
static void every_field(void **state)
{
    (void)state;
    static const char document[] =
        "bridge: {id: b, cluster: {members: [m2, m1]}}\n"
        "stores: {dlq: {type: memory, options: {acknowledge_volatile: true}},\n"
        "  outbox: {type: sqlite, options: {path: /data/outbox.db}}}\n"
        "sessions:\n"
        "  - {id: s, transport: mqtt.paho, options: {credentials_uri: pms://app/mqtt, session: {\n"
        "      broker_url: \"tcp://b\", client_id: c, client_id_suffix: nonce}}}\n"
        "receivers:\n"
        "  - {id: in, transport: http, options: {api_key: 0a23456789abcdef, "
        "credentials_uri: pms://app/in}}\n"
        "  - {id: in2, transport: http, options: {api_key: 0a23456789abcdef, path: /x}}\n"
        "  - {id: q, transport: sqs, options: {queue_tags: {env: prod}, queue_name_prefix: p-,\n"
        "      credentials_uri: pms://app/in}}\n"
        "senders: [{id: out, session_id: s}]\n"
        "bindings: [{id: to, sender_id: out, address: a}, {id: to2, sender_id: out, address: b}]\n"
        "routes:\n"
        "  - {id: r, receiver_id: in, bindings: [to, to2], dispatch_mode: fan_out,\n"
        "     delivery_mode: shared_outbox}\n"
        "  - {id: r2, receiver_id: q, bindings: [to]}\n";
    char *got = inspection_of(document);
    assert_part(got, "\"errors\":[],");
    assert_part(got, "\"deployment_mode\":\"standalone\",\"shutdown_timeout_ns\":30000000000,"
                     "\"cluster\":{\"rollout\":\"refuse\",\"members\":[\"m2\",\"m1\"],"
                     "\"endpoints\":{}},\"stores\":{\"outbox\":{\"type\":\"sqlite\","
                     "\"table_name\":null,\"paths\":[\"/data/outbox.db\"]},\"dlq\":{\"type\":"
                     "\"memory\",\"table_name\":null,\"paths\":[]}},\"sessions\":[{\"id\":\"s\","
                     "\"transport\":\"mqtt\",\"mode\":\"ephemeral\",\"subscribes\":false,"
                     "\"storage_identity\":null,\"client_id_suffix\":\"nonce\"}],\"routes\":["
                     "{\"id\":\"r\",\"receiver_session\":null,\"binding_sessions\":[\"s\"],"
                     "\"session_id\":null,\"delivery_mode\":\"shared_outbox\",\"ack_after\":"
                     "\"outbox_persist\",\"failover_slo_ns\":null,\"startup_allowance_set\":false},"
                     "{\"id\":\"r2\",\"receiver_session\":null,\"binding_sessions\":[\"s\"],"
                     "\"session_id\":null,\"delivery_mode\":\"direct_hold\",\"ack_after\":"
                     "\"target_accept\",\"failover_slo_ns\":null,\"startup_allowance_set\":false}],"
                     "\"sqs\":[{\"role\":\"receiver\",\"id\":\"q\",\"queue_name\":null,"
                     "\"queue_url\":null,\"queue_tags\":{\"env\":\"prod\"},\"queue_name_prefix\":"
                     "\"p-\"}],\"ssm_paths\":[\"/app/in\",\"/app/mqtt\"],\"http_receivers\":["
                     "{\"id\":\"in\",\"path\":\"/transport/http/receivers/in/messages\"},"
                     "{\"id\":\"in2\",\"path\":\"/x\"}],\"fingerprint\":\"");
    assert_null(strstr(got, "0a23456789abcdef"));
    free(got);
}

/* Values from every place that may hold one, each once and in order; nothing that only looks so. */
static void parameter_paths(void **state)
{
    (void)state;
    static const char document[] =
        "bridge: {id: b, instance_id: pms://not/here}\n"
        "stores: {dlq: {type: memory, options: {acknowledge_volatile: true}},\n"
        "  managed_subscriptions: {type: sqlite, options: {path: /m}}}\n"
        "sessions:\n"
        "  - {id: a, transport: mqtt, options: {credentials_uri: 'pms://z', session: {broker_url: "
        "\"tcp://b\", client_id: a}}}\n"
        "  - {id: z, transport: mqtt, options: {credentials_uri: pms://z, session: {broker_url: "
        "\"tcp://c\", client_id: pmsx}}}\n"
        "receivers:\n"
        "  - {id: q0, transport: sqs, options: {queue_name: q0, credentials_uri: pms://q0}}\n"
        "  - {id: q1, transport: sqs, options: {queue_name: q1, credentials_uri: pms://q1}}\n"
        "  - {id: h, transport: http, options: {api_key: 0a23456789abcdef}}\n"
        "senders:\n"
        "  - {id: s0, transport: sqs, options: {queue_name: s0, credentials_uri: pms://s0/x}}\n"
        "  - {id: s1, transport: sqs, options: {queue_name: s1, credentials_uri: pms://s1/x}}\n"
        "bindings:\n"
        "  - {id: b0, sender_id: s0, address: x, options: {queue_name: q, credentials_uri: "
        "pms://b0}}\n"
        "  - {id: b1, sender_id: s1, address: x, options: {queue_name: q, credentials_uri: "
        "pms://b1}}\n";
    char *got = inspection_of(document);
    assert_part(got, "\"errors\":[],");
    assert_part(got, "\"ssm_paths\":[\"/b0\",\"/b1\",\"/q0\",\"/q1\",\"/s0/x\",\"/s1/x\","
                     "\"/z\"],\"http_receivers\":[{\"id\":\"h\",\"path\":"
                     "\"/transport/http/receivers/h/messages\"}],");
    assert_part(got, "\"sqs\":[{\"role\":\"receiver\",\"id\":\"q0\",");
    assert_part(got, "{\"role\":\"receiver\",\"id\":\"q1\",");
    assert_part(got, "{\"role\":\"sender\",\"id\":\"s0\",");
    assert_part(got, "{\"role\":\"sender\",\"id\":\"s1\",");
    assert_part(got, "\"managed_subscriptions\":{\"type\":\"sqlite\",\"table_name\":null,"
                     "\"paths\":[\"/m\"]}}");
    free(got);
}

/* The rest would be guesses (decision 0132). */
static void a_document_with_errors(void **state)
{
    (void)state;
    char *got = inspection_of("bridge: {idd: x}\n");
    assert_part(got, "{\"errors\":[\"doc:1:1: error: bridge.id is required");
    assert_part(got, " [V1]\",\"doc:1:10: error: unknown key \\\"bridge.idd\\\"");
    assert_part(got, " [K1]\"],\"warnings\":[],\"raw_sha256\":"
                     "\"3664df39e9b2c57052c113476236bf2b3a32644c4c7ee8bfe3e57ffdef0e4ab5\"}\n");
    free(got);
}

/* Not kept, but counted (findings.h). */
static void many_findings(void **state)
{
    (void)state;
    struct gb_str text = {0};
    gb_str_append_c(&text, "bridge: {id: b}\n");
    for (int i = 0; i < GB_FINDINGS_MAX + 5; i++) gb_str_appendf(&text, "k%d: 1\n", i);
    char *got = inspection_of(text.data);
    assert_part(got, "\"doc: 5 further findings are not shown\"],\"warnings\":[],");
    free(got);
    gb_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cluster),     cmocka_unit_test(every_field),
        cmocka_unit_test(parameter_paths), cmocka_unit_test(a_document_with_errors),
        cmocka_unit_test(many_findings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
