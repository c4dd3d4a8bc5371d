#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/worker.h"
#include "support/oom.h"

static void on_closed(struct gb_op *op, void *arg)
{
    assert_int_equal(op->result.code, GB_OK);
    gb_loop_stop(arg);
}

static void worker_without_memory_is_an_error(void **state)
{
    (void)state;
    struct gb_loop *loop = NULL;
    struct gb_worker *worker = NULL;
    assert_int_equal(gb_loop_new(&loop).code, GB_OK);
    gb_oom_fail_at(1);
    assert_int_equal(gb_worker_new(loop, "test", &worker).code, GB_UNAVAILABLE);
    gb_oom_off();
    assert_null(worker);
    assert_int_equal(gb_worker_new(loop, "test", &worker).code, GB_OK);
    struct gb_op op = {0};
    gb_worker_close(worker, &op, on_closed, loop);
    gb_loop_run(loop);
    gb_loop_drain_closing(loop);
    gb_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(worker_without_memory_is_an_error)};
    return cmocka_run_group_tests_name("worker_oom", tests, NULL, NULL);
}
