#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int values[4000];

static void put(struct gb_map *m, const char *key, int *value)
{
    assert_false(gb_failed(gb_map_put(m, gb_bytes_c(key), value)));
}

static void put_get_replace_remove(void **state)
{
    (void)state;
    struct gb_map m = {0};
    assert_null(gb_map_get(&m, gb_bytes_c("a")));
    assert_false(gb_map_has(&m, gb_bytes_c("a")));
    assert_null(gb_map_remove(&m, gb_bytes_c("a")));

    put(&m, "a", &values[1]);
    put(&m, "b", &values[2]);
    put(&m, "a", &values[3]);
    assert_int_equal(m.count, 2);
    assert_ptr_equal(gb_map_get(&m, gb_bytes_c("a")), &values[3]);
    assert_ptr_equal(gb_map_remove(&m, gb_bytes_c("a")), &values[3]);
    assert_null(gb_map_remove(&m, gb_bytes_c("a")));
    assert_false(gb_map_has(&m, gb_bytes_c("a")));
    assert_ptr_equal(gb_map_get(&m, gb_bytes_c("b")), &values[2]);
    assert_int_equal(m.count, 1);
    gb_map_deinit(&m);
    gb_map_deinit(&m);
    assert_int_equal(m.count, 0);
}

static const struct key_row {
    const char *name;
    const char *key;
    size_t size;
} key_rows[] = {
    {"empty", "", 0},
    {"zero byte", "\0", 1},
    {"two zero bytes", "\0\0", 2},
    {"eight zero bytes", "\0\0\0\0\0\0\0\0", 8},
    {"nine zero bytes", "\0\0\0\0\0\0\0\0\0", 9},
    {"letter", "a", 1},
    {"letter and zero byte", "a\0", 2},
    {"zero byte and letter", "\0a", 2},
    {"eight letters", "abcdefgh", 8},
    {"other eighth letter", "abcdefgi", 8},
    {"words swapped", "ijklmnopabcdefgh", 16},
    {"words", "abcdefghijklmnop", 16},
};

static void keys_are_bytes(void **state)
{
    (void)state;
    enum { ROWS = sizeof key_rows / sizeof key_rows[0] };
    struct gb_map m = {0};
    for (size_t i = 0; i < ROWS; i++) {
        char key[16]; /* the map must not keep the caller's memory */
        memcpy(key, key_rows[i].key, key_rows[i].size);
        assert_false(gb_failed(gb_map_put(&m, gb_bytes(key, key_rows[i].size), &values[i])));
        memset(key, 'x', sizeof key);
    }
    assert_int_equal(m.count, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        void *got = gb_map_get(&m, gb_bytes(key_rows[i].key, key_rows[i].size));
        if (got != &values[i]) fail_msg("%s", key_rows[i].name);
    }
    gb_map_deinit(&m);
}

static void null_value_is_present(void **state)
{
    (void)state;
    struct gb_map m = {0};
    put(&m, "set", NULL);
    assert_true(gb_map_has(&m, gb_bytes_c("set")));
    assert_null(gb_map_get(&m, gb_bytes_c("set")));
    gb_map_deinit(&m);
}

static void iterates_in_insertion_order(void **state)
{
    (void)state;
    struct gb_map m = {0};
    char key[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        put(&m, key, &values[i]);
    }
    for (int i = 0; i < 1000; i += 3) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        assert_ptr_equal(gb_map_remove(&m, gb_bytes_c(key)), &values[i]);
    }
    put(&m, "key-0", &values[0]); /* comes again, at the end */
    put(&m, "key-1", &values[1]); /* replaced in its place */

    size_t cursor = 0;
    struct gb_bytes got;
    void *value;
    for (int i = 1; i < 1000; i++) {
        if (i % 3 == 0) continue;
        assert_true(gb_map_next(&m, &cursor, &got, &value));
        assert_ptr_equal(value, &values[i]);
        (void)snprintf(key, sizeof key, "key-%d", i);
        assert_true(gb_bytes_equal_c(got, key));
        assert_int_equal(got.data[got.size], 0);
    }
    assert_true(gb_map_next(&m, &cursor, &got, &value));
    assert_ptr_equal(value, &values[0]);
    assert_false(gb_map_next(&m, &cursor, &got, &value));
    gb_map_deinit(&m);
}

static void current_entry_may_be_removed(void **state)
{
    (void)state;
    struct gb_map m = {0};
    char name[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        put(&m, name, &values[i]);
    }
    size_t cursor = 0;
    int seen = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&m, &cursor, &key, &value)) {
        assert_ptr_equal(value, &values[seen]);
        if (seen % 2 == 0) assert_ptr_equal(gb_map_remove(&m, key), value);
        seen++;
    }
    assert_int_equal(seen, 100);
    assert_int_equal(m.count, 50);
    gb_map_deinit(&m);
}

static void coming_and_going_keys_do_not_grow_it(void **state)
{
    (void)state;
    struct gb_map m = {0};
    char key[16];
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        put(&m, key, &values[0]);
        (void)snprintf(key, sizeof key, "%d", i - 4);
        if (i >= 4) assert_ptr_equal(gb_map_remove(&m, gb_bytes_c(key)), &values[0]);
    }
    assert_int_equal(m.count, 4);
    assert_true(m.capacity <= 16);
    gb_map_deinit(&m);
}

/* Random puts and removes beside a plain array of what should be there. */
static void agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    struct gb_map m = {0};
    bool there[KEYS] = {false};
    size_t count = 0;
    uint32_t random = 12345;
    for (int step = 0; step < 200000; step++) {
        random = random * 1664525 + 1013904223;
        unsigned k = (random >> 8) % KEYS;
        bool add = (random >> 28) < (step / 20000 % 2 == 0 ? 10 : 6); /* growing, then shrinking */
        char key[40];
        (void)snprintf(key, sizeof key, "sensors/%u/temperature", k);
        if (add) {
            put(&m, key, &values[k]);
            count += !there[k];
        } else {
            assert_ptr_equal(gb_map_remove(&m, gb_bytes_c(key)), there[k] ? &values[k] : NULL);
            count -= there[k];
        }
        there[k] = add;
        assert_int_equal(m.count, count);
        assert_int_equal(gb_map_has(&m, gb_bytes_c(key)), add);
    }
    size_t cursor = 0, seen = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&m, &cursor, &key, &value)) {
        assert_true(there[(int *)value - values]);
        seen++;
    }
    assert_int_equal(seen, count);
    gb_map_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_get_replace_remove),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(null_value_is_present),
        cmocka_unit_test(iterates_in_insertion_order),
        cmocka_unit_test(current_entry_may_be_removed),
        cmocka_unit_test(coming_and_going_keys_do_not_grow_it),
        cmocka_unit_test(agrees_with_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
