#include <inttypes.h>

#include "base/map.h"
#include "blueprint/validate.h"
#include "domain/mqtt_topic.h"

/* Spec 03 §3.1, §13. */

enum { PACKET_MAX = 268435455, METADATA_MAX = 131072, FIELD_MAX = 65535, URLS_MAX = 20000 };

#define S "options.session."

/* Written, even if not to be read. */
static bool has_urls(const struct gb_bp_mqtt_session *m)
{
    const struct gb_node *one = gb_node_get(m->node, "broker_url");
    const struct gb_node *list = gb_node_get(m->node, "broker_urls");
    bool single = one != NULL && one->kind != GB_NODE_NULL && one->kind != GB_NODE_STRING;
    bool several = list != NULL && m->broker_urls.broken;
    return single || several || !gb_check_readable(m->node);
}

static void check_urls(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    char first[GB_MQTT_ENDPOINT_TEXT_MAX];
    char other[GB_MQTT_ENDPOINT_TEXT_MAX];
    bool any = false;
    bool several = false;
    for (size_t i = 0; i < m->urls.count; i++) {
        struct gb_mqtt_endpoint endpoint;
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(m->urls.items[i]), &endpoint);
        bool single = i == 0 && m->broker_url != NULL;
        const char *key = single ? S "broker_url" : S "broker_urls";
        if (m->urls.items[i][0] == '\0') continue; /* the decoder has spoken */
        if (gb_failed(err)) { /* a URL may hold a password, so only what is wrong is shown */
            gb_check_error(c, GB_RULE_M1, key, "%s: %s", key, err.message);
            continue;
        }
        char text[GB_MQTT_ENDPOINT_TEXT_MAX];
        gb_mqtt_endpoint_print(&endpoint, text);
        if (!any) memcpy(first, text, sizeof first);
        any = true;
        if (strcmp(first, text) != 0) {
            several = true;
            memcpy(other, text, sizeof other);
        }
        if (m->tls.enable.value && !gb_mqtt_scheme_is_tls(endpoint.scheme)) {
            gb_check_warning(c, GB_RULE_M2, S "tls.enable",
                             S "tls.enable: true has no effect on \"%.*s\", where the scheme "
                               "decides; write tls:// or wss://",
                             GB_SHOWN_MAX, text);
        }
    }
    if (m->node != NULL && m->urls.count == 0 && !has_urls(m)) {
        gb_check_error(c, GB_RULE_M1, "options.session",
                       S "broker_url or broker_urls is required; add the broker's URL, such as "
                         "tls://broker:8883");
    }
    if (several && gb_session_is_durable(s)) {
        gb_check_error(c, GB_RULE_P6, S "broker_urls",
                       S "broker_urls names \"%.*s\" and \"%.*s\", but a persistent or exclusive "
                         "session lives on one broker; name one endpoint",
                       GB_SHOWN_MAX, first, GB_SHOWN_MAX, other);
    }
}

/* The same gate runs again when credentials change (spec 03 §4.2). */
static void check_credentials(struct gb_check *c, const struct gb_bp_mqtt_session *m)
{
    char text[GB_MQTT_ENDPOINT_TEXT_MAX];
    if (m->username == NULL && m->password == NULL) return;
    if (!gb_blueprint_plain_broker(m, text)) return;
    gb_check_error(c, GB_RULE_M3, m->username != NULL ? S "username" : S "password",
                   S "username and password would be sent in plain text to \"%.*s\"; use tls:// "
                     "or wss://, or set allow_plaintext_credentials: true",
                   GB_SHOWN_MAX, text);
}

static void check_identity(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    int suffix = m->client_id_suffix.value;
    if (s->session_mode.value == GB_BP_EXCLUSIVE && suffix != GB_BP_SUFFIX_NONE) {
        gb_check_error(c, GB_RULE_C3, S "client_id_suffix",
                       S
                       "client_id_suffix: %s: client_id_suffix is refused on an exclusive session, "
                       "whose client_id must be equal on every instance; remove it",
                       suffix == GB_BP_SUFFIX_NONCE ? "nonce" : "hostname");
        return;
    }
    if (s->session_mode.value != GB_BP_PERSISTENT) return;
    if (suffix == GB_BP_SUFFIX_NONCE) {
        gb_check_error(c, GB_RULE_M4, S "client_id_suffix",
                       S
                       "client_id_suffix: nonce is refused on a persistent session, since a new id "
                       "at every start would leave the broker's session behind; remove it, or "
                       "use session_mode: ephemeral");
    }
    if (m->assert_stable_client_identity.broken) return;
    if (suffix == GB_BP_SUFFIX_HOSTNAME && !m->assert_stable_client_identity.value) {
        gb_check_error(c, GB_RULE_M4, S "client_id_suffix",
                       S "client_id_suffix: hostname on a persistent session needs "
                         "assert_stable_client_identity: true, which says that the host name never "
                         "changes; set it, or remove the suffix");
    } else if (suffix == GB_BP_SUFFIX_HOSTNAME) {
        gb_check_warning(c, GB_RULE_M4, S "assert_stable_client_identity",
                         S "assert_stable_client_identity: true: a changed host name leaves the "
                           "broker's session and its messages behind; keep host names fixed");
    }
}

static void check_pair(struct gb_check *c, const struct gb_bp_tls *tls, const char *cert,
                       const char *key)
{
    struct gb_check at = *c;
    at.entry = tls->node;
    bool has_cert = gb_check_written(&at, cert);
    if (tls->node == NULL || has_cert == gb_check_written(&at, key)) return;
    gb_check_error(c, GB_RULE_M5, S "tls",
                   S "tls: %s and %s are only accepted together, and only %s is written; add the "
                     "other, or remove it",
                   cert, key, has_cert ? cert : key);
}

static void check_tls(struct gb_check *c, const struct gb_bp_tls *tls)
{
    check_pair(c, tls, "cert_file", "key_file");
    check_pair(c, tls, "cert_pem", "key_pem");
    if (tls->insecure_skip_verify.value) {
        gb_check_warning(c, GB_RULE_M5, S "tls.insecure_skip_verify",
                         S "tls.insecure_skip_verify: true lets anyone pose as the broker; remove "
                           "it and set ca_cert_file");
    }
}

static void check_sizes(struct gb_check *c, const struct gb_bp_mqtt_session *m)
{
    int64_t payload = m->max_payload_bytes.value;
    if (payload + METADATA_MAX > PACKET_MAX) {
        gb_check_error(c, GB_RULE_M6, S "max_payload_bytes",
                       S "max_payload_bytes %" PRId64 " + %d is more than the largest MQTT packet, "
                         "%d; lower it to at most %d",
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
        gb_check_error(
            c, GB_RULE_M6, texts[i].key,
            "%s has %zu bytes, which is longer than MQTT can carry, %d bytes; shorten it",
            texts[i].key, strlen(texts[i].value), FIELD_MAX);
    }
}

static void check_will(struct gb_check *c, const struct gb_bp_will *will)
{
    if (will->topic == NULL) return;
    struct gb_err err = gb_mqtt_publish_topic_check(gb_bytes_c(will->topic));
    if (gb_failed(err)) {
        gb_check_error(c, GB_RULE_M9, S "will.topic", S "will.topic: %s; write a topic such as a/b",
                       err.message);
    }
}

static void check_v311(struct gb_check *c, const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    if (m->no_local.value) {
        gb_check_error(c, GB_RULE_M7, S "no_local",
                       S "no_local: true needs protocol_version: v5, since v3.1.1 has no such "
                         "subscription; remove one of the two");
    }
    if (m->session_expiry_interval.given && m->session_expiry_interval.value != 0) {
        gb_check_error(c, GB_RULE_M7, S "session_expiry_interval",
                       S "session_expiry_interval %" PRId64 ": session_expiry_interval needs "
                         "protocol_version: v5; under v3.1.1 the broker's own setting decides, "
                         "leave it out",
                       m->session_expiry_interval.value);
    }
    if (m->password != NULL && m->username == NULL && gb_node_get(m->node, "username") == NULL) {
        gb_check_error(c, GB_RULE_M7, S "password",
                       S "password without username needs protocol_version: v5, not v3.1.1; add a "
                         "username");
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
                       S "message_id: content_hash needs protocol_version: v3.1.1; remove it, v5 "
                         "carries ids of its own");
    }
    if (!s->mqtt.clean_start.value) return;
    if (s->session_mode.value == GB_BP_PERSISTENT) {
        gb_check_warning(c, GB_RULE_W5, S "clean_start",
                         S "clean_start: true on a persistent session wipes its backlog at every "
                           "start of the process; remove it to keep the backlog");
    }
}

static void check_exclusive(struct gb_check *c, const struct gb_bp_session *s)
{
    if (s->session_mode.value == GB_BP_EXCLUSIVE && s->mqtt.clean_start.value) {
        gb_check_warning(c, GB_RULE_M8, S "clean_start",
                         S "clean_start: true is overridden on an exclusive session, which always "
                           "resumes; remove it");
    }
}

void gb_validate_mqtt_session(struct gb_check *c, const struct gb_bp_session *s)
{
    check_urls(c, s);
    check_credentials(c, &s->mqtt);
    if (!s->session_mode.broken) check_identity(c, s);
    check_tls(c, &s->mqtt.tls);
    check_sizes(c, &s->mqtt);
    check_will(c, &s->mqtt.will);
    check_exclusive(c, s);
    if (s->mqtt.protocol_version.broken) return;
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
                       S "client_id \"%.*s\" at %.*s is also that of session \"%.*s\", and two "
                         "connections under one id take each other's place; give each its own",
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
                             "%d are accepted in a document; name fewer",
                           urls, URLS_MAX);
            break;
        }
        for (size_t j = 0; j < s->mqtt.urls.count; j++) {
            claim_identity(c, &seen, s, s->mqtt.urls.items[j]);
        }
    }
    gb_map_deinit(&seen);
}
