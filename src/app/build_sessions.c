#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/mqtt/mqtt_session.h"
#include "app/runtime_parts.h"
#include "base/id.h"
#include "base/log.h"
#include "domain/mqtt_topic.h"
#include "io/net_uv.h"

static void session_terminal(void *arg, const char *session_id, struct gb_err cause)
{
    gb_runtime_fail(arg, gb_err_in(cause, "session %s", session_id));
}

/* The effective client id (spec 03 §3.1): suffix read or minted once per process. */
static struct gb_err client_id(struct gb_runtime *r, const struct gb_bp_mqtt_session *m,
                               struct gb_str *out)
{
    gb_str_append_c(out, m->client_id);
    if (m->client_id_suffix.value == GB_BP_SUFFIX_HOSTNAME) {
        char host[256] = {0};
        if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
            return gb_err(GB_INVALID_CONFIG, "client_id_suffix: hostname: the host has no name");
        gb_str_append_char(out, '-');
        gb_str_append_c(out, host);
    } else if (m->client_id_suffix.value == GB_BP_SUFFIX_NONCE) {
        char id[GB_ID_HEX_SIZE];
        gb_id_hex(r->reactor, id);
        gb_str_append_char(out, '-');
        gb_str_append(out, gb_bytes(id, 8));
    }
    return gb_str_check(out, "client id");
}

/* The route fed by the session's receiver, or NULL. */
static const char *ingress_route(const struct gb_runtime *r, const struct gb_bp_receiver *receiver)
{
    for (size_t i = 0; receiver != NULL && i < r->cfg.blueprint->route_count; i++)
        if (r->cfg.blueprint->routes[i].receiver == receiver) return r->cfg.blueprint->routes[i].id;
    return NULL;
}

static struct gb_err copy_topics(const struct gb_bp_receiver *receiver, struct gb_mqtt_topic **out)
{
    *out = NULL;
    if (receiver == NULL || receiver->topic_count == 0) return gb_ok();
    struct gb_mqtt_topic *topics = calloc(receiver->topic_count, sizeof *topics);
    if (topics == NULL) return gb_err_no_memory("MQTT topics");
    for (size_t i = 0; i < receiver->topic_count; i++) {
        const struct gb_bp_topic *t = &receiver->topics[i];
        topics[i] = (struct gb_mqtt_topic){
            .filter = t->topic,
            .qos = (uint8_t)t->qos.value,
            .qos_recheck_interval_ns = t->qos_recheck_interval.ns,
        };
        if (topics[i].qos == 0) {
            GB_LOG(GB_LOG_INFO,
                   "QoS 0 subscription: messages in flight are lost at a crash or a reconnect",
                   gb_lf_str("receiver_id", receiver->id), gb_lf_str("topic", t->topic));
        }
    }
    *out = topics;
    return gb_ok();
}

/* Bad certificates and keys end the start: each later dial would only fail in the same way
 * (spec 04 D4). Without a TLS broker the material stays unused and unread. */
static struct gb_err check_tls(const struct gb_mqtt_session_cfg *cfg)
{
    for (size_t i = 0; i < cfg->url_count; i++) {
        struct gb_mqtt_endpoint endpoint;
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(cfg->urls[i]), &endpoint);
        if (gb_failed(err)) return err;
        if (gb_mqtt_scheme_is_tls(endpoint.scheme)) return gb_tls_check(&cfg->tls);
    }
    return gb_ok();
}

static void warn_about(const struct gb_bp_session *s, const struct gb_tls_cfg *tls)
{
    if (tls->insecure_skip_verify) {
        GB_LOG(GB_LOG_WARN, "tls.insecure_skip_verify: the broker's certificate is not verified",
               gb_lf_str("session_id", s->id));
    }
}

/* What the document writes itself wins; of certificates and keys pairs stay together (spec 04 D1,
 * D4). */
static void add_credentials(const struct gb_runtime *r, const struct gb_bp_session *s,
                            struct gb_mqtt_session_cfg *cfg)
{
    const struct gb_credential_set *set = gb_secrets_find(r->cfg.secrets, s->credentials_uri);
    struct gb_tls_cfg *tls = &cfg->tls;
    if (set == NULL) return;
    if (cfg->username == NULL) cfg->username = set->username;
    if (cfg->password == NULL) cfg->password = set->password;
    if (tls->ca_pem == NULL && tls->ca_file == NULL) tls->ca_pem = set->ca_pem;
    if (tls->cert_pem == NULL && tls->key_pem == NULL && tls->cert_file == NULL &&
        tls->key_file == NULL) {
        tls->cert_pem = set->cert_pem;
        tls->key_pem = set->key_pem;
    }
    tls->insecure_skip_verify = tls->insecure_skip_verify || set->insecure_skip_verify;
}

static struct gb_err build_session(struct gb_runtime *r, struct gb_built_session *b)
{
    static const enum gb_mqtt_mode modes[] = {
        [GB_BP_EPHEMERAL] = GB_MQTT_EPHEMERAL,
        [GB_BP_PERSISTENT] = GB_MQTT_PERSISTENT,
        [GB_BP_EXCLUSIVE] = GB_MQTT_EXCLUSIVE,
    };
    const struct gb_bp_session *s = b->bp;
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    const struct gb_bp_receiver *receiver = s->receiver;
    struct gb_str id = {0};
    struct gb_mqtt_topic *topics = NULL;
    struct gb_err err = client_id(r, m, &id);
    if (!gb_failed(err)) err = copy_topics(receiver, &topics);
    if (gb_failed(err)) goto out;
    struct gb_mqtt_session_cfg cfg = {
        .id = s->id,
        .mode = modes[s->session_mode.value],
        .version = m->protocol_version.value == GB_BP_MQTT_V5 ? GB_MQTT_V5 : GB_MQTT_V311,
        .urls = m->urls.items,
        .url_count = m->urls.count,
        .client_id = id.data,
        .keep_alive_s = (uint16_t)m->keep_alive.value,
        .connect_timeout_ns = m->connect_timeout.ns,
        .reconnect_timeout_ns = m->reconnect_timeout.ns,
        .reconcile_timeout_ns = m->reconcile_timeout.ns,
        .reconnect_delay_ns = m->reconnect_delay.ns,
        .reconnect_max_delay_ns = m->reconnect_max_delay.ns,
        .unmatched_grace_ns = m->unmatched_grace.ns,
        .clean_start = m->clean_start.value && !r->cfg.again, /* once per process start */
        .session_expiry_interval_s = (uint32_t)m->session_expiry_interval.value,
        .receive_maximum = (uint16_t)m->receive_maximum.value,
        .max_payload_bytes = (uint32_t)m->max_payload_bytes.value,
        .no_local = m->no_local.value,
        .content_hash_id = m->message_id.value == GB_BP_ID_CONTENT_HASH,
        .username = m->username,
        .password = m->password,
        .will = {.topic = m->will.node == NULL ? NULL : m->will.topic,
                 .payload = m->will.payload,
                 .qos = (uint8_t)m->will.qos.value,
                 .retain = m->will.retain.value},
        .tls = {.ca_pem = m->tls.ca_cert_pem,
                .cert_pem = m->tls.cert_pem,
                .key_pem = m->tls.key_pem,
                .ca_file = m->tls.ca_cert_file,
                .cert_file = m->tls.cert_file,
                .key_file = m->tls.key_file,
                .insecure_skip_verify = m->tls.insecure_skip_verify.value},
        .topics = topics,
        .topic_count = receiver == NULL ? 0 : receiver->topic_count,
        .receiver_id = receiver == NULL ? NULL : receiver->id,
        .ingress_route_id = ingress_route(r, receiver),
        .reactor = r->reactor,
        .net = r->net,
        .metrics = r->cfg.metrics,
        .subscriptions = r->subscriptions,
        .dlq = r->dlq,
        .terminal = session_terminal,
        .arg = r,
    };
    add_credentials(r, s, &cfg);
    err = check_tls(&cfg);
    if (!gb_failed(err)) err = gb_mqtt_session_new(&cfg, &b->session);
    if (!gb_failed(err)) warn_about(s, &cfg.tls);
out:
    free(topics);
    gb_str_deinit(&id);
    return gb_failed(err) ? gb_err_in(err, "session %s", s->id) : err;
}

struct gb_err gb_build_sessions(struct gb_runtime *r)
{
    const struct gb_blueprint *b = r->cfg.blueprint;
    r->sessions = calloc(b->session_count + 1, sizeof *r->sessions);
    if (r->sessions == NULL) return gb_err_no_memory("sessions");
    for (size_t i = 0; i < b->session_count; i++) {
        r->sessions[i].bp = &b->sessions[i];
        r->session_count = i + 1;
        if (!b->sessions[i].in_use) continue;
        struct gb_err err = build_session(r, &r->sessions[i]);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

struct gb_built_session *gb_runtime_session_of(struct gb_runtime *r, const struct gb_bp_session *bp)
{
    for (size_t i = 0; i < r->session_count; i++)
        if (r->sessions[i].bp == bp) return &r->sessions[i];
    return NULL;
}
