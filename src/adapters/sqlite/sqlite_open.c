#include "adapters/sqlite/sqlite_open.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/sqlite/sqlite_tx.h"
#include "base/assert.h"

enum { HEADER_SIZE = 16, DATABASE_MIN = 512 };
static const char header_magic[HEADER_SIZE] = "SQLite format 3"; /* and its terminator */

static struct gb_err not_usable(const char *path, const char *why)
{
    return gb_err(GB_INVALID_CONFIG,
                  "sqlite path %s: %s; the file was left as it is: restore it or name another path",
                  path, why);
}

/* SQLite itself would take a file of less than one page for an empty database and write over it. */
static struct gb_err check_header(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char header[HEADER_SIZE] = {0};
    bool readable = fd >= 0 && fstat(fd, &st) == 0;
    bool empty = readable && st.st_size == 0;
    ssize_t size = readable && !empty ? pread(fd, header, sizeof header, 0) : 0;
    if (fd >= 0) (void)close(fd);
    if (!readable || size < 0) return gb_err(GB_UNAVAILABLE, "sqlite path %s: can't be read", path);
    if (empty) return gb_ok();
    if (st.st_size < DATABASE_MIN || memcmp(header, header_magic, sizeof header) != 0)
        return not_usable(path, "is not an SQLite database");
    return gb_ok();
}

/* Reads header and schema before anything is written (quick_check would read the whole file). */
static struct gb_err check_database(sqlite3 *sql, const char *path)
{
    static const char *const reads[] = {"PRAGMA schema_version",
                                        "SELECT count(*) FROM sqlite_schema"};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        struct gb_err err = gb_sqlite_exec(sql, path, reads[i]);
        int code = sqlite3_errcode(sql) & 0xff;
        if (!gb_failed(err)) continue;
        if (code == SQLITE_NOTADB) return not_usable(path, "is not an SQLite database");
        if (code == SQLITE_CORRUPT || code == SQLITE_ERROR) /* ERROR: an unknown file format */
            return not_usable(path, sqlite3_errmsg(sql));
        return err;
    }
    return gb_ok();
}

static struct gb_err enable_wal(sqlite3 *sql, const char *path, bool in_memory)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(sql, "PRAGMA journal_mode=WAL", -1, &stmt, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
    const char *mode = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    struct gb_err err = gb_ok();
    if (rc != SQLITE_ROW) {
        err = gb_sqlite_err(sql, rc, path, "journal_mode=WAL");
    } else if (!in_memory && (mode == NULL || strcmp(mode, "wal") != 0)) {
        err = gb_err(
            GB_INVALID_CONFIG,
            "sqlite path %s: journal mode is %s, WAL could not be enabled; the file must be on "
            "a local file system with shared memory",
            path, mode == NULL ? "unknown" : mode);
    }
    (void)sqlite3_finalize(stmt); /* repeats the code above */
    return err;
}

/* The cache is for the inner pages of the two indexes on random ids; bound 3 MiB. */
static struct gb_err configure(sqlite3 *sql, const char *path, bool strict, bool in_memory)
{
    struct gb_err err = gb_sqlite_exec(sql, path, "PRAGMA busy_timeout=5000");
    if (!gb_failed(err)) err = check_database(sql, path);
    if (!gb_failed(err)) err = enable_wal(sql, path, in_memory);
    if (!gb_failed(err)) err = gb_sqlite_exec(sql, path, "PRAGMA synchronous=FULL");
    if (!gb_failed(err) && strict) err = gb_sqlite_exec(sql, path, "PRAGMA foreign_keys=ON");
    if (!gb_failed(err)) err = gb_sqlite_exec(sql, path, "PRAGMA cache_size=-3072");
    return err;
}

/* A close must not move a doubtful file's WAL into it. */
static void keep_wal_on_close(sqlite3 *sql, int keep)
{
    int rc = sqlite3_db_config(sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep, NULL);
    GB_ASSERT(rc == SQLITE_OK); /* fails for an unknown option only */
}

struct gb_err gb_sqlite_open(const char *path, bool strict, struct gb_sqlite_connection *out)
{
    struct gb_sqlite_connection c = {0};
    bool in_memory = strcmp(path, ":memory:") == 0;
    struct gb_err err;
    if (in_memory && strict)
        return not_usable(path, "managed subscriptions must be kept in a file");
    if (!in_memory) {
        err = gb_sqlite_file_acquire(path, strict, &c.file);
        if (gb_failed(err)) return err;
        err = check_header(path);
        if (gb_failed(err)) goto fail;
    }
    int rc = sqlite3_open_v2(path, &c.sql,
                             SQLITE_OPEN_READWRITE | (in_memory ? SQLITE_OPEN_CREATE : 0), NULL);
    if (rc != SQLITE_OK) {
        err = gb_sqlite_err(c.sql, rc, path, "open");
        goto fail;
    }
    keep_wal_on_close(c.sql, 1);
    err = configure(c.sql, path, strict, in_memory);
    if (gb_failed(err)) goto fail;
    if (strict) err = gb_sqlite_file_recheck(path, &c.file);
    if (gb_failed(err)) goto fail;
    keep_wal_on_close(c.sql, 0);
    *out = c;
    return err;
fail:
    gb_sqlite_close(&c);
    return err;
}

void gb_sqlite_close(struct gb_sqlite_connection *c)
{
    int rc = sqlite3_close(c->sql);
    GB_ASSERT(rc == SQLITE_OK); /* busy: a statement was not finalized */
    c->sql = NULL;
    gb_sqlite_file_release(&c->file);
}
