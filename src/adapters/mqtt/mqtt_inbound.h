#ifndef GB_ADAPTERS_MQTT_MQTT_INBOUND_H
#define GB_ADAPTERS_MQTT_MQTT_INBOUND_H

#include "adapters/mqtt/mqtt_acks.h"
#include "adapters/mqtt/mqtt_reconcile.h"
#include "ports/receiver.h"

/* Messages between the socket and the route: the dispatch queue, the unmatched buffer and the
 * deliveries that the route holds (spec 03 §5, §6.4, §7 item 4). Implements the receiver port.
 * Owns:   its deliveries with their envelopes.
 * Thread: loop thread only.
 * Errors: gb_mqtt_inbound_new: GB_UNAVAILABLE. QoS 0 is bounded by receive_maximum entries and,
 *         while unmatched, by 64 MiB; QoS 1/2 by what the session takes. */

struct gb_mqtt_inbound;

struct gb_mqtt_inbound_cfg {
    const struct gb_mqtt_session_cfg *session; /* lives as long as this */
    struct gb_mqtt_acks *acks;
    struct gb_mqtt_reconcile *reconcile;
    struct gb_str *tx;
    void (*flush)(void *arg); /* acknowledgements were appended to tx */
    void (*recycle)(
        void *arg); /* a durable delivery stays unacknowledged: recovery recycle (spec 03 §5.4) */
    void (*orphan)(void *arg, struct gb_bytes topic); /* ephemeral: unsubscribe this topic once */
    /* The route holds no delivery any more (only after gb_mqtt_inbound_held was > 0). */
    void (*drained)(void *arg);
    void *arg;
};

struct gb_mqtt_message {          /* one accepted PUBLISH */
    struct gb_envelope *envelope; /* its reference is taken over */
    struct gb_bytes topic;        /* copied only when the message has to wait unmatched */
    unsigned derived;
    uint64_t seq; /* of gb_mqtt_acks_receive, QoS > 0 */
    size_t size;  /* what it counts for in gb_mqtt_inbound_bytes */
    uint8_t qos;
};

struct gb_err gb_mqtt_inbound_new(const struct gb_mqtt_inbound_cfg *cfg,
                                  struct gb_mqtt_inbound **out);
void gb_mqtt_inbound_free(struct gb_mqtt_inbound *in); /* the route holds nothing; NULL ok */
struct gb_receiver *gb_mqtt_inbound_receiver(struct gb_mqtt_inbound *in);

/* A new connection: acknowledgements of older epochs are void from now on; the grace of unmatched
 * messages restarts. */
void gb_mqtt_inbound_connected(struct gb_mqtt_inbound *in);
/* The connection is gone: queued messages come again or are lost with it (QoS 0 stays queued). */
void gb_mqtt_inbound_disconnected(struct gb_mqtt_inbound *in);
void gb_mqtt_inbound_accept(struct gb_mqtt_inbound *in, const struct gb_mqtt_message *m);
/* No emit any more until gb_mqtt_inbound_connected; what is queued is discarded and counted (spec
 * 03 §5.4 item 2). */
void gb_mqtt_inbound_quiesce(struct gb_mqtt_inbound *in);
/* No emit any more until gb_mqtt_inbound_start; after the receiver's own stop never again. */
void gb_mqtt_inbound_stop(struct gb_mqtt_inbound *in);
void gb_mqtt_inbound_start(struct gb_mqtt_inbound *in);
/* A QoS 1/2 message that can't be kept is acknowledged and dropped, and counted (spec 03 §6.4). */
void gb_mqtt_inbound_overflow(struct gb_mqtt_inbound *in, uint64_t seq);
/* Sizes of all messages that are queued or with the route. */
size_t gb_mqtt_inbound_bytes(const struct gb_mqtt_inbound *in);
/* Deliveries with the route. */
uint32_t gb_mqtt_inbound_held(const struct gb_mqtt_inbound *in);
/* Unmatched messages are waiting for a handler: the session is not full. */
bool gb_mqtt_inbound_buffering(const struct gb_mqtt_inbound *in);
int64_t gb_mqtt_inbound_oldest_age_ms(const struct gb_mqtt_inbound *in);

/* Replay window (spec 03 §8.3): takes the next waiting message of a removed filter that no wanted
 * filter covers; NULL when there is none. The caller ends it with gb_mqtt_inbound_replay_done. */
struct gb_delivery *gb_mqtt_inbound_next_replay(struct gb_mqtt_inbound *in, const char **filter);
void gb_mqtt_inbound_replay_done(struct gb_mqtt_inbound *in, struct gb_delivery *d,
                                 bool acknowledge);
/* The window is over and its filters are forgotten: what is covered flows, the rest is orphaned. */
void gb_mqtt_inbound_rematch(struct gb_mqtt_inbound *in);

#endif
