#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct parse_row {
    const char *text;
    int64_t want;
} parse_rows[] = {
    {"0", 0},
    {"-0", 0},
    {"+0", 0},
    {"0s", 0},
    {"1ns", 1},
    {"1us", 1000},
    {"1ms", GB_MS},
    {"1s", GB_SEC},
    {"1m", GB_MINUTE},
    {"1h", GB_HOUR},
    {"+30s", 30 * GB_SEC},
    {"-30s", -30 * GB_SEC},
    {"1m30s", 90 * GB_SEC},
    {"2h0m0s", 2 * GB_HOUR},
    {"1s1ms1us1ns", 1001001001},
    {"30s1m", 90 * GB_SEC}, /* any order */
    {"1s1s", 2 * GB_SEC},   /* parts add up */
    {"1.5s", 1500 * GB_MS},
    {".5s", 500 * GB_MS},
    {"5.s", 5 * GB_SEC},
    {"0.1h", 6 * GB_MINUTE},
    {"0.000000001s", 1},
    {"1.9ns", 1}, /* parts of a nanosecond are dropped */
    {"0.3333333333333333333h", 1200 * GB_SEC - 1},
    {"0.1000000000000000000000009s", 100 * GB_MS},
    {"007s", 7 * GB_SEC},
    {"9223372036854775807ns", INT64_MAX},
    {"-9223372036854775808ns", INT64_MIN},
    {"2562047h47m16.854775807s", INT64_MAX},
    {"-2562047h47m16.854775808s", INT64_MIN},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof parse_rows / sizeof parse_rows[0]; i++) {
        const struct parse_row *row = &parse_rows[i];
        int64_t ns = 42;
        struct gb_err err = gb_duration_parse(gb_bytes_c(row->text), &ns);
        if (gb_failed(err)) fail_msg("%s: %s", row->text, err.message);
        if (ns != row->want) fail_msg("%s: got %lld", row->text, (long long)ns);
    }
}

static const struct refuse_row {
    const char *text;
    const char *want; /* part of the message */
} refuse_rows[] = {
    {"", "invalid duration \"\": write numbers with a unit"},
    {"30",
     "invalid duration \"30\": a number needs a unit (ns, us, ms, s, m, h), for example \"30s\""},
    {"-1.5", "a number needs a unit"},
    {"1m30", "a number needs a unit"},
    {"00", "a number needs a unit"},
    {"99999999999999999999999", "a number needs a unit"},
    {"s", "write numbers with a unit"},
    {"-", "write numbers with a unit"},
    {"+", "write numbers with a unit"},
    {".s", "write numbers with a unit"},
    {".", "write numbers with a unit"},
    {"--1s", "write numbers with a unit"},
    {"1s-1s", "write numbers with a unit"},
    {" 1s", "write numbers with a unit"},
    {"1s ", "write numbers with a unit"},
    {"1 s", "write numbers with a unit"},
    {"1d", "write numbers with a unit"},
    {"1S", "write numbers with a unit"},
    {"1sec", "write numbers with a unit"},
    {"1.2.3s", "write numbers with a unit"},
    {"1e3s", "write numbers with a unit"},
    {"0x1s", "write numbers with a unit"},
    {"off", "invalid duration \"off\""},
    {"9223372036854775808ns", "the longest is 2562047h47m16.854775807s"},
    {"-9223372036854775809ns", "the longest is"},
    {"2562047h47m16.854775808s", "the longest is"},
    {"9223372036854775807ns1ns", "the longest is"},
    {"99999999999999999999999h", "the longest is"},
    {"18446744073709551616ns", "the longest is"},
    {"a\nb", "invalid duration \"a?b\""},
    {"\xc3\xa9", "invalid duration \"\xc3\xa9\""},
    {"\xc3", "invalid duration \"?\""},
    {"\xc2\x84", "invalid duration \"??\""},
    {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9zzz",
     "invalid duration \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\""},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refuse_rows / sizeof refuse_rows[0]; i++) {
        const struct refuse_row *row = &refuse_rows[i];
        int64_t ns = 42;
        struct gb_err err = gb_duration_parse(gb_bytes_c(row->text), &ns);
        if (err.code != GB_INVALID_CONFIG) fail_msg("%s: accepted", row->text);
        if (strstr(err.message, row->want) == NULL) fail_msg("%s: %s", row->text, err.message);
        assert_int_equal(ns, 42);
    }
    int64_t ns = 42;
    assert_true(gb_failed(gb_duration_parse(gb_bytes("1\0s", 3), &ns)));
    assert_true(gb_failed(gb_duration_parse(gb_bytes("1s\0", 3), &ns)));
    assert_true(gb_failed(gb_duration_parse(gb_bytes(NULL, 0), &ns)));
}

static const struct print_row {
    int64_t ns;
    const char *want;
} print_rows[] = {
    {0, "0s"},
    {1, "1ns"},
    {999, "999ns"},
    {1000, "1us"},
    {1500, "1.5us"},
    {999999, "999.999us"},
    {GB_MS, "1ms"},
    {500 * GB_MS, "500ms"},
    {GB_SEC - 1, "999.999999ms"},
    {GB_SEC, "1s"},
    {1500 * GB_MS, "1.5s"},
    {GB_SEC + 1, "1.000000001s"},
    {90 * GB_SEC, "1m30s"},
    {GB_MINUTE, "1m0s"},
    {2 * GB_HOUR, "2h0m0s"},
    {GB_HOUR + 1, "1h0m0.000000001s"},
    {-90 * GB_SEC, "-1m30s"},
    {-1, "-1ns"},
    {INT64_MAX, "2562047h47m16.854775807s"},
    {INT64_MIN, "-2562047h47m16.854775808s"},
};

static void prints_and_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof print_rows / sizeof print_rows[0]; i++) {
        char text[GB_DURATION_TEXT_MAX];
        gb_duration_print(print_rows[i].ns, text);
        assert_string_equal(text, print_rows[i].want);
        int64_t ns = 42;
        assert_false(gb_failed(gb_duration_parse(gb_bytes_c(text), &ns)));
        assert_true(ns == print_rows[i].ns);
    }
}

static const struct arithmetic_row {
    const char *name;
    int64_t a, b;
    bool add_ok;
    int64_t sum; /* saturated when not ok */
    bool mul_ok;
    int64_t product;
} arithmetic_rows[] = {
    {"small", 2, -3, true, -1, true, -6},
    {"zero", 0, INT64_MIN, true, INT64_MIN, true, 0},
    {"both largest", INT64_MAX, INT64_MAX, false, INT64_MAX, false, INT64_MAX},
    {"both smallest", INT64_MIN, INT64_MIN, false, INT64_MIN, false, INT64_MAX},
    {"largest and one", INT64_MAX, 1, false, INT64_MAX, true, INT64_MAX},
    {"smallest and minus one", INT64_MIN, -1, false, INT64_MIN, false, INT64_MAX},
    {"of both signs", INT64_MAX, -2, true, INT64_MAX - 2, false, INT64_MIN},
    {"of both signs, turned", -2, INT64_MAX, true, INT64_MAX - 2, false, INT64_MIN},
};

static void arithmetic(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof arithmetic_rows / sizeof arithmetic_rows[0]; i++) {
        const struct arithmetic_row *row = &arithmetic_rows[i];
        int64_t sum = 42;
        int64_t product = 42;
        bool add_ok = gb_add_i64(row->a, row->b, &sum);
        bool mul_ok = gb_mul_i64(row->a, row->b, &product);
        if (add_ok != row->add_ok || sum != (add_ok ? row->sum : 42)) fail_msg("%s", row->name);
        if (mul_ok != row->mul_ok || product != (mul_ok ? row->product : 42)) {
            fail_msg("%s", row->name);
        }
        if (gb_add_sat_i64(row->a, row->b) != row->sum) fail_msg("%s", row->name);
        if (gb_mul_sat_i64(row->a, row->b) != row->product) fail_msg("%s", row->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses),
        cmocka_unit_test(refuses),
        cmocka_unit_test(prints_and_reads_back),
        cmocka_unit_test(arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
