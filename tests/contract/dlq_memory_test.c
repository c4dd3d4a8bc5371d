#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/memory/memory_dlq.h"
#include "contract/dlq_contract.h"

enum { SMALL = 8 };

static void open_store(struct dlq_backend *b, size_t entries_max)
{
    struct gb_memory_dlq_cfg cfg = {.entries_max = entries_max};
    assert_int_equal(gb_memory_dlq_new(b->driver.reactor, &cfg, &b->store).code, GB_OK);
}

static void set_up(struct dlq_backend *b)
{
    store_driver_init_reactor(&b->driver);
    open_store(b, 0);
}

static void set_up_small(struct dlq_backend *b)
{
    store_driver_init_reactor(&b->driver);
    open_store(b, SMALL);
}

static void reopen(struct dlq_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_store(b, 0);
}

static void tear_down(struct dlq_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    store_driver_deinit(&b->driver);
}

int main(void)
{
    static struct dlq_backend memory = {
        .name = "DLQ on memory",
        .full_at = SMALL,
        .set_up = set_up,
        .set_up_small = set_up_small,
        .reopen = reopen,
        .tear_down = tear_down,
    };
    return dlq_contract_run(&memory);
}
