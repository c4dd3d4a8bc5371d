#include "blueprint/rule_rows.h"

static const struct rule_row stores_rows[] = {
    {"01 V20", "  outbox: {type: sqlite, options: {path: /var/lib/gobridge/outbox.db}}\n", "",
     "shared_outbox requires stores.outbox"},
    {"01 V22",
     "  managed_subscriptions: {type: sqlite, options: {path: /var/lib/gobridge/subs/subs.db}}\n",
     "", "requires stores.managed_subscriptions"},
    {"01 W4", "  dlq: {type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}\n", "",
     "warning: routes[0] (ingest): expired and refused"},
    {"store type", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}", "{type: redis}",
     "must be one of: memory, sqlite, dynamodb"},
    {"store without type", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{options: {}}", "stores.dlq.type is required"},
    {"store without path", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{type: sqlite}", "stores.dlq.options.path is required"},
    {"unknown role", "  dlq: {type", "  audit: {type", "unknown key \"stores.audit\""},
    {"01 row 31, memory outbox", "{type: sqlite, options: {path: /var/lib/gobridge/outbox.db}}",
     "{type: memory}", "options.acknowledge_volatile: true to accept"},
    {"memory outbox acknowledged", "{type: sqlite, options: {path: /var/lib/gobridge/outbox.db}}",
     "{type: memory, options: {acknowledge_volatile: true}}", NULL},
    {"01 row 31, memory dlq", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{type: memory, options: {acknowledge_volatile: false}}", "stores.dlq: type memory loses"},
    {"01 row 31, memory lease", "  dlq: {", "  lease: {type: memory}\n  dlq: {",
     "acknowledge_single_replica: true to accept"},
    {"lease store", "  dlq: {",
     "  lease: {type: memory, options: {acknowledge_single_replica: true}}\n  dlq: {",
     "stores.lease is not supported yet"},
    {"memory subscriptions", "{type: sqlite, options: {path: /var/lib/gobridge/subs/subs.db}}",
     "{type: memory}", "the history must survive restarts"},
    {"dynamodb", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}", "{type: dynamodb}",
     "stores.dlq: type dynamodb is not supported yet"},
    {"01 row 12, region", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{type: dynamodb, options: {region: x}}", "unknown key \"stores.dlq.options.region\""},
    {"01 row 12, endpoint", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{type: dynamodb, options: {endpoint: x}}", "unknown key"},
    {"01 row 12, endpoint_url", "{type: sqlite, options: {path: /var/lib/gobridge/dlq.db}}",
     "{type: dynamodb, options: {endpoint_url: x}}", "unknown key"},
    {"01 row 31, window on outbox", "/outbox.db}}", "/outbox.db}, auto_redrive_window: 1h}",
     "unknown key \"stores.outbox.auto_redrive_window\""},
    {"01 row 31, window off", "/dlq.db}}", "/dlq.db}, auto_redrive_window: \"0s\"}", NULL},
    {"negative window", "/dlq.db}}", "/dlq.db}, auto_redrive_window: -1s}", "must not be negative"},
    {"outbox never compacts", "/outbox.db}}", "/outbox.db, retention: -1s}}", NULL},
    {"negative dlq retention", "/dlq.db}}", "/dlq.db, retention: -1s}}", "must not be negative"},
    {"key of another type", "/dlq.db}}", "/dlq.db, table_name: x}}", "unknown key"},
    {"key of another role", "/dlq.db}}", "/dlq.db, stale_claim_duration: 1m}}", "unknown key"},
    {"relative subscriptions path", "/var/lib/gobridge/subs/subs.db", "subs.db",
     "must be an absolute path"},
    {"unclean subscriptions path", "/var/lib/gobridge/subs/subs.db", "/var/../subs.db",
     "must be an absolute path"},
    {"doubled slash", "/var/lib/gobridge/subs/subs.db", "/var//subs.db",
     "must be an absolute path"},
    {"directory", "/var/lib/gobridge/subs/subs.db", "/var/", "must be an absolute path"},
    {"volatile subscriptions", "/var/lib/gobridge/subs/subs.db", "\":memory:\"",
     "does not survive a restart"},
    {"uri", "path: /var/lib/gobridge/dlq.db", "path: \"file:/x\"", "plain path without file:"},
    {"query", "path: /var/lib/gobridge/dlq.db", "path: \"/x?mode=ro\"", "plain path without file:"},
    {"volatile dlq in a file store", "path: /var/lib/gobridge/dlq.db", "path: \":memory:\"", NULL},
    {"relative dlq path", "path: /var/lib/gobridge/dlq.db", "path: dlq.db", NULL},
    {"01 V31", "/outbox.db}}", "/outbox.db, stale_claim_duration: 30s}}",
     "must be greater than the largest send_timeout"},
    {"01 V32", "/outbox.db}}", "/outbox.db, stale_claim_duration: 40s}}",
     "warning: stores.outbox.options.stale_claim_duration 40s is not greater than send_timeout"},
    {"above V32", "/outbox.db}}", "/outbox.db, stale_claim_duration: 41s}}", NULL},
    {"zero stale claim", "/outbox.db}}", "/outbox.db, stale_claim_duration: 0s}}",
     "must be greater than zero"},
};

static void stores(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", stores_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
