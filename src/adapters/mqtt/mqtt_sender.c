#include <stdlib.h>

#include "adapters/mqtt/mqtt_session_parts.h"

/* The sender port on a session (spec 03 §11). */

static struct gb_mqtt_sender *of(const struct gb_sender *s)
{
    return GB_CONTAINER_OF(s, struct gb_mqtt_sender, base);
}

static void sender_send(struct gb_sender *base, struct gb_send *q, gb_done_fn *done, void *arg)
{
    struct gb_mqtt_sender *s = of(base);
    gb_mqtt_publisher_send(s->session->publisher, &s->options, q, done, arg);
}

static bool sender_ready(const struct gb_sender *base)
{
    return gb_mqtt_publisher_is_up(of(base)->session->publisher);
}

/* The session owns its senders: closing one has nothing to release. */
static void sender_close(struct gb_sender *base, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, of(base)->session->cfg.reactor, done, arg, NULL, NULL);
    gb_op_finish(op, gb_ok());
}

static const struct gb_sender_ops sender_ops = {
    .send = sender_send, .ready = sender_ready, .close = sender_close};

struct gb_err gb_mqtt_session_add_sender(struct gb_session *base,
                                         const struct gb_mqtt_sender_cfg *cfg,
                                         struct gb_sender **out)
{
    struct gb_mqtt_session *s = gb_mqtt_session_of(base);
    GB_ASSERT(s->state == GB_MQTT_S_NEW);
    if (cfg->qos > 2)
        return gb_err(GB_INVALID_CONFIG, "sender %s: qos %u is not 0, 1 or 2", cfg->id, cfg->qos);
    const char *topic = cfg->default_topic == NULL ? "" : cfg->default_topic;
    if (topic[0] != '\0') {
        struct gb_err err = gb_mqtt_publish_topic_check(gb_bytes_c(topic));
        if (gb_failed(err))
            return gb_err(GB_INVALID_CONFIG, "sender %s: default_topic: %s", cfg->id, err.message);
    }
    size_t id_size = strlen(cfg->id) + 1, topic_size = strlen(topic) + 1;
    struct gb_mqtt_sender *sender = calloc(1, sizeof *sender + id_size + topic_size);
    if (sender == NULL) return gb_err_no_memory("MQTT sender");
    char *texts = (char *)(sender + 1);
    memcpy(texts, cfg->id, id_size);
    memcpy(texts + id_size, topic, topic_size);
    sender->base = (struct gb_sender){.ops = &sender_ops, .id = texts, .batch_max = 1};
    sender->session = s;
    sender->options = (struct gb_mqtt_publish_options){
        .default_topic = texts + id_size,
        .qos = cfg->qos,
        .retain = cfg->retain,
        .timeout_ns = cfg->timeout_ns,
        .throttle_retry_after_ns = cfg->throttle_retry_after_ns,
    };
    gb_list_push(&s->senders, &sender->node);
    *out = &sender->base;
    return gb_ok();
}
