#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void appends_build_a_terminated_text(void **state)
{
    (void)state;
    struct gb_str s = {0};
    gb_str_append_c(&s, "n=");
    gb_str_append_i64(&s, -12);
    gb_str_append_char(&s, ' ');
    gb_str_appendf(&s, "%s-%03d", "x", 7);
    gb_str_append(&s, gb_bytes(NULL, 0));
    assert_string_equal(s.data, "n=-12 x-007");
    assert_int_equal(s.size, 11);
    assert_false(gb_failed(gb_str_check(&s, "text")));
    gb_str_append(&s, gb_bytes("\0z", 2));
    assert_true(gb_bytes_equal(gb_str_bytes(&s), gb_bytes("n=-12 x-007\0z", 13)));
    gb_str_deinit(&s);
    assert_null(s.data);
    gb_str_deinit(&s);
}

static const struct number_row {
    int64_t value;
    const char *want;
} number_rows[] = {
    {0, "0"},
    {-1, "-1"},
    {9, "9"},
    {10, "10"},
    {INT64_MAX, "9223372036854775807"},
    {INT64_MIN, "-9223372036854775808"},
};

static void numbers(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (size_t i = 0; i < sizeof number_rows / sizeof number_rows[0]; i++) {
        gb_str_clear(&s);
        gb_str_append_i64(&s, number_rows[i].value);
        assert_string_equal(s.data, number_rows[i].want);
    }
    gb_str_clear(&s);
    gb_str_append_u64(&s, UINT64_MAX);
    assert_string_equal(s.data, "18446744073709551615");
    gb_str_deinit(&s);
}

static void grows_over_many_appends(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (size_t i = 0; i < 100000; i++) gb_str_append_char(&s, (char)('a' + i % 26));
    assert_int_equal(s.size, 100000);
    for (size_t i = 0; i < s.size; i++) assert_int_equal(s.data[i], 'a' + i % 26);
    assert_int_equal(s.data[s.size], 0);
    gb_str_deinit(&s);
}

static const struct limit_row {
    const char *name;
    size_t size_max, first, second;
    bool fails;
} limit_rows[] = {
    {"exactly the limit", 10, 4, 6, false},
    {"one more than the limit", 10, 4, 7, true},
    {"first already too large", 10, 11, 0, true},
    {"no overflow of the sum", 10, 4, SIZE_MAX, true},
    {"limit above the first growth", 1000, 999, 1, false},
    {"default limit", 0, 1, (size_t)64 << 20, true},
    {"a limit no memory has", SIZE_MAX, 0, 1, true},
};

static void limit_is_hard_and_failure_sticky(void **state)
{
    (void)state;
    static const char letters[1024];
    for (size_t i = 0; i < sizeof limit_rows / sizeof limit_rows[0]; i++) {
        const struct limit_row *row = &limit_rows[i];
        struct gb_str s = {.size_max = row->size_max};
        gb_str_append(&s, gb_bytes(letters, row->first));
        char *room = gb_str_reserve(&s, row->second);
        if ((room == NULL) != row->fails || s.failed != row->fails) fail_msg("%s", row->name);
        assert_true(s.size_max == 0 || s.size_max == SIZE_MAX || s.capacity <= s.size_max + 1);
        size_t size = s.size;
        gb_str_append_char(&s, 'x');
        gb_str_appendf(&s, "%d", 1);
        if (row->fails) {
            assert_int_equal(s.size, size);
            assert_int_equal(gb_str_check(&s, "request").code, GB_UNAVAILABLE);
            assert_null(gb_str_take(&s));
            assert_null(s.data);
            assert_false(s.failed);
        }
        gb_str_deinit(&s);
    }
}

static void clear_keeps_memory_and_forgets_failure(void **state)
{
    (void)state;
    struct gb_str s = {.size_max = 5};
    gb_str_append_c(&s, "12345");
    const char *data = s.data;
    gb_str_append_c(&s, "6");
    assert_true(s.failed);
    assert_string_equal(s.data, "12345");
    gb_str_clear(&s);
    assert_string_equal(s.data, "");
    gb_str_append_c(&s, "abc");
    assert_ptr_equal(s.data, data);
    assert_string_equal(s.data, "abc");
    gb_str_deinit(&s);
}

static void reserved_room_is_the_callers(void **state)
{
    (void)state;
    struct gb_str s = {0};
    gb_str_append_c(&s, "ab");
    char *room = gb_str_reserve(&s, 3);
    assert_non_null(room);
    static const char three[] = {'c', 'd', 'X'};
    memcpy(room, three, sizeof three);
    s.size += 2;
    char *text = gb_str_take(&s);
    assert_string_equal(text, "abcd");
    assert_null(s.data);
    free(text);
}

static void take_of_nothing_is_the_empty_string(void **state)
{
    (void)state;
    struct gb_str s = {0};
    char *text = gb_str_take(&s);
    assert_string_equal(text, "");
    free(text);
}

static void copies(void **state)
{
    (void)state;
    assert_null(gb_strdup(NULL));
    char *text = gb_strdup("abc");
    assert_string_equal(text, "abc");
    free(text);
    text = gb_bytes_dup(gb_bytes("a\0b", 3));
    assert_memory_equal(text, "a\0b", 4);
    free(text);
    text = gb_bytes_dup(gb_bytes(NULL, 0));
    assert_string_equal(text, "");
    free(text);
    text = gb_asprintf("%s/%u", "t", 9u);
    assert_string_equal(text, "t/9");
    free(text);
    assert_null(gb_bytes_dup(gb_bytes("a", SIZE_MAX)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_build_a_terminated_text),
        cmocka_unit_test(numbers),
        cmocka_unit_test(grows_over_many_appends),
        cmocka_unit_test(limit_is_hard_and_failure_sticky),
        cmocka_unit_test(clear_keeps_memory_and_forgets_failure),
        cmocka_unit_test(reserved_room_is_the_callers),
        cmocka_unit_test(take_of_nothing_is_the_empty_string),
        cmocka_unit_test(copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
