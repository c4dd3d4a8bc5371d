#ifndef GB_CORE_DLQ_HANDOVER_H
#define GB_CORE_DLQ_HANDOVER_H

#include "base/metrics.h"
#include "ports/dlq.h"

/* Synchronous hand-over of one entry (spec 02 §10): up to 3 tries, waits 500 ms doubling up to 5 s,
 * 10 s in all. A duplicate is success (`DLQDuplicateSuppressed`). Counts DLQEntries (route_id,
 * category word), DLQWriteFailures, DLQWriteHold.
 * Owns:   the struct is embedded by the caller; `entry` is taken over and freed when done.
 * Thread: loop thread only.
 * Errors: op.result: GB_OK when the store confirmed; otherwise the last store error, GB_TIMEOUT,
 *         GB_CANCELLED. */
struct gb_dlq_handover {
    struct gb_op op;
    /* private */
    struct gb_dlq *dlq;
    struct gb_metrics *metrics;
    struct gb_dlq_entry *entry;
    char category[32];
    struct gb_dlq_write write;
    struct gb_timer timer;
    struct gb_reactor *reactor;
    uint64_t started_ns;
    uint32_t tries;
};
struct gb_dlq_handover_cfg {
    struct gb_reactor *reactor;
    struct gb_dlq *dlq;
    struct gb_metrics *metrics;
    const char *category; /* event word of spec 02 §4.2: permanent rejected max_retries ... */
};
void gb_dlq_handover_start(struct gb_dlq_handover *h, const struct gb_dlq_handover_cfg *cfg,
                           struct gb_dlq_entry *take_entry, gb_done_fn *done, void *arg);
/* Only when not pending; accepts zeroed memory. */
void gb_dlq_handover_deinit(struct gb_dlq_handover *h);

#endif
