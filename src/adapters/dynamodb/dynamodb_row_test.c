#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_dlq_parts.h"
#include "adapters/dynamodb/dynamodb_lease_row.h"
#include "adapters/dynamodb/dynamodb_subscriptions_row.h"

/* Rows that only another program, or a hand, can have written. */

static const struct gb_dynamodb_source from = {"t", "Query"};

static void dlq_keys(void **state)
{
    static const struct key_row {
        const char *item, *id, *says; /* `id` NULL: refused */
    } rows[] = {
        {"{\"PK\":{\"S\":\"DLQ#a\"},\"failed_at\":{\"N\":\"5\"}}", "a", NULL},
        {"{\"PK\":{\"S\":\"DLQ#\"},\"failed_at\":{\"N\":\"5\"}}", NULL, "does not begin with DLQ#"},
        /* cut there, it would name the row "a": a removal would delete the wrong one */
        {"{\"PK\":{\"S\":\"DLQ#a\\u0000b\"},\"failed_at\":{\"N\":\"5\"}}", NULL, "holds U+0000"},
        {"{\"PK\":{\"S\":\"DLQ#\\u0000\"},\"failed_at\":{\"N\":\"5\"}}", NULL, "holds U+0000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str scratch = {0};
        struct gb_ddlq_key key;
        struct gb_err err = gb_ddlq_key_read(&from, gb_bytes_c(rows[i].item), &scratch, &key);
        assert_int_equal(err.code, rows[i].id == NULL ? GB_INVALID_OUTBOX_RECORD : GB_OK);
        if (rows[i].id == NULL) {
            assert_non_null(strstr(err.message, rows[i].says));
        } else {
            assert_string_equal(key.id, rows[i].id);
        }
        gb_str_deinit(&scratch);
    }
}

static void dlq_extra_info(void **state)
{
    static const char item[] = "{\"PK\":{\"S\":\"DLQ#a\"},\"failed_at\":{\"N\":\"5\"},"
                               "\"envelope_json\":{\"S\":\"{\\\"id\\\":\\\"e\\\"}\"},"
                               "\"extra_info\":{\"S\":\"[1\"}}";
    struct gb_str scratch = {0};
    struct gb_dlq_entry *e = NULL;
    (void)state;
    assert_int_equal(gb_ddlq_entry_read(&from, gb_bytes_c(item), &scratch, &e).code, GB_OK);
    assert_string_equal(e->extra_info, "{\"unreadable\":\"[1\"}");
    gb_dlq_entry_free(e);
    gb_str_deinit(&scratch);
}

/* Cut there, the owner in the conditions of a take-over would never be that of the row. */
static void lease_owner(void **state)
{
    static const char item[] = "{\"PK\":{\"S\":\"LEASE#s\"},\"owner\":{\"S\":\"a\\u0000\"},"
                               "\"version\":{\"N\":\"1\"},\"acquired_at\":{\"N\":\"1\"},"
                               "\"renewed_at\":{\"N\":\"1\"},\"expires_at\":{\"N\":\"2\"}}";
    struct gb_str scratch = {0};
    struct gb_dlease_row row;
    (void)state;
    struct gb_err err =
        gb_dlease_row_read(&from, gb_bytes_c(item), gb_bytes_c("s"), &scratch, &row);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "owner holds U+0000"));
    gb_str_deinit(&scratch);
}

static void filters_are_sorted_and_once(void **state)
{
    static const char item[] =
        "{\"baseline\":{\"BOOL\":true},\"filters\":{\"SS\":[\"b\",\"a\",\"b\",\"a\",\"b\"]}}";
    struct gb_str scratch = {0};
    struct gb_filter_list list = {0};
    (void)state;
    assert_int_equal(gb_dsub_row_read(&from, gb_bytes_c(item), "id", &scratch, &list).code, GB_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.filters[0], "a");
    assert_string_equal(list.filters[1], "b");
    gb_filter_list_free(&list);
    gb_str_deinit(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dlq_keys),
        cmocka_unit_test(dlq_extra_info),
        cmocka_unit_test(lease_owner),
        cmocka_unit_test(filters_are_sorted_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
