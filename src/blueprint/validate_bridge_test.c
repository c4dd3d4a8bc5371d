#include "blueprint/rule_rows.h"

static const struct rule_row bridge_rows[] = {
    {"01 V1, no id", "  id: plant-bridge\n", "", "bridge.id is required"},
    {"01 V1, empty id", "  id: plant-bridge\n", "  id: \"\"\n", "bridge.id is required"},
    {"01 V1, no bridge block",
     "bridge:\n"
     "  id: plant-bridge\n"
     "  instance_id: one\n",
     "", "bridge.id is required"},
    {"01 row 9, mode", "  instance_id: one\n", "  deployment_mode: both\n",
     "must be one of: standalone, clustered"},
    {"01 row 6, clustered sqlite", "  instance_id: one\n", "  deployment_mode: clustered\n",
     "stores.outbox: a clustered bridge needs a distributed store"},
    {"01 row 9, peers", "  instance_id: one\n",
     "  cluster: {endpoints: {instance-01: \"10.0.1.10:8080\"}}\n", "not its peers"},
    {"01 row 9, no scheme", "  instance_id: one\n",
     "  cluster: {endpoints: {http: \"10.0.1.10:8080\"}}\n", "must be an absolute http or https"},
    {"01 row 9, endpoints make a cluster", "  instance_id: one\n",
     "  cluster: {endpoints: {http: \"http://10.0.1.10:8080\"}}\n",
     "stores.dlq: a clustered bridge"},
    {"01 row 32, misspelt rollout", "  instance_id: one\n", "  cluster: {rollout: cordinated}\n",
     "must be one of: refuse, independent, coordinated"},
    {"01 row 32, no members", "  instance_id: one\n", "  cluster: {rollout: coordinated}\n",
     "requires bridge.cluster.members"},
    {"01 row 32, standalone", "  instance_id: one\n",
     "  cluster: {rollout: coordinated, members: [a]}\n", "requires deployment_mode: clustered"},
    {"01 row 32, repeated member", "  instance_id: one\n",
     "  cluster: {rollout: coordinated, members: [a, b, a]}\n", "holds \"a\" twice"},
    {"01 row 32, window under refuse", "  instance_id: one\n", "  cluster: {confirm_window: 1m}\n",
     "confirm_window requires rollout: coordinated"},
    {"cluster block", "  instance_id: one\n", "  cluster: {rollout: refuse}\n",
     "bridge.cluster is not supported yet"},
    {"01 row 10, bare number", "  instance_id: one\n", "  shutdown_timeout: 30\n",
     "invalid duration \"30\""},
    {"zero timeout", "  instance_id: one\n", "  shutdown_timeout: 0s\n",
     "must be greater than zero"},
    {"01 row 11", "  instance_id: one\n", "  shutdown_timout: 30s\n",
     "did you mean \"shutdown_timeout\"?"},
    {"01 row 15, any case", "  instance_id: one\n", "  log_level: WARNING\n", NULL},
    {"01 row 15, unknown", "  instance_id: one\n", "  log_level: verbose\n",
     "must be one of: debug"},
    {"ceiling below a record", "  instance_id: one\n",
     "  per_record_drain_timeout: 5s\n"
     "  max_drain_timeout: 4s\n",
     "is less than bridge.per_record_drain_timeout"},
    {"only the record written", "  instance_id: one\n", "  per_record_drain_timeout: 15s\n", NULL},
    {"01 W5, drain after shutdown", "  instance_id: one\n", "  drain_timeout: 30s\n",
     "warning: bridge.drain_timeout is not less"},
    {"number as text", "  instance_id: one\n", "  instance_id: 17\n", "put it in quotes"},
    {"quoted number as text", "  instance_id: one\n", "  instance_id: \"17\"\n", NULL},
    {"yes is a text", "  instance_id: one\n", "  instance_id: yes\n", NULL},
    {"config_watch", "stores:\n",
     "config_watch: {mode: poll}\n"
     "stores:\n",
     "warning: config_watch has no effect"},
    {"config_watch, unknown mode", "stores:\n",
     "config_watch: {mode: push}\n"
     "stores:\n",
     "must be one of: notify, poll"},
    {"long id", "  id: plant-bridge\n", "  id: \"a\\x07\"\n",
     "bridge.id must be at most 255 bytes without control characters"},
};

static void bridge(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", bridge_rows);
}

static const struct rule_row http_and_telemetry_rows[] = {
    {"http", "    policy: {}\n",
     "    policy: {}\n"
     "http: {admin_api_key: 0123456789abcdef}\n",
     "http is not supported yet"},
    {"01 row 30, no key", "    policy: {}\n",
     "    policy: {}\n"
     "http: {}\n",
     "http.admin_api_key is required"},
    {"01 row 30, short key", "    policy: {}\n",
     "    policy: {}\n"
     "http: {admin_api_key: a123456789abcde}\n",
     "http.admin_api_key has 15 bytes"},
    {"01 row 30, any origin", "    policy: {}\n",
     "    policy: {}\n"
     "http: {admin_api_key: a0123456789abcdef, cors_origins: \"*\"}\n",
     "must not hold \"*\""},
    {"01 row 30, lone certificate", "    policy: {}\n",
     "    policy: {}\n"
     "http: {admin_api_key: a0123456789abcdef, tls_cert_file: x}\n",
     "only accepted together"},
    {"metrics", "    policy: {}\n",
     "    policy: {}\n"
     "telemetry: {metrics: {exporter: prometheus}}\n",
     "telemetry.metrics.exporter other than none is not supported yet"},
    {"no metrics", "    policy: {}\n",
     "    policy: {}\n"
     "telemetry: {metrics: {exporter: noop, namespace: x}, tracing: {exporter: none}}\n",
     NULL},
    {"tracing", "    policy: {}\n",
     "    policy: {}\n"
     "telemetry: {tracing: {exporter: otlp}}\n",
     "telemetry.tracing.exporter other than none is not supported yet"},
};

static void http_and_telemetry(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", http_and_telemetry_rows);
}

static const struct rule_row document_rows[] = {
    {"unknown section", "stores:\n",
     "rooutes: []\n"
     "stores:\n",
     "did you mean \"routes\"?"},
    {"duplicate key", "stores:\n",
     "bridge: {id: x}\n"
     "stores:\n",
     "duplicate key \"bridge\"; it was already written at line 1"},
    {"second document", "stores:\n",
     "---\n"
     "stores:\n",
     "a second document starts here"},
    {"tag", "id: plant-bridge", "id: !secret x", "tags are not accepted"},
    {"alias", "  instance_id: one\n",
     "  instance_id: &name one\n"
     "  cluster: {members: [*name]}\n",
     "bridge.cluster is not supported yet"},
    {"unknown alias", "  instance_id: one\n", "  instance_id: *name\n", "has no anchor before it"},
    {"tab", "  instance_id: one\n", "\tinstance_id: one\n", "invalid YAML"},
    {"merge key", "  instance_id: one\n", "  <<: {instance_id: one}\n",
     "unknown key \"bridge.<<\""},
};

static void document(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", document_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bridge),
        cmocka_unit_test(http_and_telemetry),
        cmocka_unit_test(document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
