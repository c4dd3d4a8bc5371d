#include "base/json_write.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_read.h"

static void writes_nested_values(void **state)
{
    (void)state;
    struct gb_str s = {0};
    struct gb_json_writer w;
    gb_json_w_init(&w, &s);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "i");
    gb_json_w_i64(&w, INT64_MIN);
    gb_json_w_key(&w, "u");
    gb_json_w_u64(&w, UINT64_MAX);
    gb_json_w_key(&w, "empty");
    gb_json_w_object(&w);
    gb_json_w_object_end(&w);
    gb_json_w_key_bytes(&w, gb_bytes_c("a\"b"));
    gb_json_w_array(&w);
    gb_json_w_bool(&w, true);
    gb_json_w_bool(&w, false);
    gb_json_w_null(&w);
    gb_json_w_array(&w);
    gb_json_w_array_end(&w);
    gb_json_w_raw(&w, gb_bytes_c("1.5"));
    gb_json_w_base64(&w, gb_bytes_c("foo"));
    gb_json_w_string_c(&w, "x");
    gb_json_w_string_c(&w, NULL);
    gb_json_w_array_end(&w);
    gb_json_w_key_bytes(&w, gb_bytes_c("last"));
    gb_json_w_string(&w, gb_bytes(NULL, 0));
    gb_json_w_object_end(&w);
    assert_string_equal(s.data, "{\"i\":-9223372036854775808,\"u\":18446744073709551615,"
                                "\"empty\":{},\"a\\\"b\":[true,false,null,[],1.5,\"Zm9v\","
                                "\"x\",\"\"],\"last\":\"\"}");
    assert_int_equal(s.size, strlen(s.data));
    gb_str_deinit(&s);
}

static const struct double_row {
    double value;
    const char *want;
} double_rows[] = {
    {0.0, "0"},
    {-0.0, "0"},
    {1.0, "1"},
    {-1.5, "-1.5"},
    {100.0, "100"},
    {0.1, "0.1"},
    {0.30000000000000004, "0.30000000000000004"},
    {1.0 / 3, "0.3333333333333333"},
    {123456.789, "123456.789"},
    {9007199254740993.0, "9007199254740992"},
    {123456789012345680000.0, "123456789012345680000"},
    {1e20, "100000000000000000000"},
    {1e21, "1e+21"},
    {-1.25e22, "-1.25e+22"},
    {0.000001, "0.000001"},
    {0.00000123, "0.00000123"},
    {1e-7, "1e-7"},
    {-1.5e-10, "-1.5e-10"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {4.9406564584124654e-324, "5e-324"},
    {1e-310, "1e-310"},
    {5e-320, "5e-320"},
};

static void writes_doubles(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof double_rows / sizeof double_rows[0]; i++) {
        struct gb_str s = {0};
        struct gb_json_writer w;
        gb_json_w_init(&w, &s);
        gb_json_w_double(&w, double_rows[i].value);
        assert_string_equal(s.data, double_rows[i].want);
        gb_str_deinit(&s);
    }
}

/* Whatever the bits: the text reads back, and one digit less would not. */
static void doubles_are_exact_and_short(void **state)
{
    (void)state;
    uint64_t bits = 0x9E3779B97F4A7C15;
    for (int i = 0; i < 20000; i++) {
        double value;
        bits ^= bits << 13; /* xorshift */
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        struct gb_str s = {0};
        struct gb_json_writer w;
        char shorter[64];
        gb_json_w_init(&w, &s);
        gb_json_w_double(&w, value);
        assert_true(strtod(s.data, NULL) == value);
        size_t digits = 0;
        for (const char *p = s.data; *p != '\0' && *p != 'e'; p++) {
            bool zero = *p == '0' && (digits == 0 || strspn(p, "0.") == strcspn(p, "e"));
            if (*p >= '0' && *p <= '9' && !zero) digits++;
        }
        if (digits > 1) {
            (void)snprintf(shorter, sizeof shorter, "%.*e", (int)digits - 2, value);
            assert_false(strtod(shorter, NULL) == value);
        }
        gb_str_deinit(&s);
    }
}

static const struct escape_row {
    const char *name;
    const char *text;
    const char *want;
} escape_rows[] = {
    {"empty", "", ""},
    {"plain", "plain text of more than eight bytes /'", "plain text of more than eight bytes /'"},
    {"quote and backslash", "a\"b\\c", "a\\\"b\\\\c"},
    {"short escapes", "\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
    {"other controls", "\x01\x0b\x1f", "\\u0001\\u000b\\u001f"},
    {"delete stays", "\x7f", "\x7f"},
    {"good UTF-8 stays", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"good UTF-8, then an escape", "\xc3\xa9\n\xc3\xa9", "\xc3\xa9\\n\xc3\xa9"},
    {"one bad byte", "a\xff z", "a\xef\xbf\xbd z"},
    {"each bad byte", "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"bad between good", "\xc3\xa9\x80\xe2\x82\xac\xff\xf0\x9f\x98\x80",
     "\xc3\xa9\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"overlong", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"cut at the end", "abc\xf0\x9f\x98", "abc\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
};

static void escapes(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (size_t i = 0; i < sizeof escape_rows / sizeof escape_rows[0]; i++) {
        const struct escape_row *row = &escape_rows[i];
        struct gb_json_writer w;
        gb_str_clear(&s);
        gb_json_w_init(&w, &s);
        gb_json_w_string(&w, gb_bytes_c(row->text));
        assert_int_equal(s.data[0], '"');
        assert_int_equal(s.data[s.size - 1], '"');
        s.data[s.size - 1] = '\0';
        if (strcmp(s.data + 1, row->want) != 0) fail_msg("%s: %s", row->name, s.data);
        gb_str_clear(&s);
        gb_str_append_c(&s, "");
        gb_json_escape(&s, gb_bytes_c(row->text));
        assert_string_equal(s.data, row->want);
    }
    gb_str_deinit(&s);
}

/* Every byte at every place around the step of eight comes back as it was. */
static void reader_gives_back_what_was_written(void **state)
{
    (void)state;
    struct gb_str s = {0};
    struct gb_str back = {0};
    for (int byte = 0; byte < 0x80; byte++) {
        for (size_t at = 0; at < 17; at++) {
            char text[17];
            memset(text, 'a', sizeof text);
            text[at] = (char)byte;
            struct gb_json_writer w;
            gb_str_clear(&s);
            gb_json_w_init(&w, &s);
            gb_json_w_string(&w, gb_bytes(text, sizeof text));
            struct gb_json_reader r;
            gb_json_init(&r, gb_str_bytes(&s));
            assert_int_equal(gb_json_next(&r), GB_JSON_STRING);
            gb_str_clear(&back);
            assert_true(gb_json_string(&r, &back, NULL));
            assert_true(gb_bytes_equal(gb_str_bytes(&back), gb_bytes(text, sizeof text)));
            assert_int_equal(gb_json_next(&r), GB_JSON_END);
        }
    }
    gb_str_deinit(&s);
    gb_str_deinit(&back);
}

static void a_full_buffer_fails_and_stays_failed(void **state)
{
    (void)state;
    for (size_t limit = 1; limit <= 28; limit++) {
        struct gb_str s = {.size_max = limit};
        struct gb_json_writer w;
        gb_json_w_init(&w, &s);
        gb_json_w_object(&w);
        gb_json_w_key(&w, "key");
        gb_json_w_string_c(&w, "a\nb\xff");
        gb_json_w_key_bytes(&w, gb_bytes_c("k"));
        gb_json_w_base64(&w, gb_bytes_c("f"));
        gb_json_w_object_end(&w);
        assert_int_equal(w.depth, 0);
        assert_true(s.size <= limit);
        if (s.failed != (limit < 28)) fail_msg("limit %zu, size %zu", limit, s.size);
        gb_str_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_nested_values),
        cmocka_unit_test(writes_doubles),
        cmocka_unit_test(doubles_are_exact_and_short),
        cmocka_unit_test(escapes),
        cmocka_unit_test(reader_gives_back_what_was_written),
        cmocka_unit_test(a_full_buffer_fails_and_stays_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
