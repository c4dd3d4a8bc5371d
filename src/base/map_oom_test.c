#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/oom.h"

enum { KEYS = 20 };

static void check_holds(const struct gb_map *m, int *values, int count)
{
    struct gb_bytes key;
    void *value;
    size_t cursor = 0;
    assert_int_equal(m->count, count);
    for (int i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        assert_ptr_equal(gb_map_get(m, gb_bytes_c(name)), &values[i]);
        assert_true(gb_map_next(m, &cursor, &key, &value));
        assert_ptr_equal(value, &values[i]);
    }
    assert_false(gb_map_next(m, &cursor, &key, &value));
}

/* Each put is repeated with its n-th allocation failing until it succeeds; the map stays as it was.
 */
static void failed_put_leaves_the_map_unchanged(void **state)
{
    (void)state;
    static int values[KEYS];
    struct gb_map m = {0};
    unsigned failures = 0;
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        struct gb_err err = gb_err(GB_UNAVAILABLE, "not yet tried");
        for (unsigned n = 1; gb_failed(err); n++) {
            assert_true(n < 10);
            gb_oom_fail_at(n);
            err = gb_map_put(&m, gb_bytes_c(name), &values[i]);
            gb_oom_off();
            if (!gb_failed(err)) break;
            failures++;
            assert_int_equal(err.code, GB_UNAVAILABLE);
            check_holds(&m, values, i);
        }
        check_holds(&m, values, i + 1);
    }
    /* A key each, and slots and entries of three sizes. */
    assert_int_equal(failures, KEYS + 3 * 2);
    gb_map_deinit(&m);
}

static void replacing_and_removing_need_no_memory(void **state)
{
    (void)state;
    static int values[2];
    struct gb_map m = {0};
    assert_false(gb_failed(gb_map_put(&m, gb_bytes_c("k"), &values[0])));
    gb_oom_fail_at(1);
    struct gb_err err = gb_map_put(&m, gb_bytes_c("k"), &values[1]);
    void *removed = gb_map_remove(&m, gb_bytes_c("k"));
    gb_oom_off();
    assert_false(gb_failed(err));
    assert_ptr_equal(removed, &values[1]);
    gb_map_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_put_leaves_the_map_unchanged),
        cmocka_unit_test(replacing_and_removing_need_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
