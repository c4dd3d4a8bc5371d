#include "adapters/dynamodb/dynamodb_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct gb_dynamodb_table outbox = {
    .hash = {"PK", GB_DYNAMODB_S},
    .range = {"SK", GB_DYNAMODB_S},
    .indexes =
        {{"ClaimIndex", {"PK", GB_DYNAMODB_S}, {"claim_sort", GB_DYNAMODB_S}, GB_DYNAMODB_ALL},
         {"ExpiryIndex",
          {"has_expiry", GB_DYNAMODB_S},
          {"expires_at", GB_DYNAMODB_N},
          GB_DYNAMODB_KEYS_ONLY},
         {"RecordIDIndex",
          {"record_id", GB_DYNAMODB_S},
          {NULL, GB_DYNAMODB_S},
          GB_DYNAMODB_KEYS_ONLY}},
    .index_count = 3,
};

static void write(struct gb_str *out, const struct gb_dynamodb_table *table)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    gb_dynamodb_w_table(&w, table);
    gb_json_w_object_end(&w);
}

static void small_table_as_text(void **state)
{
    (void)state;
    struct gb_str out = {0};
    write(&out, &(struct gb_dynamodb_table){.hash = {"PK", GB_DYNAMODB_S}});
    assert_string_equal(out.data,
                        "{\"AttributeDefinitions\":[{\"AttributeName\":\"PK\",\"AttributeType\":"
                        "\"S\"}],\"KeySchema\":[{\"AttributeName\":\"PK\",\"KeyType\":\"HASH\"}],"
                        "\"BillingMode\":\"PAY_PER_REQUEST\"}");
    gb_str_deinit(&out);
}

static void assert_key(const struct gb_dynamodb_key *a, const struct gb_dynamodb_key *b)
{
    assert_int_equal(a->name == NULL, b->name == NULL);
    if (a->name == NULL) return;
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
}

/* What is written for CreateTable has the members that DescribeTable answers. */
static void round_trip(void **state)
{
    (void)state;
    struct gb_str json = {0};
    struct gb_str scratch = {0};
    struct gb_dynamodb_table read;
    write(&json, &outbox);
    assert_int_equal(gb_dynamodb_table_read(gb_str_bytes(&json), &scratch, &read).code, GB_OK);
    assert_int_equal(read.attribute_count, 6); /* PK once */
    assert_int_equal(read.index_count, 3);
    assert_string_equal(read.status, "");
    assert_key(&read.hash, &outbox.hash);
    assert_key(&read.range, &outbox.range);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(read.indexes[i].name, outbox.indexes[i].name);
        assert_key(&read.indexes[i].hash, &outbox.indexes[i].hash);
        assert_key(&read.indexes[i].range, &outbox.indexes[i].range);
        assert_int_equal(read.indexes[i].projection, outbox.indexes[i].projection);
    }
    gb_str_deinit(&json);
    gb_str_deinit(&scratch);
}

#define DEFINITIONS "\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"B\"}],"
#define KEYS "\"KeySchema\":[{\"KeyType\":\"HASH\",\"AttributeName\":\"a\"}]"
#define INDEX(type)                                                                                \
    "{\"IndexName\":\"i\"," KEYS ",\"Projection\":{\"ProjectionType\":\"" type "\"}}"

static void descriptions(void **state)
{
    static const struct {
        const char *json;
        bool good;
    } rows[] = {
        {"{" DEFINITIONS KEYS ",\"TableStatus\":\"ACTIVE\",\"LocalSecondaryIndexes\":[{}]}", true},
        {"{" DEFINITIONS KEYS ",\"GlobalSecondaryIndexes\":[" INDEX("INCLUDE") "]}", true},
        {"{" DEFINITIONS KEYS ",\"GlobalSecondaryIndexes\":[" INDEX("SOME") "]}", false},
        {"{" DEFINITIONS KEYS ",\"GlobalSecondaryIndexes\":[{}]}", false},
        {"{" KEYS "}", false}, /* a key without definition */
        {"{" DEFINITIONS "\"KeySchema\":[]}", false},
        {"{}", false},
        {"[]", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str scratch = {0};
        struct gb_dynamodb_table t;
        struct gb_err err = gb_dynamodb_table_read(gb_bytes_c(rows[i].json), &scratch, &t);
        if (gb_failed(err) == rows[i].good) fail_msg("%s: %s", rows[i].json, err.message);
        if (i == 0) {
            assert_string_equal(t.status, "ACTIVE");
            assert_int_equal(t.local_index_count, 1);
            assert_int_equal(t.hash.type, GB_DYNAMODB_B);
        }
        if (i == 1) assert_int_equal(t.indexes[0].projection, GB_DYNAMODB_INCLUDE);
        gb_str_deinit(&scratch);
    }
}

static void indexes_are_bounded(void **state)
{
    (void)state;
    struct gb_str scratch = {0};
    struct gb_dynamodb_table t;
    for (size_t n = GB_DYNAMODB_INDEXES_MAX; n <= GB_DYNAMODB_INDEXES_MAX + 1; n++) {
        struct gb_str json = {0};
        gb_str_append_c(&json, "{" DEFINITIONS KEYS ",\"GlobalSecondaryIndexes\":[");
        for (size_t i = 0; i < n; i++) {
            if (i > 0) gb_str_append_char(&json, ',');
            gb_str_append_c(&json, INDEX("ALL"));
        }
        gb_str_append_c(&json, "]}");
        struct gb_err err = gb_dynamodb_table_read(gb_str_bytes(&json), &scratch, &t);
        assert_int_equal(err.code, n == GB_DYNAMODB_INDEXES_MAX ? GB_OK : GB_UNAVAILABLE);
        gb_str_deinit(&json);
    }
    gb_str_deinit(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_table_as_text),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(indexes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
