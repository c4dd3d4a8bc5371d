#ifndef GB_CORE_ROUTE_FLIGHT_H
#define GB_CORE_ROUTE_FLIGHT_H

#include "base/id.h"
#include "base/log.h"
#include "core/dlq_handover.h"
#include "core/route.h"

/* Inside of the route runner: one delivery in flight and the parts that move it (core/route*.c
 * only).
 * Owns:   the route owns its flights; a flight owns its delivery from emit to settlement.
 * Thread: loop thread only.
 * Errors: each step ends in exactly one of: the next step, gb_flight_ack, gb_flight_recover,
 *         gb_flight_terminal, gb_flight_hand_back, gb_flight_abandon. */

enum gb_flight_state {
    GB_FLIGHT_FREE = 0,
    GB_FLIGHT_SENDING,    /* a send is with the sender */
    GB_FLIGHT_WAITING,    /* timer: in-process retry of a send or a persist */
    GB_FLIGHT_DEPTH,      /* waits for the depth of its partitions */
    GB_FLIGHT_PERSISTING, /* records are with the store */
    GB_FLIGHT_DEAD_LETTER,
    GB_FLIGHT_SETTLING, /* the source is being told */
};

struct gb_flight_leg { /* one outbox record of a delivery */
    char id[GB_ID_HEX_SIZE];
    struct gb_str address;
};

struct gb_flight {
    struct gb_list_node node;
    struct gb_list_node depth_node; /* in partition->waiting */
    struct gb_route *route;
    enum gb_flight_state state;
    struct gb_delivery *delivery;
    struct gb_envelope *envelope;       /* the delivery's reference */
    uint64_t started_ns;                /* emit */
    uint64_t first_try_ns;              /* start of the first send or persist */
    uint32_t tries;                     /* sends or persists of this delivery */
    struct gb_err last;                 /* why the delivery is being handed back */
    size_t depth_leg;                   /* legs before this one were found under capacity */
    struct gb_timer timer;              /* retry delay, or the send's ceiling */
    struct gb_str address;              /* expanded, direct_hold */
    bool acked;                         /* the settlement in progress is an acknowledge */
    struct gb_envelope *acked_envelope; /* keeps the identity until the acknowledge succeeded */
    union {
        struct gb_send send;
        struct gb_outbox_persist persist;
        struct gb_dlq_handover handover;
    } work;                           /* one at a time, by state */
    struct gb_outbox_record *records; /* binding_count, shared_outbox */
    struct gb_flight_leg *legs;
};

struct gb_route_partition {
    struct gb_str name;
    struct gb_outbox_depth depth;
    struct gb_list waiting; /* flights */
    struct gb_route *route;
    struct gb_timer recheck; /* full: held deliveries ask again */
    uint64_t credits;        /* records that may follow before the depth is asked again */
    uint64_t under_until_ns; /* "under capacity" is believed until then; 0 = unknown */
    bool querying;
};
struct gb_route_target { /* a binding, resolved */
    char *id, *address, *session_id;
    struct gb_sender *sender;
    struct gb_route_partition *partition;
    bool placeholders, mqtt, hung;
};
struct gb_route_metrics {
    struct gb_metric *received, *sent, *errors, *retries, *budget_exhausted, *template_errors,
        *e2e_latency, *persist_latency, *duplicate_suppressed, *expired;
};

struct gb_route {
    struct gb_route_cfg cfg; /* strings and arrays replaced by the copies below */
    char *id, *instance_id, *source_session_id;
    struct gb_route_target *targets;
    size_t target_count;
    struct gb_route_partition *partitions;
    size_t partition_count;
    struct gb_flight *flights;
    struct gb_list free;
    struct gb_list busy;
    uint32_t in_flight;
    uint32_t depth_queries; /* with the store */
    bool started, stopping, cancelling, wedged, blocked, left_unsettled;
    struct gb_op *stop_op;
    struct gb_timer stop_timer;
    struct gb_task resume; /* tells the receiver that slots are free, once a turn */
    struct gb_route_metrics metrics;
    struct gb_log_limit log_limit, send_log_limit;
};

/* route.c */
/* The one writer of f->state; asserts the table of exits. */
void gb_flight_set_state(struct gb_flight *f, enum gb_flight_state next);
void gb_flight_release(struct gb_flight *f); /* back to the pool; the delivery is gone */
void gb_route_wedge(struct gb_route *r, struct gb_err cause);
/* Completes a stop once nothing is in flight and no query is out. */
void gb_route_maybe_stopped(struct gb_route *r);
/* route_direct.c */
void gb_flight_send(struct gb_flight *f);
void gb_flight_cancel_send(struct gb_flight *f);
/* route_outbox.c */
void gb_flight_store(struct gb_flight *f);
void gb_flight_cancel_store(struct gb_flight *f);
struct gb_err gb_route_outbox_init(struct gb_route *r);
void gb_route_outbox_deinit(struct gb_route *r);
/* route_settle.c */
void gb_flight_ack(struct gb_flight *f);
void gb_flight_abandon(struct gb_flight *f);
/* Spec 02 §4.3: counts, caps, charges, hands back. */
void gb_flight_recover(struct gb_flight *f, struct gb_err cause);
/* Back to the source without a charge (spec 02 §5.3). */
void gb_flight_hand_back(struct gb_flight *f, struct gb_err cause, int64_t delay_ns);
/* Terminal outcome of a permanent, rejected or expired failure (spec 02 §4.2). `target` NULL before
 * dispatch. */
void gb_flight_terminal(struct gb_flight *f, const struct gb_route_target *target,
                        struct gb_err cause);
/* Expands and checks the address of one plan (spec 02 §8.3). */
struct gb_err gb_flight_address(struct gb_flight *f, const struct gb_route_target *t,
                                struct gb_str *scratch, struct gb_bytes *out);

#endif
