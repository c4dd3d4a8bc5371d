#include "contract/sqlite_file.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void sqlite_file_pool(struct sqlite_file *f, struct store_driver *d)
{
    assert_int_equal(gb_metrics_new(&f->metrics).code, GB_OK);
    struct gb_sqlite_pool_cfg cfg = {
        .loop = d->loop, .metrics = f->metrics, .wall_ms = store_driver_wall_ms, .arg = d};
    assert_int_equal(gb_sqlite_pool_new(&cfg, &f->pool).code, GB_OK);
}

void sqlite_file_pool_free(struct sqlite_file *f)
{
    gb_sqlite_pool_free(f->pool);
    gb_metrics_free(f->metrics);
    f->pool = NULL;
    f->metrics = NULL;
}

void sqlite_file_init(struct sqlite_file *f, struct store_driver *d)
{
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/gb-sqlite-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    (void)snprintf(f->path, sizeof f->path, "%s/store.db", f->directory);
    sqlite_file_pool(f, d);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void sqlite_file_deinit(struct sqlite_file *f)
{
    sqlite_file_pool_free(f);
    assert_int_equal(nftw(f->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

sqlite3 *sqlite_file_connect(const char *path)
{
    sqlite3 *sql = NULL;
    assert_int_equal(sqlite3_open_v2(path, &sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(sql, 5000), SQLITE_OK);
    return sql;
}

void sqlite_file_exec(const char *path, const char *text)
{
    sqlite3 *sql = sqlite_file_connect(path);
    char *message = NULL;
    if (sqlite3_exec(sql, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

const char *sqlite_file_query(const char *path, const char *text)
{
    static char answer[512];
    answer[0] = '\0';
    sqlite3 *sql = sqlite_file_connect(path);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(sql, text, -1, &stmt, NULL), SQLITE_OK);
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_text(stmt, 0) != NULL)
        (void)snprintf(answer, sizeof answer, "%s", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
    return answer;
}
