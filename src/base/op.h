#ifndef GB_BASE_OP_H
#define GB_BASE_OP_H

#include "base/err.h"
#include "base/reactor.h"

/* One asynchronous operation: started once, completed exactly once, on the loop, never from inside
 * the call that started it. The struct is embedded in the caller's memory and must live until
 * `done` ran; it may be reused for a new operation from inside `done` or after it.
 * Owns:   nothing.
 * Thread: loop thread only (a worker hands its result to the loop first).
 * Errors: `op->result`; GB_CANCELLED when a cancel won.
 * Cancel: gb_op_cancel is a request: never frees, may lose; the provider still finishes the op. */

struct gb_op;
typedef void gb_done_fn(struct gb_op *op, void *arg);
typedef void gb_cancel_fn(struct gb_op *op);

enum gb_op_state { GB_OP_IDLE = 0, GB_OP_PENDING, GB_OP_CANCELLING, GB_OP_FINISHED };

struct gb_op {
    struct gb_err result;
    uint64_t deadline_ns;     /* absolute, 0 = none; set before the start, kept by the provider */
    struct gb_list_node node; /* for the provider's queue while the op is pending */
    void *provider;           /* provider's context while pending */
    /* private */
    struct gb_task task;
    struct gb_reactor *reactor;
    gb_done_fn *done;
    void *arg;
    gb_cancel_fn *cancel;
    enum gb_op_state state;
};

/* Caller side. Cancelling an op that is not pending, or can't be cancelled, does nothing. */
void gb_op_cancel(struct gb_op *op);
/* Started and not finished by its provider; `done` may still be to run when this is false. */
bool gb_op_pending(const struct gb_op *op);

/* Provider side. `cancel` may be NULL (the op can't be cancelled). */
void gb_op_start(struct gb_op *op, struct gb_reactor *r, gb_done_fn *done, void *arg,
                 gb_cancel_fn *cancel, void *provider);
/* Exactly once after gb_op_start; `done` runs deferred. Unlinks op->node if it is linked. */
void gb_op_finish(struct gb_op *op, struct gb_err result);

#endif
