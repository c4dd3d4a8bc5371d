#ifndef GB_ADAPTERS_MQTT_MQTT_REASON_H
#define GB_ADAPTERS_MQTT_MQTT_REASON_H

#include "base/err.h"

/* Reason codes to errors by code, never by text (spec 03 §12, §13).
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: the result: GB_OK below 0x80, else the code of the table with the reason's name and
 * number. */

struct gb_err gb_mqtt_reason_connack(uint8_t reason); /* CONNACK and DISCONNECT */
/* PUBACK, PUBREC, PUBCOMP. The caller sets `retry_after_ns` with GB_MQTT_QUOTA_EXCEEDED. */
struct gb_err gb_mqtt_reason_puback(uint8_t reason);
struct gb_err gb_mqtt_reason_suback(uint8_t reason); /* also UNSUBACK */

/* "not authorized"; "unknown reason" for a code the standard does not have. */
const char *gb_mqtt_reason_name(uint8_t reason);

/* v3.1.1 CONNACK return code to the v5 reason (spec 03 §13); false: malformed. 0 stays 0. */
bool gb_mqtt_reason_from_v311(uint8_t code, uint8_t *reason);
/* The other way, for a server; what v3.1.1 cannot say becomes 3, "server unavailable". */
uint8_t gb_mqtt_reason_to_v311(uint8_t reason);

enum gb_mqtt_reason {
    GB_MQTT_SUCCESS = 0x00,
    GB_MQTT_DISCONNECT_WITH_WILL = 0x04,
    GB_MQTT_NO_MATCHING_SUBSCRIBERS = 0x10,
    GB_MQTT_NO_SUBSCRIPTION_EXISTED = 0x11,
    GB_MQTT_UNSPECIFIED_ERROR = 0x80,
    GB_MQTT_MALFORMED_PACKET = 0x81,
    GB_MQTT_PROTOCOL_ERROR = 0x82,
    GB_MQTT_NOT_AUTHORIZED = 0x87,
    GB_MQTT_SESSION_TAKEN_OVER = 0x8E,
    GB_MQTT_PACKET_ID_NOT_FOUND = 0x92,
    GB_MQTT_RECEIVE_MAXIMUM_EXCEEDED = 0x93,
    GB_MQTT_PACKET_TOO_LARGE = 0x95,
    GB_MQTT_QUOTA_EXCEEDED = 0x97,
};

#endif
