#include <stdlib.h>

#include "adapters/sqlite/sqlite_outbox_sql.h"
#include "domain/envelope_json.h"
#include "ports/outbox.h"

/* The claim in one transaction (spec 05 §2.3, §2.4): read the live rows oldest first, pending and
 * claimed merged; take what may be taken; then mark what was taken as claimed. */

enum { CLAIM_MAX = 16384 }; /* a longer wish gets a short batch, which is legal */
static const uint64_t corrupt_log_every_ns = UINT64_C(60000000000);
enum { NS_PER_MS = 1000000 };

enum {
    CANDIDATE_ROWID,
    CANDIDATE_CREATED,
    CANDIDATE_SEQ,
    CANDIDATE_KEY,
    CANDIDATE_VERSION,
    CANDIDATE_CLAIMED_AT
};

struct cursor {
    sqlite3_stmt *stmt;
    bool row; /* stands on one */
};
struct claim {
    struct gb_outbox_state *state;
    struct gb_sqlite_tx *tx;
    struct gb_outbox_claim *q;
    int64_t stale_ms;
    struct cursor pending, claimed;
    struct gb_map blocked; /* keys of which an older row stays behind */
    struct gb_outbox_batch *batch;
    int64_t *rowids;       /* of the batch's records */
    struct gb_err corrupt; /* the first row that can't be read */
};

/* --- candidates in order --- */

static bool open_cursor(struct claim *c, struct cursor *at, enum gb_outbox_sql which)
{
    at->stmt = gb_outbox_stmt(c->state, c->tx, which);
    if (at->stmt == NULL) return false;
    gb_sqlite_bind_text(at->stmt, 1, c->q->partition);
    at->row = gb_sqlite_row(c->tx, at->stmt);
    return !gb_sqlite_faulted(c->tx);
}

static void close_cursor(struct cursor *at)
{
    if (at->row) (void)sqlite3_reset(at->stmt); /* not at its end, so no error to report */
    at->row = false;
}

static bool stands_before(const struct cursor *a, const struct cursor *b)
{
    static const int columns[] = {CANDIDATE_CREATED, CANDIDATE_SEQ, CANDIDATE_ROWID};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        int64_t x = sqlite3_column_int64(a->stmt, columns[i]);
        int64_t y = sqlite3_column_int64(b->stmt, columns[i]);
        if (x != y) return x < y;
    }
    return false;
}

static struct cursor *oldest(struct claim *c)
{
    if (!c->pending.row) return c->claimed.row ? &c->claimed : NULL;
    if (!c->claimed.row) return &c->pending;
    return stands_before(&c->claimed, &c->pending) ? &c->claimed : &c->pending;
}

/* A claim is taken over by a higher version at once, at the same version when it is stale
 * (inclusive, §2.6). */
static bool reclaimable(const struct claim *c, const struct cursor *at)
{
    if (gb_sqlite_u64(at->stmt, CANDIDATE_VERSION) < c->q->token.version) return true;
    int64_t claimed_ms = sqlite3_column_int64(at->stmt, CANDIDATE_CLAIMED_AT);
    return c->stale_ms > 0 && c->tx->now_ms - claimed_ms >= c->stale_ms;
}

static bool block(struct claim *c, struct gb_bytes key)
{
    if (key.size == 0) return true;
    struct gb_err err = gb_map_put(&c->blocked, key, c);
    if (gb_failed(err)) gb_sqlite_fault(c->tx, err);
    return !gb_failed(err);
}

/* --- one row --- */

static struct gb_err bad_row(struct gb_bytes id, int64_t rowid, const char *why)
{
    return gb_err(GB_INVALID_OUTBOX_RECORD, "outbox row %lld, id %.*s: %s", (long long)rowid,
                  (int)(id.size > 64 ? 64 : id.size), (const char *)id.data, why);
}

/* Columns as gb_outbox_sql_texts[GB_SQL_ROW] lists them. */
static struct gb_err check_types(sqlite3_stmt *row, int64_t rowid)
{
    static const int types[] = {
        SQLITE_TEXT,
        SQLITE_TEXT,
        SQLITE_TEXT,
        SQLITE_TEXT,
        SQLITE_TEXT,
        SQLITE_TEXT,
        0,
        SQLITE_TEXT,
        SQLITE_INTEGER,
        SQLITE_INTEGER,
        SQLITE_INTEGER,
        SQLITE_INTEGER,
        SQLITE_INTEGER,
        SQLITE_TEXT,
    };
    for (int i = 0; i < (int)(sizeof types / sizeof types[0]); i++) {
        if (types[i] == 0 || sqlite3_column_type(row, i) == types[i]) continue;
        char why[96];
        (void)sqlite3_snprintf((int)sizeof why, why, "column %s has the wrong type",
                               sqlite3_column_name(row, i));
        return bad_row(gb_sqlite_text(row, 0), rowid, why);
    }
    return gb_ok();
}

static struct gb_err read_record(sqlite3_stmt *row, int64_t rowid, struct gb_outbox_record *out)
{
    struct gb_err err = check_types(row, rowid);
    if (gb_failed(err)) return err;
    uint64_t replays = gb_sqlite_u64(row, 12);
    *out = (struct gb_outbox_record){
        .id = gb_sqlite_text(row, 0),
        .route_id = gb_sqlite_text(row, 1),
        .binding_id = gb_sqlite_text(row, 2),
        .session_id = gb_sqlite_text(row, 3),
        .address = gb_sqlite_text(row, 4),
        .dispatch_headers = gb_sqlite_text(row, 6),
        .ordering_key = gb_sqlite_text(row, 7),
        .created_at_ms = sqlite3_column_int64(row, 8),
        .expires_at_ms = sqlite3_column_int64(row, 9),
        .seq = gb_sqlite_u64(row, 10),
        .first_attempted_at_ms = sqlite3_column_int64(row, 11),
        .replay_count = replays > UINT32_MAX ? UINT32_MAX : (uint32_t)replays,
    };
    err = gb_envelope_decode(gb_sqlite_text(row, 5), &out->envelope);
    if (err.code == GB_UNAVAILABLE) return err; /* out of memory says nothing about the row */
    if (gb_failed(err)) return bad_row(out->id, rowid, err.message);
    if (gb_bytes_equal(out->envelope->id, gb_sqlite_text(row, 13))) return gb_ok();
    gb_envelope_unref(out->envelope);
    return bad_row(out->id, rowid, "envelope_json and envelope_id differ");
}

/* The row stays as it is and holds its key back; the others flow (docs/decisions/0203). */
static void report_corrupt(struct claim *c, const struct gb_err *err)
{
    uint64_t suppressed = 0;
    c->tx->unhealthy = true;
    if (!gb_failed(c->corrupt)) c->corrupt = *err;
    uint64_t now_ns = (uint64_t)c->tx->now_ms * NS_PER_MS;
    if (!gb_log_allow(&c->state->corrupt_log, now_ns, corrupt_log_every_ns, &suppressed)) return;
    GB_LOG(GB_LOG_ERROR, "outbox row can't be read and is skipped; repair or delete it",
           gb_lf_str("path", c->tx->path), gb_lf_int("suppressed", (int64_t)suppressed),
           gb_lf_err(err));
}

/* Adds the row to the batch. Returns false when the claim can't go on: out of memory, fault. */
static bool take(struct claim *c, const struct cursor *at)
{
    int64_t rowid = sqlite3_column_int64(at->stmt, CANDIDATE_ROWID);
    sqlite3_stmt *row = gb_outbox_stmt(c->state, c->tx, GB_SQL_ROW);
    if (row == NULL) return false;
    gb_sqlite_bind_int(row, 1, rowid);
    if (!gb_sqlite_row(c->tx, row)) return !gb_sqlite_faulted(c->tx);
    struct gb_outbox_record record = {0};
    struct gb_err err = read_record(row, rowid, &record);
    if (!gb_failed(err)) {
        record.claim_version = c->q->token.version;
        if (record.replay_count < UINT32_MAX) record.replay_count++;
        if (record.first_attempted_at_ms == 0) record.first_attempted_at_ms = c->tx->now_ms;
        c->rowids[c->batch->count] = rowid;
        err = gb_outbox_batch_add(c->batch, &record);
        if (gb_failed(err)) gb_envelope_unref(record.envelope);
    }
    (void)sqlite3_reset(row); /* on a row, so no error to report */
    if (err.code == GB_INVALID_OUTBOX_RECORD) {
        report_corrupt(c, &err);
        return block(c, gb_sqlite_text(at->stmt, CANDIDATE_KEY));
    }
    if (gb_failed(err)) gb_sqlite_fault(c->tx, err);
    return !gb_failed(err);
}

/* --- the two halves --- */

static bool select_rows(struct claim *c, uint32_t limit)
{
    bool going = true;
    while (going && c->batch->count < limit) {
        struct cursor *at = oldest(c);
        if (at == NULL) break;
        struct gb_bytes key = gb_sqlite_text(at->stmt, CANDIDATE_KEY);
        bool held_back = key.size > 0 && gb_map_has(&c->blocked, key);
        if (at == &c->claimed && !reclaimable(c, at)) {
            going = block(c, key);
        } else if (!held_back) {
            going = take(c, at);
        }
        if (going) at->row = gb_sqlite_row(c->tx, at->stmt);
    }
    close_cursor(&c->pending);
    close_cursor(&c->claimed);
    return !gb_sqlite_faulted(c->tx);
}

static bool mark_rows(struct claim *c)
{
    for (size_t i = 0; i < c->batch->count; i++) {
        const struct gb_outbox_record *r = &c->batch->records[i];
        sqlite3_stmt *stmt = gb_outbox_stmt(c->state, c->tx, GB_SQL_CLAIM);
        if (stmt == NULL) return false;
        gb_sqlite_bind_int(stmt, 1, c->rowids[i]);
        gb_sqlite_bind_text(stmt, 2, c->q->token.owner);
        gb_sqlite_bind_u64(stmt, 3, c->q->token.version);
        gb_sqlite_bind_int(stmt, 4, c->tx->now_ms);
        gb_sqlite_bind_int(stmt, 5, r->first_attempted_at_ms);
        gb_sqlite_bind_int(stmt, 6, r->replay_count);
        if (!gb_sqlite_run(c->tx, stmt)) return false;
        if (sqlite3_changes(c->tx->sql) == 1) continue;
        /* Read in this very transaction: only a trigger of somebody else's can have stopped it. */
        gb_sqlite_fault(c->tx, gb_err(GB_UNAVAILABLE, "sqlite %s: outbox row %lld can't be claimed",
                                      c->tx->path, (long long)c->rowids[i]));
        return false;
    }
    return true;
}

static bool claim_into(struct claim *c, struct gb_outbox_partition_cache *p, uint32_t limit)
{
    bool in_order = gb_outbox_in_order(c->state, c->tx, p, c->q->partition);
    if (gb_sqlite_faulted(c->tx)) return false;
    return open_cursor(c, &c->pending, in_order ? GB_SQL_PENDING : GB_SQL_PENDING_SORTED) &&
           open_cursor(c, &c->claimed, in_order ? GB_SQL_CLAIMED : GB_SQL_CLAIMED_SORTED) &&
           select_rows(c, limit) && mark_rows(c);
}

struct gb_err gb_outbox_claim_rows(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                                   struct gb_outbox_partition_cache *p, struct gb_outbox_claim *q,
                                   int64_t stale_ms)
{
    uint32_t limit = q->limit < CLAIM_MAX ? q->limit : CLAIM_MAX;
    struct claim c = {.state = s, .tx = tx, .q = q, .stale_ms = stale_ms};
    struct gb_err err = gb_outbox_batch_new(limit, &c.batch);
    c.rowids = calloc(limit, sizeof *c.rowids);
    if (!gb_failed(err) && c.rowids == NULL) err = gb_err_no_memory("a claim");
    if (gb_failed(err)) gb_sqlite_fault(tx, err);
    GB_ASSERT(gb_failed(err) || (c.batch != NULL && c.rowids != NULL));
    if (!gb_failed(err) && claim_into(&c, p, limit)) {
        err = c.batch->count == 0 ? c.corrupt : gb_ok();
    } else {
        err = tx->fault;
    }
    close_cursor(&c.pending);
    close_cursor(&c.claimed);
    if (!gb_failed(err) && c.batch->count > 0) {
        q->batch = c.batch;
        c.batch = NULL;
    }
    gb_outbox_batch_free(c.batch);
    gb_map_deinit(&c.blocked);
    free(c.rowids);
    return err;
}
