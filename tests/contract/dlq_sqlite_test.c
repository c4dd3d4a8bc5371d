#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_dlq.h"
#include "adapters/sqlite/sqlite_schema.h"
#include "contract/dlq_contract.h"
#include "contract/sqlite_file.h"

enum { SMALL = 8, NS_PER_MS = 1000000 };

static void open_store(struct dlq_backend *b, size_t queue_max, int64_t retention_ms)
{
    struct sqlite_file *f = b->ctx;
    struct gb_sqlite_dlq_cfg cfg = {
        .path = f->path, .queue_max = queue_max, .retention_ns = retention_ms * NS_PER_MS};
    assert_int_equal(gb_sqlite_dlq_new(f->pool, &cfg, &b->store).code, GB_OK);
}

static void set_up(struct dlq_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_store(b, 0, 0);
}

static void set_up_small(struct dlq_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_store(b, SMALL, 0);
}

static void reopen(struct dlq_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_store(b, 0, 0);
}

static void tear_down(struct dlq_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    sqlite_file_deinit(b->ctx);
    store_driver_deinit(&b->driver);
}

static struct sqlite_file file;
static struct dlq_backend sqlite = {
    .name = "DLQ on SQLite",
    .durable = true,
    .full_at = SMALL,
    .set_up = set_up,
    .set_up_small = set_up_small,
    .reopen = reopen,
    .tear_down = tear_down,
    .ctx = &file,
};

/* --- what only this backend has --- */

static const char old_table[] =
    "CREATE TABLE dlq(id TEXT PRIMARY KEY, route_id TEXT NOT NULL,"
    "binding_id TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '',"
    "source_id TEXT NOT NULL DEFAULT '', correlation_id TEXT NOT NULL DEFAULT '',"
    "address TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',"
    "category TEXT NOT NULL DEFAULT '', error_code TEXT NOT NULL DEFAULT '',"
    "last_error TEXT NOT NULL DEFAULT '', envelope_json TEXT NOT NULL,"
    "failed_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0);"
    "INSERT INTO dlq(id,route_id,envelope_json,failed_at) VALUES('old','r','{\"id\":\"e\"}',5)";

static void open_bare(struct dlq_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
}

static void check_05_29_old_file_opens(void **state)
{
    (void)state;
    open_bare(&sqlite);
    sqlite_file_exec(file.path, old_table);
    open_store(&sqlite, 0, 0);
    struct gb_dlq *first = sqlite.store;
    open_store(&sqlite, 0, 0); /* twice at once in one process: one connection */
    enum gb_code code = GB_OK;
    struct gb_dlq_entry *got = dlq_get(&sqlite, "old", &code);
    assert_int_equal(code, GB_OK);
    assert_string_equal(got->extra_info, "{}");
    assert_string_equal(got->redrive_mode, "");
    gb_dlq_entry_free(got);
    assert_int_equal(dlq_store(&sqlite, "new", "r", "permanent", 6), GB_OK);
    STORE_CLOSE(&sqlite.driver, sqlite.store);
    sqlite.store = first;
    assert_int_equal(dlq_count(&sqlite), 2);
    tear_down(&sqlite);
}

struct upgrade {
    pthread_t thread;
    sqlite3 *sql;
    struct gb_err err;
};

static void *upgrade(void *arg)
{
    struct upgrade *u = arg;
    u->err = gb_sqlite_schema_apply(u->sql, file.path, GB_SQLITE_DLQ);
    return NULL;
}

static void check_05_29_two_upgrades_at_once(void **state)
{
    (void)state;
    open_bare(&sqlite);
    sqlite_file_exec(file.path, old_table);
    struct upgrade both[2];
    for (size_t i = 0; i < 2; i++) {
        both[i].sql = sqlite_file_connect(file.path);
        assert_int_equal(pthread_create(&both[i].thread, NULL, upgrade, &both[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(both[i].thread, NULL), 0);
        assert_int_equal(both[i].err.code, GB_OK);
        assert_int_equal(sqlite3_close(both[i].sql), SQLITE_OK);
    }
    open_store(&sqlite, 0, 0);
    dlq_list_is(&sqlite, &(struct gb_dlq_filter){0}, "old");
    tear_down(&sqlite);
}

static void retention_is_opt_in(void **state)
{
    (void)state;
    open_bare(&sqlite);
    open_store(&sqlite, 0, 1000);
    int64_t now_ms = sqlite.driver.wall_ms;
    assert_int_equal(dlq_store(&sqlite, "old", "r", "permanent", now_ms - 1000), GB_OK);
    assert_int_equal(dlq_store(&sqlite, "young", "r", "permanent", now_ms - 999), GB_OK);
    dlq_list_is(&sqlite, &(struct gb_dlq_filter){0}, "young");
    sqlite.driver.wall_ms += 59999; /* one sweep a minute */
    assert_int_equal(dlq_store(&sqlite, "next", "r", "permanent", sqlite.driver.wall_ms), GB_OK);
    assert_int_equal(dlq_count(&sqlite), 2);
    STORE_CLOSE(&sqlite.driver, sqlite.store);
    open_store(&sqlite, 0, 0);
    sqlite.driver.wall_ms += INT64_C(86400000) * 365;
    assert_int_equal(dlq_store(&sqlite, "last", "r", "permanent", sqlite.driver.wall_ms), GB_OK);
    assert_int_equal(dlq_count(&sqlite), 3);
    tear_down(&sqlite);
}

static void unreadable_row_is_named(void **state)
{
    (void)state;
    static const char *const damages[] = {"envelope_json='{'", "envelope_json=x'00ff'",
                                          "failed_at='soon'", "reason=x'01'"};
    set_up(&sqlite);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        print_message("damage: %s\n", damages[i]);
        assert_int_equal(dlq_store(&sqlite, "bad", "r", "permanent", 5), GB_OK);
        assert_int_equal(dlq_store(&sqlite, "good", "r", "permanent", 6), GB_OK);
        char text[128];
        (void)snprintf(text, sizeof text, "UPDATE dlq SET %s WHERE id='bad'", damages[i]);
        sqlite_file_exec(file.path, text);
        enum gb_code code = GB_OK;
        assert_null(dlq_get(&sqlite, "bad", &code));
        assert_int_equal(code, GB_INVALID_OUTBOX_RECORD);
        dlq_list_is(&sqlite, &(struct gb_dlq_filter){.category = "permanent"}, "good");
        assert_int_equal(dlq_delete(&sqlite, (const char *const[]){"bad", "good"}, 2), 2);
    }
    assert_true(gb_metrics_sum(file.metrics, "SQLiteStoreUnhealthy") > 0);
    tear_down(&sqlite);
}

/* Cut at its U+0000, the id of one row would be that of another. */
static void an_id_names_one_row(void **state)
{
    (void)state;
    set_up(&sqlite);
    assert_int_equal(dlq_store(&sqlite, "a", "r", "permanent", 5), GB_OK);
    assert_int_equal(dlq_store(&sqlite, "b", "r", "permanent", 6), GB_OK);
    sqlite_file_exec(file.path, "UPDATE dlq SET id='a'||char(0)||'x' WHERE id='b'");
    dlq_list_is(&sqlite, &(struct gb_dlq_filter){0}, "a");
    tear_down(&sqlite);
}

int main(void)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test(check_05_29_old_file_opens),
        cmocka_unit_test(check_05_29_two_upgrades_at_once),
        cmocka_unit_test(retention_is_opt_in),
        cmocka_unit_test(unreadable_row_is_named),
        cmocka_unit_test(an_id_names_one_row),
    };
    int failed = dlq_contract_run(&sqlite);
    return failed + cmocka_run_group_tests_name("SQLite DLQ", own, NULL, NULL);
}
