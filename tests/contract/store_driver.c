#include "contract/store_driver.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TURNS_MAX = 1000 };
static const int64_t start_ms = INT64_C(1700000000000);
static const uint64_t turn_ns = UINT64_C(1000000);

void store_driver_init_loop(struct store_driver *d)
{
    *d = (struct store_driver){.wall_ms = start_ms};
    assert_int_equal(gb_loop_new(&d->loop).code, GB_OK);
    d->reactor = gb_loop_reactor(d->loop);
}

void store_driver_init_reactor(struct store_driver *d)
{
    *d = (struct store_driver){.wall_ms = start_ms};
    assert_int_equal(gb_reactor_new(1, &d->reactor).code, GB_OK);
    gb_reactor_run(d->reactor, d->mono_ns, d->wall_ms);
}

void store_driver_deinit(struct store_driver *d)
{
    assert_int_equal(d->waiting, 0);
    if (d->loop != NULL) {
        gb_loop_drain_closing(d->loop);
        gb_loop_free(d->loop);
    } else {
        gb_reactor_free(d->reactor);
    }
}

int64_t store_driver_wall_ms(void *driver)
{
    const struct store_driver *d = driver;
    return d->wall_ms;
}

void store_driver_expect(struct store_driver *d)
{
    /* The bare reactor takes the test's clock over before the call, as a turn would. */
    if (d->loop == NULL) gb_reactor_run(d->reactor, d->mono_ns, d->wall_ms);
    d->waiting++;
}

void store_driver_done(struct gb_op *op, void *driver)
{
    struct store_driver *d = driver;
    (void)op;
    assert_true(d->waiting > 0);
    if (--d->waiting == 0 && d->loop != NULL) gb_loop_stop(d->loop);
}

void store_driver_run(struct store_driver *d)
{
    if (d->waiting == 0) return;
    if (d->loop != NULL) {
        gb_loop_run(d->loop);
    } else {
        for (int i = 0; i < TURNS_MAX && d->waiting > 0; i++) {
            d->mono_ns += turn_ns;
            gb_reactor_run(d->reactor, d->mono_ns, d->wall_ms);
        }
    }
    assert_int_equal(d->waiting, 0);
}
