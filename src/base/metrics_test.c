#include "base/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct gb_metrics *new_registry(void)
{
    struct gb_metrics *m = NULL;
    assert_false(gb_failed(gb_metrics_new(&m)));
    return m;
}

static struct gb_metric *counter(struct gb_metrics *m, const char *name, const char *route)
{
    return gb_metrics_get(m, GB_METRIC_COUNTER, name, GB_DIMS({"route_id", route}));
}

static void same_name_and_dimensions_are_one_series(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    char route[] = "r1";
    struct gb_metric *a = counter(m, "MessagesSent", route);
    struct gb_metric *b = counter(m, "MessagesSent", "r2");
    struct gb_metric *none = gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent", NULL, 0);
    struct gb_metric *more = gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent",
                                            GB_DIMS({"route_id", "r1"}, {"reason", "x"}));
    struct gb_metric *other =
        gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent", GB_DIMS({"session_id", "r1"}));
    struct gb_metric *name = counter(m, "MessagesReceived", "r1");
    const struct gb_metric *all[] = {a, b, none, more, other, name};
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < i; j++) assert_ptr_not_equal(all[i], all[j]);
    }
    route[0] = 'x'; /* the registry has its own copy */
    assert_ptr_equal(counter(m, "MessagesSent", "r1"), a);
    assert_ptr_equal(counter(m, "MessagesSent", ""), none);
    assert_ptr_equal(counter(m, "MessagesSent", NULL), none);
    assert_ptr_equal(gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent",
                                    GB_DIMS({"route_id", "r1"}, {"x", NULL}, {"reason", "x"})),
                     more);
    gb_metrics_free(m);
}

static void counters_add_up_over_their_name(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    assert_int_equal(gb_metrics_sum(m, "MessagesSent"), 0);
    gb_metric_add(counter(m, "MessagesSent", "r1"), 2);
    gb_metric_add(counter(m, "MessagesSent", "r2"), 3);
    gb_metric_add(counter(m, "MessagesSent", NULL), 5);
    gb_metric_add(counter(m, "MessagesSen", "r1"), 100);
    gb_metric_add(counter(m, "MessagesSentX", "r1"), 100);
    assert_int_equal(gb_metrics_sum(m, "MessagesSent"), 10);
    assert_int_equal(gb_metrics_sum(m, "Absent"), 0);
    gb_metrics_free(m);
}

static void gauges_hold_the_last_value_or_none(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    struct gb_metric *g = gb_metrics_get(m, GB_METRIC_GAUGE, "DLQDepth", NULL, 0);
    assert_false(g->set);
    gb_metric_set(g, 3);
    gb_metric_set(g, 2);
    assert_true(g->set);
    assert_true(g->last > 1.9 && g->last < 2.1);
    gb_metric_clear(g);
    assert_false(g->set);
    gb_metrics_free(m);
}

static void timers_keep_a_statistic_set(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    struct gb_metric *t = gb_metrics_get(m, GB_METRIC_TIMER, "DLQWriteHold", NULL, 0);
    gb_metric_time(t, 2500000);
    gb_metric_time(t, 500000);
    gb_metric_time(t, 4000000);
    struct gb_str s = {0};
    gb_metrics_print(m, &s);
    assert_string_equal(s.data, "{\"metrics\":[{\"name\":\"DLQWriteHold\",\"kind\":\"timer\","
                                "\"dimensions\":{},\"count\":3,\"sum\":7,\"min\":0.5,\"max\":4}]}");
    gb_metric_time(t, -1); /* clocks of two machines */
    assert_true(t->min >= 0 && t->min <= 0);
    assert_int_equal(t->count, 4);
    gb_str_deinit(&s);
    gb_metrics_free(m);
}

static void collect(void *arg, enum gb_metric_kind kind, const char *name,
                    const struct gb_dimension *dimensions, size_t count,
                    const struct gb_metric *metric)
{
    struct gb_str *out = arg;
    gb_str_appendf(out, "%d %s", (int)kind, name);
    for (size_t i = 0; i < count; i++) {
        gb_str_appendf(out, " %s=%s", dimensions[i].name, dimensions[i].value);
    }
    gb_str_appendf(out, " %llu\n", (unsigned long long)metric->count);
}

static void visits_in_order(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    gb_metric_add(counter(m, "B", "r2"), 1);
    gb_metric_add(counter(m, "B", "r10"), 2);
    (void)gb_metrics_get(m, GB_METRIC_COUNTER, "B", GB_DIMS({"route_id", "r2"}, {"a", "b"}));
    (void)gb_metrics_get(m, GB_METRIC_COUNTER, "B", NULL, 0);
    (void)gb_metrics_get(m, GB_METRIC_COUNTER, "B", GB_DIMS({"a", "z"}));
    (void)gb_metrics_get(m, GB_METRIC_TIMER, "C", NULL, 0);
    (void)gb_metrics_get(m, GB_METRIC_GAUGE, "A", NULL, 0);
    struct gb_str s = {0};
    gb_metrics_visit(m, collect, &s);
    assert_string_equal(s.data, "1 A 0\n"
                                "0 B 0\n"
                                "0 B a=z 0\n"
                                "0 B route_id=r10 2\n"
                                "0 B route_id=r2 1\n"
                                "0 B route_id=r2 a=b 0\n"
                                "2 C 0\n");
    gb_str_deinit(&s);
    gb_metrics_free(m);
}

static void prints_json(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    struct gb_str s = {0};
    gb_metrics_print(m, &s);
    assert_string_equal(s.data, "{\"metrics\":[]}");
    gb_metric_add(
        gb_metrics_get(m, GB_METRIC_COUNTER, "B", GB_DIMS({"route_id", "a\"b"}, {"reason", "c"})),
        UINT64_MAX);
    gb_metric_set(gb_metrics_get(m, GB_METRIC_GAUGE, "A", NULL, 0), 0.1);
    gb_metric_set(gb_metrics_get(m, GB_METRIC_GAUGE, "Infinite", NULL, 0), (double)INFINITY);
    (void)gb_metrics_get(m, GB_METRIC_GAUGE, "Unset", NULL, 0);
    gb_str_clear(&s);
    gb_metrics_print(m, &s);
    assert_string_equal(
        s.data, "{\"metrics\":["
                "{\"name\":\"A\",\"kind\":\"gauge\",\"dimensions\":{},\"value\":0.1},"
                "{\"name\":\"B\",\"kind\":\"counter\",\"dimensions\":"
                "{\"route_id\":\"a\\\"b\",\"reason\":\"c\"},\"value\":18446744073709551615},"
                "{\"name\":\"Infinite\",\"kind\":\"gauge\",\"dimensions\":{},\"value\":null}]}");
    gb_str_deinit(&s);
    gb_metrics_free(m);
}

static void series_past_the_limit_share_one_handle(void **state)
{
    (void)state;
    struct gb_metrics *m = new_registry();
    char route[16];
    struct gb_metric *first = counter(m, "N", "first");
    /* SeriesDropped and the first one are in. */
    for (int i = 2; i < GB_METRICS_SERIES_MAX; i++) {
        (void)snprintf(route, sizeof route, "%d", i);
        (void)counter(m, "N", route);
    }
    assert_int_equal(gb_metrics_sum(m, "SeriesDropped"), 0);
    struct gb_metric *over = counter(m, "N", "over");
    assert_ptr_equal(counter(m, "N", "over too"), over);
    assert_ptr_equal(gb_metrics_get(m, GB_METRIC_GAUGE, "G", NULL, 0), over);
    gb_metric_add(over, 7);
    assert_int_equal(gb_metrics_sum(m, "SeriesDropped"), 3);
    assert_int_equal(gb_metrics_sum(m, "N"), 0); /* what was written to it is lost */
    assert_ptr_equal(counter(m, "N", "first"), first);
    assert_ptr_not_equal(first, over);
    struct gb_str s = {0};
    gb_metrics_print(m, &s);
    assert_non_null(strstr(s.data, "{\"name\":\"SeriesDropped\",\"kind\":\"counter\","
                                   "\"dimensions\":{},\"value\":3}"));
    gb_str_deinit(&s);
    gb_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_name_and_dimensions_are_one_series),
        cmocka_unit_test(counters_add_up_over_their_name),
        cmocka_unit_test(gauges_hold_the_last_value_or_none),
        cmocka_unit_test(timers_keep_a_statistic_set),
        cmocka_unit_test(visits_in_order),
        cmocka_unit_test(prints_json),
        cmocka_unit_test(series_past_the_limit_share_one_handle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
