#include "adapters/dynamodb/dynamodb_subscriptions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/dynamodb_bench.h"
#include "support/oom.h"

/* The allocation ladder of each operation of the managed-subscription store: every call ends once;
 * a list is whole or empty with an error, a change is sent whole or not at all, and a failed read
 * is never "no baseline". */

static struct row {
    bool baseline, a, b; /* filters "a/+" and "b\n" */
} row;
static struct dynamodb_bench b;
static struct gb_subscriptions *store;
static bool cut; /* the next write is applied, and its answer lost */
static char room[512];

/* --- the table --- */

static struct fake_http_answer serve_get(void)
{
    const char *filters = row.a && row.b ? ",\"filters\":{\"SS\":[\"b\\n\",\"a/+\"]}"
                          : row.a        ? ",\"filters\":{\"SS\":[\"a/+\"]}"
                          : row.b        ? ",\"filters\":{\"SS\":[\"b\\n\"]}"
                                         : "";
    if (!row.baseline) return dynamodb_bench_body("{}");
    (void)snprintf(
        room, sizeof room,
        "{\"Item\":{\"storage_identity\":{\"S\":\"id\"},\"baseline\":{\"BOOL\":true}%s}}", filters);
    return dynamodb_bench_body(room);
}

static struct fake_http_answer serve(void *arg, const struct gb_http_request *q)
{
    (void)arg;
    dynamodb_bench_whole(q);
    assert_true(dynamodb_bench_has(q, "\"storage_identity\":{\"S\":\"id\"}"));
    if (dynamodb_bench_is(q, "GetItem")) return serve_get();
    assert_true(dynamodb_bench_is(q, "UpdateItem"));
    bool forget = dynamodb_bench_has(q, "DELETE filters");
    if (forget != dynamodb_bench_has(q, "\"ConditionExpression\":\"baseline = :true\""))
        fail_msg("forget needs its condition, remember none");
    if (forget && !row.baseline) return dynamodb_bench_refusal(room, sizeof room, "");
    bool both = dynamodb_bench_has(q, "{\"SS\":[\"a/+\",\"b\\n\"]}");
    assert_int_equal(both, dynamodb_bench_has(q, ":filters\":"));
    row.baseline = true;
    if (both) row.a = row.b = !forget;
    if (!cut) return dynamodb_bench_body("{}");
    cut = false;
    return dynamodb_bench_cut();
}

/* --- set up --- */

static struct gb_err make_store(void)
{
    const struct gb_dynamodb_subscriptions_cfg cfg = {
        .reactor = b.r, .client = b.client, .table = "t"};
    struct gb_err err = gb_dynamodb_subscriptions_new(&cfg, &store);
    assert_int_equal(store != NULL, !gb_failed(err));
    return err;
}

static void open_bench(void)
{
    store = NULL;
    cut = false;
    row = (struct row){false};
    dynamodb_bench_open(&b, "{}");
    b.http.serve = serve;
    assert_int_equal(dynamodb_bench_client(&b, 3).code, GB_OK);
}

static void close_bench(void)
{
    if (store != NULL) DYNAMODB_BENCH_CLOSE_STORE(&b, store);
    dynamodb_bench_close(&b);
}

static void constructor(void **state)
{
    (void)state;
    open_bench();
    dynamodb_bench_constructor(make_store);
    close_bench();
}

/* --- operations --- */

static enum gb_code list(void)
{
    struct gb_subscriptions_list q = {.identity = "id"};
    store->ops->list(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    enum gb_code code = q.op.result.code;
    if (code == GB_NOT_FOUND) assert_false(row.baseline);
    if (code != GB_NOT_FOUND) dynamodb_bench_check(&q.op);
    assert_int_equal(q.filters.count, code == GB_OK ? (size_t)(row.a + row.b) : 0);
    if (q.filters.count == 2) {
        assert_string_equal(q.filters.filters[0], "a/+");
        assert_string_equal(q.filters.filters[1], "b\n");
    }
    gb_filter_list_free(&q.filters);
    return code;
}

typedef void change_fn(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                       gb_done_fn *done, void *arg);

/* A change of the answer that was lost is applied all the same: then both, else none. */
static enum gb_code change(change_fn *start, size_t count)
{
    static const char *const filters[] = {"b\n", "a/+", "b\n"};
    struct gb_subscriptions_change q = {.identity = "id", .filters = filters, .count = count};
    start(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    assert_int_equal(row.a, row.b);
    if (q.op.result.code == GB_NOT_FOUND) {
        assert_false(row.baseline);
    } else {
        dynamodb_bench_check(&q.op);
    }
    return q.op.result.code;
}

static enum gb_code remember(void)
{
    enum gb_code code = change(store->ops->remember, 3);
    if (code == GB_OK) assert_true(row.baseline && row.a);
    return code;
}

static enum gb_code seed(void)
{
    enum gb_code code = change(store->ops->remember, 0);
    if (code == GB_OK) assert_true(row.baseline);
    return code;
}

static enum gb_code forget(void)
{
    enum gb_code code = change(store->ops->forget, 3);
    if (code == GB_OK) assert_true(row.baseline && !row.a);
    return code;
}

static const struct operation {
    const char *name;
    enum gb_code (*perform)(void);
    struct row before;
    enum gb_code want;
    bool cut;
} operations[] = {
    {"list", list, {true, true, true}, GB_OK, false},
    {"list of none", list, {true, false, false}, GB_OK, false},
    {"list without baseline", list, {false, false, false}, GB_NOT_FOUND, false},
    {"seed", seed, {false, false, false}, GB_OK, false},
    {"remember", remember, {false, false, false}, GB_OK, false},
    {"remember, answer lost", remember, {false, false, false}, GB_OK, true},
    {"forget", forget, {true, true, true}, GB_OK, false},
    {"forget, answer lost", forget, {true, true, true}, GB_OK, true},
    {"forget without baseline", forget, {false, false, false}, GB_NOT_FOUND, false},
};

/* True when no allocation failed. */
static bool failing_at(const void *arg, unsigned n)
{
    const struct operation *o = arg;
    open_bench();
    assert_int_equal(make_store().code, GB_OK);
    row = o->before;
    cut = o->cut;
    gb_oom_fail_at(n);
    enum gb_code code = o->perform();
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    cut = false;
    if (whole) assert_int_equal(code, o->want);
    assert_int_equal(o->perform(), o->want);
    close_bench();
    return whole;
}

static void each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        unsigned n = gb_oom_ladder(failing_at, &operations[i]);
        print_message("%s: %u\n", operations[i].name, n - 1);
        assert_true(n > 5);
    }
}

int main(void)
{
    dynamodb_bench_quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(each_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
