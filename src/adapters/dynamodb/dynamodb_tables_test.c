#include "adapters/dynamodb/dynamodb_tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_definition_fits_itself(void **state)
{
    (void)state;
    for (int i = 0; i < GB_DYNAMODB_ROLES; i++) {
        struct gb_dynamodb_table t = *gb_dynamodb_table_of((enum gb_dynamodb_role)i);
        t.attribute_count = 1;
        assert_int_equal(gb_dynamodb_table_check((enum gb_dynamodb_role)i, "t", &t).code, GB_OK);
    }
}

static void refused(enum gb_dynamodb_role role, const struct gb_dynamodb_table *t, const char *text)
{
    struct gb_err err = gb_dynamodb_table_check(role, "mine", t);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_string_equal(err.message, text);
}

static void check_05_22_keys(void **state)
{
    (void)state;
    struct gb_dynamodb_table t = *gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX);
    t.range = (struct gb_dynamodb_key){.name = NULL};
    refused(GB_DYNAMODB_OUTBOX, &t,
            "table \"mine\": expected the keys PK (S) hash, SK (S) range, but it has PK (S) hash, "
            "no range key; name another table or recreate it");
    t = *gb_dynamodb_table_of(GB_DYNAMODB_LEASE);
    t.range = (struct gb_dynamodb_key){"SK", GB_DYNAMODB_S};
    refused(GB_DYNAMODB_LEASE, &t,
            "table \"mine\": expected the keys PK (S) hash, no range key, but it has PK (S) hash, "
            "SK (S) range; name another table or recreate it");
    t = *gb_dynamodb_table_of(GB_DYNAMODB_LEASE);
    t.hash.type = GB_DYNAMODB_N;
    refused(GB_DYNAMODB_LEASE, &t,
            "table \"mine\": expected the keys PK (S) hash, no range key, but it has PK (N) hash, "
            "no range key; name another table or recreate it");
    t.hash = (struct gb_dynamodb_key){"pk", GB_DYNAMODB_S};
    assert_int_equal(gb_dynamodb_table_check(GB_DYNAMODB_LEASE, "t", &t).code, GB_INVALID_CONFIG);
    t.hash = (struct gb_dynamodb_key){.name = NULL};
    assert_int_equal(gb_dynamodb_table_check(GB_DYNAMODB_LEASE, "t", &t).code, GB_INVALID_CONFIG);
}

static void check_05_22_indexes(void **state)
{
    (void)state;
    struct gb_dynamodb_table t = *gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX);
    t.index_count = 2;
    refused(GB_DYNAMODB_OUTBOX, &t,
            "table \"mine\": required global secondary index \"ClaimIndex\" is missing; expected "
            "PK (S) hash, claim_sort (S) range, projecting ALL; add the index");
    t.index_count = 3;
    t.indexes[2].projection = GB_DYNAMODB_KEYS_ONLY;
    refused(GB_DYNAMODB_OUTBOX, &t,
            "table \"mine\": GSI \"ClaimIndex\" must project ALL attributes, but projects "
            "KEYS_ONLY; delete and recreate the index");
    t.indexes[2] = gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX)->indexes[2];
    t.indexes[1].range = (struct gb_dynamodb_key){"x", GB_DYNAMODB_N};
    refused(GB_DYNAMODB_OUTBOX, &t,
            "table \"mine\": GSI \"RecordIDIndex\" must have the keys record_id (S) hash, no range "
            "key, but has record_id (S) hash, x (N) range; delete and recreate the index");
    t = *gb_dynamodb_table_of(GB_DYNAMODB_DLQ);
    t.indexes[0].hash.type = GB_DYNAMODB_N;
    assert_int_equal(gb_dynamodb_table_check(GB_DYNAMODB_DLQ, "t", &t).code, GB_INVALID_CONFIG);
}

static void more_than_needed_is_tolerated(void **state)
{
    (void)state;
    struct gb_dynamodb_table t = *gb_dynamodb_table_of(GB_DYNAMODB_OUTBOX);
    t.indexes[3] = (struct gb_dynamodb_index){.name = "Extra", .hash = {"x", GB_DYNAMODB_S}};
    t.index_count = 4;
    t.indexes[0].projection = GB_DYNAMODB_ALL;
    assert_int_equal(gb_dynamodb_table_check(GB_DYNAMODB_OUTBOX, "t", &t).code, GB_OK);
}

static void managed_table_has_one_attribute(void **state)
{
    (void)state;
    struct gb_dynamodb_table t = *gb_dynamodb_table_of(GB_DYNAMODB_SUBSCRIPTIONS);
    t.attribute_count = 2;
    refused(GB_DYNAMODB_SUBSCRIPTIONS, &t,
            "table \"mine\": expected exactly 1 attribute definition, storage_identity, but it has "
            "2; name another table or recreate it");
}

/* The texts stay whole. */
static void long_names_are_cut(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    struct gb_dynamodb_table t = {.hash = {name, GB_DYNAMODB_S}, .range = {name, GB_DYNAMODB_S}};
    struct gb_err err = gb_dynamodb_table_check(GB_DYNAMODB_LEASE, "t", &t);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "expected the keys PK (S) hash"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_definition_fits_itself),
        cmocka_unit_test(check_05_22_keys),
        cmocka_unit_test(check_05_22_indexes),
        cmocka_unit_test(more_than_needed_is_tolerated),
        cmocka_unit_test(managed_table_has_one_attribute),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
