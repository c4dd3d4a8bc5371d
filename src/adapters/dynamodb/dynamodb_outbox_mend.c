#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"
#include "base/duration.h"

/* Direct records become ordinary ones (docs/decisions/0623): an update brings the row into the
 * indexes, and back to pending if nobody here works on it. That is a release by the holder of the
 * claim, or no transition at all, so it needs no look at the mark. */

#define CLOSE_TIMEOUT_NS (10 * GB_SEC)

/* --- which --- */

static bool leaves(const struct gb_dbox_direct *e, enum gb_dbox_leave which, int64_t ms)
{
    const struct gb_outbox_record *r = &e->record;
    if (which == GB_DBOX_LEAVE_DUE) return r->expires_at_ms > 0 && r->expires_at_ms < ms;
    return which != GB_DBOX_LEAVE_STALE || e->handed_ms < ms;
}

static void move(struct gb_dbox *s, struct gb_list *from, enum gb_dbox_leave which, int64_t ms)
{
    struct gb_list_node *node = gb_list_first(from);
    while (node != NULL) {
        struct gb_dbox_direct *e = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        node = gb_list_next(from, node);
        if (!leaves(e, which, ms)) continue;
        if (e->indexed) { /* there already */
            gb_dbox_note_indexed(e->partition, &e->record);
            gb_dbox_direct_free(s, e);
            continue;
        }
        e->pending = e->state == GB_DBOX_DIRECT_QUEUED;
        e->state = GB_DBOX_DIRECT_LEAVING;
        gb_list_remove(&e->node);
        gb_list_push(&e->partition->leaving, &e->node);
    }
}

void gb_dbox_leave(struct gb_dbox *s, struct gb_dbox_partition *p, enum gb_dbox_leave which,
                   int64_t ms)
{
    if (which != GB_DBOX_LEAVE_STALE) move(s, &p->queued, which, ms);
    if (which == GB_DBOX_LEAVE_STALE || which == GB_DBOX_LEAVE_ALL) move(s, &p->handed, which, ms);
}

/* --- one --- */

static const char *attempts(const struct gb_dbox_direct *e)
{
    return e->record.first_attempted_at_ms == 0
               ? " REMOVE claimed_by, claimed_at, first_attempted_at, " GB_DBOX_INDEX_REMOVE
               : ", first_attempted_at = :first REMOVE claimed_by, "
                 "claimed_at, " GB_DBOX_INDEX_REMOVE;
}

static void write_update(struct gb_dynamodb_call *call, const struct gb_dbox_direct *e)
{
    char memory[512];
    struct gb_str text = gb_str_over(memory, sizeof memory);
    gb_str_appendf(&text, "SET %s", gb_dbox_index_set(&e->record));
    if (e->pending) {
        gb_str_appendf(&text, ", #status = :pending, replay_count = :replays%s", attempts(e));
    } else if (e->handed_ms != 0) {
        gb_str_append_c(
            &text,
            ", claimed_at = :handed, first_attempted_at = :first REMOVE " GB_DBOX_INDEX_REMOVE);
    } else {
        gb_str_append_c(&text, " REMOVE " GB_DBOX_INDEX_REMOVE);
    }
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, memory);
    if (text.failed) call->aws.body.failed = true;
}

void gb_dbox_mend_write(struct gb_dbox *s, struct gb_dynamodb_call *call, struct gb_dbox_direct *e,
                        struct gb_str *scratch)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    e->running = true;
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, s->table);
    call->repeatable = true; /* the condition fails the second time */
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, e->partition->key, e->sort_key);
    gb_dynamodb_object_end(call);
    write_update(call, e);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "#status = :claimed AND claimed_by = :owner AND claim_version = :version AND "
                     "rid = :id");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dbox_write_index_values(&call->w, &e->record, scratch);
    gb_dynamodb_w_s_c(&call->w, ":claimed", "claimed");
    gb_dynamodb_w_s(&call->w, ":owner", e->token.owner);
    gb_dynamodb_w_u64(&call->w, ":version", e->token.version);
    if (e->pending) {
        gb_dynamodb_w_s_c(&call->w, ":pending", "pending");
        gb_dynamodb_w_u64(&call->w, ":replays", e->record.replay_count);
    } else if (e->handed_ms != 0) {
        gb_dynamodb_w_i64(&call->w, ":handed", e->handed_ms);
    }
    if (e->pending ? e->record.first_attempted_at_ms != 0 : e->handed_ms != 0)
        gb_dynamodb_w_i64(&call->w, ":first", e->record.first_attempted_at_ms);
    gb_dynamodb_object_end(call);
}

/* A condition that failed: it is there already, or settled, or a later owner has it. */
struct gb_err gb_dbox_mend_ended(struct gb_dbox *s, struct gb_dbox_direct *e,
                                 const struct gb_dynamodb_call *call)
{
    bool over = !gb_failed(call->op.result) || call->error == GB_DYNAMODB_CONDITION_FAILED;
    gb_dbox_note_indexed(e->partition, &e->record);
    e->running = false;
    if (!over) return call->op.result;
    if (e->handed_ms != 0 && !e->pending)
        gb_dbox_ids_put(s, e->record.id, e->partition->key, e->sort_key);
    gb_dbox_direct_free(s, e);
    return gb_ok();
}

/* --- all of a partition, several at a time --- */

static void fill(struct gb_dbox_task *t, struct gb_dbox_mend *m);

static void on_mended(struct gb_dbox_request *r)
{
    struct gb_dbox_mend *m = r->step;
    size_t lane = (size_t)(r - m->requests);
    struct gb_dbox *s = r->task->s;
    struct gb_dbox_direct *e = m->entries[lane];
    struct gb_err err = gb_dbox_mend_ended(s, e, &r->call);
    if (err.class_ == GB_CLASS_REJECTED) { /* the row's own fault: it must not stop the others */
        (void)gb_dbox_refused(s, e->sort_key, err.code, err.message);
        gb_dbox_direct_free(s, e);
        err = gb_ok();
    }
    m->entries[lane] = NULL;
    m->running--;
    if (gb_failed(err) && !gb_failed(m->failure)) m->failure = err;
    if (!r->task->ending) fill(r->task, m);
}

static struct gb_dbox_direct *next_of(const struct gb_dbox_partition *p)
{
    struct gb_list_node *node = gb_list_first(&p->leaving);
    for (; node != NULL; node = gb_list_next(&p->leaving, node)) {
        struct gb_dbox_direct *e = GB_CONTAINER_OF(node, struct gb_dbox_direct, node);
        if (!e->running) return e;
    }
    return NULL;
}

static void fill(struct gb_dbox_task *t, struct gb_dbox_mend *m)
{
    for (size_t i = 0; i < GB_DBOX_MEND_LANES && !gb_failed(m->failure); i++) {
        if (m->entries[i] != NULL) continue;
        struct gb_dbox_direct *e = next_of(m->partition);
        if (e == NULL) break;
        m->entries[i] = e;
        m->running++;
        m->requests[i].step = m;
        gb_dbox_mend_write(t->s, &m->requests[i].call, e, &m->scratch);
        gb_dbox_send(t, &m->requests[i], on_mended);
    }
    if (m->running > 0) return;
    if (gb_failed(m->failure)) {
        gb_dbox_end(t, m->failure);
    } else {
        m->done(t, m->arg);
    }
}

void gb_dbox_mend_run(struct gb_dbox_task *t, struct gb_dbox_mend *m, gb_dbox_mended_fn *done,
                      void *arg)
{
    m->partition = t->partition;
    m->done = done;
    m->arg = arg;
    fill(t, m);
}

void gb_dbox_mend_deinit(struct gb_dbox_mend *m)
{
    for (size_t i = 0; i < GB_DBOX_MEND_LANES; i++) gb_dynamodb_call_deinit(&m->requests[i].call);
    gb_str_deinit(&m->scratch);
}

/* --- all of the store, at its end --- */

struct mend_all {
    struct gb_dbox_task task;
    struct gb_dbox_mend mend;
    size_t cursor; /* in the store's partitions */
};

static struct mend_all *mend_all_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct mend_all, task);
}

static void next_partition(struct gb_dbox_task *t, void *arg)
{
    struct mend_all *a = arg;
    struct gb_bytes name;
    void *value;
    while (gb_map_next(&t->s->partitions, &a->cursor, &name, &value)) {
        struct gb_dbox_partition *p = value;
        gb_dbox_leave(t->s, p, GB_DBOX_LEAVE_ALL, 0);
        if (gb_list_empty(&p->leaving)) continue;
        a->mend.partition = p;
        fill(t, &a->mend);
        return;
    }
    gb_dbox_end(t, gb_ok());
}

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    if (gb_failed(verdict)) {
        GB_LOG(GB_LOG_WARN, "outbox records are left to the next owner's sweep",
               gb_lf_str("table", t->s->table), gb_lf_int("records", (int64_t)t->s->direct.count),
               gb_lf_err(&verdict));
    }
    return verdict;
}

static void mend_all_free(struct gb_dbox_task *t)
{
    struct mend_all *a = mend_all_of(t);
    gb_dbox_mend_deinit(&a->mend);
    free(a);
}

static const struct gb_dbox_task_ops mend_all_ops = {.finish = finish, .free = mend_all_free};

void gb_dbox_mend_all(struct gb_dbox *s, gb_done_fn *done)
{
    s->mend_op.deadline_ns = gb_reactor_now_ns(s->cfg.reactor) + (uint64_t)CLOSE_TIMEOUT_NS;
    struct mend_all *a =
        gb_dbox_task_new(s, sizeof(struct mend_all), &mend_all_ops, &s->mend_op, done, s);
    if (a == NULL) return;
    a->mend.done = next_partition;
    a->mend.arg = a;
    next_partition(&a->task, a);
}
