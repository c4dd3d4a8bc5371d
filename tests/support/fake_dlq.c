#include "support/fake_dlq.h"

#include "base/assert.h"

static struct gb_err store(struct fake_dlq *f, const struct gb_dlq_entry *e)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->entries[i]->id, e->id) == 0) return gb_err(GB_DUPLICATE_RECORD, "known");
    GB_ASSERT(f->count < sizeof f->entries / sizeof f->entries[0]);
    struct gb_err err = gb_dlq_entry_copy(e, &f->entries[f->count]);
    if (!gb_failed(err)) f->count++;
    return err;
}

static void cancel(struct gb_op *op)
{
    gb_op_finish(op, gb_err(GB_CANCELLED, "cancelled"));
}

static void write(struct gb_dlq *d, struct gb_dlq_write *q, gb_done_fn *done, void *arg)
{
    struct fake_dlq *f = GB_CONTAINER_OF(d, struct fake_dlq, dlq);
    GB_ASSERT(q->op.deadline_ns > 0);
    f->writes++;
    struct fake_answer a = fake_script_take(&f->script);
    gb_op_start(&q->op, f->reactor, done, arg, cancel, f);
    if (a.action == FAKE_HOLD) {
        gb_list_push(&f->held, &q->op.node);
        return;
    }
    struct gb_err err = a.action == FAKE_FAIL ? a.err : store(f, q->entry);
    gb_op_finish(&q->op, a.action == FAKE_DO_THEN_FAIL ? a.err : err);
}

static const struct gb_dlq_ops ops = {.write = write};

void fake_dlq_init(struct fake_dlq *f, struct gb_reactor *r)
{
    *f = (struct fake_dlq){.dlq = {.ops = &ops}, .reactor = r};
    gb_list_init(&f->held);
}

void fake_dlq_deinit(struct fake_dlq *f)
{
    for (size_t i = 0; i < f->count; i++) gb_dlq_entry_free(f->entries[i]);
    *f = (struct fake_dlq){0};
}

void fake_dlq_answer(struct fake_dlq *f, enum gb_code code)
{
    struct gb_list_node *n = gb_list_pop(&f->held);
    GB_ASSERT(n != NULL);
    gb_op_finish(GB_CONTAINER_OF(n, struct gb_op, node),
                 code == GB_OK ? gb_ok() : gb_err(code, "answered"));
}
