#include "blueprint/edge_rows.h"

/* Both sides of each bound (rows that scripts/mutate.py asked for). */

static const struct edge_row bridge_rows[] = {
    {"id of 255 bytes", "bridge: {id: @255@}", GB_RULE_V3, "bridge.id", false},
    {"id of 256 bytes", "bridge: {id: @256@}", GB_RULE_V3, "bridge.id", true},
    {"id that is a number", "bridge: {id: 12}", GB_RULE_V1, "bridge.id", false},
    {"id that is a digit", "bridge: {id: 1}", GB_RULE_V1, "bridge.id", false},
    {"id without value", "bridge: {id: }", GB_RULE_V1, "bridge.id", true},
    {"id of a session with 255 bytes", "sessions: [{id: @255@}]", GB_RULE_V3, "bytes", false},
    {"id of a session with 256 bytes", "sessions: [{id: @256@}]", GB_RULE_V3, "bytes", true},
    {"equal drain timeouts", "bridge: {per_record_drain_timeout: 3s, max_drain_timeout: 3s}",
     GB_RULE_V2, "bridge.max_drain_timeout", false},
    {"drain timeouts 1ns apart",
     "bridge: {per_record_drain_timeout: 3s, max_drain_timeout: 2999999999ns}", GB_RULE_V2,
     "bridge.max_drain_timeout", true},
    {"only one of them", "bridge: {per_record_drain_timeout: 20s}", GB_RULE_V2,
     "bridge.max_drain_timeout", false},
    {"drain as long as shutdown", "bridge: {drain_timeout: 30s}", GB_RULE_W5,
     "bridge.drain_timeout", true},
    {"drain 1ns shorter", "bridge: {drain_timeout: 29999999999ns}", GB_RULE_W5,
     "bridge.drain_timeout", false},
};

#define ENDPOINT(url) "bridge: {cluster: {endpoints: {a: http://a, http: \"" url "\"}}}"

static const struct edge_row value_rows[] = {
    {"duration that is a digit", "bridge: {drain_timeout: \"5\"}", GB_RULE_K6, "drain_timeout",
     true},
    {"duration that is empty", "bridge: {drain_timeout: \"\"}", GB_RULE_K6, "drain_timeout", false},
    {"word that is a list", "bridge: {log_level: [info]}", GB_RULE_K5, "a list", true},
    {"word that is a map", "bridge: {log_level: {a: 1}}", GB_RULE_K5, "a map", true},
    {"word that is wrong", "bridge: {log_level: 1}", GB_RULE_K5, "\"1\"", true},
    {"list that is empty", "http: {cors_origins: \"\"}", GB_RULE_K3, "cors_origins", false},
    {"list of one", "http: {cors_origins: \"a\"}", GB_RULE_K3, "cors_origins", false},
    {"blanks around", "http: {cors_origins: \" \\t* \\t\"}", GB_RULE_V10, "cors_origins", true},
    {"blanks between", "http: {cors_origins: \"a ,\\t*\"}", GB_RULE_V10, "cors_origins", true},
    {"blank entry", "http: {cors_origins: \"a, \\t,b\"}", GB_RULE_K3, "cors_origins", true},
    {"blank last entry", "http: {cors_origins: \"a, \\t\"}", GB_RULE_K3, "cors_origins", true},
    {"least of an integer",
     "sessions: [{id: s, transport: mqtt, options: {session: {keep_alive: "
     "0}}}]",
     GB_RULE_K4, "keep_alive", false},
    {"below", "sessions: [{id: s, transport: mqtt, options: {session: {keep_alive: -1}}}]",
     GB_RULE_K4, "raise it", true},
    {"most", "sessions: [{id: s, transport: mqtt, options: {session: {keep_alive: 65535}}}]",
     GB_RULE_K4, "keep_alive", false},
    {"above", "sessions: [{id: s, transport: mqtt, options: {session: {keep_alive: 65536}}}]",
     GB_RULE_K4, "lower it", true},
};

static const struct edge_row endpoint_rows[] = {
    {"one letter", ENDPOINT("http://a"), GB_RULE_C5, "endpoints.http", false},
    {"one letter, TLS", ENDPOINT("https://a"), GB_RULE_C5, "endpoints.http", false},
    {"no host", ENDPOINT("http://"), GB_RULE_C5, "endpoints.http", true},
    {"no host before a port", ENDPOINT("http://:80"), GB_RULE_C5, "endpoints.http", true},
    {"a port without a colon", ENDPOINT("http://[::1]8080"), GB_RULE_C5, "endpoints.http", true},
    {"least port", ENDPOINT("http://a:1"), GB_RULE_C5, "endpoints.http", false},
    {"largest port", ENDPOINT("http://a:65535/x"), GB_RULE_C5, "endpoints.http", false},
    {"port 0", ENDPOINT("http://a:0"), GB_RULE_C5, "endpoints.http", true},
    {"port too large", ENDPOINT("http://a:65536"), GB_RULE_C5, "endpoints.http", true},
    {"empty port", ENDPOINT("http://a:"), GB_RULE_C5, "endpoints.http", true},
    {"port with letters", ENDPOINT("http://a:8x"), GB_RULE_C5, "endpoints.http", true},
    {"IPv6", ENDPOINT("http://[::1]:80"), GB_RULE_C5, "endpoints.http", false},
    {"IPv6, no port", ENDPOINT("http://[::1]"), GB_RULE_C5, "endpoints.http", false},
    {"IPv6, open", ENDPOINT("http://[::1"), GB_RULE_C5, "endpoints.http", true},
    {"user", ENDPOINT("http://u:p\\x40a:80"), GB_RULE_C5, "endpoints.http", false},
    {"user without host", ENDPOINT("http://u\\x40"), GB_RULE_C5, "endpoints.http", true},
    {"no host, TLS", ENDPOINT("https://"), GB_RULE_C5, "endpoints.http", true},
    {"path without host", ENDPOINT("http:///a"), GB_RULE_C5, "endpoints.http", true},
    {"path without host, TLS", ENDPOINT("https:///a"), GB_RULE_C5, "endpoints.http", true},
    {"another scheme", ENDPOINT("ftp://a"), GB_RULE_C5, "endpoints.http", true},
    {"no scheme", ENDPOINT("a:80"), GB_RULE_C5, "endpoints.http", true},
};

#define SENDER(options) "senders: [{id: s, transport: sqs, options: {" options "}}]"
#define TAGS_10(a)                                                                                 \
    a "0: v, " a "1: v, " a "2: v, " a "3: v, " a "4: v, " a "5: v, " a "6: v, " a "7: v, " a      \
      "8: v, " a "9: v, "
#define TAGS_50 TAGS_10("a") TAGS_10("b") TAGS_10("c") TAGS_10("d") TAGS_10("e")

static const struct edge_row queue_rows[] = {
    {"50 tags", SENDER("queue_tags: {" TAGS_50 "}"), GB_RULE_Q1, "50", false},
    {"51 tags", SENDER("queue_tags: {" TAGS_50 " z: v}"), GB_RULE_Q1, "50", true},
    {"tag name of one character", SENDER("queue_tags: {a: v}"), GB_RULE_Q1, "128", false},
    {"tag without name", SENDER("queue_tags: {\"\": v}"), GB_RULE_Q1, "128", true},
    {"tag name of 128", SENDER("queue_tags: {@128@: v}"), GB_RULE_Q1, "128", false},
    {"tag name of 129", SENDER("queue_tags: {@129@: v}"), GB_RULE_Q1, "128", true},
    {"tag value of 256", SENDER("queue_tags: {a: @256@}"), GB_RULE_Q1, "256", false},
    {"tag value of 257", SENDER("queue_tags: {a: @257@}"), GB_RULE_Q1, "256", true},
    {"prefix of 80", SENDER("queue_tags: {a: v}, queue_name_prefix: @80@"), GB_RULE_Q1, "prefix",
     false},
    {"prefix of 81", SENDER("queue_tags: {a: v}, queue_name_prefix: @81@"), GB_RULE_Q1, "prefix",
     true},
    {"prefix without tags", SENDER("queue_name: q, queue_name_prefix: p"), GB_RULE_Q1, "prefix",
     true},
    {"tags and name", SENDER("queue_tags: {a: v}, queue_name: q"), GB_RULE_Q1, "queue_tags", true},
    {"tags and URL", SENDER("queue_tags: {a: v}, queue_url: q"), GB_RULE_Q1, "queue_tags", true},
    {"name and URL", SENDER("queue_name: q, queue_url: q"), GB_RULE_Q1, "queue_url", true},
    {"only a name", SENDER("queue_name: q"), GB_RULE_Q1, "options", false},
    {"only a URL", SENDER("queue_url: q"), GB_RULE_Q1, "options", false},
    {"nothing", SENDER(""), GB_RULE_Q1, "queue_url", true},
};

static const struct edge_row fifo_rows[] = {
    {"name with the suffix only", SENDER("queue_name: .fifo"), GB_RULE_Q4, ".fifo", true},
    {"name that is shorter", SENDER("queue_name: fifo"), GB_RULE_Q4, ".fifo", false},
    {"longer name", SENDER("queue_name: a.fifo"), GB_RULE_Q4, ".fifo", true},
    {"URL", SENDER("queue_url: https://x/1/a.fifo"), GB_RULE_Q4, ".fifo", true},
    {"suffix in the middle", SENDER("queue_name: a.fifo.b"), GB_RULE_Q4, ".fifo", false},
    {"asked and named", SENDER("queue_name: a.fifo, fifo: true"), GB_RULE_Q4, ".fifo", false},
    {"asked, other name", SENDER("queue_name: a, fifo: true"), GB_RULE_Q4, "options.fifo", true},
    {"asked, other URL", SENDER("queue_url: a, fifo: true"), GB_RULE_Q4, "options.fifo", true},
    {"asked, found by tags", SENDER("queue_tags: {a: v}, fifo: true"), GB_RULE_Q4, "options.fifo",
     false},
    {"asked by group", SENDER("queue_name: a, message_group_id: g"), GB_RULE_Q4,
     "options.message_group_id", true},
    {"place of the name",
     "senders:\n"
     "- id: s\n"
     "  transport: sqs\n"
     "  options:\n"
     "    queue_name: a.fifo\n",
     GB_RULE_Q4, "doc:5:", true},
    {"place of the URL",
     "senders:\n"
     "- id: s\n"
     "  transport: sqs\n"
     "  options:\n"
     "    queue_url: a.fifo\n",
     GB_RULE_Q4, "doc:5:", true},
    {"delay of 1 s", SENDER("queue_name: a.fifo, fifo: true, delay_seconds: 1"), GB_RULE_Q4,
     "delay_seconds", true},
    {"delay, suffix only", SENDER("queue_name: a.fifo, delay_seconds: 1"), GB_RULE_Q4,
     "delay_seconds", true},
    {"delay, asked only", SENDER("queue_tags: {a: v}, fifo: true, delay_seconds: 1"), GB_RULE_Q4,
     "delay_seconds", true},
    {"no delay", SENDER("queue_name: a.fifo, fifo: true, delay_seconds: 0"), GB_RULE_Q4,
     "delay_seconds", false},
    {"delay of a plain queue", SENDER("queue_name: a, delay_seconds: 1"), GB_RULE_Q4,
     "delay_seconds", false},
    {"group of 128", SENDER("queue_tags: {a: v}, message_group_id: @128@"), GB_RULE_Q4, "group",
     false},
    {"group of 129", SENDER("queue_tags: {a: v}, message_group_id: @129@"), GB_RULE_Q4, "group",
     true},
    {"first character", SENDER("queue_tags: {a: v}, message_group_id: \"a!\""), GB_RULE_Q4, "group",
     false},
    {"last character", SENDER("queue_tags: {a: v}, message_group_id: \"a~\""), GB_RULE_Q4, "group",
     false},
    {"space", SENDER("queue_tags: {a: v}, message_group_id: \"a b\""), GB_RULE_Q4, "group", true},
    {"delete", SENDER("queue_tags: {a: v}, message_group_id: \"a\\x7f\""), GB_RULE_Q4, "group",
     true},
};

#define RECEIVER(options)                                                                          \
    "receivers: [{id: r, transport: sqs, options: {queue_name: q, " options "}}]"
#define HTTP_SENDER(options) "senders: [{id: s, transport: http, options: {" options "}}]"
#define RECHECK(value)                                                                             \
    "sessions: [{id: s, transport: mqtt}]\n"                                                       \
    "receivers: [{id: r, session_id: s, topics: [{topic: t, options: {subscription: "              \
    "{qos_recheck_interval: " value "}}}]}]"

static const struct edge_row receiver_rows[] = {
    {"equal backoffs", RECEIVER("poll_backoff_initial: 7s, poll_backoff_max: 7s"), GB_RULE_Q2,
     "poll_backoff_max", false},
    {"backoffs 1ns apart", RECEIVER("poll_backoff_initial: 7s, poll_backoff_max: 6999999999ns"),
     GB_RULE_Q2, "poll_backoff_max", true},
    {"poison at once", RECEIVER("poison_max_receives: 1"), GB_RULE_Q3, "poison", true},
    {"poison at the second", RECEIVER("poison_max_receives: 2"), GB_RULE_Q3, "poison", false},
    {"no poison", RECEIVER("poison_max_receives: 0"), GB_RULE_Q3, "poison", false},
    {"poison, accepted", RECEIVER("poison_max_receives: 1, poison_drop_without_dlq: true"),
     GB_RULE_Q3, "poison", false},
    {"recheck off", RECHECK("0s"), GB_RULE_V2, "qos_recheck_interval", false},
    {"recheck in 1ns", RECHECK("1ns"), GB_RULE_V2, "qos_recheck_interval", true},
    {"recheck below a minute", RECHECK("59999999999ns"), GB_RULE_V2, "qos_recheck_interval", true},
    {"recheck in a minute", RECHECK("1m"), GB_RULE_V2, "qos_recheck_interval", false},
    {"key of 15 bytes", HTTP_SENDER("api_key: @15@"), GB_RULE_V10, "api_key", true},
    {"key of 16 bytes", HTTP_SENDER("api_key: @16@"), GB_RULE_V10, "api_key", false},
    {"accepts loss", HTTP_SENDER("at_most_once_accept_loss: true"), GB_RULE_V8, "options", false},
    {"fails on zero", HTTP_SENDER("fail_on_zero_delivery: true"), GB_RULE_V8, "options", false},
    {"both", HTTP_SENDER("at_most_once_accept_loss: true, fail_on_zero_delivery: true"), GB_RULE_V8,
     "options", true},
    {"topics of an SQS receiver", "receivers: [{id: r, transport: sqs, topics: [{topic: t}]}]",
     GB_RULE_V4, "topics", true},
    {"no topics of an SQS receiver", "receivers: [{id: r, transport: sqs, topics: []}]", GB_RULE_V4,
     "topics", false},
    {"topics of an HTTP receiver", "receivers: [{id: r, transport: http, topics: [{topic: t}]}]",
     GB_RULE_V4, "topics", true},
};

#define ADDRESS(sender, address)                                                                   \
    "sessions: [{id: s, transport: mqtt}]\n"                                                       \
    "receivers: [{id: r, session_id: s, topics: [{topic: a/#}]}]\n"                                \
    "senders: [{id: m, session_id: s}, {id: q, transport: sqs}]\n"                                 \
    "bindings: [{id: b, sender_id: " sender ", address: \"" address "\"}]"

static const struct edge_row binding_rows[] = {
    {"MQTT topic with a wildcard", ADDRESS("m", "x/#"), GB_RULE_V6, "address", true},
    {"SQS address with a wildcard", ADDRESS("q", "x/#"), GB_RULE_V6, "address", false},
    {"MQTT topic that is filled later", ADDRESS("m", "x/{h}/#"), GB_RULE_V6, "address", false},
    {"open brace", ADDRESS("m", "x/{h"), GB_RULE_V6, "address", true},
    {"open brace to SQS", ADDRESS("q", "x/{h"), GB_RULE_V6, "address", true},
    {"unknown sender", ADDRESS("n", "x"), GB_RULE_V6, "address", false},
    {"loop", ADDRESS("m", "a/b"), GB_RULE_W3, "address", true},
    {"no loop to SQS", ADDRESS("q", "a/b"), GB_RULE_W3, "address", false},
    {"no loop to another topic", ADDRESS("m", "b"), GB_RULE_W3, "address", false},
    {"placeholder, perhaps a loop", ADDRESS("m", "a/{h}"), GB_RULE_W3, "address", false},
    {"wildcard, no loop", ADDRESS("m", "a/#"), GB_RULE_W3, "address", false},
    {"options of a binding", "bindings: [{id: b, options: {x: 1}}]", GB_RULE_W5, "options", true},
    {"empty options of a binding", "bindings: [{id: b, options: {}}]", GB_RULE_W5, "options",
     false},
};

static const struct edge_row http_rows[] = {
    {"admin key of 15", "http: {admin_api_key: @15@}", GB_RULE_V10, "admin_api_key", true},
    {"admin key of 16", "http: {admin_api_key: @16@}", GB_RULE_V10, "admin_api_key", false},
    {"monitor key of 15", "http: {monitor_api_key: @15@}", GB_RULE_V10, "monitor_api_key", true},
    {"monitor key of 16", "http: {monitor_api_key: @16@}", GB_RULE_V10, "monitor_api_key", false},
    {"certificate alone", "http:\n  tls_cert_file: a", GB_RULE_V10, "doc:2:", true},
    {"key alone", "http:\n  tls_key_file: a", GB_RULE_V10, "doc:2:", true},
    {"both", "http: {tls_cert_file: a, tls_key_file: a}", GB_RULE_V10, "tls_cert_file", false},
    {"neither", "http: {}", GB_RULE_V10, "tls_cert_file", false},
    {"any origin", "http: {cors_origins: [\"*\"]}", GB_RULE_V10, "cors_origins", true},
    {"any origin, second", "http: {cors_origins: [a, \"*\"]}", GB_RULE_V10, "cors_origins", true},
    {"one origin", "http: {cors_origins: [a]}", GB_RULE_V10, "cors_origins", false},
};

#define PROCESSOR(name) "processors: {" name ": {type: filter}}"

static const struct edge_row processor_rows[] = {
    {"name of 64", PROCESSOR("@64@"), GB_RULE_V3, "name", false},
    {"name of 65", PROCESSOR("@65@"), GB_RULE_V3, "name", true},
    {"no name", PROCESSOR("\"\""), GB_RULE_V3, "name", true},
    {"ends of the ranges", PROCESSOR("azAZ09._-"), GB_RULE_V3, "name", false},
    {"before a", PROCESSOR("\"`\""), GB_RULE_V3, "name", true},
    {"after z", PROCESSOR("\"{\""), GB_RULE_V3, "name", true},
    {"before A", PROCESSOR("\"@1@\\x40\""), GB_RULE_V3, "name", true},
    {"after Z", PROCESSOR("\"[\""), GB_RULE_V3, "name", true},
    {"before 0", PROCESSOR("\"/\""), GB_RULE_V3, "name", true},
    {"after 9", PROCESSOR("\":\""), GB_RULE_V3, "name", true},
};

static void the_bridge(void **state)
{
    (void)state;
    EDGES(bridge_rows);
    EDGES(endpoint_rows);
    EDGES(value_rows);
}

static void endpoints_of_messages(void **state)
{
    (void)state;
    EDGES(queue_rows);
    EDGES(fifo_rows);
    EDGES(receiver_rows);
    EDGES(binding_rows);
}

static void http_and_processors(void **state)
{
    (void)state;
    EDGES(http_rows);
    EDGES(processor_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bridge),
        cmocka_unit_test(endpoints_of_messages),
        cmocka_unit_test(http_and_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
