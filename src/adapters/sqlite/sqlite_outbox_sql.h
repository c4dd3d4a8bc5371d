#ifndef GB_ADAPTERS_SQLITE_OUTBOX_SQL_H
#define GB_ADAPTERS_SQLITE_OUTBOX_SQL_H

#include "adapters/sqlite/sqlite_db.h"
#include "base/log.h"
#include "base/map.h"
#include "domain/outbox_record.h"
#include "domain/token.h"

/* What the outbox keeps on the worker of its database: statements, and per partition the mark, the
 * last seq and whether the rows lie in claim order. The caches hold because the file's lock admits
 * one process only.
 *
 * Claim order without an index for it: rows get growing rowids, and the index on (partition_key,
 * status) lists equal keys by rowid. So while (created_at, seq) grows with the rowid - it does
 * unless a clock was set back - that index is the claim order and a claim reads what it takes,
 * whatever the backlog is. After an inversion the claims sort until the rows before it have ended
 * (docs/decisions/0202).
 * Owns:   statements, caches, scratch memory.
 * Thread: worker of the database.
 * Errors: faults go to the transaction (sqlite_tx.h). */

enum gb_outbox_sql {
    GB_SQL_PERSIST,
    GB_SQL_FENCE_READ,
    GB_SQL_FENCE_RAISE,
    GB_SQL_MARK_LIVE,   /* highest claim_version of rows that have not ended */
    GB_SQL_MARK_ALL,    /* of all rows: only without a fence row */
    GB_SQL_SEQ_LAST,    /* parameter: status */
    GB_SQL_ORDER,       /* live rows by rowid: to see whether they lie in claim order */
    GB_SQL_FIRST_ROWID, /* of live rows */
    GB_SQL_PENDING,     /* candidates by rowid */
    GB_SQL_CLAIMED,
    GB_SQL_PENDING_SORTED,
    GB_SQL_CLAIMED_SORTED,
    GB_SQL_ROW,
    GB_SQL_CLAIM,
    GB_SQL_COMPLETE,
    GB_SQL_RELEASE,
    GB_SQL_EXPIRE,
    GB_SQL_DEPTH,
    GB_SQL_COUNT, /* parameter: status */
    GB_SQL_OLDEST,
    GB_SQL_OLDEST_SORTED,
    GB_SQL_LOST,
    GB_SQL_SWEEP_COMPLETED,
    GB_SQL_SWEEP_EXPIRED,
    GB_SQL_SWEEP_FENCES,
    GB_SQL_SAVEPOINT,
    GB_SQL_ROLLBACK_TO,
    GB_SQL_RELEASE_SAVEPOINT,
    GB_SQL_OUTBOX_COUNT,
};
extern const char *const gb_outbox_sql_texts[GB_SQL_OUTBOX_COUNT];

struct gb_outbox_partition_cache {
    bool have_mark, have_seq, have_order;
    uint64_t mark;
    bool have_fence; /* the fence row exists */
    bool fence_damaged;
    uint64_t fence; /* its version; a mark found in the rows alone may be higher */
    int64_t fence_updated_ms;
    uint64_t seq;            /* last one given out */
    bool in_order;           /* live rows lie in claim order */
    int64_t disorder_rowid;  /* rows from here on do */
    int64_t last_created_ms; /* of the youngest row */
};
struct gb_outbox_state {
    struct gb_sqlite_state base;
    struct gb_sqlite_stmts stmts;
    sqlite3_stmt *prepared[GB_SQL_OUTBOX_COUNT];
    struct gb_map partitions; /* partition key -> struct gb_outbox_partition_cache */
    struct gb_str partition;  /* scratch: key of the record being stored */
    int64_t retention_ms;     /* negative: for ever; of the store that wrote last */
    int64_t next_sweep_ms;
    struct gb_log_limit corrupt_log, lost_log;
};
struct gb_err gb_outbox_state_new(struct gb_sqlite_state **out);

static inline sqlite3_stmt *gb_outbox_stmt(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                                           enum gb_outbox_sql which)
{
    return gb_sqlite_stmt(tx, &s->stmts, which);
}
/* NULL: fault. The members are loaded by the functions below. */
struct gb_outbox_partition_cache *
gb_outbox_cache(struct gb_outbox_state *s, struct gb_sqlite_tx *tx, struct gb_bytes partition);
/* Highest token version accepted: max of the fence row and every claim_version (spec 05 §8). */
uint64_t gb_outbox_mark(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                        struct gb_outbox_partition_cache *p, struct gb_bytes partition);
/* After gb_outbox_mark: GB_INVALID_CONFIG when the fence row holds no version. */
struct gb_err gb_outbox_mark_check(const struct gb_outbox_partition_cache *p,
                                   const struct gb_sqlite_tx *tx, struct gb_bytes partition);
/* Token validity, mark, raise: GB_STALE_FENCING_TOKEN, or a fault that is in `tx` as well. */
struct gb_err gb_outbox_fence(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                              struct gb_bytes partition, const struct gb_token *token,
                              struct gb_outbox_partition_cache **out);
struct gb_err gb_outbox_stale(const struct gb_token *token, const char *why);
uint64_t gb_outbox_next_seq(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                            struct gb_outbox_partition_cache *p, struct gb_bytes partition);
/* Whether a claim may read the rows by rowid. */
bool gb_outbox_in_order(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                        struct gb_outbox_partition_cache *p, struct gb_bytes partition);
/* A row was stored. */
void gb_outbox_note_order(struct gb_outbox_partition_cache *p, int64_t rowid, int64_t created_ms);

struct gb_outbox_claim;
/* The claim proper, after the fence (sqlite_outbox_claim.c). */
struct gb_err gb_outbox_claim_rows(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                                   struct gb_outbox_partition_cache *p, struct gb_outbox_claim *q,
                                   int64_t stale_ms);

#endif
