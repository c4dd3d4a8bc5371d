#ifndef GB_PORTS_RECEIVER_H
#define GB_PORTS_RECEIVER_H

#include "base/op.h"
#include "domain/envelope.h"

/* A source of messages and the messages it hands over (spec 02 §3).
 * Owns:   a taken delivery belongs to the route until it calls exactly one of its ops; then the
 *         adapter frees it once `settled` ran. delivery->envelope holds one reference that the
 *         route may take over or replace.
 * Thread: loop thread only.
 * Errors: see each member. */

struct gb_delivery;
/* What became of the settlement: GB_OK (source acknowledged or took it back), or the failure. Runs
 * deferred, once; the delivery is gone afterwards. */
typedef void gb_settled_fn(void *arg, struct gb_err result);

struct gb_delivery_ops {
    /* Acknowledge at the source. */
    void (*ack)(struct gb_delivery *d, gb_settled_fn *settled, void *arg);
    /* Hand back after `delay_ns`. GB_NOT_SUPPORTED when the source cannot take it back (then
     * nothing happened and the delivery still waits for an ack). `settled` may be NULL. */
    void (*retry)(struct gb_delivery *d, int64_t delay_ns, gb_settled_fn *settled, void *arg);
    /* The bridge cancelled its own work (spec 02 §3, cancellation rule): stays unsettled at the
     * source. */
    void (*abandon)(struct gb_delivery *d);
};
struct gb_delivery {
    const struct gb_delivery_ops *ops;
    struct gb_envelope *envelope;
    unsigned derived;       /* gb_derived bits (domain/reserved.h) */
    uint32_t receive_count; /* native, 1-based; 0 = the source has none */
    bool can_retry;         /* false: QoS 0, ephemeral session */
    bool source_counts;     /* SQS */
};

enum gb_emit {
    GB_EMIT_TAKEN,   /* the route owns the delivery */
    GB_EMIT_FULL,    /* no slot: keep it; the route calls `resume` when one is free */
    GB_EMIT_REFUSED, /* the route takes nothing any more (spec 03 §5.3) */
};
struct gb_sink {
    /* The route may settle the delivery from inside this call; `settled` still runs deferred. */
    enum gb_emit (*emit)(void *arg, struct gb_delivery *d);
    void *arg;
};

struct gb_receiver;
struct gb_receiver_ops {
    /* From now on `sink` gets deliveries, never from inside this call. */
    void (*start)(struct gb_receiver *r, struct gb_sink sink);
    /* A slot is free again after GB_EMIT_FULL. */
    void (*resume)(struct gb_receiver *r);
    /* No emit after this returns; deliveries already taken can still be settled. */
    void (*stop)(struct gb_receiver *r);
};
struct gb_receiver {
    const struct gb_receiver_ops *ops;
    const char *id;
    bool durable; /* redelivers what was not acknowledged */
};

#endif
