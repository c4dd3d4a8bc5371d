#include "adapters/sqlite/sqlite_outbox_sql.h"

#include <stdlib.h>

enum { PARTITIONS_CACHED_MAX = 4096 };
static const int64_t hour_ms = INT64_C(3600000);
static const int64_t day_ms = INT64_C(86400000);
static const int64_t fence_keep_ms = INT64_C(30) * INT64_C(86400000); /* spec 05 §8: 30 d */
static const int64_t sweep_every_ms = INT64_C(60000);

#define LIVE "(status='pending' OR status='claimed')"
#define CANDIDATE_COLUMNS                                                                          \
    "SELECT rowid,created_at,seq,ordering_key,claim_version,claimed_at FROM outbox"
#define HELD                                                                                       \
    " WHERE id=?2 AND partition_key=?1 AND status='claimed' AND claimed_by=?3 AND "                \
    "claim_version=?4"

const char *const gb_outbox_sql_texts[GB_SQL_OUTBOX_COUNT] = {
    /* A clash of record ids is no conflict to ignore: it would lose a message. */
    [GB_SQL_PERSIST] =
        "INSERT INTO outbox(id,partition_key,route_id,envelope_id,binding_id,session_id,address,"
        "envelope_json,headers_json,created_at,expires_at,seq,ordering_key)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"
        " ON CONFLICT(partition_key,envelope_id,binding_id) DO NOTHING",
    [GB_SQL_FENCE_READ] =
        "SELECT max_version,updated_at FROM outbox_partition_fence WHERE partition_key=?1",
    [GB_SQL_FENCE_RAISE] =
        "INSERT INTO outbox_partition_fence(partition_key,max_version,updated_at) VALUES(?1,?2,?3)"
        " ON CONFLICT(partition_key) DO UPDATE SET"
        " max_version=max(max_version,excluded.max_version),updated_at=excluded.updated_at",
    [GB_SQL_MARK_LIVE] =
        "SELECT max(claim_version) FROM outbox WHERE partition_key=?1 AND status IN"
        " ('pending','claimed')",
    [GB_SQL_MARK_ALL] = "SELECT max(claim_version) FROM outbox WHERE partition_key=?1",
    [GB_SQL_SEQ_LAST] = "SELECT seq FROM outbox WHERE partition_key=?1 AND status=?2"
                        " ORDER BY rowid DESC LIMIT 1",
    [GB_SQL_ORDER] = "SELECT rowid,created_at,seq FROM outbox WHERE partition_key=?1 AND status IN"
                     " ('pending','claimed') ORDER BY rowid",
    [GB_SQL_FIRST_ROWID] =
        "SELECT min(r) FROM (SELECT min(rowid) AS r FROM outbox WHERE partition_key=?1 AND"
        " status='pending' UNION ALL SELECT min(rowid) FROM outbox WHERE partition_key=?1 AND"
        " status='claimed')",
    [GB_SQL_PENDING] =
        CANDIDATE_COLUMNS " WHERE partition_key=?1 AND status='pending' ORDER BY rowid",
    [GB_SQL_CLAIMED] =
        CANDIDATE_COLUMNS " WHERE partition_key=?1 AND status='claimed' ORDER BY rowid",
    [GB_SQL_PENDING_SORTED] = CANDIDATE_COLUMNS " WHERE partition_key=?1 AND status='pending'"
                                                " ORDER BY created_at,seq,envelope_id",
    [GB_SQL_CLAIMED_SORTED] = CANDIDATE_COLUMNS " WHERE partition_key=?1 AND status='claimed'"
                                                " ORDER BY created_at,seq,envelope_id",
    [GB_SQL_ROW] =
        "SELECT id,route_id,binding_id,session_id,address,envelope_json,headers_json,ordering_key,"
        "created_at,expires_at,seq,first_attempted_at,replay_count,envelope_id FROM outbox"
        " WHERE rowid=?1",
    [GB_SQL_CLAIM] =
        "UPDATE outbox SET status='claimed',claimed_by=?2,claim_version=?3,claimed_at=?4,"
        "first_attempted_at=?5,replay_count=?6 WHERE rowid=?1 AND " LIVE,
    [GB_SQL_COMPLETE] = "UPDATE outbox SET status='completed',completed_at=?5" HELD,
    [GB_SQL_RELEASE] = "UPDATE outbox SET status='pending',claimed_by='',claimed_at=0" HELD,
    [GB_SQL_EXPIRE] = "UPDATE outbox SET status='expired' WHERE partition_key=?1 AND"
                      " status='pending' AND expires_at>0 AND expires_at<?2",
    [GB_SQL_DEPTH] = "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE partition_key=?1 AND"
                     " status='pending' LIMIT ?2)",
    [GB_SQL_COUNT] = "SELECT count(*) FROM outbox WHERE partition_key=?1 AND status=?2",
    [GB_SQL_OLDEST] = "SELECT created_at FROM outbox WHERE partition_key=?1 AND status='pending'"
                      " ORDER BY rowid LIMIT 1",
    [GB_SQL_OLDEST_SORTED] =
        "SELECT min(created_at) FROM outbox WHERE partition_key=?1 AND status='pending'",
    /* A row with a status of nobody's; one look between two neighbours each. */
    [GB_SQL_LOST] =
        "SELECT id,rowid FROM outbox WHERE partition_key=?1 AND status<'claimed'"
        " UNION ALL SELECT id,rowid FROM outbox WHERE partition_key=?1 AND status>'claimed' AND"
        " status<'completed' UNION ALL SELECT id,rowid FROM outbox WHERE partition_key=?1 AND"
        " status>'completed' AND status<'expired' UNION ALL SELECT id,rowid FROM outbox WHERE"
        " partition_key=?1 AND status>'expired' AND status<'pending' UNION ALL SELECT id,rowid FROM"
        " outbox WHERE partition_key=?1 AND status>'pending' LIMIT 1",
    [GB_SQL_SWEEP_COMPLETED] = "DELETE FROM outbox WHERE rowid IN (SELECT rowid FROM outbox WHERE"
                               " status='completed' AND completed_at<=?1 LIMIT ?2)",
    [GB_SQL_SWEEP_EXPIRED] = "DELETE FROM outbox WHERE rowid IN (SELECT rowid FROM outbox WHERE"
                             " status='expired' AND expires_at<=?1 LIMIT ?2)",
    [GB_SQL_SWEEP_FENCES] = "DELETE FROM outbox_partition_fence WHERE updated_at<?1",
    [GB_SQL_SAVEPOINT] = "SAVEPOINT request",
    [GB_SQL_ROLLBACK_TO] = "ROLLBACK TO request",
    [GB_SQL_RELEASE_SAVEPOINT] = "RELEASE request",
};

/* --- state --- */

static struct gb_outbox_state *state_of(struct gb_sqlite_state *base)
{
    return GB_CONTAINER_OF(base, struct gb_outbox_state, base);
}

static void forget_partitions(struct gb_sqlite_state *base)
{
    struct gb_outbox_state *s = state_of(base);
    size_t cursor = 0;
    struct gb_bytes key;
    void *cache;
    while (gb_map_next(&s->partitions, &cursor, &key, &cache)) free(cache);
    gb_map_deinit(&s->partitions);
}

static void state_free(struct gb_sqlite_state *base)
{
    struct gb_outbox_state *s = state_of(base);
    forget_partitions(base);
    gb_sqlite_stmts_finalize(&s->stmts);
    gb_str_deinit(&s->partition);
    free(s);
}

static bool sweep_due(const struct gb_sqlite_state *base, int64_t now_ms)
{
    const struct gb_outbox_state *s = state_of((struct gb_sqlite_state *)(uintptr_t)base);
    bool clock_set_back = now_ms < s->next_sweep_ms - sweep_every_ms;
    return s->retention_ms >= 0 && (now_ms >= s->next_sweep_ms || clock_set_back);
}

static int64_t delete_old(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                          enum gb_outbox_sql which, int64_t until_ms, int64_t rows)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, which);
    if (stmt == NULL) return 0;
    gb_sqlite_bind_int(stmt, 1, until_ms);
    if (sqlite3_bind_parameter_count(stmt) > 1) gb_sqlite_bind_int(stmt, 2, rows);
    return gb_sqlite_run(tx, stmt) ? sqlite3_changes64(tx->sql) : 0;
}

/* At most once a minute, then in pieces until nothing is left: a piece is a few rows for each
 * request of the transaction before it, so that deleting keeps up with writing and delays no commit
 * by much. */
static void sweep(struct gb_sqlite_state *base, struct gb_sqlite_tx *tx, int64_t rows)
{
    struct gb_outbox_state *s = state_of(base);
    int64_t until_ms = tx->now_ms - s->retention_ms;
    int64_t keep_ms = s->retention_ms > fence_keep_ms ? s->retention_ms : fence_keep_ms;
    s->next_sweep_ms = tx->now_ms + sweep_every_ms; /* after a failure as well */
    bool more = delete_old(s, tx, GB_SQL_SWEEP_COMPLETED, until_ms, rows) >= rows;
    more = delete_old(s, tx, GB_SQL_SWEEP_EXPIRED, until_ms, rows) >= rows || more;
    (void)delete_old(s, tx, GB_SQL_SWEEP_FENCES, tx->now_ms - keep_ms, rows);
    if (more && !gb_sqlite_faulted(tx)) s->next_sweep_ms = tx->now_ms;
}

static const struct gb_sqlite_state_ops state_ops = {
    .forget = forget_partitions,
    .sweep_due = sweep_due,
    .sweep = sweep,
    .free = state_free,
};

struct gb_err gb_outbox_state_new(struct gb_sqlite_state **out)
{
    struct gb_outbox_state *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("an SQLite outbox");
    s->base.ops = &state_ops;
    s->stmts = (struct gb_sqlite_stmts){gb_outbox_sql_texts, s->prepared, GB_SQL_OUTBOX_COUNT};
    s->retention_ms = hour_ms;
    *out = &s->base;
    return gb_ok();
}

/* --- partitions --- */

struct gb_outbox_partition_cache *
gb_outbox_cache(struct gb_outbox_state *s, struct gb_sqlite_tx *tx, struct gb_bytes partition)
{
    struct gb_outbox_partition_cache *p = gb_map_get(&s->partitions, partition);
    if (p != NULL) return p;
    if (s->partitions.count >= PARTITIONS_CACHED_MAX) forget_partitions(&s->base);
    p = calloc(1, sizeof *p);
    struct gb_err err = p == NULL ? gb_err_no_memory("an outbox partition")
                                  : gb_map_put(&s->partitions, partition, p);
    if (!gb_failed(err)) return p;
    free(p);
    gb_sqlite_fault(tx, err);
    return NULL;
}

static int64_t scalar_of(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                         enum gb_outbox_sql which, struct gb_bytes partition, const char *status,
                         int64_t otherwise)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, which);
    if (stmt == NULL) return otherwise;
    gb_sqlite_bind_text(stmt, 1, partition);
    if (status != NULL) gb_sqlite_bind_text(stmt, 2, gb_bytes_c(status));
    return gb_sqlite_scalar(tx, stmt, otherwise);
}

/* With a fence row, ended rows need no look: each claim wrote the fence row in its own transaction.
 * They are many, for an hour of traffic. */
uint64_t gb_outbox_mark(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                        struct gb_outbox_partition_cache *p, struct gb_bytes partition)
{
    if (p->have_mark) return p->mark;
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_FENCE_READ);
    if (stmt == NULL) return 0;
    gb_sqlite_bind_text(stmt, 1, partition);
    p->have_fence = gb_sqlite_row(tx, stmt);
    p->fence_damaged = p->have_fence && (sqlite3_column_type(stmt, 0) != SQLITE_INTEGER ||
                                         sqlite3_column_int64(stmt, 0) < 0);
    p->fence = p->have_fence ? gb_sqlite_u64(stmt, 0) : 0;
    p->mark = p->fence;
    p->fence_updated_ms = p->have_fence ? sqlite3_column_int64(stmt, 1) : 0;
    (void)sqlite3_reset(stmt); /* a fault was noted by the step */
    enum gb_outbox_sql rows = p->mark > 0 ? GB_SQL_MARK_LIVE : GB_SQL_MARK_ALL;
    int64_t highest = scalar_of(s, tx, rows, partition, NULL, 0);
    if (highest > 0 && (uint64_t)highest > p->mark) p->mark = (uint64_t)highest;
    p->have_mark = !gb_sqlite_faulted(tx) && !p->fence_damaged;
    return p->mark;
}

/* Fences a partition whose mark is lost: a guess could let an old owner back in. */
struct gb_err gb_outbox_mark_check(const struct gb_outbox_partition_cache *p,
                                   const struct gb_sqlite_tx *tx, struct gb_bytes partition)
{
    if (gb_sqlite_faulted(tx)) return tx->fault;
    if (!p->fence_damaged) return gb_ok();
    return gb_err(GB_INVALID_CONFIG,
                  "sqlite path %s: outbox_partition_fence of %.*s: max_version is no version; set "
                  "it to the highest claim_version of that partition in outbox",
                  tx->path, (int)(partition.size > 128 ? 128 : partition.size),
                  (const char *)partition.data);
}

struct gb_err gb_outbox_stale(const struct gb_token *token, const char *why)
{
    return gb_err(GB_STALE_FENCING_TOKEN, "fencing token of %.*s, version %llu: %s",
                  (int)token->owner.size, (const char *)token->owner.data,
                  (unsigned long long)token->version, why);
}

/* The row is written when the mark rises, and once a day so that retention sees that it is in use.
 * An idle poll writes nothing. */
static void raise_mark(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                       struct gb_outbox_partition_cache *p, struct gb_bytes partition,
                       uint64_t version)
{
    bool fresh = tx->now_ms - p->fence_updated_ms < day_ms && tx->now_ms >= p->fence_updated_ms;
    if (p->have_fence && fresh && version <= p->fence) return;
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_FENCE_RAISE);
    if (stmt == NULL) return;
    gb_sqlite_bind_text(stmt, 1, partition);
    gb_sqlite_bind_u64(stmt, 2, version);
    gb_sqlite_bind_int(stmt, 3, tx->now_ms);
    if (!gb_sqlite_run(tx, stmt)) return;
    p->mark = version;
    p->fence = version;
    p->have_fence = true;
    p->fence_updated_ms = tx->now_ms;
}

struct gb_err gb_outbox_fence(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                              struct gb_bytes partition, const struct gb_token *token,
                              struct gb_outbox_partition_cache **out)
{
    if (!gb_token_valid(token)) return gb_outbox_stale(token, "owner or version is empty");
    struct gb_outbox_partition_cache *p = gb_outbox_cache(s, tx, partition);
    if (p == NULL) return tx->fault;
    uint64_t mark = gb_outbox_mark(s, tx, p, partition);
    struct gb_err err = gb_outbox_mark_check(p, tx, partition);
    if (gb_failed(err)) return err;
    if (token->version < mark) return gb_outbox_stale(token, "a later owner was here");
    raise_mark(s, tx, p, partition, token->version);
    *out = p;
    return tx->fault;
}

/* seq grows with the rowid, so the youngest row of each status has the highest. */
uint64_t gb_outbox_next_seq(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                            struct gb_outbox_partition_cache *p, struct gb_bytes partition)
{
    static const char *const statuses[] = {"pending", "claimed", "completed", "expired"};
    if (!p->have_seq) {
        p->seq = 0;
        for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
            int64_t seq = scalar_of(s, tx, GB_SQL_SEQ_LAST, partition, statuses[i], 0);
            if (seq > 0 && (uint64_t)seq > p->seq) p->seq = (uint64_t)seq;
        }
        p->have_seq = !gb_sqlite_faulted(tx);
    }
    return ++p->seq;
}

void gb_outbox_note_order(struct gb_outbox_partition_cache *p, int64_t rowid, int64_t created_ms)
{
    if (!p->have_order) return;
    if (created_ms < p->last_created_ms) {
        p->in_order = false;
        p->disorder_rowid = rowid;
    }
    p->last_created_ms = created_ms;
}

static void load_order(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                       struct gb_outbox_partition_cache *p, struct gb_bytes partition)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_ORDER);
    if (stmt == NULL) return;
    gb_sqlite_bind_text(stmt, 1, partition);
    int64_t created_ms = INT64_MIN;
    int64_t seq = INT64_MIN;
    p->in_order = true;
    while (gb_sqlite_row(tx, stmt)) {
        int64_t row_created_ms = sqlite3_column_int64(stmt, 1);
        int64_t row_seq = sqlite3_column_int64(stmt, 2);
        if (row_created_ms < created_ms || (row_created_ms == created_ms && row_seq <= seq)) {
            p->in_order = false;
            p->disorder_rowid = sqlite3_column_int64(stmt, 0);
        }
        created_ms = row_created_ms;
        seq = row_seq;
    }
    p->last_created_ms = created_ms;
    p->have_order = !gb_sqlite_faulted(tx);
}

bool gb_outbox_in_order(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                        struct gb_outbox_partition_cache *p, struct gb_bytes partition)
{
    if (!p->have_order) {
        load_order(s, tx, p, partition);
    } else if (!p->in_order) {
        int64_t first = scalar_of(s, tx, GB_SQL_FIRST_ROWID, partition, NULL, INT64_MAX);
        p->in_order = first >= p->disorder_rowid;
    }
    return p->in_order;
}
