#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/mqtt_rig.h"
#include "support/oom.h"

/* The allocation ladder over the session's constructors: the n-th allocation fails until none
 * does. */

static void session_and_sender(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.username = "user";
    r.cfg.password = "secret";
    struct gb_err err = gb_err(GB_UNAVAILABLE, "not tried");
    unsigned failures = 0;
    for (unsigned n = 1; gb_failed(err); n++) {
        assert_true(n < 1000);
        gb_oom_fail_at(n);
        err = gb_mqtt_session_new(&r.cfg, &r.session);
        if (!gb_failed(err)) {
            const struct gb_mqtt_sender_cfg cfg = {.id = "x", .qos = 1, .timeout_ns = 1};
            err = gb_mqtt_session_add_sender(r.session, &cfg, &r.sender);
            if (gb_failed(err)) r.session->ops->free(r.session);
        }
        gb_oom_off();
        if (gb_failed(err)) {
            assert_int_equal(err.code, GB_UNAVAILABLE);
            failures++;
        }
    }
    assert_true(failures > 10);
    mqtt_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(session_and_sender)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
