#include "adapters/mqtt/mqtt_ingress.h"

#include "base/assert.h"
#include "base/digest.h"
#include "domain/mqtt_topic.h"

#define GB_H_MESSAGE_ID "mqtt.message-id"
#define GB_BINARY_ID_PREFIX "mqtt-bin:"

enum {
    /* "mqtt-bin:" and base64url of 256 bytes, rounded up; the largest of the derived ids. */
    DERIVED_ID_MAX = 384,
    /* Names and small values of the headers that the adapter adds itself, and the pipeline after it
     * (spec 02 §1.3): correlation id, route id, source id. */
    OWN_HEADERS_BYTES = 256,
    /* How gb_envelope_new lays out headers: this many, then twice as many, and so on. */
    HEADERS_INLINE = 12,
    HEADERS_OWN = 8, /* topic, retained, qos, a minted id and its mark; three of the pipeline */
};

enum gb_mqtt_poison gb_mqtt_ingress_classify(const struct gb_mqtt_ingress *in,
                                             const struct gb_mqtt_publish *p, bool *truncated)
{
    if (truncated != NULL) {
        *truncated = p->properties.user_count > GB_MQTT_USER_PROPERTIES_SEEN;
    }
    if (p->payload.size > in->max_payload_bytes) return GB_MQTT_POISON_PAYLOAD;
    if (p->properties.user_count > GB_MQTT_USER_PROPERTIES_MAX) {
        return GB_MQTT_POISON_USER_PROPERTIES;
    }
    if (p->topic.size + p->properties.raw.size > GB_MQTT_INGRESS_METADATA_MAX) {
        return GB_MQTT_POISON_METADATA;
    }
    return GB_MQTT_POISON_NONE;
}

const char *gb_mqtt_poison_name(enum gb_mqtt_poison poison)
{
    switch (poison) {
    case GB_MQTT_POISON_NONE:
        return "none";
    case GB_MQTT_POISON_PAYLOAD:
        return "payload";
    case GB_MQTT_POISON_USER_PROPERTIES:
        return "user_properties";
    case GB_MQTT_POISON_METADATA:
        return "metadata";
    }
    return "none";
}

/* --- building --- */

struct builder {
    const struct gb_mqtt_ingress *in;
    const struct gb_mqtt_publish *p;
    struct gb_envelope *envelope;
    unsigned derived;
    uint32_t dropped;
    struct gb_bytes message_id;  /* candidate 1 */
    struct gb_bytes correlation; /* candidate 2; a view into the input or into `derived_id` */
    struct gb_bytes subject;
    char derived_id[DERIVED_ID_MAX];
    struct gb_err err; /* sticky */
};

static void put(struct builder *b, struct gb_bytes name, struct gb_value value)
{
    if (!gb_failed(b->err)) b->err = gb_envelope_put(b->envelope, name, value);
}

static void put_text(struct builder *b, const char *name, struct gb_bytes text)
{
    put(b, gb_bytes_c(name), (struct gb_value){.kind = GB_VALUE_TEXT, .text = text});
}

/* For names and texts that live for ever or in the envelope. */
static void put_view(struct builder *b, const char *name, struct gb_value value)
{
    if (!gb_failed(b->err)) b->err = gb_envelope_put_view(b->envelope, gb_bytes_c(name), value);
}

static bool is_safe(struct gb_bytes text)
{
    return text.size <= GB_MQTT_INGRESS_TEXT_MAX && gb_utf8_safe(text);
}

/* Names that only the bridge itself may set; a publisher's are dropped and not counted (spec 03
 * §6.1). */
static bool is_ours(struct gb_bytes name)
{
    static const char *const ours[] = {"mqtt.topic", "mqtt.retained", "mqtt.qos",
                                       "mqtt.generated-id"};
    if (name.size == 0) return false;
    if (name.data[0] == 'm') {
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
            if (gb_bytes_equal_c(name, ours[i])) return true;
        }
        return false;
    }
    return gb_reserved_kind(name) == GB_RESERVED_INTERNAL;
}

static void take_user(struct builder *b, const struct gb_mqtt_user_property *user)
{
    if (is_ours(user->name)) return;
    if (user->name.size == 0 || !is_safe(user->name) || !is_safe(user->value)) {
        b->dropped++;
    } else if (gb_bytes_equal_c(user->name, "gobridge.subject")) {
        b->subject = user->value;
    } else {
        if (gb_bytes_equal_c(user->name, GB_H_MESSAGE_ID)) b->message_id = user->value;
        put(b, user->name, (struct gb_value){.kind = GB_VALUE_TEXT, .text = user->value});
    }
}

/* A typed text property; true when it became the header. */
static bool take_text(struct builder *b, enum gb_mqtt_property property, struct gb_bytes text,
                      const char *header)
{
    if (!gb_mqtt_has(&b->p->properties, property) || text.size == 0) return false;
    if (!is_safe(text)) {
        b->dropped++;
        return false;
    }
    put_text(b, header, text);
    return true;
}

static void take_binary_correlation(struct builder *b, struct gb_bytes data)
{
    struct gb_str text = {0};
    gb_str_append_c(&text, GB_BINARY_ID_PREFIX);
    gb_base64url_append(&text, data);
    struct gb_err err = gb_str_check(&text, "MQTT correlation id");
    if (!gb_failed(err)) {
        const size_t prefix = sizeof GB_BINARY_ID_PREFIX - 1;
        GB_ASSERT(text.size <= sizeof b->derived_id);
        memcpy(b->derived_id, text.data, text.size);
        b->correlation = gb_bytes(b->derived_id, text.size);
        put_text(b, GB_H_CORRELATION_DATA, gb_bytes(b->derived_id + prefix, text.size - prefix));
        b->derived |= GB_DERIVED_CORRELATION_DATA;
    } else if (!gb_failed(b->err)) {
        b->err = err;
    }
    gb_str_deinit(&text);
}

static void take_correlation(struct builder *b)
{
    struct gb_bytes data = b->p->properties.correlation_data;
    if (data.size == 0) return;
    if (data.size > GB_MQTT_INGRESS_TEXT_MAX) {
        b->dropped++;
    } else if (gb_utf8_safe(data)) {
        put_text(b, GB_H_CORRELATION_ID, data);
        b->derived |= GB_DERIVED_CORRELATION_ID;
        b->correlation = data;
    } else {
        take_binary_correlation(b, data);
    }
}

/* Typed properties come after the user properties, so that they win over headers of their name. */
static void take_properties(struct builder *b, int64_t now_ms)
{
    const struct gb_mqtt_properties *p = &b->p->properties;
    struct gb_mqtt_user_iterator it;
    struct gb_mqtt_user_property user;
    gb_mqtt_user_begin(&it, p);
    while (gb_mqtt_user_next(&it, &user)) take_user(b, &user);
    if (p->has == 0) return;
    take_correlation(b);
    if (take_text(b, GB_MQTT_P_CONTENT_TYPE, p->content_type, GB_H_CONTENT_TYPE)) {
        b->derived |= GB_DERIVED_CONTENT_TYPE;
    }
    (void)take_text(b, GB_MQTT_P_RESPONSE_TOPIC, p->response_topic, "mqtt.response-topic");
    if (gb_mqtt_has(p, GB_MQTT_P_MESSAGE_EXPIRY)) {
        b->envelope->expires_at_ms = now_ms + (int64_t)p->message_expiry * 1000;
    }
}

static void set_id(struct builder *b, struct gb_bytes id)
{
    if (!gb_failed(b->err)) b->err = gb_envelope_set_id(b->envelope, id);
}

/* Spec 03 §6.1 and §13: what the publisher said, else what the content says, else a fresh one. */
static void choose_id(struct builder *b, struct gb_reactor *r)
{
    if (b->message_id.size > 0) {
        set_id(b, b->message_id);
    } else if (b->correlation.size > 0) {
        set_id(b, b->correlation);
    } else if (b->in->version == GB_MQTT_V311 && b->in->content_hash) {
        char id[GB_MQTT_CONTENT_ID_SIZE];
        gb_mqtt_content_id(b->in->client_id, b->in->urls, b->p->topic, b->p->payload, id);
        set_id(b, gb_bytes_c(id));
    } else {
        char id[GB_ID_UUID_SIZE];
        gb_id_uuid(r, id);
        set_id(b, gb_bytes_c(id));
        put_view(b, GB_H_MESSAGE_ID,
                 (struct gb_value){.kind = GB_VALUE_TEXT, .text = b->envelope->id});
        put_view(b, GB_H_GENERATED_ID,
                 (struct gb_value){.kind = GB_VALUE_TEXT, .text = gb_bytes_c("true")});
        b->derived |= GB_DERIVED_GENERATED_ID;
    }
}

static void take_publish(struct builder *b)
{
    put_text(b, "mqtt.topic", b->p->topic);
    put_view(b, "mqtt.retained", (struct gb_value){.kind = GB_VALUE_BOOL, .number = b->p->retain});
    put_view(b, "mqtt.qos", (struct gb_value){.kind = GB_VALUE_INT, .number = b->p->qos});
}

/* An upper bound of the bytes that will be stored, so that the envelope is one allocation.
 * Properties on the wire are never smaller than what they become, but for the correlation (base64,
 * and the id). */
static size_t size_hint(const struct gb_mqtt_publish *p)
{
    size_t hint = p->payload.size + p->topic.size + p->properties.raw.size + OWN_HEADERS_BYTES;
    if (p->properties.raw.size > 0) hint += DERIVED_ID_MAX;
    size_t headers =
        HEADERS_OWN + p->properties.user_count + (size_t)__builtin_popcountll(p->properties.has);
    for (size_t capacity = HEADERS_INLINE; capacity < headers;) {
        capacity *= 2;
        hint += capacity * sizeof(struct gb_header) + 2 * sizeof(void *);
    }
    return hint;
}

struct gb_err gb_mqtt_ingress_build(const struct gb_mqtt_ingress *in,
                                    const struct gb_mqtt_publish *p, struct gb_reactor *r,
                                    struct gb_mqtt_ingress_result *out)
{
    struct builder b = {.in = in, .p = p};
    b.err = gb_envelope_new(size_hint(p), &b.envelope);
    if (gb_failed(b.err)) return b.err;
    b.envelope->created_at_ms = gb_reactor_wall_ms(r);
    take_publish(&b);
    if (in->version == GB_MQTT_V5) take_properties(&b, b.envelope->created_at_ms);
    choose_id(&b, r);
    if (!gb_failed(b.err) && b.subject.size > 0) {
        b.err = gb_envelope_set_subject(b.envelope, b.subject);
    }
    if (!gb_failed(b.err)) b.err = gb_envelope_set_payload(b.envelope, p->payload);
    if (gb_failed(b.err)) {
        gb_envelope_unref(b.envelope);
        return b.err;
    }
    *out = (struct gb_mqtt_ingress_result){
        .envelope = b.envelope, .derived = b.derived, .header_dropped = b.dropped};
    return gb_ok();
}
