#include "app/seed_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

enum { SEEDS_MAX = 2 };

/* `want` of each seed: session|filter|filter; an error instead: part of its message. */
static const struct seed_row {
    const char *name;
    const char *values[SEEDS_MAX];
    enum gb_code code;
    const char *want[SEEDS_MAX];
} rows[] = {
    {"empty baseline", {"s1"}, GB_OK, {"s1"}},
    {"one filter", {"s1=a/b"}, GB_OK, {"s1|a/b"}},
    {"filters of every kind", {"s1=a/+,#,$share/g/a"}, GB_OK, {"s1|a/+|#|$share/g/a"}},
    {"equals sign in a filter", {"s1=a=b"}, GB_OK, {"s1|a=b"}},
    {"two sessions", {"s1=a", "s2"}, GB_OK, {"s1|a", "s2"}},
    {"empty id", {"=a"}, GB_INVALID_CONFIG, {"\"=a\" names no session"}},
    {"empty value", {""}, GB_INVALID_CONFIG, {"names no session"}},
    {"no filter after =", {"s1="}, GB_INVALID_CONFIG, {"\"\" is not a filter"}},
    {"empty filter between", {"s1=a,,b"}, GB_INVALID_CONFIG, {"session s1: \"\" is not"}},
    {"empty filter at the end", {"s1=a,"}, GB_INVALID_CONFIG, {"session s1: \"\" is not"}},
    {"illegal filter", {"s1=a/#/b"}, GB_INVALID_CONFIG, {"\"a/#/b\" is not a filter"}},
    {"named twice", {"s1=a", "s1"}, GB_INVALID_CONFIG, {"session s1 is named twice"}},
    {"second one is wrong", {"s1", "=x"}, GB_INVALID_CONFIG, {"\"=x\" names no session"}},
};

static void check_seed(const struct gb_seed *s, const char *want)
{
    struct gb_str text = {0};
    gb_str_append_c(&text, s->session_id);
    for (size_t i = 0; i < s->count; i++) {
        gb_str_append_char(&text, '|');
        gb_str_append_c(&text, s->filters[i]);
    }
    assert_false(text.failed);
    assert_string_equal(text.data, want);
    gb_str_deinit(&text);
}

static void values_of_the_flag(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct seed_row *row = &rows[i];
        print_message("  %s\n", row->name);
        struct gb_options o = {.seed_count = row->values[1] == NULL ? 1 : 2};
        for (size_t k = 0; k < o.seed_count; k++) o.seeds[k] = row->values[k];
        struct gb_seed *seeds = calloc(o.seed_count, sizeof *seeds);
        assert_non_null(seeds);
        struct gb_err err = gb_seeds_read(&o, seeds);
        assert_int_equal(err.code, row->code);
        if (row->code == GB_OK) {
            for (size_t k = 0; k < o.seed_count; k++) check_seed(&seeds[k], row->want[k]);
        } else {
            assert_non_null(strstr(err.message, row->want[0]));
        }
        for (size_t k = 0; k < o.seed_count; k++) gb_seed_deinit(&seeds[k]);
        free(seeds);
    }
}

static void the_number_of_filters_is_bounded(void **state)
{
    (void)state;
    char value[2 * (GB_SEED_FILTERS_MAX + 1) + 3] = "s=";
    for (size_t count = GB_SEED_FILTERS_MAX; count <= GB_SEED_FILTERS_MAX + 1; count++) {
        for (size_t i = 0; i < count; i++) memcpy(value + 2 + 2 * i, "a,", 2);
        value[2 * count + 1] = '\0';
        const struct gb_options o = {.seeds = {value}, .seed_count = 1};
        struct gb_seed seed = {0};
        struct gb_err err = gb_seeds_read(&o, &seed);
        assert_int_equal(err.code, count > GB_SEED_FILTERS_MAX ? GB_INVALID_CONFIG : GB_OK);
        assert_int_equal(seed.count, GB_SEED_FILTERS_MAX);
        gb_seed_deinit(&seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_flag),
        cmocka_unit_test(the_number_of_filters_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
