#ifndef GB_ADAPTERS_MQTT_MQTT_PACKET_H
#define GB_ADAPTERS_MQTT_MQTT_PACKET_H

#include "adapters/mqtt/mqtt_properties.h"
#include "adapters/mqtt/mqtt_version.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"

/* MQTT 5.0 and 3.1.1 control packets, both directions (spec 03 §7 item 3, §13).
 * Owns:   nothing: decoded packets are views into the input; encoders append to the caller's
 * buffer. Thread: any. Pure. Errors: decoders: GB_PROTOCOL_ERROR for everything malformed or
 * illegal. Encoders set out->failed (sticky) when memory is short or a field does not fit its
 * length; nothing is appended then. */

enum gb_mqtt_packet_type {
    GB_MQTT_CONNECT = 1,
    GB_MQTT_CONNACK,
    GB_MQTT_PUBLISH,
    GB_MQTT_PUBACK,
    GB_MQTT_PUBREC,
    GB_MQTT_PUBREL,
    GB_MQTT_PUBCOMP,
    GB_MQTT_SUBSCRIBE,
    GB_MQTT_SUBACK,
    GB_MQTT_UNSUBSCRIBE,
    GB_MQTT_UNSUBACK,
    GB_MQTT_PINGREQ,
    GB_MQTT_PINGRESP,
    GB_MQTT_DISCONNECT,
    GB_MQTT_AUTH, /* v5; a client that never authenticated by method takes it as a protocol error */
};

enum { GB_MQTT_REMAINING_MAX = 268435455, GB_MQTT_TEXT_MAX = 65535 };

/* --- frames --- */

struct gb_mqtt_frame {
    enum gb_mqtt_packet_type type;
    uint8_t flags;        /* the low four bits */
    uint8_t header_size;  /* 2..5 */
    size_t size;          /* of the whole packet */
    struct gb_bytes body; /* only with GB_MQTT_FRAME_OK */
};
enum gb_mqtt_frame_result {
    GB_MQTT_FRAME_OK = 0,
    GB_MQTT_FRAME_NEED_MORE,
    GB_MQTT_FRAME_MALFORMED, /* answer 0x81; decided on the fixed header */
    GB_MQTT_FRAME_TOO_LARGE, /* answer 0x95; decided on the fixed header: all of `frame` but `body`
                                is set */
};
/* The first packet of `bytes`; `packet_bytes_max` counts the fixed header, as Maximum Packet Size
 * does. */
enum gb_mqtt_frame_result gb_mqtt_frame_next(struct gb_bytes bytes, size_t packet_bytes_max,
                                             struct gb_mqtt_frame *frame);

/* --- packets --- */

struct gb_mqtt_connect {
    enum gb_mqtt_version version;
    bool clean_start;
    bool has_username, has_password, has_will;
    uint8_t will_qos;
    bool will_retain;
    uint16_t keep_alive;
    struct gb_bytes client_id, username, password, will_topic, will_payload;
    /* v5. Encoder: 0 = left out; they win over `properties`. Decoder: 0 = absent. */
    uint32_t session_expiry_interval;
    uint16_t receive_maximum;
    uint32_t maximum_packet_size;
    struct gb_mqtt_properties properties, will_properties;
};
struct gb_mqtt_connack {
    bool session_present;
    uint8_t reason; /* of v5 in both versions (spec 03 §13) */
    /* With the defaults of the standard where absent, also for v3.1.1. */
    bool has_server_keep_alive;
    uint16_t server_keep_alive;
    uint16_t receive_maximum;     /* 65535 */
    uint32_t maximum_packet_size; /* 0 = no limit */
    uint8_t maximum_qos;          /* 2 */
    bool retain_available;        /* true */
    bool wildcard_available;      /* true */
    bool shared_available;        /* true */
    struct gb_mqtt_properties properties;
};
struct gb_mqtt_publish {
    bool dup, retain;
    uint8_t qos;
    uint16_t packet_id; /* 0 with QoS 0 */
    struct gb_bytes topic;
    struct gb_bytes payload;
    struct gb_mqtt_properties properties;
};
struct gb_mqtt_ack { /* PUBACK, PUBREC, PUBREL, PUBCOMP */
    uint16_t packet_id;
    uint8_t reason;
    struct gb_mqtt_properties properties;
};
struct gb_mqtt_subscribe_entry {
    struct gb_bytes filter;
    uint8_t qos;
    bool no_local;            /* v5 */
    bool retain_as_published; /* v5 */
    uint8_t retain_handling;  /* v5: 0 always, 1 only a new subscription, 2 never */
};
struct gb_mqtt_subscribe { /* SUBSCRIBE and UNSUBSCRIBE */
    uint16_t packet_id;
    size_t count;
    struct gb_bytes entries; /* checked; see gb_mqtt_subscribe_next */
    struct gb_mqtt_properties properties;
};
struct gb_mqtt_suback { /* SUBACK and UNSUBACK */
    uint16_t packet_id;
    struct gb_bytes codes; /* one byte each; empty for UNSUBACK of v3.1.1 */
    struct gb_mqtt_properties properties;
};
struct gb_mqtt_disconnect { /* DISCONNECT and AUTH */
    uint8_t reason;
    struct gb_mqtt_properties properties;
};

struct gb_mqtt_packet {
    enum gb_mqtt_packet_type type;
    union {
        struct gb_mqtt_connect connect;
        struct gb_mqtt_connack connack;
        struct gb_mqtt_publish publish;
        struct gb_mqtt_ack ack;
        struct gb_mqtt_subscribe subscribe;   /* also UNSUBSCRIBE */
        struct gb_mqtt_suback suback;         /* also UNSUBACK */
        struct gb_mqtt_disconnect disconnect; /* also AUTH */
    };
};

/* A packet that a server sent; types only clients send are illegal. */
struct gb_err gb_mqtt_decode(const struct gb_mqtt_frame *frame, enum gb_mqtt_version version,
                             struct gb_mqtt_packet *out);
/* A packet that a client sent. CONNECT tells its version itself; `version` is ignored for it. */
struct gb_err gb_mqtt_decode_client(const struct gb_mqtt_frame *frame, enum gb_mqtt_version version,
                                    struct gb_mqtt_packet *out);

/* v3.1.1 cannot advertise a packet size (spec 03 §13): topic, QoS and id of a PUBLISH above the
 * limit, from the first bytes of the stream. `frame` is what GB_MQTT_FRAME_TOO_LARGE left. OK,
 * NEED_MORE or MALFORMED (also when it is no PUBLISH); out->payload is what has arrived of it. */
enum gb_mqtt_frame_result gb_mqtt_decode_oversized(struct gb_bytes bytes,
                                                   const struct gb_mqtt_frame *frame,
                                                   struct gb_mqtt_publish *out);

/* Next entry of a decoded SUBSCRIBE (`unsubscribe` false) or UNSUBSCRIBE; takes it off `entries`.
 */
bool gb_mqtt_subscribe_next(struct gb_bytes *entries, bool unsubscribe,
                            struct gb_mqtt_subscribe_entry *out);

/* --- encoders: both directions --- */

void gb_mqtt_encode_publish(struct gb_str *out, enum gb_mqtt_version version,
                            const struct gb_mqtt_publish *p);
/* PUBACK, PUBREC, PUBREL or PUBCOMP in its shortest form; v3.1.1 leaves the reason out. */
void gb_mqtt_encode_ack(struct gb_str *out, enum gb_mqtt_version version,
                        enum gb_mqtt_packet_type type, uint16_t packet_id, uint8_t reason);
/* Success in four bytes: the form both versions share. */
static inline void gb_mqtt_append_puback(struct gb_str *out, uint16_t packet_id)
{
    const uint8_t bytes[4] = {GB_MQTT_PUBACK << 4, 2, (uint8_t)(packet_id >> 8),
                              (uint8_t)packet_id};
    gb_str_append(out, gb_bytes(bytes, sizeof bytes));
}
/* v3.1.1 leaves the reason out. */
void gb_mqtt_encode_disconnect(struct gb_str *out, enum gb_mqtt_version version, uint8_t reason);

/* --- encoders: client --- */

void gb_mqtt_encode_connect(struct gb_str *out, const struct gb_mqtt_connect *p);
void gb_mqtt_encode_subscribe(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                              const struct gb_mqtt_subscribe_entry *entries, size_t count);
void gb_mqtt_encode_unsubscribe(struct gb_str *out, enum gb_mqtt_version version,
                                uint16_t packet_id, const struct gb_bytes *filters, size_t count);
void gb_mqtt_encode_pingreq(struct gb_str *out);

/* --- encoders: server --- */

/* `reason` is of v5 in both versions; `properties` may be NULL and are left out for v3.1.1. */
void gb_mqtt_encode_connack(struct gb_str *out, enum gb_mqtt_version version, bool session_present,
                            uint8_t reason, const struct gb_mqtt_properties *properties);
void gb_mqtt_encode_suback(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                           struct gb_bytes codes);
/* `codes` are left out for v3.1.1. */
void gb_mqtt_encode_unsuback(struct gb_str *out, enum gb_mqtt_version version, uint16_t packet_id,
                             struct gb_bytes codes);
void gb_mqtt_encode_pingresp(struct gb_str *out);

#endif
