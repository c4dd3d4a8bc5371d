#include "blueprint/rule_rows.h"

static const struct rule_row sessions_rows[] = {
    {"01 V3, no id", "  - id: plant\n    transport", "  - transport",
     "sessions[0]: id is required"},
    {"stateless session", "    transport: mqtt\n", "    transport: sqs\n",
     "must be one of: mqtt, mqtt.paho"},
    {"alias", "    transport: mqtt\n", "    transport: mqtt.paho\n", NULL},
    {"no transport", "    transport: mqtt\n", "", "transport is required"},
    {"01 V2, mode", "session_mode: persistent", "session_mode: shared",
     "must be one of: ephemeral, persistent, exclusive"},
    {"01 V21", "session_mode: persistent", "session_mode: exclusive",
     "exclusive session requires stores.lease"},
    {"01 row 11, in options.session", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        keep_alife: 30\n",
     "unknown key \"options.session.keep_alife\"; did you mean \"keep_alive\"?"},
    {"01 row 10, seconds", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        keep_alive: 30\n",
     NULL},
    {"01 row 10, seconds as duration", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        keep_alive: \"30s\"\n",
     "options.session.keep_alive must be a whole number"},
    {"keep alive too long", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        keep_alive: 65536\n",
     "must be 0..65535"},
    {"negative connect timeout", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        connect_timeout: -1s\n",
     "must not be negative"},
    {"no url", "        broker_url: tcp://localhost:1883\n", "",
     "broker_url or broker_urls is required"},
    {"unknown scheme", "tcp://localhost:1883", "http://localhost", "options.session.broker_url: "},
    {"no client id", "        client_id: plant-bridge\n", "",
     "options.session.client_id is required"},
    {"no session options",
     "    options:\n"
     "      session:\n"
     "        broker_url: tcp://localhost:1883\n"
     "        client_id: plant-bridge\n",
     "", "options.session is required"},
    {"credentials_uri", "      session:\n",
     "      credentials_uri: file://x\n"
     "      session:\n",
     "options.credentials_uri is not supported yet"},
    {"foreign option", "      session:\n",
     "      sender: {}\n"
     "      session:\n",
     "unknown key \"options.sender\""},
    {"durable on two brokers", "        broker_url: tcp://localhost:1883\n",
     "        broker_urls: [tcp://a, tcp://b]\n", "lives on one broker"},
    {"durable on one broker twice", "        broker_url: tcp://localhost:1883\n",
     "        broker_urls: \"tcp://a, tcp://a\"\n", NULL},
    {"empty entry between commas", "        broker_url: tcp://localhost:1883\n",
     "        broker_urls: \"tcp://a,\"\n", "empty entry"},
    {"03 check 2, persistent nonce", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        client_id_suffix: nonce\n",
     "nonce is refused on a persistent session"},
    {"03 check 2, persistent hostname", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        client_id_suffix: hostname\n",
     "needs assert_stable_client_identity: true"},
    {"hostname asserted", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        client_id_suffix: hostname\n"
     "        assert_stable_client_identity: true\n",
     "warning: "},
    {"03 check 26, plain credentials", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        username: u\n",
     "would be sent in plain text"},
    {"password alone in plain text", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        password: u\n",
     "would be sent in plain text"},
    {"plain credentials allowed", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        username: u\n"
     "        allow_plaintext_credentials: true\n",
     NULL},
    {"credentials over TLS", "tcp://localhost:1883\n",
     "tls://localhost:8883\n"
     "        username: u\n"
     "        password: p\n",
     NULL},
    {"half a certificate pair", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        tls: {cert_file: a}\n",
     "cert_file and key_file are only accepted together"},
    {"half a PEM pair", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        tls: {key_pem: a}\n",
     "cert_pem and key_pem are only accepted together"},
    {"TLS without its scheme", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        tls: {enable: true}\n",
     "warning: "},
    {"unverified TLS", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        tls: {insecure_skip_verify: true}\n",
     "warning: "},
    {"unknown TLS key", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        tls: {ca: a}\n",
     "unknown key \"options.session.tls.ca\""},
    {"will without topic", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        will: {payload: x}\n",
     "options.session.will.topic is required"},
    {"will with wildcard", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        will: {topic: a/#}\n",
     "options.session.will.topic: "},
    {"will QoS", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        will: {topic: a, qos: 3}\n",
     "must be 0..2"},
    {"will", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        will: {topic: a, payload: \"7\", qos: 2, retain: true}\n",
     NULL},
    {"largest packet", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        max_payload_bytes: 268304383\n"
     "        ingress_memory_budget_bytes: 9000000000000\n",
     NULL},
    {"one more", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        max_payload_bytes: 268304384\n"
     "        ingress_memory_budget_bytes: 9000000000000\n",
     "more than the largest MQTT packet"},
    {"P7, defaults pass", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        ingress_memory_budget_bytes: 190709760\n",
     NULL},
    {"P7, one byte less", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        ingress_memory_budget_bytes: 190709759\n",
     "must not exceed ingress_memory_budget_bytes, 190709759"},
    {"P7, no overflow", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        max_payload_bytes: 4294967295\n"
     "        receive_maximum: 65535\n",
     "must not exceed"},
    {"03 check 31, no_local under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        no_local: true\n"
     "        protocol_version: v3.1.1\n",
     "no_local needs protocol_version: v5"},
    {"expiry under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        session_expiry_interval: 1\n"
     "        protocol_version: v3.1.1\n",
     "session_expiry_interval needs protocol_version: v5"},
    {"no expiry under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        session_expiry_interval: 0\n"
     "        protocol_version: v3.1.1\n",
     NULL},
    {"password alone under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        password: x\n"
     "        allow_plaintext_credentials: true\n"
     "        protocol_version: v3.1.1\n",
     "password without username needs"},
    {"clean start under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        clean_start: true\n"
     "        protocol_version: v3.1.1\n",
     "v3.1.1 would keep nothing"},
    {"clean start under v5", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        clean_start: true\n",
     "warning: sessions[0] (plant): options.session.clean_start: true on a persistent"},
    {"version is a text", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        protocol_version: 5\n",
     "must be one of: v5, v3.1.1"},
    {"content hash under v5", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        message_id: content_hash\n",
     "content_hash needs protocol_version: v3.1.1"},
    {"content hash under v3.1.1", "        client_id: plant-bridge\n",
     "        client_id: plant-bridge\n"
     "        message_id: content_hash\n"
     "        protocol_version: v3.1.1\n",
     NULL},
    {"01 P6", "receivers:\n",
     "  - {id: other, transport: mqtt, options: {session: {broker_url: \"tcp://localhost:1883\", "
     "client_id: plant-bridge}}}\n"
     "receivers:\n",
     "is also that of session \"plant\""},
    {"01 W5, unused session", "receivers:\n",
     "  - {id: other, transport: mqtt, options: {session: {broker_url: \"tcp://x\", client_id: "
     "y}}}\n"
     "receivers:\n",
     "warning: sessions[1] (other): no route uses this session"},
    {"01 row 14, duplicate id", "receivers:\n",
     "  - {id: plant, transport: mqtt, options: {session: {broker_url: \"tcp://x\", client_id: "
     "y}}}\n"
     "receivers:\n",
     "sessions[1] (plant): duplicate id \"plant\""},
};

static void sessions(void **state)
{
    (void)state;
    RULES(DOCUMENTS "standalone.yaml", sessions_rows);
}

/* MQTT strings hold 65535 bytes (spec 03 §3). */
static void texts_fit_into_packets(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *want;
    } rows[] = {{65535, ""}, {65536, "options.session.client_id is longer than MQTT can carry"}};
    char *base = read_document(DOCUMENTS "standalone.yaml");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str id = {0};
        gb_str_append_c(&id, "client_id: ");
        for (size_t j = 0; j < rows[i].size; j++) gb_str_append_char(&id, 'c');
        const struct rule_row row = {"client_id", "client_id: plant-bridge", id.data, NULL};
        char *text = patched(base, &row);
        struct gb_err err;
        char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
        if (strstr(said, rows[i].want) == NULL) fail_msg("%zu bytes: %s", rows[i].size, said);
        assert_int_equal(said[0] == '\0', rows[i].want[0] == '\0');
        free(said);
        free(text);
        gb_str_deinit(&id);
    }
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions),
        cmocka_unit_test(texts_fit_into_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
