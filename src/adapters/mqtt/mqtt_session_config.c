#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_session_parts.h"

/* The session's own copy of its configuration, and the checks that it depends on. */

enum { PACKET_BYTES_MAX = 268435455, METADATA_BYTES = 131072 };

static void *own(struct gb_mqtt_session *s, void *memory)
{
    if (memory == NULL) return NULL;
    void **grown = realloc(s->owned, (s->owned_count + 1) * sizeof *grown);
    if (grown == NULL) {
        free(memory);
        return NULL;
    }
    s->owned = grown;
    s->owned[s->owned_count++] = memory;
    return memory;
}

static bool copy_text(struct gb_mqtt_session *s, const char **text)
{
    if (*text == NULL) return true;
    *text = own(s, gb_strdup(*text));
    return *text != NULL;
}

static struct gb_err copy_texts(struct gb_mqtt_session *s)
{
    struct gb_mqtt_session_cfg *c = &s->cfg;
    const char **texts[] = {
        &c->id,          &c->client_id,        &c->username,      &c->password,
        &c->will.topic,  &c->will.payload,     &c->tls.ca_pem,    &c->tls.cert_pem,
        &c->tls.key_pem, &c->tls.ca_file,      &c->tls.cert_file, &c->tls.key_file,
        &c->receiver_id, &c->ingress_route_id,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!copy_text(s, texts[i])) return gb_err_no_memory("MQTT session");
    return gb_ok();
}

static struct gb_err copy_topics(struct gb_mqtt_session *s)
{
    if (s->cfg.topic_count == 0) return gb_ok();
    struct gb_mqtt_topic *topics = own(s, calloc(s->cfg.topic_count, sizeof *topics));
    if (topics == NULL) return gb_err_no_memory("MQTT session");
    memcpy(topics, s->cfg.topics, s->cfg.topic_count * sizeof *topics);
    s->cfg.topics = topics;
    for (size_t i = 0; i < s->cfg.topic_count; i++) {
        struct gb_err err = gb_mqtt_filter_check(gb_bytes_c(topics[i].filter));
        if (gb_failed(err)) return err;
        if (topics[i].qos > 2) {
            return gb_err(GB_INVALID_CONFIG, "topic %s: qos %u is not 0, 1 or 2", topics[i].filter,
                          topics[i].qos);
        }
        if (!copy_text(s, &topics[i].filter)) return gb_err_no_memory("MQTT session");
        if (gb_mqtt_filter_is_shared(gb_bytes_c(topics[i].filter))) s->topics_shared = true;
    }
    return gb_ok();
}

static struct gb_err parse_urls(struct gb_mqtt_session *s)
{
    if (s->cfg.url_count == 0) return gb_err(GB_INVALID_CONFIG, "broker_url is required");
    s->endpoints = calloc(s->cfg.url_count, sizeof *s->endpoints);
    if (s->endpoints == NULL) return gb_err_no_memory("MQTT session");
    for (size_t i = 0; i < s->cfg.url_count; i++) {
        struct gb_err err = gb_mqtt_endpoint_parse(gb_bytes_c(s->cfg.urls[i]), &s->endpoints[i]);
        if (gb_failed(err)) return err;
        char text[GB_MQTT_ENDPOINT_TEXT_MAX];
        gb_mqtt_endpoint_print(&s->endpoints[i], text);
        if (i > 0) gb_str_append_char(&s->urls_joined, '\n');
        gb_str_append_c(&s->urls_joined, text);
    }
    s->cfg.urls = NULL; /* the parsed form is what is used */
    gb_mqtt_storage_identity(&s->endpoints[0], gb_bytes_c(s->cfg.client_id), s->identity);
    return gb_str_check(&s->urls_joined, "MQTT session");
}

static struct gb_err check_cfg(const struct gb_mqtt_session_cfg *c)
{
    if (c->client_id == NULL || c->client_id[0] == '\0')
        return gb_err(GB_INVALID_CONFIG, "client_id is required");
    if (c->mode != GB_MQTT_EPHEMERAL && c->topic_count > 0 && c->subscriptions == NULL) {
        return gb_err(GB_INVALID_CONFIG,
                      "a durable session with subscriptions requires stores.managed_subscriptions");
    }
    if (c->receive_maximum == 0)
        return gb_err(GB_INVALID_CONFIG, "receive_maximum must be positive");
    if (c->max_payload_bytes > PACKET_BYTES_MAX - METADATA_BYTES) {
        return gb_err(
            GB_INVALID_CONFIG,
            "max_payload_bytes %u: with %d bytes of metadata it exceeds the packet limit %d",
            c->max_payload_bytes, METADATA_BYTES, PACKET_BYTES_MAX);
    }
    return gb_ok();
}

struct gb_err gb_mqtt_session_copy_cfg(struct gb_mqtt_session *s,
                                       const struct gb_mqtt_session_cfg *cfg)
{
    struct gb_err err = check_cfg(cfg);
    if (gb_failed(err)) return err;
    s->cfg = *cfg;
    err = copy_texts(s);
    if (!gb_failed(err)) err = copy_topics(s);
    if (!gb_failed(err)) err = parse_urls(s);
    if (s->cfg.mode == GB_MQTT_EPHEMERAL) s->cfg.session_expiry_interval_s = 0;
    /* Else the next owner would wipe what waits for it (spec 03 §2). */
    if (s->cfg.mode == GB_MQTT_EXCLUSIVE) s->cfg.clean_start = false;
    return err;
}

void gb_mqtt_session_init_metrics(struct gb_mqtt_session *s)
{
    struct gb_metrics *m = s->cfg.metrics;
    const struct {
        struct gb_metric **handle;
        const char *name;
        enum gb_metric_kind kind;
    } rows[] = {
        {&s->m.reconnects, "MQTTReconnects", GB_METRIC_COUNTER},
        {&s->m.takeovers, "MQTTSessionTakeover", GB_METRIC_COUNTER},
        {&s->m.resume_lost, "MQTTSessionResumeLost", GB_METRIC_COUNTER},
        {&s->m.rejected, "MQTTIngressRejected", GB_METRIC_COUNTER},
        {&s->m.recoveries, "MQTTSessionRecoveryRecycle", GB_METRIC_COUNTER},
        {&s->m.connect_latency, "MQTTConnectLatency", GB_METRIC_TIMER},
        {&s->m.poison_dropped, "MQTTIngressPoisonDropped", GB_METRIC_COUNTER},
        {&s->m.properties_truncated, "MQTTIngressUserPropertiesTruncated", GB_METRIC_COUNTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].handle =
            gb_metrics_get(m, rows[i].kind, rows[i].name, GB_DIMS({"session_id", s->cfg.id}));
    }
    s->m.header_dropped = gb_metrics_get(m, GB_METRIC_COUNTER, "MQTTIngressHeaderDropped", NULL, 0);
}
