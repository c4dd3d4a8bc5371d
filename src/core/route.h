#ifndef GB_CORE_ROUTE_H
#define GB_CORE_ROUTE_H

#include "base/metrics.h"
#include "core/ledger.h"
#include "domain/policy.h"
#include "ports/dlq.h"
#include "ports/outbox.h"
#include "ports/receiver.h"
#include "ports/sender.h"

/* One route: takes deliveries from its receiver, runs the pipeline of spec 02 §3 (sanitise, expiry,
 * resolve, dispatch, settle exactly once) as direct_hold (§6) or as the ingress side of
 * shared_outbox (§7.1).
 * Owns:   its deliveries in flight (a fixed pool of policy.max_in_flight); borrows everything in
 *         the configuration until it is freed; strings are copied.
 * Thread: loop thread only.
 * Errors: gb_route_new: GB_UNAVAILABLE, GB_INVALID_CONFIG (no outbox for shared_outbox, no
 *         binding). */
struct gb_route;

struct gb_route_binding {
    const char *id;
    struct gb_sender *sender;
    const char *address; /* template (domain/address.h) */
    /* Effective session (spec 02 §2.4), NULL or "": partition BINDING#<id>. */
    const char *session_id;
    bool mqtt; /* destination rule of spec 02 §8.3 for the expanded address */
};
struct gb_route_cfg {
    const char *id;
    const char *instance_id;
    const char *source_session_id; /* for DLQ entries; may be NULL */
    enum gb_delivery_mode delivery_mode;
    bool every_binding; /* fan_out or resolver `all`; else the first binding */
    bool trust_bridge_headers;
    struct gb_policy policy;
    const struct gb_route_binding *bindings;
    size_t binding_count;
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    struct gb_receiver *receiver;
    struct gb_outbox *outbox; /* shared_outbox */
    struct gb_dlq *dlq;       /* NULL: every dlq action becomes drop with a metric */
    struct gb_ledger *ledger;
    /* Records of this partition became durable: lets the local drainer run soon. May be NULL. */
    void (*persisted)(void *arg, struct gb_bytes partition);
    /* The route is wedged (spec 02 §11): intake has stopped, the process must end. */
    void (*wedged)(void *arg, const char *route_id, struct gb_err cause);
    void *arg;
};
struct gb_route_state {
    uint32_t in_flight;
    bool started, stopping, wedged;
};

struct gb_err gb_route_new(const struct gb_route_cfg *cfg, struct gb_route **out);
void gb_route_start(struct gb_route *r); /* starts the receiver with this route as its sink */
/* Stops intake at once; deliveries in flight settle until op.deadline_ns, then the rest is
 * cancelled and stays unsettled at the source (cancellation rule). Completes when nothing is in
 * flight: GB_OK when all settled, GB_TIMEOUT when something had to be cancelled. */
void gb_route_stop(struct gb_route *r, struct gb_op *op, gb_done_fn *done, void *arg);
/* An earlier deadline for a stop under way. */
void gb_route_hurry(struct gb_route *r, uint64_t deadline_ns);
void gb_route_free(struct gb_route *r); /* never started, or stop completed; NULL ok */
void gb_route_get_state(const struct gb_route *r, struct gb_route_state *out);

#endif
