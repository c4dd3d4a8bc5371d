#include "base/map.h"
#include "blueprint/schema.h"
#include "blueprint/validate.h"
#include "domain/address.h"
#include "domain/mqtt_topic.h"

/* Receivers, senders, bindings. */

enum {
    API_KEY_BYTES_MIN = 16,
    GROUP_ID_MAX = 128,
    QUEUE_PREFIX_MAX = 80,
    LOOP_TOPICS_MAX = 300, /* every binding is held against every topic of its session */
};

static const char *kind_name(int kind)
{
    return gb_schema_word_name(gb_schema_kinds, kind);
}

/* V4, V5, P4: one rule for receivers and senders. Sessions are MQTT only, so a written transport
 * that differs from its session's is a stateless one. */
static void check_transport(struct gb_check *c, const struct gb_opt_word *transport,
                            const char *session_id, const struct gb_bp_session *session)
{
    const struct gb_node *written = gb_node_get(c->entry, "transport");
    bool named = written != NULL && written->kind != GB_NODE_NULL;
    if (!named && session_id == NULL) {
        gb_check_error(c, GB_RULE_V4, "transport", "transport or session_id is required");
    }
    if (session_id != NULL && session == NULL) {
        gb_check_error(c, GB_RULE_V5, "session_id", "session_id \"%.*s\" not found in sessions",
                       GB_SHOWN_MAX, session_id);
    }
    bool stateless = transport->value == GB_BP_SQS || transport->value == GB_BP_HTTP;
    if (session_id != NULL && stateless) {
        gb_check_error(c, GB_RULE_P4, "session_id",
                       "session_id is refused with transport %s, which has no sessions; remove one "
                       "of the two",
                       kind_name(transport->value));
    }
    if (transport->value == GB_BP_MQTT && session_id == NULL) {
        gb_check_error(c, GB_RULE_V4, "transport",
                       "transport mqtt needs a session_id; the session connects");
    }
}

static void check_queue(struct gb_check *c, const struct gb_bp_sqs_queue *q)
{
    bool tags = q->queue_tags.count > 0;
    if (q->queue_url == NULL && q->queue_name == NULL && !tags) {
        gb_check_error(c, GB_RULE_Q1, "options",
                       "options.queue_url is required (or queue_name, or queue_tags)");
    }
    if (tags && (q->queue_url != NULL || q->queue_name != NULL)) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_tags",
                       "options.queue_tags excludes queue_url and queue_name");
    }
    if (q->queue_url != NULL && q->queue_name != NULL) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_name",
                       "options.queue_url and options.queue_name are mutually exclusive");
    }
    if (q->queue_tags.count > 50) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_tags",
                       "options.queue_tags has more than 50 tags");
    }
    for (size_t i = 0; i < q->queue_tags.count; i++) {
        size_t key = strlen(q->queue_tags.items[i].key);
        if (key >= 1 && key <= 128 && strlen(q->queue_tags.items[i].value) <= 256) continue;
        gb_check_error(c, GB_RULE_Q1, "options.queue_tags",
                       "options.queue_tags: keys have 1-128 characters, values at most 256");
    }
    if (q->queue_name_prefix == NULL) return;
    if (!tags) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_name_prefix",
                       "options.queue_name_prefix is accepted only with queue_tags");
    }
    if (strlen(q->queue_name_prefix) > QUEUE_PREFIX_MAX) {
        gb_check_error(c, GB_RULE_Q1, "options.queue_name_prefix",
                       "options.queue_name_prefix is longer than %d characters", QUEUE_PREFIX_MAX);
    }
}

static void check_sqs_receiver(struct gb_check *c, const struct gb_bp_sqs_receiver *r)
{
    check_queue(c, &r->queue);
    if (r->poll_backoff_max.ns < r->poll_backoff_initial.ns) {
        gb_check_error(c, GB_RULE_Q2, "options.poll_backoff_max",
                       "options.poll_backoff_max is less than options.poll_backoff_initial");
    }
    if (r->poison_max_receives.value == 1 && !r->poison_drop_without_dlq.value) {
        gb_check_error(c, GB_RULE_Q3, "options.poison_max_receives",
                       "options.poison_max_receives: 1 deletes every message that is received "
                       "once; it needs poison_drop_without_dlq: true");
    }
}

static void check_api_key(struct gb_check *c, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (value == NULL || size >= API_KEY_BYTES_MIN) return;
    gb_check_error(c, GB_RULE_V10, "options.api_key",
                   "options.api_key has %zu bytes; at least %d are required", size,
                   API_KEY_BYTES_MIN);
}

/* The position of a topic is looked up by index, which is linear: only for findings. */
static void topic_error(struct gb_check *c, const struct gb_bp_topic *t, size_t index,
                        const char *text)
{
    struct gb_check at = *c;
    at.entry = t->node;
    gb_check_error(&at, GB_RULE_V9, "topic", "topics[%zu]: %s", index, text);
}

static void check_recheck(struct gb_check *c, const struct gb_bp_topic *t, size_t index)
{
    int64_t ns = t->qos_recheck_interval.ns;
    if (ns == 0 || ns >= GB_MINUTE) return;
    struct gb_check at = *c;
    at.entry = t->node;
    gb_check_error(&at, GB_RULE_V2, "options.subscription.qos_recheck_interval",
                   "topics[%zu].options.subscription.qos_recheck_interval must be 0s (off) or at "
                   "least 1m0s",
                   index);
}

static void check_topics(struct gb_check *c, const struct gb_bp_receiver *r)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < r->topic_count; i++) {
        struct gb_bp_topic *t = &r->topics[i];
        if (t->topic == NULL) continue;
        struct gb_err err = gb_mqtt_filter_check(gb_bytes_c(t->topic));
        if (gb_failed(err)) topic_error(c, t, i, err.message);
        check_recheck(c, t, i);
        if (gb_map_has(&seen, gb_bytes_c(t->topic))) {
            topic_error(c, t, i, "the same topic is subscribed twice; remove one");
        } else if (gb_failed(gb_map_put(&seen, gb_bytes_c(t->topic), t))) {
            c->findings->failed = true;
        }
    }
    gb_map_deinit(&seen);
}

static void check_mqtt_receiver(struct gb_check *c, const struct gb_bp_receiver *r)
{
    check_topics(c, r);
    const struct gb_bp_session *s = r->session;
    if (s == NULL || s->receiver == NULL || s->receiver == r) return;
    /* P12 */
    gb_check_error(c, GB_RULE_P12, "session_id",
                   "session \"%.*s\" already has the receiver \"%.*s\"; an MQTT session feeds one "
                   "receiver, give this one its own session",
                   GB_SHOWN_MAX, r->session_id, GB_SHOWN_MAX,
                   s->receiver->id == NULL ? "" : s->receiver->id);
}

void gb_validate_receivers(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &c->b->receivers[i];
        gb_check_enter(c, "receivers", i, r->id, r->node);
        gb_check_id(c, &seen, r->id);
        check_transport(c, &r->transport, r->session_id, r->session);
        if (r->transport.value == GB_BP_MQTT) check_mqtt_receiver(c, r);
        if (r->transport.value == GB_BP_SQS) check_sqs_receiver(c, &r->sqs);
        if (r->transport.value == GB_BP_HTTP) check_api_key(c, r->http.api_key);
        bool other = r->transport.value == GB_BP_SQS || r->transport.value == GB_BP_HTTP;
        if (other && r->topic_count > 0) {
            gb_check_error(c, GB_RULE_V4, "topics",
                           "topics are accepted with transport mqtt only, not %s",
                           kind_name(r->transport.value));
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}

static bool ends_with_fifo(const char *name)
{
    size_t size = name == NULL ? 0 : strlen(name);
    return size >= 5 && strcmp(name + size - 5, ".fifo") == 0;
}

static bool is_group_id(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < 0x21 || *p > 0x7e) return false;
    }
    return strlen(text) <= GROUP_ID_MAX;
}

/* Spec 04 B9. */
static void check_fifo(struct gb_check *c, const struct gb_bp_sqs_sender *s)
{
    const struct gb_bp_sqs_queue *q = &s->queue;
    bool asked = s->fifo.value || s->message_group_id != NULL;
    bool named = q->queue_url != NULL || q->queue_name != NULL;
    bool suffix = ends_with_fifo(q->queue_url) || ends_with_fifo(q->queue_name);
    if (suffix && !asked) {
        gb_check_error(c, GB_RULE_Q4,
                       q->queue_url != NULL ? "options.queue_url" : "options.queue_name",
                       "options: a .fifo queue needs fifo: true or message_group_id, so that every "
                       "message has a group");
    }
    if (asked && named && !suffix) {
        gb_check_error(c, GB_RULE_Q4, s->fifo.value ? "options.fifo" : "options.message_group_id",
                       "options.%s needs a queue whose name ends in .fifo",
                       s->fifo.value ? "fifo" : "message_group_id");
    }
    if ((asked || suffix) && s->delay_seconds.value > 0) {
        gb_check_error(c, GB_RULE_Q4, "options.delay_seconds",
                       "options.delay_seconds is refused on a FIFO queue, which delays as a whole");
    }
    if (s->message_group_id != NULL && !is_group_id(s->message_group_id)) {
        gb_check_error(c, GB_RULE_Q4, "options.message_group_id",
                       "options.message_group_id must be at most %d letters, digits and "
                       "punctuation",
                       GROUP_ID_MAX);
    }
}

static void check_default_topic(struct gb_check *c, const char *topic)
{
    if (topic == NULL) return;
    struct gb_err err = gb_mqtt_publish_topic_check(gb_bytes_c(topic));
    if (!gb_failed(err)) return;
    gb_check_error(c, GB_RULE_M9, "options.sender.default_topic",
                   "options.sender.default_topic: %s", err.message);
}

void gb_validate_senders(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->sender_count; i++) {
        const struct gb_bp_sender *s = &c->b->senders[i];
        gb_check_enter(c, "senders", i, s->id, s->node);
        gb_check_id(c, &seen, s->id);
        check_transport(c, &s->transport, s->session_id, s->session);
        if (s->transport.value == GB_BP_MQTT) check_default_topic(c, s->mqtt.default_topic);
        if (s->transport.value == GB_BP_SQS) {
            check_queue(c, &s->sqs.queue);
            check_fifo(c, &s->sqs);
        }
        if (s->transport.value != GB_BP_HTTP) continue;
        check_api_key(c, s->http.api_key);
        if (s->http.at_most_once_accept_loss.value && s->http.fail_on_zero_delivery.value) {
            gb_check_error(c, GB_RULE_V8, "options.fail_on_zero_delivery",
                           "options.at_most_once_accept_loss and options.fail_on_zero_delivery are "
                           "mutually exclusive");
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}

/* V6; an address without placeholders must also suit its destination. */
static void check_address(struct gb_check *c, const struct gb_bp_binding *b)
{
    if (b->address == NULL) return;
    struct gb_bytes address = gb_bytes_c(b->address);
    struct gb_err err = gb_address_check(address);
    bool mqtt = b->sender != NULL && b->sender->transport.value == GB_BP_MQTT;
    if (!gb_failed(err) && mqtt && !gb_address_has_placeholders(address)) {
        err = gb_mqtt_publish_topic_check(address);
    }
    if (gb_failed(err)) gb_check_error(c, GB_RULE_V6, "address", "address: %s", err.message);
}

/* W3, for topics with wildcards too. */
static void check_loop(struct gb_check *c, const struct gb_bp_binding *b)
{
    const struct gb_bp_session *s = b->sender == NULL ? NULL : b->sender->session;
    if (s == NULL || s->receiver == NULL || s->mqtt.no_local.value) return;
    struct gb_bytes address = gb_bytes_c(b->address);
    if (gb_failed(gb_mqtt_publish_topic_check(address)) || gb_address_has_placeholders(address) ||
        s->receiver->topic_count > LOOP_TOPICS_MAX) {
        return;
    }
    for (size_t i = 0; i < s->receiver->topic_count; i++) {
        struct gb_bytes topic = gb_bytes_c(s->receiver->topics[i].topic);
        if (gb_failed(gb_mqtt_filter_check(topic))) continue;
        if (!gb_mqtt_filter_matches(topic, address)) continue;
        gb_check_warning(c, GB_RULE_W3, "address",
                         "address \"%.*s\" is subscribed on the same session by \"%.*s\": messages "
                         "will loop",
                         GB_SHOWN_MAX, b->address, GB_SHOWN_MAX, s->receiver->topics[i].topic);
        return;
    }
}

void gb_validate_bindings(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->binding_count; i++) {
        const struct gb_bp_binding *b = &c->b->bindings[i];
        gb_check_enter(c, "bindings", i, b->id, b->node);
        gb_check_id(c, &seen, b->id);
        if (b->sender_id != NULL && b->sender == NULL) {
            gb_check_error(c, GB_RULE_V5, "sender_id", "sender_id \"%.*s\" not found in senders",
                           GB_SHOWN_MAX, b->sender_id);
        }
        if (b->session_id != NULL && b->session == NULL) {
            gb_check_error(c, GB_RULE_V5, "session_id", "session_id \"%.*s\" not found in sessions",
                           GB_SHOWN_MAX, b->session_id);
        }
        check_address(c, b);
        check_loop(c, b);
        if (b->raw != NULL && b->raw->count > 0) {
            gb_check_warning(c, GB_RULE_W5, "options", "options of a binding have no effect");
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}
