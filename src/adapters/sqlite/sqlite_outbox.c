#include "adapters/sqlite/sqlite_outbox.h"

#include <stdlib.h>

#include "adapters/sqlite/sqlite_outbox_sql.h"
#include "domain/envelope_json.h"

enum { NS_PER_MS = 1000000, RECORD_BYTES = 512 };
static const int64_t hour_ms = INT64_C(3600000);

enum verb { PERSIST, CLAIM, SETTLE, EXPIRE, DEPTH, STATS, VERBS };

struct sqlite_outbox {
    struct gb_outbox port;
    struct gb_sqlite_user user;
    struct gb_sqlite_verb verbs[VERBS];
    int64_t stale_ms;     /* <= 0: by version only */
    int64_t retention_ms; /* negative: for ever */
};

static struct sqlite_outbox *self(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct sqlite_outbox, port);
}

static struct sqlite_outbox *store_of(struct gb_sqlite_verb *verb)
{
    return GB_CONTAINER_OF(verb->user, struct sqlite_outbox, user);
}

static struct gb_outbox_state *state_of(struct gb_sqlite_verb *verb)
{
    struct gb_outbox_state *s = GB_CONTAINER_OF(verb->user->state, struct gb_outbox_state, base);
    s->retention_ms = store_of(verb)->retention_ms;
    return s;
}

static void submit(struct gb_outbox *o, enum verb verb, struct gb_op *op, gb_done_fn *done,
                   void *arg)
{
    gb_sqlite_user_submit(&self(o)->verbs[verb], op, done, arg);
}

/* --- persist --- */

static size_t persist_bytes(const struct gb_op *op)
{
    const struct gb_outbox_persist *q =
        GB_CONTAINER_OF((void *)(uintptr_t)op, struct gb_outbox_persist, op);
    size_t bytes = 0;
    for (size_t i = 0; i < q->count; i++)
        bytes += RECORD_BYTES + gb_envelope_size(q->records[i].envelope);
    return bytes;
}

static void bind_record(sqlite3_stmt *stmt, const struct gb_outbox_record *r,
                        struct gb_bytes partition, struct gb_bytes envelope_json)
{
    gb_sqlite_bind_text(stmt, 1, r->id);
    gb_sqlite_bind_text(stmt, 2, partition);
    gb_sqlite_bind_text(stmt, 3, r->route_id);
    gb_sqlite_bind_text(stmt, 4, r->envelope->id);
    gb_sqlite_bind_text(stmt, 5, r->binding_id);
    gb_sqlite_bind_text(stmt, 6, r->session_id);
    gb_sqlite_bind_text(stmt, 7, r->address);
    gb_sqlite_bind_text(stmt, 8, envelope_json);
    if (r->dispatch_headers.size > 0) {
        gb_sqlite_bind_text(stmt, 9, r->dispatch_headers);
    } else {
        int rc = sqlite3_bind_null(stmt, 9);
        GB_ASSERT(rc == SQLITE_OK);
    }
    gb_sqlite_bind_int(stmt, 11, r->expires_at_ms);
    gb_sqlite_bind_text(stmt, 13, r->ordering_key);
}

/* `*stored` counts; an existing identity is skipped (spec 05 §2.3). A failure other than a fault
 * has changed nothing. */
static struct gb_err persist_record(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                                    const struct gb_outbox_record *r, size_t *stored)
{
    gb_str_clear(&s->partition);
    gb_outbox_partition(&s->partition, r->session_id, r->binding_id);
    gb_str_clear(&tx->scratch);
    gb_envelope_encode(&tx->scratch, r->envelope);
    struct gb_err err = gb_str_check(&s->partition, "a partition key");
    if (!gb_failed(err)) err = gb_str_check(&tx->scratch, "an envelope's JSON text");
    if (gb_failed(err)) return err;
    struct gb_bytes partition = gb_str_bytes(&s->partition);
    struct gb_outbox_partition_cache *p = gb_outbox_cache(s, tx, partition);
    if (p == NULL) return tx->fault;
    uint64_t seq = gb_outbox_next_seq(s, tx, p, partition);
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_PERSIST);
    if (stmt == NULL || gb_sqlite_faulted(tx)) return tx->fault;
    int64_t created_ms = r->created_at_ms != 0 ? r->created_at_ms : tx->now_ms;
    bind_record(stmt, r, partition, gb_str_bytes(&tx->scratch));
    gb_sqlite_bind_int(stmt, 10, created_ms);
    gb_sqlite_bind_u64(stmt, 12, seq);
    bool id_clash = false;
    if (!gb_sqlite_insert(tx, stmt, &id_clash)) return tx->fault;
    if (id_clash) {
        return gb_err(GB_INVALID_OUTBOX_RECORD, "outbox record id %.*s names another message",
                      (int)r->id.size, (const char *)r->id.data);
    }
    if (sqlite3_changes(tx->sql) == 0) return gb_ok();
    gb_outbox_note_order(p, sqlite3_last_insert_rowid(tx->sql), created_ms);
    (*stored)++;
    return gb_ok();
}

static bool run_sql(struct gb_outbox_state *s, struct gb_sqlite_tx *tx, enum gb_outbox_sql which)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, which);
    return stmt != NULL && gb_sqlite_run(tx, stmt);
}

/* One record is one statement, atomic by itself; several share a savepoint, for one of them may be
 * refused. */
static struct gb_err run_persist(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                 struct gb_op *op)
{
    struct gb_outbox_persist *q = GB_CONTAINER_OF(op, struct gb_outbox_persist, op);
    struct gb_outbox_state *s = state_of(verb);
    struct gb_err err = gb_sqlite_in_place(tx);
    if (gb_failed(err)) return err;
    bool guarded = q->count > 1;
    size_t stored = 0;
    if (guarded && !run_sql(s, tx, GB_SQL_SAVEPOINT)) return tx->fault;
    for (size_t i = 0; i < q->count && !gb_failed(err); i++)
        err = persist_record(s, tx, &q->records[i], &stored);
    if (gb_sqlite_faulted(tx)) return tx->fault;
    if (guarded && gb_failed(err) && !run_sql(s, tx, GB_SQL_ROLLBACK_TO)) return tx->fault;
    if (guarded && !run_sql(s, tx, GB_SQL_RELEASE_SAVEPOINT)) return tx->fault;
    if (gb_failed(err)) return err;
    q->stored = stored;
    if (stored == 0 && q->count > 0)
        return gb_err(GB_DUPLICATE_RECORD, "all %zu records are already in the outbox", q->count);
    return err;
}

static void discard_persist(struct gb_op *op)
{
    GB_CONTAINER_OF(op, struct gb_outbox_persist, op)->stored = 0;
}

static void persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    q->stored = 0;
    submit(o, PERSIST, &q->op, done, arg);
}

/* --- fenced calls --- */

static struct gb_err run_claim(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    struct gb_outbox_claim *q = GB_CONTAINER_OF(op, struct gb_outbox_claim, op);
    struct gb_outbox_partition_cache *p = NULL;
    struct gb_err err = gb_outbox_fence(state_of(verb), tx, q->partition, &q->token, &p);
    if (gb_failed(err) || q->limit == 0) return err;
    return gb_outbox_claim_rows(state_of(verb), tx, p, q, store_of(verb)->stale_ms);
}

static void discard_claim(struct gb_op *op)
{
    struct gb_outbox_claim *q = GB_CONTAINER_OF(op, struct gb_outbox_claim, op);
    gb_outbox_batch_free(q->batch);
    q->batch = NULL;
}

static void claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    q->batch = NULL;
    submit(o, CLAIM, &q->op, done, arg);
}

static struct gb_err run_settle(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                struct gb_op *op)
{
    const struct gb_outbox_settle *q = GB_CONTAINER_OF(op, struct gb_outbox_settle, op);
    if (!gb_token_valid(&q->token)) return gb_outbox_stale(&q->token, "owner or version is empty");
    bool complete = q->kind == GB_OUTBOX_COMPLETE;
    sqlite3_stmt *stmt =
        gb_outbox_stmt(state_of(verb), tx, complete ? GB_SQL_COMPLETE : GB_SQL_RELEASE);
    if (stmt == NULL) return tx->fault;
    gb_sqlite_bind_text(stmt, 1, q->partition);
    gb_sqlite_bind_text(stmt, 2, q->id);
    gb_sqlite_bind_text(stmt, 3, q->token.owner);
    gb_sqlite_bind_u64(stmt, 4, q->token.version);
    if (complete) gb_sqlite_bind_int(stmt, 5, tx->now_ms);
    if (!gb_sqlite_run(tx, stmt)) return tx->fault;
    if (sqlite3_changes(tx->sql) == 1) return gb_ok();
    return gb_outbox_stale(&q->token, "it does not hold the claim of this record");
}

static void settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    submit(o, SETTLE, &q->op, done, arg);
}

static struct gb_err run_expire(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                struct gb_op *op)
{
    struct gb_outbox_expire *q = GB_CONTAINER_OF(op, struct gb_outbox_expire, op);
    struct gb_outbox_partition_cache *p = NULL;
    struct gb_err err = gb_outbox_fence(state_of(verb), tx, q->partition, &q->token, &p);
    if (gb_failed(err)) return err;
    sqlite3_stmt *stmt = gb_outbox_stmt(state_of(verb), tx, GB_SQL_EXPIRE);
    if (stmt == NULL) return tx->fault;
    gb_sqlite_bind_text(stmt, 1, q->partition);
    gb_sqlite_bind_int(stmt, 2, q->cutoff_ms);
    if (!gb_sqlite_run(tx, stmt)) return tx->fault;
    q->expired = (uint64_t)sqlite3_changes64(tx->sql);
    return err;
}

static void discard_expire(struct gb_op *op)
{
    GB_CONTAINER_OF(op, struct gb_outbox_expire, op)->expired = 0;
}

static void expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    q->expired = 0;
    submit(o, EXPIRE, &q->op, done, arg);
}

/* --- counts --- */

static struct gb_err run_depth(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    struct gb_outbox_depth *q = GB_CONTAINER_OF(op, struct gb_outbox_depth, op);
    sqlite3_stmt *stmt = gb_outbox_stmt(state_of(verb), tx, GB_SQL_DEPTH);
    if (stmt == NULL) return tx->fault;
    gb_sqlite_bind_text(stmt, 1, q->partition);
    gb_sqlite_bind_u64(stmt, 2, q->limit);
    q->pending = (uint64_t)gb_sqlite_scalar(tx, stmt, 0);
    return tx->fault;
}

static void depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    submit(o, DEPTH, &q->op, done, arg);
}

static uint64_t count_status(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                             struct gb_bytes partition, const char *status)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_COUNT);
    if (stmt == NULL) return 0;
    gb_sqlite_bind_text(stmt, 1, partition);
    gb_sqlite_bind_text(stmt, 2, gb_bytes_c(status));
    return (uint64_t)gb_sqlite_scalar(tx, stmt, 0);
}

/* No claim and no sweep would ever see it. */
static void report_lost(struct gb_outbox_state *s, struct gb_sqlite_tx *tx,
                        struct gb_bytes partition)
{
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, GB_SQL_LOST);
    if (stmt == NULL) return;
    gb_sqlite_bind_text(stmt, 1, partition);
    if (!gb_sqlite_row(tx, stmt)) return;
    tx->unhealthy = true;
    uint64_t suppressed = 0;
    if (gb_log_allow(&s->lost_log, (uint64_t)tx->now_ms * NS_PER_MS, UINT64_C(60000000000),
                     &suppressed)) {
        struct gb_bytes id = gb_sqlite_text(stmt, 0);
        struct gb_err err = gb_err(
            GB_INVALID_OUTBOX_RECORD,
            "outbox row %lld, id %.*s: status is none of pending, claimed, completed, expired",
            (long long)sqlite3_column_int64(stmt, 1), (int)(id.size > 64 ? 64 : id.size),
            (const char *)id.data);
        GB_LOG(GB_LOG_ERROR, "outbox row is in no queue; repair or delete it",
               gb_lf_str("path", tx->path), gb_lf_err(&err));
    }
    (void)sqlite3_reset(stmt); /* on a row, so no error to report */
}

static struct gb_err run_stats(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    struct gb_outbox_stats *q = GB_CONTAINER_OF(op, struct gb_outbox_stats, op);
    struct gb_outbox_state *s = state_of(verb);
    struct gb_outbox_partition_cache *p = gb_outbox_cache(s, tx, q->partition);
    if (p == NULL) return tx->fault;
    q->pending = count_status(s, tx, q->partition, "pending");
    q->claimed = count_status(s, tx, q->partition, "claimed");
    q->mark = gb_outbox_mark(s, tx, p, q->partition);
    struct gb_err err = gb_outbox_mark_check(p, tx, q->partition);
    if (gb_failed(err)) return err;
    report_lost(s, tx, q->partition);
    bool in_order = gb_outbox_in_order(s, tx, p, q->partition);
    sqlite3_stmt *stmt = gb_outbox_stmt(s, tx, in_order ? GB_SQL_OLDEST : GB_SQL_OLDEST_SORTED);
    if (stmt == NULL) return tx->fault;
    gb_sqlite_bind_text(stmt, 1, q->partition);
    q->oldest_pending_ms = gb_sqlite_scalar(tx, stmt, 0);
    return tx->fault;
}

static void stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    submit(o, STATS, &q->op, done, arg);
}

/* --- construction and close --- */

static void close_store(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_close(&self(o)->user, op, done, arg);
}

static void outbox_free(struct gb_sqlite_user *user)
{
    free(GB_CONTAINER_OF(user, struct sqlite_outbox, user));
}

static const struct gb_sqlite_verb_ops verb_ops[VERBS] = {
    [PERSIST] = {.run = run_persist, .discard = discard_persist, .bytes = persist_bytes},
    [CLAIM] = {.run = run_claim, .discard = discard_claim},
    [SETTLE] = {.run = run_settle},
    [EXPIRE] = {.run = run_expire, .discard = discard_expire},
    [DEPTH] = {.run = run_depth},
    [STATS] = {.run = run_stats},
};
static const struct gb_outbox_ops ops = {
    .persist = persist,
    .claim = claim,
    .settle = settle,
    .expire = expire,
    .depth = depth,
    .stats = stats,
    .close = close_store,
};

struct gb_err gb_sqlite_outbox_new(struct gb_sqlite_pool *pool,
                                   const struct gb_sqlite_outbox_cfg *cfg, struct gb_outbox **out)
{
    struct sqlite_outbox *o = calloc(1, sizeof *o);
    if (o == NULL) return gb_err_no_memory("an SQLite outbox");
    struct gb_sqlite_user_cfg user = {
        .path = cfg->path,
        .role = GB_SQLITE_OUTBOX,
        .queue_max = cfg->queue_max,
        .state_new = gb_outbox_state_new,
        .free = outbox_free,
    };
    struct gb_err err = gb_sqlite_user_open(pool, &user, &o->user);
    if (gb_failed(err)) {
        free(o);
        return err;
    }
    for (size_t i = 0; i < VERBS; i++)
        o->verbs[i] = (struct gb_sqlite_verb){&o->user, &verb_ops[i]};
    o->port.ops = &ops;
    o->stale_ms = cfg->stale_claim_ns / NS_PER_MS;
    if (cfg->stale_claim_ns > 0 && o->stale_ms == 0) o->stale_ms = 1;
    o->retention_ms = cfg->retention_ns == 0  ? hour_ms
                      : cfg->retention_ns < 0 ? -1
                                              : cfg->retention_ns / NS_PER_MS;
    *out = &o->port;
    return err;
}
