#ifndef GB_ADAPTERS_SQLITE_DLQ_SQL_H
#define GB_ADAPTERS_SQLITE_DLQ_SQL_H

#include "adapters/sqlite/sqlite_db.h"
#include "domain/dlq_entry.h"

/* Statements and rows of the DLQ on the worker of its database.
 * Owns:   the state its statements; gb_dlq_row_read gives the caller an entry.
 * Thread: worker of the database.
 * Errors: faults go to the transaction; an unreadable row: GB_INVALID_OUTBOX_RECORD naming its
 *         id. */
enum gb_dlq_sql {
    GB_SQL_DLQ_WRITE,
    GB_SQL_DLQ_GET,
    GB_SQL_DLQ_LIST,
    GB_SQL_DLQ_DELETE,
    GB_SQL_DLQ_DELETE_MATCHES,
    GB_SQL_DLQ_COUNT,
    GB_SQL_DLQ_SWEEP,
    GB_SQL_DLQ_TEXTS,
};
extern const char *const gb_dlq_sql_texts[GB_SQL_DLQ_TEXTS];

struct gb_dlq_state {
    struct gb_sqlite_state base;
    struct gb_sqlite_stmts stmts;
    sqlite3_stmt *prepared[GB_SQL_DLQ_TEXTS];
    int64_t retention_ms; /* <= 0: for ever; of the store that wrote last */
    int64_t next_sweep_ms;
};
struct gb_err gb_dlq_state_new(struct gb_sqlite_state **out);

static inline sqlite3_stmt *gb_dlq_stmt(struct gb_dlq_state *s, struct gb_sqlite_tx *tx,
                                        enum gb_dlq_sql which)
{
    return gb_sqlite_stmt(tx, &s->stmts, which);
}
/* `envelope_json` stays until the statement is reset. */
void gb_dlq_row_bind(sqlite3_stmt *stmt, const struct gb_dlq_entry *e,
                     struct gb_bytes envelope_json);
struct gb_err gb_dlq_row_read(sqlite3_stmt *row, struct gb_dlq_entry **out);

#endif
