#ifndef GB_TESTS_FUZZ_MQTT_FUZZ_H
#define GB_TESTS_FUZZ_MQTT_FUZZ_H

#include <stdint.h>

#include "adapters/mqtt/mqtt_ingress.h"
#include "support/mqtt_packets.h"

/* What the four MQTT targets share: a stream of bytes goes through the splitter and the decoder of
 * one side and version. Nothing crashes or reads outside; what decodes encodes again to the same
 * packet, and the walks over its user properties and filters end where the decoder's did.
 * Owns:   nothing.
 * Thread: one.
 * Errors: asserts. */

enum { MQTT_FUZZ_PACKET_MAX = 1 << 20 };

static inline void mqtt_fuzz_user(const struct gb_mqtt_properties *p)
{
    struct gb_mqtt_user_iterator it;
    struct gb_mqtt_user_property user;
    uint32_t seen = 0;
    gb_mqtt_user_begin(&it, p);
    while (gb_mqtt_user_next(&it, &user)) seen++;
    GB_ASSERT(seen == (p->user_count < GB_MQTT_USER_PROPERTIES_SEEN
                           ? p->user_count
                           : GB_MQTT_USER_PROPERTIES_SEEN));
}

static inline void mqtt_fuzz_publish(const struct gb_mqtt_publish *p, enum gb_mqtt_version version)
{
    const struct gb_mqtt_ingress in = {.version = version, .max_payload_bytes = 1 << 16};
    mqtt_fuzz_user(&p->properties);
    if (gb_mqtt_ingress_classify(&in, p, NULL) != GB_MQTT_POISON_NONE) return;
    struct gb_reactor *r = NULL;
    struct gb_mqtt_ingress_result result = {0};
    GB_ASSERT(!gb_failed(gb_reactor_new(1, &r)));
    gb_reactor_set_now(r, 1, INT64_C(1764547200000));
    GB_ASSERT(!gb_failed(gb_mqtt_ingress_build(&in, p, r, &result)));
    GB_ASSERT(result.envelope->id.size > 0 && result.envelope->chunks == NULL);
    gb_envelope_unref(result.envelope);
    gb_reactor_free(r);
}

/* The same packet with one byte less than it says, as an oversized one, and at a limit just below
 * it. */
static inline void mqtt_fuzz_limits(struct gb_bytes bytes, const struct gb_mqtt_frame *frame)
{
    struct gb_mqtt_frame other;
    struct gb_mqtt_publish head;
    GB_ASSERT(gb_mqtt_frame_next(gb_bytes(bytes.data, frame->size - 1), frame->size, &other) ==
              GB_MQTT_FRAME_NEED_MORE);
    GB_ASSERT(gb_mqtt_frame_next(bytes, frame->size - 1, &other) == GB_MQTT_FRAME_TOO_LARGE);
    GB_ASSERT(other.size == frame->size);
    (void)gb_mqtt_decode_oversized(bytes, &other, &head);
    for (size_t size = 0; size <= frame->size && size < 16; size++) {
        (void)gb_mqtt_decode_oversized(gb_bytes(bytes.data, size), &other, &head);
    }
}

static inline int mqtt_fuzz(const uint8_t *data, size_t size, enum gb_mqtt_version version,
                            bool from_client)
{
    struct gb_bytes rest = gb_bytes(data, size);
    struct gb_mqtt_frame frame;
    while (gb_mqtt_frame_next(rest, MQTT_FUZZ_PACKET_MAX, &frame) == GB_MQTT_FRAME_OK) {
        GB_ASSERT(frame.size <= rest.size && frame.body.size == frame.size - frame.header_size);
        struct gb_mqtt_packet packet;
        struct gb_bytes input = gb_bytes(rest.data, frame.size);
        mqtt_fuzz_limits(input, &frame);
        struct gb_err err = mqtt_decode_by(from_client, &frame, version, &packet);
        GB_ASSERT(err.code == GB_OK || err.code == GB_PROTOCOL_ERROR);
        if (!gb_failed(err)) {
            if (packet.type == GB_MQTT_PUBLISH) mqtt_fuzz_publish(&packet.publish, version);
            mqtt_check_round_trip(from_client, &packet, version, input);
        }
        rest = gb_bytes(rest.data + frame.size, rest.size - frame.size);
    }
    return 0;
}

#endif
