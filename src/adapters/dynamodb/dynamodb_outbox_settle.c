#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"
#include "base/duration.h"

/* Complete or release of one claimed record: its key from the cache or RecordIDIndex, then one
 * conditional update (spec 05 §9.5, §9.6). */

enum { LOOKUPS_MAX = 5 };
#define LOOKUP_PAUSE_NS (50 * GB_MS)

struct settle {
    struct gb_dbox_task task;
    struct gb_outbox_settle *q;
    struct gb_dbox_request request;
    struct gb_timer pause;
    bool paused;
    unsigned lookups;
    bool scanned; /* the partition, for a row that no index shows */
    int64_t now_ms;
    bool requeues;    /* a release of a direct record that stays claimed for its next hand-out */
    uint64_t replays; /* then: the row's new replay_count */
    struct gb_str sort_key, scratch;
    struct gb_err failure;
};

static struct settle *settle_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct settle, task);
}

static void end_stale(struct settle *s)
{
    struct gb_dbox_direct *e = gb_dbox_direct_find(s->task.s, s->q->id);
    if (e != NULL) e->partition->keyed_clean = false; /* somebody else may hold it */
    if (e != NULL && !e->running && !gb_dbox_direct_is_pending(e))
        gb_dbox_direct_free(s->task.s, e);
    gb_dbox_ids_remove(s->task.s, s->q->id);
    gb_dbox_end(&s->task, gb_dbox_stale(&s->q->token, "it does not hold the claim of this record"));
}

/* --- did an update whose answer got lost count? --- */

static bool is_settled(const struct settle *s, const struct gb_dbox_row *row)
{
    if (row->record.claim_version != s->q->token.version) return false;
    if (s->requeues)
        return row->status == GB_OUTBOX_CLAIMED && row->record.replay_count == s->replays;
    if (s->q->kind == GB_OUTBOX_RELEASE) return row->status == GB_OUTBOX_PENDING;
    return row->status == GB_OUTBOX_COMPLETED && row->completed_at_ms == s->now_ms &&
           gb_bytes_equal(row->claimed_by, s->q->token.owner);
}

static bool is_held(const struct settle *s, const struct gb_dbox_row *row)
{
    return row->status == GB_OUTBOX_CLAIMED && row->record.claim_version == s->q->token.version &&
           gb_bytes_equal(row->claimed_by, s->q->token.owner);
}

/* What is in memory follows the row. */
static void end_well(struct settle *s)
{
    struct gb_dbox *store = s->task.s;
    struct gb_dbox_direct *e = gb_dbox_direct_find(store, s->q->id);
    if (s->requeues && e != NULL && e->state == GB_DBOX_DIRECT_HANDED) {
        gb_dbox_direct_requeue(e);
    } else if (s->requeues && e != NULL) {
        e->pending = true; /* it was to leave meanwhile */
    } else if (e != NULL) {
        if (s->q->kind == GB_OUTBOX_RELEASE) gb_dbox_note_indexed(e->partition, &e->record);
        if (!e->running) gb_dbox_direct_free(store, e);
    } else if (s->q->kind == GB_OUTBOX_RELEASE && s->task.partition != NULL) {
        gb_dbox_note_released(s->task.partition);
    }
    if (s->q->kind == GB_OUTBOX_COMPLETE) gb_dbox_ids_remove(s->task.s, s->q->id);
    gb_dbox_end(&s->task, gb_ok());
}

static void judge(struct settle *s, struct gb_bytes item)
{
    const struct gb_dynamodb_source from = {s->task.s->table, "GetItem"};
    struct gb_dbox_row row = {0};
    gb_str_clear(&s->scratch);
    struct gb_err err = item.size == 0 ? gb_ok() : gb_dbox_row_read(&from, item, &s->scratch, &row);
    if (item.size > 0 && !gb_failed(err) && is_settled(s, &row)) {
        end_well(s);
    } else if (gb_failed(err) || (item.size > 0 && is_held(s, &row) && gb_failed(s->failure))) {
        gb_dbox_end(&s->task, gb_failed(s->failure) ? s->failure : err);
    } else {
        end_stale(s);
    }
}

static void on_read_back(struct gb_dbox_request *r)
{
    struct settle *s = r->step;
    if (r->task->ending) return;
    if (gb_failed(r->call.op.result)) {
        gb_dbox_end(r->task, gb_failed(s->failure) ? s->failure : r->call.op.result);
    } else {
        judge(s, r->call.answer.item);
    }
}

static void read_back(struct settle *s)
{
    struct gb_dynamodb_call *call = &s->request.call;
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, s->task.s->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, s->q->partition, gb_str_bytes(&s->sort_key));
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dbox_send(&s->task, &s->request, on_read_back);
}

static void on_updated(struct gb_dbox_request *r)
{
    struct settle *s = r->step;
    const struct gb_dynamodb_call *call = &r->call;
    bool unknown = call->outcome == GB_DYNAMODB_OUTCOME_UNKNOWN;
    if (r->task->ending) return;
    if (!gb_failed(call->op.result)) {
        end_well(s);
    } else if (call->error == GB_DYNAMODB_CONDITION_FAILED && !unknown) {
        end_stale(s);
    } else if (call->error == GB_DYNAMODB_CONDITION_FAILED && call->answer.item.size > 0) {
        judge(s, call->answer.item);
    } else if (unknown) {
        if (call->error != GB_DYNAMODB_CONDITION_FAILED) s->failure = call->op.result;
        read_back(s);
    } else {
        gb_dbox_end(r->task, call->op.result);
    }
}

/* --- the update --- */

/* What ended keeps what tells of a duplicate and of its fate, not the message. */
#define COMPLETE_UPDATE                                                                            \
    "SET #status = :next, completed_at = :now, #ttl = :ttl REMOVE claim_sort, has_expiry, "        \
    "envelope_json, headers_json, env, body"
#define REQUEUE_UPDATE "SET claimed_at = :now, replay_count = :replays, first_attempted_at = :first"

static void write_update(struct settle *s, const struct gb_dbox_direct *e)
{
    struct gb_dynamodb_call *call = &s->request.call;
    gb_str_clear(&s->scratch);
    if (s->q->kind == GB_OUTBOX_COMPLETE) {
        gb_str_append_c(&s->scratch, COMPLETE_UPDATE);
    } else if (s->requeues) {
        gb_str_append_c(&s->scratch, REQUEUE_UPDATE);
    } else if (e != NULL) {
        gb_str_appendf(&s->scratch,
                       "SET #status = :next, first_attempted_at = :first, %s REMOVE claimed_by, "
                       "claimed_at, " GB_DBOX_INDEX_REMOVE,
                       gb_dbox_index_set(&e->record));
    } else {
        gb_str_append_c(&s->scratch, "SET #status = :next REMOVE claimed_by, claimed_at");
    }
    if (s->scratch.failed || s->sort_key.failed) call->aws.body.failed = true;
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, s->scratch.failed ? "" : s->scratch.data);
}

static void write_values(struct settle *s, const struct gb_dbox_direct *e)
{
    struct gb_json_writer *w = &s->request.call.w;
    bool complete = s->q->kind == GB_OUTBOX_COMPLETE;
    gb_dynamodb_w_s_c(w, ":claimed", "claimed");
    gb_dynamodb_w_s(w, ":owner", s->q->token.owner);
    gb_dynamodb_w_u64(w, ":version", s->q->token.version);
    if (!s->requeues) gb_dynamodb_w_s_c(w, ":next", complete ? "completed" : "pending");
    if (complete || s->requeues) gb_dynamodb_w_i64(w, ":now", s->now_ms);
    if (complete) gb_dynamodb_w_u64(w, ":ttl", gb_dbox_ttl(s->task.s, s->now_ms));
    if (s->requeues) gb_dynamodb_w_u64(w, ":replays", s->replays);
    if (!complete && e != NULL) gb_dynamodb_w_i64(w, ":first", e->record.first_attempted_at_ms);
    if (!complete && !s->requeues && e != NULL) {
        gb_dbox_write_index_values(w, &e->record, &s->scratch);
    } else {
        gb_dynamodb_w_s(w, ":id", s->q->id);
    }
}

static void update(struct settle *s)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}, {"#ttl", "ttl"}};
    struct gb_dynamodb_call *call = &s->request.call;
    const struct gb_dbox_direct *e = gb_dbox_direct_find(s->task.s, s->q->id);
    if (e != NULL && e->indexed) e = NULL;
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, s->task.s->table);
    call->repeatable = true; /* the condition fails the second time */
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, s->q->partition, gb_str_bytes(&s->sort_key));
    gb_dynamodb_object_end(call);
    write_update(s, e);
    /* A direct row may have come into the indexes since, by another process. */
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     s->requeues
                         ? "#status = :claimed AND claimed_by = :owner AND claim_version = "
                           ":version AND (record_id = :id OR rid = :id) AND replay_count < :replays"
                         : "#status = :claimed AND claimed_by = :owner AND claim_version = "
                           ":version AND (record_id = :id OR rid = :id)");
    gb_dynamodb_names(call, names, s->q->kind == GB_OUTBOX_COMPLETE ? 2 : 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    write_values(s, e);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dbox_send(&s->task, &s->request, on_updated);
}

/* --- the key --- */

static void look_up(struct settle *s);

static void pause_over(struct gb_timer *timer)
{
    struct settle *s = GB_CONTAINER_OF(timer, struct settle, pause);
    if (!s->task.ending) look_up(s);
}

static void pause_then_look(struct settle *s)
{
    struct gb_reactor *reactor = s->task.s->cfg.reactor;
    struct gb_err err = s->paused ? gb_ok() : gb_timer_init(&s->pause, reactor, pause_over);
    if (gb_failed(err)) {
        gb_dbox_end(&s->task, err);
        return;
    }
    s->paused = true;
    gb_timer_start(&s->pause, gb_reactor_now_ns(reactor) + (uint64_t)LOOKUP_PAUSE_NS);
}

/* The key that lies in the call's partition; `*elsewhere`: there is one, but not there. */
static struct gb_err find_key(struct settle *s, struct gb_bytes page, bool *elsewhere)
{
    const struct gb_dynamodb_source from = {s->task.s->table, "RecordIDIndex"};
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    gb_dynamodb_items_init(&items, page);
    while (gb_dynamodb_items_next(&items, &item)) {
        struct gb_bytes partition = {0};
        struct gb_bytes sort_key = {0};
        struct gb_dynamodb_field fields[] = {
            {"PK", GB_DYNAMODB_FIELD_S, true, &partition, false},
            {"SK", GB_DYNAMODB_FIELD_S, true, &sort_key, false},
        };
        gb_str_clear(&s->scratch);
        struct gb_err err = gb_dynamodb_item_read(&from, item, &s->scratch, fields, 2);
        if (gb_failed(err)) return err;
        *elsewhere = true;
        if (!gb_bytes_equal(partition, s->q->partition)) continue;
        gb_str_append(&s->sort_key, sort_key);
        return gb_ok();
    }
    return gb_ok();
}

static void scan(struct settle *s, struct gb_bytes last_key);

static void on_scanned(struct gb_dbox_request *r)
{
    struct settle *s = r->step;
    bool elsewhere = false;
    if (r->task->ending) return;
    struct gb_err err = r->call.op.result;
    if (!gb_failed(err)) err = find_key(s, r->call.answer.items, &elsewhere);
    if (gb_failed(err)) {
        gb_dbox_end(r->task, err);
    } else if (s->sort_key.size > 0) {
        update(s);
    } else if (r->call.answer.last_key.size > 0) {
        scan(s, r->call.answer.last_key);
    } else {
        pause_then_look(s);
    }
}

/* A direct record that has ended, or that a process before this one has left. */
static void scan(struct settle *s, struct gb_bytes last_key)
{
    struct gb_dynamodb_call *call = &s->request.call;
    s->scanned = true;
    gb_str_clear(&s->scratch);
    gb_str_append(&s->scratch, last_key);
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, s->task.s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "PK = :pk AND begins_with(SK, :prefix)");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER, "rid = :id");
    gb_dynamodb_text(call, GB_DYNAMODB_PROJECTION, "PK, SK");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":pk", s->q->partition);
    gb_dynamodb_w_s_c(&call->w, ":prefix", GB_DBOX_PREFIX);
    gb_dynamodb_w_s(&call->w, ":id", s->q->id);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_start_key(call, gb_str_bytes(&s->scratch));
    if (s->scratch.failed) call->aws.body.failed = true;
    gb_dbox_send(&s->task, &s->request, on_scanned);
}

static void on_looked_up(struct gb_dbox_request *r)
{
    struct settle *s = r->step;
    bool elsewhere = false;
    if (r->task->ending) return;
    struct gb_err err = r->call.op.result;
    if (!gb_failed(err)) err = find_key(s, r->call.answer.items, &elsewhere);
    if (gb_failed(err)) {
        gb_dbox_end(r->task, err);
    } else if (s->sort_key.size > 0) {
        update(s);
    } else if (elsewhere) {
        end_stale(s);
    } else if (s->task.s->cfg.holds != NULL && !s->scanned) {
        scan(s, gb_bytes(NULL, 0));
    } else if (s->lookups < LOOKUPS_MAX) {
        pause_then_look(s);
    } else {
        gb_dbox_end(r->task, gb_err(GB_TIMEOUT,
                                    "table \"%s\": RecordIDIndex does not show the record after "
                                    "%d lookups; it stays claimed",
                                    s->task.s->table, LOOKUPS_MAX));
    }
}

static void look_up(struct settle *s)
{
    struct gb_dynamodb_call *call = &s->request.call;
    s->lookups++;
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, s->task.s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_INDEX, "RecordIDIndex");
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "record_id = :id");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":id", s->q->id);
    gb_dynamodb_object_end(call);
    gb_dbox_send(&s->task, &s->request, on_looked_up);
}

/* --- the call --- */

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    (void)t;
    return verdict;
}

static void settle_free(struct gb_dbox_task *t)
{
    struct settle *s = settle_of(t);
    if (s->paused) gb_timer_deinit(&s->pause);
    gb_str_deinit(&s->sort_key);
    gb_str_deinit(&s->scratch);
    gb_dynamodb_call_deinit(&s->request.call);
    free(s);
}

static const struct gb_dbox_task_ops settle_ops = {.finish = finish, .free = settle_free};

/* Of a record that went into no index: all that is known of it is here. */
static void settle_direct(struct settle *s, const struct gb_dbox_direct *e)
{
    const struct gb_token *token = &s->q->token;
    bool own = token->version == e->token.version && gb_bytes_equal(token->owner, e->token.owner);
    if (!gb_bytes_equal(e->partition->key, s->q->partition)) {
        gb_dbox_end(&s->task, gb_dbox_stale(token, "the record lies in another partition"));
        return;
    }
    if (!own || gb_dbox_direct_is_pending(e)) {
        gb_dbox_end(&s->task, gb_dbox_stale(token, "it does not hold the claim of this record"));
        return;
    }
    s->requeues = s->q->kind == GB_OUTBOX_RELEASE && gb_dbox_direct_may_stay(s->task.s, e);
    s->replays = (uint64_t)e->record.replay_count + 1;
    gb_str_append(&s->sort_key, e->sort_key);
    update(s);
}

void gb_dbox_settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    struct gb_dbox *store = gb_dbox_of(o);
    struct gb_bytes partition;
    struct gb_bytes sort_key;
    struct settle *s = gb_dbox_task_new(store, sizeof *s, &settle_ops, &q->op, done, arg);
    if (s == NULL) return;
    s->q = q;
    s->request.step = s;
    s->now_ms = gb_dbox_now_ms(store);
    const struct gb_dbox_direct *direct = gb_dbox_direct_find(store, q->id);
    if (!gb_token_valid(&q->token)) {
        gb_dbox_end(&s->task, gb_dbox_stale(&q->token, "owner or version is empty"));
    } else if (q->id.size == 0) {
        end_stale(s);
    } else if (!gb_dbox_hold(&s->task, q->partition)) {
        return;
    } else if (direct != NULL) {
        settle_direct(s, direct);
    } else if (!gb_dbox_ids_get(store, q->id, &partition, &sort_key)) {
        look_up(s);
    } else if (!gb_bytes_equal(partition, q->partition)) {
        gb_dbox_end(&s->task, gb_dbox_stale(&q->token, "the record lies in another partition"));
    } else {
        gb_str_append(&s->sort_key, sort_key);
        update(s);
    }
}
