#ifndef GB_ADAPTERS_MQTT_MQTT_ACKS_H
#define GB_ADAPTERS_MQTT_MQTT_ACKS_H

#include "base/err.h"
#include "base/str.h"

/* The acknowledgement order of one connection epoch (spec 03 §5.1): acknowledgements leave in
 * receive order, an early settlement waits for the head. Also the QoS 2 identifiers whose PUBREC
 * was sent. How much is taken is the session's decision; there is room for every packet identifier.
 * Owns:   its ring and bitmaps.
 * Thread: loop thread only. Pure: bytes go into the caller's buffer.
 * Errors: gb_mqtt_acks_init: GB_UNAVAILABLE. */

struct gb_mqtt_ack_slot {
    uint16_t packet_id;
    uint8_t qos;
    bool settled;
};
struct gb_mqtt_acks {
    /* private */
    struct gb_mqtt_ack_slot *ring; /* GB_MQTT_ACKS_MAX; memory is touched as it is used */
    uint64_t head, tail;           /* sequence numbers of this epoch */
    uint64_t *open;                /* bitmap: received, not acknowledged, this epoch */
    uint64_t *awaiting; /* bitmap: PUBREC sent, no PUBREL; survives a resumed reconnect */
};

enum gb_mqtt_receive {
    GB_MQTT_RECEIVE_NEW, /* a new message: `*seq` identifies its settlement */
    /* QoS 2 whose PUBREC was sent: PUBREC was appended again, no delivery */
    GB_MQTT_RECEIVE_DUPLICATE,
    GB_MQTT_RECEIVE_RESENT, /* same unacknowledged id on this connection: ignore */
};
enum { GB_MQTT_ACKS_MAX = 65536 };

struct gb_err gb_mqtt_acks_init(struct gb_mqtt_acks *a);
void gb_mqtt_acks_deinit(struct gb_mqtt_acks *a); /* accepts zeroed memory */
/* New connection: forgets the ring; `resumed` keeps the QoS 2 identifiers. */
void gb_mqtt_acks_reset(struct gb_mqtt_acks *a, bool resumed);

/* Whether a PUBLISH with this id is no new message: it is open, or its PUBREC was sent. */
bool gb_mqtt_acks_knows(const struct gb_mqtt_acks *a, uint16_t packet_id, uint8_t qos);
enum gb_mqtt_receive gb_mqtt_acks_receive(struct gb_mqtt_acks *a, uint16_t packet_id, uint8_t qos,
                                          uint64_t *seq, struct gb_str *tx);
/* Marks `seq` settled and appends every acknowledgement that is due now, in order. */
void gb_mqtt_acks_settle(struct gb_mqtt_acks *a, uint64_t seq, struct gb_str *tx);
/* PUBREL: appends PUBCOMP; an unknown id gets reason 0x92 on v5. */
void gb_mqtt_acks_release(struct gb_mqtt_acks *a, uint16_t packet_id, bool v5, struct gb_str *tx);

/* Messages received and not acknowledged. */
static inline uint32_t gb_mqtt_acks_unsettled(const struct gb_mqtt_acks *a)
{
    return (uint32_t)(a->tail - a->head);
}

#endif
