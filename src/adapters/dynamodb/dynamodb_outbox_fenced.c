#include "adapters/dynamodb/dynamodb_outbox_direct.h"
#include "base/duration.h"

/* Transitions that a mark authorises (spec 05 §9.5). The mark's check and some twenty transitions
 * share a transaction: single ones would conflict with each other on the fence row
 * (docs/decisions/0621). One that lost its race cancels the transaction; it is left out and the
 * others go again, so each round ends at least one target. */

enum { CHUNK_MAX = 25, CHUNK_BYTES_MAX = 2 * 1024 * 1024, CONFLICTS_MAX = 4 };
#define PAUSE_NS (20 * GB_MS) /* after a conflict, longer each time */
#define LOG_EVERY_NS GB_MINUTE

static void run(struct gb_dbox_task *t, struct gb_dbox_fenced *f);

static struct gb_dbox_target *first_open(const struct gb_dbox_fenced *f)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->targets[i]->state == GB_DBOX_OPEN) return f->targets[i];
    }
    return NULL;
}

/* What follows a lost one under its key is lost, too: nothing passes its head (spec 05 §2.4). */
static void lose(struct gb_dbox_fenced *f, size_t index)
{
    struct gb_dbox_target *lost = f->targets[index];
    lost->state = GB_DBOX_LOST;
    for (size_t i = index + 1; i < f->count && lost->key.size > 0; i++) {
        if (gb_bytes_equal(f->targets[i]->key, lost->key)) f->targets[i]->state = GB_DBOX_LOST;
    }
}

static void settle_sent(struct gb_dbox_fenced *f, enum gb_dbox_target_state state)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->targets[i]->state == GB_DBOX_SENT) f->targets[i]->state = state;
    }
}

/* --- after a transaction --- */

static void go_on_after_pause(struct gb_timer *timer)
{
    struct gb_dbox_fenced *f = GB_CONTAINER_OF(timer, struct gb_dbox_fenced, pause);
    if (!f->task->ending) run(f->task, f);
}

static void pause_then_run(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    uint64_t wait_ns = (uint64_t)PAUSE_NS << f->conflicts;
    struct gb_err err =
        f->paused ? gb_ok() : gb_timer_init(&f->pause, t->s->cfg.reactor, go_on_after_pause);
    if (gb_failed(err)) {
        gb_dbox_end(t, err);
        return;
    }
    f->paused = true;
    gb_timer_start(&f->pause, gb_reactor_now_ns(t->s->cfg.reactor) + wait_ns / 2 +
                                  gb_reactor_random_below(t->s->cfg.reactor, wait_ns / 2 + 1));
}

static void count_conflict(struct gb_dbox_task *t)
{
    struct gb_metric *m = gb_dbox_counter(t->s, t->partition, "OutboxClaimConflicts");
    if (m != NULL) gb_metric_add(m, 1);
}

/* The row itself is what DynamoDB refuses: it would grow too large, for one. It stays as it is, and
 * the others flow (docs/decisions/0203). */
static bool is_of_row(enum gb_dynamodb_error error)
{
    return error == GB_DYNAMODB_ITEM_TOO_LARGE || error == GB_DYNAMODB_INVALID;
}

struct gb_err gb_dbox_refused(struct gb_dbox *s, struct gb_bytes sort_key, enum gb_code code,
                              const char *why)
{
    uint64_t suppressed = 0;
    char shown[80];
    gb_bytes_show(sort_key, shown, sizeof shown);
    struct gb_err err = gb_err(code, "table \"%s\", outbox row %s: %s", s->table, shown, why);
    if (gb_log_allow(&s->refused_log, gb_reactor_now_ns(s->cfg.reactor), LOG_EVERY_NS,
                     &suppressed)) {
        GB_LOG(GB_LOG_ERROR, "outbox row can't be updated and is skipped; repair or delete it",
               gb_lf_str("table", s->table), gb_lf_int("suppressed", (int64_t)suppressed),
               gb_lf_err(&err));
    }
    return err;
}

static void refuse(struct gb_dbox_task *t, struct gb_dbox_fenced *f, size_t index,
                   enum gb_dynamodb_error error)
{
    struct gb_err err =
        gb_dbox_refused(t->s, f->targets[index]->sort_key, gb_dynamodb_error_code(error),
                        gb_dynamodb_error_name(error));
    if (!gb_failed(f->refused)) f->refused = err;
}

/* The table of spec 05 §9.5: the fence before anything else, then what is nobody's race. */
static bool fatal_reason(struct gb_dbox_task *t, const struct gb_dbox_fenced *f,
                         const struct gb_dynamodb_reason *reasons, size_t count)
{
    if (count == 0) {
        gb_dbox_end(t, gb_err(GB_UNAVAILABLE,
                              "table \"%s\": a transaction was cancelled without reasons",
                              t->s->table));
        return true;
    }
    if (reasons[0].error == GB_DYNAMODB_CONDITION_FAILED) {
        t->partition->raised_ms = 0;
        gb_dbox_end(t, gb_dbox_stale(f->token, "a later owner was here"));
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        enum gb_dynamodb_error e = reasons[i].error;
        if (e == GB_DYNAMODB_NO_ERROR || e == GB_DYNAMODB_CONDITION_FAILED ||
            e == GB_DYNAMODB_CONFLICT || (i > 0 && is_of_row(e)))
            continue;
        gb_dbox_end(t, gb_err(gb_dynamodb_error_code(e), "table \"%s\": action %zu of %zu: %s",
                              t->s->table, i, count, gb_dynamodb_error_name(e)));
        return true;
    }
    return false;
}

static void cancelled(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    struct gb_dynamodb_reason reasons[CHUNK_MAX + 1] = {0};
    size_t count =
        gb_dynamodb_reasons_read(f->request->call.answer.reasons, reasons, CHUNK_MAX + 1);
    if (count > CHUNK_MAX + 1) count = CHUNK_MAX + 1;
    if (fatal_reason(t, f, reasons, count)) return;
    bool lost = false;
    bool conflict = reasons[0].error == GB_DYNAMODB_CONFLICT;
    size_t place = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (f->targets[i]->state != GB_DBOX_SENT) continue;
        if (++place >= count || reasons[place].error == GB_DYNAMODB_NO_ERROR) continue;
        if (reasons[place].error == GB_DYNAMODB_CONFLICT) count_conflict(t);
        if (is_of_row(reasons[place].error)) refuse(t, f, i, reasons[place].error);
        lose(f, i);
        lost = true;
    }
    settle_sent(f, GB_DBOX_OPEN);
    if (conflict) count_conflict(t);
    if (lost) {
        run(t, f);
    } else if (f->conflicts++ < CONFLICTS_MAX) {
        pause_then_run(t, f);
    } else {
        for (size_t i = 0; i < f->count; i++) {
            if (f->targets[i]->state == GB_DBOX_OPEN) f->targets[i]->state = GB_DBOX_LOST;
        }
        f->done(t);
    }
}

/* --- read back: was it ours? The transaction is whole, so one target tells of all. --- */

static void not_applied(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    if (f->request->call.op.result.code == GB_OK && f->failure.code == GB_VERSION_MISMATCH) {
        settle_sent(f, GB_DBOX_LOST);
        run(t, f);
    } else {
        settle_sent(f, GB_DBOX_LOST);
        gb_dbox_end(t, f->failure);
    }
}

static void on_read_back(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_fenced *f = r->step;
    const struct gb_dynamodb_source from = {t->s->table, "GetItem"};
    struct gb_dbox_row row;
    const struct gb_dbox_target *target = NULL;
    if (t->ending) return;
    for (size_t i = 0; i < f->count && target == NULL; i++) {
        if (f->targets[i]->state == GB_DBOX_SENT) target = f->targets[i];
    }
    GB_ASSERT(target != NULL);
    gb_str_clear(&f->scratch);
    bool own = !gb_failed(r->call.op.result) && r->call.answer.item.size > 0 &&
               !gb_failed(gb_dbox_row_read(&from, r->call.answer.item, &f->scratch, &row)) &&
               f->is_own(t, target, &row);
    if (!own) {
        not_applied(t, f);
        return;
    }
    settle_sent(f, GB_DBOX_DONE);
    run(t, f);
}

static void read_back(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    struct gb_dynamodb_call *call = &f->request->call;
    const struct gb_dbox_target *target = NULL;
    for (size_t i = 0; i < f->count && target == NULL; i++) {
        if (f->targets[i]->state == GB_DBOX_SENT) target = f->targets[i];
    }
    GB_ASSERT(target != NULL);
    f->failure = call->op.result;
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, t->s->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, t->partition->key, target->sort_key);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dbox_send(t, f->request, on_read_back);
}

/* True whatever became of an earlier attempt: with its token the transaction was not applied. */
static bool fence_failed(const struct gb_dynamodb_call *call)
{
    struct gb_dynamodb_reason reason = {0};
    return call->error == GB_DYNAMODB_CANCELLED &&
           gb_dynamodb_reasons_read(call->answer.reasons, &reason, 1) > 0 &&
           reason.error == GB_DYNAMODB_CONDITION_FAILED;
}

static void on_transaction(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_fenced *f = r->step;
    if (!gb_failed(r->call.op.result)) {
        settle_sent(f, GB_DBOX_DONE); /* also when the task is ending: it was done */
        if (!t->ending) run(t, f);
    } else if (t->ending) {
        settle_sent(f, GB_DBOX_LOST);
    } else if (r->call.outcome == GB_DYNAMODB_OUTCOME_UNKNOWN && !fence_failed(&r->call)) {
        read_back(t, f);
    } else if (r->call.error == GB_DYNAMODB_CANCELLED) {
        cancelled(t, f);
    } else {
        settle_sent(f, GB_DBOX_LOST);
        gb_dbox_end(t, r->call.op.result);
    }
}

/* --- one transaction --- */

static void write_target(struct gb_dbox_task *t, struct gb_dbox_fenced *f,
                         struct gb_dbox_target *target)
{
    struct gb_dynamodb_call *call = &f->request->call;
    gb_dynamodb_action(call, GB_DYNAMODB_UPDATE_ITEM, t->s->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, t->partition->key, target->sort_key);
    gb_dynamodb_object_end(call);
    f->write(t, target, call);
    gb_dynamodb_action_end(call);
    target->state = GB_DBOX_SENT;
}

static void run(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    struct gb_dynamodb_call *call = &f->request->call;
    size_t bytes = 0;
    size_t chosen = 0;
    if (first_open(f) == NULL) {
        f->done(t);
        return;
    }
    gb_dynamodb_begin(call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    gb_dbox_write_fence_check(call, t->s->table, t->partition, f->token->version);
    for (size_t i = 0; i < f->count && chosen < CHUNK_MAX; i++) {
        struct gb_dbox_target *target = f->targets[i];
        if (target->state != GB_DBOX_OPEN) continue;
        if (chosen > 0 && bytes + target->bytes > CHUNK_BYTES_MAX) break;
        write_target(t, f, target);
        bytes += target->bytes;
        chosen++;
    }
    gb_dbox_send(t, f->request, on_transaction);
}

void gb_dbox_fenced_run(struct gb_dbox_task *t, struct gb_dbox_fenced *f)
{
    f->task = t;
    f->request->step = f;
    f->conflicts = 0;
    f->refused = gb_ok();
    run(t, f);
}

void gb_dbox_fenced_deinit(struct gb_dbox_fenced *f)
{
    if (f->paused) gb_timer_deinit(&f->pause);
    gb_str_deinit(&f->scratch);
}
