#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_subscriptions.h"
#include "contract/sqlite_file.h"
#include "contract/subscriptions_contract.h"

enum { SMALL = 8 };

static void open_store(struct subscriptions_backend *b, size_t queue_max)
{
    struct sqlite_file *f = b->ctx;
    struct gb_sqlite_subscriptions_cfg cfg = {.path = f->path, .queue_max = queue_max};
    assert_int_equal(gb_sqlite_subscriptions_new(f->pool, &cfg, &b->store).code, GB_OK);
}

static void set_up(struct subscriptions_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_store(b, 0);
}

static void set_up_small(struct subscriptions_backend *b)
{
    store_driver_init_loop(&b->driver);
    sqlite_file_init(b->ctx, &b->driver);
    open_store(b, SMALL);
}

static void reopen(struct subscriptions_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_store(b, 0);
}

static void tear_down(struct subscriptions_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    sqlite_file_deinit(b->ctx);
    store_driver_deinit(&b->driver);
}

static struct sqlite_file file;
static struct subscriptions_backend sqlite = {
    .name = "managed subscriptions on SQLite",
    .full_at = SMALL,
    .set_up = set_up,
    .set_up_small = set_up_small,
    .reopen = reopen,
    .tear_down = tear_down,
    .ctx = &file,
};

/* --- the strict rules for files (spec 05 §8) --- */

static void open_refused(const char *path, const char *why)
{
    struct gb_subscriptions *s = NULL;
    struct gb_sqlite_subscriptions_cfg cfg = {.path = path};
    struct gb_err err = gb_sqlite_subscriptions_new(file.pool, &cfg, &s);
    if (err.code != GB_INVALID_CONFIG || strstr(err.message, why) == NULL) {
        fail_msg("%s: code %s, \"%s\" lacks \"%s\"", path, gb_code_name(err.code), err.message,
                 why);
    }
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static const char *in_directory(const char *name)
{
    static char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", file.directory, name);
    return path;
}

static void init(void)
{
    store_driver_init_loop(&sqlite.driver);
    sqlite_file_init(&file, &sqlite.driver);
}

static void deinit(void)
{
    sqlite_file_deinit(&file);
    store_driver_deinit(&sqlite.driver);
}

static void check_05_33_new_files_are_0600(void **state)
{
    (void)state;
    init();
    mode_t old = umask(0);
    (void)snprintf(file.path, sizeof file.path, "%s/made/here/s.db", file.directory);
    open_store(&sqlite, 0);
    assert_int_equal(subscriptions_remember(&sqlite, "id", NULL, 0), GB_OK);
    static const char *const files[] = {"made/here/s.db", "made/here/s.db-wal",
                                        "made/here/s.db-shm", "made/here/s.db.lock"};
    for (size_t i = 0; i < 4; i++) assert_int_equal(mode_of(in_directory(files[i])), 0600);
    assert_int_equal(mode_of(in_directory("made")), 0700);
    assert_int_equal(mode_of(in_directory("made/here")), 0700);
    (void)umask(old);
    STORE_CLOSE(&sqlite.driver, sqlite.store);
    deinit();
}

static void check_05_33_loose_files_are_refused(void **state)
{
    (void)state;
    init();
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db-journal",
                                        "s.db.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        make_file(in_directory(names[i]), 0644);
        open_refused(in_directory("s.db"), "0600");
        assert_int_equal(unlink(in_directory(names[i])), 0);
    }
    assert_int_equal(mkdir(in_directory("s.db"), 0700), 0);
    open_refused(in_directory("s.db"), "s.db");
    deinit();
}

static void check_05_33_loose_parents_are_refused(void **state)
{
    (void)state;
    init();
    assert_int_equal(mkdir(in_directory("open"), 0755), 0);
    open_refused(in_directory("open/s.db"), "0700");
    assert_int_equal(chmod(in_directory("open"), 0770), 0);
    open_refused(in_directory("open/s.db"), "0700");
    assert_int_equal(mkdir(in_directory("open/deep"), 0700), 0);
    open_refused(in_directory("open/deep/s.db"), "writable");
    assert_int_equal(mkdir(in_directory("real"), 0700), 0);
    assert_int_equal(symlink("real", in_directory("link")), 0);
    open_refused(in_directory("link/s.db"), "symbolic link");
    make_file(in_directory("real/target"), 0600);
    assert_int_equal(symlink("target", in_directory("real/s.db")), 0);
    open_refused(in_directory("real/s.db"), "symbolic link");
    deinit();
}

static void check_05_33_paths_are_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"s.db",        "file:/tmp/s.db", "/tmp/../s.db",
                                        "/tmp/./s.db", "/tmp//s.db",     "/tmp/s.db?mode=ro",
                                        "/tmp/s#.db",  "/tmp/",          "",
                                        ":memory:"};
    init();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        open_refused(paths[i], "sqlite path");
    deinit();
}

static void damaged_filters_are_named(void **state)
{
    (void)state;
    static const char *const filters[] = {"x'00ff'", "''", "'a/#/b'", "'$share/'", "x'ff'"};
    init();
    open_store(&sqlite, 0);
    assert_int_equal(subscriptions_remember(&sqlite, "id", (const char *const[]){"good"}, 1),
                     GB_OK);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char text[128];
        print_message("filter: %s\n", filters[i]);
        (void)snprintf(text, sizeof text,
                       "INSERT INTO managed_subscription_filters VALUES('id',%s)", filters[i]);
        sqlite_file_exec(file.path, text);
        struct gb_subscriptions_list q = {.identity = "id"};
        store_driver_expect(&sqlite.driver);
        sqlite.store->ops->list(sqlite.store, &q, store_driver_done, &sqlite.driver);
        store_driver_run(&sqlite.driver);
        assert_int_equal(q.op.result.code, GB_INVALID_CONFIG);
        assert_non_null(strstr(q.op.result.message, "managed_subscription_filters of id"));
        assert_non_null(strstr(q.op.result.message, file.path));
        assert_int_equal(q.filters.count, 0);
        sqlite_file_exec(file.path,
                         "DELETE FROM managed_subscription_filters WHERE filter<>'good'");
        subscriptions_list_is(&sqlite, "id", GB_OK, "good");
    }
    STORE_CLOSE(&sqlite.driver, sqlite.store);
    deinit();
}

int main(void)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test(damaged_filters_are_named),
        cmocka_unit_test(check_05_33_new_files_are_0600),
        cmocka_unit_test(check_05_33_loose_files_are_refused),
        cmocka_unit_test(check_05_33_loose_parents_are_refused),
        cmocka_unit_test(check_05_33_paths_are_refused),
    };
    int failed = subscriptions_contract_run(&sqlite);
    return failed + cmocka_run_group_tests_name("strict files", own, NULL, NULL);
}
