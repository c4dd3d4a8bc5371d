#include "adapters/mqtt/mqtt_egress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "domain/reserved.h"
#include "support/oom.h"

/* Both the decoded correlation and the packet's buffer can fail; the error is transient, so that
 * the send is tried again, and the count of dropped headers stays as it was. */
static void every_failed_allocation_is_transient(void **state)
{
    (void)state;
    const struct gb_mqtt_egress egress = {
        .v5 = true, .qos = 1, .maximum_qos = 2, .retain_available = true};
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(500, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c("m")).code, GB_OK);
    assert_int_equal(gb_envelope_put_text(e, GB_H_CORRELATION_DATA, gb_bytes_c("AAH_")).code,
                     GB_OK);
    assert_int_equal(gb_envelope_put_number(e, "n", GB_VALUE_INT, 1).code, GB_OK);
    struct gb_str out = {0};
    struct gb_err err = gb_err(GB_UNAVAILABLE, "not tried");
    uint32_t dropped = 99;
    unsigned failed = 0;
    while (gb_failed(err)) {
        assert_true(failed < 50);
        gb_oom_fail_at(failed + 1);
        err = gb_mqtt_egress_encode(&egress, e, gb_bytes_c("t"), 1, &out, &dropped);
        gb_oom_off();
        if (!gb_failed(err)) break;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_true(gb_err_is_transient(&err));
        assert_int_equal(out.size, 0);
        assert_int_equal(dropped, 99);
        gb_str_clear(&out);
        failed++;
    }
    assert_int_equal(failed, 2);
    assert_int_equal(dropped, 1);
    assert_true(out.size > 0);
    gb_str_deinit(&out);
    gb_envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_allocation_is_transient)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
