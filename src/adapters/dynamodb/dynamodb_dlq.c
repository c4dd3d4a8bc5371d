#include "adapters/dynamodb/dynamodb_dlq.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "base/duration.h"

enum { SCAN_PAGES_MAX = 100 };

/* --- write --- */

struct writing {
    struct gb_dynamodb_task task;
    const struct gb_dlq_entry *entry;
};

/* Whether the row that stands in the way is what an attempt without an answer wrote. */
static bool is_own(struct writing *w)
{
    const struct gb_dynamodb_call *call = &w->task.call;
    const struct gb_dynamodb_source from = {w->task.desk->table, "PutItem"};
    struct gb_dlq_entry *there = NULL;
    if (call->outcome != GB_DYNAMODB_OUTCOME_UNKNOWN || call->answer.item.size == 0) return false;
    if (gb_failed(gb_ddlq_entry_read(&from, call->answer.item, &w->task.scratch, &there)))
        return false;
    bool own = there->failed_at_ms == w->entry->failed_at_ms &&
               there->attempts == w->entry->attempts &&
               strcmp(there->last_error, w->entry->last_error) == 0;
    gb_dlq_entry_free(there);
    return own;
}

static void written(struct gb_dynamodb_task *t)
{
    struct writing *w = GB_CONTAINER_OF(t, struct writing, task);
    if (t->call.error != GB_DYNAMODB_CONDITION_FAILED) {
        gb_dynamodb_task_end(t, t->call.op.result);
    } else if (is_own(w)) {
        gb_dynamodb_task_end(t, gb_ok());
    } else {
        gb_dynamodb_task_end(t, gb_err(GB_DUPLICATE_RECORD, "DLQ entry %s exists", w->entry->id));
    }
}

static void write(struct gb_dlq *d, struct gb_dlq_write *q, gb_done_fn *done, void *arg)
{
    struct gb_ddlq *s = gb_ddlq_of(d);
    struct writing *w = gb_dynamodb_task_new(&s->desk, sizeof *w, &q->op, done, arg);
    if (w == NULL) return;
    struct gb_dynamodb_call *call = &w->task.call;
    w->entry = q->entry;
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, s->desk.table);
    call->repeatable = true; /* the condition fails the second time */
    gb_ddlq_write_item(call, q->entry, s->retention_s, &w->task.scratch);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "attribute_not_exists(PK)");
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dynamodb_task_send(&w->task, written);
}

/* --- get --- */

struct getting {
    struct gb_dynamodb_task task;
    struct gb_dlq_get *q;
};

static void got(struct gb_dynamodb_task *t)
{
    struct getting *g = GB_CONTAINER_OF(t, struct getting, task);
    const struct gb_dynamodb_source from = {t->desk->table, "GetItem"};
    struct gb_err err = t->call.op.result;
    struct gb_bytes item = t->call.answer.item;
    if (!gb_failed(err) && item.size == 0) err = gb_err(GB_NOT_FOUND, "no DLQ entry %s", g->q->id);
    if (!gb_failed(err)) err = gb_ddlq_entry_read(&from, item, &t->scratch, &g->q->entry);
    gb_dynamodb_task_end(t, err);
}

static void get(struct gb_dlq *d, struct gb_dlq_get *q, gb_done_fn *done, void *arg)
{
    struct gb_ddlq *s = gb_ddlq_of(d);
    q->entry = NULL;
    struct getting *g = gb_dynamodb_task_new(&s->desk, sizeof *g, &q->op, done, arg);
    if (g == NULL) return;
    g->q = q;
    if (q->id[0] == '\0' || strlen(q->id) >= GB_DDLQ_ID_SIZE) {
        gb_dynamodb_task_end(&g->task, gb_err(GB_NOT_FOUND, "no DLQ entry %.80s", q->id));
        return;
    }
    gb_dynamodb_begin(&g->task.call, GB_DYNAMODB_GET_ITEM, s->desk.table);
    gb_ddlq_write_key(&g->task.call, q->id);
    gb_dynamodb_flag(&g->task.call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_task_send(&g->task, got);
}

/* --- construction and close --- */

static void close_store(struct gb_dlq *d, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_dynamodb_desk_close(&gb_ddlq_of(d)->desk, op, done, arg);
}

static void store_free(struct gb_dynamodb_desk *desk)
{
    struct gb_ddlq *s = GB_CONTAINER_OF(desk, struct gb_ddlq, desk);
    gb_dynamodb_desk_deinit(desk);
    gb_str_deinit(&s->resume);
    free(s);
}

static const struct gb_dlq_ops port_ops = {
    .write = write,
    .get = get,
    .list = gb_ddlq_list,
    .remove = gb_ddlq_remove,
    .count = gb_ddlq_count,
    .close = close_store,
};

struct gb_err gb_dynamodb_dlq_new(const struct gb_dynamodb_dlq_cfg *cfg, struct gb_dlq **out)
{
    struct gb_ddlq *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("a DynamoDB DLQ");
    s->port.ops = &port_ops;
    s->desk = (struct gb_dynamodb_desk){.reactor = cfg->reactor,
                                        .client = cfg->client,
                                        .queue_max = cfg->queue_max,
                                        .free = store_free};
    if (cfg->retention_ns > 0)
        s->retention_s = cfg->retention_ns < GB_SEC ? 1 : cfg->retention_ns / GB_SEC;
    s->max_pages = cfg->max_scan_pages == 0 ? SCAN_PAGES_MAX : cfg->max_scan_pages;
    struct gb_err err = gb_dynamodb_desk_init(&s->desk, cfg->table);
    if (gb_failed(err)) {
        free(s);
    } else {
        *out = &s->port;
    }
    return err;
}
