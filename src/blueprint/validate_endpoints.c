#include <stdio.h>

#include "base/map.h"
#include "blueprint/schema.h"
#include "blueprint/validate.h"
#include "domain/mqtt_topic.h"

/* Receivers and senders. */

static const char *kind_name(int kind)
{
    return gb_schema_word_name(gb_schema_kinds, kind);
}

/* V4, V5, P4: one rule for receivers and senders. Sessions are MQTT only, so a written transport
 * that differs from its session's is a stateless one. */
static void check_transport(struct gb_check *c, const struct gb_opt_word *transport,
                            const char *session_id, const struct gb_bp_session *session)
{
    bool on_session = gb_check_written(c, "session_id");
    if (!gb_check_written(c, "transport") && !on_session) {
        gb_check_error(c, GB_RULE_V4, "transport",
                       "transport or session_id is required; add session_id for MQTT, else "
                       "transport: sqs or http");
    }
    if (session_id != NULL && session == NULL) {
        gb_check_missing(c, "session_id", session_id, "sessions");
    }
    bool stateless = transport->value == GB_BP_SQS || transport->value == GB_BP_HTTP;
    if (session_id != NULL && stateless) {
        gb_check_error(c, GB_RULE_P4, "session_id",
                       "session_id \"%.*s\" is refused with transport %s, which has no sessions; "
                       "remove one of the two",
                       GB_SHOWN_MAX, session_id, kind_name(transport->value));
    }
    if (transport->value == GB_BP_MQTT && !on_session) {
        gb_check_error(c, GB_RULE_V4, "transport",
                       "transport mqtt needs a session_id, since the session connects; add it");
    }
}

/* The position of a topic is looked up by index, which is linear: only for findings. */
static void topic_error(struct gb_check *c, const struct gb_bp_topic *t, size_t index,
                        const char *text, const char *remedy)
{
    struct gb_check at = *c;
    at.entry = t->node;
    gb_check_error(&at, GB_RULE_V9, "topic", "topics[%zu].topic: %s; %s", index, text, remedy);
}

static void check_recheck(struct gb_check *c, const struct gb_bp_topic *t, size_t index)
{
    int64_t ns = t->qos_recheck_interval.ns;
    if (ns == 0 || ns >= GB_MINUTE) return;
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, shown);
    struct gb_check at = *c;
    at.entry = t->node;
    gb_check_error(
        &at, GB_RULE_V2, "options.subscription.qos_recheck_interval",
        "topics[%zu].options.subscription.qos_recheck_interval %s must be 0s (off) or at "
        "least 1m0s; raise it",
        index, shown);
}

static void check_topics(struct gb_check *c, const struct gb_bp_receiver *r)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < r->topic_count; i++) {
        struct gb_bp_topic *t = &r->topics[i];
        if (t->topic == NULL) continue;
        struct gb_err err = gb_mqtt_filter_check(gb_bytes_c(t->topic));
        if (gb_failed(err)) {
            topic_error(c, t, i, err.message, "write a filter such as a/+/b, a/# or $share/g/a/#");
        }
        check_recheck(c, t, i);
        if (gb_map_has(&seen, gb_bytes_c(t->topic))) {
            char text[GB_SHOWN_MAX + 64];
            (void)snprintf(text, sizeof text, "\"%.*s\" is subscribed twice", GB_SHOWN_MAX,
                           t->topic);
            topic_error(c, t, i, text, "remove one of the two");
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
                   "session_id \"%.*s\" already has the receiver \"%.*s\"; an MQTT session feeds "
                   "one receiver, give this one its own session",
                   GB_SHOWN_MAX, r->session_id, GB_SHOWN_MAX,
                   s->receiver->id == NULL ? "" : s->receiver->id);
}

void gb_validate_receivers(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &c->b->receivers[i];
        if (!gb_check_readable(r->node)) continue;
        gb_check_enter(c, "receivers", i, r->id, r->node);
        gb_check_id(c, &seen, r->id);
        check_transport(c, &r->transport, r->session_id, r->session);
        if (r->transport.value == GB_BP_MQTT) check_mqtt_receiver(c, r);
        if (r->transport.value == GB_BP_SQS) gb_validate_sqs_receiver(c, r);
        if (r->transport.value == GB_BP_HTTP) {
            gb_validate_http_endpoint(c, r->http.path, r->http.api_key, r->http.credentials_uri);
        }
        gb_validate_credentials_uri(c, r->credentials_uri);
        bool other = r->transport.value == GB_BP_SQS || r->transport.value == GB_BP_HTTP;
        if (other && r->topic_count > 0) {
            gb_check_error(c, GB_RULE_V4, "topics",
                           "topics are accepted with transport mqtt only, not %s; remove them",
                           kind_name(r->transport.value));
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}

static void check_default_topic(struct gb_check *c, const char *topic)
{
    if (topic == NULL) return;
    struct gb_err err = gb_mqtt_publish_topic_check(gb_bytes_c(topic));
    if (!gb_failed(err)) return;
    gb_check_error(c, GB_RULE_M9, "options.sender.default_topic",
                   "options.sender.default_topic: %s; write a topic such as a/b", err.message);
}

void gb_validate_senders(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->sender_count; i++) {
        const struct gb_bp_sender *s = &c->b->senders[i];
        if (!gb_check_readable(s->node)) continue;
        gb_check_enter(c, "senders", i, s->id, s->node);
        gb_check_id(c, &seen, s->id);
        check_transport(c, &s->transport, s->session_id, s->session);
        if (s->transport.value == GB_BP_MQTT) check_default_topic(c, s->mqtt.default_topic);
        if (s->transport.value == GB_BP_SQS) gb_validate_sqs_sender(c, s);
        gb_validate_credentials_uri(c, s->credentials_uri);
        if (s->transport.value != GB_BP_HTTP) continue;
        gb_validate_http_endpoint(c, s->http.path, s->http.api_key, s->http.credentials_uri);
        if (s->http.at_most_once_accept_loss.value && s->http.fail_on_zero_delivery.value) {
            gb_check_error(c, GB_RULE_V8, "options.fail_on_zero_delivery",
                           "options.at_most_once_accept_loss: true and "
                           "options.fail_on_zero_delivery: true are mutually exclusive; remove one "
                           "of the two");
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}
