#include "blueprint/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct print_row {
    const char *name;
    enum gb_severity severity;
    struct gb_finding_at at;
    const char *text, *want;
} print_rows[] = {
    {"all parts",
     GB_FINDING_ERROR,
     {0, 3, 7, "routes[0]", "ingest", GB_RULE_NONE},
     "is wrong",
     "f:3:7: error: routes[0] (ingest): is wrong\n"},
    {"no id",
     GB_FINDING_WARNING,
     {0, 3, 7, "routes[0]", NULL, GB_RULE_NONE},
     "is odd",
     "f:3:7: warning: routes[0]: is odd\n"},
    {"an overlay",
     GB_FINDING_ERROR,
     {1, 3, 7, "routes[0]", "ingest", GB_RULE_NONE},
     "is wrong",
     "overlay:3:7: error: routes[0] (ingest): is wrong\n"},
    {"single block",
     GB_FINDING_ERROR,
     {0, 1, 1, NULL, NULL, GB_RULE_NONE},
     "bridge.id is required",
     "f:1:1: error: bridge.id is required\n"},
    {"whole document",
     GB_FINDING_ERROR,
     {0, 0, 0, "", "", GB_RULE_NONE},
     "too large",
     "f: error: too large\n"},
    {"one line",
     GB_FINDING_ERROR,
     {0, 1, 2, "a", "i\nd", GB_RULE_NONE},
     "x\r\n\ty\x7f\xC2\x85z",
     "f:1:2: error: a (i?d): x???y??z\n"},
    {"cut character",
     GB_FINDING_ERROR,
     {0, 1, 2, "", "", GB_RULE_NONE},
     "\xC3\xA4\xE2\x82 \xF0\x9F\x98",
     "f:1:2: error: \xC3\xA4 \n"},
    {"whole characters",
     GB_FINDING_ERROR,
     {0, 1, 2, "", "", GB_RULE_NONE},
     "\xE2\x82\xAC\xF0\x9F\x98\x80",
     "f:1:2: error: \xE2\x82\xAC\xF0\x9F\x98\x80\n"},
};

static void printed_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof print_rows / sizeof print_rows[0]; i++) {
        const struct print_row *row = &print_rows[i];
        struct gb_findings f = {0};
        struct gb_str s = {0};
        gb_findings_add(&f, row->severity, row->at, "%s", row->text);
        gb_findings_print(&f, (const char *const[]){"f", "overlay"}, &s);
        if (strcmp(s.data, row->want) != 0) fail_msg("%s: %s", row->name, s.data);
        gb_str_deinit(&s);
        gb_findings_deinit(&f);
    }
}

static void sorting_keeps_the_order_of_one_place(void **state)
{
    (void)state;
    static const struct {
        uint32_t layer, line, column;
    } at[] = {{0, 2, 1}, {0, 1, 9}, {0, 1, 2}, {0, 2, 1},
              {0, 0, 0}, {0, 2, 1}, {1, 1, 1}, {0, 3, 1}};
    struct gb_findings f = {0};
    struct gb_str s = {0};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        gb_findings_add(&f, GB_FINDING_WARNING,
                        (struct gb_finding_at){
                            .layer = at[i].layer, .line = at[i].line, .column = at[i].column},
                        "%zu", i);
    }
    gb_findings_sort(&f);
    for (size_t i = 0; i < f.count; i++) gb_str_append_c(&s, f.items[i].text);
    assert_string_equal(s.data, "42103576");
    assert_false(gb_failed(gb_findings_check(&f)));
    gb_str_deinit(&s);
    gb_findings_deinit(&f);
}

static void verdicts(void **state)
{
    (void)state;
    struct gb_findings f = {0};
    assert_int_equal(gb_findings_check(&f).code, GB_OK);
    gb_findings_add(&f, GB_FINDING_ERROR, (struct gb_finding_at){0}, "x");
    assert_string_equal(gb_findings_check(&f).message, "config validation failed: 1 error");
    f.failed = true;
    assert_int_equal(gb_findings_check(&f).code, GB_UNAVAILABLE);
    gb_findings_deinit(&f);
    assert_int_equal(f.count, 0);
}

static void errors_are_kept_behind_any_number_of_warnings(void **state)
{
    (void)state;
    struct gb_findings f = {0};
    struct gb_str s = {0};
    for (int i = 0; i < 200; i++) {
        assert_false(gb_findings_skip(&f, GB_FINDING_WARNING));
        gb_findings_add(&f, GB_FINDING_WARNING, (struct gb_finding_at){.line = 1}, "w");
    }
    assert_int_equal(f.count, 200);
    assert_true(gb_findings_skip(&f, GB_FINDING_WARNING));
    gb_findings_add(&f, GB_FINDING_WARNING, (struct gb_finding_at){0}, "w");
    assert_int_equal(f.count, 200);
    assert_int_equal(f.warning_count, 202);
    gb_findings_add(&f, GB_FINDING_ERROR, (struct gb_finding_at){.line = 2}, "e");
    assert_int_equal(f.count, 201);
    assert_string_equal(f.items[200].text, "e");
    gb_findings_print(&f, (const char *const[]){"f"}, &s);
    assert_non_null(strstr(s.data, "2 further findings are not shown"));
    gb_str_deinit(&s);
    gb_findings_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printed_forms),
        cmocka_unit_test(sorting_keeps_the_order_of_one_place),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(errors_are_kept_behind_any_number_of_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
