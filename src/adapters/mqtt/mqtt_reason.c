#include "adapters/mqtt/mqtt_reason.h"

#include <stddef.h>

static const struct name_row {
    uint8_t reason;
    const char *name;
} names[] = {
    {0x00, "success"},
    {0x01, "granted QoS 1"},
    {0x02, "granted QoS 2"},
    {0x04, "disconnect with will message"},
    {0x10, "no matching subscribers"},
    {0x11, "no subscription existed"},
    {0x18, "continue authentication"},
    {0x19, "re-authenticate"},
    {0x80, "unspecified error"},
    {0x81, "malformed packet"},
    {0x82, "protocol error"},
    {0x83, "implementation specific error"},
    {0x84, "unsupported protocol version"},
    {0x85, "client identifier not valid"},
    {0x86, "bad user name or password"},
    {0x87, "not authorized"},
    {0x88, "server unavailable"},
    {0x89, "server busy"},
    {0x8A, "banned"},
    {0x8B, "server shutting down"},
    {0x8C, "bad authentication method"},
    {0x8D, "keep alive timeout"},
    {0x8E, "session taken over"},
    {0x8F, "topic filter invalid"},
    {0x90, "topic name invalid"},
    {0x91, "packet identifier in use"},
    {0x92, "packet identifier not found"},
    {0x93, "receive maximum exceeded"},
    {0x94, "topic alias invalid"},
    {0x95, "packet too large"},
    {0x96, "message rate too high"},
    {0x97, "quota exceeded"},
    {0x98, "administrative action"},
    {0x99, "payload format invalid"},
    {0x9A, "retain not supported"},
    {0x9B, "QoS not supported"},
    {0x9C, "use another server"},
    {0x9D, "server moved"},
    {0x9E, "shared subscriptions not supported"},
    {0x9F, "connection rate exceeded"},
    {0xA0, "maximum connect time"},
    {0xA1, "subscription identifiers not supported"},
    {0xA2, "wildcard subscriptions not supported"},
};

const char *gb_mqtt_reason_name(uint8_t reason)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].reason == reason) return names[i].name;
    }
    return "unknown reason";
}

struct code_row {
    uint8_t reason;
    enum gb_code code;
};

/* The three tables of spec 03 §12, row by row. */
static const struct code_row connack_codes[] = {
    {0x81, GB_PROTOCOL_ERROR},  {0x82, GB_PROTOCOL_ERROR},    {0x83, GB_PROTOCOL_ERROR},
    {0x84, GB_PROTOCOL_ERROR},  {0x9A, GB_PROTOCOL_ERROR},    {0x9E, GB_PROTOCOL_ERROR},
    {0xA1, GB_PROTOCOL_ERROR},  {0xA2, GB_PROTOCOL_ERROR},    {0x85, GB_INVALID_PAYLOAD},
    {0x99, GB_INVALID_PAYLOAD}, {0x86, GB_NOT_AUTHORIZED},    {0x87, GB_NOT_AUTHORIZED},
    {0x8A, GB_NOT_AUTHORIZED},  {0x8C, GB_NOT_AUTHORIZED},    {0x88, GB_UNAVAILABLE},
    {0x8B, GB_UNAVAILABLE},     {0x9C, GB_UNAVAILABLE},       {0x9D, GB_UNAVAILABLE},
    {0x89, GB_BROKER_BUSY},     {0x8D, GB_TIMEOUT},           {0x8E, GB_CONNECTION_LOST},
    {0x8F, GB_INVALID_TOPIC},   {0x90, GB_INVALID_TOPIC},     {0x94, GB_INVALID_TOPIC},
    {0x93, GB_THROTTLED},       {0x96, GB_THROTTLED},         {0x97, GB_THROTTLED},
    {0x9F, GB_THROTTLED},       {0x95, GB_PAYLOAD_TOO_LARGE}, {0x9B, GB_QOS_NOT_SUPPORTED},
};
static const struct code_row puback_codes[] = {
    {0x83, GB_PROTOCOL_ERROR}, {0x91, GB_PROTOCOL_ERROR}, {0x87, GB_FORBIDDEN},
    {0x90, GB_INVALID_TOPIC},  {0x97, GB_THROTTLED},      {0x99, GB_INVALID_PAYLOAD},
};
static const struct code_row suback_codes[] = {
    {0x83, GB_PROTOCOL_ERROR}, {0x91, GB_PROTOCOL_ERROR}, {0x9E, GB_PROTOCOL_ERROR},
    {0xA1, GB_PROTOCOL_ERROR}, {0xA2, GB_PROTOCOL_ERROR}, {0x87, GB_FORBIDDEN},
    {0x8F, GB_INVALID_TOPIC},  {0x97, GB_THROTTLED},
};

static struct gb_err map(const struct code_row *rows, size_t count, uint8_t reason,
                         const char *answer)
{
    if (reason < 0x80) return gb_ok();
    enum gb_code code = GB_UNAVAILABLE;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].reason == reason) code = rows[i].code;
    }
    return gb_err(code, "the broker answered %s with 0x%02X, %s", answer, reason,
                  gb_mqtt_reason_name(reason));
}

struct gb_err gb_mqtt_reason_connack(uint8_t reason)
{
    return map(connack_codes, sizeof connack_codes / sizeof connack_codes[0], reason,
               "the connection");
}

struct gb_err gb_mqtt_reason_puback(uint8_t reason)
{
    return map(puback_codes, sizeof puback_codes / sizeof puback_codes[0], reason, "the publish");
}

struct gb_err gb_mqtt_reason_suback(uint8_t reason)
{
    return map(suback_codes, sizeof suback_codes / sizeof suback_codes[0], reason,
               "the subscription");
}

/* Index = the v3.1.1 return code (spec 03 §13). */
static const uint8_t v311_reasons[] = {0x00, 0x84, 0x85, 0x88, 0x86, 0x87};
enum { V311_SERVER_UNAVAILABLE = 3 };

bool gb_mqtt_reason_from_v311(uint8_t code, uint8_t *reason)
{
    if (code >= sizeof v311_reasons) return false;
    *reason = v311_reasons[code];
    return true;
}

uint8_t gb_mqtt_reason_to_v311(uint8_t reason)
{
    for (size_t code = 0; code < sizeof v311_reasons; code++) {
        if (v311_reasons[code] == reason) return (uint8_t)code;
    }
    return V311_SERVER_UNAVAILABLE;
}
