#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_outbox.h"
#include "contract/outbox_contract.h"
#include "contract/sqlite_file.h"

enum { SMALL = 8, STALE_MS = 35000 };

static void open_with(struct outbox_backend *b, size_t queue_max)
{
    struct sqlite_file *f = b->ctx;
    struct gb_sqlite_outbox_cfg cfg = {
        .path = f->path, .stale_claim_ns = INT64_C(1000000) * STALE_MS, .queue_max = queue_max};
    assert_int_equal(gb_sqlite_outbox_new(f->pool, &cfg, &b->store).code, GB_OK);
}

static void set_up(struct outbox_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_with(b, 0);
}

static void set_up_small(struct outbox_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_with(b, SMALL);
}

static void reopen(struct outbox_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_with(b, 0);
}

static void tear_down(struct outbox_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    sqlite_file_deinit(b->ctx);
    store_driver_deinit(&b->driver);
}

int main(void)
{
    static struct sqlite_file file;
    static struct outbox_backend sqlite = {
        .name = "outbox on SQLite",
        .durable = true,
        .stale_ms = STALE_MS,
        .full_at = SMALL,
        .set_up = set_up,
        .set_up_small = set_up_small,
        .reopen = reopen,
        .tear_down = tear_down,
        .ctx = &file,
    };
    return outbox_contract_run(&sqlite);
}
