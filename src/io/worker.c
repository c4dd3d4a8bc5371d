#include "io/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"

enum { THREAD_NAME_SIZE = 16 }; /* the kernel's limit, terminator included */

struct gb_worker {
    struct gb_loop *loop;
    uv_async_t async;
    pthread_t thread;
    struct gb_op *close_op; /* loop thread only */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct gb_list submitted;
    struct gb_list finished;
    bool closing;
    bool ended; /* the thread touches nothing any more but this lock */
};

/* pthread's own calls fail for a broken lock only, which is our mistake. */
static void lock(struct gb_worker *w)
{
    int rc = pthread_mutex_lock(&w->lock);
    GB_ASSERT(rc == 0);
}

static void unlock(struct gb_worker *w)
{
    int rc = pthread_mutex_unlock(&w->lock);
    GB_ASSERT(rc == 0);
}

static void wake_loop(struct gb_worker *w)
{
    int rc = uv_async_send(&w->async);
    GB_ASSERT(rc == 0); /* uv refuses a handle of another kind only */
}

/* --- worker thread --- */

/* Takes everything that waits; false when the worker closes and nothing waits. */
static bool take_batch(struct gb_worker *w, struct gb_list *batch)
{
    lock(w);
    while (gb_list_empty(&w->submitted) && !w->closing) {
        int rc = pthread_cond_wait(&w->wake, &w->lock);
        GB_ASSERT(rc == 0);
    }
    gb_list_splice(batch, &w->submitted);
    bool more = !gb_list_empty(batch);
    if (!more) w->ended = true;
    unlock(w);
    return more;
}

static void *run_thread(void *arg)
{
    struct gb_worker *w = arg;
    struct gb_list batch;
    gb_list_init(&batch);
    while (take_batch(w, &batch)) {
        struct gb_list_node *node = NULL;
        while ((node = gb_list_pop(&batch)) != NULL) {
            struct gb_job *job = GB_CONTAINER_OF(node, struct gb_job, node);
            job->run(job);
            /* Each result goes back at once and does not wait for the jobs behind it; the loop
             * takes all that are there when it comes. */
            lock(w);
            gb_list_push(&w->finished, &job->node);
            unlock(w);
            wake_loop(w);
        }
    }
    wake_loop(w);
    return NULL;
}

/* --- loop thread --- */

static void destroy(struct gb_worker *w)
{
    (void)pthread_cond_destroy(&w->wake); /* both fail for a lock in use only */
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

static void on_async_closed(uv_handle_t *handle)
{
    struct gb_worker *w = handle->data;
    if (w->close_op != NULL) gb_op_finish(w->close_op, gb_ok());
    destroy(w);
}

static void on_async(uv_async_t *async)
{
    struct gb_worker *w = async->data;
    gb_loop_refresh_clock(w->loop);
    struct gb_list batch;
    gb_list_init(&batch);
    lock(w);
    gb_list_splice(&batch, &w->finished);
    bool ended = w->ended;
    unlock(w);
    struct gb_list_node *node = NULL;
    while ((node = gb_list_pop(&batch)) != NULL) {
        struct gb_job *job = GB_CONTAINER_OF(node, struct gb_job, node);
        job->done(job); /* last use: the job is its caller's again */
    }
    if (!ended || uv_is_closing((uv_handle_t *)&w->async)) return;
    int rc = pthread_join(w->thread, NULL); /* it is about to return */
    GB_ASSERT(rc == 0);
    uv_close((uv_handle_t *)&w->async, on_async_closed);
}

/* The thread takes no signals: they are the loop's, and must not interrupt SQLite's system calls.
 */
static int start_thread(struct gb_worker *w, const char *name)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    int rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    GB_ASSERT(rc == 0); /* both calls: fail for an unknown request only */
    int failed = pthread_create(&w->thread, NULL, run_thread, w);
    rc = pthread_sigmask(SIG_SETMASK, &before, NULL);
    GB_ASSERT(rc == 0);
    if (failed != 0) return failed;
    char short_name[THREAD_NAME_SIZE] = {0};
    memcpy(short_name, name, strnlen(name, sizeof short_name - 1));
    (void)pthread_setname_np(w->thread, short_name); /* only for the eyes of an operator */
    return 0;
}

struct gb_err gb_worker_new(struct gb_loop *l, const char *name, struct gb_worker **out)
{
    struct gb_worker *w = calloc(1, sizeof *w);
    if (w == NULL) return gb_err_no_memory("a worker");
    w->loop = l;
    gb_list_init(&w->submitted);
    gb_list_init(&w->finished);
    int rc = pthread_mutex_init(&w->lock, NULL);
    GB_ASSERT(rc == 0); /* with default attributes neither allocates */
    rc = pthread_cond_init(&w->wake, NULL);
    GB_ASSERT(rc == 0);
    rc = uv_async_init(gb_loop_uv(l), &w->async, on_async);
    if (rc != 0) {
        destroy(w);
        return gb_err(GB_UNAVAILABLE, "worker %s: %s", name, uv_strerror(rc));
    }
    w->async.data = w;
    rc = start_thread(w, name);
    if (rc != 0) {
        uv_close((uv_handle_t *)&w->async, on_async_closed);
        return gb_err(GB_UNAVAILABLE, "worker %s: no thread: %s; check the limits of processes",
                      name, strerror(rc));
    }
    *out = w;
    return gb_ok();
}

static void signal_thread(struct gb_worker *w)
{
    int rc = pthread_cond_signal(&w->wake);
    GB_ASSERT(rc == 0);
}

void gb_worker_submit(struct gb_worker *w, struct gb_job *job)
{
    GB_ASSERT(w->close_op == NULL);
    lock(w);
    bool was_empty = gb_list_empty(&w->submitted);
    gb_list_push(&w->submitted, &job->node);
    unlock(w);
    if (was_empty) signal_thread(w); /* else it has been told, or is at work */
}

void gb_worker_close(struct gb_worker *w, struct gb_op *op, gb_done_fn *done, void *arg)
{
    GB_ASSERT(w->close_op == NULL);
    w->close_op = op;
    gb_op_start(op, gb_loop_reactor(w->loop), done, arg, NULL, w);
    lock(w);
    w->closing = true;
    unlock(w);
    signal_thread(w);
}
