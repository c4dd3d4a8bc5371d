#ifndef GB_CORE_DRAIN_BATCH_H
#define GB_CORE_DRAIN_BATCH_H

#include "base/log.h"
#include "core/dlq_handover.h"
#include "core/drainer.h"

/* Inside of the drainer: one claimed batch on its way (spec 02 §7.3 items 6-8). core/drain*.c only.
 * Owns:   the claimed batch and one job for each record; borrows the environment.
 * Thread: loop thread only.
 * Errors: gb_drain_batch_new: GB_UNAVAILABLE; then the records stay claimed until reclaimed.
 *         Everything else is in the result. */

struct gb_drain_metrics { /* of one target */
    struct gb_metric *sent, *completions, *failures, *deferred, *replays, *duplicate_risk,
        *expired_before_send, *expired;
};
struct gb_drain_target {
    struct gb_drainer_target cfg; /* strings owned by the drainer */
    char *route_id, *binding_id;
    struct gb_drain_metrics metrics;
    struct gb_log_limit log_limit;
};
struct gb_drain_env {
    struct gb_reactor *reactor;
    struct gb_metrics *registry;
    struct gb_outbox *outbox;
    struct gb_dlq *dlq;
    struct gb_authority authority;
    struct gb_drain_target *targets;
    size_t target_count;
    struct gb_bytes partition, session_id;
    const char *instance_id;
    uint32_t groups_max; /* records with senders at a time */
    struct gb_drain_policy policy;
};
struct gb_drain_result {
    uint64_t claimed, sent, released, deferred;
    bool stale; /* STALE_FENCING_TOKEN was seen: wait for a new lease */
    /* over its budget by 30 s, or a send over its ceiling (spec 02 §6.1): no second call */
    bool stalled;
    bool left; /* some records stayed claimed */
};
typedef void gb_drain_done_fn(void *arg, const struct gb_drain_result *result);

struct gb_drain_batch;
struct gb_err gb_drain_batch_new(const struct gb_drain_env *env, const struct gb_token *token,
                                 struct gb_outbox_batch *take, struct gb_drain_batch **out);
/* Starts the sends; `done` runs once, deferred, when every record reached its end; then free the
 * batch. */
void gb_drain_batch_start(struct gb_drain_batch *b, gb_drain_done_fn *done, void *arg);
/* No new sends; what has not started is released. */
void gb_drain_batch_stop(struct gb_drain_batch *b);
/* The same, and what is with a sender or the DLQ is cancelled, then released. */
void gb_drain_batch_cancel(struct gb_drain_batch *b);
/* Every record reached its end: only then the batch may be freed. False after `stalled` until the
 * last answer came. */
bool gb_drain_batch_ended(const struct gb_drain_batch *b);
/* Stops the timers of a batch that can't be freed, because operations are still out; its memory
 * stays. */
void gb_drain_batch_leave(struct gb_drain_batch *b);
void gb_drain_batch_free(struct gb_drain_batch *b);

#endif
