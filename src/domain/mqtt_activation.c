#include "base/duration.h"
#include "domain/mqtt_topic.h"

static int64_t or_default(int64_t ns)
{
    return ns > 0 ? ns : 30 * GB_SEC;
}

int64_t gb_mqtt_activation_ns(int64_t connect_timeout_ns, int64_t reconcile_timeout_ns,
                              int64_t unmatched_grace_ns)
{
    int64_t connects = gb_mul_sat_i64(2, or_default(connect_timeout_ns));
    int64_t phases = gb_mul_sat_i64(4, or_default(reconcile_timeout_ns));
    int64_t windows = gb_mul_sat_i64(2, or_default(unmatched_grace_ns));
    return gb_add_sat_i64(gb_add_sat_i64(connects, phases), windows);
}
