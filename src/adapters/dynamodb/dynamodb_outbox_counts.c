#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* Depth and stats (spec 05 §9.6): counts of ClaimIndex by status, its oldest pending entry, and the
 * mark, all at the same time; and what is in no index, but in memory. */

enum lane { PENDING, CLAIMED, OLDEST, FENCE, LANES };

struct counts {
    struct gb_dbox_task task;
    struct gb_outbox_depth *depth; /* one of the two */
    struct gb_outbox_stats *stats;
    struct gb_dbox_request requests[LANES];
    struct gb_dbox_fence fence;
    uint64_t counted[2]; /* PENDING, CLAIMED */
    int64_t oldest_ms;
    unsigned left; /* lanes under way */
    struct gb_str scratch;
};

static struct counts *counts_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct counts, task);
}

static void lane_done(struct counts *c)
{
    if (--c->left == 0) gb_dbox_end(&c->task, gb_ok());
}

static void on_page(struct gb_dbox_request *r);

static void query(struct counts *c, enum lane lane, struct gb_bytes last_key)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    struct gb_dynamodb_call *call = &c->requests[lane].call;
    gb_str_clear(&c->scratch);
    gb_str_append(&c->scratch, last_key);
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, c->task.s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_INDEX, "ClaimIndex");
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "PK = :pk");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER, "#status = :status");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":pk", c->task.partition->key);
    gb_dynamodb_w_s_c(&call->w, ":status", lane == CLAIMED ? "claimed" : "pending");
    gb_dynamodb_object_end(call);
    if (lane == OLDEST) {
        gb_dynamodb_text(call, GB_DYNAMODB_PROJECTION, "created_at");
        gb_dynamodb_limit(call, last_key.size == 0 ? 1 : 100);
    } else {
        gb_dynamodb_flag(call, GB_DYNAMODB_COUNT_ONLY);
    }
    gb_dynamodb_start_key(call, gb_str_bytes(&c->scratch));
    if (c->scratch.failed) call->aws.body.failed = true;
    c->requests[lane].step = c;
    gb_dbox_send(&c->task, &c->requests[lane], on_page);
}

/* True: the lane needs no further page. */
static bool count_page(struct counts *c, enum lane lane, const struct gb_dynamodb_answer *a)
{
    if (lane != OLDEST) {
        c->counted[lane] += a->count;
        return c->depth != NULL && c->counted[lane] >= c->depth->limit;
    }
    const struct gb_dynamodb_source from = {c->task.s->table, "ClaimIndex"};
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    gb_dynamodb_items_init(&items, a->items);
    while (gb_dynamodb_items_next(&items, &item)) { /* one that can't be read is the claim's */
        struct gb_dynamodb_field field = {"created_at", GB_DYNAMODB_FIELD_I64, true, &c->oldest_ms,
                                          false};
        gb_str_clear(&c->scratch);
        struct gb_err err = gb_dynamodb_item_read(&from, item, &c->scratch, &field, 1);
        if (!gb_failed(err)) return true;
        if (err.code == GB_INVALID_CONFIG) continue;
        gb_dbox_end(&c->task, err);
        return true;
    }
    return false;
}

static void on_page(struct gb_dbox_request *r)
{
    struct counts *c = r->step;
    enum lane lane = (enum lane)(r - c->requests);
    if (c->task.ending) return;
    if (gb_failed(r->call.op.result)) {
        gb_dbox_end(&c->task, r->call.op.result);
        return;
    }
    bool enough = count_page(c, lane, &r->call.answer);
    if (c->task.ending) return;
    if (!enough && r->call.answer.last_key.size > 0) {
        query(c, lane, r->call.answer.last_key);
    } else {
        lane_done(c);
    }
}

static void on_mark(struct gb_dbox_task *t)
{
    lane_done(counts_of(t));
}

static void add_list(struct counts *c, const struct gb_list *list)
{
    struct gb_list_node *node = gb_list_first(list);
    for (; node != NULL; node = gb_list_next(list, node)) {
        const struct gb_dbox_direct *e = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        bool pending = gb_dbox_direct_is_pending(e);
        if (e->indexed) continue;
        c->counted[pending ? PENDING : CLAIMED]++;
        if (pending && (c->oldest_ms == 0 || e->record.created_at_ms < c->oldest_ms))
            c->oldest_ms = e->record.created_at_ms;
    }
}

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    struct counts *c = counts_of(t);
    if (gb_failed(verdict)) return verdict;
    add_list(c, &t->partition->queued);
    add_list(c, &t->partition->handed);
    add_list(c, &t->partition->leaving);
    if (c->depth != NULL) {
        uint64_t pending = c->counted[PENDING];
        c->depth->pending = pending < c->depth->limit ? pending : c->depth->limit;
        return verdict;
    }
    c->stats->pending = c->counted[PENDING];
    c->stats->claimed = c->counted[CLAIMED];
    c->stats->oldest_pending_ms = c->oldest_ms;
    c->stats->mark = t->partition->mark;
    return verdict;
}

static void counts_free(struct gb_dbox_task *t)
{
    struct counts *c = counts_of(t);
    for (size_t i = 0; i < LANES; i++) gb_dynamodb_call_deinit(&c->requests[i].call);
    gb_dbox_fence_deinit(&c->fence);
    gb_str_deinit(&c->scratch);
    free(c);
}

static const struct gb_dbox_task_ops counts_ops = {.finish = finish, .free = counts_free};

void gb_dbox_depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    struct counts *c = gb_dbox_task_new(gb_dbox_of(o), sizeof *c, &counts_ops, &q->op, done, arg);
    if (c == NULL) return;
    c->depth = q;
    if (!gb_dbox_hold(&c->task, q->partition)) return;
    c->left = 1;
    query(c, PENDING, gb_bytes(NULL, 0));
}

void gb_dbox_stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    struct counts *c = gb_dbox_task_new(gb_dbox_of(o), sizeof *c, &counts_ops, &q->op, done, arg);
    if (c == NULL) return;
    c->stats = q;
    if (!gb_dbox_hold(&c->task, q->partition)) return;
    c->left = LANES;
    for (enum lane lane = PENDING; lane <= OLDEST; lane++) query(c, lane, gb_bytes(NULL, 0));
    c->fence = (struct gb_dbox_fence){.request = &c->requests[FENCE], .accepted = on_mark};
    gb_dbox_fence(&c->task, &c->fence);
}
