#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* A claim: fence, then what waits in memory, if that is all there is; else candidates, and the
 * transitions in fenced transactions. */

enum { CLAIM_MAX = 1000 };          /* a longer wish gets a short batch, which is legal */
#define LOOK_EVERY_MS INT64_C(1000) /* at mark and index, while the queue alone would do */

struct claim {
    struct gb_dbox_task task;
    struct gb_outbox_claim *q;
    struct gb_dbox_request request;
    struct gb_dbox_fence fence;
    struct gb_dbox_select select;
    struct gb_dbox_fenced fenced;
    struct gb_dbox_sweep_wait sweep;
    struct gb_dbox_mend mend;
    struct gb_str scratch;
    uint64_t index_events; /* of the partition, when candidates were asked for */
    bool handed_out;       /* from the queue: the batch is made */
    bool emptied;          /* the queue has gone into the indexes once */
    bool noted, all_held;  /* what was claimed, for the sake of its keys */
    int64_t now_ms;        /* claimed_at */
    uint64_t number;       /* of this claim in its partition */
    bool alone;            /* none ran when it began */
};

static struct claim *claim_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct claim, task);
}

/* Claims before that are stale; 0: none ever is. */
static int64_t cutoff_of(const struct claim *c)
{
    return c->task.s->stale_ms > 0 ? c->now_ms - c->task.s->stale_ms : 0;
}

static bool look_is_due(const struct claim *c)
{
    int64_t age_ms = c->now_ms - c->task.partition->looked_ms;
    return age_ms < 0 || age_ms >= LOOK_EVERY_MS;
}

static struct gb_dbox_candidate *candidate_of(const struct gb_dbox_target *target)
{
    return GB_CONTAINER_OF(target, struct gb_dbox_candidate, target);
}

/* --- transitions --- */

/* `replay_count` as it was seen: what an index that lags shows is not taken for the record. */
static void write_claim(struct gb_dbox_task *t, struct gb_dbox_target *target,
                        struct gb_dynamodb_call *call)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    struct claim *c = claim_of(t);
    const struct gb_dbox_row *row = &candidate_of(target)->row;
    gb_str_clear(&c->scratch);
    gb_str_append_c(&c->scratch,
                    "SET #status = :claimed, claimed_by = :owner, claim_version = :version, "
                    "claimed_at = :now, replay_count = replay_count + :one, first_attempted_at = "
                    "if_not_exists(first_attempted_at, :now)");
    if (row->direct) {
        gb_str_appendf(&c->scratch, ", %s REMOVE " GB_DBOX_INDEX_REMOVE,
                       gb_dbox_index_set(&row->record));
    }
    if (c->scratch.failed) call->aws.body.failed = true;
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, c->scratch.failed ? "" : c->scratch.data);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "replay_count = :replays AND (#status = :pending OR (#status = :claimed AND "
                     "(claim_version < :version OR claimed_at < :cutoff)))");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":pending", "pending");
    gb_dynamodb_w_s_c(&call->w, ":claimed", "claimed");
    gb_dynamodb_w_s(&call->w, ":owner", c->q->token.owner);
    gb_dynamodb_w_u64(&call->w, ":version", c->q->token.version);
    gb_dynamodb_w_i64(&call->w, ":now", c->now_ms);
    gb_dynamodb_w_i64(&call->w, ":cutoff", c->select.cutoff_ms);
    gb_dynamodb_w_u64(&call->w, ":one", 1);
    gb_dynamodb_w_u64(&call->w, ":replays", row->replays);
    if (row->direct) gb_dbox_write_index_values(&call->w, &row->record, &c->scratch);
    gb_dynamodb_object_end(call);
}

/* Another claim of the same owner in the same millisecond leaves the same row, so only one that ran
 * alone may believe it. */
static bool is_own(struct gb_dbox_task *t, const struct gb_dbox_target *target,
                   const struct gb_dbox_row *row)
{
    const struct claim *c = claim_of(t);
    return c->alone && t->partition->claims == c->number && row->status == GB_OUTBOX_CLAIMED &&
           gb_bytes_equal(row->claimed_by, c->q->token.owner) &&
           row->record.claim_version == c->q->token.version && row->claimed_at_ms == c->now_ms &&
           row->replays == candidate_of(target)->row.replays + 1;
}

/* --- the ordinary way --- */

/* Nothing is pending in the indexes: this claim took all there was. If it read the whole partition,
 * it has also seen that records with keys are held by this process only. */
static void note_emptied(const struct claim *c)
{
    struct gb_dbox_partition *p = c->task.partition;
    if (c->select.left || c->index_events != p->index_events) return;
    p->backlog_empty = true;
    if (!c->select.scanning || c->select.foreign || !c->all_held) return;
    p->keyed_clean = true;
    p->clean_ms = c->now_ms;
}

static void on_claimed(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    bool all = true;
    c->all_held = true;
    for (size_t i = 0; i < c->fenced.count; i++) {
        const struct gb_dbox_candidate *candidate = candidate_of(c->fenced.targets[i]);
        bool done = candidate->target.state == GB_DBOX_DONE;
        all = all && done;
        if (done && !gb_dbox_direct_hold(t->s, t->partition, &candidate->row, &c->q->token))
            c->all_held = false;
    }
    if (!c->all_held) t->partition->keyed_clean = false;
    if (all) note_emptied(c);
    c->noted = true;
    gb_dbox_end(t, c->fenced.refused); /* only told of when nothing else was claimed */
}

static void select_records(struct gb_dbox_task *t);
static void hand_out(struct gb_dbox_task *t);

static void on_queue_left(struct gb_dbox_task *t, void *arg)
{
    (void)arg;
    select_records(t);
}

/* Into the indexes, where its records and those there have one order. */
static void empty_queue(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    c->emptied = true;
    gb_dbox_leave(t->s, t->partition, GB_DBOX_LEAVE_QUEUED, 0);
    gb_dbox_mend_run(t, &c->mend, on_queue_left, NULL);
}

static void on_selected(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    struct gb_dbox_partition *p = t->partition;
    bool nothing = c->select.count == 0 && !c->select.left;
    p->looked_ms = c->now_ms;
    c->all_held = true;
    if (c->select.scanning && (!nothing || c->select.foreign)) p->keyed_clean = false;
    if (!gb_list_empty(&p->queued) && !c->emptied) {
        if (nothing && c->index_events == p->index_events) {
            note_emptied(c);
            hand_out(t);
        } else {
            empty_queue(t);
        }
        return;
    }
    if (nothing) note_emptied(c);
    if (c->select.count == 0) {
        gb_dbox_end(t, c->select.corrupt);
        return;
    }
    c->fenced.targets = calloc(c->select.count, sizeof(void *));
    if (c->fenced.targets == NULL) {
        gb_dbox_end(t, gb_err_no_memory("a claim"));
        return;
    }
    for (size_t i = 0; i < c->select.count; i++) c->fenced.targets[i] = &c->select.found[i]->target;
    c->fenced.count = c->select.count;
    gb_dbox_fenced_run(t, &c->fenced);
}

static void select_records(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    gb_dbox_select_deinit(&c->select);
    c->index_events = t->partition->index_events;
    c->select = (struct gb_dbox_select){.request = &c->request,
                                        .token = &c->q->token,
                                        .limit = c->q->limit < CLAIM_MAX ? c->q->limit : CLAIM_MAX,
                                        .cutoff_ms = cutoff_of(c),
                                        .done = on_selected};
    gb_dbox_select_run(t, &c->select);
}

/* --- out of memory --- */

static void hand_out(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    uint32_t limit = c->q->limit < CLAIM_MAX ? c->q->limit : CLAIM_MAX;
    c->handed_out = true;
    gb_dbox_end(t, gb_dbox_direct_hand_out(t->s, t->partition, limit, &c->q->batch));
}

static void choose(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    struct gb_dbox_partition *p = t->partition;
    bool first = p->backlog_empty || gb_dbox_direct_ready(p, c->q->limit) >= c->q->limit;
    bool queued = !gb_list_empty(&p->queued);
    if (queued && !gb_dbox_direct_holds(t->s, p, &c->q->token)) {
        empty_queue(t);
    } else if (queued && first && !look_is_due(c)) {
        hand_out(t);
    } else {
        select_records(t);
    }
}

static void sweep_if_due(struct gb_dbox_task *t, void *arg)
{
    struct claim *c = arg;
    if (gb_dbox_sweep_due(t->s, t->partition)) {
        gb_dbox_sweep_run(t, &c->sweep);
    } else {
        choose(t);
    }
}

/* What was stored under another token leaves: its owner's records are ordinary ones now. */
static struct gb_err take_over(struct gb_dbox *s, struct gb_dbox_partition *p,
                               const struct gb_token *token, int64_t now_ms)
{
    bool same =
        p->version == token->version && gb_bytes_equal(gb_str_bytes(&p->owner), token->owner);
    if (same) return gb_ok();
    gb_dbox_sweep_end(p);
    gb_dbox_leave(s, p, GB_DBOX_LEAVE_ALL, 0);
    p->version = 0;
    p->swept = false;
    p->sweep_began_ms = 0;
    p->keyed_clean = false;
    p->backlog_empty = false;
    p->backlog_ms = INT64_MIN;
    gb_str_clear(&p->owner);
    gb_str_append(&p->owner, token->owner);
    struct gb_err err = gb_str_check(&p->owner, "an outbox claim");
    if (gb_failed(err)) return err;
    p->version = token->version;
    p->owned_ms = now_ms;
    return err;
}

static void on_accepted(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    if (c->q->limit == 0) {
        gb_dbox_end(t, gb_ok());
        return;
    }
    struct gb_err err = take_over(t->s, t->partition, &c->q->token, c->now_ms);
    if (gb_failed(err)) {
        gb_dbox_end(t, err);
        return;
    }
    if (t->s->stale_ms > 0) gb_dbox_leave(t->s, t->partition, GB_DBOX_LEAVE_STALE, cutoff_of(c));
    gb_dbox_mend_run(t, &c->mend, sweep_if_due, c);
}

/* --- the end --- */

static struct gb_err add_claimed(const struct claim *c, const struct gb_dbox_candidate *candidate,
                                 struct gb_outbox_batch *batch)
{
    struct gb_outbox_record r = candidate->row.record;
    r.claim_version = c->q->token.version;
    if (r.replay_count < UINT32_MAX) r.replay_count++;
    if (r.first_attempted_at_ms == 0) r.first_attempted_at_ms = c->now_ms;
    r.envelope = gb_envelope_ref(r.envelope);
    struct gb_err err = gb_outbox_batch_add(batch, &r);
    if (gb_failed(err)) {
        gb_envelope_unref(r.envelope);
        return err;
    }
    gb_dbox_ids_put(c->task.s, r.id, c->task.partition->key, candidate->row.sort_key);
    return err;
}

static struct gb_err make_batch(struct claim *c, size_t claimed)
{
    struct gb_outbox_batch *batch = NULL;
    struct gb_err err = gb_outbox_batch_new(claimed, &batch);
    for (size_t i = 0; i < c->select.count && !gb_failed(err); i++) {
        if (c->select.found[i]->target.state != GB_DBOX_DONE) continue;
        err = add_claimed(c, c->select.found[i], batch);
    }
    if (batch != NULL && batch->count > 0) {
        c->q->batch = batch; /* cut short by lack of memory: what is left out goes stale */
        return gb_ok();
    }
    gb_outbox_batch_free(batch);
    return err;
}

/* A failure after some were claimed makes a short batch, but an old token never has any. */
static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    struct claim *c = claim_of(t);
    size_t claimed = 0;
    if (c->handed_out) return verdict;
    for (size_t i = 0; i < c->fenced.count; i++)
        claimed += c->fenced.targets[i]->state == GB_DBOX_DONE;
    if (c->fenced.count > 0 && !c->noted) t->partition->keyed_clean = false;
    if (claimed == 0 || verdict.code == GB_STALE_FENCING_TOKEN || verdict.code == GB_CANCELLED)
        return verdict;
    if (gb_failed(verdict) && !c->noted) {
        struct gb_metric *m = gb_dbox_counter(t->s, t->partition, "DynamoDBOutboxClaimTruncated");
        if (m != NULL) gb_metric_add(m, 1);
    }
    return make_batch(c, claimed);
}

static void claim_free(struct gb_dbox_task *t)
{
    struct claim *c = claim_of(t);
    if (t->partition != NULL) t->partition->claims_running--;
    gb_dbox_fence_deinit(&c->fence);
    gb_dbox_sweep_wait_deinit(&c->sweep);
    gb_dbox_mend_deinit(&c->mend);
    gb_str_deinit(&c->scratch);
    gb_dbox_select_deinit(&c->select);
    gb_dbox_fenced_deinit(&c->fenced);
    free(c->fenced.targets);
    gb_dynamodb_call_deinit(&c->request.call);
    free(c);
}

static const struct gb_dbox_task_ops claim_ops = {.finish = finish, .free = claim_free};

void gb_dbox_claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    struct gb_dbox *s = gb_dbox_of(o);
    q->batch = NULL;
    struct claim *c = gb_dbox_task_new(s, sizeof *c, &claim_ops, &q->op, done, arg);
    if (c == NULL) return;
    c->q = q;
    if (!gb_token_valid(&q->token)) {
        gb_dbox_end(&c->task, gb_dbox_stale(&q->token, "owner or version is empty"));
        return;
    }
    if (!gb_dbox_hold(&c->task, q->partition)) return;
    c->now_ms = gb_dbox_now_ms(s);
    c->alone = c->task.partition->claims_running++ == 0;
    c->number = ++c->task.partition->claims;
    /* No transaction looks at the mark for what is in memory. */
    bool queued = !gb_list_empty(&c->task.partition->queued);
    bool sure = !look_is_due(c) && gb_dbox_direct_holds(s, c->task.partition, &q->token);
    c->fence = (struct gb_dbox_fence){.request = &c->request,
                                      .token = &q->token,
                                      .accepted = on_accepted,
                                      .always = q->limit == 0,
                                      .check = queued && !sure};
    c->sweep.done = choose;
    c->fenced = (struct gb_dbox_fenced){.request = &c->request,
                                        .token = &q->token,
                                        .write = write_claim,
                                        .is_own = is_own,
                                        .done = on_claimed};
    gb_dbox_fence(&c->task, &c->fence);
}
