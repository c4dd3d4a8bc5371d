#ifndef GB_ADAPTERS_MQTT_MQTT_PUBLISHER_H
#define GB_ADAPTERS_MQTT_MQTT_PUBLISHER_H

#include "base/metrics.h"
#include "ports/sender.h"

/* Outgoing publishes of one session (spec 03 §11): packet ids, the broker's Receive Maximum, QoS
 * 0/1/2 exchanges, resend on a resumed session. It writes into the connection's buffer and knows no
 * socket.
 * Owns:   its exchanges; the sends belong to their callers until done.
 * Thread: loop thread only.
 * Errors: sends end with the codes of spec 03 §12, GB_CONNECTION_LOST while down or when the
 *         session's state is gone, GB_TIMEOUT at the stricter deadline; a timed-out exchange keeps
 *         its packet id until the broker answers. */

/* More ids than this are never in flight, whatever the broker allows. */
enum { GB_MQTT_EXCHANGES_MAX = 1024 };

struct gb_mqtt_publisher;

/* What the session tells about its connection. */
struct gb_mqtt_publisher_peer {
    bool v5;
    uint32_t receive_maximum;     /* of the broker; 0 = 65535 */
    uint32_t maximum_packet_size; /* 0 = no limit */
    uint8_t maximum_qos;
    bool retain_available;
};
struct gb_mqtt_publisher_cfg {
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    const char *session_id;
    /* Wants the buffer `tx` written at the end of this turn. */
    void (*flush)(void *arg);
    void *arg;
    struct gb_str *tx; /* the connection's outgoing buffer */
};
struct gb_mqtt_publish_options { /* of one sender */
    const char *default_topic;
    uint8_t qos;
    bool retain;
    int64_t timeout_ns;
    int64_t throttle_retry_after_ns;
};

struct gb_err gb_mqtt_publisher_new(const struct gb_mqtt_publisher_cfg *cfg,
                                    struct gb_mqtt_publisher **out);
void gb_mqtt_publisher_free(struct gb_mqtt_publisher *p); /* no send may be pending; NULL ok */

void gb_mqtt_publisher_send(struct gb_mqtt_publisher *p,
                            const struct gb_mqtt_publish_options *options, struct gb_send *q,
                            gb_done_fn *done, void *arg);
bool gb_mqtt_publisher_is_up(const struct gb_mqtt_publisher *p);
size_t
gb_mqtt_publisher_pending(const struct gb_mqtt_publisher *p); /* sends that callers wait for */

void gb_mqtt_publisher_up(struct gb_mqtt_publisher *p, const struct gb_mqtt_publisher_peer *peer,
                          bool session_present);
/* `keep`: exchanges wait for a resumed session; otherwise every send fails CONNECTION_LOST. */
void gb_mqtt_publisher_down(struct gb_mqtt_publisher *p, bool keep);
/* The tx buffer was handed to the network: QoS 0 sends are done. */
void gb_mqtt_publisher_written(struct gb_mqtt_publisher *p);

/* Answers of the broker. An id that is not in flight is ignored (a late answer); PUBREC for one
 * gets PUBREL with 0x92. */
void gb_mqtt_publisher_puback(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason);
void gb_mqtt_publisher_pubrec(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason);
void gb_mqtt_publisher_pubcomp(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason);

#endif
