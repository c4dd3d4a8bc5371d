#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_parts.h"
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
    int64_t now_ms;
    struct gb_str sort_key, scratch;
    struct gb_err failure;
};

static struct settle *settle_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct settle, task);
}

static void end_stale(struct settle *s)
{
    gb_dbox_ids_remove(s->task.s, s->q->id);
    gb_dbox_end(&s->task, gb_dbox_stale(&s->q->token, "it does not hold the claim of this record"));
}

/* --- did an update whose answer got lost count? --- */

static bool is_settled(const struct settle *s, const struct gb_dbox_row *row)
{
    if (row->record.claim_version != s->q->token.version) return false;
    if (s->q->kind == GB_OUTBOX_RELEASE) return row->status == GB_OUTBOX_PENDING;
    return row->status == GB_OUTBOX_COMPLETED && row->completed_at_ms == s->now_ms &&
           gb_bytes_equal(row->claimed_by, s->q->token.owner);
}

static bool is_held(const struct settle *s, const struct gb_dbox_row *row)
{
    return row->status == GB_OUTBOX_CLAIMED && row->record.claim_version == s->q->token.version &&
           gb_bytes_equal(row->claimed_by, s->q->token.owner);
}

static void end_well(struct settle *s)
{
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

static void update(struct settle *s)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}, {"#ttl", "ttl"}};
    struct gb_dynamodb_call *call = &s->request.call;
    bool complete = s->q->kind == GB_OUTBOX_COMPLETE;
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, s->task.s->table);
    call->repeatable = true; /* the condition fails the second time */
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, s->q->partition, gb_str_bytes(&s->sort_key));
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     complete ? "SET #status = :next, completed_at = :now, #ttl = :ttl REMOVE "
                                "claim_sort, has_expiry"
                              : "SET #status = :next REMOVE claimed_by, claimed_at");
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "#status = :claimed AND claimed_by = :owner AND claim_version = :version AND "
                     "record_id = :id");
    gb_dynamodb_names(call, names, complete ? 2 : 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":next", complete ? "completed" : "pending");
    gb_dynamodb_w_s_c(&call->w, ":claimed", "claimed");
    gb_dynamodb_w_s(&call->w, ":owner", s->q->token.owner);
    gb_dynamodb_w_u64(&call->w, ":version", s->q->token.version);
    gb_dynamodb_w_s(&call->w, ":id", s->q->id);
    if (complete) gb_dynamodb_w_i64(&call->w, ":now", s->now_ms);
    if (complete) gb_dynamodb_w_u64(&call->w, ":ttl", gb_dbox_ttl(s->task.s, s->now_ms));
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    if (s->sort_key.failed) call->aws.body.failed = true;
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
    if (!gb_token_valid(&q->token)) {
        gb_dbox_end(&s->task, gb_dbox_stale(&q->token, "owner or version is empty"));
    } else if (q->id.size == 0) {
        end_stale(s);
    } else if (!gb_dbox_ids_get(store, q->id, &partition, &sort_key)) {
        look_up(s);
    } else if (!gb_bytes_equal(partition, q->partition)) {
        gb_dbox_end(&s->task, gb_dbox_stale(&q->token, "the record lies in another partition"));
    } else {
        gb_str_append(&s->sort_key, sort_key);
        update(s);
    }
}
