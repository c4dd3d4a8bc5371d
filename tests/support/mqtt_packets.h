#ifndef GB_TESTS_SUPPORT_MQTT_PACKETS_H
#define GB_TESTS_SUPPORT_MQTT_PACKETS_H

#include "adapters/mqtt/mqtt_packet.h"
#include "base/assert.h"

/* Helpers for tests, seeds and fuzz targets of the MQTT codec.
 * Owns:   nothing.
 * Thread: any.
 * Errors: asserts. */

static inline uint8_t mqtt_hex_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* Appends the bytes that the hex digits stand for. */
static inline void mqtt_from_hex(struct gb_str *out, const char *hex)
{
    for (; hex[0] != '\0'; hex += 2) {
        gb_str_append_char(out, (char)(mqtt_hex_digit(hex[0]) << 4 | mqtt_hex_digit(hex[1])));
    }
    GB_ASSERT(!out->failed);
}

static inline struct gb_err mqtt_decode_by(bool from_client, const struct gb_mqtt_frame *frame,
                                           enum gb_mqtt_version version, struct gb_mqtt_packet *out)
{
    return from_client ? gb_mqtt_decode_client(frame, version, out)
                       : gb_mqtt_decode(frame, version, out);
}

static inline void mqtt_reencode_filters(const struct gb_mqtt_packet *p,
                                         enum gb_mqtt_version version, struct gb_str *out)
{
    enum { FILTERS_MAX = 64 };
    struct gb_mqtt_subscribe_entry entries[FILTERS_MAX];
    struct gb_bytes filters[FILTERS_MAX];
    struct gb_bytes rest = p->subscribe.entries;
    bool unsubscribe = p->type == GB_MQTT_UNSUBSCRIBE;
    size_t count = 0;
    while (count < FILTERS_MAX && gb_mqtt_subscribe_next(&rest, unsubscribe, &entries[count])) {
        filters[count] = entries[count].filter;
        count++;
    }
    GB_ASSERT(count == p->subscribe.count || count == FILTERS_MAX);
    if (unsubscribe) {
        gb_mqtt_encode_unsubscribe(out, version, p->subscribe.packet_id, filters, count);
    } else {
        gb_mqtt_encode_subscribe(out, version, p->subscribe.packet_id, entries, count);
    }
}

/* Encodes what was decoded; acknowledgements, subscriptions and DISCONNECT lose their properties,
 * as the program never sends any there. False for AUTH, which it never sends. */
static inline bool mqtt_reencode(const struct gb_mqtt_packet *p, enum gb_mqtt_version version,
                                 struct gb_str *out)
{
    switch (p->type) {
    case GB_MQTT_CONNECT:
        gb_mqtt_encode_connect(out, &p->connect);
        return true;
    case GB_MQTT_CONNACK:
        gb_mqtt_encode_connack(out, version, p->connack.session_present, p->connack.reason,
                               &p->connack.properties);
        return true;
    case GB_MQTT_PUBLISH:
        gb_mqtt_encode_publish(out, version, &p->publish);
        return true;
    case GB_MQTT_PUBACK:
    case GB_MQTT_PUBREC:
    case GB_MQTT_PUBREL:
    case GB_MQTT_PUBCOMP:
        gb_mqtt_encode_ack(out, version, p->type, p->ack.packet_id, p->ack.reason);
        return true;
    case GB_MQTT_SUBSCRIBE:
    case GB_MQTT_UNSUBSCRIBE:
        mqtt_reencode_filters(p, version, out);
        return true;
    case GB_MQTT_SUBACK:
        gb_mqtt_encode_suback(out, version, p->suback.packet_id, p->suback.codes);
        return true;
    case GB_MQTT_UNSUBACK:
        gb_mqtt_encode_unsuback(out, version, p->suback.packet_id, p->suback.codes);
        return true;
    case GB_MQTT_PINGREQ:
        gb_mqtt_encode_pingreq(out);
        return true;
    case GB_MQTT_PINGRESP:
        gb_mqtt_encode_pingresp(out);
        return true;
    case GB_MQTT_DISCONNECT:
        gb_mqtt_encode_disconnect(out, version, p->disconnect.reason);
        return true;
    case GB_MQTT_AUTH:
        return false;
    }
    return false;
}

/* The version that `packet` itself names, for CONNECT. */
static inline enum gb_mqtt_version mqtt_version_of(const struct gb_mqtt_packet *p,
                                                   enum gb_mqtt_version version)
{
    return p->type == GB_MQTT_CONNECT ? p->connect.version : version;
}

/* Asserts that what decodes from `frame` can be encoded, that the result decodes and encodes to
 * itself, and that it is the input where that is the only form: always in v3.1.1 (up to 64
 * filters), and in v5 when nothing was dropped or put into another order. */
static inline void mqtt_check_round_trip(bool from_client, const struct gb_mqtt_packet *packet,
                                         enum gb_mqtt_version version, struct gb_bytes input)
{
    struct gb_str once = {0};
    struct gb_str twice = {0};
    struct gb_mqtt_frame frame;
    struct gb_mqtt_packet again;
    enum gb_mqtt_version actual = mqtt_version_of(packet, version);
    bool subscribes = packet->type == GB_MQTT_SUBSCRIBE || packet->type == GB_MQTT_UNSUBSCRIBE;
    if (!mqtt_reencode(packet, actual, &once)) return;
    GB_ASSERT(!once.failed);
    GB_ASSERT(gb_mqtt_frame_next(gb_str_bytes(&once), once.size, &frame) == GB_MQTT_FRAME_OK);
    GB_ASSERT(frame.size == once.size);
    GB_ASSERT(!gb_failed(mqtt_decode_by(from_client, &frame, version, &again)));
    GB_ASSERT(mqtt_reencode(&again, actual, &twice));
    GB_ASSERT(gb_bytes_equal(gb_str_bytes(&once), gb_str_bytes(&twice)));
    bool all_filters = !subscribes || packet->subscribe.count <= 64;
    if (actual == GB_MQTT_V311 && all_filters) {
        GB_ASSERT(gb_bytes_equal(gb_str_bytes(&once), input));
    }
    GB_ASSERT(once.size <= input.size);
    gb_str_deinit(&once);
    gb_str_deinit(&twice);
}

#endif
