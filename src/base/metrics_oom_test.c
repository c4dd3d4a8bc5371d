#include "base/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/oom.h"

enum { ALLOCATIONS_MAX = 16 };

static void new_fails_at_each_allocation_and_then_succeeds(void **state)
{
    (void)state;
    unsigned failures = 0;
    for (unsigned n = 1; n <= ALLOCATIONS_MAX; n++) {
        struct gb_metrics *m = NULL;
        gb_oom_fail_at(n);
        struct gb_err err = gb_metrics_new(&m);
        gb_oom_off();
        if (!gb_failed(err)) {
            assert_true(failures > 0);
            gb_metrics_free(m);
            return;
        }
        failures++;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(m);
    }
    fail_msg("gb_metrics_new never succeeded");
}

/* Growing the registry fails as well as making the series: 200 series need both. */
static void get_answers_the_shared_handle_and_recovers(void **state)
{
    (void)state;
    struct gb_metrics *m = NULL;
    assert_false(gb_failed(gb_metrics_new(&m)));
    gb_oom_fail_at(1);
    struct gb_metric *overflow = gb_metrics_get(m, GB_METRIC_COUNTER, "N", NULL, 0);
    gb_oom_off();
    assert_non_null(overflow);
    uint64_t dropped = 1;
    for (unsigned i = 1; i < 200; i++) {
        const char route[] = {(char)('A' + i / 26), (char)('a' + i % 26), '\0'};
        unsigned failures = 0;
        for (unsigned n = 1;; n++) {
            assert_true(n <= ALLOCATIONS_MAX);
            gb_oom_fail_at(n);
            struct gb_metric *c =
                gb_metrics_get(m, GB_METRIC_COUNTER, "N", GB_DIMS({"route_id", route}));
            gb_oom_off();
            if (c != overflow) {
                gb_metric_add(c, 1);
                break;
            }
            failures++;
            dropped++;
        }
        assert_true(failures > 0);
        assert_int_equal(gb_metrics_sum(m, "SeriesDropped"), dropped);
        assert_int_equal(gb_metrics_sum(m, "N"), i);
    }
    gb_metrics_free(m);
}

static void printing_fails_in_the_buffer_only(void **state)
{
    (void)state;
    struct gb_metrics *m = NULL;
    assert_false(gb_failed(gb_metrics_new(&m)));
    gb_metric_add(gb_metrics_get(m, GB_METRIC_COUNTER, "N", NULL, 0), 1);
    struct gb_str s = {0};
    gb_oom_fail_at(1);
    gb_metrics_print(m, &s);
    gb_oom_off();
    assert_true(s.failed);
    gb_str_clear(&s);
    gb_metrics_print(m, &s);
    assert_string_equal(s.data, "{\"metrics\":[{\"name\":\"N\",\"kind\":\"counter\","
                                "\"dimensions\":{},\"value\":1}]}");
    gb_str_deinit(&s);
    gb_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_fails_at_each_allocation_and_then_succeeds),
        cmocka_unit_test(get_answers_the_shared_handle_and_recovers),
        cmocka_unit_test(printing_fails_in_the_buffer_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
