#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define YEAR_0000_MS INT64_C(-62167219200000)
#define YEAR_9999_MS INT64_C(253402300799999)

static const struct print_row {
    int64_t epoch_ms;
    const char *want;
    const char *basic;
} print_rows[] = {
    {0, "1970-01-01T00:00:00.000Z", "19700101T000000Z"},
    {INT64_C(1796119200000), "2026-12-01T10:00:00.000Z", "20261201T100000Z"},
    {INT64_C(1798761599999), "2026-12-31T23:59:59.999Z", "20261231T235959Z"},
    {INT64_C(951868799007), "2000-02-29T23:59:59.007Z", "20000229T235959Z"},
    {INT64_C(1709164800000), "2024-02-29T00:00:00.000Z", "20240229T000000Z"},
    {INT64_C(4107542400000), "2100-03-01T00:00:00.000Z", "21000301T000000Z"},
    {INT64_C(-2203934400000), "1900-02-28T12:00:00.000Z", "19000228T120000Z"},
    {-1, "1969-12-31T23:59:59.999Z", "19691231T235959Z"},
    {-1000, "1969-12-31T23:59:59.000Z", "19691231T235959Z"},
    {INT64_C(-62135596800000), "0001-01-01T00:00:00.000Z", "00010101T000000Z"},
    {YEAR_0000_MS, "0000-01-01T00:00:00.000Z", "00000101T000000Z"},
    {YEAR_9999_MS, "9999-12-31T23:59:59.999Z", "99991231T235959Z"},
};

static void prints_and_reads_back(void **state)
{
    (void)state;
    char text[GB_TIME_TEXT_MAX];
    for (size_t i = 0; i < sizeof print_rows / sizeof print_rows[0]; i++) {
        const struct print_row *row = &print_rows[i];
        gb_time_print(row->epoch_ms, text);
        assert_string_equal(text, row->want);
        int64_t back = 42;
        if (!gb_time_parse(gb_bytes_c(text), &back)) fail_msg("%s: refused", text);
        if (back != row->epoch_ms) fail_msg("%s: got %lld", text, (long long)back);
        gb_time_print_basic(row->epoch_ms, text);
        assert_string_equal(text, row->basic);
    }
}

static void prints_what_no_calendar_has_as_the_nearest(void **state)
{
    (void)state;
    char text[GB_TIME_TEXT_MAX];
    gb_time_print(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
    gb_time_print(YEAR_9999_MS + 1, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    gb_time_print_basic(INT64_MAX, text);
    assert_string_equal(text, "99991231T235959Z");
}

/* Every day of 800 years: the two directions agree and days follow each other. */
static void days_are_consecutive(void **state)
{
    (void)state;
    char text[GB_TIME_TEXT_MAX];
    char before[GB_TIME_TEXT_MAX] = "";
    for (int64_t day = -150000; day < 150000; day++) {
        int64_t back = 0;
        gb_time_print(day * 86400000, text);
        assert_true(gb_time_parse(gb_bytes_c(text), &back));
        assert_true(back == day * 86400000);
        assert_true(strcmp(before, text) < 0);
        memcpy(before, text, sizeof before);
    }
}

static const struct parse_row {
    const char *text;
    int64_t want;
} parse_rows[] = {
    {"2026-12-01T10:00:00Z", INT64_C(1796119200000)},
    {"2026-12-01t10:00:00z", INT64_C(1796119200000)},
    {"2026-12-01T10:00:00.5Z", INT64_C(1796119200500)},
    {"2026-12-01T10:00:00.0009Z", INT64_C(1796119200000)},
    {"2026-12-01T10:00:00.123456789Z", INT64_C(1796119200123)},
    {"2026-12-01T10:00:00+00:00", INT64_C(1796119200000)},
    {"2026-12-01T10:00:00-00:00", INT64_C(1796119200000)},
    {"2026-12-01T11:30:00+01:30", INT64_C(1796119200000)},
    {"2026-11-30T22:15:00.001-11:45", INT64_C(1796119200001)},
    {"2026-12-02T09:59:00+23:59", INT64_C(1796119200000)},
    {"2026-12-31T23:59:60Z", INT64_C(1798761600000)}, /* leap second */
    {"1969-12-31T23:59:59.25Z", -750},
};

static void parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof parse_rows / sizeof parse_rows[0]; i++) {
        int64_t ms = 42;
        if (!gb_time_parse(gb_bytes_c(parse_rows[i].text), &ms)) {
            fail_msg("%s: refused", parse_rows[i].text);
        }
        if (ms != parse_rows[i].want) fail_msg("%s: %lld", parse_rows[i].text, (long long)ms);
    }
}

static const char *const refused[] = {
    "",
    "2026",
    "2026-12-01",
    "2026-12-01T10:00:00",
    "2026-12-01T10:00Z",
    "2026-12-01 10:00:00Z",
    "2026-12-01T10:00:00.Z",
    "2026-12-01T10:00:00,5Z",
    "2026-12-01T10:00:00Zx",
    "2026-12-01T10:00:00ZZ",
    " 2026-12-01T10:00:00Z",
    "2026-12-01T10:00:00+0100",
    "2026-12-01T10:00:00+1:00",
    "2026-12-01T10:00:00+24:00",
    "2026-12-01T10:00:00+01:60",
    "2026-12-01T24:00:00Z",
    "2026-12-01T10:60:00Z",
    "2026-12-01T10:00:61Z",
    "2026-00-01T10:00:00Z",
    "2026-13-01T10:00:00Z",
    "2026-12-00T10:00:00Z",
    "2026-12-32T10:00:00Z",
    "2026-11-31T10:00:00Z",
    "2026-02-29T10:00:00Z",
    "2100-02-29T10:00:00Z",
    "02026-12-01T10:00:00Z",
    "-026-12-01T10:00:00Z",
    "2026-1-01T10:00:00Z",
    "2026-12-01T1 :00:00Z",
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int64_t ms = 42;
        if (gb_time_parse(gb_bytes_c(refused[i]), &ms)) fail_msg("%s: accepted", refused[i]);
        assert_int_equal(ms, 42);
    }
    int64_t ms = 42;
    assert_false(gb_time_parse(gb_bytes(NULL, 0), &ms));
    assert_false(gb_time_parse(gb_bytes("2026-12-01T10:00:00\0", 20), &ms));
}

static const struct http_row {
    const char *text;
    bool ok;
    int64_t want;
} http_rows[] = {
    {"Tue, 01 Dec 2026 10:00:00 GMT", true, INT64_C(1796119200000)},
    {"Sun, 06 Nov 1994 08:49:37 GMT", true, INT64_C(784111777000)},
    {"Thu, 01 Jan 1970 00:00:00 GMT", true, 0},
    {"Sunday, 06-Nov-94 08:49:37 GMT", false, 42}, /* obsolete forms, not sent any more */
    {"Sun Nov  6 08:49:37 1994", false, 42},
    {"Tue, 01 Dec 2026 10:00:00 UTC", false, 42},
    {"Tue, 01 Dec 2026 10:00:00 GMT ", false, 42},
    {"Tue, 01 Dec 2026 10:00:00", false, 42},
    {"Tue, 1 Dec 2026 10:00:00 GMT", false, 42},
    {"Tue, 01 dec 2026 10:00:00 GMT", false, 42},
    {"Xxx, 01 Dec 2026 10:00:00 GMT", false, 42},
    {"Tue 01 Dec 2026 10:00:00 GMT", false, 42},
    {"Tue, 31 Nov 2026 10:00:00 GMT", false, 42},
    {"Tue, 01 Dec 2026 25:00:00 GMT", false, 42},
    {"Tu", false, 42},
    {"", false, 42},
};

static void http_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof http_rows / sizeof http_rows[0]; i++) {
        const struct http_row *row = &http_rows[i];
        int64_t ms = 42;
        bool ok = gb_http_date_parse(gb_bytes_c(row->text), &ms);
        if (ok != row->ok || ms != row->want) fail_msg("%s: %lld", row->text, (long long)ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_and_reads_back),
        cmocka_unit_test(prints_what_no_calendar_has_as_the_nearest),
        cmocka_unit_test(days_are_consecutive),
        cmocka_unit_test(parses),
        cmocka_unit_test(refuses),
        cmocka_unit_test(http_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
