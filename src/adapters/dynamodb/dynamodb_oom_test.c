#include "adapters/dynamodb/dynamodb_client.h"
#include "adapters/dynamodb/dynamodb_meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "support/dynamodb_bench.h"
#include "support/oom.h"

/* Allocation ladders of the client, of a call and of what reads items. */

enum { LADDER_MAX = 200 };

static const char answer[] = "{\"ConsumedCapacity\":{\"TableName\":\"t\",\"CapacityUnits\":1}}";

static void constructor(void **state)
{
    (void)state;
    struct dynamodb_bench b;
    dynamodb_bench_open(&b, answer);
    unsigned n = 0;
    struct gb_err err;
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        err = dynamodb_bench_client(&b, 1);
        gb_oom_off();
        assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
        assert_int_equal(b.client != NULL, err.code == GB_OK);
    } while (gb_failed(err));
    assert_true(n > 8);
    dynamodb_bench_close(&b);
}

static void count(struct gb_op *op, void *arg)
{
    (void)op;
    (*(unsigned *)arg)++;
}

/* True when no allocation failed. */
static bool call_failing_at(unsigned n)
{
    struct dynamodb_bench b;
    unsigned done = 0;
    dynamodb_bench_open(&b, answer);
    assert_int_equal(dynamodb_bench_client(&b, 1).code, GB_OK);
    struct gb_dynamodb_call call = {.op = {.deadline_ns = 50 * (uint64_t)GB_SEC}};
    gb_oom_fail_at(n);
    gb_dynamodb_begin(&call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    gb_dynamodb_action(&call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_dynamodb_object(&call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&call.w, "PK", "a");
    gb_dynamodb_object_end(&call);
    gb_dynamodb_action_end(&call);
    gb_dynamodb_start(b.client, &call, count, &done);
    for (uint64_t i = 1; i < 60; i++) gb_reactor_run(b.r, i * (uint64_t)GB_SEC, 1);
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    assert_int_equal(done, 1);
    enum gb_code code = call.op.result.code;
    /* Keys that can't be copied count as keys that are not there yet. */
    assert_true(code == GB_OK || code == GB_UNAVAILABLE || code == GB_TEMPORARY_AUTH_FAILURE);
    assert_true(!whole || code == GB_OK);
    /* A call is not failed because it can't be counted. */
    uint64_t counted = gb_dynamodb_usage_sum(b.client, "t", GB_DYNAMODB_ACTIONS).calls +
                       gb_dynamodb_usage_lost(b.client);
    assert_true(code != GB_OK || counted >= 1);
    gb_dynamodb_call_deinit(&call);
    dynamodb_bench_close(&b);
    return whole;
}

static void call(void **state)
{
    (void)state;
    unsigned n = 0;
    do {
        assert_true(++n < LADDER_MAX);
    } while (!call_failing_at(n));
    assert_true(n > 5);
}

static const char item[] = "{\"PK\":{\"S\":\"a\\n\"},\"m\":{\"M\":{\"x\":{\"B\":\"AA==\"}}},"
                           "\"sort\":{\"S\":\"b\\n\"}}";
static const char description[] =
    "{\"AttributeDefinitions\":[{\"AttributeName\":\"PK\",\"AttributeType\":\"S\"}],"
    "\"KeySchema\":[{\"AttributeName\":\"PK\",\"KeyType\":\"HASH\"}],\"TableStatus\":\"ACTIVE\"}";

static struct gb_err read_item(void)
{
    struct gb_str scratch = {0};
    struct gb_bytes text = {0};
    struct gb_dynamodb_field field = {"PK", GB_DYNAMODB_FIELD_S, true, &text, false};
    const struct gb_dynamodb_source from = {"t", "Query"};
    struct gb_err err = gb_dynamodb_item_read(&from, gb_bytes_c(item), &scratch, &field, 1);
    gb_str_deinit(&scratch);
    return err;
}

static struct gb_err size_item(void)
{
    size_t bytes = 0;
    return gb_dynamodb_item_size(gb_bytes_c(item), &bytes);
}

static struct gb_err read_table(void)
{
    struct gb_str scratch = {0};
    struct gb_dynamodb_table table;
    struct gb_err err = gb_dynamodb_table_read(gb_bytes_c(description), &scratch, &table);
    gb_str_deinit(&scratch);
    return err;
}

static struct gb_err meter(void)
{
    const struct gb_dynamodb_table table = {
        .hash = {"PK", GB_DYNAMODB_S},
        .indexes = {{"I", {"PK", GB_DYNAMODB_S}, {"sort", GB_DYNAMODB_S}, GB_DYNAMODB_ALL},
                    {"J", {"sort", GB_DYNAMODB_S}, {NULL, GB_DYNAMODB_S}, GB_DYNAMODB_KEYS_ONLY}},
        .index_count = 2};
    struct gb_dynamodb_units units = {0};
    struct gb_err err =
        gb_dynamodb_meter_write(&table, gb_bytes_c(item), gb_bytes_c(item), false, &units);
    assert_int_equal(units.total, gb_failed(err) ? 0 : 1000);
    return err;
}

static void pure_functions(void **state)
{
    static struct gb_err (*const functions[])(void) = {read_item, size_item, read_table, meter};
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        unsigned n = 0;
        struct gb_err err;
        do {
            assert_true(++n < LADDER_MAX);
            gb_oom_fail_at(n);
            err = functions[i]();
            gb_oom_off();
            assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
        } while (gb_failed(err));
        assert_true(n > 1);
    }
}

int main(void)
{
    dynamodb_bench_quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(call),
        cmocka_unit_test(pure_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
