#include "adapters/mqtt/mqtt_ingress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/oom.h"

/* Binary correlation is the one path that needs scratch memory beside the envelope. */
static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    static const uint8_t binary[200] = {0};
    const struct gb_mqtt_ingress in = {.version = GB_MQTT_V5, .max_payload_bytes = 1000};
    const struct gb_mqtt_publish p = {
        .topic = gb_bytes_c("t"),
        .payload = gb_bytes_c("p"),
        .properties = {.has = GB_MQTT_HAS(GB_MQTT_P_CORRELATION_DATA),
                       .correlation_data = gb_bytes(binary, sizeof binary)},
    };
    struct gb_reactor *r = NULL;
    struct gb_mqtt_ingress_result result = {0};
    struct gb_err err = gb_err(GB_UNAVAILABLE, "not tried");
    unsigned failed = 0;
    assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
    while (gb_failed(err)) {
        assert_true(failed < 50);
        gb_oom_fail_at(failed + 1);
        err = gb_mqtt_ingress_build(&in, &p, r, &result);
        gb_oom_off();
        if (!gb_failed(err)) break;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_null(result.envelope);
        failed++;
    }
    assert_true(failed >= 2);
    assert_int_equal(result.derived, GB_DERIVED_CORRELATION_DATA);
    gb_envelope_unref(result.envelope);
    gb_reactor_free(r);
}

static void a_plain_publish_is_one_allocation(void **state)
{
    (void)state;
    const struct gb_mqtt_ingress in = {.version = GB_MQTT_V5, .max_payload_bytes = 1000};
    const struct gb_mqtt_publish p = {.topic = gb_bytes_c("t"), .payload = gb_bytes_c("p")};
    struct gb_reactor *r = NULL;
    struct gb_mqtt_ingress_result result = {0};
    assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
    gb_oom_off();
    assert_int_equal(gb_mqtt_ingress_build(&in, &p, r, &result).code, GB_OK);
    assert_int_equal(gb_oom_count(), 1);
    gb_envelope_unref(result.envelope);
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(a_plain_publish_is_one_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
