#include "adapters/sqlite/sqlite_lease.h"

#include <stdlib.h>

#include "adapters/sqlite/sqlite_db.h"
#include "base/duration.h"
#include "base/json_read.h"
#include "base/json_write.h"

enum verb { ACQUIRE, RENEW, RELEASE, CURRENT, VERBS };
enum sql { SQL_READ, SQL_TAKE, SQL_RENEW, SQL_RELEASE, SQL_TEXTS };
enum { ENDPOINTS_MAX = 64 };

static const char *const sql_texts[SQL_TEXTS] = {
    [SQL_READ] = "SELECT owner,version,acquired_at,renewed_at,expires_at,endpoints_json FROM lease"
                 " WHERE lease_id=?1",
    [SQL_TAKE] = "INSERT INTO lease(lease_id,owner,version,acquired_at,renewed_at,expires_at,"
                 "endpoints_json) VALUES(?1,?2,?3,?4,?4,?5,?6) ON CONFLICT(lease_id) DO UPDATE SET"
                 " owner=?2,version=?3,acquired_at=?4,renewed_at=?4,expires_at=?5,"
                 "endpoints_json=?6",
    [SQL_RENEW] = "UPDATE lease SET renewed_at=?2,expires_at=?3,endpoints_json=?4"
                  " WHERE lease_id=?1",
    [SQL_RELEASE] = "UPDATE lease SET owner='',expires_at=0,endpoints_json='' WHERE lease_id=?1",
};

struct state {
    struct gb_sqlite_state base;
    struct gb_sqlite_stmts stmts;
    sqlite3_stmt *prepared[SQL_TEXTS];
};
struct sqlite_lease {
    struct gb_lease port;
    struct gb_sqlite_user user;
    struct gb_sqlite_verb verbs[VERBS];
};

static struct sqlite_lease *self(struct gb_lease *l)
{
    return GB_CONTAINER_OF(l, struct sqlite_lease, port);
}

/* --- worker --- */

static void forget_nothing(struct gb_sqlite_state *base)
{
    (void)base; /* caches nothing but statements */
}

static bool never_due(const struct gb_sqlite_state *base, int64_t now_ms)
{
    (void)base;
    (void)now_ms;
    return false; /* the row is the fencing counter: it is never deleted */
}

static void state_free(struct gb_sqlite_state *base)
{
    struct state *s = GB_CONTAINER_OF(base, struct state, base);
    gb_sqlite_stmts_finalize(&s->stmts);
    free(s);
}

static const struct gb_sqlite_state_ops state_ops = {
    .forget = forget_nothing,
    .sweep_due = never_due,
    .free = state_free,
};

static struct gb_err state_new(struct gb_sqlite_state **out)
{
    struct state *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("an SQLite lease store");
    s->base.ops = &state_ops;
    s->stmts = (struct gb_sqlite_stmts){sql_texts, s->prepared, SQL_TEXTS};
    *out = &s->base;
    return gb_ok();
}

static sqlite3_stmt *stmt_for(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb, enum sql which,
                              struct gb_bytes lease_id)
{
    struct state *s = GB_CONTAINER_OF(verb->user->state, struct state, base);
    sqlite3_stmt *stmt = gb_sqlite_stmt(tx, &s->stmts, which);
    if (stmt != NULL) gb_sqlite_bind_text(stmt, 1, lease_id);
    return stmt;
}

/* --- endpoints: a JSON object of texts --- */

static struct gb_err write_endpoints(struct gb_str *out, const struct gb_lease_endpoint *endpoints,
                                     size_t count)
{
    struct gb_json_writer w;
    gb_str_append_c(out, "");
    if (count == 0) return gb_str_check(out, "lease endpoints");
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    for (size_t i = 0; i < count; i++) {
        gb_json_w_key_bytes(&w, endpoints[i].capability);
        gb_json_w_string(&w, endpoints[i].url);
    }
    gb_json_w_object_end(&w);
    return gb_str_check(out, "lease endpoints");
}

struct endpoints {
    struct gb_lease_endpoint items[ENDPOINTS_MAX];
    size_t count;
    struct gb_str text; /* behind the views */
};

static struct gb_bytes add_text(struct endpoints *e, const struct gb_json_reader *r)
{
    size_t before = e->text.size;
    if (!gb_json_string(r, &e->text, NULL)) return gb_bytes(NULL, 0);
    return gb_bytes(e->text.data + before, e->text.size - before);
}

/* False: not what we wrote. */
static bool read_endpoints(struct endpoints *e, struct gb_bytes json)
{
    struct gb_json_reader r;
    e->count = 0;
    gb_str_clear(&e->text);
    if (json.size == 0) return true;
    /* Room for all of it at once: views must stay. */
    if (gb_str_reserve(&e->text, json.size) == NULL) return false;
    gb_json_init(&r, json);
    if (gb_json_next(&r) != GB_JSON_OBJECT_BEGIN) return false;
    for (;;) {
        enum gb_json_event event = gb_json_next(&r);
        if (event == GB_JSON_OBJECT_END) return gb_json_next(&r) == GB_JSON_END;
        if (event != GB_JSON_KEY || e->count == ENDPOINTS_MAX) return false;
        struct gb_lease_endpoint *item = &e->items[e->count++];
        item->capability = add_text(e, &r);
        if (gb_json_next(&r) != GB_JSON_STRING) return false;
        item->url = add_text(e, &r);
    }
}

/* --- rows --- */

static struct gb_err damaged(const struct gb_sqlite_tx *tx, struct gb_bytes lease_id,
                             const char *what)
{
    return gb_err(GB_INVALID_CONFIG, "sqlite path %s: lease %.*s: corrupt row: %s", tx->path,
                  (int)lease_id.size, (const char *)lease_id.data, what);
}

static struct gb_err take_row(const struct gb_sqlite_tx *tx, sqlite3_stmt *stmt,
                              struct gb_bytes lease_id, struct gb_lease_holder *out)
{
    static const int types[] = {SQLITE_TEXT,    SQLITE_INTEGER, SQLITE_INTEGER,
                                SQLITE_INTEGER, SQLITE_INTEGER, SQLITE_TEXT};
    for (int i = 0; i < (int)(sizeof types / sizeof types[0]); i++) {
        if (sqlite3_column_type(stmt, i) != types[i])
            return damaged(tx, lease_id, "a column has the wrong type");
    }
    const struct gb_lease_row row = {.key = lease_id,
                                     .owner = gb_sqlite_text(stmt, 0),
                                     .version = gb_sqlite_u64(stmt, 1),
                                     .acquired_ms = sqlite3_column_int64(stmt, 2),
                                     .renewed_ms = sqlite3_column_int64(stmt, 3),
                                     .expires_ms = sqlite3_column_int64(stmt, 4)};
    struct gb_err err = gb_lease_row_check(&row, lease_id);
    if (gb_failed(err)) return gb_err_in(err, "sqlite path %s", tx->path);
    struct endpoints e = {0};
    err = read_endpoints(&e, gb_sqlite_text(stmt, 5))
              ? gb_lease_holder_set(out, &row, e.items, e.count)
              : damaged(tx, lease_id, "endpoints_json is no object of texts");
    gb_str_deinit(&e.text);
    return err;
}

/* `out->owner` NULL: there is no row. */
static struct gb_err read_row(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                              struct gb_bytes lease_id, struct gb_lease_holder *out)
{
    gb_lease_holder_deinit(out);
    sqlite3_stmt *stmt = stmt_for(tx, verb, SQL_READ, lease_id);
    if (stmt == NULL) return tx->fault;
    struct gb_err err = gb_ok();
    if (gb_sqlite_row(tx, stmt)) {
        err = take_row(tx, stmt, lease_id, out);
        (void)sqlite3_reset(stmt); /* a fault was noted by the step */
    }
    return gb_sqlite_faulted(tx) ? tx->fault : err;
}

static struct gb_err check_request(struct gb_bytes lease_id, struct gb_bytes owner, int64_t ttl_ns)
{
    if (lease_id.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease id is empty");
    if (owner.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease's owner is empty");
    if (ttl_ns <= 0) return gb_err(GB_INVALID_CONFIG, "a lease's ttl is not positive");
    return gb_ok();
}

static int64_t expiry_ms(const struct gb_sqlite_tx *tx, int64_t ttl_ns)
{
    return gb_add_sat_i64(tx->now_ms, gb_max_i64(ttl_ns / GB_MS, 1));
}

/* Whoever held it before is dead: the file's lock is ours. */
static struct gb_err run_acquire(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                 struct gb_op *op)
{
    struct gb_lease_acquire *q = GB_CONTAINER_OF(op, struct gb_lease_acquire, op);
    struct gb_str json = {0};
    struct gb_err err = check_request(q->lease_id, q->owner, q->ttl_ns);
    if (!gb_failed(err)) err = read_row(tx, verb, q->lease_id, &q->seen);
    if (!gb_failed(err) && q->seen.version >= (uint64_t)INT64_MAX)
        err = damaged(tx, q->lease_id, "its version can't rise any more");
    if (!gb_failed(err)) err = write_endpoints(&json, q->endpoints, q->endpoint_count);
    if (!gb_failed(err)) err = gb_sqlite_in_place(tx);
    sqlite3_stmt *stmt = gb_failed(err) ? NULL : stmt_for(tx, verb, SQL_TAKE, q->lease_id);
    if (stmt != NULL) {
        q->version = q->seen.version + 1;
        gb_sqlite_bind_text(stmt, 2, q->owner);
        gb_sqlite_bind_u64(stmt, 3, q->version);
        gb_sqlite_bind_int(stmt, 4, tx->now_ms);
        gb_sqlite_bind_int(stmt, 5, expiry_ms(tx, q->ttl_ns));
        gb_sqlite_bind_text(stmt, 6, gb_str_bytes(&json));
        (void)gb_sqlite_run(tx, stmt);
    }
    gb_str_deinit(&json);
    if (!gb_failed(err)) err = tx->fault;
    bool foreign = q->seen.owner != NULL && q->seen.owner[0] != '\0' &&
                   !gb_bytes_equal_c(q->owner, q->seen.owner);
    if (!foreign) gb_lease_holder_deinit(&q->seen); /* nobody was taken over */
    return err;
}

static void discard_acquire(struct gb_op *op)
{
    gb_lease_holder_deinit(&GB_CONTAINER_OF(op, struct gb_lease_acquire, op)->seen);
}

/* Spec 06 §6.2. */
static struct gb_err check_token(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                 struct gb_bytes lease_id, const struct gb_token *token)
{
    struct gb_lease_holder row = {0};
    struct gb_err err = read_row(tx, verb, lease_id, &row);
    if (!gb_failed(err) && (row.owner == NULL || row.owner[0] == '\0')) {
        err = gb_err(GB_NOT_FOUND, "lease %.*s is absent or released", (int)lease_id.size,
                     (const char *)lease_id.data);
    } else if (!gb_failed(err) &&
               (row.version != token->version || !gb_bytes_equal_c(token->owner, row.owner))) {
        err = gb_err(GB_STALE_FENCING_TOKEN, "lease %.*s is at version %llu of %.80s",
                     (int)lease_id.size, (const char *)lease_id.data,
                     (unsigned long long)row.version, row.owner);
    }
    gb_lease_holder_deinit(&row);
    return err;
}

static struct gb_err run_renew(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                               struct gb_op *op)
{
    const struct gb_lease_renew *q = GB_CONTAINER_OF(op, struct gb_lease_renew, op);
    struct gb_str json = {0};
    struct gb_err err = check_request(q->lease_id, q->token.owner, q->ttl_ns);
    if (!gb_failed(err)) err = check_token(tx, verb, q->lease_id, &q->token);
    if (!gb_failed(err)) err = write_endpoints(&json, q->endpoints, q->endpoint_count);
    if (!gb_failed(err)) err = gb_sqlite_in_place(tx);
    sqlite3_stmt *stmt = gb_failed(err) ? NULL : stmt_for(tx, verb, SQL_RENEW, q->lease_id);
    if (stmt != NULL) {
        gb_sqlite_bind_int(stmt, 2, tx->now_ms);
        gb_sqlite_bind_int(stmt, 3, expiry_ms(tx, q->ttl_ns));
        gb_sqlite_bind_text(stmt, 4, gb_str_bytes(&json));
        (void)gb_sqlite_run(tx, stmt);
    }
    gb_str_deinit(&json);
    return gb_failed(err) ? err : tx->fault;
}

static struct gb_err run_release(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                 struct gb_op *op)
{
    const struct gb_lease_release *q = GB_CONTAINER_OF(op, struct gb_lease_release, op);
    struct gb_err err = check_token(tx, verb, q->lease_id, &q->token);
    sqlite3_stmt *stmt = gb_failed(err) ? NULL : stmt_for(tx, verb, SQL_RELEASE, q->lease_id);
    if (stmt != NULL) (void)gb_sqlite_run(tx, stmt);
    return gb_failed(err) ? err : tx->fault;
}

static struct gb_err run_current(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                 struct gb_op *op)
{
    struct gb_lease_current *q = GB_CONTAINER_OF(op, struct gb_lease_current, op);
    struct gb_err err = read_row(tx, verb, q->lease_id, &q->holder);
    if (gb_failed(err) || (q->holder.owner != NULL && q->holder.owner[0] != '\0')) return err;
    gb_lease_holder_deinit(&q->holder);
    return gb_err(GB_NOT_FOUND, "lease %.*s is absent or released", (int)q->lease_id.size,
                  (const char *)q->lease_id.data);
}

static void discard_current(struct gb_op *op)
{
    gb_lease_holder_deinit(&GB_CONTAINER_OF(op, struct gb_lease_current, op)->holder);
}

/* --- the port --- */

static void acquire(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->seen);
    gb_sqlite_user_submit(&self(l)->verbs[ACQUIRE], &q->op, done, arg);
}

static void renew(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_submit(&self(l)->verbs[RENEW], &q->op, done, arg);
}

static void release(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_submit(&self(l)->verbs[RELEASE], &q->op, done, arg);
}

static void current(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->holder);
    gb_sqlite_user_submit(&self(l)->verbs[CURRENT], &q->op, done, arg);
}

static void close_store(struct gb_lease *l, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_close(&self(l)->user, op, done, arg);
}

static void lease_free(struct gb_sqlite_user *user)
{
    free(GB_CONTAINER_OF(user, struct sqlite_lease, user));
}

static const struct gb_sqlite_verb_ops verb_ops[VERBS] = {
    [ACQUIRE] = {.run = run_acquire, .discard = discard_acquire},
    [RENEW] = {.run = run_renew},
    [RELEASE] = {.run = run_release},
    [CURRENT] = {.run = run_current, .discard = discard_current},
};
static const struct gb_lease_ops ops = {
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .current = current,
    .close = close_store,
};

struct gb_err gb_sqlite_lease_new(struct gb_sqlite_pool *pool,
                                  const struct gb_sqlite_lease_cfg *cfg, struct gb_lease **out)
{
    struct sqlite_lease *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("an SQLite lease store");
    const struct gb_sqlite_user_cfg user = {
        .path = cfg->path,
        .role = GB_SQLITE_LEASE,
        .queue_max = cfg->queue_max,
        .state_new = state_new,
        .free = lease_free,
    };
    struct gb_err err = gb_sqlite_user_open(pool, &user, &s->user);
    if (gb_failed(err)) {
        free(s);
        return err;
    }
    for (size_t i = 0; i < VERBS; i++)
        s->verbs[i] = (struct gb_sqlite_verb){&s->user, &verb_ops[i]};
    s->port.ops = &ops;
    *out = &s->port;
    return err;
}
