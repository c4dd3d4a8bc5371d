#include "api/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void text(void **state)
{
    (void)state;
    struct gb_metrics *m = NULL;
    struct gb_str out = {0};
    assert_false(gb_failed(gb_metrics_new(&m)));
    gb_metric_add(
        gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent", GB_DIMS({"route_id", "a\"\\\nb"})), 3);
    gb_metric_add(gb_metrics_get(m, GB_METRIC_COUNTER, "MessagesSent", GB_DIMS({"route_id", "c"})),
                  4);
    gb_metric_set(gb_metrics_get(m, GB_METRIC_GAUGE, "DLQDepth", NULL, 0), 2.5);
    (void)gb_metrics_get(m, GB_METRIC_GAUGE, "OutboxDepth", NULL, 0); /* without a value */
    struct gb_metric *t = gb_metrics_get(m, GB_METRIC_TIMER, "SQSSendLatency", NULL, 0);
    gb_metric_time(t, 1000000);
    gb_metric_time(t, 3000000);
    gb_prometheus_print(m, &out);
    assert_string_equal(out.data, "# TYPE DLQDepth gauge\n"
                                  "DLQDepth 2.5\n"
                                  "# TYPE MessagesSent counter\n"
                                  "MessagesSent{route_id=\"a\\\"\\\\\\nb\"} 3\n"
                                  "MessagesSent{route_id=\"c\"} 4\n"
                                  "# TYPE SQSSendLatency_sum counter\n"
                                  "SQSSendLatency_sum 4\n"
                                  "# TYPE SQSSendLatency_min gauge\n"
                                  "SQSSendLatency_min 1\n"
                                  "# TYPE SQSSendLatency_max gauge\n"
                                  "SQSSendLatency_max 3\n"
                                  "# TYPE SQSSendLatency_count counter\n"
                                  "SQSSendLatency_count 2\n");
    gb_str_deinit(&out);
    gb_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(text)};
    return cmocka_run_group_tests_name("prometheus", tests, NULL, NULL);
}
