#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"
#include "domain/mqtt_topic.h"

/* Spec 03 §9 and check 19 (an ephemeral session does not ask: it has no activation). */
static void activation_sums_its_phases(void **state)
{
    (void)state;
    static const struct activation_row {
        const char *name;
        int64_t connect_ns, reconcile_ns, grace_ns;
        int64_t want_ns;
    } rows[] = {
        {"defaults", 30 * GB_SEC, 30 * GB_SEC, 30 * GB_SEC, 240 * GB_SEC},
        {"check 19", 10 * GB_SEC, 20 * GB_SEC, 5 * GB_SEC, 110 * GB_SEC},
        {"zero takes the default", 0, 0, 0, 240 * GB_SEC},
        {"negative takes it, too", -1, INT64_MIN, -GB_SEC, 240 * GB_SEC},
        {"one default of three", 10 * GB_SEC, 0, 5 * GB_SEC, 150 * GB_SEC},
        {"huge connect", INT64_MAX, GB_SEC, GB_SEC, INT64_MAX},
        {"huge reconcile", GB_SEC, INT64_MAX / 4 + 1, GB_SEC, INT64_MAX},
        {"huge grace", GB_SEC, GB_SEC, INT64_MAX / 2, INT64_MAX},
        {"all huge", INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t got_ns =
            gb_mqtt_activation_ns(rows[i].connect_ns, rows[i].reconcile_ns, rows[i].grace_ns);
        if (got_ns != rows[i].want_ns) fail_msg("%s: %jd", rows[i].name, (intmax_t)got_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activation_sums_its_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
