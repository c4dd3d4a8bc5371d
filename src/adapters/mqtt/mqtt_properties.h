#ifndef GB_ADAPTERS_MQTT_MQTT_PROPERTIES_H
#define GB_ADAPTERS_MQTT_MQTT_PROPERTIES_H

#include "base/bytes.h"
#include "base/str.h"

/* The properties of one MQTT 5 packet: single-value ones as fields, user properties by iteration.
 * Owns:   nothing: views into the decoded input, or into what the encoder's caller owns.
 * Thread: any. Pure.
 * Errors: none here; the decoder (mqtt_packet.h) has checked the structure before. */

enum gb_mqtt_property { /* identifiers of MQTT 5.0 §2.2.2.2 */
                        GB_MQTT_P_PAYLOAD_FORMAT = 0x01,
                        GB_MQTT_P_MESSAGE_EXPIRY = 0x02,
                        GB_MQTT_P_CONTENT_TYPE = 0x03,
                        GB_MQTT_P_RESPONSE_TOPIC = 0x08,
                        GB_MQTT_P_CORRELATION_DATA = 0x09,
                        GB_MQTT_P_SUBSCRIPTION_ID = 0x0B,
                        GB_MQTT_P_SESSION_EXPIRY = 0x11,
                        GB_MQTT_P_ASSIGNED_CLIENT_ID = 0x12,
                        GB_MQTT_P_SERVER_KEEP_ALIVE = 0x13,
                        GB_MQTT_P_AUTH_METHOD = 0x15,
                        GB_MQTT_P_AUTH_DATA = 0x16,
                        GB_MQTT_P_REQUEST_PROBLEM_INFO = 0x17,
                        GB_MQTT_P_WILL_DELAY = 0x18,
                        GB_MQTT_P_REQUEST_RESPONSE_INFO = 0x19,
                        GB_MQTT_P_RESPONSE_INFO = 0x1A,
                        GB_MQTT_P_SERVER_REFERENCE = 0x1C,
                        GB_MQTT_P_REASON_STRING = 0x1F,
                        GB_MQTT_P_RECEIVE_MAXIMUM = 0x21,
                        GB_MQTT_P_TOPIC_ALIAS_MAXIMUM = 0x22,
                        GB_MQTT_P_TOPIC_ALIAS = 0x23,
                        GB_MQTT_P_MAXIMUM_QOS = 0x24,
                        GB_MQTT_P_RETAIN_AVAILABLE = 0x25,
                        GB_MQTT_P_USER_PROPERTY = 0x26,
                        GB_MQTT_P_MAXIMUM_PACKET_SIZE = 0x27,
                        GB_MQTT_P_WILDCARD_AVAILABLE = 0x28,
                        GB_MQTT_P_SUBSCRIPTION_ID_AVAILABLE = 0x29,
                        GB_MQTT_P_SHARED_AVAILABLE = 0x2A,
                        GB_MQTT_P_COUNT,
};

#define GB_MQTT_HAS(property) (UINT64_C(1) << (property)) /* a bit of gb_mqtt_properties.has */

/* A publish with more is poison; the iterator stops after one more than allowed (spec 03 §6.3). */
enum { GB_MQTT_USER_PROPERTIES_MAX = 128, GB_MQTT_USER_PROPERTIES_SEEN = 129 };

struct gb_mqtt_properties {
    uint64_t has; /* which of the fields below are present */
    /* The encoded properties. Decoder: all of them, without their length. Encoder: only the user
     * properties in it are taken, so a decoded value can be encoded again as it is. */
    struct gb_bytes raw;
    uint32_t user_count; /* decoder only: all of them, also beyond the 129th */
    uint32_t user_first; /* decoder only: offset in `raw` of the first user property */

    uint8_t payload_format;
    uint8_t request_problem_info;
    uint8_t request_response_info;
    uint8_t maximum_qos;
    uint8_t retain_available;
    uint8_t wildcard_available;
    uint8_t subscription_id_available;
    uint8_t shared_available;
    uint16_t server_keep_alive;
    uint16_t receive_maximum;
    uint16_t topic_alias_maximum;
    uint32_t message_expiry;
    uint32_t session_expiry;
    uint32_t will_delay;
    uint32_t maximum_packet_size;
    uint32_t subscription_id; /* the first; a PUBLISH may carry several */
    /* Text of a PUBLISH or a will is not checked for UTF-8 (spec 03 §6.1 drops what is bad, the
     * packet is fine); text of other packets is. */
    struct gb_bytes content_type;
    struct gb_bytes response_topic;
    struct gb_bytes correlation_data;
    struct gb_bytes assigned_client_id;
    struct gb_bytes auth_method;
    struct gb_bytes auth_data;
    struct gb_bytes response_info;
    struct gb_bytes server_reference;
    struct gb_bytes reason_string;
};

static inline bool gb_mqtt_has(const struct gb_mqtt_properties *p, enum gb_mqtt_property property)
{
    return (p->has & GB_MQTT_HAS(property)) != 0;
}

struct gb_mqtt_user_property {
    struct gb_bytes name;
    struct gb_bytes value;
};
struct gb_mqtt_user_iterator { /* private */
    struct gb_bytes rest;
    uint32_t left;
};
/* Of decoded properties only; yields at most the first GB_MQTT_USER_PROPERTIES_SEEN, in order. */
void gb_mqtt_user_begin(struct gb_mqtt_user_iterator *it, const struct gb_mqtt_properties *p);
bool gb_mqtt_user_next(struct gb_mqtt_user_iterator *it, struct gb_mqtt_user_property *out);

/* Appends one encoded user property, for `raw` of properties that will be encoded. Fails `out` when
 * a text is longer than 65535 bytes. */
void gb_mqtt_user_append(struct gb_str *out, struct gb_bytes name, struct gb_bytes value);

#endif
