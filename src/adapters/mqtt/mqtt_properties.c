#include "adapters/mqtt/mqtt_properties.h"

#include "adapters/mqtt/mqtt_wire.h"

enum property_type {
    TYPE_NONE = 0,
    TYPE_FLAG, /* one byte, 0 or 1 */
    TYPE_U16,
    TYPE_U32,
    TYPE_VARINT,
    TYPE_TEXT,
    TYPE_BINARY,
    TYPE_PAIR,
};

#define GB_IN(packet) (1u << (packet))
#define GB_AT(field) offsetof(struct gb_mqtt_properties, field)

enum {
    IN_WILL = GB_IN(0),
    IN_CONNECT = GB_IN(GB_MQTT_CONNECT),
    IN_CONNACK = GB_IN(GB_MQTT_CONNACK),
    IN_PUBLISH = GB_IN(GB_MQTT_PUBLISH),
    IN_SUBSCRIBE = GB_IN(GB_MQTT_SUBSCRIBE),
    IN_DISCONNECT = GB_IN(GB_MQTT_DISCONNECT),
    IN_AUTH = GB_IN(GB_MQTT_AUTH),
    IN_MESSAGE = IN_WILL | IN_PUBLISH,
    IN_OPENING = IN_CONNECT | IN_CONNACK,
    IN_ANSWERS = IN_CONNACK | GB_IN(GB_MQTT_PUBACK) | GB_IN(GB_MQTT_PUBREC) |
                 GB_IN(GB_MQTT_PUBREL) | GB_IN(GB_MQTT_PUBCOMP) | GB_IN(GB_MQTT_SUBACK) |
                 GB_IN(GB_MQTT_UNSUBACK) | IN_DISCONNECT | IN_AUTH,
    IN_ANY = 0xFFFF,
};

/* MQTT 5.0 §2.2.2.2. TOPIC_ALIAS is in no packet: a peer that was offered none may not use one. */
static const struct property_row {
    uint8_t type;
    bool not_zero;
    uint16_t offset;
    uint16_t packets;
} rows[GB_MQTT_P_COUNT] = {
    [GB_MQTT_P_PAYLOAD_FORMAT] = {TYPE_FLAG, false, GB_AT(payload_format), IN_MESSAGE},
    [GB_MQTT_P_MESSAGE_EXPIRY] = {TYPE_U32, false, GB_AT(message_expiry), IN_MESSAGE},
    [GB_MQTT_P_CONTENT_TYPE] = {TYPE_TEXT, false, GB_AT(content_type), IN_MESSAGE},
    [GB_MQTT_P_RESPONSE_TOPIC] = {TYPE_TEXT, false, GB_AT(response_topic), IN_MESSAGE},
    [GB_MQTT_P_CORRELATION_DATA] = {TYPE_BINARY, false, GB_AT(correlation_data), IN_MESSAGE},
    [GB_MQTT_P_SUBSCRIPTION_ID] = {TYPE_VARINT, true, GB_AT(subscription_id),
                                   IN_PUBLISH | IN_SUBSCRIBE},
    [GB_MQTT_P_SESSION_EXPIRY] = {TYPE_U32, false, GB_AT(session_expiry),
                                  IN_OPENING | IN_DISCONNECT},
    [GB_MQTT_P_ASSIGNED_CLIENT_ID] = {TYPE_TEXT, false, GB_AT(assigned_client_id), IN_CONNACK},
    [GB_MQTT_P_SERVER_KEEP_ALIVE] = {TYPE_U16, false, GB_AT(server_keep_alive), IN_CONNACK},
    [GB_MQTT_P_AUTH_METHOD] = {TYPE_TEXT, false, GB_AT(auth_method), IN_OPENING | IN_AUTH},
    [GB_MQTT_P_AUTH_DATA] = {TYPE_BINARY, false, GB_AT(auth_data), IN_OPENING | IN_AUTH},
    [GB_MQTT_P_REQUEST_PROBLEM_INFO] = {TYPE_FLAG, false, GB_AT(request_problem_info), IN_CONNECT},
    [GB_MQTT_P_WILL_DELAY] = {TYPE_U32, false, GB_AT(will_delay), IN_WILL},
    [GB_MQTT_P_REQUEST_RESPONSE_INFO] = {TYPE_FLAG, false, GB_AT(request_response_info),
                                         IN_CONNECT},
    [GB_MQTT_P_RESPONSE_INFO] = {TYPE_TEXT, false, GB_AT(response_info), IN_CONNACK},
    [GB_MQTT_P_SERVER_REFERENCE] = {TYPE_TEXT, false, GB_AT(server_reference),
                                    IN_CONNACK | IN_DISCONNECT},
    [GB_MQTT_P_REASON_STRING] = {TYPE_TEXT, false, GB_AT(reason_string), IN_ANSWERS},
    [GB_MQTT_P_RECEIVE_MAXIMUM] = {TYPE_U16, true, GB_AT(receive_maximum), IN_OPENING},
    [GB_MQTT_P_TOPIC_ALIAS_MAXIMUM] = {TYPE_U16, false, GB_AT(topic_alias_maximum), IN_OPENING},
    [GB_MQTT_P_MAXIMUM_QOS] = {TYPE_FLAG, false, GB_AT(maximum_qos), IN_CONNACK},
    [GB_MQTT_P_RETAIN_AVAILABLE] = {TYPE_FLAG, false, GB_AT(retain_available), IN_CONNACK},
    [GB_MQTT_P_USER_PROPERTY] = {TYPE_PAIR, false, 0, IN_ANY},
    [GB_MQTT_P_MAXIMUM_PACKET_SIZE] = {TYPE_U32, true, GB_AT(maximum_packet_size), IN_OPENING},
    [GB_MQTT_P_WILDCARD_AVAILABLE] = {TYPE_FLAG, false, GB_AT(wildcard_available), IN_CONNACK},
    [GB_MQTT_P_SUBSCRIPTION_ID_AVAILABLE] = {TYPE_FLAG, false, GB_AT(subscription_id_available),
                                             IN_CONNACK},
    [GB_MQTT_P_SHARED_AVAILABLE] = {TYPE_FLAG, false, GB_AT(shared_available), IN_CONNACK},
};

static void *field_of(struct gb_mqtt_properties *p, const struct property_row *row)
{
    return (char *)p + row->offset;
}

static const void *const_field_of(const struct gb_mqtt_properties *p,
                                  const struct property_row *row)
{
    return (const char *)p + row->offset;
}

static void read_number(struct gb_mqtt_reader *r, const struct property_row *row, void *field)
{
    uint32_t value;
    if (row->type == TYPE_FLAG) {
        value = gb_mqtt_read_u8(r);
        if (value > 1) gb_mqtt_fail(r, "a property that is 0 or 1 has another value");
        *(uint8_t *)field = (uint8_t)value;
    } else if (row->type == TYPE_U16) {
        value = gb_mqtt_read_u16(r);
        *(uint16_t *)field = (uint16_t)value;
    } else {
        value = row->type == TYPE_U32 ? gb_mqtt_read_u32(r) : gb_mqtt_read_varint(r);
        *(uint32_t *)field = value;
    }
    if (row->not_zero && value == 0) gb_mqtt_fail(r, "a property that may not be 0 is 0");
}

/* Text of a message is judged by the ingress, which drops what is bad: the receiver must not refuse
 * a connection for what a publisher wrote (spec 03 §6.1). */
static struct gb_bytes read_property_text(struct gb_mqtt_reader *r, unsigned packet)
{
    return (GB_IN(packet) & IN_MESSAGE) != 0 ? gb_mqtt_read_binary(r) : gb_mqtt_read_text(r);
}

static void read_user(struct gb_mqtt_reader *r, unsigned packet, struct gb_mqtt_properties *out,
                      size_t offset)
{
    if (out->user_count == 0) out->user_first = (uint32_t)offset;
    out->user_count++;
    (void)read_property_text(r, packet);
    (void)read_property_text(r, packet);
}

static void read_single(struct gb_mqtt_reader *r, unsigned packet, uint8_t id,
                        struct gb_mqtt_properties *out)
{
    const struct property_row *row = &rows[id];
    if ((out->has & GB_MQTT_HAS(id)) != 0) {
        /* Only a PUBLISH repeats a property: one identifier for each matching subscription. */
        if (id == GB_MQTT_P_SUBSCRIPTION_ID && packet == GB_MQTT_PUBLISH) {
            if (gb_mqtt_read_varint(r) == 0) gb_mqtt_fail(r, "a subscription identifier is 0");
        } else {
            gb_mqtt_fail(r, "a property is there twice");
        }
        return;
    }
    out->has |= GB_MQTT_HAS(id);
    if (row->type == TYPE_TEXT) {
        *(struct gb_bytes *)field_of(out, row) = read_property_text(r, packet);
    } else if (row->type == TYPE_BINARY) {
        *(struct gb_bytes *)field_of(out, row) = gb_mqtt_read_binary(r);
    } else {
        read_number(r, row, field_of(out, row));
    }
}

void gb_mqtt_read_properties(struct gb_mqtt_reader *r, unsigned packet,
                             struct gb_mqtt_properties *out)
{
    uint32_t size = gb_mqtt_read_varint(r);
    out->raw = gb_mqtt_read_bytes(r, size);
    struct gb_mqtt_reader in = gb_mqtt_reader(out->raw);
    while (gb_mqtt_left(&in) > 0) {
        size_t offset = (size_t)(in.pos - out->raw.data);
        uint8_t id = *in.pos++; /* identifiers are varints, all known ones below 0x80 */
        if (id >= GB_MQTT_P_COUNT || (rows[id].packets & GB_IN(packet)) == 0) {
            gb_mqtt_fail(&in, id == GB_MQTT_P_TOPIC_ALIAS
                                  ? "it uses a topic alias, and none was offered"
                                  : "a property is unknown or does not belong in it");
        } else if (rows[id].type == TYPE_PAIR) {
            read_user(&in, packet, out, offset);
        } else {
            read_single(&in, packet, id, out);
        }
    }
    if (gb_mqtt_has(out, GB_MQTT_P_AUTH_DATA) && !gb_mqtt_has(out, GB_MQTT_P_AUTH_METHOD)) {
        gb_mqtt_fail(&in, "it has authentication data without a method");
    }
    if (in.failed) gb_mqtt_fail(r, in.why);
}

/* Steps over one property of checked properties; a pair is stored in `user` and answers true. */
static bool next_property(struct gb_mqtt_reader *r, struct gb_mqtt_user_property *user)
{
    uint8_t id = gb_mqtt_read_u8(r);
    switch (id < GB_MQTT_P_COUNT ? (enum property_type)rows[id].type : TYPE_NONE) {
    case TYPE_PAIR:
        user->name = gb_mqtt_read_binary(r);
        user->value = gb_mqtt_read_binary(r);
        return !r->failed;
    case TYPE_FLAG:
        (void)gb_mqtt_read_u8(r);
        return false;
    case TYPE_U16:
        (void)gb_mqtt_read_u16(r);
        return false;
    case TYPE_U32:
        (void)gb_mqtt_read_u32(r);
        return false;
    case TYPE_VARINT:
        (void)gb_mqtt_read_varint(r);
        return false;
    case TYPE_TEXT:
    case TYPE_BINARY:
        (void)gb_mqtt_read_binary(r);
        return false;
    case TYPE_NONE:
        break;
    }
    gb_mqtt_fail(r, "unknown property");
    return false;
}

static bool next_user(struct gb_mqtt_reader *r, struct gb_mqtt_user_property *user)
{
    while (gb_mqtt_left(r) > 0) {
        if (next_property(r, user)) return true;
    }
    return false;
}

void gb_mqtt_user_begin(struct gb_mqtt_user_iterator *it, const struct gb_mqtt_properties *p)
{
    it->left =
        p->user_count < GB_MQTT_USER_PROPERTIES_SEEN ? p->user_count : GB_MQTT_USER_PROPERTIES_SEEN;
    it->rest = it->left == 0 ? gb_bytes(NULL, 0)
                             : gb_bytes(p->raw.data + p->user_first, p->raw.size - p->user_first);
}

bool gb_mqtt_user_next(struct gb_mqtt_user_iterator *it, struct gb_mqtt_user_property *out)
{
    if (it->left == 0) return false;
    struct gb_mqtt_reader r = gb_mqtt_reader(it->rest);
    if (!next_user(&r, out)) return false;
    it->left--;
    it->rest = gb_bytes(r.pos, gb_mqtt_left(&r));
    return true;
}

void gb_mqtt_user_append(struct gb_str *out, struct gb_bytes name, struct gb_bytes value)
{
    if (name.size > GB_MQTT_TEXT_MAX || value.size > GB_MQTT_TEXT_MAX) {
        out->failed = true;
        return;
    }
    size_t size = 5 + name.size + value.size;
    uint8_t *at = (uint8_t *)gb_str_reserve(out, size);
    if (at == NULL) return;
    *at++ = GB_MQTT_P_USER_PROPERTY;
    (void)gb_mqtt_put_binary(gb_mqtt_put_binary(at, name), value);
    out->size += size;
}

/* --- encoding --- */

static size_t single_size(const struct gb_mqtt_properties *p, const struct property_row *row)
{
    switch ((enum property_type)row->type) {
    case TYPE_FLAG:
        return 2;
    case TYPE_U16:
        return 3;
    case TYPE_U32:
        return 5;
    case TYPE_VARINT:
        return 1 + gb_mqtt_varint_size(*(const uint32_t *)const_field_of(p, row));
    case TYPE_TEXT:
    case TYPE_BINARY:
        return 3 + ((const struct gb_bytes *)const_field_of(p, row))->size;
    case TYPE_NONE:
    case TYPE_PAIR:
        break;
    }
    return 0;
}

bool gb_mqtt_properties_size(const struct gb_mqtt_properties *p, size_t *size)
{
    size_t sum = 0;
    for (uint64_t left = p->has; left != 0; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctzll(left);
        GB_ASSERT(id < GB_MQTT_P_COUNT);
        size_t one = single_size(p, &rows[id]);
        if (one > 3 + GB_MQTT_TEXT_MAX) return false;
        sum += one;
    }
    struct gb_mqtt_reader r = gb_mqtt_reader(p->raw);
    struct gb_mqtt_user_property user;
    while (next_user(&r, &user)) sum += 5 + user.name.size + user.value.size;
    *size = sum;
    return true;
}

static uint8_t *put_single(uint8_t *at, const struct gb_mqtt_properties *p, unsigned id)
{
    const void *field = const_field_of(p, &rows[id]);
    if (rows[id].type == TYPE_NONE || rows[id].type == TYPE_PAIR) return at;
    *at++ = (uint8_t)id;
    switch ((enum property_type)rows[id].type) {
    case TYPE_FLAG:
        *at = *(const uint8_t *)field;
        return at + 1;
    case TYPE_U16:
        return gb_mqtt_put_u16(at, *(const uint16_t *)field);
    case TYPE_U32:
        gb_put_u32(at, *(const uint32_t *)field);
        return at + 4;
    case TYPE_VARINT:
        return gb_mqtt_put_varint(at, *(const uint32_t *)field);
    case TYPE_TEXT:
    case TYPE_BINARY:
        return gb_mqtt_put_binary(at, *(const struct gb_bytes *)field);
    case TYPE_NONE:
    case TYPE_PAIR:
        break;
    }
    return at;
}

uint8_t *gb_mqtt_put_properties(uint8_t *at, const struct gb_mqtt_properties *p)
{
    for (uint64_t left = p->has; left != 0; left &= left - 1) {
        at = put_single(at, p, (unsigned)__builtin_ctzll(left));
    }
    struct gb_mqtt_reader r = gb_mqtt_reader(p->raw);
    struct gb_mqtt_user_property user;
    while (next_user(&r, &user)) {
        *at++ = GB_MQTT_P_USER_PROPERTY;
        at = gb_mqtt_put_binary(gb_mqtt_put_binary(at, user.name), user.value);
    }
    return at;
}
