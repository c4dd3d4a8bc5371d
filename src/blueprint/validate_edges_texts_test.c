#include "blueprint/edge_rows.h"

/* Texts at the edges of what they may hold (rows that scripts/mutate.py asked for). */

#define URI(text) "senders: [{id: s, transport: sqs, options: {credentials_uri: \"" text "\"}}]"

static const struct edge_row uri_rows[] = {
    {"file", URI("file://a"), GB_RULE_K8, "credentials_uri", false},
    {"pms", URI("pms://a/b"), GB_RULE_K8, "credentials_uri", false},
    {"no scheme", URI("://a"), GB_RULE_K8, "scheme \"\"", true},
    {"no separator", URI("secret"), GB_RULE_K8, "scheme \"\"", true},
    {"another", URI("http://a"), GB_RULE_K8, "scheme \"http\"", true},
    {"longer", URI("files://a"), GB_RULE_K8, "scheme \"files\"", true},
    {"long", URI("@61@://a"), GB_RULE_K8,
     "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"", true},
    {"no path", URI("file://"), GB_RULE_K8, "empty segment", true},
    {"dots", URI("file://a/.."), GB_RULE_K8, "empty segment", true},
    {"dot", URI("file://./a"), GB_RULE_K8, "empty segment", true},
};

#define ADDRESS(sender, text)                                                                      \
    "senders: [{id: s, transport: " sender "}]\n"                                                  \
    "bindings: [{id: b, sender_id: s, address: \"" text "\"}]"

static const struct edge_row address_rows[] = {
    {"space", ADDRESS("sqs", "a b"), GB_RULE_V6, "control", false},
    {"last control", ADDRESS("sqs", "a\\x1fb"), GB_RULE_V6, "control", true},
    {"delete", ADDRESS("sqs", "a\\x7fb"), GB_RULE_V6, "control", true},
    {"before delete", ADDRESS("sqs", "a~b"), GB_RULE_V6, "control", false},
    {"after delete", ADDRESS("sqs", "aäb"), GB_RULE_V6, "control", false},
    {"first byte", ADDRESS("sqs", "\\x01ab"), GB_RULE_V6, "control", true},
    {"last byte", ADDRESS("sqs", "ab\\x01"), GB_RULE_V6, "control", true},
};

#define ENDPOINT(url) "bridge: {cluster: {endpoints: {http: \"http://a" url "\"}}}"
#define PATH(text) "receivers: [{id: r, transport: http, options: {path: \"" text "\"}}]"
#define LISTENER(text) "http: {admin_addr: \"" text "\"}"

static const struct edge_row http_rows[] = {
    {"space in a URL", ENDPOINT(" b"), GB_RULE_C5, "endpoints.http", true},
    {"exclamation mark in a URL", ENDPOINT("!b"), GB_RULE_C5, "endpoints.http", false},
    {"control in a URL", ENDPOINT("\\x01"), GB_RULE_C5, "endpoints.http", true},
    {"delete in a URL", ENDPOINT("\\x7f"), GB_RULE_C5, "endpoints.http", true},
    {"tilde in a URL", ENDPOINT("~"), GB_RULE_C5, "endpoints.http", false},
    {"space in a path", PATH("/a b"), GB_RULE_H1, "path", true},
    {"exclamation mark in a path", PATH("/a!b"), GB_RULE_H1, "path", false},
    {"control in a path", PATH("/a\\x01"), GB_RULE_H1, "path", true},
    {"delete in a path", PATH("/a\\x7f"), GB_RULE_H1, "path", true},
    {"tilde in a path", PATH("/~"), GB_RULE_H1, "path", false},
    {"opening brace", PATH("/{"), GB_RULE_H1, "path", true},
    {"closing brace", PATH("/}"), GB_RULE_H1, "path", true},
    {"bad, then good", PATH("/ a"), GB_RULE_H1, "path", true},
    {"no slash", PATH("a"), GB_RULE_H1, "path", true},
    {"no port", LISTENER("a:"), GB_RULE_V10, "admin_addr", true},
    {"largest port", LISTENER(":65535"), GB_RULE_V10, "admin_addr", false},
    {"larger port", LISTENER(":65536"), GB_RULE_V10, "admin_addr", true},
    {"zeros", LISTENER(":00080"), GB_RULE_V10, "admin_addr", false},
    {"six digits", LISTENER(":000080"), GB_RULE_V10, "admin_addr", true},
    {"many digits", LISTENER(":18446744073709551617"), GB_RULE_V10, "admin_addr", true},
    {"letters behind", LISTENER(":80a"), GB_RULE_V10, "admin_addr", true},
    {"only letters", LISTENER(":a"), GB_RULE_V10, "admin_addr", true},
};

#define HTTP(id, path) "{id: " id ", transport: http, options: {" path "}}"

static const struct edge_row endpoint_rows[] = {
    {"last of the receivers", "receivers: [" HTTP("a", "path: /x") ", " HTTP("b", "path: /x") "]",
     GB_RULE_H1, "receivers[1]", true},
    {"last of the senders", "senders: [" HTTP("a", "path: /x") ", " HTTP("b", "path: /x") "]",
     GB_RULE_H1, "senders[1]", true},
    {"default of another",
     "receivers: [" HTTP("a", "") ", " HTTP("b", "path: /transport/http/receivers/a/messages") "]",
     GB_RULE_H1, "receivers[1]", true},
    {"mounted default of another",
     "receivers: [" HTTP("a", "path: /x") ", " HTTP(
         "b", "path: /transport/http/receivers/a/messages") "]",
     GB_RULE_H1, "receivers[1]", true},
    {"default of a sender with a path",
     "senders: [" HTTP("a", "path: /x") ", " HTTP("b",
                                                  "path: /transport/http/senders/a/events") "]",
     GB_RULE_H1, "senders[1]", false},
    {"default of a sender without",
     "senders: [" HTTP("a", "") ", " HTTP("b", "path: /transport/http/senders/a/events") "]",
     GB_RULE_H1, "senders[1]", true},
    {"no id", "receivers: [{transport: http}, {transport: http}]", GB_RULE_H1, "receivers[1]",
     false},
};

#define FIELD(text)                                                                                \
    "routes: [{id: r, resolver: {type: rules, rules: [{binding_id: b, match: [{field: \"" text     \
    "\", operator: eq, value: 1}]}]}}]"
#define MAPPING(target, more)                                                                      \
    "processors: {p: {type: transform, config: {mappings: [{source: $.a, target: \"" target        \
    "\"" more "}]}}}"
#define DEFAULT(transform, value) MAPPING("a", ", transform: " transform ", defaultValue: " value)

static const struct edge_row field_rows[] = {
    {"a header", FIELD("header.a"), GB_RULE_V7, "field", false},
    {"no header", FIELD("header."), GB_RULE_V7, "field", true},
    {"almost a header", FIELD("header"), GB_RULE_V7, "field", false},
    {"another word", FIELD("headerX"), GB_RULE_V7, "field", false},
    {"target header", MAPPING("header.a", ""), GB_RULE_P8, "target", false},
    {"no target header", MAPPING("header.", ""), GB_RULE_P8, "names no header", true},
    {"almost a target header", MAPPING("headerX", ""), GB_RULE_P8, "target", false},
    {"reserved beside", MAPPING("headerXx-bridge.route-id", ""), GB_RULE_P8, "target", false},
    {"digit", DEFAULT("int", "7"), GB_RULE_P8, "convert", false},
    {"minus", DEFAULT("int", "-"), GB_RULE_P8, "convert", true},
    {"nothing but letters", DEFAULT("int", "a"), GB_RULE_P8, "convert", true},
    {"18 digits", DEFAULT("int", "999999999999999999"), GB_RULE_P8, "convert", false},
    {"19 digits", DEFAULT("int", "1000000000000000000"), GB_RULE_P8, "convert", true},
    {"digits and more", DEFAULT("int", "7a"), GB_RULE_P8, "convert", true},
    {"true", DEFAULT("bool", "true"), GB_RULE_P8, "convert", false},
    {"false", DEFAULT("bool", "false"), GB_RULE_P8, "convert", false},
    {"yes", DEFAULT("bool", "yes"), GB_RULE_P8, "convert", true},
    {"before false", DEFAULT("bool", "a"), GB_RULE_P8, "convert", true},
    {"unread transform", DEFAULT("x", "a"), GB_RULE_P8, "convert", false},
    {"no default", MAPPING("a", ", transform: int"), GB_RULE_P8, "convert", false},
};

#define BREAKER(key) "processors: {p: {type: circuitbreaker, config: {key: \"" key "\"}}}"
#define FILTER(keys) "processors: {p: {type: filter, config: {action: route" keys "}}}"

static const struct edge_row config_rows[] = {
    {"JSON number",
     "{\"routes\":[{\"id\":\"r\",\"resolver\":{\"type\":\"rules\",\"rules\":[{\"binding_id\":\"b\","
     "\"match\":[{\"field\":\"a\",\"operator\":\"gt\",\"value\":5}]}]}}]}",
     GB_RULE_V7, "must be a number", false},
    {"JSON text",
     "{\"routes\":[{\"id\":\"r\",\"resolver\":{\"type\":\"rules\",\"rules\":[{\"binding_id\":\"b\","
     "\"match\":[{\"field\":\"a\",\"operator\":\"gt\",\"value\":\"5\"}]}]}}]}",
     GB_RULE_V7, "must be a number", true},
    {"first rule's binding", "routes: [{id: r, resolver: {type: rules, rules: [{binding_id: b}]}}]",
     GB_RULE_V7, "rules[0].binding_id", true},
    {"empty default binding", "routes: [{id: r, resolver: {type: rules, default_binding: \"\"}}]",
     GB_RULE_V7, "needs a rule", true},
    {"default binding", "routes: [{id: r, resolver: {type: rules, default_binding: \"b\"}}]",
     GB_RULE_V7, "needs a rule", false},
    {"marker in a plain key", "bridge: {instance_id: \"[REDACTED]\"}", GB_RULE_K7, "marker", false},
    {"marker in a secret", "http: {monitor_api_key: \"[REDACTED]\"}", GB_RULE_K7, "marker", true},
    {"marker beside a secret", "http: {monitor_api_key: k, tls_cert_file: \"[REDACTED]\"}",
     GB_RULE_K7, "marker", false},
    {"marker in a map of secrets",
     "bridge: {cluster: {forwarder: {receiver_api_keys: {a: b, c: \"[REDACTED]\"}}}}", GB_RULE_K7,
     "marker", true},
    {"header key", BREAKER("header:a"), GB_RULE_P8, "config.key", false},
    {"no header", BREAKER("header:"), GB_RULE_P8, "config.key", true},
    {"almost", BREAKER("headerXa"), GB_RULE_P8, "config.key", true},
    {"no target", FILTER(""), GB_RULE_P8, "routeTo", true},
    {"unread target", FILTER(", routeTo: [a]"), GB_RULE_P8, "routeTo is required", false},
    {"unread target, snake case", FILTER(", route_to: [a]"), GB_RULE_P8, "routeTo is required",
     false},
    {"camel case", "processors: {p: {type: filter, config: {maxPayloadBytes: 1}}}", GB_RULE_K1,
     "unknown", false},
    {"snake case", "processors: {p: {type: filter, config: {max_payload_bytes: 1}}}", GB_RULE_K1,
     "unknown", false},
    {"capital behind the underscore",
     "processors: {p: {type: filter, config: {max_Payload_bytes: 1}}}", GB_RULE_K1, "unknown",
     true},
};

#define SENDER(options) "senders: [{id: s, transport: sqs, options: {" options "}}]"

static const struct edge_row sqs_rows[] = {
    {"unread group", SENDER("queue_name: a.fifo, message_group_id: [a]"), GB_RULE_Q4, "fifo: true",
     false},
    {"unread fifo", SENDER("queue_name: a.fifo, fifo: x"), GB_RULE_Q4, "fifo: true", false},
    {"neither", SENDER("queue_name: a.fifo"), GB_RULE_Q4, "fifo: true", true},
    {"no options but a name", SENDER("queue_name: a.fifo, region: r"), GB_RULE_Q4, "fifo: true",
     true},
    {"characters of two bytes",
     SENDER(
         "queue_tags: {a: \"ááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááá"
         "ááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááá"
         "áááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááááá\"}"),
     GB_RULE_Q1, "256", false},
    {"unread backoff",
     "receivers: [{id: r, transport: sqs, options: {poll_backoff_max: x, poll_backoff_initial: "
     "99s}}]",
     GB_RULE_Q2, "less than", false},
    {"unread first backoff",
     "receivers: [{id: r, transport: sqs, options: {poll_backoff_max: 1ns, poll_backoff_initial: "
     "x}}]",
     GB_RULE_Q2, "less than", false},
};

#define MQTT(options) "sessions: [{id: s, transport: mqtt, options: {session: {" options "}}}]"

static const struct edge_row mqtt_rows[] = {
    {"no URL", MQTT("client_id: c"), GB_RULE_M1, "is required", true},
    {"unread URLs", MQTT("broker_urls: [[a]]"), GB_RULE_M1, "is required", false},
    {"empty URLs", MQTT("broker_urls: []"), GB_RULE_M1, "is required", true},
    {"bad URL", MQTT("broker_url: \"x://\""), GB_RULE_M1, "broker_url: ", true},
    {"bad first of several", MQTT("broker_urls: [\"x://\"]"), GB_RULE_M1, "broker_urls: ", true},
    {"bad second", MQTT("broker_url: a, broker_urls: [\"x://\"]"), GB_RULE_M1,
     "broker_urls: ", true},
    {"URL of one letter", MQTT("broker_url: \"/\""), GB_RULE_M1, "broker_url: ", true},
    {"one id without",
     "sessions: [{id: s, transport: mqtt, options: {session: {broker_url: a}}}, {id: t, transport: "
     "mqtt, options: {session: {broker_url: a}}}]",
     GB_RULE_P6, "client_id", false},
};

static void texts(void **state)
{
    (void)state;
    EDGES(uri_rows);
    EDGES(address_rows);
    EDGES(http_rows);
    EDGES(endpoint_rows);
}

static void processors(void **state)
{
    (void)state;
    EDGES(field_rows);
    EDGES(config_rows);
}

static void transports(void **state)
{
    (void)state;
    EDGES(sqs_rows);
    EDGES(mqtt_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(processors),
        cmocka_unit_test(transports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
