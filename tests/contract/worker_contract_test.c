#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/worker.h"

/* The worker on real threads: order, thread of each callback, close with work waiting. Run under
 * TSan as well. */

enum { JOBS = 2000 };

struct fixture;
struct test_job {
    struct gb_job job;
    struct fixture *fixture;
    int number;
    int result; /* written by the worker, read by the loop */
    bool ran_elsewhere;
};
struct fixture {
    struct gb_loop *loop;
    struct gb_worker *worker;
    struct gb_op close_op;
    struct test_job jobs[JOBS];
    pthread_t loop_thread;
    int ran;       /* worker thread */
    int done;      /* loop thread */
    int done_here; /* `done` calls on the loop thread */
    int chain;     /* jobs still to be submitted, one from each `done` */
    bool closed;
};

static struct fixture *set_up(void)
{
    static struct fixture f;
    f = (struct fixture){.loop_thread = pthread_self()};
    assert_int_equal(gb_loop_new(&f.loop).code, GB_OK);
    assert_int_equal(gb_worker_new(f.loop, "a-name-longer-than-15", &f.worker).code, GB_OK);
    return &f;
}

static void run_job(struct gb_job *job)
{
    struct test_job *t = GB_CONTAINER_OF(job, struct test_job, job);
    t->ran_elsewhere = !pthread_equal(pthread_self(), t->fixture->loop_thread);
    t->result = t->fixture->ran++;
}

static void on_closed(struct gb_op *op, void *arg)
{
    struct fixture *f = arg;
    assert_int_equal(op->result.code, GB_OK);
    f->closed = true;
    gb_loop_stop(f->loop);
}

static void submit(struct fixture *f, int number)
{
    f->jobs[number].number = number;
    gb_worker_submit(f->worker, &f->jobs[number].job);
}

static void count_done(struct gb_job *job)
{
    struct test_job *t = GB_CONTAINER_OF(job, struct test_job, job);
    struct fixture *f = t->fixture;
    assert_false(f->closed);
    assert_int_equal(t->result, t->number); /* in the order of submission */
    assert_true(t->ran_elsewhere);
    if (pthread_equal(pthread_self(), f->loop_thread)) f->done_here++;
    f->done++;
    if (f->chain == 0) return;
    f->chain--;
    if (f->chain == 0) {
        gb_worker_close(f->worker, &f->close_op, on_closed, f);
    } else {
        submit(f, t->number + 1);
    }
}

static void prepare_jobs(struct fixture *f)
{
    for (int i = 0; i < JOBS; i++) {
        f->jobs[i].fixture = f;
        f->jobs[i].job.run = run_job;
        f->jobs[i].job.done = count_done;
    }
}

static void finish(struct fixture *f, int done)
{
    gb_loop_run(f->loop);
    assert_true(f->closed);
    assert_int_equal(f->done, done);
    assert_int_equal(f->done_here, done);
    gb_loop_drain_closing(f->loop);
    gb_loop_free(f->loop);
}

static void all_submitted_jobs_run_before_the_close_completes(void **state)
{
    (void)state;
    struct fixture *f = set_up();
    prepare_jobs(f);
    for (int i = 0; i < JOBS; i++) submit(f, i);
    gb_worker_close(f->worker, &f->close_op, on_closed, f);
    finish(f, JOBS);
}

static void job_submitted_from_done_runs(void **state)
{
    (void)state;
    struct fixture *f = set_up();
    prepare_jobs(f);
    f->chain = JOBS;
    submit(f, 0);
    finish(f, JOBS);
}

static void idle_worker_closes(void **state)
{
    (void)state;
    struct fixture *f = set_up();
    gb_worker_close(f->worker, &f->close_op, on_closed, f);
    assert_true(gb_op_pending(&f->close_op)); /* never from inside the call */
    finish(f, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_submitted_jobs_run_before_the_close_completes),
        cmocka_unit_test(job_submitted_from_done_runs),
        cmocka_unit_test(idle_worker_closes),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
