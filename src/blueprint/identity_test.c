#include "blueprint/identity.h"

#include "blueprint/rule_rows.h"

#define TENANTS DOCUMENTS "tenants.yaml"
#define CLUSTER DOCUMENTS "cluster.yaml"

static struct gb_blueprint *load(const char *name, const char *text,
                                 enum gb_blueprint_format format)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load(gb_bytes_c(text), "doc", format, &findings, &b);
    if (gb_failed(err)) fail_msg("%s: %s", name, findings.items[0].text);
    gb_findings_deinit(&findings);
    return b;
}

struct hashes {
    char digest[GB_SHA256_HEX], fingerprint[GB_SHA256_HEX];
};

static struct hashes hashes_of(const char *name, const char *text, enum gb_blueprint_format format)
{
    struct hashes h;
    struct gb_blueprint *b = load(name, text, format);
    assert_int_equal(gb_blueprint_digest(b, h.digest).code, GB_OK);
    assert_int_equal(gb_blueprint_fingerprint(b, h.fingerprint).code, GB_OK);
    gb_blueprint_free(b);
    return h;
}

enum effect { SAME = 0, CONTENT = 1, FINGERPRINT = 2 };

static const struct change_row {
    const char *name, *document;
    const char *find, *replace;
    unsigned effect; /* what it changes */
} rows[] = {
    {"01 check 27: version", TENANTS, "version: 1", "version: 9", SAME},
    {"01 check 27: no version", TENANTS, "version: 1\n", "", SAME},
    {"01 check 27: reordered section", TENANTS,
     "  - {id: to-a1, sender_id: out-a, address: a1}\n"
     "  - {id: to-a2, sender_id: out-a, address: a2}\n",
     "  - {id: to-a2, sender_id: out-a, address: a2}\n"
     "  - {id: to-a1, sender_id: out-a, address: a1}\n",
     SAME},
    {"01 check 27: explicit drain_timeout", TENANTS, "{id: tenants}",
     "{id: tenants, drain_timeout: 30s}", SAME},
    {"01 check 27: explicit shutdown_timeout", TENANTS, "{id: tenants}",
     "{shutdown_timeout: 0.5m, id: tenants}", SAME},
    {"01 check 27: spelling of a duration", CLUSTER, "per_record_drain_timeout: 3s",
     "per_record_drain_timeout: 3000ms", SAME},
    {"01 check 27: swapped bindings", TENANTS, "[to-a1, to-a2]", "[to-a2, to-a1]", CONTENT},
    {"01 check 27: swapped topics", TENANTS, "[{topic: x, qos: 1}, {topic: y, qos: 1}]",
     "[{topic: y, qos: 1}, {topic: x, qos: 1}]", CONTENT},
    {"01 check 27: qos", TENANTS, "{topic: y, qos: 1}", "{topic: y, qos: 2}", CONTENT},
    {"explicit default elsewhere", TENANTS, "max_in_flight: 10",
     "max_in_flight: 10, send_timeout: 30s", CONTENT},
    {"another drain_timeout", TENANTS, "{id: tenants}", "{id: tenants, drain_timeout: 29s}",
     CONTENT},
    {"instance_id", TENANTS, "{id: tenants}", "{id: tenants, instance_id: a}", CONTENT},
    {"alias of a kind", TENANTS, "transport: mqtt\n", "transport: mqtt.paho\n", SAME},
    {"empty list", TENANTS, "processors: [only]\n", "processors: [only]\n    resolver: ~\n", SAME},
    {"a comment and another style", TENANTS, "{max_in_flight: 10}",
     "# none\n      \"max_in_flight\": 10", SAME},
    {"a secret", DOCUMENTS "standalone.yaml", "client_id: plant-bridge",
     "client_id: plant-bridge\n        username: u\n        password: p\n"
     "        allow_plaintext_credentials: true",
     CONTENT},
    {"07 check 33: a route", CLUSTER, "max_in_flight: 100", "max_in_flight: 101", CONTENT},
    {"07 check 33: a session", CLUSTER, "keep_alive: 30", "keep_alive: 31", CONTENT},
    {"07 check 33: version", CLUSTER, "bridge:\n", "version: 4\nbridge:\n", SAME},
    {"07 check 33: mode", CLUSTER, "  deployment_mode: clustered\n", "", CONTENT | FINGERPRINT},
    {"07 check 33: rollout", CLUSTER, "  log_level: info\n",
     "  log_level: info\n  cluster: {rollout: independent}\n", CONTENT | FINGERPRINT},
    {"07 check 33: rollout that is the default", CLUSTER, "  log_level: info\n",
     "  log_level: info\n  cluster: {rollout: refuse}\n", CONTENT},
    {"07 check 33: members", CLUSTER, "  log_level: info\n",
     "  log_level: info\n  cluster: {members: [a]}\n", CONTENT | FINGERPRINT},
    {"07 check 33: endpoints", CLUSTER, "  log_level: info\n",
     "  log_level: info\n  cluster: {endpoints: {http: \"http://10.0.1.10:8080\"}}\n",
     CONTENT | FINGERPRINT},
    {"07 check 33: a table", CLUSTER, "gobridge-leases", "leases", CONTENT | FINGERPRINT},
    {"07 check 33: a table that is the default", CLUSTER,
     "{type: dynamodb, options: {table_name: gobridge-leases}}", "{type: dynamodb}", CONTENT},
    {"07 check 33: a path", TENANTS, "outbox.db", "outbox2.db", CONTENT | FINGERPRINT},
    {"07 check 33: a store is added", TENANTS, "stores:\n",
     "stores:\n  lease: {type: sqlite, options: {path: /var/lib/gobridge/lease.db}}\n",
     CONTENT | FINGERPRINT},
    {"07 check 33: another option of a store", CLUSTER, "stale_claim_duration: 35s",
     "stale_claim_duration: 36s", CONTENT},
};

static void changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct change_row *row = &rows[i];
        struct rule_row as_rule = {.name = row->name, .find = row->find, .replace = row->replace};
        char *base = read_document(row->document);
        char *text = patched(base, &as_rule);
        struct hashes a = hashes_of(row->name, base, GB_BLUEPRINT_YAML);
        struct hashes b = hashes_of(row->name, text, GB_BLUEPRINT_YAML);
        print_message("  %s\n", row->name);
        assert_int_equal(strcmp(a.digest, b.digest) != 0, (row->effect & CONTENT) != 0);
        assert_int_equal(strcmp(a.fingerprint, b.fingerprint) != 0,
                         (row->effect & FINGERPRINT) != 0);
        free(text);
        free(base);
    }
}

/* Computed with sha256sum from the text of decisions 0130 and 0131; a change here makes every
 * cohort that is rolling over disagree. */
static const struct vector_row {
    const char *file, *digest, *fingerprint;
} vectors[] = {
    {"standalone", "0cc433a1faf043898c536863c125c5a797a9aded71d3c3fa89968d275e9ce05c",
     "954e82c9c71cfdaac6a11e56945949d607ed719df56e18706cc90fa3aa76486f"},
    {"direct", "a27ef9883b2aeb2fccd1dc3b434721c3f23ca6fa660f63146b55aea63db2f38b",
     "f223470aea37354663dbd1f5c1d9c96e4fcc5ad432576852aaef35f699af8871"},
    {"cluster", "376c8b3d2a87ba96182cdd506b6cb517108a4ae8af312cca2cc6e2aa1afb49c8",
     "d5c252caed3b6097e4e6f9aec73388d931d94e34bb42dc2c3ec056f35fd5d6fb"},
    {"tenants", "0d890138889b2d4cefd1a523ff3c61d8698f8a26ca318302c709442bcedbd17d",
     "954e82c9c71cfdaac6a11e56945949d607ed719df56e18706cc90fa3aa76486f"},
};

static void known_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        char path[128];
        const struct vector_row *row = &vectors[i];
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.yaml", row->file);
        char *yaml = read_document(path);
        struct hashes h = hashes_of(row->file, yaml, GB_BLUEPRINT_YAML);
        assert_string_equal(h.digest, row->digest);
        assert_string_equal(h.fingerprint, row->fingerprint);
        free(yaml);
    }
}

static void yaml_and_json_agree(void **state)
{
    (void)state;
    static const char *const files[] = {"standalone", "direct", "cluster"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.yaml", files[i]);
        char *yaml = read_document(path);
        (void)snprintf(path, sizeof path, DOCUMENTS "%s.json", files[i]);
        char *json = read_document(path);
        struct hashes a = hashes_of(files[i], yaml, GB_BLUEPRINT_YAML);
        struct hashes b = hashes_of(files[i], json, GB_BLUEPRINT_JSON);
        assert_string_equal(a.digest, b.digest);
        assert_string_equal(a.fingerprint, b.fingerprint);
        free(yaml);
        free(json);
    }
}

static void text_under_the_fingerprint(void **state)
{
    (void)state;
    static const char document[] =
        "bridge:\n  id: b\n  deployment_mode: clustered\n"
        "  cluster:\n    rollout: coordinated\n    members: [b, a]\n"
        "    endpoints: {http: \"http://10.0.1.10:8080\", extra: \"http://10.0.1.10:8081\"}\n"
        "stores:\n  lease: {type: dynamodb}\n  outbox: {type: dynamodb, options: {table_name: "
        "\"a\\\"b\"}}\n";
    struct gb_blueprint *b = load("text", document, GB_BLUEPRINT_YAML);
    struct gb_str text = {0};
    assert_int_equal(gb_blueprint_fingerprint_text(b, &text).code, GB_OK);
    assert_string_equal(text.data,
                        "tag=\"gobridge/deployment-profile/v1\"\n"
                        "deployment_mode=\"clustered\"\n"
                        "cluster.rollout=\"coordinated\"\n"
                        "cluster.members=[\"a\",\"b\"]\n"
                        "cluster.endpoints={\"extra\":\"http://10.0.1.10:8081\","
                        "\"http\":\"http://10.0.1.10:8080\"}\n"
                        "lease={\"table_name\":\"gobridge-leases\",\"type\":\"dynamodb\"}\n"
                        "outbox={\"table_name\":\"a\\\"b\",\"type\":\"dynamodb\"}\n"
                        "dlq=null\n"
                        "managed_subscriptions=null");
    gb_str_deinit(&text);
    gb_blueprint_free(b);
    b = load("memory",
             "bridge: {id: b}\nstores: {dlq: {type: memory, options: {acknowledge_volatile: "
             "true}}, outbox: {type: sqlite, options: {path: /x}}}\n",
             GB_BLUEPRINT_YAML);
    assert_int_equal(gb_blueprint_fingerprint_text(b, &text).code, GB_OK);
    assert_string_equal(text.data, "tag=\"gobridge/deployment-profile/v1\"\n"
                                   "deployment_mode=\"standalone\"\n"
                                   "cluster.rollout=\"refuse\"\n"
                                   "cluster.members=[]\n"
                                   "cluster.endpoints={}\n"
                                   "lease=null\n"
                                   "outbox={\"path\":\"/x\",\"type\":\"sqlite\"}\n"
                                   "dlq={\"type\":\"memory\"}\n"
                                   "managed_subscriptions=null");
    gb_str_deinit(&text);
    gb_blueprint_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes),
        cmocka_unit_test(known_vectors),
        cmocka_unit_test(yaml_and_json_agree),
        cmocka_unit_test(text_under_the_fingerprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
