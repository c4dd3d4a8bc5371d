#include "adapters/mqtt/mqtt_egress.h"

#include "adapters/mqtt/mqtt_wire.h"
#include "base/digest.h"
#include "domain/mqtt_topic.h"
#include "domain/reserved.h"

#define GB_H_MESSAGE_ID "mqtt.message-id"
#define GB_H_SUBJECT "gobridge.subject"
#define GB_H_RESPONSE_TOPIC "mqtt.response-topic"

struct plan { /* what the packet will hold */
    const struct gb_envelope *envelope;
    struct gb_bytes topic;
    struct gb_mqtt_properties typed;
    bool correlation_is_id;    /* Correlation Data carries x-bridge.correlation-id */
    struct gb_str correlation; /* owns decoded correlation data */
    size_t properties_size;
    uint32_t dropped;
};

/* --- checks: local refusals (spec 03 §6.2) --- */

static struct gb_err check_text(struct gb_bytes text, const char *what)
{
    if (text.size > GB_MQTT_TEXT_MAX) {
        return gb_err(GB_PAYLOAD_TOO_LARGE, "%s has %zu bytes, MQTT allows %d in one text", what,
                      text.size, GB_MQTT_TEXT_MAX);
    }
    bool nul = text.size > 0 && memchr(text.data, '\0', text.size) != NULL;
    if (nul || !gb_utf8_valid(text)) {
        return gb_err(GB_INVALID_PAYLOAD, "%s is not UTF-8 without U+0000, as MQTT demands", what);
    }
    return gb_ok();
}

static struct gb_err check_peer(const struct gb_mqtt_egress *e)
{
    if (e->qos > e->maximum_qos) {
        return gb_err(GB_QOS_NOT_SUPPORTED,
                      "the sender's qos %u is above the broker's Maximum QoS %u; lower it", e->qos,
                      e->maximum_qos);
    }
    if (e->retain && !e->retain_available) {
        return gb_err(GB_PROTOCOL_ERROR,
                      "the sender sets retain, which the broker does not offer; switch it off");
    }
    return gb_ok();
}

/* --- planning --- */

static void plan_expiry(struct plan *plan, int64_t now_ms)
{
    int64_t expires_at_ms = plan->envelope->expires_at_ms;
    if (expires_at_ms == 0) return;
    int64_t seconds = expires_at_ms > now_ms ? (expires_at_ms - now_ms) / 1000 : 0;
    if (seconds < 1) seconds = 1; /* 0 would say: expired already */
    if (seconds > UINT32_MAX) seconds = UINT32_MAX;
    plan->typed.message_expiry = (uint32_t)seconds;
    plan->typed.has |= GB_MQTT_HAS(GB_MQTT_P_MESSAGE_EXPIRY);
}

static struct gb_err plan_correlation(struct plan *plan)
{
    struct gb_bytes data = gb_envelope_text(plan->envelope, GB_H_CORRELATION_DATA);
    struct gb_bytes value;
    if (data.size > 0) {
        bool decoded = gb_base64url_decode(&plan->correlation, data);
        struct gb_err err = gb_str_check(&plan->correlation, "MQTT correlation data");
        if (gb_failed(err)) return err;
        if (!decoded) {
            return gb_err(GB_INVALID_PAYLOAD, "header %s is not unpadded base64url",
                          GB_H_CORRELATION_DATA);
        }
        value = gb_str_bytes(&plan->correlation);
    } else {
        value = gb_envelope_text(plan->envelope, GB_H_CORRELATION_ID);
        plan->correlation_is_id = value.size > 0;
    }
    if (value.size == 0) return gb_ok();
    if (value.size > GB_MQTT_TEXT_MAX) {
        return gb_err(GB_PAYLOAD_TOO_LARGE, "the correlation has %zu bytes, MQTT allows %d",
                      value.size, GB_MQTT_TEXT_MAX);
    }
    plan->typed.correlation_data = value;
    plan->typed.has |= GB_MQTT_HAS(GB_MQTT_P_CORRELATION_DATA);
    return gb_ok();
}

static struct gb_err plan_text(struct plan *plan, enum gb_mqtt_property property,
                               struct gb_bytes *field, const char *header)
{
    struct gb_bytes text = gb_envelope_text(plan->envelope, header);
    if (text.size == 0) return gb_ok();
    *field = text;
    plan->typed.has |= GB_MQTT_HAS(property);
    return check_text(text, header);
}

/* A header that does not become a user property: it has its own place in the packet, or stays
 * here. */
static bool is_left_out(const struct plan *plan, struct gb_bytes name)
{
    static const char *const placed[] = {GB_H_MESSAGE_ID, "mqtt.topic", "mqtt.retained", "mqtt.qos",
                                         GB_H_RESPONSE_TOPIC};
    if (name.size == 0) return true;
    switch (name.data[0]) {
    case 'm':
        for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++) {
            if (gb_bytes_equal_c(name, placed[i])) return true;
        }
        return false;
    case 'g':
        return plan->envelope->subject.size > 0 && gb_bytes_equal_c(name, GB_H_SUBJECT);
    case 'x':
    case 'X':
        if (plan->correlation_is_id && gb_bytes_equal_c(name, GB_H_CORRELATION_ID)) return true;
        return gb_reserved_kind(name) == GB_RESERVED_INTERNAL;
    case 's':
    case 'a':
        return gb_is_redelivery_counter(name);
    default:
        return false;
    }
}

static bool is_user_property(const struct plan *plan, const struct gb_header *h)
{
    return h->value.kind == GB_VALUE_TEXT && !is_left_out(plan, h->name);
}

static size_t pair_size(struct gb_bytes name, struct gb_bytes value)
{
    return 5 + name.size + value.size;
}

static struct gb_err plan_user(struct plan *plan)
{
    const struct gb_envelope *e = plan->envelope;
    struct gb_err err = check_text(e->id, "the message id");
    if (!gb_failed(err)) err = check_text(e->subject, "the subject");
    size_t size = pair_size(gb_bytes_c(GB_H_MESSAGE_ID), e->id);
    if (e->subject.size > 0) size += pair_size(gb_bytes_c(GB_H_SUBJECT), e->subject);
    for (size_t i = 0; i < e->header_count && !gb_failed(err); i++) {
        const struct gb_header *h = &e->headers[i];
        if (is_user_property(plan, h)) {
            err = check_text(h->name, "a header's name");
            if (!gb_failed(err)) err = check_text(h->value.text, "a header");
            size += pair_size(h->name, h->value.text);
        } else if (h->value.kind != GB_VALUE_TEXT && !is_left_out(plan, h->name)) {
            plan->dropped++;
        }
    }
    plan->properties_size += size;
    return err;
}

static struct gb_err plan_properties(struct plan *plan, int64_t now_ms)
{
    plan_expiry(plan, now_ms);
    struct gb_err err = plan_correlation(plan);
    if (!gb_failed(err)) {
        err = plan_text(plan, GB_MQTT_P_CONTENT_TYPE, &plan->typed.content_type, GB_H_CONTENT_TYPE);
    }
    if (!gb_failed(err)) {
        err = plan_text(plan, GB_MQTT_P_RESPONSE_TOPIC, &plan->typed.response_topic,
                        GB_H_RESPONSE_TOPIC);
    }
    if (gb_failed(err)) return err;
    bool fits = gb_mqtt_properties_size(&plan->typed, &plan->properties_size);
    GB_ASSERT(fits); /* every text was checked */
    return plan_user(plan);
}

/* --- writing --- */

static uint8_t *put_pair(uint8_t *at, struct gb_bytes name, struct gb_bytes value)
{
    *at++ = GB_MQTT_P_USER_PROPERTY;
    return gb_mqtt_put_binary(gb_mqtt_put_binary(at, name), value);
}

static uint8_t *put_properties(uint8_t *at, const struct plan *plan)
{
    const struct gb_envelope *e = plan->envelope;
    at = gb_mqtt_put_varint(at, plan->properties_size);
    at = gb_mqtt_put_properties(at, &plan->typed);
    at = put_pair(at, gb_bytes_c(GB_H_MESSAGE_ID), e->id);
    if (e->subject.size > 0) at = put_pair(at, gb_bytes_c(GB_H_SUBJECT), e->subject);
    for (size_t i = 0; i < e->header_count; i++) {
        const struct gb_header *h = &e->headers[i];
        if (is_user_property(plan, h)) at = put_pair(at, h->name, h->value.text);
    }
    return at;
}

static struct gb_err check_size(const struct gb_mqtt_egress *e, size_t remaining)
{
    size_t limit = GB_MQTT_REMAINING_MAX;
    size_t size = 1 + gb_mqtt_varint_size(remaining) + remaining;
    if (e->maximum_packet_size > 0 && e->maximum_packet_size < limit)
        limit = e->maximum_packet_size;
    if (size <= limit) return gb_ok();
    return gb_err(GB_PAYLOAD_TOO_LARGE,
                  "the publish would have %zu bytes, the broker takes at most %zu", size, limit);
}

static struct gb_err write_packet(const struct gb_mqtt_egress *e, const struct plan *plan,
                                  uint16_t packet_id, struct gb_str *out)
{
    size_t remaining = 2 + plan->topic.size + plan->envelope->payload.size;
    if (packet_id != 0) remaining += 2;
    if (e->v5) remaining += gb_mqtt_varint_size(plan->properties_size) + plan->properties_size;
    struct gb_err err = check_size(e, remaining);
    if (gb_failed(err)) return err;
    unsigned first = GB_MQTT_PUBLISH << 4 | (unsigned)e->qos << 1 | (e->retain ? 1u : 0u);
    uint8_t *at = gb_mqtt_packet_begin(out, (uint8_t)first, remaining);
    if (at == NULL) return gb_str_check(out, "MQTT publish");
    at = gb_mqtt_put_binary(at, plan->topic);
    if (packet_id != 0) at = gb_mqtt_put_u16(at, packet_id);
    if (e->v5) at = put_properties(at, plan);
    gb_mqtt_packet_end(out, remaining, gb_mqtt_put_raw(at, plan->envelope->payload));
    return gb_ok();
}

struct gb_err gb_mqtt_egress_encode(const struct gb_mqtt_egress *e,
                                    const struct gb_envelope *envelope, struct gb_bytes address,
                                    uint16_t packet_id, struct gb_str *out, uint32_t *dropped)
{
    GB_ASSERT(e->qos <= 2 && (e->qos > 0) == (packet_id != 0));
    struct plan plan = {.envelope = envelope, .topic = address};
    if (address.size == 0) plan.topic = gb_bytes_c(e->default_topic);
    struct gb_err err = check_peer(e);
    if (!gb_failed(err)) err = gb_mqtt_publish_topic_check(plan.topic);
    /* Without properties nothing but the topic and the size is checked (spec 03 §13). */
    if (!gb_failed(err) && e->v5) err = plan_properties(&plan, e->now_ms);
    if (!gb_failed(err)) err = write_packet(e, &plan, packet_id, out);
    if (!gb_failed(err)) *dropped = plan.dropped;
    gb_str_deinit(&plan.correlation);
    return err;
}
