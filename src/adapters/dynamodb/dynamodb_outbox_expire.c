#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* Expiry of one partition's due records (spec 05 §9.6): page by page through ExpiryIndex, which
 * holds all partitions, so a sweep that was interrupted leaves behind where it was. */

enum { PAGE_MAX = 100, SIZE_ASSUMED = 256 * 1024 };

struct expire {
    struct gb_dbox_task task;
    struct gb_outbox_expire *q;
    struct gb_dbox_request request;
    struct gb_dbox_fence fence;
    struct gb_dbox_fenced fenced;
    struct gb_dbox_mend mend;
    struct gb_dbox_target *page; /* PAGE_MAX of them */
    char *keys[PAGE_MAX];        /* their sort keys */
    size_t count;
    struct gb_str next;  /* last key of the page at hand */
    struct gb_str start; /* of the page at hand */
    bool advanced, complete;
    struct gb_str scratch;
};

static struct expire *expire_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct expire, task);
}

/* --- cursors --- */

void gb_dbox_cursors_deinit(struct gb_dbox *s)
{
    size_t at = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&s->cursors, &at, &key, &value)) free(value);
    gb_map_deinit(&s->cursors);
    s->cursors = (struct gb_map){0};
}

/* One that can't be kept: the next sweep begins at the head. */
static void park(struct expire *e)
{
    struct gb_dbox *s = e->task.s;
    struct gb_bytes name = e->task.partition->key;
    free(gb_map_remove(&s->cursors, name));
    if (e->complete || !e->advanced || e->start.size == 0) return;
    if (s->cursors.count >= GB_DBOX_CURSORS_MAX) gb_dbox_cursors_deinit(s);
    char *cursor = gb_str_take(&e->start);
    if (cursor != NULL && gb_failed(gb_map_put(&s->cursors, name, cursor))) free(cursor);
}

/* --- a page --- */

static void write_expire(struct gb_dbox_task *t, struct gb_dbox_target *target,
                         struct gb_dynamodb_call *call)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}, {"#ttl", "ttl"}};
    const struct expire *e = expire_of(t);
    (void)target;
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     "SET #status = :expired, #ttl = :ttl REMOVE claim_sort, has_expiry");
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "#status = :pending AND expires_at > :zero AND expires_at < :cutoff");
    gb_dynamodb_names(call, names, 2);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":pending", "pending");
    gb_dynamodb_w_s_c(&call->w, ":expired", "expired");
    gb_dynamodb_w_i64(&call->w, ":zero", 0);
    gb_dynamodb_w_i64(&call->w, ":cutoff", e->q->cutoff_ms);
    gb_dynamodb_w_u64(&call->w, ":ttl", gb_dbox_ttl(t->s, e->q->cutoff_ms));
    gb_dynamodb_object_end(call);
}

/* Whoever expired it, it was in this sweep's time: the count tells of it once. */
static bool is_own(struct gb_dbox_task *t, const struct gb_dbox_target *target,
                   const struct gb_dbox_row *row)
{
    (void)t;
    (void)target;
    return row->status == GB_OUTBOX_EXPIRED;
}

static void forget_page(struct expire *e)
{
    for (size_t i = 0; i < e->count; i++) free(e->keys[i]);
    e->count = 0;
    e->fenced.count = 0;
}

static void count_page(struct expire *e)
{
    for (size_t i = 0; i < e->fenced.count; i++) e->q->expired += e->page[i].state == GB_DBOX_DONE;
    forget_page(e);
}

static void query(struct expire *e);

static void on_page_done(struct gb_dbox_task *t)
{
    struct expire *e = expire_of(t);
    count_page(e);
    if (e->next.size == 0) {
        e->complete = true;
        gb_dbox_end(t, gb_ok());
        return;
    }
    struct gb_str swap = e->start;
    e->start = e->next;
    e->next = swap;
    e->advanced = true;
    query(e);
}

static struct gb_err read_page(struct expire *e, struct gb_bytes items_json)
{
    const struct gb_dynamodb_source from = {e->task.s->table, "ExpiryIndex"};
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    gb_dynamodb_items_init(&items, items_json);
    while (e->count < PAGE_MAX && gb_dynamodb_items_next(&items, &item)) {
        struct gb_bytes sort_key = {0};
        struct gb_dynamodb_field field = {"SK", GB_DYNAMODB_FIELD_S, true, &sort_key, false};
        gb_str_clear(&e->scratch);
        struct gb_err err = gb_dynamodb_item_read(&from, item, &e->scratch, &field, 1);
        if (gb_failed(err)) return err;
        char *key = gb_bytes_dup(sort_key);
        if (key == NULL) return gb_err_no_memory("an outbox sweep");
        e->keys[e->count] = key;
        /* The index does not tell the item's size: eight of the largest fit a transaction. */
        e->page[e->count] = (struct gb_dbox_target){.sort_key = gb_bytes(key, sort_key.size),
                                                    .bytes = SIZE_ASSUMED};
        e->fenced.targets[e->count] = &e->page[e->count];
        e->count++;
    }
    return gb_ok();
}

static void on_page(struct gb_dbox_request *r)
{
    struct expire *e = r->step;
    if (r->task->ending) return;
    struct gb_err err = r->call.op.result;
    if (!gb_failed(err)) err = read_page(e, r->call.answer.items);
    gb_str_clear(&e->next);
    gb_str_append(&e->next, r->call.answer.last_key);
    if (!gb_failed(err)) err = gb_str_check(&e->next, "an outbox sweep");
    if (gb_failed(err)) {
        gb_dbox_end(r->task, err);
        return;
    }
    e->fenced.count = e->count;
    gb_dbox_fenced_run(r->task, &e->fenced);
}

static void query(struct expire *e)
{
    struct gb_dynamodb_call *call = &e->request.call;
    e->request.step = e;
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, e->task.s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_INDEX, "ExpiryIndex");
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "has_expiry = :has AND expires_at < :cutoff");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER, "PK = :pk");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":has", "1");
    gb_dynamodb_w_i64(&call->w, ":cutoff", e->q->cutoff_ms);
    gb_dynamodb_w_s(&call->w, ":pk", e->task.partition->key);
    gb_dynamodb_object_end(call);
    gb_dynamodb_limit(call, PAGE_MAX);
    gb_dynamodb_start_key(call, gb_str_bytes(&e->start));
    gb_dbox_send(&e->task, &e->request, on_page);
}

static void on_due_left(struct gb_dbox_task *t, void *arg)
{
    struct expire *e = arg;
    const char *cursor = gb_map_get(&t->s->cursors, t->partition->key);
    if (cursor != NULL) gb_str_append_c(&e->start, cursor);
    e->page = calloc(PAGE_MAX, sizeof *e->page);
    e->fenced.targets = calloc(PAGE_MAX, sizeof(void *));
    if (e->page == NULL || e->fenced.targets == NULL || e->start.failed) {
        gb_dbox_end(t, gb_err_no_memory("an outbox sweep"));
        return;
    }
    query(e);
}

/* What waits in memory and is due becomes a pending row of the index first. */
static void on_accepted(struct gb_dbox_task *t)
{
    struct expire *e = expire_of(t);
    gb_dbox_leave(t->s, t->partition, GB_DBOX_LEAVE_DUE, e->q->cutoff_ms);
    gb_dbox_mend_run(t, &e->mend, on_due_left, e);
}

/* --- the call --- */

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    struct expire *e = expire_of(t);
    if (e->page != NULL) count_page(e);
    if (e->page != NULL) park(e);
    return verdict;
}

static void expire_free(struct gb_dbox_task *t)
{
    struct expire *e = expire_of(t);
    forget_page(e);
    gb_dbox_fence_deinit(&e->fence);
    gb_dbox_fenced_deinit(&e->fenced);
    gb_dbox_mend_deinit(&e->mend);
    free(e->fenced.targets);
    free(e->page);
    gb_str_deinit(&e->next);
    gb_str_deinit(&e->start);
    gb_str_deinit(&e->scratch);
    gb_dynamodb_call_deinit(&e->request.call);
    free(e);
}

static const struct gb_dbox_task_ops expire_ops = {.finish = finish, .free = expire_free};

void gb_dbox_expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    struct gb_dbox *s = gb_dbox_of(o);
    q->expired = 0;
    struct expire *e = gb_dbox_task_new(s, sizeof *e, &expire_ops, &q->op, done, arg);
    if (e == NULL) return;
    e->q = q;
    if (!gb_token_valid(&q->token)) {
        gb_dbox_end(&e->task, gb_dbox_stale(&q->token, "owner or version is empty"));
        return;
    }
    if (!gb_dbox_hold(&e->task, q->partition)) return;
    e->fence =
        (struct gb_dbox_fence){.request = &e->request, .token = &q->token, .accepted = on_accepted};
    e->fenced = (struct gb_dbox_fenced){.request = &e->request,
                                        .token = &q->token,
                                        .write = write_expire,
                                        .is_own = is_own,
                                        .done = on_page_done};
    gb_dbox_fence(&e->task, &e->fence);
}
