#include "adapters/dynamodb/dynamodb_task.h"

#include <stdlib.h>

#include "base/duration.h"

enum { QUEUE_MAX = 1024 };
#define CALL_TIMEOUT_NS (30 * GB_SEC)

struct gb_err gb_dynamodb_desk_init(struct gb_dynamodb_desk *d, const char *table)
{
    if (d->queue_max == 0) d->queue_max = QUEUE_MAX;
    d->table = gb_strdup(table);
    return d->table == NULL ? gb_err_no_memory("a DynamoDB store") : gb_ok();
}

void gb_dynamodb_desk_deinit(struct gb_dynamodb_desk *d)
{
    free(d->table);
}

static void close_if_idle(struct gb_dynamodb_desk *d)
{
    struct gb_op *op = d->close_op;
    if (op == NULL || d->pending > 0) return;
    d->free(d);
    gb_op_finish(op, gb_ok());
}

void gb_dynamodb_desk_close(struct gb_dynamodb_desk *d, struct gb_op *op, gb_done_fn *done,
                            void *arg)
{
    GB_ASSERT(d->close_op == NULL);
    gb_op_start(op, d->reactor, done, arg, NULL, d);
    d->close_op = op;
    close_if_idle(d);
}

/* --- tasks --- */

static struct gb_err admit(const struct gb_dynamodb_desk *d)
{
    if (d->close_op != NULL) return gb_err(GB_UNAVAILABLE, "table \"%s\": closed", d->table);
    if (d->pending < d->queue_max) return gb_ok();
    return gb_err(GB_UNAVAILABLE, "table \"%s\": %zu calls are pending already", d->table,
                  d->pending);
}

static void cancel(struct gb_op *op)
{
    struct gb_dynamodb_task *t = op->provider;
    t->cancelled = true;
    gb_op_cancel(&t->call.op);
}

void *gb_dynamodb_task_new(struct gb_dynamodb_desk *d, size_t size, struct gb_op *op,
                           gb_done_fn *done, void *arg)
{
    struct gb_err err = admit(d);
    struct gb_dynamodb_task *t = gb_failed(err) ? NULL : calloc(1, size);
    if (!gb_failed(err) && t == NULL) err = gb_err_no_memory("a call to DynamoDB");
    gb_op_start(op, d->reactor, done, arg, t == NULL ? NULL : cancel, t);
    if (t == NULL) {
        gb_op_finish(op, err);
        return NULL;
    }
    t->desk = d;
    t->op = op;
    t->deadline_ns = op->deadline_ns != 0
                         ? op->deadline_ns
                         : gb_reactor_now_ns(d->reactor) + (uint64_t)CALL_TIMEOUT_NS;
    d->pending++;
    return t;
}

void gb_dynamodb_task_end(struct gb_dynamodb_task *t, struct gb_err result)
{
    struct gb_dynamodb_desk *d = t->desk;
    struct gb_op *op = t->op;
    if (t->deinit != NULL) t->deinit(t);
    gb_dynamodb_call_deinit(&t->call);
    gb_str_deinit(&t->scratch);
    free(t);
    gb_op_finish(op, result);
    d->pending--;
    close_if_idle(d);
}

/* What was done before a cancel arrived is reported as done. A missing table must not look like a
 * missing item: it says nothing about the item, and may be created any time. */
static void sent(struct gb_op *op, void *arg)
{
    struct gb_dynamodb_task *t = arg;
    if (t->call.error == GB_DYNAMODB_NO_TABLE) {
        op->result = gb_err(GB_UNAVAILABLE, "%s; create it with gobridge -create-tables",
                            op->result.message);
    }
    if (t->cancelled && gb_failed(op->result)) {
        gb_dynamodb_task_end(t, (struct gb_err){.code = GB_CANCELLED});
    } else {
        t->next(t);
    }
}

void gb_dynamodb_task_send(struct gb_dynamodb_task *t, gb_dynamodb_task_fn *next)
{
    if (t->cancelled) {
        gb_dynamodb_task_end(t, (struct gb_err){.code = GB_CANCELLED});
        return;
    }
    t->next = next;
    t->call.op.deadline_ns = t->deadline_ns;
    gb_dynamodb_start(t->desk->client, &t->call, sent, t);
}
