#include "adapters/sqlite/sqlite_tx.h"

#include "base/assert.h"

enum { PRIMARY_CODE_MASK = 0xff };

static const char *hint(int rc)
{
    switch (rc & PRIMARY_CODE_MASK) {
    case SQLITE_FULL:
        return "; free space on the file system, work goes on by itself";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "; another program holds the database locked";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return "; check owner and mode of the file and of its directory";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "; stop the bridge and restore or recover the file";
    default:
        return "";
    }
}

struct gb_err gb_sqlite_err(sqlite3 *sql, int rc, const char *path, const char *doing)
{
    /* The connection's text belongs to its last error, which need not be this one. */
    bool same = sql != NULL && sqlite3_extended_errcode(sql) == rc;
    const char *text = same ? sqlite3_errmsg(sql) : sqlite3_errstr(rc);
    return gb_err(GB_UNAVAILABLE, "sqlite %s: %s: %s (code %d)%s", path, doing, text, rc, hint(rc));
}

bool gb_sqlite_is_unhealthy(int rc)
{
    int primary = rc & PRIMARY_CODE_MASK;
    return primary == SQLITE_FULL || primary == SQLITE_CORRUPT || primary == SQLITE_READONLY ||
           primary == SQLITE_NOTADB || primary == SQLITE_IOERR;
}

struct gb_err gb_sqlite_in_place(struct gb_sqlite_tx *tx)
{
    int moved = 0;
    /* SQLITE_NOTFOUND is the answer of a database in memory, which stays where it is. */
    (void)sqlite3_file_control(tx->sql, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (moved == 0) return gb_ok();
    tx->unhealthy = true;
    return gb_err(GB_UNAVAILABLE,
                  "sqlite %s: the file was deleted, moved or replaced while it was open; nothing "
                  "new is stored; put it back, or restart the bridge when the outbox is empty",
                  tx->path);
}

struct gb_err gb_sqlite_exec(sqlite3 *sql, const char *path, const char *text)
{
    int rc = sqlite3_exec(sql, text, NULL, NULL, NULL);
    if (rc == SQLITE_OK) return gb_ok();
    return gb_sqlite_err(sql, sqlite3_extended_errcode(sql), path, text);
}

void gb_sqlite_fault(struct gb_sqlite_tx *tx, struct gb_err err)
{
    if (!gb_sqlite_faulted(tx)) tx->fault = err;
}

static void fault_rc(struct gb_sqlite_tx *tx, int rc, const char *doing)
{
    if (gb_sqlite_is_unhealthy(rc)) tx->unhealthy = true;
    gb_sqlite_fault(tx, gb_sqlite_err(tx->sql, rc, tx->path, doing));
}

sqlite3_stmt *gb_sqlite_stmt(struct gb_sqlite_tx *tx, struct gb_sqlite_stmts *stmts, size_t index)
{
    GB_ASSERT(index < stmts->count);
    if (stmts->prepared[index] != NULL) return stmts->prepared[index];
    int rc = sqlite3_prepare_v3(tx->sql, stmts->texts[index], -1, SQLITE_PREPARE_PERSISTENT,
                                &stmts->prepared[index], NULL);
    if (rc == SQLITE_OK) return stmts->prepared[index];
    fault_rc(tx, sqlite3_extended_errcode(tx->sql), stmts->texts[index]);
    return NULL;
}

void gb_sqlite_stmts_finalize(struct gb_sqlite_stmts *stmts)
{
    for (size_t i = 0; i < stmts->count; i++) {
        (void)sqlite3_finalize(
            stmts->prepared[i]); /* repeats the last step's code, known already */
        stmts->prepared[i] = NULL;
    }
}

void gb_sqlite_bind_text(sqlite3_stmt *stmt, int index, struct gb_bytes text)
{
    const char *data = text.size == 0 ? "" : (const char *)text.data; /* a NULL would bind NULL */
    int rc = sqlite3_bind_text64(stmt, index, data, text.size, SQLITE_STATIC, SQLITE_UTF8);
    GB_ASSERT(rc == SQLITE_OK); /* our buffers end far below SQLite's limit of 1 GB */
}

void gb_sqlite_bind_int(sqlite3_stmt *stmt, int index, int64_t value)
{
    int rc = sqlite3_bind_int64(stmt, index, value);
    GB_ASSERT(rc == SQLITE_OK); /* fails for a wrong index or a running statement only */
}

void gb_sqlite_bind_u64(sqlite3_stmt *stmt, int index, uint64_t value)
{
    gb_sqlite_bind_int(stmt, index, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

struct gb_bytes gb_sqlite_text(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return gb_bytes(text, text == NULL ? 0 : (size_t)sqlite3_column_bytes(stmt, column));
}

uint64_t gb_sqlite_u64(sqlite3_stmt *stmt, int column)
{
    int64_t value = sqlite3_column_int64(stmt, column);
    return value < 0 ? 0 : (uint64_t)value;
}

/* The statement is reset at its end and after a fault, so that nothing holds the transaction
 * open. */
bool gb_sqlite_row(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) return true;
    if (rc != SQLITE_DONE) fault_rc(tx, sqlite3_extended_errcode(tx->sql), sqlite3_sql(stmt));
    (void)sqlite3_reset(stmt);
    return false;
}

bool gb_sqlite_run(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt)
{
    bool row = gb_sqlite_row(tx, stmt);
    GB_ASSERT(!row);
    return !gb_sqlite_faulted(tx);
}

bool gb_sqlite_insert(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt, bool *violated)
{
    int rc = sqlite3_step(stmt);
    *violated = (rc & PRIMARY_CODE_MASK) == SQLITE_CONSTRAINT;
    if (rc != SQLITE_DONE && !*violated)
        fault_rc(tx, sqlite3_extended_errcode(tx->sql), sqlite3_sql(stmt));
    (void)sqlite3_reset(stmt);
    return !gb_sqlite_faulted(tx);
}

int64_t gb_sqlite_scalar(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt, int64_t otherwise)
{
    if (stmt == NULL || !gb_sqlite_row(tx, stmt)) return otherwise;
    int64_t value =
        sqlite3_column_type(stmt, 0) == SQLITE_NULL ? otherwise : sqlite3_column_int64(stmt, 0);
    (void)sqlite3_reset(stmt);
    return value;
}
