#include "adapters/dynamodb/dynamodb_outbox_direct.h"

/* Rows that are in no index and that nobody here knows: of an owner that is gone, or of a put whose
 * answer got lost (docs/decisions/0623). One strong read of the partition, in parts if it is long,
 * brings them into the indexes, where the usual rules apply to them. On the way it tells whether
 * records with ordering keys are in the indexes. */

/* For one call, so that most of its time is the claim's; the next call goes on. */
enum { PAGES_MAX = 16, SHARE_OF_TIME = 4 };
#define EVERY_MS INT64_C(900000)
#define LATER_MS INT64_C(30000) /* without a stale_claim */

bool gb_dbox_sweep_due(const struct gb_dbox *s, const struct gb_dbox_partition *p)
{
    int64_t now_ms = gb_dbox_now_ms(s);
    int64_t age_ms = now_ms - p->swept_ms;
    if (s->cfg.holds == NULL) return false;
    if (!p->swept || age_ms < 0 || age_ms >= EVERY_MS) return true;
    if (p->sweep_due_ms != 0 && now_ms >= p->sweep_due_ms) return true;
    return p->keyed_wish && p->backlog_empty && age_ms >= s->keyed_after_ms;
}

void gb_dbox_sweep_later(struct gb_dbox *s, struct gb_dbox_partition *p)
{
    int64_t at_ms = gb_dbox_now_ms(s) + (s->stale_ms > 0 ? s->stale_ms + 1 : LATER_MS);
    if (p->sweep_due_ms == 0 || at_ms < p->sweep_due_ms) p->sweep_due_ms = at_ms;
}

static void query(struct gb_dbox_task *t, struct gb_dbox_sweep *w);

static void through(struct gb_dbox_task *t)
{
    struct gb_dbox_partition *p = t->partition;
    p->swept = true;
    p->swept_ms = p->sweep_began_ms;
    p->sweep_began_ms = 0;
    p->keyed_clean = !p->sweep_saw_keyed && p->sweep_events == p->keyed_events;
    p->clean_ms = p->swept_ms;
    p->keyed_wish = false;
}

static bool has_more_time(const struct gb_dbox_task *t, const struct gb_dbox_sweep *w)
{
    return w->pages < PAGES_MAX && gb_reactor_now_ns(t->s->cfg.reactor) < w->until_ns;
}

/* Another owner may have come meanwhile: then this sweep counts for nothing. */
static void on_mended(struct gb_dbox_task *t, void *arg)
{
    struct gb_dbox_sweep *w = arg;
    bool mine = t->partition->sweeper == w;
    if (mine && t->partition->sweep_cursor.size > 0 && has_more_time(t, w)) {
        query(t, w);
        return;
    }
    if (mine && t->partition->sweep_cursor.size == 0) through(t);
    w->done(t);
}

/* --- a page --- */

static struct gb_err take(struct gb_dbox_task *t, struct gb_dbox_sweep *w, struct gb_bytes item)
{
    const struct gb_dynamodb_source from = {t->s->table, "Query"};
    struct gb_dbox_row row;
    gb_str_clear(&w->scratch);
    struct gb_err err = gb_dbox_row_read(&from, item, &w->scratch, &row);
    bool known = gb_dbox_direct_find(t->s, row.record.id) != NULL;
    if (row.record.ordering_key.size > 0 && !known) t->partition->sweep_saw_keyed = true;
    if (!gb_failed(err) && (!row.direct || known)) return err;
    if (!gb_failed(err)) err = gb_dbox_row_decode(&row);
    if (err.code == GB_INVALID_OUTBOX_RECORD) {
        gb_dbox_log_corrupt(t->s, &err);
        return gb_ok();
    }
    if (gb_failed(err)) return err;
    struct gb_dbox_direct *e = gb_dbox_direct_stray(t->s, t->partition, &row);
    gb_envelope_unref(row.record.envelope);
    return e == NULL ? gb_err_no_memory("an outbox sweep") : err;
}

static void on_page(struct gb_dbox_request *r)
{
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_sweep *w = r->step;
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    if (t->ending) return;
    struct gb_err err = r->call.op.result;
    gb_dynamodb_items_init(&items, r->call.answer.items);
    while (!gb_failed(err) && gb_dynamodb_items_next(&items, &item)) err = take(t, w, item);
    if (!gb_failed(err) && t->partition->sweeper == w) {
        gb_str_clear(&t->partition->sweep_cursor);
        gb_str_append(&t->partition->sweep_cursor, r->call.answer.last_key);
        err = gb_str_check(&t->partition->sweep_cursor, "an outbox sweep");
    }
    if (gb_failed(err)) {
        gb_dbox_end(t, err);
        return;
    }
    w->pages++;
    gb_dbox_mend_run(t, w->mend, on_mended, w);
}

static void query(struct gb_dbox_task *t, struct gb_dbox_sweep *w)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    struct gb_dynamodb_call *call = &w->request->call;
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, t->s->table);
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "PK = :pk AND begins_with(SK, :prefix)");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER,
                     "(attribute_exists(rid) AND #status = :claimed) OR "
                     "(attribute_exists(ordering_key) AND (#status = :pending OR #status = "
                     ":claimed))");
    gb_dynamodb_names(call, names, 1);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":pk", t->partition->key);
    gb_dynamodb_w_s_c(&call->w, ":prefix", GB_DBOX_PREFIX);
    gb_dynamodb_w_s_c(&call->w, ":pending", "pending");
    gb_dynamodb_w_s_c(&call->w, ":claimed", "claimed");
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_start_key(call, gb_str_bytes(&t->partition->sweep_cursor));
    w->request->step = w;
    gb_dbox_send(t, w->request, on_page);
}

void gb_dbox_sweep_run(struct gb_dbox_task *t, struct gb_dbox_sweep *w)
{
    struct gb_dbox_partition *p = t->partition;
    if (p->sweeper != NULL) { /* another claim is at it */
        w->done(t);
        return;
    }
    uint64_t now_ns = gb_reactor_now_ns(t->s->cfg.reactor);
    w->until_ns = now_ns + (t->deadline_ns > now_ns ? t->deadline_ns - now_ns : 0) / SHARE_OF_TIME;
    p->sweeper = w;
    w->partition = p;
    if (p->sweep_began_ms == 0) {
        p->sweep_began_ms = gb_dbox_now_ms(t->s);
        p->sweep_events = p->keyed_events;
        p->sweep_saw_keyed = false;
        p->sweep_due_ms = 0;
        gb_str_clear(&p->sweep_cursor);
    }
    query(t, w);
}

void gb_dbox_sweep_deinit(struct gb_dbox_sweep *w)
{
    if (w->partition != NULL && w->partition->sweeper == w) w->partition->sweeper = NULL;
    gb_str_deinit(&w->scratch);
}
