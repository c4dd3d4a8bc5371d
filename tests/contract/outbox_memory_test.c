#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/memory/memory_outbox.h"
#include "contract/outbox_contract.h"

enum { SMALL = 8 };

static void open_with(struct outbox_backend *b, const struct gb_memory_outbox_cfg *cfg)
{
    store_driver_init_reactor(&b->driver);
    assert_int_equal(gb_memory_outbox_new(b->driver.reactor, cfg, &b->store).code, GB_OK);
}

static void set_up(struct outbox_backend *b)
{
    open_with(b, &(struct gb_memory_outbox_cfg){0});
}

static void set_up_small(struct outbox_backend *b)
{
    open_with(b, &(struct gb_memory_outbox_cfg){.records_max = SMALL, .ended_max = 2});
}

static void reopen(struct outbox_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    struct gb_memory_outbox_cfg cfg = {0};
    assert_int_equal(gb_memory_outbox_new(b->driver.reactor, &cfg, &b->store).code, GB_OK);
}

static void tear_down(struct outbox_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    store_driver_deinit(&b->driver);
}

static struct outbox_backend memory = {
    .name = "outbox on memory",
    .full_at = SMALL,
    .set_up = set_up,
    .set_up_small = set_up_small,
    .reopen = reopen,
    .tear_down = tear_down,
};

/* --- what only this backend has: ended identities are forgotten --- */

static void complete_one(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = {.envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1"};
    assert_int_equal(outbox_store(b, &spec), GB_OK);
    struct gb_outbox_batch *batch = outbox_claim(b, "SESSION#s1", "o", 1, 1, NULL);
    outbox_batch_is(batch, envelope_id);
    assert_int_equal(
        outbox_settle(b, GB_OUTBOX_COMPLETE, "SESSION#s1", batch->records[0].id, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
}

static enum gb_code store_again(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = {.envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1"};
    return outbox_store(b, &spec);
}

static void check_05_identity_is_kept_one_hour(void **state)
{
    (void)state;
    struct outbox_backend *b = &memory;
    set_up(b);
    complete_one(b, "A");
    b->driver.wall_ms += INT64_C(3599999);
    assert_int_equal(store_again(b, "A"), GB_DUPLICATE_RECORD);
    b->driver.wall_ms += 1;
    assert_int_equal(store_again(b, "A"), GB_OK);
    tear_down(b);
    outbox_records_free();
}

static void ended_identities_are_bounded(void **state)
{
    (void)state;
    struct outbox_backend *b = &memory;
    set_up_small(b);
    complete_one(b, "A");
    complete_one(b, "B");
    complete_one(b, "C"); /* one more than ended_max: A is forgotten */
    assert_int_equal(store_again(b, "C"), GB_DUPLICATE_RECORD);
    assert_int_equal(store_again(b, "B"), GB_DUPLICATE_RECORD);
    assert_int_equal(store_again(b, "A"), GB_OK);
    tear_down(b);
    outbox_records_free();
}

int main(void)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test(check_05_identity_is_kept_one_hour),
        cmocka_unit_test(ended_identities_are_bounded),
    };
    int failed = outbox_contract_run(&memory);
    return failed + cmocka_run_group_tests_name("memory outbox", own, NULL, NULL);
}
