#ifndef GB_ADAPTERS_MQTT_MQTT_EGRESS_H
#define GB_ADAPTERS_MQTT_MQTT_EGRESS_H

#include "base/str.h"
#include "domain/envelope.h"

/* Envelope to encoded PUBLISH (spec 03 §6.2, 02 §1.5).
 * Owns:   nothing; bytes go into the caller's buffer.
 * Thread: loop thread. Pure.
 * Errors: local refusals, before a byte is written: GB_INVALID_TOPIC (also too long or not UTF-8),
 *         GB_PAYLOAD_TOO_LARGE (a text above 65535 bytes; the packet above the broker's limit),
 *         GB_INVALID_PAYLOAD (a text is not UTF-8 or has U+0000), GB_QOS_NOT_SUPPORTED,
 * GB_PROTOCOL_ERROR (retain not available). None of these is transient; GB_UNAVAILABLE (the buffer
 * failed) is. */

struct gb_mqtt_egress {
    bool v5;                   /* false: no properties at all */
    const char *default_topic; /* when the address is empty; may be NULL */
    uint8_t qos;               /* the sender's */
    bool retain;
    uint32_t maximum_packet_size; /* the broker's; 0 = no limit but the protocol's */
    uint8_t maximum_qos;          /* the broker's; 2 when it did not say */
    bool retain_available;        /* the broker's; true when it did not say */
    int64_t now_ms;
};

/* Appends the PUBLISH with DUP 0. `packet_id` is 0 exactly with QoS 0. `*dropped` counts headers
 * that are not text (MQTTNonStringHeaderDropped); untouched on failure. */
struct gb_err gb_mqtt_egress_encode(const struct gb_mqtt_egress *e,
                                    const struct gb_envelope *envelope, struct gb_bytes address,
                                    uint16_t packet_id, struct gb_str *out, uint32_t *dropped);

#endif
