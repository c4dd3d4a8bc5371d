#include "adapters/dynamodb/dynamodb_item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void writes_every_type(void **state)
{
    (void)state;
    struct gb_str out = {0};
    struct gb_json_writer w;
    const struct gb_bytes set[] = {gb_bytes_c("b"), gb_bytes_c("a\"")};
    gb_json_w_init(&w, &out);
    gb_json_w_object(&w);
    gb_dynamodb_w_s_c(&w, "s", "x\"y");
    gb_dynamodb_w_s(&w, "empty", gb_bytes(NULL, 0));
    gb_dynamodb_w_i64(&w, "min", INT64_MIN);
    gb_dynamodb_w_u64(&w, "max", UINT64_MAX);
    gb_dynamodb_w_n(&w, "n", gb_bytes_c("1.5"));
    gb_dynamodb_w_b(&w, "b", gb_bytes("\x00\xff", 2));
    gb_dynamodb_w_bool(&w, "yes", true);
    gb_dynamodb_w_null(&w, "none");
    gb_dynamodb_w_ss(&w, "ss", set, 2);
    gb_dynamodb_w_ss(&w, "no set", set, 0);
    gb_dynamodb_w_map(&w, "m");
    gb_dynamodb_w_s_c(&w, "in\"side", "1");
    gb_dynamodb_w_map_end(&w);
    gb_dynamodb_w_list(&w, "l");
    gb_dynamodb_w_s_c(&w, NULL, "2");
    gb_dynamodb_w_map(&w, NULL);
    gb_dynamodb_w_map_end(&w);
    gb_dynamodb_w_list_end(&w);
    gb_json_w_object_end(&w);
    assert_string_equal(out.data,
                        "{\"s\":{\"S\":\"x\\\"y\"},\"empty\":{\"S\":\"\"},"
                        "\"min\":{\"N\":\"-9223372036854775808\"},"
                        "\"max\":{\"N\":\"18446744073709551615\"},\"n\":{\"N\":\"1.5\"},"
                        "\"b\":{\"B\":\"AP8=\"},\"yes\":{\"BOOL\":true},\"none\":{\"NULL\":true},"
                        "\"ss\":{\"SS\":[\"b\",\"a\\\"\"]},\"m\":{\"M\":{\"in\\\"side\":{\"S\":"
                        "\"1\"}}},\"l\":{\"L\":[{\"S\":\"2\"},{\"M\":{}}]}}");
    gb_str_deinit(&out);
}

/* --- reading --- */

static const char whole[] =
    "{\"s\":{\"S\":\"plain\"},\"e\":{\"S\":\"a\\\"\\u00e9\"},\"i\":{\"N\":\"-42\"},"
    "\"u\":{\"N\":\"18446744073709551615\"},\"d\":{\"N\":\"1.50\"},\"b\":{\"B\":\"AP8=\"},"
    "\"eb\":{\"B\":\"AP8\\u003d\"},\"t\":{\"BOOL\":true},\"x\":{\"NULL\":true},"
    "\"ss\":{\"SS\":[\"p\",\"q\\n\"]},\"l\":{\"L\":[{\"N\":\"1\"},{\"S\":\"2\"}]},"
    "\"m\":{\"M\":{\"k\\t\":{\"S\":\"v\\n\"}}},\"ns\":{\"NS\":[\"3\"]},\"bs\":{\"BS\":[\"AA==\"]}}";

static const struct gb_dynamodb_source from = {"tab", "GetItem"};

static bool equals(struct gb_bytes a, const char *text)
{
    return gb_bytes_equal_c(a, text);
}

struct row {
    struct gb_bytes s, e, d, b, eb, ss, l, m, absent;
    int64_t i, kept;
    uint64_t u;
    bool t;
};

static void reads_known_fields(void **state)
{
    (void)state;
    struct gb_str scratch = {0};
    struct row row = {.kept = 7};
    struct gb_dynamodb_field fields[] = {
        {"s", GB_DYNAMODB_FIELD_S, true, &row.s, false},
        {"e", GB_DYNAMODB_FIELD_S, true, &row.e, false},
        {"i", GB_DYNAMODB_FIELD_I64, true, &row.i, false},
        {"u", GB_DYNAMODB_FIELD_U64, true, &row.u, false},
        {"d", GB_DYNAMODB_FIELD_N, true, &row.d, false},
        {"b", GB_DYNAMODB_FIELD_B, true, &row.b, false},
        {"eb", GB_DYNAMODB_FIELD_B, true, &row.eb, false},
        {"t", GB_DYNAMODB_FIELD_BOOL, true, &row.t, false},
        {"ss", GB_DYNAMODB_FIELD_SS, true, &row.ss, false},
        {"l", GB_DYNAMODB_FIELD_L, true, &row.l, false},
        {"m", GB_DYNAMODB_FIELD_M, true, &row.m, false},
        {"absent", GB_DYNAMODB_FIELD_I64, false, &row.kept, true},
    };
    size_t count = sizeof fields / sizeof fields[0];
    struct gb_err err = gb_dynamodb_item_read(&from, gb_bytes_c(whole), &scratch, fields, count);
    assert_string_equal(err.message, "");
    assert_int_equal(err.code, GB_OK);
    assert_true(equals(row.s, "plain") && equals(row.e, "a\"\xc3\xa9") && equals(row.d, "1.50"));
    assert_true(row.i == -42 && row.u == UINT64_MAX && row.t && row.kept == 7);
    assert_true(gb_bytes_equal(row.b, gb_bytes("\x00\xff", 2)));
    assert_true(gb_bytes_equal(row.eb, gb_bytes("\x00\xff", 2)));
    assert_false(fields[count - 1].present);

    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_SS, row.ss, &scratch);
    assert_true(gb_dynamodb_next(&c, &v) && equals(v.text, "p") && v.type == GB_DYNAMODB_S);
    assert_true(gb_dynamodb_next(&c, &v) && equals(v.text, "q\n"));
    assert_false(gb_dynamodb_next(&c, &v));
    assert_int_equal(c.err.code, GB_OK);
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_L, row.l, &scratch);
    assert_true(gb_dynamodb_next(&c, &v) && equals(v.text, "1") && v.type == GB_DYNAMODB_N);
    assert_true(gb_dynamodb_next(&c, &v) && equals(v.text, "2") && v.name.size == 0);
    assert_false(gb_dynamodb_next(&c, &v));
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, row.m, &scratch);
    assert_true(gb_dynamodb_next(&c, &v) && equals(v.name, "k\t") && equals(v.text, "v\n"));
    assert_false(gb_dynamodb_next(&c, &v));
    assert_true(equals(row.e, "a\"\xc3\xa9")); /* nothing moved */
    gb_str_deinit(&scratch);
}

static void names_what_does_not_fit(void **state)
{
    static const struct {
        const char *item;
        enum gb_dynamodb_field_kind kind;
        enum gb_code want;
        const char *message;
    } rows[] = {
        {"{}", GB_DYNAMODB_FIELD_S, GB_INVALID_CONFIG,
         "table \"tab\", GetItem: attribute \"a\" is missing, expected S"},
        {"{\"a\":{\"N\":\"1\"}}", GB_DYNAMODB_FIELD_S, GB_INVALID_CONFIG,
         "table \"tab\", GetItem: attribute \"a\" is N, expected S"},
        {"{\"a\":{\"S\":\"1\"}}", GB_DYNAMODB_FIELD_I64, GB_INVALID_CONFIG,
         "table \"tab\", GetItem: attribute \"a\" is S, expected N, a signed 64-bit integer"},
        {"{\"a\":{\"N\":\"9223372036854775808\"}}", GB_DYNAMODB_FIELD_I64, GB_INVALID_CONFIG,
         "table \"tab\", GetItem: attribute \"a\" is 9223372036854775808, expected N, a signed "
         "64-bit integer"},
        {"{\"a\":{\"N\":\"1.5\"}}", GB_DYNAMODB_FIELD_I64, GB_INVALID_CONFIG, "is 1.5"},
        {"{\"a\":{\"N\":\"-1\"}}", GB_DYNAMODB_FIELD_U64, GB_INVALID_CONFIG, "is -1"},
        {"{\"a\":{\"N\":\"18446744073709551616\"}}", GB_DYNAMODB_FIELD_U64, GB_INVALID_CONFIG,
         "expected N, an unsigned 64-bit integer"},
        {"{\"a\":{\"S\":\"x\"},\"a\":{\"S\":\"y\"}}", GB_DYNAMODB_FIELD_S, GB_INVALID_CONFIG,
         "there twice"},
        {"{\"a\":{\"NULL\":true}}", GB_DYNAMODB_FIELD_BOOL, GB_INVALID_CONFIG, "is NULL"},
        {"{\"a\":{\"S\":1}}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE,
         "table \"tab\", GetItem: malformed attributes"},
        {"{\"a\":{\"S\":\"x\",\"N\":\"1\"}}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{}}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"Q\":\"x\"}}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":\"x\"}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"N\":\"one\"}}", GB_DYNAMODB_FIELD_I64, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"N\":\"\"}}", GB_DYNAMODB_FIELD_I64, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"N\":\"1 \"}}", GB_DYNAMODB_FIELD_I64, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"B\":\"AA=\"}}", GB_DYNAMODB_FIELD_B, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"BOOL\":\"true\"}}", GB_DYNAMODB_FIELD_BOOL, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"L\":{}}}", GB_DYNAMODB_FIELD_L, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"S\":\"x\"}", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"{\"a\":{\"S\":\"x\"}} ,", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"[]", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
        {"", GB_DYNAMODB_FIELD_S, GB_UNAVAILABLE, "malformed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str scratch = {0};
        union {
            struct gb_bytes text;
            int64_t i64;
            bool boolean;
        } value = {0};
        struct gb_dynamodb_field field = {"a", rows[i].kind, true, &value, false};
        struct gb_err err =
            gb_dynamodb_item_read(&from, gb_bytes_c(rows[i].item), &scratch, &field, 1);
        if (err.code != rows[i].want || strstr(err.message, rows[i].message) == NULL)
            fail_msg("%s: %s: %s", rows[i].item, gb_code_name(err.code), err.message);
        gb_str_deinit(&scratch);
    }
}

static void numbers_are_exact(void **state)
{
    (void)state;
    int64_t i = 0;
    uint64_t u = 0;
    assert_true(gb_dynamodb_parse_i64(gb_bytes_c("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_false(gb_dynamodb_parse_i64(gb_bytes_c("-9223372036854775809"), &i));
    assert_false(gb_dynamodb_parse_i64(gb_bytes_c("+1"), &i));
    assert_false(gb_dynamodb_parse_i64(gb_bytes_c("1e3"), &i));
    assert_true(gb_dynamodb_parse_u64(gb_bytes_c("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(gb_dynamodb_parse_u64(gb_bytes_c("007"), &u));
}

static void pages(void **state)
{
    (void)state;
    struct gb_dynamodb_items items;
    struct gb_bytes item;
    gb_dynamodb_items_init(&items, gb_bytes_c("[{\"a\":{\"S\":\"]\"}}, {} ]"));
    assert_true(gb_dynamodb_items_next(&items, &item));
    assert_true(equals(item, "{\"a\":{\"S\":\"]\"}}"));
    assert_true(gb_dynamodb_items_next(&items, &item) && equals(item, "{}"));
    assert_false(gb_dynamodb_items_next(&items, &item));
    gb_dynamodb_items_init(&items, gb_bytes_c("[]"));
    assert_false(gb_dynamodb_items_next(&items, &item));
    gb_dynamodb_items_init(&items, gb_bytes(NULL, 0));
    assert_false(gb_dynamodb_items_next(&items, &item));
}

/* --- sizes --- */

/* The numbers were measured against the service by others, to the byte; the rest follows AWS's
 * page on item sizes. */
static void sizes(void **state)
{
    static const struct {
        const char *value;
        size_t bytes; /* without the name */
    } rows[] = {
        {"{\"S\":\"\"}", 0},
        {"{\"S\":\"abc\"}", 3},
        {"{\"S\":\"\\u00e9\\n\"}", 3},
        {"{\"S\":\"\xf0\x9f\x98\x80\"}", 4},
        {"{\"B\":\"AP8=\"}", 2},
        {"{\"BOOL\":false}", 1},
        {"{\"NULL\":true}", 1},
        {"{\"N\":\"0\"}", 1},
        {"{\"N\":\"-0\"}", 1},
        {"{\"N\":\"1\"}", 2},
        {"{\"N\":\"12\"}", 2},
        {"{\"N\":\"123\"}", 3},
        {"{\"N\":\"-42\"}", 3},
        {"{\"N\":\"100\"}", 2},
        {"{\"N\":\"1010\"}", 3},
        {"{\"N\":\"12345678912\"}", 7},
        {"{\"N\":\"1234567890123456789\"}", 11},
        {"{\"N\":\"12345678901234567890123456789012345678\"}", 20},
        {"{\"N\":\"0.0000001\"}", 2},
        {"{\"N\":\"12.5\"}", 3},
        {"{\"N\":\"1.5\"}", 3},
        {"{\"N\":\"15e-1\"}", 3},
        {"{\"N\":\"1E125\"}", 2},
        {"{\"N\":\"1E-100\"}", 2},
        {"{\"SS\":[\"ab\",\"c\"]}", 3},
        {"{\"NS\":[\"1\",\"123\"]}", 5},
        {"{\"BS\":[\"AP8=\"]}", 2},
        {"{\"L\":[]}", 3},
        {"{\"M\":{}}", 3},
        {"{\"L\":[{\"S\":\"ab\"},{\"N\":\"1\"}]}", 3 + 2 + 2 + 2},
        {"{\"M\":{\"key\":{\"S\":\"ab\"}}}", 3 + 1 + 3 + 2},
        {"{\"M\":{\"k\":{\"L\":[{\"M\":{\"i\":{\"BOOL\":true}}}]}}}",
         3 + 1 + 1 + 3 + 1 + 3 + 1 + 1 + 1},
        {"{\"M\":{\"k\":{\"SS\":[\"ab\",\"cd\"]}}}", 3 + 1 + 1 + 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char json[200];
        size_t bytes = 0;
        (void)snprintf(json, sizeof json, "{\"name\":%s,\"\\u00e9\":{\"S\":\"x\"}}", rows[i].value);
        assert_int_equal(gb_dynamodb_item_size(gb_bytes_c(json), &bytes).code, GB_OK);
        if (bytes != rows[i].bytes + 4 + 3) fail_msg("%s: %zu bytes", rows[i].value, bytes);
    }
}

static void size_of_malformed_items(void **state)
{
    (void)state;
    size_t bytes = 7;
    struct gb_str deep = {0};
    assert_int_equal(gb_dynamodb_item_size(gb_bytes_c("{}"), &bytes).code, GB_OK);
    assert_int_equal(bytes, 0);
    bytes = 7;
    assert_int_equal(gb_dynamodb_item_size(gb_bytes_c("{\"a\":1}"), &bytes).code, GB_UNAVAILABLE);
    assert_int_equal(gb_dynamodb_item_size(gb_bytes_c("{\"a\":{\"L\":[1]}}"), &bytes).code,
                     GB_UNAVAILABLE);
    for (int levels = GB_DYNAMODB_DEPTH_MAX - 1; levels <= GB_DYNAMODB_DEPTH_MAX; levels++) {
        gb_str_clear(&deep);
        gb_str_append_c(&deep, "{\"a\":");
        for (int i = 0; i < levels; i++) gb_str_append_c(&deep, "{\"L\":[");
        gb_str_append_c(&deep, "{\"S\":\"\"}");
        for (int i = 0; i < levels; i++) gb_str_append_c(&deep, "]}");
        gb_str_append_c(&deep, "}");
        struct gb_err err = gb_dynamodb_item_size(gb_str_bytes(&deep), &bytes);
        assert_int_equal(err.code, levels < GB_DYNAMODB_DEPTH_MAX ? GB_OK : GB_UNAVAILABLE);
    }
    assert_int_equal(bytes, 1 + 31 * (3 + 1));
    gb_str_deinit(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_every_type),
        cmocka_unit_test(reads_known_fields),
        cmocka_unit_test(names_what_does_not_fit),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(pages),
        cmocka_unit_test(sizes),
        cmocka_unit_test(size_of_malformed_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
