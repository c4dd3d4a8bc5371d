#include "adapters/dynamodb/dynamodb_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool equals(struct gb_bytes a, const char *text)
{
    return gb_bytes_equal_c(a, text);
}

static struct gb_dynamodb_answer read_ok(enum gb_dynamodb_action action, const char *json)
{
    struct gb_dynamodb_answer a;
    struct gb_err err = gb_dynamodb_answer_read(action, gb_bytes_c(json), &a);
    if (gb_failed(err)) fail_msg("%s: %s", json, err.message);
    return a;
}

static void answers(void **state)
{
    (void)state;
    struct gb_dynamodb_answer a = read_ok(GB_DYNAMODB_GET_ITEM, "{}");
    assert_int_equal(a.item.size, 0);
    a = read_ok(GB_DYNAMODB_GET_ITEM, "{\"Item\" : {\"a\":{\"S\":\"}\"}} ,\"New\":[{}]}");
    assert_true(equals(a.item, "{\"a\":{\"S\":\"}\"}}"));
    a = read_ok(GB_DYNAMODB_UPDATE_ITEM, "{\"Attributes\":{\"n\":{\"N\":\"1\"}},\"Item\":null}");
    assert_true(equals(a.attributes, "{\"n\":{\"N\":\"1\"}}") && a.item.size == 0);
    a = read_ok(GB_DYNAMODB_QUERY, "{\"Items\":[{},{}],\"Count\":2,\"ScannedCount\":7,"
                                   "\"LastEvaluatedKey\":{\"PK\":{\"S\":\"x\"}}}");
    assert_true(equals(a.items, "[{},{}]") && a.count == 2 && a.scanned == 7);
    assert_true(equals(a.last_key, "{\"PK\":{\"S\":\"x\"}}"));
    a = read_ok(GB_DYNAMODB_QUERY, "{\"Count\":0,\"ScannedCount\":0}");
    assert_true(a.items.size == 0 && a.count == 0 && a.last_key.size == 0);
    a = read_ok(GB_DYNAMODB_SCAN, "{\"Items\":[]}");
    assert_true(equals(a.items, "[]"));
    a = read_ok(GB_DYNAMODB_DESCRIBE_TABLE, "{\"Table\":{\"TableName\":\"t\"}}");
    assert_true(equals(a.table, "{\"TableName\":\"t\"}"));
    a = read_ok(GB_DYNAMODB_CREATE_TABLE, "{\"TableDescription\":{}}");
    assert_true(equals(a.table, "{}"));
    a = read_ok(GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE,
                "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"ENABLED\",\"x\":[],"
                "\"AttributeName\":\"ttl\"}}");
    assert_true(equals(a.ttl_status, "ENABLED") && equals(a.ttl_attribute, "ttl"));
}

static void malformed_answers(void **state)
{
    static const struct {
        enum gb_dynamodb_action action;
        const char *json;
    } rows[] = {
        {GB_DYNAMODB_GET_ITEM, ""},
        {GB_DYNAMODB_GET_ITEM, "[]"},
        {GB_DYNAMODB_GET_ITEM, "<html>"},
        {GB_DYNAMODB_GET_ITEM, "{\"Item\":{\"a\":{\"S\":\"x\"}}"},
        {GB_DYNAMODB_GET_ITEM, "{\"Item\":[]}"},
        {GB_DYNAMODB_GET_ITEM, "{\"Item\":\"\"}"},
        {GB_DYNAMODB_GET_ITEM, "{} {}"},
        {GB_DYNAMODB_QUERY, "{}"},
        {GB_DYNAMODB_QUERY, "{\"Items\":{}}"},
        {GB_DYNAMODB_QUERY, "{\"Items\":[1]}"},
        {GB_DYNAMODB_QUERY, "{\"Count\":-1}"},
        {GB_DYNAMODB_QUERY, "{\"Count\":\"1\"}"},
        {GB_DYNAMODB_QUERY, "{\"Items\":[],\"LastEvaluatedKey\":[]}"},
        {GB_DYNAMODB_DESCRIBE_TABLE, "{}"},
        {GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE, "{}"},
        {GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE, "{\"TimeToLiveDescription\":{}}"},
        {GB_DYNAMODB_PUT_ITEM, "{\"ConsumedCapacity\":1}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_dynamodb_answer a;
        struct gb_err err = gb_dynamodb_answer_read(rows[i].action, gb_bytes_c(rows[i].json), &a);
        if (err.code != GB_UNAVAILABLE) fail_msg("%s is taken", rows[i].json);
        assert_non_null(strstr(err.message, gb_dynamodb_action_name(rows[i].action)));
        assert_int_equal(a.item.size + a.items.size + a.last_key.size, 0);
    }
}

static const char three_reasons[] =
    "{\"__type\":\"x#TransactionCanceledException\",\"Message\":\"..\",\"CancellationReasons\":["
    "{\"Code\":\"None\"},{\"Code\":\"TransactionConflict\",\"Message\":\"m\"},"
    "{\"Code\":\"ConditionalCheckFailed\",\"Item\":{\"a\":{\"S\":\"x\"}},\"Message\":null}]}";

static void reasons(void **state)
{
    (void)state;
    struct gb_dynamodb_answer a;
    struct gb_dynamodb_reason r[3];
    size_t index = 9;
    gb_dynamodb_answer_read_error(gb_bytes_c(three_reasons), &a);
    assert_int_equal(gb_dynamodb_reasons_read(a.reasons, r, 2), 3); /* a small array stays one */
    assert_int_equal(gb_dynamodb_reasons_read(a.reasons, r, 3), 3);
    assert_int_equal(r[0].error, GB_DYNAMODB_NO_ERROR);
    assert_int_equal(r[1].error, GB_DYNAMODB_CONFLICT);
    assert_int_equal(r[2].error, GB_DYNAMODB_CONDITION_FAILED);
    assert_true(r[0].item.size == 0 && equals(r[2].item, "{\"a\":{\"S\":\"x\"}}"));
    assert_int_equal(gb_dynamodb_reasons_verdict(a.reasons, &index), GB_DYNAMODB_CONDITION_FAILED);
    assert_int_equal(index, 2);

    struct gb_bytes two = gb_bytes_c("[{\"Code\":\"None\"},{\"Code\":\"ThrottlingError\"},"
                                     "{\"Code\":\"TransactionConflict\"}]");
    assert_int_equal(gb_dynamodb_reasons_verdict(two, &index), GB_DYNAMODB_THROTTLED);
    assert_int_equal(index, 1);
    assert_int_equal(gb_dynamodb_reasons_verdict(gb_bytes_c("[{\"Code\":\"None\"}]"), &index),
                     GB_DYNAMODB_UNKNOWN);
    assert_int_equal(gb_dynamodb_reasons_verdict(gb_bytes(NULL, 0), &index), GB_DYNAMODB_UNKNOWN);
    assert_int_equal(gb_dynamodb_reasons_read(gb_bytes_c("[{}]"), r, 3), 1);
    assert_int_equal(r[0].error, GB_DYNAMODB_UNKNOWN);

    gb_dynamodb_answer_read_error(
        gb_bytes_c(
            "{\"__type\":\"ConditionalCheckFailedException\",\"Item\":{\"v\":{\"N\":\"2\"}}}"),
        &a);
    assert_true(equals(a.item, "{\"v\":{\"N\":\"2\"}}"));
    gb_dynamodb_answer_read_error(gb_bytes_c("<html>"), &a);
    assert_int_equal(a.item.size, 0);
    gb_dynamodb_answer_read_error(gb_bytes_c("{\"Item\":{\"v\":{\"N\":\"2\"}},\"x\":"), &a);
    assert_int_equal(a.item.size, 0); /* all or nothing */
}

/* --- consumed capacity --- */

static void print(void *arg, const struct gb_dynamodb_capacity *c)
{
    gb_str_appendf(arg, "%.*s/%.*s r%llu w%llu;", (int)c->table.size, (const char *)c->table.data,
                   (int)c->index.size, (const char *)c->index.data,
                   (unsigned long long)c->read_units, (unsigned long long)c->write_units);
}

static void capacity(void **state)
{
    static const struct {
        enum gb_dynamodb_action action;
        const char *json, *want;
    } rows[] = {
        {GB_DYNAMODB_GET_ITEM, "", ""},
        {GB_DYNAMODB_GET_ITEM, "{\"TableName\":\"t\",\"CapacityUnits\":0.5}", "t/ r500 w0;"},
        {GB_DYNAMODB_PUT_ITEM, "{\"TableName\":\"t\",\"CapacityUnits\":3.0}", "t/ r0 w3000;"},
        {GB_DYNAMODB_PUT_ITEM,
         "{\"CapacityUnits\":4,\"TableName\":\"t\",\"Table\":{\"CapacityUnits\":1},"
         "\"GlobalSecondaryIndexes\":{\"A\":{\"CapacityUnits\":2},\"B\":{\"CapacityUnits\":1}},"
         "\"LocalSecondaryIndexes\":null}",
         "t/ r0 w1000;t/A r0 w2000;t/B r0 w1000;"},
        {GB_DYNAMODB_QUERY,
         "{\"TableName\":\"t\",\"CapacityUnits\":1,\"Table\":{\"CapacityUnits\":0},"
         "\"GlobalSecondaryIndexes\":{\"A\":{\"CapacityUnits\":1}}}",
         "t/ r0 w0;t/A r1000 w0;"},
        {GB_DYNAMODB_TRANSACT_WRITE_ITEMS,
         "[{\"TableName\":\"t\",\"CapacityUnits\":4,\"WriteCapacityUnits\":4,\"Table\":"
         "{\"CapacityUnits\":4,\"WriteCapacityUnits\":4}},{\"TableName\":\"u\",\"CapacityUnits\":2,"
         "\"ReadCapacityUnits\":2}]",
         "t/ r0 w4000;u/ r2000 w0;"},
        {GB_DYNAMODB_GET_ITEM, "{\"TableName\":\"t\",\"CapacityUnits\":-5}", "t/ r0 w0;"},
        {GB_DYNAMODB_GET_ITEM, "{\"TableName\":\"t\",\"CapacityUnits\":1e300}", "t/ r0 w0;"},
        {GB_DYNAMODB_GET_ITEM, "{\"TableName\":1,\"CapacityUnits\":\"1\"}", "/ r0 w0;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str out = {0};
        gb_str_append_c(&out, "");
        gb_dynamodb_capacity_read(rows[i].action, gb_bytes_c(rows[i].json), print, &out);
        assert_string_equal(out.data, rows[i].want);
        gb_str_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(malformed_answers),
        cmocka_unit_test(reasons),
        cmocka_unit_test(capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
