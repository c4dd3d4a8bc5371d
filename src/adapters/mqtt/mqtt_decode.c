#include "adapters/mqtt/mqtt_packet.h"

#include "adapters/mqtt/mqtt_reason.h"
#include "adapters/mqtt/mqtt_wire.h"

enum sender { SENT_BY_SERVER, SENT_BY_CLIENT };

/* --- data types --- */

static bool has_nul(struct gb_bytes text)
{
    return text.size > 0 && memchr(text.data, '\0', text.size) != NULL;
}

static bool has_wildcard(struct gb_bytes topic)
{
    return topic.size > 0 && (memchr(topic.data, '+', topic.size) != NULL ||
                              memchr(topic.data, '#', topic.size) != NULL);
}

struct gb_bytes gb_mqtt_read_text(struct gb_mqtt_reader *r)
{
    struct gb_bytes text = gb_mqtt_read_binary(r);
    if (!gb_utf8_valid(text) || has_nul(text)) {
        gb_mqtt_fail(r, "a text is not UTF-8 or holds U+0000");
    }
    return text;
}

struct gb_bytes gb_mqtt_read_topic(struct gb_mqtt_reader *r)
{
    struct gb_bytes topic = gb_mqtt_read_text(r);
    if (topic.size == 0) gb_mqtt_fail(r, "the topic is empty");
    if (has_wildcard(topic)) gb_mqtt_fail(r, "the topic holds a wildcard");
    return topic;
}

uint16_t gb_mqtt_read_packet_id(struct gb_mqtt_reader *r)
{
    uint16_t id = gb_mqtt_read_u16(r);
    if (id == 0) gb_mqtt_fail(r, "the packet identifier is 0");
    return id;
}

uint32_t gb_mqtt_read_varint(struct gb_mqtt_reader *r)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint8_t byte = gb_mqtt_read_u8(r);
        value |= (uint32_t)(byte & 0x7F) << (7 * i);
        if ((byte & 0x80) != 0) continue;
        if (byte == 0 && i > 0) gb_mqtt_fail(r, "a length is not in its shortest form");
        return value;
    }
    gb_mqtt_fail(r, "a length has more than four bytes");
    return 0;
}

/* --- reason codes of each packet (MQTT 5.0 §2.4) --- */

static const uint8_t connack_reasons[] = {0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86,
                                          0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97,
                                          0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F};
static const uint8_t publish_reasons[] = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99};
static const uint8_t release_reasons[] = {0x00, 0x92};
static const uint8_t suback_reasons[] = {0x00, 0x01, 0x02, 0x80, 0x83, 0x87,
                                         0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2};
static const uint8_t suback_reasons_v311[] = {0x00, 0x01, 0x02, 0x80};
static const uint8_t unsuback_reasons[] = {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91};
static const uint8_t server_disconnect_reasons[] = {
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94,
    0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2};
static const uint8_t client_disconnect_reasons[] = {0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90,
                                                    0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99};
static const uint8_t auth_reasons[] = {0x00, 0x18, 0x19};

#define GB_SET(array) gb_bytes(array, sizeof(array))

static void check_reason(struct gb_mqtt_reader *r, uint8_t reason, struct gb_bytes legal)
{
    if (memchr(legal.data, reason, legal.size) == NULL) {
        gb_mqtt_fail(r, "its reason code is not one of this packet");
    }
}

/* --- packets --- */

static void read_connack(struct gb_mqtt_reader *r, enum gb_mqtt_version version,
                         struct gb_mqtt_connack *out)
{
    *out = (struct gb_mqtt_connack){
        .receive_maximum = 65535,
        .maximum_qos = 2,
        .retain_available = true,
        .wildcard_available = true,
        .shared_available = true,
    };
    uint8_t flags = gb_mqtt_read_u8(r);
    if (flags > 1) gb_mqtt_fail(r, "a reserved flag is set");
    out->session_present = flags == 1;
    out->reason = gb_mqtt_read_u8(r);
    struct gb_mqtt_properties *p = &out->properties;
    if (version == GB_MQTT_V5) {
        check_reason(r, out->reason, GB_SET(connack_reasons));
        gb_mqtt_read_properties(r, GB_MQTT_CONNACK, p);
    } else if (!gb_mqtt_reason_from_v311(out->reason, &out->reason)) {
        gb_mqtt_fail(r, "its return code is not one of MQTT 3.1.1");
    }
    if (out->session_present && out->reason != 0) {
        gb_mqtt_fail(r, "it refuses and says that a session is present");
    }
    if (gb_mqtt_has(p, GB_MQTT_P_RECEIVE_MAXIMUM)) out->receive_maximum = p->receive_maximum;
    if (gb_mqtt_has(p, GB_MQTT_P_MAXIMUM_QOS)) out->maximum_qos = p->maximum_qos;
    if (gb_mqtt_has(p, GB_MQTT_P_RETAIN_AVAILABLE)) out->retain_available = p->retain_available;
    if (gb_mqtt_has(p, GB_MQTT_P_WILDCARD_AVAILABLE)) {
        out->wildcard_available = p->wildcard_available;
    }
    if (gb_mqtt_has(p, GB_MQTT_P_SHARED_AVAILABLE)) out->shared_available = p->shared_available;
    out->maximum_packet_size = p->maximum_packet_size;
    out->has_server_keep_alive = gb_mqtt_has(p, GB_MQTT_P_SERVER_KEEP_ALIVE);
    out->server_keep_alive = p->server_keep_alive;
}

void gb_mqtt_read_publish_head(struct gb_mqtt_reader *r, uint8_t flags, struct gb_mqtt_publish *out)
{
    out->dup = (flags & 0x08) != 0;
    out->qos = flags >> 1 & 3;
    out->retain = (flags & 0x01) != 0;
    out->topic = gb_mqtt_read_topic(r);
    if (out->qos > 0) out->packet_id = gb_mqtt_read_packet_id(r);
}

static void read_publish(struct gb_mqtt_reader *r, uint8_t flags, enum gb_mqtt_version version,
                         enum sender sender, struct gb_mqtt_publish *out)
{
    *out = (struct gb_mqtt_publish){0};
    gb_mqtt_read_publish_head(r, flags, out);
    if (version == GB_MQTT_V5) gb_mqtt_read_properties(r, GB_MQTT_PUBLISH, &out->properties);
    if (sender == SENT_BY_CLIENT && gb_mqtt_has(&out->properties, GB_MQTT_P_SUBSCRIPTION_ID)) {
        gb_mqtt_fail(r, "a client may not send a subscription identifier");
    }
    out->payload = gb_mqtt_read_bytes(r, gb_mqtt_left(r));
}

static void read_ack(struct gb_mqtt_reader *r, enum gb_mqtt_packet_type type,
                     enum gb_mqtt_version version, struct gb_mqtt_ack *out)
{
    *out = (struct gb_mqtt_ack){.packet_id = gb_mqtt_read_packet_id(r)};
    if (version != GB_MQTT_V5 || gb_mqtt_left(r) == 0) return;
    out->reason = gb_mqtt_read_u8(r);
    bool publish = type == GB_MQTT_PUBACK || type == GB_MQTT_PUBREC;
    check_reason(r, out->reason, publish ? GB_SET(publish_reasons) : GB_SET(release_reasons));
    if (gb_mqtt_left(r) > 0) gb_mqtt_read_properties(r, type, &out->properties);
}

static void read_suback(struct gb_mqtt_reader *r, enum gb_mqtt_packet_type type,
                        enum gb_mqtt_version version, struct gb_mqtt_suback *out)
{
    *out = (struct gb_mqtt_suback){.packet_id = gb_mqtt_read_packet_id(r)};
    if (version == GB_MQTT_V311 && type == GB_MQTT_UNSUBACK) return;
    if (version == GB_MQTT_V5) gb_mqtt_read_properties(r, type, &out->properties);
    struct gb_bytes legal = type == GB_MQTT_UNSUBACK  ? GB_SET(unsuback_reasons)
                            : version == GB_MQTT_V311 ? GB_SET(suback_reasons_v311)
                                                      : GB_SET(suback_reasons);
    if (gb_mqtt_left(r) == 0) gb_mqtt_fail(r, "it answers no filter");
    out->codes = gb_mqtt_read_bytes(r, gb_mqtt_left(r));
    for (size_t i = 0; i < out->codes.size; i++) check_reason(r, out->codes.data[i], legal);
}

static void read_disconnect(struct gb_mqtt_reader *r, enum gb_mqtt_packet_type type,
                            enum gb_mqtt_version version, enum sender sender,
                            struct gb_mqtt_disconnect *out)
{
    *out = (struct gb_mqtt_disconnect){0};
    if (version == GB_MQTT_V311 || gb_mqtt_left(r) == 0) return;
    out->reason = gb_mqtt_read_u8(r);
    struct gb_bytes legal = type == GB_MQTT_AUTH       ? GB_SET(auth_reasons)
                            : sender == SENT_BY_SERVER ? GB_SET(server_disconnect_reasons)
                                                       : GB_SET(client_disconnect_reasons);
    check_reason(r, out->reason, legal);
    if (gb_mqtt_left(r) > 0) gb_mqtt_read_properties(r, type, &out->properties);
    if (sender == SENT_BY_SERVER && gb_mqtt_has(&out->properties, GB_MQTT_P_SESSION_EXPIRY)) {
        gb_mqtt_fail(r, "a server may not change the session expiry");
    }
}

/* --- dispatch --- */

static const char *const type_names[] = {"reserved",  "CONNECT",  "CONNACK",     "PUBLISH",
                                         "PUBACK",    "PUBREC",   "PUBREL",      "PUBCOMP",
                                         "SUBSCRIBE", "SUBACK",   "UNSUBSCRIBE", "UNSUBACK",
                                         "PINGREQ",   "PINGRESP", "DISCONNECT",  "AUTH"};

#define GB_TYPE(type) (1u << (type))
enum {
    EITHER_SENDS = GB_TYPE(GB_MQTT_PUBLISH) | GB_TYPE(GB_MQTT_PUBACK) | GB_TYPE(GB_MQTT_PUBREC) |
                   GB_TYPE(GB_MQTT_PUBREL) | GB_TYPE(GB_MQTT_PUBCOMP),
    SERVER_SENDS = EITHER_SENDS | GB_TYPE(GB_MQTT_CONNACK) | GB_TYPE(GB_MQTT_SUBACK) |
                   GB_TYPE(GB_MQTT_UNSUBACK) | GB_TYPE(GB_MQTT_PINGRESP),
    CLIENT_SENDS = EITHER_SENDS | GB_TYPE(GB_MQTT_CONNECT) | GB_TYPE(GB_MQTT_SUBSCRIBE) |
                   GB_TYPE(GB_MQTT_UNSUBSCRIBE) | GB_TYPE(GB_MQTT_PINGREQ) |
                   GB_TYPE(GB_MQTT_DISCONNECT),
};

static unsigned types_sent_by(enum sender sender, enum gb_mqtt_version version)
{
    unsigned types = sender == SENT_BY_SERVER ? SERVER_SENDS : CLIENT_SENDS;
    if (version == GB_MQTT_V5) types |= GB_TYPE(GB_MQTT_DISCONNECT) | GB_TYPE(GB_MQTT_AUTH);
    return types;
}

static void read_body(struct gb_mqtt_reader *r, const struct gb_mqtt_frame *frame,
                      enum gb_mqtt_version version, enum sender sender, struct gb_mqtt_packet *out)
{
    out->type = frame->type;
    switch (frame->type) {
    case GB_MQTT_CONNECT:
        gb_mqtt_read_connect(r, &out->connect);
        return;
    case GB_MQTT_CONNACK:
        read_connack(r, version, &out->connack);
        return;
    case GB_MQTT_PUBLISH:
        read_publish(r, frame->flags, version, sender, &out->publish);
        return;
    case GB_MQTT_PUBACK:
    case GB_MQTT_PUBREC:
    case GB_MQTT_PUBREL:
    case GB_MQTT_PUBCOMP:
        read_ack(r, frame->type, version, &out->ack);
        return;
    case GB_MQTT_SUBSCRIBE:
    case GB_MQTT_UNSUBSCRIBE:
        gb_mqtt_read_subscribe(r, version, frame->type == GB_MQTT_UNSUBSCRIBE, &out->subscribe);
        return;
    case GB_MQTT_SUBACK:
    case GB_MQTT_UNSUBACK:
        read_suback(r, frame->type, version, &out->suback);
        return;
    case GB_MQTT_DISCONNECT:
    case GB_MQTT_AUTH:
        read_disconnect(r, frame->type, version, sender, &out->disconnect);
        return;
    case GB_MQTT_PINGREQ:
    case GB_MQTT_PINGRESP:
        return; /* no body */
    }
}

static struct gb_err decode(const struct gb_mqtt_frame *frame, enum gb_mqtt_version version,
                            enum sender sender, struct gb_mqtt_packet *out)
{
    struct gb_mqtt_reader r = gb_mqtt_reader(frame->body);
    if ((types_sent_by(sender, version) & GB_TYPE(frame->type)) == 0) {
        gb_mqtt_fail(&r, sender == SENT_BY_SERVER ? "a server may not send it"
                                                  : "a client may not send it");
    } else {
        read_body(&r, frame, version, sender, out);
    }
    if (gb_mqtt_left(&r) > 0) gb_mqtt_fail(&r, "bytes follow its last field");
    if (!r.failed) return gb_ok();
    return gb_err(GB_PROTOCOL_ERROR, "malformed MQTT %s of %zu bytes: %s",
                  type_names[frame->type & 15], frame->size, r.why);
}

struct gb_err gb_mqtt_decode(const struct gb_mqtt_frame *frame, enum gb_mqtt_version version,
                             struct gb_mqtt_packet *out)
{
    return decode(frame, version, SENT_BY_SERVER, out);
}

struct gb_err gb_mqtt_decode_client(const struct gb_mqtt_frame *frame, enum gb_mqtt_version version,
                                    struct gb_mqtt_packet *out)
{
    return decode(frame, version, SENT_BY_CLIENT, out);
}
