#include "base/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A provider with a queue, as an adapter would have one; `finish_on_cancel` decides who wins. */
struct provider {
    struct gb_reactor *r;
    struct gb_list queue;
    bool finish_on_cancel;
    unsigned cancels;
};
struct caller {
    struct provider *provider;
    unsigned done;
    enum gb_code code;
    unsigned again; /* start the op so many times more from inside `done` */
};

static void start(struct provider *p, struct gb_op *op, struct caller *caller);

static void on_done(struct gb_op *op, void *arg)
{
    struct caller *caller = arg;
    assert_false(gb_op_pending(op));
    caller->done++;
    caller->code = op->result.code;
    if (caller->again > 0) {
        caller->again--;
        start(caller->provider, op, caller);
        gb_op_finish(op, gb_err(GB_TIMEOUT, "again"));
    }
}

static void on_cancel(struct gb_op *op)
{
    struct provider *p = op->provider;
    p->cancels++;
    if (p->finish_on_cancel) gb_op_finish(op, gb_err(GB_CANCELLED, "cancelled"));
}

static void start(struct provider *p, struct gb_op *op, struct caller *caller)
{
    gb_op_start(op, p->r, on_done, caller, on_cancel, p);
    gb_list_push(&p->queue, &op->node);
}

static int setup(void **state)
{
    static struct provider provider;
    provider = (struct provider){0};
    gb_list_init(&provider.queue);
    *state = &provider;
    return gb_failed(gb_reactor_new(1, &provider.r)) ? -1 : 0;
}

static int teardown(void **state)
{
    struct provider *p = *state;
    assert_true(gb_list_empty(&p->queue));
    gb_reactor_free(p->r);
    return 0;
}

static void completes_later_and_once(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p};
    struct gb_op op = {.deadline_ns = 77};
    start(p, &op, &caller);
    assert_true(gb_op_pending(&op));
    assert_int_equal(op.deadline_ns, 77);
    gb_reactor_run(p->r, 1, 0);
    assert_int_equal(caller.done, 0);

    gb_op_finish(&op, gb_err(GB_THROTTLED, "slow down"));
    assert_int_equal(caller.done, 0);
    assert_false(gb_op_pending(&op));
    assert_true(gb_list_empty(&p->queue));
    gb_reactor_run(p->r, 2, 0);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.code, GB_THROTTLED);
    gb_reactor_run(p->r, 3, 0);
    assert_int_equal(caller.done, 1);
}

static void reused_from_inside_done(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p, .again = 2};
    struct gb_op op = {0};
    start(p, &op, &caller);
    gb_op_finish(&op, gb_ok());
    gb_reactor_run(p->r, 1, 0);
    assert_int_equal(caller.done, 3);
    assert_int_equal(caller.code, GB_TIMEOUT);

    start(p, &op, &caller); /* and after it */
    gb_op_finish(&op, gb_ok());
    gb_reactor_run(p->r, 2, 0);
    assert_int_equal(caller.done, 4);
    assert_int_equal(caller.code, GB_OK);
}

static void cancel_during(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p};
    struct gb_op op = {0};
    p->finish_on_cancel = true;
    start(p, &op, &caller);
    gb_op_cancel(&op);
    assert_int_equal(p->cancels, 1);
    assert_int_equal(caller.done, 0); /* not from inside the cancel */
    gb_reactor_run(p->r, 1, 0);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.code, GB_CANCELLED);
}

static void cancel_may_lose(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p};
    struct gb_op op = {0};
    start(p, &op, &caller);
    gb_op_cancel(&op);
    gb_op_cancel(&op);
    assert_int_equal(p->cancels, 1);
    assert_true(gb_op_pending(&op));
    gb_op_finish(&op, gb_ok());
    gb_reactor_run(p->r, 1, 0);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.code, GB_OK);
}

static void cancel_before_and_after_does_nothing(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p};
    struct gb_op op = {0};
    gb_op_cancel(&op);
    start(p, &op, &caller);
    gb_op_finish(&op, gb_ok());
    gb_op_cancel(&op); /* `done` is still to run: the result stands */
    gb_reactor_run(p->r, 1, 0);
    gb_op_cancel(&op);
    gb_reactor_run(p->r, 2, 0);
    assert_int_equal(p->cancels, 0);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.code, GB_OK);
}

static void op_without_cancel_goes_on(void **state)
{
    struct provider *p = *state;
    struct caller caller = {.provider = p};
    struct gb_op op = {0};
    gb_op_start(&op, p->r, on_done, &caller, NULL, p);
    gb_op_cancel(&op);
    assert_int_equal(op.state, GB_OP_PENDING);
    gb_op_finish(&op, gb_ok());
    gb_reactor_run(p->r, 1, 0);
    assert_int_equal(caller.done, 1);
    assert_int_equal(caller.code, GB_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(completes_later_and_once, setup, teardown),
        cmocka_unit_test_setup_teardown(reused_from_inside_done, setup, teardown),
        cmocka_unit_test_setup_teardown(cancel_during, setup, teardown),
        cmocka_unit_test_setup_teardown(cancel_may_lose, setup, teardown),
        cmocka_unit_test_setup_teardown(cancel_before_and_after_does_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(op_without_cancel_goes_on, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
