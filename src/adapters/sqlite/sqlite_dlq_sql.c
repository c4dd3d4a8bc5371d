#include "adapters/sqlite/sqlite_dlq_sql.h"

#include <stdlib.h>

#include "domain/envelope_json.h"

static const int64_t sweep_every_ms = INT64_C(60000);

#define COLUMNS                                                                                    \
    "id,route_id,binding_id,session_id,source_id,correlation_id,address,reason,category,"          \
    "error_code,last_error,redrive_mode,extra_info,envelope_json,failed_at,attempts"
enum { COLUMN_ID, COLUMN_TEXTS = 13, COLUMN_ENVELOPE = 13, COLUMN_FAILED_AT, COLUMN_ATTEMPTS };
enum { COLUMN_EXTRA_INFO = 12, COLUMN_COUNT = 16 };

/* A NULL matches everything; the index on failed_at gives range and order. */
#define MATCHES                                                                                    \
    " WHERE (?1 IS NULL OR route_id=?1) AND (?2 IS NULL OR category=?2)"                           \
    " AND failed_at>=?3 AND failed_at<?4 ORDER BY failed_at,id"

const char *const gb_dlq_sql_texts[GB_SQL_DLQ_TEXTS] = {
    [GB_SQL_DLQ_WRITE] = "INSERT INTO dlq(" COLUMNS
                         ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)"
                         " ON CONFLICT(id) DO NOTHING",
    [GB_SQL_DLQ_GET] = "SELECT " COLUMNS " FROM dlq WHERE id=?1",
    [GB_SQL_DLQ_LIST] = "SELECT " COLUMNS " FROM dlq" MATCHES,
    [GB_SQL_DLQ_DELETE] = "DELETE FROM dlq WHERE id=?1",
    [GB_SQL_DLQ_DELETE_MATCHES] =
        "DELETE FROM dlq WHERE rowid IN (SELECT rowid FROM dlq" MATCHES " LIMIT ?5)",
    [GB_SQL_DLQ_COUNT] = "SELECT count(*) FROM dlq",
    [GB_SQL_DLQ_SWEEP] = ("DELETE FROM dlq WHERE rowid IN (SELECT rowid FROM dlq WHERE"
                          " failed_at<=?1 LIMIT ?2)"),
};

/* --- state --- */

static struct gb_dlq_state *state_of(struct gb_sqlite_state *base)
{
    return GB_CONTAINER_OF(base, struct gb_dlq_state, base);
}

static void forget(struct gb_sqlite_state *base)
{
    (void)base; /* caches nothing but statements */
}

static bool sweep_due(const struct gb_sqlite_state *base, int64_t now_ms)
{
    const struct gb_dlq_state *s = state_of((struct gb_sqlite_state *)(uintptr_t)base);
    bool clock_set_back = now_ms < s->next_sweep_ms - sweep_every_ms;
    return s->retention_ms > 0 && (now_ms >= s->next_sweep_ms || clock_set_back);
}

static void sweep(struct gb_sqlite_state *base, struct gb_sqlite_tx *tx, int64_t rows)
{
    struct gb_dlq_state *s = state_of(base);
    s->next_sweep_ms = tx->now_ms + sweep_every_ms; /* after a failure as well */
    sqlite3_stmt *stmt = gb_dlq_stmt(s, tx, GB_SQL_DLQ_SWEEP);
    if (stmt == NULL) return;
    gb_sqlite_bind_int(stmt, 1, tx->now_ms - s->retention_ms);
    gb_sqlite_bind_int(stmt, 2, rows);
    bool ran = gb_sqlite_run(tx, stmt);
    if (ran && sqlite3_changes64(tx->sql) >= rows) s->next_sweep_ms = tx->now_ms; /* more is left */
}

static void state_free(struct gb_sqlite_state *base)
{
    struct gb_dlq_state *s = state_of(base);
    gb_sqlite_stmts_finalize(&s->stmts);
    free(s);
}

static const struct gb_sqlite_state_ops state_ops = {
    .forget = forget,
    .sweep_due = sweep_due,
    .sweep = sweep,
    .free = state_free,
};

struct gb_err gb_dlq_state_new(struct gb_sqlite_state **out)
{
    struct gb_dlq_state *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("an SQLite DLQ");
    s->base.ops = &state_ops;
    s->stmts = (struct gb_sqlite_stmts){gb_dlq_sql_texts, s->prepared, GB_SQL_DLQ_TEXTS};
    *out = &s->base;
    return gb_ok();
}

/* --- rows --- */

void gb_dlq_row_bind(sqlite3_stmt *stmt, const struct gb_dlq_entry *e,
                     struct gb_bytes envelope_json)
{
    bool no_info = strcmp(e->extra_info, "{}") == 0; /* the column is '' when empty */
    const char *const texts[COLUMN_TEXTS] = {
        e->id,
        e->route_id,
        e->binding_id,
        e->session_id,
        e->source_id,
        e->correlation_id,
        e->address,
        e->reason,
        e->category,
        e->error_code,
        e->last_error,
        e->redrive_mode,
        no_info ? "" : e->extra_info,
    };
    for (int i = 0; i < COLUMN_TEXTS; i++) gb_sqlite_bind_text(stmt, i + 1, gb_bytes_c(texts[i]));
    gb_sqlite_bind_text(stmt, COLUMN_ENVELOPE + 1, envelope_json);
    gb_sqlite_bind_int(stmt, COLUMN_FAILED_AT + 1, e->failed_at_ms);
    gb_sqlite_bind_int(stmt, COLUMN_ATTEMPTS + 1, e->attempts);
}

static struct gb_err bad_row(sqlite3_stmt *row, const char *why)
{
    struct gb_bytes id = gb_sqlite_text(row, COLUMN_ID);
    return gb_err(GB_INVALID_OUTBOX_RECORD, "DLQ row %.*s: %s", (int)(id.size > 64 ? 64 : id.size),
                  (const char *)id.data, why);
}

static struct gb_err check_types(sqlite3_stmt *row)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        int want = i < COLUMN_FAILED_AT ? SQLITE_TEXT : SQLITE_INTEGER;
        if (sqlite3_column_type(row, i) == want) continue;
        char why[96];
        (void)sqlite3_snprintf((int)sizeof why, why, "column %s has the wrong type",
                               sqlite3_column_name(row, i));
        return bad_row(row, why);
    }
    return gb_ok();
}

static struct gb_err fill(struct gb_dlq_entry *e, sqlite3_stmt *row)
{
    char **const members[COLUMN_TEXTS] = {
        NULL,           &e->route_id,       &e->binding_id, &e->session_id,
        &e->source_id,  &e->correlation_id, &e->address,    &e->reason,
        &e->category,   &e->error_code,     &e->last_error, &e->redrive_mode,
        &e->extra_info,
    };
    struct gb_err err = gb_ok();
    for (int i = 1; i < COLUMN_TEXTS && !gb_failed(err); i++) {
        struct gb_bytes text = gb_sqlite_text(row, i);
        err = i == COLUMN_EXTRA_INFO ? gb_dlq_entry_set_extra_info(e, text)
                                     : gb_dlq_set(members[i], text);
    }
    struct gb_bytes id = gb_sqlite_text(row, COLUMN_ID);
    memcpy(e->id, id.data, id.size);
    e->id[id.size] = '\0';
    e->failed_at_ms = sqlite3_column_int64(row, COLUMN_FAILED_AT);
    uint64_t attempts = gb_sqlite_u64(row, COLUMN_ATTEMPTS);
    e->attempts = attempts > UINT32_MAX ? UINT32_MAX : (uint32_t)attempts;
    return err;
}

struct gb_err gb_dlq_row_read(sqlite3_stmt *row, struct gb_dlq_entry **out)
{
    struct gb_err err = check_types(row);
    if (gb_failed(err)) return err;
    struct gb_dlq_entry *e = NULL;
    struct gb_bytes id = gb_sqlite_text(row, COLUMN_ID);
    if (id.size >= sizeof e->id) return bad_row(row, "id is too long");
    if (id.size > 0 && memchr(id.data, '\0', id.size) != NULL) /* it would name another row */
        return bad_row(row, "id holds U+0000");
    struct gb_envelope *envelope = NULL;
    err = gb_envelope_decode(gb_sqlite_text(row, COLUMN_ENVELOPE), &envelope);
    if (err.code == GB_UNAVAILABLE) return err; /* out of memory says nothing about the row */
    if (gb_failed(err)) return bad_row(row, err.message);
    err = gb_dlq_entry_new(envelope, &e);
    gb_envelope_unref(envelope); /* the entry has its own reference */
    if (!gb_failed(err)) err = fill(e, row);
    if (gb_failed(err)) {
        gb_dlq_entry_free(e);
        return err;
    }
    *out = e;
    return err;
}
