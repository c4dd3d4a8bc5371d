#include "adapters/mqtt/mqtt_packet.h"

#include "adapters/mqtt/mqtt_reason.h"
#include "adapters/mqtt/mqtt_wire.h"
#include "base/assert.h"

enum { FLAG_ONE = 0x02 }; /* of PUBREL, SUBSCRIBE, UNSUBSCRIBE */

static const struct gb_mqtt_properties no_properties;

uint8_t *gb_mqtt_packet_begin(struct gb_str *out, uint8_t first, size_t remaining)
{
    if (remaining > GB_MQTT_REMAINING_MAX) {
        out->failed = true;
        return NULL;
    }
    uint8_t *at = (uint8_t *)gb_str_reserve(out, 1 + gb_mqtt_varint_size(remaining) + remaining);
    if (at == NULL) return NULL;
    *at++ = first;
    return gb_mqtt_put_varint(at, remaining);
}

void gb_mqtt_packet_end(struct gb_str *out, size_t remaining, const uint8_t *end)
{
    size_t size = 1 + gb_mqtt_varint_size(remaining) + remaining;
    GB_ASSERT((size_t)(end - (const uint8_t *)out->data) == out->size + size);
    out->size += size;
}

/* Sizes of length-prefixed fields are added here, so that one check finds a field that is too
 * long. */
struct sizing {
    size_t sum;
    bool too_long;
};

static void add_binary(struct sizing *s, struct gb_bytes bytes)
{
    if (bytes.size > GB_MQTT_TEXT_MAX) s->too_long = true;
    s->sum += 2 + bytes.size;
}

/* Properties with their length; answers the size without it. */
static size_t add_properties(struct sizing *s, const struct gb_mqtt_properties *p)
{
    size_t size = 0;
    if (!gb_mqtt_properties_size(p, &size)) s->too_long = true;
    s->sum += gb_mqtt_varint_size(size) + size;
    return size;
}

static uint8_t *put_sized_properties(uint8_t *at, const struct gb_mqtt_properties *p, size_t size)
{
    return gb_mqtt_put_properties(gb_mqtt_put_varint(at, size), p);
}

static uint8_t *begin(struct gb_str *out, unsigned first, const struct sizing *s)
{
    if (s->too_long) {
        out->failed = true;
        return NULL;
    }
    return gb_mqtt_packet_begin(out, (uint8_t)first, s->sum);
}

static unsigned first_byte(enum gb_mqtt_packet_type type)
{
    return (unsigned)type << 4;
}

void gb_mqtt_encode_publish(struct gb_str *out, enum gb_mqtt_version version,
                            const struct gb_mqtt_publish *p)
{
    GB_ASSERT((p->qos > 0) == (p->packet_id != 0) && p->qos <= 2 && (p->qos > 0 || !p->dup));
    struct sizing s = {.sum = p->payload.size};
    size_t properties_size = 0;
    add_binary(&s, p->topic);
    if (p->qos > 0) s.sum += 2;
    if (version == GB_MQTT_V5) properties_size = add_properties(&s, &p->properties);
    unsigned flags = (p->dup ? 8u : 0u) | (unsigned)p->qos << 1 | (p->retain ? 1u : 0u);
    uint8_t *at = begin(out, first_byte(GB_MQTT_PUBLISH) | flags, &s);
    if (at == NULL) return;
    at = gb_mqtt_put_binary(at, p->topic);
    if (p->qos > 0) at = gb_mqtt_put_u16(at, p->packet_id);
    if (version == GB_MQTT_V5) at = put_sized_properties(at, &p->properties, properties_size);
    gb_mqtt_packet_end(out, s.sum, gb_mqtt_put_raw(at, p->payload));
}

void gb_mqtt_encode_ack(struct gb_str *out, enum gb_mqtt_version version,
                        enum gb_mqtt_packet_type type, uint16_t packet_id, uint8_t reason)
{
    GB_ASSERT(type >= GB_MQTT_PUBACK && type <= GB_MQTT_PUBCOMP && packet_id != 0);
    bool with_reason = version == GB_MQTT_V5 && reason != GB_MQTT_SUCCESS;
    const uint8_t bytes[5] = {
        (uint8_t)(first_byte(type) | (type == GB_MQTT_PUBREL ? FLAG_ONE : 0)),
        with_reason ? 3 : 2,
        (uint8_t)(packet_id >> 8),
        (uint8_t)packet_id,
        reason,
    };
    gb_str_append(out, gb_bytes(bytes, with_reason ? 5 : 4));
}

void gb_mqtt_encode_disconnect(struct gb_str *out, enum gb_mqtt_version version, uint8_t reason)
{
    bool with_reason = version == GB_MQTT_V5 && reason != GB_MQTT_SUCCESS;
    const uint8_t bytes[3] = {GB_MQTT_DISCONNECT << 4, with_reason ? 1 : 0, reason};
    gb_str_append(out, gb_bytes(bytes, with_reason ? 3 : 2));
}

/* --- client --- */

static uint8_t connect_flags(const struct gb_mqtt_connect *p)
{
    unsigned flags = p->clean_start ? 0x02u : 0u;
    if (p->has_will) {
        flags |= 0x04u | (unsigned)p->will_qos << 3 | (p->will_retain ? 0x20u : 0u);
    }
    if (p->has_password) flags |= 0x40u;
    if (p->has_username) flags |= 0x80u;
    return (uint8_t)flags;
}

static struct gb_mqtt_properties connect_properties(const struct gb_mqtt_connect *p)
{
    struct gb_mqtt_properties properties = p->properties;
    if (p->session_expiry_interval != 0) {
        properties.has |= GB_MQTT_HAS(GB_MQTT_P_SESSION_EXPIRY);
        properties.session_expiry = p->session_expiry_interval;
    }
    if (p->receive_maximum != 0) {
        properties.has |= GB_MQTT_HAS(GB_MQTT_P_RECEIVE_MAXIMUM);
        properties.receive_maximum = p->receive_maximum;
    }
    if (p->maximum_packet_size != 0) {
        properties.has |= GB_MQTT_HAS(GB_MQTT_P_MAXIMUM_PACKET_SIZE);
        properties.maximum_packet_size = p->maximum_packet_size;
    }
    return properties;
}

void gb_mqtt_encode_connect(struct gb_str *out, const struct gb_mqtt_connect *p)
{
    GB_ASSERT(p->version == GB_MQTT_V5 || p->version == GB_MQTT_V311);
    GB_ASSERT(p->will_qos <= 2 &&
              (p->version == GB_MQTT_V5 || p->has_username || !p->has_password));
    const bool v5 = p->version == GB_MQTT_V5;
    const struct gb_bytes protocol = gb_bytes_c("MQTT");
    struct gb_mqtt_properties properties = connect_properties(p);
    struct sizing s = {.sum = 2 + 4 + 1 + 1 + 2};
    size_t properties_size = v5 ? add_properties(&s, &properties) : 0;
    size_t will_size = 0;
    add_binary(&s, p->client_id);
    if (p->has_will) {
        if (v5) will_size = add_properties(&s, &p->will_properties);
        add_binary(&s, p->will_topic);
        add_binary(&s, p->will_payload);
    }
    if (p->has_username) add_binary(&s, p->username);
    if (p->has_password) add_binary(&s, p->password);
    uint8_t *at = begin(out, first_byte(GB_MQTT_CONNECT), &s);
    if (at == NULL) return;
    at = gb_mqtt_put_binary(at, protocol);
    *at++ = (uint8_t)p->version;
    *at++ = connect_flags(p);
    at = gb_mqtt_put_u16(at, p->keep_alive);
    if (v5) at = put_sized_properties(at, &properties, properties_size);
    at = gb_mqtt_put_binary(at, p->client_id);
    if (p->has_will) {
        if (v5) at = put_sized_properties(at, &p->will_properties, will_size);
        at = gb_mqtt_put_binary(gb_mqtt_put_binary(at, p->will_topic), p->will_payload);
    }
    if (p->has_username) at = gb_mqtt_put_binary(at, p->username);
    if (p->has_password) at = gb_mqtt_put_binary(at, p->password);
    gb_mqtt_packet_end(out, s.sum, at);
}

/* Identifier and, on v5, empty properties: how SUBSCRIBE, SUBACK and their opposites begin. */
static size_t head_size(enum gb_mqtt_version version)
{
    return version == GB_MQTT_V5 ? 3 : 2;
}

static uint8_t *put_head(uint8_t *at, enum gb_mqtt_version version, uint16_t packet_id)
{
    at = gb_mqtt_put_u16(at, packet_id);
    if (version == GB_MQTT_V5) at = put_sized_properties(at, &no_properties, 0);
    return at;
}

static uint8_t options_of(const struct gb_mqtt_subscribe_entry *e, enum gb_mqtt_version version)
{
    GB_ASSERT(e->qos <= 2 && e->retain_handling <= 2);
    if (version != GB_MQTT_V5) return e->qos;
    return (uint8_t)(e->qos | (e->no_local ? 4 : 0) | (e->retain_as_published ? 8 : 0) |
                     e->retain_handling << 4);
}

void gb_mqtt_encode_subscribe(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                              const struct gb_mqtt_subscribe_entry *entries, size_t count)
{
    GB_ASSERT(packet_id != 0 && count > 0);
    struct sizing s = {.sum = head_size(version)};
    for (size_t i = 0; i < count; i++) {
        add_binary(&s, entries[i].filter);
        s.sum += 1;
    }
    uint8_t *at = begin(out, first_byte(GB_MQTT_SUBSCRIBE) | FLAG_ONE, &s);
    if (at == NULL) return;
    at = put_head(at, version, packet_id);
    for (size_t i = 0; i < count; i++) {
        at = gb_mqtt_put_binary(at, entries[i].filter);
        *at++ = options_of(&entries[i], version);
    }
    gb_mqtt_packet_end(out, s.sum, at);
}

void gb_mqtt_encode_unsubscribe(struct gb_str *out, enum gb_mqtt_version version,
                                uint16_t packet_id, const struct gb_bytes *filters, size_t count)
{
    GB_ASSERT(packet_id != 0 && count > 0);
    struct sizing s = {.sum = head_size(version)};
    for (size_t i = 0; i < count; i++) add_binary(&s, filters[i]);
    uint8_t *at = begin(out, first_byte(GB_MQTT_UNSUBSCRIBE) | FLAG_ONE, &s);
    if (at == NULL) return;
    at = put_head(at, version, packet_id);
    for (size_t i = 0; i < count; i++) at = gb_mqtt_put_binary(at, filters[i]);
    gb_mqtt_packet_end(out, s.sum, at);
}

static void append_empty(struct gb_str *out, enum gb_mqtt_packet_type type)
{
    const uint8_t bytes[2] = {(uint8_t)first_byte(type), 0};
    gb_str_append(out, gb_bytes(bytes, sizeof bytes));
}

void gb_mqtt_encode_pingreq(struct gb_str *out)
{
    append_empty(out, GB_MQTT_PINGREQ);
}

/* --- server --- */

void gb_mqtt_encode_pingresp(struct gb_str *out)
{
    append_empty(out, GB_MQTT_PINGRESP);
}

void gb_mqtt_encode_connack(struct gb_str *out, enum gb_mqtt_version version, bool session_present,
                            uint8_t reason, const struct gb_mqtt_properties *properties)
{
    GB_ASSERT(reason == GB_MQTT_SUCCESS || !session_present);
    const struct gb_mqtt_properties *p = properties != NULL ? properties : &no_properties;
    struct sizing s = {.sum = 2};
    size_t properties_size = version == GB_MQTT_V5 ? add_properties(&s, p) : 0;
    uint8_t *at = begin(out, first_byte(GB_MQTT_CONNACK), &s);
    if (at == NULL) return;
    *at++ = session_present ? 1 : 0;
    *at++ = version == GB_MQTT_V5 ? reason : gb_mqtt_reason_to_v311(reason);
    if (version == GB_MQTT_V5) at = put_sized_properties(at, p, properties_size);
    gb_mqtt_packet_end(out, s.sum, at);
}

static void encode_codes(struct gb_str *out, enum gb_mqtt_version version,
                         enum gb_mqtt_packet_type type, uint16_t packet_id, struct gb_bytes codes)
{
    GB_ASSERT(packet_id != 0);
    const struct sizing s = {.sum = head_size(version) + codes.size};
    uint8_t *at = begin(out, first_byte(type), &s);
    if (at == NULL) return;
    at = gb_mqtt_put_raw(put_head(at, version, packet_id), codes);
    gb_mqtt_packet_end(out, s.sum, at);
}

void gb_mqtt_encode_suback(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                           struct gb_bytes codes)
{
    GB_ASSERT(codes.size > 0);
    encode_codes(out, version, GB_MQTT_SUBACK, packet_id, codes);
}

void gb_mqtt_encode_unsuback(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                             struct gb_bytes codes)
{
    struct gb_bytes sent = version == GB_MQTT_V5 ? codes : gb_bytes(NULL, 0);
    encode_codes(out, version, GB_MQTT_UNSUBACK, packet_id, sent);
}
