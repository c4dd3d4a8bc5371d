#include "base/json_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void read_one(struct gb_json_reader *r, const char *json)
{
    gb_json_init(r, gb_bytes_c(json));
    if (gb_json_next(r) == GB_JSON_ERROR) fail_msg("%s: %s", json, r->err.message);
}

static const struct string_row {
    const char *json;
    const char *want;
    bool lossy;
} string_rows[] = {
    {"\"\"", "", false},
    {"\"plain\"", "plain", false},
    {"\"\xc3\xa9\"", "\xc3\xa9", false},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", false},
    {"\"a\\nb\\nc\"", "a\nb\nc", false},
    {"\"\\u0041\\u007f\"", "A\x7f", false},
    {"\"\\u0080\\u07ff\"", "\xc2\x80\xdf\xbf", false},
    {"\"\\u0800\\uFFFF\"", "\xe0\xa0\x80\xef\xbf\xbf", false},
    {"\"\\ud7ff\\ue000\"", "\xed\x9f\xbf\xee\x80\x80", false},
    {"\"\\uD800\\uDC00\"", "\xf0\x90\x80\x80", false},
    {"\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf", false},
    {"\"x\\ud83d\\ude00y\"", "x\xf0\x9f\x98\x80y", false},
    {"\"\\ud800\"", "\xef\xbf\xbd", true},
    {"\"\\udc00\"", "\xef\xbf\xbd", true},
    {"\"\\ud800x\"", "\xef\xbf\xbdx", true},
    {"\"\\ud800\\n\"", "\xef\xbf\xbd\n", true},
    {"\"\\ud800\\\\u0041\"", "\xef\xbf\xbd\\u0041", true},
    {"\"\\ud800\\u0041\"", "\xef\xbf\xbd\x41", true},
    {"\"\\ud800\\ud800\\udc00\"", "\xef\xbf\xbd\xf0\x90\x80\x80", true},
    {"\"\\udc00\\ud800\"", "\xef\xbf\xbd\xef\xbf\xbd", true},
};

static void strings(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (size_t i = 0; i < sizeof string_rows / sizeof string_rows[0]; i++) {
        const struct string_row *row = &string_rows[i];
        struct gb_json_reader r;
        read_one(&r, row->json);
        bool lossy = false;
        gb_str_clear(&s);
        gb_str_append_c(&s, ">");
        assert_true(gb_json_string(&r, &s, &lossy));
        if (strcmp(s.data + 1, row->want) != 0) fail_msg("%s: %s", row->json, s.data);
        assert_int_equal(s.size, strlen(s.data));
        if (lossy != row->lossy) fail_msg("%s: lossy", row->json);
        assert_true(gb_json_string(&r, &s, NULL));
        if (!gb_json_text_is(&r, row->want)) fail_msg("%s: differs", row->json);
    }
    gb_str_deinit(&s);
}

static void nul_is_a_byte_like_any_other(void **state)
{
    (void)state;
    struct gb_json_reader r;
    struct gb_str s = {0};
    read_one(&r, "\"a\\u0000b\"");
    assert_true(gb_json_string(&r, &s, NULL));
    assert_true(gb_bytes_equal(gb_str_bytes(&s), gb_bytes("a\0b", 3)));
    assert_false(gb_json_text_is(&r, "a"));
    gb_str_deinit(&s);
}

static void a_full_buffer_fails(void **state)
{
    (void)state;
    struct gb_json_reader r;
    struct gb_str s = {.size_max = 3};
    read_one(&r, "\"abcd\"");
    assert_false(gb_json_string(&r, &s, NULL));
    gb_str_clear(&s);
    read_one(&r, "\"\\n\\n\\n\\n\"");
    assert_false(gb_json_string(&r, &s, NULL));
    assert_true(s.failed);
    gb_str_deinit(&s);
}

static const struct compare_row {
    const char *json;
    const char *text;
    bool same;
} compare_rows[] = {
    {"\"type\"", "type", true},
    {"\"type\"", "typ", false},
    {"\"type\"", "types", false},
    {"\"type\"", "Type", false},
    {"\"\"", "", true},
    {"\"t\\u0079pe\"", "type", true},
    {"\"t\\u0079pe\"", "typ", false},
    {"\"t\\u0079pe\"", "types", false},
    {"\"t\\u0079\"", "t", false},
    {"\"\\u20ac\"", "\xe2\x82\xac", true},
    {"\"\\u20ac\"", "\xe2\x82", false},
    {"\"\\n\"", "", false},
};

static void comparisons(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof compare_rows / sizeof compare_rows[0]; i++) {
        const struct compare_row *row = &compare_rows[i];
        struct gb_json_reader r;
        read_one(&r, row->json);
        if (gb_json_text_is(&r, row->text) != row->same) fail_msg("%s %s", row->json, row->text);
    }
}

static const struct number_row {
    const char *json;
    bool i64_ok;
    int64_t i64;
    bool u64_ok;
    uint64_t u64;
} number_rows[] = {
    {"0", true, 0, true, 0},
    {"-0", true, 0, false, 0},
    {"42", true, 42, true, 42},
    {"-42", true, -42, false, 0},
    {"9223372036854775807", true, INT64_MAX, true, INT64_MAX},
    {"9223372036854775808", false, 0, true, (uint64_t)INT64_MAX + 1},
    {"-9223372036854775808", true, INT64_MIN, false, 0},
    {"-9223372036854775809", false, 0, false, 0},
    {"18446744073709551615", false, 0, true, UINT64_MAX},
    {"18446744073709551616", false, 0, false, 0},
    {"99999999999999999999999999", false, 0, false, 0},
    {"1.0", false, 0, false, 0},
    {"1e2", false, 0, false, 0},
    {"\"1\"", false, 0, false, 0},
    {"true", false, 0, false, 0},
};

static void integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof number_rows / sizeof number_rows[0]; i++) {
        const struct number_row *row = &number_rows[i];
        struct gb_json_reader r;
        int64_t i64 = 7;
        uint64_t u64 = 7;
        read_one(&r, row->json);
        if (gb_json_i64(&r, &i64) != row->i64_ok) fail_msg("%s: i64", row->json);
        if (i64 != (row->i64_ok ? row->i64 : 7)) fail_msg("%s: i64 value", row->json);
        if (gb_json_u64(&r, &u64) != row->u64_ok) fail_msg("%s: u64", row->json);
        if (u64 != (row->u64_ok ? row->u64 : 7)) fail_msg("%s: u64 value", row->json);
    }
}

static const struct double_row {
    const char *json;
    bool ok;
    double want;
} double_rows[] = {
    {"0", true, 0},
    {"1.5", true, 1.5},
    {"-2.5e-3", true, -0.0025},
    {"1E6", true, 1000000},
    {"1.7976931348623157e308", true, 1.7976931348623157e308},
    {"1e400", false, 0},
    {"-1e400", false, 0},
    {"1e-400", true, 0},
    {"\"1.5\"", false, 0},
    {"null", false, 0},
};

static void doubles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof double_rows / sizeof double_rows[0]; i++) {
        const struct double_row *row = &double_rows[i];
        struct gb_json_reader r;
        double value = 7;
        read_one(&r, row->json);
        if (gb_json_double(&r, &value) != row->ok) fail_msg("%s", row->json);
        const double want = row->ok ? row->want : 7;
        if (value < want || value > want) fail_msg("%s: %g", row->json, value);
    }
}

static void a_double_has_at_most_127_characters(void **state)
{
    (void)state;
    char json[129] = {0};
    struct gb_json_reader r;
    double value = 7;
    memset(json, '1', 127);
    read_one(&r, json);
    assert_true(gb_json_double(&r, &value));
    assert_true(value > 1.1e126 && value < 1.2e126);
    memset(json, '1', 128);
    read_one(&r, json);
    assert_false(gb_json_double(&r, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(nul_is_a_byte_like_any_other),
        cmocka_unit_test(a_full_buffer_fails),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(integers),
        cmocka_unit_test(doubles),
        cmocka_unit_test(a_double_has_at_most_127_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
