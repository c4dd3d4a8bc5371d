#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/memory/memory_lease.h"
#include "base/duration.h"
#include "contract/lease_contract.h"

static void set_up(struct lease_backend *b)
{
    store_driver_init_reactor(&b->driver);
    assert_int_equal(gb_memory_lease_new(b->driver.reactor, &b->store).code, GB_OK);
}

static void tear_down(struct lease_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    store_driver_deinit(&b->driver);
}

static struct lease_backend memory = {
    .name = "leases on memory", .set_up = set_up, .tear_down = tear_down};

/* By the process's clock. */
static void leases_expire(void **state)
{
    (void)state;
    uint64_t version = 0;
    struct gb_lease_holder seen = {0};
    set_up(&memory);
    assert_int_equal(lease_acquire(&memory, "s", "a#1", GB_MINUTE, &version, NULL), GB_OK);
    uint64_t start_ns = gb_reactor_now_ns(memory.driver.reactor);
    memory.driver.mono_ns = start_ns + 59 * (uint64_t)GB_SEC;
    assert_int_equal(lease_acquire(&memory, "s", "b#1", GB_MINUTE, &version, NULL),
                     GB_ALREADY_EXISTS);
    memory.driver.mono_ns = start_ns + 61 * (uint64_t)GB_SEC;
    assert_int_equal(lease_renew(&memory, "s", "a#1", 1, GB_MINUTE), GB_STALE_FENCING_TOKEN);
    assert_int_equal(lease_acquire(&memory, "s", "b#1", GB_MINUTE, &version, &seen), GB_OK);
    assert_int_equal(version, 2);
    assert_string_equal(seen.owner, "a#1");
    gb_lease_holder_deinit(&seen);
    tear_down(&memory);
}

int main(void)
{
    const struct CMUnitTest own[] = {cmocka_unit_test(leases_expire)};
    int failed = lease_contract_run(&memory);
    return failed + cmocka_run_group_tests_name("expiry", own, NULL, NULL);
}
