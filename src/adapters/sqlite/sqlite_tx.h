#ifndef GB_ADAPTERS_SQLITE_TX_H
#define GB_ADAPTERS_SQLITE_TX_H

#include <sqlite3.h>

#include "base/str.h"

/* One transaction as the statements inside it see it, and the translation of SQLite's codes.
 * A *fault* (disk full, I/O error, corruption, out of memory) ends the whole transaction: it is
 * noted in `fault`, and every request in the transaction fails with it. A request's own refusal
 * (stale token, duplicate) is no fault: it is the request's result, and the transaction goes on.
 * Owns:   gb_sqlite_stmts its prepared statements; the transaction its scratch buffer.
 * Thread: the worker of the database (or the constructor's, before the worker starts).
 * Errors: GB_UNAVAILABLE with SQLite's text and the path, for every code (spec 05 §8). */
struct gb_sqlite_tx {
    sqlite3 *sql;
    const char *path;
    int64_t now_ms;        /* wall clock of the transaction */
    struct gb_str scratch; /* for an encoded envelope */
    struct gb_err fault;   /* GB_OK: none */
    bool unhealthy;        /* the fault, or a row found corrupt, counts on SQLiteStoreUnhealthy */
};

struct gb_sqlite_stmts {
    const char *const *texts;
    sqlite3_stmt **prepared; /* `count` entries, NULL until first used */
    size_t count;
};
/* NULL: fault. */
sqlite3_stmt *gb_sqlite_stmt(struct gb_sqlite_tx *tx, struct gb_sqlite_stmts *stmts, size_t index);
void gb_sqlite_stmts_finalize(struct gb_sqlite_stmts *stmts);

/* SQLite keeps the pointer: the bytes stay until the statement is reset. */
void gb_sqlite_bind_text(sqlite3_stmt *stmt, int index, struct gb_bytes text);
void gb_sqlite_bind_int(sqlite3_stmt *stmt, int index, int64_t value);
/* Versions and counters are unsigned; above INT64_MAX they are cut to it (spec 05 §1.2 never
 * reaches it). */
void gb_sqlite_bind_u64(sqlite3_stmt *stmt, int index, uint64_t value);
struct gb_bytes gb_sqlite_text(sqlite3_stmt *stmt, int column); /* valid until the next step */
uint64_t gb_sqlite_u64(sqlite3_stmt *stmt, int column);         /* negative: 0 */

/* True: a row is there. False: the end, or a fault; the statement is reset. */
bool gb_sqlite_row(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt);
/* Runs a statement without result; false: fault. */
bool gb_sqlite_run(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt);
/* As gb_sqlite_run, but a violated constraint is not a fault: `*violated`. */
bool gb_sqlite_insert(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt, bool *violated);
/* One integer, `otherwise` without a row or on a fault; `stmt` may be NULL after a fault. */
int64_t gb_sqlite_scalar(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt, int64_t otherwise);
void gb_sqlite_fault(struct gb_sqlite_tx *tx, struct gb_err err);
static inline bool gb_sqlite_faulted(const struct gb_sqlite_tx *tx)
{
    return tx->fault.code != GB_OK;
}

/* The error of a failed SQLite call; `doing` completes "sqlite <path>: <doing>: ...". */
struct gb_err gb_sqlite_err(sqlite3 *sql, int rc, const char *path, const char *doing);
/* Disk full, corruption, read-only, not a database (spec 05 §2.7). */
bool gb_sqlite_is_unhealthy(int rc);
/* Refuses when the path no longer names the open file: a commit would succeed and leave nothing
 * that the next process finds. Asked before a write that lets its source forget the message; reads
 * and settlements go on, so that what the file holds is still sent. */
struct gb_err gb_sqlite_in_place(struct gb_sqlite_tx *tx);
/* Runs one text without results outside of any cache. */
struct gb_err gb_sqlite_exec(sqlite3 *sql, const char *path, const char *text);

#endif
