#include "adapters/mqtt/mqtt_packet.h"

#include "adapters/mqtt/mqtt_wire.h"

enum { QOS_BITS = 0x06, DUP_BIT = 0x08, HEADER_SIZE_MAX = 5 };

static bool flags_are_legal(uint8_t type, uint8_t flags)
{
    switch ((enum gb_mqtt_packet_type)type) {
    case GB_MQTT_PUBLISH:
        if ((flags & QOS_BITS) == QOS_BITS) return false;
        return (flags & QOS_BITS) != 0 || (flags & DUP_BIT) == 0;
    case GB_MQTT_PUBREL:
    case GB_MQTT_SUBSCRIBE:
    case GB_MQTT_UNSUBSCRIBE:
        return flags == 2;
    case GB_MQTT_CONNECT:
    case GB_MQTT_CONNACK:
    case GB_MQTT_PUBACK:
    case GB_MQTT_PUBREC:
    case GB_MQTT_PUBCOMP:
    case GB_MQTT_SUBACK:
    case GB_MQTT_UNSUBACK:
    case GB_MQTT_PINGREQ:
    case GB_MQTT_PINGRESP:
    case GB_MQTT_DISCONNECT:
    case GB_MQTT_AUTH:
        return flags == 0;
    }
    return false; /* type 0 */
}

enum gb_mqtt_frame_result gb_mqtt_frame_next(struct gb_bytes bytes, size_t packet_bytes_max,
                                             struct gb_mqtt_frame *frame)
{
    if (bytes.size == 0) return GB_MQTT_FRAME_NEED_MORE;
    uint8_t type = bytes.data[0] >> 4;
    uint8_t flags = bytes.data[0] & 0x0F;
    if (!flags_are_legal(type, flags)) return GB_MQTT_FRAME_MALFORMED;
    size_t remaining = 0;
    size_t at = 1;
    uint8_t byte;
    do {
        if (at == HEADER_SIZE_MAX) return GB_MQTT_FRAME_MALFORMED;
        if (at == bytes.size) return GB_MQTT_FRAME_NEED_MORE;
        byte = bytes.data[at];
        remaining |= (size_t)(byte & 0x7F) << (7 * (at - 1));
        at++;
    } while ((byte & 0x80) != 0);
    if (byte == 0 && at > 2) return GB_MQTT_FRAME_MALFORMED; /* not the shortest form */
    *frame = (struct gb_mqtt_frame){
        .type = (enum gb_mqtt_packet_type)type,
        .flags = flags,
        .header_size = (uint8_t)at,
        .size = at + remaining,
    };
    if (frame->size > packet_bytes_max) return GB_MQTT_FRAME_TOO_LARGE;
    if (bytes.size < frame->size) return GB_MQTT_FRAME_NEED_MORE;
    frame->body = gb_bytes(bytes.data + at, remaining);
    return GB_MQTT_FRAME_OK;
}

enum gb_mqtt_frame_result gb_mqtt_decode_oversized(struct gb_bytes bytes,
                                                   const struct gb_mqtt_frame *frame,
                                                   struct gb_mqtt_publish *out)
{
    if (frame->type != GB_MQTT_PUBLISH) return GB_MQTT_FRAME_MALFORMED;
    size_t body_size = frame->size - frame->header_size;
    size_t arrived = bytes.size < frame->header_size ? 0 : bytes.size - frame->header_size;
    if (arrived < 2) return body_size < 2 ? GB_MQTT_FRAME_MALFORMED : GB_MQTT_FRAME_NEED_MORE;
    const uint8_t *body = bytes.data + frame->header_size;
    size_t head_size = 2 + (size_t)(body[0] << 8 | body[1]);
    if ((frame->flags & QOS_BITS) != 0) head_size += 2;
    if (head_size > body_size) return GB_MQTT_FRAME_MALFORMED;
    if (head_size > arrived) return GB_MQTT_FRAME_NEED_MORE;
    struct gb_mqtt_reader r =
        gb_mqtt_reader(gb_bytes(body, arrived < body_size ? arrived : body_size));
    struct gb_mqtt_publish publish = {0};
    gb_mqtt_read_publish_head(&r, frame->flags, &publish);
    if (r.failed) return GB_MQTT_FRAME_MALFORMED;
    publish.payload = gb_mqtt_read_bytes(&r, gb_mqtt_left(&r));
    *out = publish;
    return GB_MQTT_FRAME_OK;
}
