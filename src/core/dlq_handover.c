#include "core/dlq_handover.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/message_log.h"

/* Spec 02 §10: 3 tries, waits 500 ms x2 up to 5 s, 10 s in all. */
enum { TRIES_MAX = 3 };
static const uint64_t first_wait_ns = 500 * 1000000ull;
static const uint64_t wait_max_ns = 5 * 1000000000ull;
static const uint64_t total_ns = 10 * 1000000000ull;

static void write_done(struct gb_op *op, void *arg);

static void log_written(const struct gb_dlq_handover *h)
{
    struct gb_message_log m;
    gb_message_log_set(&m, h->entry->envelope);
    GB_LOG(GB_LOG_WARN, "message written to the DLQ", gb_lf_str("route_id", h->entry->route_id),
           gb_lf_str("entry_id", h->entry->id), GB_LF_MESSAGE(m),
           gb_lf_str("category", h->category), gb_lf_str("error", h->entry->last_error),
           gb_lf_str("error_code", h->entry->error_code));
}

static void log_failed(const struct gb_dlq_handover *h, const struct gb_err *err)
{
    struct gb_message_log m;
    gb_message_log_set(&m, h->entry->envelope);
    GB_LOG(GB_LOG_WARN, "DLQ write failed; the message stays with its source",
           gb_lf_str("route_id", h->entry->route_id), gb_lf_str("entry_id", h->entry->id),
           GB_LF_MESSAGE(m), gb_lf_int("tries", h->tries), gb_lf_err(err));
}

static void finish(struct gb_dlq_handover *h, struct gb_err result)
{
    const char *route_id = h->entry->route_id;
    gb_metric_time(gb_metrics_get(h->metrics, GB_METRIC_TIMER, "DLQWriteHold", NULL, 0),
                   (int64_t)(gb_reactor_now_ns(h->reactor) - h->started_ns));
    if (result.code == GB_DUPLICATE_RECORD) {
        gb_metric_add(
            gb_metrics_get(h->metrics, GB_METRIC_COUNTER, "DLQDuplicateSuppressed", NULL, 0), 1);
        result = gb_ok();
    } else if (result.code == GB_OK) {
        gb_metric_add(gb_metrics_get(h->metrics, GB_METRIC_COUNTER, "DLQEntries",
                                     GB_DIMS({"route_id", route_id}, {"category", h->category})),
                      1);
        log_written(h);
    } else if (result.code != GB_CANCELLED) {
        gb_metric_add(gb_metrics_get(h->metrics, GB_METRIC_COUNTER, "DLQWriteFailures", NULL, 0),
                      1);
        log_failed(h, &result);
    }
    gb_timer_deinit(&h->timer);
    gb_dlq_entry_free(h->entry);
    h->entry = NULL;
    gb_op_finish(&h->op, result);
}

static void try_write(struct gb_dlq_handover *h)
{
    h->tries++;
    memset(&h->write, 0, sizeof h->write);
    h->write.entry = h->entry;
    h->write.op.deadline_ns = h->started_ns + total_ns;
    h->dlq->ops->write(h->dlq, &h->write, write_done, h);
}

static void timer_fired(struct gb_timer *t)
{
    try_write(GB_CONTAINER_OF(t, struct gb_dlq_handover, timer));
}

static void write_done(struct gb_op *op, void *arg)
{
    struct gb_dlq_handover *h = arg;
    bool settled = op->result.code == GB_OK || op->result.code == GB_DUPLICATE_RECORD ||
                   op->result.code == GB_CANCELLED;
    uint64_t wait_ns = first_wait_ns << (h->tries - 1);
    if (wait_ns > wait_max_ns) wait_ns = wait_max_ns;
    uint64_t next_ns = gb_reactor_now_ns(h->reactor) + wait_ns;
    if (h->op.state == GB_OP_CANCELLING && !settled) {
        finish(h, (struct gb_err){.code = GB_CANCELLED});
    } else if (settled || h->tries >= TRIES_MAX || next_ns >= h->started_ns + total_ns) {
        finish(h, op->result);
    } else {
        gb_timer_start(&h->timer, next_ns);
    }
}

static void cancel(struct gb_op *op)
{
    struct gb_dlq_handover *h = GB_CONTAINER_OF(op, struct gb_dlq_handover, op);
    if (gb_timer_running(&h->timer)) {
        finish(h, (struct gb_err){.code = GB_CANCELLED});
    } else {
        gb_op_cancel(&h->write.op); /* write_done ends the hand-over */
    }
}

void gb_dlq_handover_start(struct gb_dlq_handover *h, const struct gb_dlq_handover_cfg *cfg,
                           struct gb_dlq_entry *take_entry, gb_done_fn *done, void *arg)
{
    h->dlq = cfg->dlq;
    h->metrics = cfg->metrics;
    h->reactor = cfg->reactor;
    h->entry = take_entry;
    h->tries = 0;
    (void)snprintf(h->category, sizeof h->category, "%s", cfg->category);
    h->started_ns = gb_reactor_now_ns(h->reactor);
    gb_op_start(&h->op, h->reactor, done, arg, cancel, h);
    struct gb_err err = gb_timer_init(&h->timer, h->reactor, timer_fired);
    if (gb_failed(err)) {
        finish(h, err);
        return;
    }
    try_write(h);
}

void gb_dlq_handover_deinit(struct gb_dlq_handover *h)
{
    GB_ASSERT(!gb_op_pending(&h->op));
    gb_timer_deinit(&h->timer);
}
