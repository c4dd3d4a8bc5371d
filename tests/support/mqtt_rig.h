#ifndef GB_TESTS_SUPPORT_MQTT_RIG_H
#define GB_TESTS_SUPPORT_MQTT_RIG_H

#include "adapters/mqtt/mqtt_packet.h"
#include "adapters/mqtt/mqtt_session.h"
#include "support/fake_dlq.h"
#include "support/fake_net.h"

/* One MQTT session with everything around it by hand: clock, network, broker side, history store,
 * route. The broker side is strict: whatever the client sends must decode.
 * Owns:   all parts; mqtt_rig_close stops and frees the session and asserts that nothing is left.
 * Thread: the test's.
 * Errors: asserts. */

enum { MQTT_RIG_DELIVERIES = 512, MQTT_RIG_FILTERS = 32 };

struct mqtt_rig_history { /* the managed-subscription store */
    struct gb_subscriptions port;
    bool seeded;
    char *filters[MQTT_RIG_FILTERS];
    size_t count;
    enum gb_code fail; /* the next operations answer this; GB_OK works */
    bool hold;         /* operations stay pending until mqtt_rig_release */
    struct gb_op *held;
    unsigned lists, remembers, forgets;
};
struct mqtt_rig_settled {
    unsigned calls;
    struct gb_err result;
};
struct mqtt_rig {
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    uint64_t now_ns;
    struct gb_fake_net net;
    struct mqtt_rig_history history;
    struct fake_dlq dlq;
    struct gb_mqtt_session_cfg cfg; /* change before mqtt_rig_build */
    struct gb_mqtt_topic topics[8];
    const char *urls[2];
    struct gb_session *session;
    struct gb_sender *sender;
    enum gb_emit emit; /* the route's answer */
    struct gb_delivery *deliveries[MQTT_RIG_DELIVERIES];
    char payloads[MQTT_RIG_DELIVERIES][32];
    size_t delivered;
    struct mqtt_rig_settled settled[MQTT_RIG_DELIVERIES];
    struct gb_fake_stream *stream; /* the connection in use */
    size_t taken;                  /* bytes of stream->written already decoded */
    enum gb_mqtt_version version;
    struct gb_err terminal;
    unsigned terminals;
    bool stopped;
};

/* Defaults: v5, ephemeral, topic a/# with QoS 1, receive_maximum 16, keep_alive 10 s. */
void mqtt_rig_init(struct mqtt_rig *r);
void mqtt_rig_build(struct mqtt_rig *r);            /* makes the session and a QoS 1 sender */
void mqtt_rig_start(struct mqtt_rig *r);            /* build, start receiver and session */
void mqtt_rig_run(struct mqtt_rig *r, uint64_t ms); /* lets time pass, turn by turn */
/* Accepts the newest dial, checks CONNECT, answers CONNACK. The CONNECT is left in `*connect` when
 * not NULL. */
void mqtt_rig_accept(struct mqtt_rig *r, bool session_present, struct gb_mqtt_connect *connect);
/* Answers every SUBSCRIBE with what it asks for. */
void mqtt_rig_grant(struct mqtt_rig *r);
void mqtt_rig_online(struct mqtt_rig *r); /* start, accept, grant */
/* Next packet of the client; false when there is none. */
bool mqtt_rig_next(struct mqtt_rig *r, struct gb_mqtt_packet *out);
struct gb_mqtt_packet mqtt_rig_expect(struct mqtt_rig *r, enum gb_mqtt_packet_type type);
void mqtt_rig_expect_nothing(struct mqtt_rig *r);
void mqtt_rig_feed(struct mqtt_rig *r, struct gb_str *bytes); /* and empties it; runs a turn */
void mqtt_rig_publish(struct mqtt_rig *r, const char *topic, uint8_t qos, uint16_t id,
                      const char *payload);
void mqtt_rig_suback(struct mqtt_rig *r, uint16_t id, const char *codes, size_t count);
void mqtt_rig_cut(struct mqtt_rig *r); /* the network breaks the connection */
void mqtt_rig_ack(struct mqtt_rig *r, size_t delivery);
void mqtt_rig_retry(struct mqtt_rig *r, size_t delivery);
uint64_t mqtt_rig_metric(const struct mqtt_rig *r, const char *name);
/* The counter with this value in one of its dimensions; the value of a gauge. */
uint64_t mqtt_rig_metric_of(const struct mqtt_rig *r, const char *name, const char *value);
double mqtt_rig_gauge(const struct mqtt_rig *r, const char *name);
struct gb_session_health mqtt_rig_health(const struct mqtt_rig *r);
void mqtt_rig_seed(struct mqtt_rig *r, const char *filter); /* NULL: an empty baseline */
void mqtt_rig_close(struct mqtt_rig *r);

#endif
