#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"
#include "base/duration.h"

/* Rows that are in no index and that nobody here knows: of an owner that is gone, or of a put whose
 * answer got lost (docs/decisions/0623). One strong read of the partition, page by page, brings
 * them into the indexes, where the usual rules apply to them. On the way it tells whether records
 * with ordering keys are in the indexes. It runs beside the claims, of which one has begun it. */

#define EVERY_MS INT64_C(900000)
#define LATER_MS INT64_C(30000)    /* without a stale_claim */
#define PER_PAGE_MS INT64_C(60000) /* what a page beyond the first costs in patience */
#define LOG_EVERY_NS GB_MINUTE
#define TIMEOUT_NS GB_HOUR /* the next claim goes on then */

struct gb_dbox_sweep {
    struct gb_dbox_task task;
    struct gb_dbox_request request;
    struct gb_dbox_mend mend;
    struct gb_str scratch;
    struct gb_list waiting; /* claims, until a page is done */
    bool page_done;
};

static struct gb_dbox_sweep *sweep_of(struct gb_dbox_task *t)
{
    return GB_CONTAINER_OF(t, struct gb_dbox_sweep, task);
}

/* --- when --- */

/* A long partition is read more rarely, so that all sweeps together read a page a minute. */
static int64_t least_age_ms(const struct gb_dbox_partition *p)
{
    int64_t ms = p->swept_pages > 1 ? (int64_t)(p->swept_pages - 1) * PER_PAGE_MS : 0;
    return ms < GB_DBOX_DAY_MS ? ms : GB_DBOX_DAY_MS;
}

bool gb_dbox_sweep_due(const struct gb_dbox *s, const struct gb_dbox_partition *p)
{
    int64_t now_ms = gb_dbox_now_ms(s);
    int64_t age_ms = now_ms - p->swept_ms;
    if (s->cfg.holds == NULL) return false;
    if (!p->swept || age_ms < 0) return true;
    if (age_ms < least_age_ms(p)) return false;
    if (age_ms >= EVERY_MS || (p->sweep_due_ms != 0 && now_ms >= p->sweep_due_ms)) return true;
    return p->keyed_wish && p->backlog_empty && age_ms >= s->keyed_after_ms;
}

void gb_dbox_sweep_later(struct gb_dbox *s, struct gb_dbox_partition *p)
{
    int64_t at_ms = gb_dbox_now_ms(s) + (s->stale_ms > 0 ? s->stale_ms + 1 : LATER_MS);
    if (p->sweep_due_ms == 0 || at_ms < p->sweep_due_ms) p->sweep_due_ms = at_ms;
}

/* --- those who wait for the first page --- */

static void wake(struct gb_dbox_sweep *w)
{
    w->page_done = true;
    for (;;) {
        struct gb_list_node *node = gb_list_first(&w->waiting);
        if (node == NULL) return;
        gb_list_remove(node);
        struct gb_dbox_sweep_wait *wait = GB_CONTAINER_OF(node, struct gb_dbox_sweep_wait, node);
        wait->done(wait->task);
    }
}

void gb_dbox_sweep_wait_deinit(struct gb_dbox_sweep_wait *wait)
{
    if (wait->task != NULL) gb_list_remove(&wait->node);
}

/* --- pages --- */

static void query(struct gb_dbox_sweep *w);

static void through(struct gb_dbox_partition *p)
{
    p->swept = true;
    p->swept_ms = p->sweep_began_ms;
    p->swept_pages = p->sweep_pages;
    p->sweep_began_ms = 0;
    p->keyed_clean = !p->sweep_saw_keyed && p->sweep_events == p->keyed_events;
    p->clean_ms = p->swept_ms;
    p->keyed_wish = false;
}

static void on_mended(struct gb_dbox_task *t, void *arg)
{
    struct gb_dbox_sweep *w = arg;
    if (t->partition->sweep_cursor.size == 0) {
        through(t->partition);
        gb_dbox_end(t, gb_ok());
        return;
    }
    query(w);
    wake(w);
}

static struct gb_err take(struct gb_dbox_sweep *w, struct gb_bytes item)
{
    struct gb_dbox_task *t = &w->task;
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
    struct gb_dbox_sweep *w = r->step;
    struct gb_dbox_task *t = r->task;
    struct gb_dbox_partition *p = t->partition;
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    if (t->ending) return;
    struct gb_err err = r->call.op.result;
    gb_dynamodb_items_init(&items, r->call.answer.items);
    while (!gb_failed(err) && gb_dynamodb_items_next(&items, &item)) err = take(w, item);
    if (!gb_failed(err)) {
        p->sweep_pages++;
        gb_str_clear(&p->sweep_cursor);
        gb_str_append(&p->sweep_cursor, r->call.answer.last_key);
        err = gb_str_check(&p->sweep_cursor, "an outbox sweep");
    }
    if (gb_failed(err)) {
        gb_dbox_end(t, err);
        return;
    }
    gb_dbox_mend_run(t, &w->mend, on_mended, w);
}

static void query(struct gb_dbox_sweep *w)
{
    static const struct gb_dynamodb_name names[] = {{"#status", "status"}};
    struct gb_dbox_task *t = &w->task;
    struct gb_dynamodb_call *call = &w->request.call;
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
    w->request.step = w;
    gb_dbox_send(t, &w->request, on_page);
}

/* --- the task --- */

static void log_failure(struct gb_dbox *s, const struct gb_dbox_partition *p,
                        const struct gb_err *err)
{
    uint64_t suppressed = 0;
    if (!gb_log_allow(&s->sweep_log, gb_reactor_now_ns(s->cfg.reactor), LOG_EVERY_NS, &suppressed))
        return;
    GB_LOG(GB_LOG_WARN, "outbox sweep broke off; the next claim goes on with it",
           gb_lf_str("table", s->table), gb_lf_str("partition", p->name),
           gb_lf_int("pages", p->sweep_pages), gb_lf_int("suppressed", (int64_t)suppressed),
           gb_lf_err(err));
}

/* Those who wait go on with what the indexes show. */
static void stop(struct gb_dbox_task *t)
{
    t->partition->sweep = NULL;
    wake(sweep_of(t));
}

static struct gb_err finish(struct gb_dbox_task *t, struct gb_err verdict)
{
    if (gb_failed(verdict) && verdict.code != GB_CANCELLED)
        log_failure(t->s, t->partition, &verdict);
    return verdict;
}

static void sweep_free(struct gb_dbox_task *t)
{
    struct gb_dbox_sweep *w = sweep_of(t);
    gb_dbox_mend_deinit(&w->mend);
    gb_dynamodb_call_deinit(&w->request.call);
    gb_str_deinit(&w->scratch);
    free(w);
}

static const struct gb_dbox_task_ops sweep_ops = {
    .stop = stop, .finish = finish, .free = sweep_free};

static void over(struct gb_op *op, void *arg)
{
    (void)arg;
    free(op); /* lives longer than the task, which may be the store's last */
}

/* Out of memory, or too many calls are pending: the next claim tries again. */
static void begin(struct gb_dbox *s, struct gb_dbox_partition *p)
{
    struct gb_op *op = calloc(1, sizeof *op);
    if (op == NULL) return;
    op->deadline_ns = gb_reactor_now_ns(s->cfg.reactor) + (uint64_t)TIMEOUT_NS;
    struct gb_dbox_sweep *w = gb_dbox_task_new(s, sizeof *w, &sweep_ops, op, over, NULL);
    if (w == NULL) return;
    gb_list_init(&w->waiting);
    w->task.partition = p;
    p->users++;
    p->sweep = w;
    if (p->sweep_began_ms == 0) {
        p->sweep_began_ms = gb_dbox_now_ms(s);
        p->sweep_events = p->keyed_events;
        p->sweep_saw_keyed = false;
        p->sweep_due_ms = 0;
        p->sweep_pages = 0;
        gb_str_clear(&p->sweep_cursor);
    }
    query(w);
}

void gb_dbox_sweep_end(struct gb_dbox_partition *p)
{
    if (p->sweep != NULL) gb_dbox_end(&p->sweep->task, (struct gb_err){.code = GB_CANCELLED});
}

void gb_dbox_sweep_run(struct gb_dbox_task *t, struct gb_dbox_sweep_wait *wait)
{
    struct gb_dbox_partition *p = t->partition;
    if (p->sweep == NULL) begin(t->s, p);
    if (p->sweep == NULL || p->sweep->page_done) {
        wait->done(t);
        return;
    }
    wait->task = t;
    gb_list_push(&p->sweep->waiting, &wait->node);
}
