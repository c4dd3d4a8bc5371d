#include "domain/regex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct regex_row {
    const char *name, *pattern, *value;
    bool matches;
} rows[] = {
    {"somewhere inside", "b+", "abbbc", true},
    {"no anchor means none", "b", "abc", true},
    {"anchored", "^b", "abc", false},
    {"empty pattern", "", "abc", true},
    {"empty value", "^$", "", true},
    {"a character, not a byte", "^.$", "\xC3\xA4", true},
    {"not UTF-8", ".", "\xFF", false},
    {"case counts", "A", "a", false},
    {"exponential", "^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
    {"a limit of its own is only lower", "(*LIMIT_MATCH=4000000000)^(a+)+$",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
};

static void patterns_match(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_regex *r = NULL;
        struct gb_err err = gb_regex_new(gb_bytes_c(rows[i].pattern), &r);
        if (gb_failed(err)) fail_msg("%s: %s", rows[i].name, err.message);
        if (gb_regex_matches(r, gb_bytes_c(rows[i].value)) != rows[i].matches) {
            fail_msg("%s", rows[i].name);
        }
        gb_regex_free(r);
    }
    gb_regex_free(NULL);
}

static const struct bad_row {
    const char *pattern, *want;
} bad_rows[] = {
    {"a(b", "missing closing parenthesis at byte 3"},
    {"[a", "missing terminating ] for character class at byte 2"},
    {"*", "quantifier does not follow a repeatable item at byte 0"},
    {"a\\Cb", "using \\C is disabled by the application at byte 3"},
    {"((a{1,1000}){1,1000}){1,1000}", "regular expression is too large"},
};

static void malformed_patterns_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        struct gb_regex *r = NULL;
        struct gb_err err = gb_regex_new(gb_bytes_c(bad_rows[i].pattern), &r);
        assert_int_equal(err.code, GB_INVALID_CONFIG);
        assert_null(r);
        if (strstr(err.message, bad_rows[i].want) == NULL) {
            fail_msg("%s: %s", bad_rows[i].pattern, err.message);
        }
    }
}

static void long_patterns_and_values(void **state)
{
    (void)state;
    static uint8_t text[2 * GB_REGEX_VALUE_MAX];
    struct gb_regex *r = NULL;
    for (size_t i = 0; i < sizeof text; i += 2) {
        text[i] = 0xC3;
        text[i + 1] = 0xA4;
    }
    /* Characters count, not bytes. */
    size_t most = (size_t)2 * GB_REGEX_CHARACTERS_MAX;
    assert_int_equal(gb_regex_new(gb_bytes(text, most), &r).code, GB_OK);
    assert_true(gb_regex_matches(r, gb_bytes(text, GB_REGEX_VALUE_MAX)));
    assert_false(gb_regex_matches(r, gb_bytes(text, GB_REGEX_VALUE_MAX + 2)));
    gb_regex_free(r);
    r = NULL;
    struct gb_err err = gb_regex_new(gb_bytes(text, most + 2), &r);
    assert_string_equal(err.message, "it has 4097 characters, and at most 4096 are accepted");
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(malformed_patterns_are_refused),
        cmocka_unit_test(long_patterns_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
