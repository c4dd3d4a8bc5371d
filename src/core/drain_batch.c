#include "core/drain_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "core/dead_letter.h"
#include "core/message_log.h"
#include "core/send_ceiling.h"

enum job_state { JOB_WAITING = 0, JOB_SENDING, JOB_DEAD_LETTER, JOB_SETTLING, JOB_ENDED };

struct job {
    struct gb_list_node node; /* in ready while its group's turn has come */
    struct gb_drain_batch *batch;
    const struct gb_outbox_record *record;
    struct gb_drain_target *target;
    struct job *next_in_group;
    enum job_state state;
    bool sent;
    uint64_t hung_at_ns; /* while SENDING: when the sender counts as hung (spec 02 §6.1) */
    union {
        struct gb_send send;
        struct gb_outbox_settle settle;
        struct gb_dlq_handover handover;
    } work;
};

struct gb_drain_batch {
    struct gb_drain_env env;
    struct gb_token token;
    struct gb_outbox_batch *records;
    struct job *jobs;
    struct gb_list ready;
    size_t active; /* jobs with a sender or the DLQ */
    size_t ended;
    uint64_t longest_group;
    bool stopping, expired_budget;
    bool starting; /* start_ready is running: nested calls leave the rest to it */
    struct gb_timer budget;
    struct gb_timer ceiling; /* one for all sends; finds the overdue by looking at them */
    struct gb_task finished;
    struct gb_drain_result result;
    gb_drain_done_fn *done;
    void *arg;
};

static void start_ready(struct gb_drain_batch *b);
static void settle_done(struct gb_op *op, void *arg);

static void job_set_state(struct job *j, enum job_state next)
{
    GB_ASSERT(next > j->state);
    j->state = next;
}

static void end_job(struct job *j)
{
    struct gb_drain_batch *b = j->batch;
    job_set_state(j, JOB_ENDED);
    b->ended++;
    if (b->ended == b->records->count && !b->result.stalled) {
        gb_timer_stop(&b->budget);
        gb_timer_stop(&b->ceiling);
        gb_reactor_defer(b->env.reactor, &b->finished);
    }
}

static uint64_t settle_timeout_ns(const struct job *j)
{
    int64_t t = j->target == NULL ? 5 * GB_SEC : j->target->cfg.policy.send_timeout_ns;
    return (uint64_t)(t < 5 * GB_SEC ? t : 5 * GB_SEC);
}

static void settle(struct job *j, enum gb_outbox_settle_kind kind)
{
    struct gb_drain_batch *b = j->batch;
    job_set_state(j, JOB_SETTLING);
    memset(&j->work.settle, 0, sizeof j->work.settle);
    j->work.settle.kind = kind;
    j->work.settle.partition = b->env.partition;
    j->work.settle.id = j->record->id;
    j->work.settle.token = b->token;
    j->work.settle.op.deadline_ns = gb_reactor_now_ns(b->env.reactor) + settle_timeout_ns(j);
    b->env.outbox->ops->settle(b->env.outbox, &j->work.settle, settle_done, j);
}

/* First failure stops its group: nothing may overtake (spec 02 §7.3 item 6). */
static void release_from(struct job *j)
{
    for (; j != NULL; j = j->next_in_group) {
        j->batch->result.released++;
        settle(j, GB_OUTBOX_RELEASE);
    }
}

static void settle_done(struct gb_op *op, void *arg)
{
    struct job *j = arg;
    struct gb_drain_batch *b = j->batch;
    struct gb_err err = op->result;
    bool complete = j->work.settle.kind == GB_OUTBOX_COMPLETE;
    if (err.code == GB_OK) {
        if (complete && j->target != NULL) gb_metric_add(j->target->metrics.completions, 1);
    } else {
        b->result.left = true;
        if (err.code == GB_STALE_FENCING_TOKEN) {
            b->result.stale = true;
            gb_drain_batch_stop(b);
        }
        if (j->sent && j->target != NULL) gb_metric_add(j->target->metrics.duplicate_risk, 1);
        if (j->target != NULL) gb_metric_add(j->target->metrics.failures, 1);
        struct gb_message_log m;
        gb_message_log_set(&m, j->record->envelope);
        GB_LOG(GB_LOG_WARN,
               j->sent ? "record was sent but not completed; it may be sent twice"
                       : "outbox record stays claimed until it is reclaimed",
               gb_lf_str("partition", (const char *)b->env.partition.data), GB_LF_MESSAGE(m),
               gb_lf_err(&err));
    }
    end_job(j);
}

static void group_goes_on(struct job *j)
{
    if (j->next_in_group != NULL) gb_list_push(&j->batch->ready, &j->next_in_group->node);
    start_ready(j->batch);
}

/* The record's work is done: complete it, and let its group go on at once (the order at the
 * destination is kept by the send, not by the complete). */
static void complete(struct job *j)
{
    settle(j, GB_OUTBOX_COMPLETE);
    group_goes_on(j);
}

static void give_up(struct job *j)
{
    release_from(j);
    start_ready(j->batch);
}

static void handover_done(struct gb_op *op, void *arg)
{
    struct job *j = arg;
    struct gb_err err = op->result;
    j->batch->active--;
    gb_dlq_handover_deinit(&j->work.handover);
    if (err.code == GB_OK) {
        complete(j);
    } else {
        give_up(j);
    }
}

enum { ID_TEXT_MAX = 256 };

static void copy_id(char out[ID_TEXT_MAX], struct gb_bytes id)
{
    size_t n = id.size < ID_TEXT_MAX ? id.size : ID_TEXT_MAX - 1;
    if (n > 0) memcpy(out, id.data, n);
    out[n] = '\0';
}

static void dead_letter(struct job *j, struct gb_err cause, const char *word)
{
    struct gb_drain_batch *b = j->batch;
    char route_id[ID_TEXT_MAX], binding_id[ID_TEXT_MAX]; /* of the record: its target may be gone */
    copy_id(route_id, j->record->route_id);
    copy_id(binding_id, j->record->binding_id);
    struct gb_dead_letter d = {
        .envelope = j->record->envelope,
        .route_id = route_id,
        .binding_id = binding_id,
        .address = j->record->address,
        .session_id = j->record->session_id,
        .source_id = b->env.instance_id,
        .cause = &cause,
        .attempts = j->record->replay_count,
        .now_ms = gb_reactor_wall_ms(b->env.reactor),
    };
    struct gb_dlq_entry *entry = NULL;
    struct gb_err err = gb_dead_letter_build(&d, &entry);
    if (gb_failed(err)) {
        give_up(j);
        return;
    }
    job_set_state(j, JOB_DEAD_LETTER);
    b->active++;
    memset(&j->work.handover, 0, sizeof j->work.handover);
    gb_dlq_handover_start(&j->work.handover,
                          &(struct gb_dlq_handover_cfg){.reactor = b->env.reactor,
                                                        .dlq = b->env.dlq,
                                                        .metrics = b->env.registry,
                                                        .category = word},
                          entry, handover_done, j);
}

/* Terminal outcome by policy (spec 02 §4.2), then complete. */
static void terminal(struct job *j, struct gb_err cause, const char *word)
{
    struct gb_drain_batch *b = j->batch;
    const struct gb_policy *p = &j->target->cfg.policy;
    enum gb_terminal_action action =
        cause.class_ == GB_CLASS_EXPIRED ? p->on_expired : p->on_permanent_failure;
    if (b->env.dlq != NULL && action == GB_ACTION_DLQ) {
        dead_letter(j, cause, word);
        return;
    }
    if (cause.class_ == GB_CLASS_EXPIRED) {
        gb_metric_add(j->target->metrics.expired, 1);
    } else {
        gb_metric_add(gb_metrics_get(b->env.registry, GB_METRIC_COUNTER, "MessagesDropped",
                                     GB_DIMS({"route_id", j->target->route_id}, {"reason", word})),
                      1);
        struct gb_message_log m;
        gb_message_log_set(&m, j->record->envelope);
        GB_LOG(GB_LOG_ERROR, "outbox record dropped by policy",
               gb_lf_str("route_id", j->target->route_id), GB_LF_MESSAGE(m),
               gb_lf_str("reason", word), gb_lf_err(&cause));
    }
    complete(j);
}

/* One line for each send at debug; that of the delivery has the same correlation id. */
static void log_send(const struct job *j, const struct gb_err *err)
{
    struct gb_message_log m;
    if (!gb_log_enabled(GB_LOG_DEBUG)) return;
    gb_message_log_set(&m, j->record->envelope);
    if (err == NULL) {
        GB_LOG(GB_LOG_DEBUG, "outbox record sent", gb_lf_str("route_id", j->target->route_id),
               GB_LF_MESSAGE(m), gb_lf_int("replay_count", (int64_t)j->record->replay_count));
    } else {
        GB_LOG(GB_LOG_DEBUG, "outbox record released", gb_lf_str("route_id", j->target->route_id),
               GB_LF_MESSAGE(m), gb_lf_err(err));
    }
}

/* Why nothing arrives must be in the log at every level; once in 10 s is enough. */
static void warn_failed(struct job *j, const struct gb_err *err)
{
    struct gb_message_log m;
    uint64_t suppressed = 0;
    if (err->code == GB_CANCELLED ||
        !gb_log_allow(&j->target->log_limit, gb_reactor_now_ns(j->batch->env.reactor), 10 * GB_SEC,
                      &suppressed)) {
        return;
    }
    gb_message_log_set(&m, j->record->envelope);
    GB_LOG(GB_LOG_WARN, "send failed; the record stays in the outbox and is tried again",
           gb_lf_str("route_id", j->target->route_id),
           gb_lf_str("binding_id", j->target->binding_id), GB_LF_MESSAGE(m), gb_lf_err(err),
           gb_lf_int("more_since_last_line", (int64_t)suppressed));
}

static void send_done(struct gb_op *op, void *arg)
{
    struct job *j = arg;
    struct gb_drain_batch *b = j->batch;
    struct gb_err err = op->result;
    b->active--;
    if (err.code == GB_OK) {
        j->sent = true;
        b->result.sent++;
        gb_metric_add(j->target->metrics.sent, 1);
        log_send(j, NULL);
        complete(j);
        return;
    }
    gb_metric_add(j->target->metrics.failures, 1);
    if (err.code == GB_CANCELLED || gb_err_is_transient(&err)) {
        log_send(j, &err);
        warn_failed(j, &err);
        give_up(j);
    } else {
        terminal(j, err, gb_dead_letter_word(&err));
    }
}

/* Both limits must be spent (spec 02 §7.5). */
static bool is_spent(const struct gb_outbox_record *r, const struct gb_policy *p, int64_t now_ms)
{
    return r->replay_count > p->max_replay_attempts && r->first_attempted_at_ms > 0 &&
           now_ms - r->first_attempted_at_ms >= p->replay_budget_ns / GB_MS;
}

/* The document no longer has the binding. The record waits as long as a poisoned one would, so that
 * the old document can come back; then the DLQ takes it, or such records would stand before all
 * others for ever. */
static void unknown_binding(struct job *j, int64_t now_ms)
{
    struct gb_drain_batch *b = j->batch;
    const struct gb_policy policy = gb_policy_default();
    struct gb_err err =
        gb_err(GB_NOT_FOUND, "the document has no binding %.*s on route %.*s any more",
               (int)j->record->binding_id.size, (const char *)j->record->binding_id.data,
               (int)j->record->route_id.size, (const char *)j->record->route_id.data);
    struct gb_message_log m;
    gb_message_log_set(&m, j->record->envelope);
    bool move = b->env.dlq != NULL && is_spent(j->record, &policy, now_ms);
    GB_LOG(GB_LOG_ERROR,
           move ? "outbox record of an unknown binding moves to the DLQ"
                : "outbox record of an unknown binding stays in the outbox",
           gb_lf_str("partition", (const char *)b->env.partition.data), GB_LF_MESSAGE(m),
           gb_lf_err(&err));
    if (move) {
        dead_letter(j, err, "permanent");
    } else {
        give_up(j);
    }
}

static bool still_owner(const struct gb_drain_batch *b)
{
    struct gb_token now;
    return b->env.authority.current(b->env.authority.ctx, &now) && now.version == b->token.version;
}

static void start_job(struct job *j)
{
    struct gb_drain_batch *b = j->batch;
    int64_t now_ms = gb_reactor_wall_ms(b->env.reactor);
    if (j->target == NULL) {
        unknown_binding(j, now_ms);
        return;
    }
    if (j->record->expires_at_ms > 0 && now_ms >= j->record->expires_at_ms) {
        gb_metric_add(j->target->metrics.expired_before_send, 1);
        terminal(j, gb_err(GB_MESSAGE_EXPIRED, "the message expired in the outbox"), "expired");
        return;
    }
    if (is_spent(j->record, &j->target->cfg.policy, now_ms)) {
        terminal(j,
                 gb_err(GB_POISON_MESSAGE,
                        "claimed %u times without success within the replay budget",
                        j->record->replay_count),
                 "poison");
        return;
    }
    if (!still_owner(b)) {
        b->result.stale = true;
        gb_drain_batch_stop(b);
        give_up(j);
        return;
    }
    job_set_state(j, JOB_SENDING);
    b->active++;
    memset(&j->work.send, 0, sizeof j->work.send);
    j->work.send.envelope = j->record->envelope;
    j->work.send.address = j->record->address;
    j->work.send.batch = true;
    uint64_t now_ns = gb_reactor_now_ns(b->env.reactor);
    j->work.send.op.deadline_ns = now_ns + (uint64_t)j->target->cfg.policy.send_timeout_ns;
    j->hung_at_ns = now_ns + gb_send_ceiling_ns(&j->target->cfg.policy);
    if (!gb_timer_running(&b->ceiling)) gb_timer_start(&b->ceiling, j->hung_at_ns);
    j->target->cfg.sender->ops->send(j->target->cfg.sender, &j->work.send, send_done, j);
}

static void start_ready(struct gb_drain_batch *b)
{
    if (b->starting) return;
    b->starting = true;
    while (b->active < b->env.groups_max || b->stopping || b->expired_budget) {
        struct gb_list_node *n = gb_list_pop(&b->ready);
        if (n == NULL) break;
        struct job *j = GB_CONTAINER_OF(n, struct job, node);
        if (b->stopping || b->expired_budget) {
            for (struct job *k = j; b->expired_budget && k != NULL; k = k->next_in_group) {
                b->result.deferred++;
                if (k->target != NULL) gb_metric_add(k->target->metrics.deferred, 1);
            }
            release_from(j);
        } else {
            start_job(j);
        }
    }
    b->starting = false;
}

void gb_drain_batch_stop(struct gb_drain_batch *b)
{
    if (b->stopping) return;
    b->stopping = true;
    start_ready(b);
}

void gb_drain_batch_cancel(struct gb_drain_batch *b)
{
    gb_drain_batch_stop(b);
    for (size_t i = 0; i < b->records->count; i++) {
        struct job *j = &b->jobs[i];
        if (j->state == JOB_SENDING) gb_op_cancel(&j->work.send.op);
        if (j->state == JOB_DEAD_LETTER) gb_op_cancel(&j->work.handover.op);
    }
}

static void finished(struct gb_task *t)
{
    struct gb_drain_batch *b = GB_CONTAINER_OF(t, struct gb_drain_batch, finished);
    b->done(b->arg, &b->result);
}

/* The batch is abandoned: `done` runs now, not when its last record ends; nothing more is sent. */
static void stall(struct gb_drain_batch *b)
{
    gb_drain_batch_stop(b);
    b->result.stalled = true;
    gb_timer_stop(&b->budget);
    gb_timer_stop(&b->ceiling);
    gb_reactor_defer(b->env.reactor, &b->finished);
}

/* First the working budget: what has not started is deferred. Then 30 s more: the batch is
 * abandoned (spec 02 §7.4). */
static void budget_over(struct gb_timer *t)
{
    struct gb_drain_batch *b = GB_CONTAINER_OF(t, struct gb_drain_batch, budget);
    if (!b->expired_budget) {
        b->expired_budget = true;
        gb_timer_start(&b->budget, gb_reactor_now_ns(b->env.reactor) + 30 * (uint64_t)GB_SEC);
        start_ready(b);
        return;
    }
    stall(b);
}

/* A sender that ignores its deadline (spec 02 §6.1). A result that arrived together with the
 * ceiling wins: its op is finished, only `done` is still to run. */
static void ceiling_reached(struct gb_timer *t)
{
    struct gb_drain_batch *b = GB_CONTAINER_OF(t, struct gb_drain_batch, ceiling);
    uint64_t now_ns = gb_reactor_now_ns(b->env.reactor);
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < b->records->count; i++) {
        const struct job *j = &b->jobs[i];
        if (j->state != JOB_SENDING || !gb_op_pending(&j->work.send.op)) continue;
        if (j->hung_at_ns <= now_ns) {
            GB_LOG(GB_LOG_ERROR, "a sender did not answer within its ceiling",
                   gb_lf_str("route_id", j->target->route_id),
                   gb_lf_str("binding_id", j->target->binding_id));
            stall(b);
            return;
        }
        if (j->hung_at_ns < next_ns) next_ns = j->hung_at_ns;
    }
    if (next_ns < UINT64_MAX) gb_timer_start(&b->ceiling, next_ns);
}

static struct gb_drain_target *find_target(const struct gb_drain_env *env,
                                           const struct gb_outbox_record *r)
{
    for (size_t i = 0; i < env->target_count; i++) {
        struct gb_drain_target *t = &env->targets[i];
        if (gb_bytes_equal_c(r->binding_id, t->binding_id) &&
            gb_bytes_equal_c(r->route_id, t->route_id))
            return t;
    }
    return NULL;
}

/* Same ordering key strictly in claim order, keyless records singly (spec 02 §7.3 item 6). */
static struct gb_err make_groups(struct gb_drain_batch *b)
{
    struct gb_map last_of_key = {0};
    struct gb_map size_of_key = {0};
    struct gb_err err = gb_ok();
    b->longest_group = 1;
    for (size_t i = 0; i < b->records->count && !gb_failed(err); i++) {
        struct job *j = &b->jobs[i];
        j->batch = b;
        j->record = &b->records->records[i];
        j->target = find_target(&b->env, j->record);
        if (j->target != NULL && j->record->replay_count > 1)
            gb_metric_add(j->target->metrics.replays, 1);
        struct job *previous = NULL;
        if (j->record->ordering_key.size > 0) {
            previous = gb_map_get(&last_of_key, j->record->ordering_key);
            size_t members =
                (size_t)(uintptr_t)gb_map_get(&size_of_key, j->record->ordering_key) + 1;
            if (members > b->longest_group) b->longest_group = members;
            err = gb_map_put(&last_of_key, j->record->ordering_key, j);
            if (!gb_failed(err))
                err = gb_map_put(&size_of_key, j->record->ordering_key, (void *)(uintptr_t)members);
        }
        if (previous == NULL) {
            gb_list_push(&b->ready, &j->node);
        } else {
            previous->next_in_group = j;
        }
    }
    gb_map_deinit(&last_of_key);
    gb_map_deinit(&size_of_key);
    return err;
}

struct gb_err gb_drain_batch_new(const struct gb_drain_env *env, const struct gb_token *token,
                                 struct gb_outbox_batch *take, struct gb_drain_batch **out)
{
    struct gb_drain_batch *b = calloc(1, sizeof *b);
    if (b == NULL) {
        gb_outbox_batch_free(take);
        return gb_err_no_memory("drain batch");
    }
    b->env = *env;
    b->token = *token;
    b->records = take;
    b->finished.run = finished;
    b->result.claimed = take->count;
    gb_list_init(&b->ready);
    b->jobs = calloc(take->count, sizeof *b->jobs);
    struct gb_err err = gb_err_no_memory("drain batch");
    if (b->jobs == NULL) goto fail;
    err = gb_timer_init(&b->budget, env->reactor, budget_over);
    if (gb_failed(err)) goto fail;
    err = gb_timer_init(&b->ceiling, env->reactor, ceiling_reached);
    if (gb_failed(err)) goto fail;
    err = make_groups(b);
    if (gb_failed(err)) goto fail;
    *out = b;
    return gb_ok();
fail:
    gb_drain_batch_free(b);
    return err;
}

void gb_drain_batch_start(struct gb_drain_batch *b, gb_drain_done_fn *done, void *arg)
{
    b->done = done;
    b->arg = arg;
    int64_t send_timeout_ns = 0;
    for (size_t i = 0; i < b->env.target_count; i++) {
        if (b->env.targets[i].cfg.policy.send_timeout_ns > send_timeout_ns)
            send_timeout_ns = b->env.targets[i].cfg.policy.send_timeout_ns;
    }
    int64_t budget_ns =
        gb_drain_budget_ns(&b->env.policy, b->records->count, b->longest_group, send_timeout_ns);
    gb_timer_start(&b->budget,
                   (uint64_t)gb_add_sat_i64((int64_t)gb_reactor_now_ns(b->env.reactor), budget_ns));
    start_ready(b);
}

bool gb_drain_batch_ended(const struct gb_drain_batch *b)
{
    return b->ended == b->records->count;
}

void gb_drain_batch_leave(struct gb_drain_batch *b)
{
    gb_timer_deinit(&b->budget);
    gb_timer_deinit(&b->ceiling);
}

void gb_drain_batch_free(struct gb_drain_batch *b)
{
    if (b == NULL) return;
    gb_task_cancel(&b->finished);
    gb_drain_batch_leave(b);
    gb_outbox_batch_free(b->records);
    free(b->jobs);
    free(b);
}
