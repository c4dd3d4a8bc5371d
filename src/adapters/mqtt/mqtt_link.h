#ifndef GB_ADAPTERS_MQTT_MQTT_LINK_H
#define GB_ADAPTERS_MQTT_MQTT_LINK_H

#include "adapters/mqtt/mqtt_packet.h"
#include "adapters/mqtt/mqtt_session.h"

/* One broker connection at a time (spec 03 §4.1, §7 item 3): dial, CONNECT, CONNACK, frames,
 * keep-alive, close. It knows packets and time, not messages or subscriptions.
 * Owns:   its buffers and the stream while there is one.
 * Thread: loop thread only. Events run from the stream's events or the timer, never from inside a
 *         call of the user, `down` excepted: never from inside either.
 * Errors: `down` carries the reason; dialling errors arrive there too. */

enum gb_mqtt_link_state {
    GB_MQTT_LINK_IDLE = 0,
    GB_MQTT_LINK_DIALING,    /* TCP, TLS, WebSocket */
    GB_MQTT_LINK_CONNECTING, /* CONNECT written */
    GB_MQTT_LINK_UP,
    GB_MQTT_LINK_CLOSING, /* waits for the stream's end */
    GB_MQTT_LINK_STATES,
};

enum gb_mqtt_down_cause {
    GB_MQTT_DOWN_LOST = 0, /* network, keep-alive, time-out, orderly end by the broker */
    GB_MQTT_DOWN_REFUSED,  /* CONNACK with an error */
    GB_MQTT_DOWN_TAKEOVER, /* DISCONNECT 0x8E */
    GB_MQTT_DOWN_REJECTED, /* we refused what the broker sent */
    GB_MQTT_DOWN_CLOSED,   /* gb_mqtt_link_close */
};

struct gb_mqtt_link_events {
    void (*up)(void *arg, const struct gb_mqtt_connack *ack);
    void (*packet)(void *arg, const struct gb_mqtt_packet *packet);
    /* v3.1.1: a PUBLISH above the size limit was recognised; its body is skipped (spec 03 §13). */
    void (*oversized)(void *arg, uint8_t qos, uint16_t packet_id);
    void (*written)(void *arg); /* the outgoing buffer went to the network */
    void (*down)(void *arg, enum gb_mqtt_down_cause cause, struct gb_err reason);
};

struct gb_mqtt_link_cfg {
    struct gb_reactor *reactor;
    struct gb_net *net;
    const struct gb_mqtt_session_cfg *session; /* strings live as long as the link */
    uint32_t packet_bytes_max;                 /* advertised Maximum Packet Size */
    const struct gb_mqtt_link_events *events;
    void *arg;
};

struct gb_mqtt_link {
    struct gb_str tx; /* append packets here, then gb_mqtt_link_flush */
    /* private */
    struct gb_mqtt_link_cfg cfg;
    enum gb_mqtt_link_state state;
    struct gb_stream *stream;
    struct gb_str rx; /* an incomplete frame */
    struct gb_timer timer;
    struct gb_task flush;
    uint64_t attempt_deadline_ns, last_rx_ns, last_tx_ns, ping_sent_ns;
    uint64_t skip_bytes; /* rest of an oversized PUBLISH */
    uint64_t keep_alive_ns;
    enum gb_mqtt_down_cause down_cause;
    struct gb_err down_reason;
    bool clean_start;
};

struct gb_err gb_mqtt_link_init(struct gb_mqtt_link *l, const struct gb_mqtt_link_cfg *cfg);
void gb_mqtt_link_deinit(struct gb_mqtt_link *l); /* only while IDLE; accepts zeroed memory */
/* One attempt; ends in `up` or `down`. */
void gb_mqtt_link_open(struct gb_mqtt_link *l, const struct gb_mqtt_endpoint *endpoint,
                       bool clean_start, uint64_t deadline_ns);
/* Writes `tx` at the end of this turn. */
void gb_mqtt_link_flush(struct gb_mqtt_link *l);
/* Best-effort DISCONNECT with the reason, then the end of the stream; `down` follows. `cause` and
 * `reason` are what it will say. Idempotent. */
void gb_mqtt_link_close(struct gb_mqtt_link *l, uint8_t disconnect_reason,
                        enum gb_mqtt_down_cause cause, struct gb_err reason);
static inline bool gb_mqtt_link_is_up(const struct gb_mqtt_link *l)
{
    return l->state == GB_MQTT_LINK_UP;
}

#endif
