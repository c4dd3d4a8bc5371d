#include "adapters/dynamodb/dynamodb_outbox_parts.h"

/* The durable high-water mark of a partition (spec 05 §2.5, §9.5): read, seeded from the rows when
 * the fence row has none, raised when it rises. What is known to be raised is not written again
 * within a day (docs/decisions/0620). */

#define FENCE_KEEP_MS (30 * GB_DBOX_DAY_MS) /* spec 05 §9.4 */
enum { OWNER_SHOWN = 80 };

struct gb_err gb_dbox_stale(const struct gb_token *token, const char *why)
{
    char owner[OWNER_SHOWN];
    gb_bytes_show(token->owner, owner, sizeof owner);
    return gb_err(GB_STALE_FENCING_TOKEN, "fencing token of %s, version %llu: %s", owner,
                  (unsigned long long)token->version, why);
}

/* Seconds; a row goes late rather than early. */
uint64_t gb_dbox_ttl(const struct gb_dbox *s, int64_t from_ms)
{
    int64_t at_ms = from_ms > INT64_MAX - s->grace_ms ? INT64_MAX : from_ms + s->grace_ms;
    return at_ms <= 0 ? 0 : (uint64_t)at_ms / 1000 + ((uint64_t)at_ms % 1000 != 0);
}

uint64_t gb_dbox_fence_ttl(const struct gb_dbox *s)
{
    int64_t keep_ms = s->grace_ms > FENCE_KEEP_MS ? s->grace_ms : FENCE_KEEP_MS;
    return gb_dbox_ttl(s, gb_dbox_now_ms(s) + (keep_ms - s->grace_ms));
}

void gb_dbox_write_fence_check(struct gb_dynamodb_call *call, const char *table,
                               const struct gb_dbox_partition *p, uint64_t version)
{
    gb_dynamodb_action(call, GB_DYNAMODB_CONDITION_CHECK, table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, p->key, gb_bytes_c(GB_DBOX_FENCE));
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "attribute_not_exists(max_claim_version) OR max_claim_version <= :version");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_u64(&call->w, ":version", version);
    gb_dynamodb_object_end(call);
    gb_dynamodb_action_end(call);
}

static bool passed(struct gb_dbox_request *r)
{
    if (r->task->ending) return false;
    if (!gb_failed(r->call.op.result)) return true;
    gb_dbox_end(r->task, r->call.op.result);
    return false;
}

static void note_mark(struct gb_dbox_task *t, uint64_t mark)
{
    struct gb_dbox_partition *p = t->partition;
    if (mark > p->mark) p->mark = mark;
    p->seeded = false;
    p->seed_mark = 0;
    gb_str_clear(&p->seed_cursor);
}

static bool read_mark(struct gb_dbox_request *r, struct gb_bytes item, bool *present,
                      uint64_t *mark)
{
    struct gb_dbox_fence *f = r->step;
    const struct gb_dynamodb_source from = {r->task->s->table, "fence row"};
    struct gb_dynamodb_field field = {"max_claim_version", GB_DYNAMODB_FIELD_U64, false, mark,
                                      false};
    gb_str_clear(&f->scratch);
    struct gb_err err =
        item.size == 0 ? gb_ok() : gb_dynamodb_item_read(&from, item, &f->scratch, &field, 1);
    if (gb_failed(err)) gb_dbox_end(r->task, err);
    *present = field.present;
    return !gb_failed(err);
}

static void judge(struct gb_dbox_task *t, const struct gb_dbox_fence *f)
{
    if (f->token != NULL && f->token->version < t->partition->mark) {
        gb_dbox_end(t, gb_dbox_stale(f->token, "a later owner was here"));
    } else {
        f->accepted(t);
    }
}

static void on_raised(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_fence *f = r->step;
    bool present = false;
    uint64_t mark = 0;
    if (!t->ending && r->call.error == GB_DYNAMODB_CONDITION_FAILED) {
        if (!read_mark(r, r->call.answer.item, &present, &mark)) return;
        if (present) note_mark(t, mark); /* already as high, or higher */
    } else if (!passed(r)) {
        return;
    } else {
        note_mark(t, f->token->version);
        t->partition->raised_ms = gb_dbox_now_ms(t->s);
    }
    judge(t, f);
}

/* Written twice it is the same: the first that counts makes the second's condition fail. A row that
 * holds the version already is written for its `ttl`. */
static void raise_mark(struct gb_dbox_task *t, struct gb_dbox_fence *f)
{
    struct gb_dynamodb_call *call = &f->request->call;
    static const struct gb_dynamodb_name names[] = {{"#ttl", "ttl"}};
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, t->s->table);
    call->repeatable = true;
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, t->partition->key, gb_bytes_c(GB_DBOX_FENCE));
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, "SET max_claim_version = :version, #ttl = :ttl");
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "attribute_not_exists(max_claim_version) OR max_claim_version <= :version");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_u64(&call->w, ":version", f->token->version);
    gb_dynamodb_w_u64(&call->w, ":ttl", gb_dbox_fence_ttl(t->s));
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dbox_send(t, f->request, on_raised);
}

static bool is_fresh(const struct gb_dbox *s, const struct gb_dbox_partition *p)
{
    int64_t age_ms = gb_dbox_now_ms(s) - p->raised_ms;
    return p->raised_ms != 0 && age_ms >= 0 && age_ms < GB_DBOX_DAY_MS;
}

static void known(struct gb_dbox_task *t, struct gb_dbox_fence *f)
{
    const struct gb_dbox_partition *p = t->partition;
    bool stands = f->check && f->token != NULL && f->token->version == p->mark;
    if (f->token == NULL || f->token->version < p->mark || (stands && is_fresh(t->s, p))) {
        judge(t, f);
    } else {
        raise_mark(t, f);
    }
}

/* --- seed: the fence row is new, or was lost --- */

/* What was read stays right, since a claim writes the mark first; so a call whose time ends in a
 * long partition leaves the next one less to read. */

static void on_rows(struct gb_dbox_request *r);

static void read_rows(struct gb_dbox_task *t, struct gb_dbox_fence *f)
{
    struct gb_dynamodb_call *call = &f->request->call;
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, t->s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "PK = :pk AND begins_with(SK, :prefix)");
    gb_dynamodb_text(call, GB_DYNAMODB_PROJECTION, "claim_version");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":pk", t->partition->key);
    gb_dynamodb_w_s_c(&call->w, ":prefix", GB_DBOX_PREFIX);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_start_key(call, gb_str_bytes(&t->partition->seed_cursor));
    gb_dbox_send(t, f->request, on_rows);
}

static void on_rows(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_fence *f = r->step;
    struct gb_dbox_partition *p = t->partition;
    const struct gb_dynamodb_source from = {t->s->table, "Query"};
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    uint64_t highest = p->seed_mark;
    struct gb_err err = gb_ok();
    if (!passed(r)) return;
    gb_dynamodb_items_init(&items, r->call.answer.items);
    while (!gb_failed(err) && gb_dynamodb_items_next(&items, &item)) {
        uint64_t version = 0;
        struct gb_dynamodb_field field = {"claim_version", GB_DYNAMODB_FIELD_U64, false, &version,
                                          false};
        gb_str_clear(&f->scratch);
        err = gb_dynamodb_item_read(&from, item, &f->scratch, &field, 1);
        if (version > highest) highest = version;
    }
    if (!gb_failed(err)) {
        p->seed_mark = highest;
        gb_str_clear(&p->seed_cursor);
        gb_str_append(&p->seed_cursor, r->call.answer.last_key);
        err = gb_str_check(&p->seed_cursor, "an outbox claim");
    }
    if (gb_failed(err)) {
        gb_dbox_end(t, err);
    } else if (p->seed_cursor.size > 0) {
        read_rows(t, f);
    } else {
        note_mark(t, highest);
        p->seeded = true;
        known(t, f);
    }
}

static void on_fence(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_fence *f = r->step;
    bool present = false;
    uint64_t mark = 0;
    if (!passed(r) || !read_mark(r, r->call.answer.item, &present, &mark)) return;
    if (present) {
        note_mark(t, mark);
    } else if (!t->partition->seeded) {
        read_rows(t, f);
        return;
    }
    known(t, f);
}

void gb_dbox_fence(struct gb_dbox_task *t, struct gb_dbox_fence *f)
{
    const struct gb_dbox_partition *p = t->partition;
    bool sure = is_fresh(t->s, p) && !f->always && !f->check;
    f->request->step = f;
    if (f->token != NULL && f->token->version < p->mark) {
        judge(t, f);
        return;
    }
    if (f->token != NULL && sure && f->token->version == p->mark) {
        f->accepted(t);
        return;
    }
    struct gb_dynamodb_call *call = &f->request->call;
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, t->s->table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dbox_write_key(&call->w, p->key, gb_bytes_c(GB_DBOX_FENCE));
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dbox_send(t, f->request, on_fence);
}

void gb_dbox_fence_deinit(struct gb_dbox_fence *f)
{
    gb_str_deinit(&f->scratch);
}
