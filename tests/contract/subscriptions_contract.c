#include "contract/subscriptions_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct subscriptions_backend
    *backend; /* of this executable; cmocka hands tests no argument */

static int set_up(void **state)
{
    backend->set_up(backend);
    *state = backend;
    return 0;
}

static int set_up_small(void **state)
{
    backend->set_up_small(backend);
    *state = backend;
    return 0;
}

static int tear_down(void **state)
{
    struct subscriptions_backend *b = *state;
    b->tear_down(b);
    return 0;
}

enum gb_code subscriptions_remember(struct subscriptions_backend *b, const char *identity,
                                    const char *const *filters, size_t count)
{
    struct gb_subscriptions_change q = {.identity = identity, .filters = filters, .count = count};
    store_driver_expect(&b->driver);
    b->store->ops->remember(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    return q.op.result.code;
}

enum gb_code subscriptions_forget(struct subscriptions_backend *b, const char *identity,
                                  const char *const *filters, size_t count)
{
    struct gb_subscriptions_change q = {.identity = identity, .filters = filters, .count = count};
    store_driver_expect(&b->driver);
    b->store->ops->forget(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    return q.op.result.code;
}

void subscriptions_list_is(struct subscriptions_backend *b, const char *identity, enum gb_code code,
                           const char *want)
{
    struct gb_subscriptions_list q = {.identity = identity};
    store_driver_expect(&b->driver);
    b->store->ops->list(b->store, &q, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    assert_int_equal(q.op.result.code, code);
    char got[512] = "";
    size_t size = 0;
    for (size_t i = 0; i < q.filters.count; i++) {
        int added = snprintf(got + size, sizeof got - size, "%s%s", i == 0 ? "" : " ",
                             q.filters.filters[i]);
        size += (size_t)added;
        assert_true(size < sizeof got);
    }
    gb_filter_list_free(&q.filters);
    assert_string_equal(got, want);
}

static void check_05_34_history(void **state)
{
    struct subscriptions_backend *b = *state;
    static const char *const baa[] = {"b", "a", "a"};
    static const char *const mixed[] = {"c", "a", "+/x/#"};
    subscriptions_list_is(b, "id", GB_NOT_FOUND, "");
    assert_int_equal(subscriptions_forget(b, "id", baa, 1), GB_NOT_FOUND);
    assert_int_equal(subscriptions_remember(b, "id", NULL, 0), GB_OK);
    subscriptions_list_is(b, "id", GB_OK, "");
    assert_int_equal(subscriptions_remember(b, "id", baa, 3), GB_OK);
    subscriptions_list_is(b, "id", GB_OK, "a b");
    assert_int_equal(subscriptions_remember(b, "id", mixed, 3), GB_OK);
    b->reopen(b);
    subscriptions_list_is(b, "id", GB_OK, "+/x/# a b c");
    subscriptions_list_is(b, "other", GB_NOT_FOUND, "");
    assert_int_equal(subscriptions_forget(b, "id", mixed, 2), GB_OK);
    assert_int_equal(subscriptions_forget(b, "id", mixed, 2), GB_OK); /* absent ones are fine */
    subscriptions_list_is(b, "id", GB_OK, "+/x/# b");
    assert_int_equal(subscriptions_forget(b, "id", (const char *const[]){"+/x/#", "b"}, 2), GB_OK);
    subscriptions_list_is(b, "id", GB_OK, ""); /* the baseline stays */
}

static void empty_names_are_refused(void **state)
{
    struct subscriptions_backend *b = *state;
    static const char *const filters[] = {"good", ""};
    assert_int_equal(subscriptions_remember(b, "", filters, 1), GB_INVALID_CONFIG);
    assert_int_equal(subscriptions_remember(b, "id", filters, 2), GB_INVALID_CONFIG);
    subscriptions_list_is(b, "id", GB_NOT_FOUND, ""); /* nothing was stored */
    subscriptions_list_is(b, "", GB_INVALID_CONFIG, "");
    assert_int_equal(subscriptions_remember(b, "id", filters, 1), GB_OK);
    assert_int_equal(subscriptions_forget(b, "id", filters, 2), GB_INVALID_CONFIG);
    subscriptions_list_is(b, "id", GB_OK, "good");
}

static void cancel_before_during_after(void **state)
{
    struct subscriptions_backend *b = *state;
    static const char *const filters[] = {"a", "b", "c"};
    struct gb_subscriptions_change q[3] = {0};
    gb_op_cancel(&q[0].op); /* before the start: nothing to cancel */
    for (size_t i = 0; i < 3; i++) {
        q[i] =
            (struct gb_subscriptions_change){.identity = "id", .filters = &filters[i], .count = 1};
        store_driver_expect(&b->driver);
        b->store->ops->remember(b->store, &q[i], store_driver_done, &b->driver);
    }
    gb_op_cancel(&q[1].op);
    store_driver_run(&b->driver);
    gb_op_cancel(&q[2].op); /* after it is done */
    bool cancelled = q[1].op.result.code == GB_CANCELLED;
    assert_int_equal(q[0].op.result.code, GB_OK);
    assert_true(cancelled || q[1].op.result.code == GB_OK);
    assert_int_equal(q[2].op.result.code, GB_OK);
    subscriptions_list_is(b, "id", GB_OK, cancelled ? "a c" : "a b c");
}

static void full_queue_answers_unavailable(void **state)
{
    struct subscriptions_backend *b = *state;
    if (b->full_at == 0) skip();
    size_t count = b->full_at + 1;
    struct gb_subscriptions_change *q = calloc(count, sizeof *q);
    assert_non_null(q);
    for (size_t i = 0; i < count; i++) {
        q[i].identity = "id";
        store_driver_expect(&b->driver);
        b->store->ops->remember(b->store, &q[i], store_driver_done, &b->driver);
    }
    store_driver_run(&b->driver);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(q[i].op.result.code, i < b->full_at ? GB_OK : GB_UNAVAILABLE);
    free(q);
    subscriptions_list_is(b, "id", GB_OK, "");
}

static void closing_store_refuses(void **state)
{
    struct subscriptions_backend *b = *state;
    struct gb_subscriptions_change before = {.identity = "id"};
    struct gb_subscriptions_list after = {.identity = "id"};
    struct gb_op close_op = {0};
    struct gb_subscriptions *s = b->store;
    for (int i = 0; i < 3; i++) store_driver_expect(&b->driver);
    s->ops->remember(s, &before, store_driver_done, &b->driver);
    s->ops->close(s, &close_op, store_driver_done, &b->driver);
    s->ops->list(s, &after, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    b->store = NULL;
    assert_int_equal(before.op.result.code, GB_OK);
    assert_int_equal(close_op.result.code, GB_OK);
    assert_int_equal(after.op.result.code, GB_UNAVAILABLE);
    b->reopen(b);
    subscriptions_list_is(b, "id", GB_OK, "");
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int subscriptions_contract_run(struct subscriptions_backend *b)
{
    const struct CMUnitTest tests[] = {
        CHECK(check_05_34_history),
        CHECK(empty_names_are_refused),
        CHECK(cancel_before_during_after),
        cmocka_unit_test_setup_teardown(full_queue_answers_unavailable, set_up_small, tear_down),
        CHECK(closing_store_refuses),
    };
    backend = b;
    return cmocka_run_group_tests_name(b->name, tests, NULL, NULL);
}
