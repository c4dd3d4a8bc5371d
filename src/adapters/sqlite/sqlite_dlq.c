#include "adapters/sqlite/sqlite_dlq.h"

#include <stdlib.h>

#include "adapters/sqlite/sqlite_dlq_sql.h"
#include "base/log.h"
#include "domain/envelope_json.h"

enum { NS_PER_MS = 1000000, ENTRY_BYTES = 1024, LIST_DEFAULT = 100, LIST_MAX = 10000 };

enum verb { WRITE, GET, LIST, REMOVE, COUNT, VERBS };

struct sqlite_dlq {
    struct gb_dlq port;
    struct gb_sqlite_user user;
    struct gb_sqlite_verb verbs[VERBS];
    int64_t retention_ms; /* <= 0: for ever */
};

static struct sqlite_dlq *self(struct gb_dlq *d)
{
    return GB_CONTAINER_OF(d, struct sqlite_dlq, port);
}

static struct gb_dlq_state *state_of(struct gb_sqlite_verb *verb)
{
    struct gb_dlq_state *s = GB_CONTAINER_OF(verb->user->state, struct gb_dlq_state, base);
    s->retention_ms = GB_CONTAINER_OF(verb->user, struct sqlite_dlq, user)->retention_ms;
    return s;
}

static void submit(struct gb_dlq *d, enum verb verb, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_submit(&self(d)->verbs[verb], op, done, arg);
}

/* --- write --- */

static size_t write_bytes(const struct gb_op *op)
{
    const struct gb_dlq_write *q = GB_CONTAINER_OF((void *)(uintptr_t)op, struct gb_dlq_write, op);
    return ENTRY_BYTES + gb_envelope_size(q->entry->envelope);
}

static struct gb_err run_write(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    const struct gb_dlq_write *q = GB_CONTAINER_OF(op, struct gb_dlq_write, op);
    struct gb_err err = gb_sqlite_in_place(tx);
    if (gb_failed(err)) return err;
    gb_str_clear(&tx->scratch);
    gb_envelope_encode(&tx->scratch, q->entry->envelope);
    err = gb_str_check(&tx->scratch, "an envelope's JSON text");
    if (gb_failed(err)) return err;
    sqlite3_stmt *stmt = gb_dlq_stmt(state_of(verb), tx, GB_SQL_DLQ_WRITE);
    if (stmt == NULL) return tx->fault;
    gb_dlq_row_bind(stmt, q->entry, gb_str_bytes(&tx->scratch));
    if (!gb_sqlite_run(tx, stmt)) return tx->fault;
    if (sqlite3_changes(tx->sql) == 1) return gb_ok();
    return gb_err(GB_DUPLICATE_RECORD, "DLQ entry %s exists", q->entry->id);
}

static void write(struct gb_dlq *d, struct gb_dlq_write *q, gb_done_fn *done, void *arg)
{
    submit(d, WRITE, &q->op, done, arg);
}

/* --- get, list --- */

static struct gb_err run_get(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb, struct gb_op *op)
{
    struct gb_dlq_get *q = GB_CONTAINER_OF(op, struct gb_dlq_get, op);
    sqlite3_stmt *stmt = gb_dlq_stmt(state_of(verb), tx, GB_SQL_DLQ_GET);
    if (stmt == NULL) return tx->fault;
    gb_sqlite_bind_text(stmt, 1, gb_bytes_c(q->id));
    if (!gb_sqlite_row(tx, stmt))
        return gb_sqlite_faulted(tx) ? tx->fault : gb_err(GB_NOT_FOUND, "no DLQ entry %s", q->id);
    struct gb_err err = gb_dlq_row_read(stmt, &q->entry);
    (void)sqlite3_reset(stmt); /* on a row, so no error to report */
    if (err.code == GB_INVALID_OUTBOX_RECORD) tx->unhealthy = true;
    return err;
}

static void discard_get(struct gb_op *op)
{
    struct gb_dlq_get *q = GB_CONTAINER_OF(op, struct gb_dlq_get, op);
    gb_dlq_entry_free(q->entry);
    q->entry = NULL;
}

static void get(struct gb_dlq *d, struct gb_dlq_get *q, gb_done_fn *done, void *arg)
{
    q->entry = NULL;
    submit(d, GET, &q->op, done, arg);
}

static void bind_filter(sqlite3_stmt *stmt, const struct gb_dlq_filter *f)
{
    const char *const texts[] = {f->route_id, f->category};
    for (int i = 0; i < 2; i++) {
        if (texts[i] != NULL) {
            gb_sqlite_bind_text(stmt, i + 1, gb_bytes_c(texts[i]));
        } else {
            int rc = sqlite3_bind_null(stmt, i + 1);
            GB_ASSERT(rc == SQLITE_OK);
        }
    }
    gb_sqlite_bind_int(stmt, 3, f->since_ms != 0 ? f->since_ms : INT64_MIN);
    gb_sqlite_bind_int(stmt, 4, f->before_ms != 0 ? f->before_ms : INT64_MAX);
}

static void drop_list(struct gb_dlq_list *q)
{
    while (q->count > 0) gb_dlq_entry_free(q->entries[--q->count]);
    free(q->entries);
    q->entries = NULL;
}

static bool grow_list(struct gb_dlq_list *q, size_t *capacity)
{
    if (q->count < *capacity) return true;
    size_t wanted = *capacity == 0 ? LIST_DEFAULT : *capacity * 2;
    struct gb_dlq_entry **entries = realloc(q->entries, wanted * sizeof *entries);
    if (entries == NULL) return false;
    q->entries = entries;
    *capacity = wanted;
    return true;
}

/* A row that can't be read is left out: it must not hide the others from the operator. */
static struct gb_err collect(struct gb_sqlite_tx *tx, sqlite3_stmt *stmt, struct gb_dlq_list *q,
                             size_t limit)
{
    struct gb_err err = gb_ok();
    size_t capacity = 0;
    while (q->count < limit && gb_sqlite_row(tx, stmt)) {
        if (!grow_list(q, &capacity)) {
            err = gb_err_no_memory("a list of DLQ entries");
            break;
        }
        err = gb_dlq_row_read(stmt, &q->entries[q->count]);
        if (err.code == GB_INVALID_OUTBOX_RECORD) {
            tx->unhealthy = true;
            GB_LOG(GB_LOG_ERROR, "DLQ row can't be read and is left out; repair or delete it",
                   gb_lf_str("path", tx->path), gb_lf_err(&err));
            err = gb_ok();
            continue;
        }
        if (gb_failed(err)) break;
        q->count++;
    }
    (void)sqlite3_reset(stmt); /* a fault was noted by the step */
    return gb_sqlite_faulted(tx) ? tx->fault : err;
}

static struct gb_err run_list(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                              struct gb_op *op)
{
    struct gb_dlq_list *q = GB_CONTAINER_OF(op, struct gb_dlq_list, op);
    size_t limit = q->filter.limit > 0 ? (size_t)q->filter.limit : LIST_DEFAULT;
    if (limit > LIST_MAX) limit = LIST_MAX;
    sqlite3_stmt *stmt = gb_dlq_stmt(state_of(verb), tx, GB_SQL_DLQ_LIST);
    if (stmt == NULL) return tx->fault;
    bind_filter(stmt, &q->filter);
    struct gb_err err = collect(tx, stmt, q, limit);
    if (gb_failed(err) || q->count == 0) drop_list(q);
    return err;
}

static void discard_list(struct gb_op *op)
{
    drop_list(GB_CONTAINER_OF(op, struct gb_dlq_list, op));
}

static void list(struct gb_dlq *d, struct gb_dlq_list *q, gb_done_fn *done, void *arg)
{
    q->entries = NULL;
    q->count = 0;
    submit(d, LIST, &q->op, done, arg);
}

/* --- remove, count --- */

static struct gb_err remove_ids(struct gb_sqlite_tx *tx, struct gb_dlq_state *s,
                                struct gb_dlq_delete *q)
{
    sqlite3_stmt *stmt = gb_dlq_stmt(s, tx, GB_SQL_DLQ_DELETE);
    for (size_t i = 0; stmt != NULL && i < q->id_count; i++) {
        gb_sqlite_bind_text(stmt, 1, gb_bytes_c(q->ids[i]));
        if (!gb_sqlite_run(tx, stmt)) break;
        q->deleted += (uint64_t)sqlite3_changes64(tx->sql);
    }
    return tx->fault;
}

static struct gb_err run_remove(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                struct gb_op *op)
{
    struct gb_dlq_delete *q = GB_CONTAINER_OF(op, struct gb_dlq_delete, op);
    struct gb_dlq_state *s = state_of(verb);
    if (q->ids != NULL) return remove_ids(tx, s, q);
    sqlite3_stmt *stmt = gb_dlq_stmt(s, tx, GB_SQL_DLQ_DELETE_MATCHES);
    if (stmt == NULL) return tx->fault;
    bind_filter(stmt, &q->filter);
    gb_sqlite_bind_int(stmt, 5, q->filter.limit > 0 ? q->filter.limit : -1);
    if (gb_sqlite_run(tx, stmt)) q->deleted = (uint64_t)sqlite3_changes64(tx->sql);
    return tx->fault;
}

static void discard_remove(struct gb_op *op)
{
    GB_CONTAINER_OF(op, struct gb_dlq_delete, op)->deleted = 0;
}

static void remove_entries(struct gb_dlq *d, struct gb_dlq_delete *q, gb_done_fn *done, void *arg)
{
    q->deleted = 0;
    submit(d, REMOVE, &q->op, done, arg);
}

static struct gb_err run_count(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    struct gb_dlq_count *q = GB_CONTAINER_OF(op, struct gb_dlq_count, op);
    q->count = (uint64_t)gb_sqlite_scalar(tx, gb_dlq_stmt(state_of(verb), tx, GB_SQL_DLQ_COUNT), 0);
    return tx->fault;
}

static void count(struct gb_dlq *d, struct gb_dlq_count *q, gb_done_fn *done, void *arg)
{
    submit(d, COUNT, &q->op, done, arg);
}

/* --- construction and close --- */

static void close_store(struct gb_dlq *d, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_close(&self(d)->user, op, done, arg);
}

static void dlq_free(struct gb_sqlite_user *user)
{
    free(GB_CONTAINER_OF(user, struct sqlite_dlq, user));
}

static const struct gb_sqlite_verb_ops verb_ops[VERBS] = {
    [WRITE] = {.run = run_write, .bytes = write_bytes},
    [GET] = {.run = run_get, .discard = discard_get},
    [LIST] = {.run = run_list, .discard = discard_list},
    [REMOVE] = {.run = run_remove, .discard = discard_remove},
    [COUNT] = {.run = run_count},
};
static const struct gb_dlq_ops ops = {
    .write = write,
    .get = get,
    .list = list,
    .remove = remove_entries,
    .count = count,
    .close = close_store,
};

struct gb_err gb_sqlite_dlq_new(struct gb_sqlite_pool *pool, const struct gb_sqlite_dlq_cfg *cfg,
                                struct gb_dlq **out)
{
    struct sqlite_dlq *d = calloc(1, sizeof *d);
    if (d == NULL) return gb_err_no_memory("an SQLite DLQ");
    struct gb_sqlite_user_cfg user = {
        .path = cfg->path,
        .role = GB_SQLITE_DLQ,
        .queue_max = cfg->queue_max,
        .state_new = gb_dlq_state_new,
        .free = dlq_free,
    };
    struct gb_err err = gb_sqlite_user_open(pool, &user, &d->user);
    if (gb_failed(err)) {
        free(d);
        return err;
    }
    for (size_t i = 0; i < VERBS; i++)
        d->verbs[i] = (struct gb_sqlite_verb){&d->user, &verb_ops[i]};
    d->port.ops = &ops;
    d->retention_ms = cfg->retention_ns / NS_PER_MS;
    *out = &d->port;
    return err;
}
