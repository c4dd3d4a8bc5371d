#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_put.h"

/* Persist: one conditional put for each record, many at a time (spec 05 §9.5). */

/* What a claim and the record's end add to its row: an owner of some 300 bytes, times, longer
 * numbers. A row without that room could never be claimed. */
enum { ROOM_BYTES = 512 };

struct persist {
    struct gb_dbox_task task;
    struct gb_outbox_persist *q;
    size_t left, stored;
    struct gb_str scratch;
    struct gb_dbox_job jobs[];
};

/* Where puts are written and sent; their buffers stay. */
struct slot {
    struct gb_dbox_request request;
    struct gb_str scratch;
    struct gb_err failure; /* why a put is read back */
    struct gb_dbox *s;
    size_t index;
};

static struct persist *persist_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct persist, task);
}

static struct slot *slot_of(struct gb_dbox_request *r)
{
    return GB_CONTAINER_OF(r, struct slot, request);
}

/* --- a put's end --- */

/* Frees the slot; the task may have ended, but it is there while the request counts. */
static void put_done(struct slot *slot, bool stored, struct gb_err err)
{
    struct gb_dbox *s = slot->s;
    struct gb_dbox_job *job = s->puts[slot->index].job;
    struct persist *p = persist_of(job->task);
    s->puts[slot->index].job = NULL;
    gb_dbox_job_leave(s, job);
    p->stored += stored;
    p->left--;
    if (gb_failed(err)) {
        gb_dbox_end(&p->task, err);
    } else if (p->left == 0) {
        gb_dbox_end(&p->task, gb_ok());
    }
    gb_dbox_puts_dispatch(s);
}

/* It did not count, or nobody knows whether it did. */
static void put_failed(struct slot *slot, bool unknown, struct gb_err err)
{
    struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    if (unknown) gb_dbox_note_indexed(job->partition, &job->record);
    if (job->direct != NULL) {
        if (unknown) gb_dbox_sweep_later(slot->s, job->partition);
        gb_dbox_direct_free(slot->s, job->direct);
        job->direct = NULL;
    }
    put_done(slot, false, err);
}

static void on_indexed(struct gb_dbox_request *r)
{
    struct slot *slot = slot_of(r);
    struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    struct gb_err err = gb_dbox_mend_ended(slot->s, job->direct, &r->call);
    job->direct = NULL;
    if (gb_failed(err)) {
        err.code = GB_UNAVAILABLE;
        err.class_ = gb_code_class(GB_UNAVAILABLE);
    }
    put_done(slot, job->indexing_own && !gb_failed(err), err);
}

/* Nobody may hear that the record is stored before the indexes show it. A task that has ended has
 * told nothing; what is left then goes with the next claim. */
static void index_first(struct slot *slot, struct gb_dbox_direct *e, bool own)
{
    struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    if (job->task->ending) {
        job->direct = NULL;
        put_done(slot, false, gb_ok());
        return;
    }
    job->direct = e;
    job->indexing_own = own;
    gb_dbox_mend_write(slot->s, &slot->request.call, e, &slot->scratch);
    gb_dbox_send(job->task, &slot->request, on_indexed);
}

static void put_counted(struct slot *slot)
{
    struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    struct gb_dbox_direct *e = job->direct;
    job->direct = NULL;
    if (e == NULL) {
        gb_dbox_note_indexed(job->partition, &job->record);
        put_done(slot, true, gb_ok());
    } else if (gb_dbox_direct_landed(slot->s, e)) {
        put_done(slot, true, gb_ok());
    } else {
        index_first(slot, e, true);
    }
}

/* A row that is in no index: its owner in this process sees to it, or else it goes there now, for
 * it may be a dead owner's. */
static void end_stray(struct slot *slot, struct gb_bytes item)
{
    struct gb_dbox *s = slot->s;
    struct gb_dbox_job *job = s->puts[slot->index].job;
    const struct gb_dynamodb_source from = {s->table, "PutItem"};
    struct gb_dbox_direct *e = NULL;
    struct gb_dbox_row row;
    gb_str_clear(&slot->scratch);
    struct gb_err err = gb_dbox_row_read(&from, item, &slot->scratch, &row);
    bool ended = row.status != GB_OUTBOX_CLAIMED;
    if (gb_failed(err) || ended || gb_dbox_direct_find(s, row.record.id) != NULL) {
        put_done(slot, false, err);
        return;
    }
    err = gb_dbox_row_decode(&row);
    if (!gb_failed(err)) {
        e = gb_dbox_direct_stray(s, job->partition, &row);
        if (e == NULL) err = gb_err_no_memory("an outbox record");
        gb_envelope_unref(row.record.envelope);
    }
    if (gb_failed(err)) {
        put_done(slot, false, err);
    } else {
        index_first(slot, e, false);
    }
}

struct there {
    struct gb_bytes envelope_id, binding_id, record_id, rid;
};

static struct gb_err read_there(struct slot *slot, struct gb_bytes item, struct there *out)
{
    const struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    const struct gb_dynamodb_source from = {slot->s->table, "PutItem"};
    struct gb_dynamodb_field fields[] = {
        {"envelope_id", GB_DYNAMODB_FIELD_S, false, &out->envelope_id, false},
        {"binding_id", GB_DYNAMODB_FIELD_S, false, &out->binding_id, false},
        {"record_id", GB_DYNAMODB_FIELD_S, false, &out->record_id, false},
        {"rid", GB_DYNAMODB_FIELD_S, false, &out->rid, false},
    };
    gb_str_clear(&slot->scratch);
    struct gb_err err = gb_ok();
    if (item.size > 0) err = gb_dynamodb_item_read(&from, item, &slot->scratch, fields, 4);
    if (gb_failed(err)) {
        err.code = GB_UNAVAILABLE;
        err.class_ = gb_code_class(GB_UNAVAILABLE);
        return err;
    }
    if (item.size == 0 && gb_failed(slot->failure)) return slot->failure;
    if (gb_bytes_equal(out->envelope_id, job->record.envelope->id) &&
        gb_bytes_equal(out->binding_id, job->record.binding_id))
        return err;
    return gb_err(GB_UNAVAILABLE,
                  "table \"%s\": the outbox key of a record is taken by another one",
                  slot->s->table);
}

/* What stands under the sort key: the same message, perhaps by this very put, or another one, which
 * must not be lost by it (spec 05 §9.5). */
static void judge(struct slot *slot, struct gb_bytes item, bool maybe_own)
{
    struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    struct there there = {0};
    struct gb_err err = read_there(slot, item, &there);
    bool direct = there.rid.size > 0;
    bool own = maybe_own && gb_bytes_equal(direct ? there.rid : there.record_id, job->record.id);
    if (gb_failed(err)) {
        put_failed(slot, maybe_own && item.size == 0, err);
    } else if (own && (job->direct != NULL) == direct) {
        put_counted(slot);
    } else {
        if (job->direct != NULL) gb_dbox_direct_free(slot->s, job->direct);
        job->direct = NULL;
        if (direct) end_stray(slot, item);
        if (!direct) put_done(slot, own, gb_ok());
    }
}

static void on_read_back(struct gb_dbox_request *r)
{
    struct slot *slot = slot_of(r);
    if (!gb_failed(r->call.op.result)) {
        judge(slot, r->call.answer.item, true);
    } else {
        put_failed(slot, true, gb_failed(slot->failure) ? slot->failure : r->call.op.result);
    }
}

static void read_back(struct slot *slot)
{
    const struct gb_dbox_job *job = slot->s->puts[slot->index].job;
    struct gb_dynamodb_call *call = &slot->request.call;
    gb_str_clear(&slot->scratch);
    gb_dbox_sort_key(&slot->scratch, job->record.envelope->id, job->record.binding_id);
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, slot->s->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, job->partition->key, gb_str_bytes(&slot->scratch));
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    if (slot->scratch.failed) call->aws.body.failed = true;
    gb_dbox_send(job->task, &slot->request, on_read_back);
}

static void on_put(struct gb_dbox_request *r)
{
    struct slot *slot = slot_of(r);
    const struct gb_dynamodb_call *call = &r->call;
    bool unknown = call->outcome == GB_DYNAMODB_OUTCOME_UNKNOWN;
    bool exists = call->error == GB_DYNAMODB_CONDITION_FAILED;
    slot->failure = exists ? gb_ok() : call->op.result;
    if (!gb_failed(call->op.result)) {
        put_counted(slot);
    } else if (exists && call->answer.item.size > 0) {
        judge(slot, call->answer.item, unknown);
    } else if ((exists || unknown) && !r->task->ending) {
        read_back(slot);
    } else {
        put_failed(slot, unknown, call->op.result);
    }
}

/* --- a put's start --- */

static void send(struct gb_dbox *s, struct slot *slot, struct gb_dbox_job *job)
{
    struct gb_dynamodb_call *call = &slot->request.call;
    s->puts[slot->index].job = job;
    job->state = GB_DBOX_JOB_SENT;
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, s->table);
    call->repeatable = true;
    call->item_room = ROOM_BYTES;
    gb_dynamodb_object(call, GB_DYNAMODB_ITEM);
    job->direct = gb_dbox_direct_begin(s, job->partition, &job->record);
    if (job->direct != NULL) {
        gb_dbox_write_direct(&call->w, job->partition->key, &job->record, &job->direct->token,
                             gb_dbox_now_ms(s), &slot->scratch);
    } else {
        gb_dbox_write_record(&call->w, job->partition->key, &job->record, &slot->scratch);
    }
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dbox_send(job->task, &slot->request, on_put);
}

void gb_dbox_puts_dispatch(struct gb_dbox *s)
{
    for (size_t i = 0; i < GB_DBOX_PUTS_MAX; i++) {
        if (s->puts[i].job != NULL) continue;
        struct gb_list_node *node = gb_list_pop(&s->ready);
        if (node == NULL) return;
        send(s, slot_of(s->puts[i].request), GB_CONTAINER_OF(node, struct gb_dbox_job, node));
    }
}

struct gb_err gb_dbox_puts_init(struct gb_dbox *s)
{
    for (size_t i = 0; i < GB_DBOX_PUTS_MAX; i++) {
        struct slot *slot = calloc(1, sizeof *slot);
        if (slot == NULL) return gb_err_no_memory("a DynamoDB outbox");
        slot->s = s;
        slot->index = i;
        s->puts[i].request = &slot->request;
    }
    return gb_ok();
}

void gb_dbox_puts_deinit(struct gb_dbox *s)
{
    for (size_t i = 0; i < GB_DBOX_PUTS_MAX; i++) {
        if (s->puts[i].request == NULL) continue;
        struct slot *slot = slot_of(s->puts[i].request);
        gb_dynamodb_call_deinit(&slot->request.call);
        gb_str_deinit(&slot->scratch);
        free(slot);
    }
}

/* --- the call --- */

static void stop(struct gb_dbox_task *t)
{
    struct persist *p = persist_of(t);
    for (size_t i = 0; i < p->q->count; i++) {
        struct gb_dbox_job *job = &p->jobs[i];
        if (job->task != NULL && job->state <= GB_DBOX_JOB_READY) gb_dbox_job_leave(t->s, job);
    }
}

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    struct persist *p = persist_of(t);
    p->q->stored = p->stored;
    if (gb_failed(verdict) || p->stored > 0 || p->q->count == 0) return verdict;
    return gb_err(GB_DUPLICATE_RECORD, "all %zu records are already in the outbox", p->q->count);
}

static void persist_free(struct gb_dbox_task *t)
{
    struct persist *p = persist_of(t);
    for (size_t i = 0; i < p->q->count; i++) {
        if (p->jobs[i].partition != NULL) p->jobs[i].partition->users--;
    }
    gb_str_deinit(&p->scratch);
    free(p);
}

static void number_failed(struct gb_dbox_job *job, struct gb_err err)
{
    gb_dbox_end(job->task, err);
}

static struct gb_err start_job(struct persist *p, size_t i)
{
    struct gb_dbox *s = p->task.s;
    struct gb_dbox_job *job = &p->jobs[i];
    const struct gb_outbox_record *r = &p->q->records[i];
    gb_str_clear(&p->scratch);
    gb_outbox_partition(&p->scratch, r->session_id, r->binding_id);
    struct gb_err err = gb_str_check(&p->scratch, "an outbox partition");
    if (gb_failed(err)) return err;
    job->partition = gb_dbox_partition(s, gb_str_bytes(&p->scratch));
    if (job->partition == NULL) return gb_err_no_memory("an outbox partition");
    job->partition->users++;
    job->task = &p->task;
    job->number_failed = number_failed;
    job->record = *r;
    job->record.seq = 0;
    if (r->created_at_ms == 0) job->record.created_at_ms = gb_dbox_now_ms(s);
    return gb_dbox_job_start(s, job);
}

static const struct gb_dbox_task_ops persist_ops = {
    .stop = stop, .finish = finish, .free = persist_free};

void gb_dbox_persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    struct gb_dbox *s = gb_dbox_of(o);
    q->stored = 0;
    size_t size = q->count > SIZE_MAX / sizeof(struct gb_dbox_job) / 2
                      ? SIZE_MAX
                      : sizeof(struct persist) + q->count * sizeof(struct gb_dbox_job);
    struct persist *p = gb_dbox_task_new(s, size, &persist_ops, &q->op, done, arg);
    if (p == NULL) return;
    p->q = q;
    p->left = q->count;
    struct gb_err err = gb_ok();
    for (size_t i = 0; i < q->count && !gb_failed(err); i++) err = start_job(p, i);
    if (gb_failed(err) || q->count == 0) {
        gb_dbox_end(&p->task, err);
        return;
    }
    gb_dbox_puts_dispatch(s);
}
