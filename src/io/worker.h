#ifndef GB_IO_WORKER_H
#define GB_IO_WORKER_H

#include "base/op.h"
#include "io/loop.h"

/* A thread that owns blocking handles (SQLite, files) and runs jobs in order; the results come back
 * to the loop. The queue has no limit of its own: each job is the memory of a caller, who bounds
 * how many it has.
 * Owns:   jobs belong to the caller until `done` ran. gb_worker_close joins the thread.
 * Thread: submit and done on the loop thread; run on the worker thread. A job is a copy of all it
 *         needs: nothing else is shared.
 * Errors: gb_worker_new: GB_UNAVAILABLE. Jobs put their result into their own struct. */
struct gb_worker;
struct gb_job {
    struct gb_list_node node;         /* private */
    void (*run)(struct gb_job *job);  /* worker thread */
    void (*done)(struct gb_job *job); /* loop thread */
};
struct gb_err gb_worker_new(struct gb_loop *l, const char *name, struct gb_worker **out);
void gb_worker_submit(struct gb_worker *w, struct gb_job *job);
/* Runs what was submitted, then ends the thread; `op` completes on the loop after the last `done`;
 * frees `w`. */
void gb_worker_close(struct gb_worker *w, struct gb_op *op, gb_done_fn *done, void *arg);

#endif
