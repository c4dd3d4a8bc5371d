#include "adapters/dynamodb/dynamodb_meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct gb_dynamodb_table table = {
    .hash = {"PK", GB_DYNAMODB_S},
    .range = {"SK", GB_DYNAMODB_S},
    .indexes = {{"All", {"PK", GB_DYNAMODB_S}, {"sort", GB_DYNAMODB_S}, GB_DYNAMODB_ALL},
                {"Keys", {"id", GB_DYNAMODB_S}, {NULL, GB_DYNAMODB_S}, GB_DYNAMODB_KEYS_ONLY}},
    .index_count = 2,
};

/* An item of 20 bytes and what `more` and `filler` add: 4 bytes for the filler's name. */
static struct gb_bytes item(struct gb_str *out, const char *more, size_t filler)
{
    gb_str_clear(out);
    if (more == NULL) return gb_bytes(NULL, 0);
    gb_str_append_c(out, "{\"PK\":{\"S\":\"12345678\"},\"SK\":{\"S\":\"87654321\"}");
    gb_str_append_c(out, more);
    if (filler > 0) {
        gb_str_append_c(out, ",\"fill\":{\"S\":\"");
        for (size_t i = 0; i < filler; i++) gb_str_append_char(out, 'x');
        gb_str_append_c(out, "\"}");
    }
    gb_str_append_char(out, '}');
    return gb_str_bytes(out);
}

#define SORT(v) ",\"sort\":{\"S\":\"" v "\"}" /* 5 bytes with a letter */
#define ID(v) ",\"id\":{\"S\":\"" v "\"}"

static const struct write_row {
    const char *name;
    const char *before;
    size_t before_fill;
    const char *after;
    size_t after_fill;
    uint64_t own, all, keys; /* whole units */
} write_rows[] = {
    {"new, in no index", NULL, 0, "", 0, 1, 0, 0},
    {"1024 bytes", NULL, 0, "", 1000, 1, 0, 0},
    {"1025 bytes", NULL, 0, "", 1001, 2, 0, 0},
    {"400 KB", NULL, 0, "", 400 * 1024 - 24, 400, 0, 0},
    {"new, in both", NULL, 0, SORT("a") ID("x"), 0, 1, 1, 1},
    {"new and large, in both", NULL, 0, SORT("a") ID("x"), 2000, 2, 2, 1},
    {"gone", SORT("a") ID("x"), 2000, NULL, 0, 2, 2, 1},
    {"gone and was not there", NULL, 0, NULL, 0, 1, 0, 0},
    {"smaller", "", 3000, "", 0, 3, 0, 0},
    {"nothing changes", SORT("a") ID("x"), 100, SORT("a") ID("x"), 100, 1, 0, 0},
    {"another order", SORT("a") ID("x"), 100, ID("x") SORT("a"), 100, 1, 0, 0},
    {"a value changes", SORT("a") ID("x"), 100, SORT("a") ID("x"), 101, 1, 1, 0},
    {"a value shrinks", SORT("a") ID("x"), 2000, SORT("a") ID("x"), 0, 2, 2, 0},
    {"a key changes", SORT("a") ID("x"), 2000, SORT("b") ID("x"), 0, 2, 2 + 1, 0},
    {"leaves one, key of the other changes", SORT("a") ID("x"), 0, ID("y"), 0, 1, 1, 2},
    {"enters", ID("x"), 0, SORT("a") ID("x"), 2000, 2, 2, 0},
};

static void check_write(const struct write_row *row, bool in_transaction)
{
    struct gb_str before = {0};
    struct gb_str after = {0};
    struct gb_dynamodb_units u = {0};
    struct gb_err err =
        gb_dynamodb_meter_write(&table, item(&before, row->before, row->before_fill),
                                item(&after, row->after, row->after_fill), in_transaction, &u);
    assert_int_equal(err.code, GB_OK);
    uint64_t own = row->own * (in_transaction ? 2 : 1);
    if (u.table != own * GB_DYNAMODB_UNIT || u.index[0] != row->all * GB_DYNAMODB_UNIT ||
        u.index[1] != row->keys * GB_DYNAMODB_UNIT) {
        fail_msg("%s: %llu, %llu, %llu", row->name, (unsigned long long)u.table,
                 (unsigned long long)u.index[0], (unsigned long long)u.index[1]);
    }
    assert_int_equal(u.total, u.table + u.index[0] + u.index[1]);
    gb_str_deinit(&before);
    gb_str_deinit(&after);
}

static void writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof write_rows / sizeof write_rows[0]; i++) {
        check_write(&write_rows[i], false);
        check_write(&write_rows[i], true);
    }
}

static void checks_and_reads(void **state)
{
    (void)state;
    struct gb_str text = {0};
    struct gb_dynamodb_units u = {0};
    const struct gb_bytes none = gb_bytes(NULL, 0);
    assert_int_equal(gb_dynamodb_meter_check(none, none, false, &u).code, GB_OK);
    assert_int_equal(u.total, 1000);
    struct gb_bytes large = item(&text, SORT("a"), 1001);
    assert_int_equal(gb_dynamodb_meter_check(large, none, true, &u).code, GB_OK);
    assert_int_equal(u.table, 1000 + 4000); /* adds */
    struct gb_dynamodb_units w = {0};
    assert_int_equal(gb_dynamodb_meter_check(gb_bytes_c("{}"), large, false, &w).code, GB_OK);
    assert_int_equal(w.total, 2000);
    assert_int_equal(gb_dynamodb_meter_check(gb_bytes_c("{1"), none, true, &u).code,
                     GB_UNAVAILABLE);
    assert_int_equal(
        gb_dynamodb_meter_write(&table, gb_bytes_c("[]"), gb_bytes_c("{}"), true, &u).code,
        GB_UNAVAILABLE);
    assert_int_equal(u.table, 5000);
    assert_int_equal(gb_dynamodb_meter_read(0, GB_DYNAMODB_EVENTUAL), 500);
    assert_int_equal(gb_dynamodb_meter_read(4096, GB_DYNAMODB_CONSISTENT), 1000);
    assert_int_equal(gb_dynamodb_meter_read(4097, GB_DYNAMODB_CONSISTENT), 2000);
    assert_int_equal(gb_dynamodb_meter_read(4097, GB_DYNAMODB_TRANSACTED), 4000);
    assert_int_equal(gb_dynamodb_meter_read(1 << 20, GB_DYNAMODB_EVENTUAL), 128000);
    gb_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes),
        cmocka_unit_test(checks_and_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
