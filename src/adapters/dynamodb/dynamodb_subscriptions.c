#include "adapters/dynamodb/dynamodb_subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_subscriptions_row.h"
#include "adapters/dynamodb/dynamodb_task.h"

struct store {
    struct gb_subscriptions port;
    struct gb_dynamodb_desk desk;
};
struct listing {
    struct gb_dynamodb_task task;
    struct gb_subscriptions_list *q;
};
struct change {
    struct gb_dynamodb_task task;
    const struct gb_subscriptions_change *q;
    bool forget;
    struct gb_bytes *filters; /* sorted, unique */
};

static struct store *self(struct gb_subscriptions *s)
{
    return GB_CONTAINER_OF(s, struct store, port);
}

static struct gb_err check_identity(const char *identity)
{
    if (identity != NULL && identity[0] != '\0') return gb_ok();
    return gb_err(GB_INVALID_CONFIG, "managed subscriptions: the storage identity is empty");
}

static void write_key(struct gb_dynamodb_call *call, const char *identity)
{
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call->w, "storage_identity", identity);
    gb_dynamodb_object_end(call);
}

/* --- list --- */

static void listed(struct gb_dynamodb_task *t)
{
    struct listing *l = GB_CONTAINER_OF(t, struct listing, task);
    struct gb_err err = t->call.op.result;
    if (!gb_failed(err)) {
        const struct gb_dynamodb_source from = {t->desk->table, "GetItem"};
        err = gb_dsub_row_read(&from, t->call.answer.item, l->q->identity, &t->scratch,
                               &l->q->filters);
    }
    gb_dynamodb_task_end(t, err);
}

static void list(struct gb_subscriptions *s, struct gb_subscriptions_list *q, gb_done_fn *done,
                 void *arg)
{
    q->filters = (struct gb_filter_list){0};
    struct listing *l = gb_dynamodb_task_new(&self(s)->desk, sizeof *l, &q->op, done, arg);
    if (l == NULL) return;
    l->q = q;
    struct gb_err err = check_identity(q->identity);
    if (gb_failed(err)) {
        gb_dynamodb_task_end(&l->task, err);
        return;
    }
    gb_dynamodb_begin(&l->task.call, GB_DYNAMODB_GET_ITEM, l->task.desk->table);
    write_key(&l->task.call, q->identity);
    gb_dynamodb_flag(&l->task.call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_task_send(&l->task, listed);
}

/* --- remember, forget --- */

static struct gb_err check_change(const struct gb_subscriptions_change *q)
{
    struct gb_err err = check_identity(q->identity);
    for (size_t i = 0; i < q->count && !gb_failed(err); i++) {
        if (q->filters[i] == NULL || q->filters[i][0] == '\0') {
            err = gb_err(GB_INVALID_CONFIG, "managed subscriptions of %s: filter %zu is empty",
                         q->identity, i);
        }
    }
    return err;
}

static int compare_bytes(const void *a, const void *b)
{
    return strcmp((const char *)((const struct gb_bytes *)a)->data,
                  (const char *)((const struct gb_bytes *)b)->data);
}

/* A set must not hold a text twice. */
static struct gb_err sort_filters(struct change *c, size_t *count)
{
    *count = 0;
    c->filters = calloc(c->q->count + 1, sizeof *c->filters);
    if (c->filters == NULL) return gb_err_no_memory("managed filters");
    for (size_t i = 0; i < c->q->count; i++) c->filters[i] = gb_bytes_c(c->q->filters[i]);
    if (c->q->count > 1) qsort(c->filters, c->q->count, sizeof *c->filters, compare_bytes);
    for (size_t i = 0; i < c->q->count; i++) {
        if (*count == 0 || !gb_bytes_equal(c->filters[i], c->filters[*count - 1]))
            c->filters[(*count)++] = c->filters[i];
    }
    return gb_ok();
}

static void changed(struct gb_dynamodb_task *t)
{
    struct change *c = GB_CONTAINER_OF(t, struct change, task);
    bool refused = t->call.error == GB_DYNAMODB_CONDITION_FAILED;
    gb_dynamodb_task_end(t, refused ? gb_dsub_no_baseline(c->q->identity) : t->call.op.result);
}

/* One update that comes to the same when it is applied twice. */
static void write_change(struct change *c, size_t count)
{
    struct gb_dynamodb_call *call = &c->task.call;
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, c->task.desk->table);
    call->repeatable = true;
    write_key(call, c->q->identity);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     count == 0  ? "SET baseline = :true"
                     : c->forget ? "SET baseline = :true DELETE filters :filters"
                                 : "SET baseline = :true ADD filters :filters");
    if (c->forget) gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "baseline = :true");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_bool(&call->w, ":true", true);
    gb_dynamodb_w_ss(&call->w, ":filters", c->filters, count);
    gb_dynamodb_object_end(call);
}

static void change_deinit(struct gb_dynamodb_task *t)
{
    free(GB_CONTAINER_OF(t, struct change, task)->filters);
}

static void change(struct gb_subscriptions *s, struct gb_subscriptions_change *q, bool is_forget,
                   gb_done_fn *done, void *arg)
{
    struct change *c = gb_dynamodb_task_new(&self(s)->desk, sizeof *c, &q->op, done, arg);
    size_t count = 0;
    if (c == NULL) return;
    c->task.deinit = change_deinit;
    c->q = q;
    c->forget = is_forget;
    struct gb_err err = check_change(q);
    if (!gb_failed(err)) err = sort_filters(c, &count);
    if (gb_failed(err)) {
        gb_dynamodb_task_end(&c->task, err);
        return;
    }
    write_change(c, count);
    gb_dynamodb_task_send(&c->task, changed);
}

static void remember(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                     gb_done_fn *done, void *arg)
{
    change(s, q, false, done, arg);
}

static void forget(struct gb_subscriptions *s, struct gb_subscriptions_change *q, gb_done_fn *done,
                   void *arg)
{
    change(s, q, true, done, arg);
}

/* --- construction and close --- */

static void close_store(struct gb_subscriptions *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_dynamodb_desk_close(&self(s)->desk, op, done, arg);
}

static void store_free(struct gb_dynamodb_desk *desk)
{
    gb_dynamodb_desk_deinit(desk);
    free(GB_CONTAINER_OF(desk, struct store, desk));
}

static const struct gb_subscriptions_ops port_ops = {
    .list = list,
    .remember = remember,
    .forget = forget,
    .close = close_store,
};

struct gb_err gb_dynamodb_subscriptions_new(const struct gb_dynamodb_subscriptions_cfg *cfg,
                                            struct gb_subscriptions **out)
{
    struct store *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("a DynamoDB subscription store");
    s->port.ops = &port_ops;
    s->desk = (struct gb_dynamodb_desk){.reactor = cfg->reactor,
                                        .client = cfg->client,
                                        .queue_max = cfg->queue_max,
                                        .free = store_free};
    struct gb_err err = gb_dynamodb_desk_init(&s->desk, cfg->table);
    if (gb_failed(err)) {
        free(s);
    } else {
        *out = &s->port;
    }
    return err;
}
