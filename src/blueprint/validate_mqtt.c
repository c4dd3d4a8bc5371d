#include <inttypes.h>

#include "base/map.h"
#include "blueprint/validate.h"
#include "domain/mqtt_topic.h"

/* Spec 03 §3.1, §13. */

enum { PACKET_MAX = 268435455, METADATA_MAX = 131072, FIELD_MAX = 65535, URLS_MAX = 20000 };

#define S "options.session."

static void check_urls(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    char first[GB_MQTT_ENDPOINT_TEXT_MAX] = "";
    bool several = false;
    for (size_t i = 0; i < m->urls.count; i++) {
        struct gb_mqtt_endpoint endpoint;
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(m->urls.items[i]), &endpoint);
        bool single = i == 0 && m->broker_url != NULL;
        const char *key = single ? S "broker_url" : S "broker_urls";
        if (gb_failed(err)) {
            gb_check_error(c, GB_RULE_M1, key, "%s: %s", key, err.message);
            continue;
        }
        char text[GB_MQTT_ENDPOINT_TEXT_MAX];
        gb_mqtt_endpoint_print(&endpoint, text);
        if (first[0] == '\0') memcpy(first, text, sizeof first);
        several = several || strcmp(first, text) != 0;
        if (m->tls.enable.value && !gb_mqtt_scheme_is_tls(endpoint.scheme)) {
            gb_check_warning(c, GB_RULE_M2, S "tls.enable",
                             S "tls.enable has no effect on \"%.*s\"; the scheme decides, write "
                               "tls:// or wss://",
                             GB_SHOWN_MAX, m->urls.items[i]);
        }
    }
    if (m->node != NULL && m->urls.count == 0) {
        gb_check_error(c, GB_RULE_M1, "options.session", S "broker_url or broker_urls is required");
    }
    if (several && gb_session_is_durable(s)) {
        gb_check_error(c, GB_RULE_P6, S "broker_urls",
                       S "broker_urls: a persistent or exclusive session lives on one broker; name "
                         "one endpoint");
    }
}

/* The same gate runs again when credentials change (spec 03 §4.2). */
static void check_credentials(struct gb_check *c, const struct gb_bp_mqtt_session *m)
{
    if (m->username == NULL && m->password == NULL) return;
    if (m->allow_plaintext_credentials.value) return;
    for (size_t i = 0; i < m->urls.count; i++) {
        struct gb_mqtt_endpoint endpoint;
        if (gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(m->urls.items[i]), &endpoint))) continue;
        if (gb_mqtt_scheme_is_tls(endpoint.scheme)) continue;
        gb_check_error(c, GB_RULE_M3, m->username != NULL ? S "username" : S "password",
                       S "username and password would be sent in plain text; use tls:// or wss://, "
                         "or set allow_plaintext_credentials: true");
        return;
    }
}

static void check_identity(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    int suffix = m->client_id_suffix.value;
    if (s->session_mode.value == GB_BP_EXCLUSIVE && suffix != GB_BP_SUFFIX_NONE) {
        gb_check_error(c, GB_RULE_C3, S "client_id_suffix",
                       S "client_id_suffix is refused on an exclusive session; its client_id must "
                         "be equal on every instance");
        return;
    }
    if (s->session_mode.value != GB_BP_PERSISTENT) return;
    if (suffix == GB_BP_SUFFIX_NONCE) {
        gb_check_error(c, GB_RULE_M4, S "client_id_suffix",
                       S "client_id_suffix: nonce is refused on a persistent session; a new id at "
                         "every start would leave the broker's session behind");
    }
    if (suffix == GB_BP_SUFFIX_HOSTNAME && !m->assert_stable_client_identity.value) {
        gb_check_error(c, GB_RULE_M4, S "client_id_suffix",
                       S "client_id_suffix: hostname on a persistent session needs "
                         "assert_stable_client_identity: true, which says that the host name never "
                         "changes");
    } else if (suffix == GB_BP_SUFFIX_HOSTNAME) {
        gb_check_warning(c, GB_RULE_M4, S "assert_stable_client_identity",
                         S "assert_stable_client_identity: a changed host name leaves the broker's "
                           "session and its messages behind");
    }
}

static void check_tls(struct gb_check *c, const struct gb_bp_tls *tls)
{
    if ((tls->cert_file == NULL) != (tls->key_file == NULL)) {
        gb_check_error(c, GB_RULE_M5, S "tls",
                       S "tls: cert_file and key_file are only accepted together");
    }
    if ((tls->cert_pem == NULL) != (tls->key_pem == NULL)) {
        gb_check_error(c, GB_RULE_M5, S "tls",
                       S "tls: cert_pem and key_pem are only accepted together");
    }
    if (tls->insecure_skip_verify.value) {
        gb_check_warning(c, GB_RULE_M5, S "tls.insecure_skip_verify",
                         S "tls.insecure_skip_verify: anyone can pose as the broker");
    }
}

static void check_sizes(struct gb_check *c, const struct gb_bp_mqtt_session *m)
{
    int64_t payload = m->max_payload_bytes.value;
    if (payload + METADATA_MAX > PACKET_MAX) {
        gb_check_error(c, GB_RULE_M6, S "max_payload_bytes",
                       S "max_payload_bytes %" PRId64 " + %d is more than the largest MQTT packet, "
                         "%d; at most %d is possible",
                       payload, METADATA_MAX, PACKET_MAX, PACKET_MAX - METADATA_MAX);
    }
    const struct {
        const char *key, *value;
    } texts[] = {{S "client_id", m->client_id},
                 {S "username", m->username},
                 {S "password", m->password},
                 {S "will.payload", m->will.payload}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].value == NULL || strlen(texts[i].value) <= FIELD_MAX) continue;
        gb_check_error(c, GB_RULE_M6, texts[i].key, "%s is longer than MQTT can carry, %d bytes",
                       texts[i].key, FIELD_MAX);
    }
}

static void check_will(struct gb_check *c, const struct gb_bp_will *will)
{
    if (will->topic == NULL) return;
    struct gb_err err = gb_mqtt_publish_topic_check(gb_bytes_c(will->topic));
    if (gb_failed(err))
        gb_check_error(c, GB_RULE_M9, S "will.topic", S "will.topic: %s", err.message);
}

static void check_v311(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    if (m->no_local.value) {
        gb_check_error(c, GB_RULE_M7, S "no_local",
                       S "no_local needs protocol_version: v5; v3.1.1 has no such subscription");
    }
    if (m->session_expiry_interval.given && m->session_expiry_interval.value != 0) {
        gb_check_error(c, GB_RULE_M7, S "session_expiry_interval",
                       S "session_expiry_interval needs protocol_version: v5; under v3.1.1 the "
                         "broker's own setting decides, leave it out");
    }
    if (m->password != NULL && m->username == NULL) {
        gb_check_error(c, GB_RULE_M7, S "password",
                       S "password without username needs protocol_version: v5; add a username");
    }
    if (s->session_mode.value == GB_BP_PERSISTENT && m->clean_start.value) {
        gb_check_error(c, GB_RULE_M7, S "clean_start",
                       S "clean_start: true on a persistent session needs protocol_version: v5; "
                         "v3.1.1 would keep nothing, use session_mode: ephemeral");
    }
}

static void check_v5(struct gb_check *c, const struct gb_bp_session *s)
{
    if (s->mqtt.message_id.value == GB_BP_ID_CONTENT_HASH) {
        gb_check_error(c, GB_RULE_M7, S "message_id",
                       S "message_id: content_hash needs protocol_version: v3.1.1");
    }
    if (!s->mqtt.clean_start.value) return;
    if (s->session_mode.value == GB_BP_PERSISTENT) {
        gb_check_warning(c, GB_RULE_W5, S "clean_start",
                         S "clean_start: true on a persistent session wipes its backlog at every "
                           "start of the process");
    }
    if (s->session_mode.value == GB_BP_EXCLUSIVE) {
        gb_check_warning(c, GB_RULE_M8, S "clean_start",
                         S "clean_start: true is overridden on an exclusive session");
    }
}

void gb_validate_mqtt_session(struct gb_check *c, const struct gb_bp_session *s)
{
    check_urls(c, s);
    check_credentials(c, &s->mqtt);
    check_identity(c, s);
    check_tls(c, &s->mqtt.tls);
    check_sizes(c, &s->mqtt);
    check_will(c, &s->mqtt.will);
    if (s->mqtt.protocol_version.value == GB_BP_MQTT_V311) {
        check_v311(c, s);
    } else {
        check_v5(c, s);
    }
}

/* P6 for one URL of a session. Process-wide suffixes make equal ids equal again. */
static void claim_identity(struct gb_check *c, struct gb_map *seen, const struct gb_bp_session *s,
                           const char *url)
{
    struct gb_mqtt_endpoint endpoint;
    if (gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(url), &endpoint))) return;
    char text[GB_MQTT_ENDPOINT_TEXT_MAX];
    gb_mqtt_endpoint_print(&endpoint, text);
    struct gb_str key = {0};
    gb_str_appendf(&key, "%s\n%d\n%s", text, s->mqtt.client_id_suffix.value, s->mqtt.client_id);
    const struct gb_bp_session *other = gb_map_get(seen, gb_str_bytes(&key));
    /* The map hands out what it was given; a session is only read. */
    if (other == NULL) {
        void *entry = (void *)(uintptr_t)s;
        if (key.failed || gb_failed(gb_map_put(seen, gb_str_bytes(&key), entry))) {
            c->findings->failed = true;
        }
    } else if (other != s) {
        gb_check_error(c, GB_RULE_P6, S "client_id",
                       S "client_id \"%.*s\" at %.*s is also that of session \"%.*s\"; two "
                         "connections under one id take each other's place",
                       GB_SHOWN_MAX, s->mqtt.client_id, GB_SHOWN_MAX, text, GB_SHOWN_MAX,
                       other->id == NULL ? "" : other->id);
    }
    gb_str_deinit(&key);
}

void gb_validate_mqtt_identities(struct gb_check *c)
{
    struct gb_map seen = {0};
    size_t urls = 0;
    for (size_t i = 0; i < c->b->session_count; i++) {
        const struct gb_bp_session *s = &c->b->sessions[i];
        if (s->transport.value != GB_BP_MQTT || s->mqtt.client_id == NULL) continue;
        gb_check_enter(c, "sessions", i, s->id, s->node);
        urls += s->mqtt.urls.count;
        if (urls > URLS_MAX) { /* each one is remembered */
            gb_check_error(c, GB_RULE_K4, S "broker_urls",
                           S "broker_urls: up to here the sessions name %zu broker URLs; at most "
                             "%d are accepted in a document",
                           urls, URLS_MAX);
            break;
        }
        for (size_t j = 0; j < s->mqtt.urls.count; j++) {
            claim_identity(c, &seen, s, s->mqtt.urls.items[j]);
        }
    }
    gb_map_deinit(&seen);
}
