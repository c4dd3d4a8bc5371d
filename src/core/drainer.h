#ifndef GB_CORE_DRAINER_H
#define GB_CORE_DRAINER_H

#include "base/metrics.h"
#include "domain/policy.h"
#include "ports/authority.h"
#include "ports/dlq.h"
#include "ports/outbox.h"
#include "ports/sender.h"

/* Drains one outbox partition (spec 02 §7.3-7.7): claim, group by ordering key, send, complete or
 * release.
 * Owns:   its batch; borrows the configuration's parts until freed; strings are copied.
 * Thread: loop thread only.
 * Errors: gb_drainer_new: GB_UNAVAILABLE, GB_INVALID_CONFIG. Run-time faults go to metrics, log and
 *         `stalled`. */
struct gb_drainer;

struct gb_drainer_target { /* one per binding whose records live in this partition */
    const char *route_id;
    const char *binding_id;
    struct gb_sender *sender;
    struct gb_policy policy; /* of that route */
};
struct gb_drainer_cfg {
    const char *partition;
    const char *session_id; /* metric dimension; "" for BINDING# partitions */
    const char *instance_id;
    struct gb_drain_policy policy;
    const struct gb_drainer_target *targets;
    size_t target_count;
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    struct gb_outbox *outbox;
    struct gb_dlq *dlq; /* may be NULL */
    struct gb_authority authority;
    /* A batch overran its budget by 30 s (spec 02 §7.4) or a sender its ceiling (§6.1): the process
     * must end. */
    void (*stalled)(void *arg, const char *partition, struct gb_err cause);
    void *arg;
};

struct gb_err gb_drainer_new(const struct gb_drainer_cfg *cfg, struct gb_drainer **out);
void gb_drainer_start(struct gb_drainer *d);
/* New records are durable: the next cycle comes no later than the strategy's shortest interval
 * after the last one. */
void gb_drainer_wake(struct gb_drainer *d);
/* No claim under way and no record with a sender. */
bool gb_drainer_idle(const struct gb_drainer *d);
/* One final drain if it drained before, holds authority and the destination is ready, at most
 * max_timeout and op.deadline_ns; then completes. GB_TIMEOUT when that was cut short; what a
 * destination refuses meanwhile waits in the outbox and is no unclean stop. */
void gb_drainer_stop(struct gb_drainer *d, struct gb_op *op, gb_done_fn *done, void *arg);
/* An earlier deadline for a stop under way. */
void gb_drainer_hurry(struct gb_drainer *d, uint64_t deadline_ns);
/* Never started, or stop completed; NULL ok. A stalled drainer whose operations are still out keeps
 * its memory. */
void gb_drainer_free(struct gb_drainer *d);

/* The local token of a standalone bridge (spec 02 §2.4): version = stored mark + 1 at every start.
 * gb_local_authority_start reads the mark (op result: GB_OK or the store's error); until then there
 * is no authority. */
struct gb_local_authority {
    /* private */
    struct gb_outbox_stats stats;
    struct gb_str owner, partition;
    uint64_t version;
    struct gb_op *op;
};
struct gb_local_authority_cfg { /* texts are copied */
    struct gb_reactor *reactor;
    struct gb_outbox *outbox;
    const char *owner; /* instance_id#<boot-nonce> */
    const char *partition;
};
void gb_local_authority_start(struct gb_local_authority *a,
                              const struct gb_local_authority_cfg *cfg, struct gb_op *op,
                              gb_done_fn *done, void *arg);
struct gb_authority gb_local_authority(struct gb_local_authority *a);
void gb_local_authority_deinit(struct gb_local_authority *a);

#endif
