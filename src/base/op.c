#include "base/op.h"

#include "base/assert.h"

static void run_done(struct gb_task *task)
{
    struct gb_op *op = GB_CONTAINER_OF(task, struct gb_op, task);
    op->done(op, op->arg); /* last use: `done` may reuse or free the op */
}

void gb_op_start(struct gb_op *op, struct gb_reactor *r, gb_done_fn *done, void *arg,
                 gb_cancel_fn *cancel, void *provider)
{
    GB_ASSERT(op->state == GB_OP_IDLE || op->state == GB_OP_FINISHED);
    GB_ASSERT(!gb_list_linked(&op->task.node)); /* the previous `done` has run */
    GB_ASSERT(!gb_list_linked(&op->node));
    GB_ASSERT(done != NULL);
    op->result = gb_ok();
    op->provider = provider;
    op->task.run = run_done;
    op->reactor = r;
    op->done = done;
    op->arg = arg;
    op->cancel = cancel;
    op->state = GB_OP_PENDING;
}

void gb_op_finish(struct gb_op *op, struct gb_err result)
{
    GB_ASSERT(gb_op_pending(op));
    gb_list_remove(&op->node);
    op->provider = NULL;
    op->result = result;
    op->state = GB_OP_FINISHED;
    gb_reactor_defer(op->reactor, &op->task);
}

void gb_op_cancel(struct gb_op *op)
{
    if (op->state != GB_OP_PENDING || op->cancel == NULL)
        return; /* too late, or never: it finishes */
    op->state = GB_OP_CANCELLING;
    op->cancel(op);
}

bool gb_op_pending(const struct gb_op *op)
{
    return op->state == GB_OP_PENDING || op->state == GB_OP_CANCELLING;
}
