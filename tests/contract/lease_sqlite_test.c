#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_lease.h"
#include "base/duration.h"
#include "contract/lease_contract.h"
#include "contract/sqlite_file.h"

static void open_store(struct lease_backend *b)
{
    struct sqlite_file *f = b->ctx;
    const struct gb_sqlite_lease_cfg cfg = {.path = f->path};
    assert_int_equal(gb_sqlite_lease_new(f->pool, &cfg, &b->store).code, GB_OK);
}

static void set_up(struct lease_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_store(b);
}

static void reopen(struct lease_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    open_store(b);
}

static void tear_down(struct lease_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    sqlite_file_deinit(b->ctx);
    store_driver_deinit(&b->driver);
}

static struct sqlite_file file;
static struct lease_backend sqlite = {
    .name = "leases on SQLite",
    .durable = true,
    .local = true,
    .set_up = set_up,
    .reopen = reopen,
    .tear_down = tear_down,
    .ctx = &file,
};

/* 06 check 10 on this backend: a corrupt row is named and stays as it is. */
static void corrupt_rows_stay(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "version=0",
        "version='x'",
        "renewed_at=0",
        "expires_at=renewed_at",
        "owner='',expires_at=5",
        "owner=x'ff',version=1.5",
        "endpoints_json='[]'",
        "endpoints_json='{\"a\":1}'",
    };
    set_up(&sqlite);
    assert_int_equal(lease_acquire(&sqlite, "s", "a#1", GB_MINUTE, NULL, NULL), GB_OK);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        static const char dump[] =
            "SELECT quote(owner)||quote(version)||quote(renewed_at)||quote(expires_at)||"
            "quote(endpoints_json) FROM lease";
        char text[160], before[512];
        (void)snprintf(text, sizeof text, "UPDATE lease SET %s", changes[i]);
        sqlite_file_exec(file.path, text);
        (void)snprintf(before, sizeof before, "%s", sqlite_file_query(file.path, dump));
        assert_int_equal(lease_acquire(&sqlite, "s", "b#1", GB_MINUTE, NULL, NULL),
                         GB_INVALID_CONFIG);
        assert_non_null(strstr(lease_message(), "lease s: corrupt row"));
        assert_non_null(strstr(lease_message(), file.path));
        assert_int_equal(lease_renew(&sqlite, "s", "a#1", 1, GB_MINUTE), GB_INVALID_CONFIG);
        assert_int_equal(lease_release(&sqlite, "s", "a#1", 1), GB_INVALID_CONFIG);
        assert_int_equal(lease_current(&sqlite, "s", NULL), GB_INVALID_CONFIG);
        assert_string_equal(sqlite_file_query(file.path, dump), before);
        sqlite_file_exec(file.path, "UPDATE lease SET owner='a#1',version=1,renewed_at=1000,"
                                    "expires_at=2000,endpoints_json=''");
    }
    tear_down(&sqlite);
}

static void the_last_version_is_not_passed(void **state)
{
    (void)state;
    set_up(&sqlite);
    assert_int_equal(lease_acquire(&sqlite, "s", "a#1", GB_MINUTE, NULL, NULL), GB_OK);
    sqlite_file_exec(file.path, "UPDATE lease SET version=9223372036854775807");
    assert_int_equal(lease_acquire(&sqlite, "s", "b#1", GB_MINUTE, NULL, NULL), GB_INVALID_CONFIG);
    assert_int_equal(lease_current(&sqlite, "s", NULL), GB_OK);
    tear_down(&sqlite);
}

/* 05 check 39: the owner dies by kill -9; the next process takes its lease in the first acquire,
 * under the next version. */
static void check_05_39_a_killed_owner_is_replaced(void **state)
{
    (void)state;
    uint64_t version = 0;
    struct gb_lease_holder seen = {0};
    set_up(&sqlite);
    STORE_CLOSE(&sqlite.driver, sqlite.store);
    sqlite_file_pool_free(&file);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lease_backend own = sqlite;
        store_driver_init_loop(&own.driver);
        sqlite_file_pool(&file, &own.driver);
        open_store(&own);
        enum gb_code code = lease_acquire(&own, "s", "dead#1", GB_HOUR, NULL, NULL);
        if (code == GB_OK) (void)raise(SIGKILL);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    sqlite_file_pool(&file, &sqlite.driver);
    open_store(&sqlite);
    assert_int_equal(lease_acquire(&sqlite, "s", "next#1", GB_MINUTE, &version, &seen), GB_OK);
    assert_int_equal(version, 2);
    assert_string_equal(seen.owner, "dead#1");
    gb_lease_holder_deinit(&seen);
    tear_down(&sqlite);
}

int main(void)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test(corrupt_rows_stay),
        cmocka_unit_test(the_last_version_is_not_passed),
        cmocka_unit_test(check_05_39_a_killed_owner_is_replaced),
    };
    int failed = lease_contract_run(&sqlite);
    return failed + cmocka_run_group_tests_name("rows", own, NULL, NULL);
}
