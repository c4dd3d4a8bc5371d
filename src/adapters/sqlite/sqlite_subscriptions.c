#include "adapters/sqlite/sqlite_subscriptions.h"

#include <stdlib.h>

#include "adapters/sqlite/sqlite_db.h"
#include "domain/mqtt_topic.h"

enum { FILTERS_MAX = 100000 }; /* of one baseline; far above what a broker session carries */

enum verb { LIST, REMEMBER, FORGET, VERBS };
enum sql {
    SQL_HAS_BASELINE,
    SQL_ADD_BASELINE,
    SQL_FILTERS,
    SQL_ADD_FILTER,
    SQL_DELETE_FILTER,
    SQL_TEXTS
};

static const char *const sql_texts[SQL_TEXTS] = {
    [SQL_HAS_BASELINE] = "SELECT 1 FROM managed_subscription_baselines WHERE storage_identity=?1",
    [SQL_ADD_BASELINE] = "INSERT INTO managed_subscription_baselines(storage_identity) VALUES(?1)"
                         " ON CONFLICT DO NOTHING",
    [SQL_FILTERS] = "SELECT filter FROM managed_subscription_filters WHERE storage_identity=?1"
                    " ORDER BY filter",
    [SQL_ADD_FILTER] = "INSERT INTO managed_subscription_filters(storage_identity,filter)"
                       " VALUES(?1,?2) ON CONFLICT DO NOTHING",
    [SQL_DELETE_FILTER] = "DELETE FROM managed_subscription_filters WHERE storage_identity=?1 AND"
                          " filter=?2",
};

struct state {
    struct gb_sqlite_state base;
    struct gb_sqlite_stmts stmts;
    sqlite3_stmt *prepared[SQL_TEXTS];
};
struct sqlite_subscriptions {
    struct gb_subscriptions port;
    struct gb_sqlite_user user;
    struct gb_sqlite_verb verbs[VERBS];
};

static struct sqlite_subscriptions *self(struct gb_subscriptions *s)
{
    return GB_CONTAINER_OF(s, struct sqlite_subscriptions, port);
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
    return false; /* baselines never expire */
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
    if (s == NULL) return gb_err_no_memory("an SQLite subscription store");
    s->base.ops = &state_ops;
    s->stmts = (struct gb_sqlite_stmts){sql_texts, s->prepared, SQL_TEXTS};
    *out = &s->base;
    return gb_ok();
}

/* Bound to the identity and, when it has one, to the filter; NULL: fault. */
static sqlite3_stmt *stmt_for(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb, enum sql which,
                              const char *identity, const char *filter)
{
    struct state *s = GB_CONTAINER_OF(verb->user->state, struct state, base);
    sqlite3_stmt *stmt = gb_sqlite_stmt(tx, &s->stmts, which);
    if (stmt == NULL) return NULL;
    gb_sqlite_bind_text(stmt, 1, gb_bytes_c(identity));
    if (filter != NULL) gb_sqlite_bind_text(stmt, 2, gb_bytes_c(filter));
    return stmt;
}

static struct gb_err check_identity(const char *identity)
{
    if (identity != NULL && identity[0] != '\0') return gb_ok();
    return gb_err(GB_INVALID_CONFIG, "managed subscriptions: the storage identity is empty");
}

static struct gb_err check_change(const struct gb_subscriptions_change *q)
{
    struct gb_err err = check_identity(q->identity);
    for (size_t i = 0; i < q->count && !gb_failed(err); i++) {
        if (q->filters[i] == NULL || q->filters[i][0] == '\0') {
            err = gb_err(GB_INVALID_CONFIG, "managed subscriptions of %s: filter %zu is empty",
                         q->identity, i);
        }
    }
    return err;
}

/* Without a baseline the history is unknown, which is not the same as empty (spec 05 §5). */
static struct gb_err demand_baseline(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                     const char *identity)
{
    sqlite3_stmt *stmt = stmt_for(tx, verb, SQL_HAS_BASELINE, identity, NULL);
    int64_t there = gb_sqlite_scalar(tx, stmt, 0);
    if (gb_sqlite_faulted(tx)) return tx->fault;
    if (there == 1) return gb_ok();
    return gb_err(GB_NOT_FOUND, "managed subscriptions of %s: no baseline, seed it first",
                  identity);
}

static struct gb_err append(struct gb_filter_list *l, size_t *capacity, struct gb_bytes filter)
{
    if (l->count == FILTERS_MAX)
        return gb_err(GB_UNAVAILABLE, "more than %d managed filters", FILTERS_MAX);
    if (l->count == *capacity) {
        size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
        char **filters = realloc(l->filters, wanted * sizeof *filters);
        if (filters == NULL) return gb_err_no_memory("managed filters");
        l->filters = filters;
        *capacity = wanted;
    }
    char *copy = gb_bytes_dup(filter);
    if (copy == NULL) return gb_err_no_memory("managed filters");
    l->filters[l->count++] = copy;
    return gb_ok();
}

/* A filter that no client could have subscribed to would be unsubscribed from for ever: brokers end
 * the connection over it. */
static struct gb_err check_row(const struct gb_sqlite_tx *tx, sqlite3_stmt *stmt,
                               const char *identity)
{
    struct gb_err err = sqlite3_column_type(stmt, 0) == SQLITE_TEXT
                            ? gb_mqtt_filter_check(gb_sqlite_text(stmt, 0))
                            : gb_err(GB_INVALID_CONFIG, "column filter has the wrong type");
    if (!gb_failed(err)) return err;
    return gb_err(GB_INVALID_CONFIG,
                  "sqlite path %s: managed_subscription_filters of %s holds a damaged row, delete "
                  "it: %s",
                  tx->path, identity, err.message);
}

static struct gb_err run_list(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                              struct gb_op *op)
{
    struct gb_subscriptions_list *q = GB_CONTAINER_OF(op, struct gb_subscriptions_list, op);
    struct gb_err err = check_identity(q->identity);
    if (!gb_failed(err)) err = demand_baseline(tx, verb, q->identity);
    if (gb_failed(err)) return err;
    sqlite3_stmt *stmt = stmt_for(tx, verb, SQL_FILTERS, q->identity, NULL);
    if (stmt == NULL) return tx->fault;
    size_t capacity = 0;
    while (!gb_failed(err) && gb_sqlite_row(tx, stmt)) {
        err = check_row(tx, stmt, q->identity);
        if (!gb_failed(err)) err = append(&q->filters, &capacity, gb_sqlite_text(stmt, 0));
    }
    (void)sqlite3_reset(stmt); /* a fault was noted by the step */
    if (gb_sqlite_faulted(tx)) err = tx->fault;
    if (gb_failed(err)) gb_filter_list_free(&q->filters);
    return err;
}

static void discard_list(struct gb_op *op)
{
    gb_filter_list_free(&GB_CONTAINER_OF(op, struct gb_subscriptions_list, op)->filters);
}

static struct gb_err change(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                            const struct gb_subscriptions_change *q, enum sql which)
{
    for (size_t i = 0; i < q->count; i++) {
        sqlite3_stmt *stmt = stmt_for(tx, verb, which, q->identity, q->filters[i]);
        if (stmt == NULL || !gb_sqlite_run(tx, stmt)) break;
    }
    return tx->fault;
}

static struct gb_err run_remember(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                  struct gb_op *op)
{
    const struct gb_subscriptions_change *q =
        GB_CONTAINER_OF(op, struct gb_subscriptions_change, op);
    struct gb_err err = check_change(q);
    if (gb_failed(err)) return err;
    sqlite3_stmt *stmt = stmt_for(tx, verb, SQL_ADD_BASELINE, q->identity, NULL);
    if (stmt == NULL || !gb_sqlite_run(tx, stmt)) return tx->fault;
    return change(tx, verb, q, SQL_ADD_FILTER);
}

static struct gb_err run_forget(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb,
                                struct gb_op *op)
{
    const struct gb_subscriptions_change *q =
        GB_CONTAINER_OF(op, struct gb_subscriptions_change, op);
    struct gb_err err = check_change(q);
    if (!gb_failed(err)) err = demand_baseline(tx, verb, q->identity);
    return gb_failed(err) ? err : change(tx, verb, q, SQL_DELETE_FILTER);
}

/* --- the port --- */

static void list(struct gb_subscriptions *s, struct gb_subscriptions_list *q, gb_done_fn *done,
                 void *arg)
{
    q->filters = (struct gb_filter_list){0};
    gb_sqlite_user_submit(&self(s)->verbs[LIST], &q->op, done, arg);
}

static void remember(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                     gb_done_fn *done, void *arg)
{
    gb_sqlite_user_submit(&self(s)->verbs[REMEMBER], &q->op, done, arg);
}

static void forget(struct gb_subscriptions *s, struct gb_subscriptions_change *q, gb_done_fn *done,
                   void *arg)
{
    gb_sqlite_user_submit(&self(s)->verbs[FORGET], &q->op, done, arg);
}

static void close_store(struct gb_subscriptions *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_sqlite_user_close(&self(s)->user, op, done, arg);
}

static void subscriptions_free(struct gb_sqlite_user *user)
{
    free(GB_CONTAINER_OF(user, struct sqlite_subscriptions, user));
}

static const struct gb_sqlite_verb_ops verb_ops[VERBS] = {
    [LIST] = {.run = run_list, .discard = discard_list},
    [REMEMBER] = {.run = run_remember},
    [FORGET] = {.run = run_forget},
};
static const struct gb_subscriptions_ops ops = {
    .list = list,
    .remember = remember,
    .forget = forget,
    .close = close_store,
};

struct gb_err gb_sqlite_subscriptions_new(struct gb_sqlite_pool *pool,
                                          const struct gb_sqlite_subscriptions_cfg *cfg,
                                          struct gb_subscriptions **out)
{
    struct sqlite_subscriptions *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("an SQLite subscription store");
    struct gb_sqlite_user_cfg user = {
        .path = cfg->path,
        .role = GB_SQLITE_SUBSCRIPTIONS,
        .strict = true,
        .queue_max = cfg->queue_max,
        .state_new = state_new,
        .free = subscriptions_free,
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
