#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/oom.h"

static char *build_by_appends(void)
{
    struct gb_str s = {0};
    for (int i = 0; i < 100; i++) gb_str_appendf(&s, "%d,", i);
    gb_str_append_c(&s, "end");
    bool failed = gb_failed(gb_str_check(&s, "numbers"));
    char *text = gb_str_take(&s);
    assert_int_equal(text == NULL, failed);
    assert_null(s.data);
    return text;
}

static char *build_by_strdup(void)
{
    return gb_strdup("text");
}

static char *build_by_bytes_dup(void)
{
    return gb_bytes_dup(gb_bytes("text", 2));
}

static char *build_by_asprintf(void)
{
    return gb_asprintf("%s-%d", "text", 1);
}

static char *build_the_empty_string(void)
{
    struct gb_str s = {0};
    return gb_str_take(&s);
}

static const struct ladder_row {
    const char *name;
    char *(*build)(void);
    unsigned allocations; /* 0: more than one */
} ladder_rows[] = {
    {"appends", build_by_appends, 0},
    {"strdup", build_by_strdup, 1},
    {"bytes_dup", build_by_bytes_dup, 1},
    {"asprintf", build_by_asprintf, 1},
    {"empty string", build_the_empty_string, 1},
};

/* Fails the n-th allocation until it succeeds: each failure gives NULL and leaks nothing. */
static void every_failed_allocation_gives_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ladder_rows / sizeof ladder_rows[0]; i++) {
        const struct ladder_row *row = &ladder_rows[i];
        unsigned failed = 0;
        char *text = NULL;
        while (text == NULL) {
            assert_true(failed < 50);
            gb_oom_fail_at(failed + 1);
            text = row->build();
            gb_oom_off();
            if (text == NULL) failed++;
        }
        free(text);
        if (row->allocations == 0 ? failed < 2 : failed != row->allocations) {
            fail_msg("%s: %u failures", row->name, failed);
        }
    }
}

static void failed_growth_keeps_what_was_there(void **state)
{
    (void)state;
    struct gb_str s = {0};
    gb_str_append_c(&s, "kept");
    gb_oom_fail_at(1);
    assert_null(gb_str_reserve(&s, 1000));
    gb_oom_off();
    assert_true(s.failed);
    assert_string_equal(s.data, "kept");
    gb_str_append_c(&s, "!");
    assert_string_equal(s.data, "kept");
    gb_str_clear(&s);
    gb_str_append_c(&s, "again");
    assert_string_equal(s.data, "again");
    gb_str_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_gives_null),
        cmocka_unit_test(failed_growth_keeps_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
