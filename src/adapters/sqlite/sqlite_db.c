#include "adapters/sqlite/sqlite_db.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/sqlite/sqlite_open.h"
#include "base/log.h"
#include "io/worker.h"

enum { NS_PER_MS = 1000000, SWEEP_ROWS_MIN = 64, SWEEP_ROWS_PER_REQUEST = 4 };

struct gb_sqlite_pool {
    struct gb_sqlite_pool_cfg cfg;
    struct gb_list dbs;
};

struct gb_sqlite_db {
    struct gb_sqlite_pool *pool;
    struct gb_list_node node; /* in the pool */
    char *path;               /* as the first store wrote it */
    char *identity;           /* NULL: `:memory:`, never shared */
    size_t users;
    bool closing;
    struct gb_worker *worker;
    /* loop thread */
    struct gb_list queue; /* ops that wait */
    struct gb_task flush;
    struct gb_timer timer; /* the earliest deadline in the queue, or earlier */
    uint64_t tx_number;
    bool running; /* the job is with the worker: it owns `batch` and `tx` */
    struct gb_sqlite_user *last_user;
    struct gb_op worker_op;
    /* with the worker while `running` */
    struct gb_job job;
    struct gb_op *batch[GB_SQLITE_TX_REQUESTS];
    size_t batch_count;
    size_t batch_max; /* shrinks while transactions fail: a part may fit where all do not */
    struct gb_sqlite_tx tx;
    /* worker thread */
    struct gb_sqlite_connection connection;
    struct gb_sqlite_state *states[GB_SQLITE_ROLES];
};

static struct gb_reactor *reactor_of(const struct gb_sqlite_db *db)
{
    return gb_loop_reactor(db->pool->cfg.loop);
}

static struct gb_sqlite_verb *verb_of(const struct gb_op *op)
{
    return op->provider;
}

/* --- worker thread: the transaction --- */

static bool exec(struct gb_sqlite_db *db, const char *text)
{
    int rc = sqlite3_exec(db->tx.sql, text, NULL, NULL, NULL);
    if (rc == SQLITE_OK) return true;
    rc = sqlite3_extended_errcode(db->tx.sql);
    if (gb_sqlite_is_unhealthy(rc)) db->tx.unhealthy = true;
    gb_sqlite_fault(&db->tx, gb_sqlite_err(db->tx.sql, rc, db->path, text));
    return false;
}

/* Some faults (disk full, I/O error) have rolled back already. */
static void roll_back(struct gb_sqlite_db *db)
{
    if (sqlite3_get_autocommit(db->tx.sql) == 0) (void)exec(db, "ROLLBACK");
    for (size_t i = 0; i < GB_SQLITE_ROLES; i++) {
        if (db->states[i] != NULL) db->states[i]->ops->forget(db->states[i]);
    }
}

static void fail_batch(struct gb_sqlite_db *db, size_t ran)
{
    for (size_t i = 0; i < db->batch_count; i++) {
        struct gb_op *op = db->batch[i];
        const struct gb_sqlite_verb *verb = verb_of(op);
        if (i < ran && verb->ops->discard != NULL) verb->ops->discard(op);
        op->result = db->tx.fault;
    }
}

/* Retention is swept after the commit, in small transactions, so that its failure is nobody's. */
static void sweep(struct gb_sqlite_db *db)
{
    int64_t rows = SWEEP_ROWS_MIN + SWEEP_ROWS_PER_REQUEST * (int64_t)db->batch_count;
    for (size_t i = 0; i < GB_SQLITE_ROLES; i++) {
        struct gb_sqlite_state *state = db->states[i];
        if (state == NULL || !state->ops->sweep_due(state, db->tx.now_ms)) continue;
        if (exec(db, "BEGIN IMMEDIATE")) state->ops->sweep(state, &db->tx, rows);
        if (!gb_sqlite_faulted(&db->tx)) (void)exec(db, "COMMIT");
    }
    if (!gb_sqlite_faulted(&db->tx)) return;
    roll_back(db);
    db->tx.unhealthy = true;
    GB_LOG(GB_LOG_ERROR, "retention sweep failed; it is tried again with a later write",
           gb_lf_str("path", db->path), gb_lf_err(&db->tx.fault));
    db->tx.fault = gb_ok();
}

/* Worker: all requests, one transaction. */
static void run_batch(struct gb_job *job)
{
    struct gb_sqlite_db *db = GB_CONTAINER_OF(job, struct gb_sqlite_db, job);
    struct gb_sqlite_tx *tx = &db->tx;
    tx->fault = gb_ok();
    tx->unhealthy = false;
    int64_t changes = sqlite3_total_changes64(tx->sql);
    size_t ran = 0;
    if (exec(db, "BEGIN IMMEDIATE")) {
        while (ran < db->batch_count && !gb_sqlite_faulted(tx)) {
            struct gb_op *op = db->batch[ran++];
            op->result = verb_of(op)->ops->run(tx, verb_of(op), op);
        }
        if (!gb_sqlite_faulted(tx)) (void)exec(db, "COMMIT");
    }
    if (gb_sqlite_faulted(tx)) {
        roll_back(db);
        fail_batch(db, ran);
    } else if (sqlite3_total_changes64(tx->sql) != changes) {
        sweep(db);
    }
}

/* --- loop thread: the queue --- */

static int64_t wall_ms(const struct gb_sqlite_db *db)
{
    const struct gb_sqlite_pool_cfg *cfg = &db->pool->cfg;
    return cfg->wall_ms != NULL ? cfg->wall_ms(cfg->arg) : gb_reactor_wall_ms(reactor_of(db));
}

static void user_free(struct gb_sqlite_user *user);

/* The op leaves the queue or the batch with its result. */
static void settle(struct gb_op *op, struct gb_err result)
{
    struct gb_sqlite_user *user = verb_of(op)->user;
    gb_op_finish(op, result);
    GB_ASSERT(user->pending > 0);
    if (--user->pending == 0 && user->close_op != NULL) user_free(user);
}

static void cancel(struct gb_op *op)
{
    if (!gb_list_linked(&op->node)) return; /* in a transaction: too late */
    settle(op, gb_err(GB_CANCELLED, "cancelled before its transaction"));
}

static struct gb_err late(const struct gb_sqlite_db *db)
{
    return gb_err(GB_TIMEOUT, "sqlite %s: the request waited past its deadline", db->path);
}

static void watch_deadline(struct gb_sqlite_db *db, uint64_t deadline_ns)
{
    if (deadline_ns == 0) return;
    if (gb_timer_running(&db->timer) && db->timer.deadline_ns <= deadline_ns) return;
    gb_timer_start(&db->timer, deadline_ns);
}

static void deadline_passed(struct gb_timer *timer)
{
    struct gb_sqlite_db *db = GB_CONTAINER_OF(timer, struct gb_sqlite_db, timer);
    uint64_t now_ns = gb_reactor_now_ns(reactor_of(db));
    struct gb_list_node *node = gb_list_first(&db->queue);
    while (node != NULL) {
        struct gb_op *op = GB_CONTAINER_OF(node, struct gb_op, node);
        node = gb_list_next(&db->queue, node);
        if (op->deadline_ns == 0) continue;
        if (op->deadline_ns <= now_ns) {
            settle(op, late(db));
        } else {
            watch_deadline(db, op->deadline_ns);
        }
    }
}

static bool batch_has_room(const struct gb_sqlite_db *db, size_t bytes)
{
    return db->batch_count < db->batch_max && bytes < GB_SQLITE_TX_BYTES;
}

static void start_batch(struct gb_task *task)
{
    struct gb_sqlite_db *db = GB_CONTAINER_OF(task, struct gb_sqlite_db, flush);
    if (db->running) return;
    uint64_t now_ns = gb_reactor_now_ns(reactor_of(db));
    size_t bytes = 0;
    db->batch_count = 0;
    while (batch_has_room(db, bytes)) {
        struct gb_list_node *node = gb_list_pop(&db->queue);
        if (node == NULL) break;
        struct gb_op *op = GB_CONTAINER_OF(node, struct gb_op, node);
        const struct gb_sqlite_verb *verb = verb_of(op);
        if (op->deadline_ns != 0 && op->deadline_ns <= now_ns) {
            settle(op, late(db));
            continue;
        }
        db->batch[db->batch_count++] = op;
        if (verb->ops->bytes != NULL) bytes += verb->ops->bytes(op);
    }
    if (db->batch_count == 0) return;
    db->tx.now_ms = wall_ms(db);
    db->running = true;
    db->tx_number++;
    gb_worker_submit(db->worker, &db->job);
}

static void count_unhealthy(struct gb_sqlite_db *db, struct gb_sqlite_user *user)
{
    if (!db->tx.unhealthy || user->counted_tx == db->tx_number) return;
    user->counted_tx = db->tx_number;
    gb_metric_add(user->unhealthy, 1);
}

static void adapt_batch(struct gb_sqlite_db *db)
{
    if (gb_sqlite_faulted(&db->tx)) {
        db->batch_max = (db->batch_count + 1) / 2;
    } else if (db->batch_max < GB_SQLITE_TX_REQUESTS) {
        db->batch_max *= 2;
    }
}

static void batch_done(struct gb_job *job)
{
    struct gb_sqlite_db *db = GB_CONTAINER_OF(job, struct gb_sqlite_db, job);
    db->running = false;
    adapt_batch(db);
    for (size_t i = 0; i < db->batch_count; i++) count_unhealthy(db, verb_of(db->batch[i])->user);
    /* What the callbacks submit joins the next batch: it starts when they all have run. */
    if (!gb_list_empty(&db->queue)) gb_reactor_flush(reactor_of(db), &db->flush);
    size_t count = db->batch_count;
    db->batch_count = 0;
    for (size_t i = 0; i < count; i++) settle(db->batch[i], db->batch[i]->result);
}

void gb_sqlite_user_submit(struct gb_sqlite_verb *verb, struct gb_op *op, gb_done_fn *done,
                           void *arg)
{
    struct gb_sqlite_user *user = verb->user;
    struct gb_sqlite_db *db = user->db;
    gb_op_start(op, reactor_of(db), done, arg, cancel, verb);
    if (user->close_op != NULL) {
        gb_op_finish(op, gb_err(GB_UNAVAILABLE, "sqlite %s: the store is closing", db->path));
        return;
    }
    if (user->pending >= user->queue_max) {
        gb_op_finish(op, gb_err(GB_UNAVAILABLE, "sqlite %s: %zu requests wait, the limit", db->path,
                                user->pending));
        return;
    }
    user->pending++;
    gb_list_push(&db->queue, &op->node);
    watch_deadline(db, op->deadline_ns);
    if (!db->running) gb_reactor_flush(reactor_of(db), &db->flush);
}

/* --- opening --- */

struct gb_err gb_sqlite_pool_new(const struct gb_sqlite_pool_cfg *cfg, struct gb_sqlite_pool **out)
{
    struct gb_sqlite_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) return gb_err_no_memory("the SQLite pool");
    pool->cfg = *cfg;
    gb_list_init(&pool->dbs);
    *out = pool;
    return gb_ok();
}

void gb_sqlite_pool_free(struct gb_sqlite_pool *pool)
{
    if (pool == NULL) return;
    GB_ASSERT(gb_list_empty(&pool->dbs));
    free(pool);
}

static void close_connection(struct gb_sqlite_db *db)
{
    for (size_t i = 0; i < GB_SQLITE_ROLES; i++) {
        if (db->states[i] != NULL) db->states[i]->ops->free(db->states[i]);
        db->states[i] = NULL;
    }
    gb_sqlite_close(&db->connection);
}

/* Also of a database that is half built, or whose worker has ended. */
static void db_free(struct gb_sqlite_db *db)
{
    if (db == NULL) return;
    close_connection(db);
    gb_str_deinit(&db->tx.scratch);
    gb_timer_deinit(&db->timer);
    gb_list_remove(&db->node);
    free(db->path);
    free(db->identity);
    free(db);
}

/* NULL: nobody shares it (`:memory:`), or has it open (its directory does not exist). */
static struct gb_err identify(const char *path, char **out)
{
    *out = NULL;
    return strcmp(path, ":memory:") == 0 ? gb_ok() : gb_sqlite_file_identity(path, out);
}

static struct gb_err db_new(struct gb_sqlite_pool *pool, const struct gb_sqlite_user_cfg *cfg,
                            struct gb_sqlite_db **out)
{
    struct gb_sqlite_db *db = calloc(1, sizeof *db);
    if (db == NULL) return gb_err_no_memory("an SQLite database");
    db->pool = pool;
    db->path = gb_strdup(cfg->path);
    gb_list_init(&db->queue);
    db->batch_max = GB_SQLITE_TX_REQUESTS;
    db->flush.run = start_batch;
    db->job = (struct gb_job){.run = run_batch, .done = batch_done};
    struct gb_err err = gb_err_no_memory("a path");
    if (db->path == NULL) goto fail;
    err = gb_timer_init(&db->timer, gb_loop_reactor(pool->cfg.loop), deadline_passed);
    if (gb_failed(err)) goto fail;
    err = gb_sqlite_open(db->path, cfg->strict, &db->connection);
    if (gb_failed(err)) goto fail;
    err = identify(db->path, &db->identity); /* now, for opening may have made the directory */
    if (gb_failed(err)) goto fail;
    db->tx.sql = db->connection.sql;
    db->tx.path = db->path;
    *out = db;
    return err;
fail:
    db_free(db);
    return err;
}

/* Schema and state of one more role; on the worker, or before there is one. */
static struct gb_err add_role(struct gb_sqlite_db *db, const struct gb_sqlite_user_cfg *cfg)
{
    struct gb_err err = gb_ok();
    if (cfg->strict) err = gb_sqlite_exec(db->tx.sql, db->path, "PRAGMA foreign_keys=ON");
    if (gb_failed(err) || db->states[cfg->role] != NULL) return err;
    err = gb_sqlite_schema_apply(db->tx.sql, db->path, cfg->role);
    if (gb_failed(err)) return err;
    return cfg->state_new(&db->states[cfg->role]);
}

static struct gb_err db_open(struct gb_sqlite_pool *pool, const struct gb_sqlite_user_cfg *cfg,
                             struct gb_sqlite_db **out)
{
    struct gb_sqlite_db *db = NULL;
    struct gb_err err = db_new(pool, cfg, &db);
    if (gb_failed(err)) return err;
    GB_ASSERT(db != NULL);
    err = add_role(db, cfg);
    if (!gb_failed(err)) err = gb_worker_new(pool->cfg.loop, "gb-sqlite", &db->worker);
    if (gb_failed(err)) {
        db_free(db);
        return err;
    }
    gb_list_push(&pool->dbs, &db->node);
    *out = db;
    return err;
}

/* A role that joins a database in use is added on its worker, which owns the connection; the
 * constructor waits for it, at most for the transaction that runs. */
struct join_job {
    struct gb_job job;
    struct gb_sqlite_db *db;
    const struct gb_sqlite_user_cfg *cfg; /* the constructor's, gone after `finished` */
    struct gb_err err;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool finished;
};

static void run_join(struct gb_job *job)
{
    struct join_job *j = GB_CONTAINER_OF(job, struct join_job, job);
    struct gb_err err = add_role(j->db, j->cfg);
    int rc = pthread_mutex_lock(&j->lock);
    GB_ASSERT(rc == 0);
    j->err = err;
    j->finished = true;
    rc = pthread_cond_signal(&j->wake);
    GB_ASSERT(rc == 0);
    rc = pthread_mutex_unlock(&j->lock);
    GB_ASSERT(rc == 0);
}

static void join_done(struct gb_job *job)
{
    struct join_job *j = GB_CONTAINER_OF(job, struct join_job, job);
    (void)pthread_cond_destroy(&j->wake); /* both fail for a lock in use only */
    (void)pthread_mutex_destroy(&j->lock);
    free(j);
}

static struct gb_err db_join(struct gb_sqlite_db *db, const struct gb_sqlite_user_cfg *cfg)
{
    if (db->closing)
        return gb_err(GB_UNAVAILABLE, "sqlite %s: is being closed, try again", db->path);
    if (cfg->strict) {
        struct gb_err err = gb_sqlite_file_recheck(cfg->path, NULL);
        if (gb_failed(err)) return err;
    }
    struct join_job *j = calloc(1, sizeof *j);
    if (j == NULL) return gb_err_no_memory("an SQLite store");
    *j = (struct join_job){.job = {.run = run_join, .done = join_done}, .db = db, .cfg = cfg};
    int rc = pthread_mutex_init(&j->lock, NULL);
    GB_ASSERT(rc == 0); /* with default attributes neither allocates */
    rc = pthread_cond_init(&j->wake, NULL);
    GB_ASSERT(rc == 0);
    gb_worker_submit(db->worker, &j->job);
    rc = pthread_mutex_lock(&j->lock);
    GB_ASSERT(rc == 0);
    while (!j->finished) {
        rc = pthread_cond_wait(&j->wake, &j->lock);
        GB_ASSERT(rc == 0);
    }
    struct gb_err err = j->err;
    rc = pthread_mutex_unlock(&j->lock);
    GB_ASSERT(rc == 0);
    return err; /* the job is freed on the loop, later */
}

static struct gb_sqlite_db *find_db(const struct gb_sqlite_pool *pool, const char *identity)
{
    const struct gb_list_node *node = gb_list_first(&pool->dbs);
    for (; node != NULL; node = gb_list_next(&pool->dbs, node)) {
        struct gb_sqlite_db *db =
            GB_CONTAINER_OF((void *)(uintptr_t)node, struct gb_sqlite_db, node);
        if (db->identity != NULL && strcmp(db->identity, identity) == 0) return db;
    }
    return NULL;
}

struct gb_err gb_sqlite_user_open(struct gb_sqlite_pool *pool, const struct gb_sqlite_user_cfg *cfg,
                                  struct gb_sqlite_user *user)
{
    char *identity = NULL;
    struct gb_err err = identify(cfg->path, &identity);
    if (gb_failed(err)) return err;
    struct gb_sqlite_db *db = identity == NULL ? NULL : find_db(pool, identity);
    free(identity);
    err = db == NULL ? db_open(pool, cfg, &db) : db_join(db, cfg);
    if (gb_failed(err)) return err;
    db->users++;
    const char *role = gb_sqlite_role_name(cfg->role);
    *user = (struct gb_sqlite_user){
        .db = db,
        .state = db->states[cfg->role],
        .queue_max = cfg->queue_max > 0 ? cfg->queue_max : GB_SQLITE_QUEUE_DEFAULT,
        .unhealthy = gb_metrics_get(pool->cfg.metrics, GB_METRIC_COUNTER, "SQLiteStoreUnhealthy",
                                    GB_DIMS({"entity", role})),
        .free = cfg->free,
    };
    return err;
}

/* --- closing --- */

/* Worker: the close moves the write-ahead log into the file, so it is no work for the loop. */
static void run_close(struct gb_job *job)
{
    close_connection(GB_CONTAINER_OF(job, struct gb_sqlite_db, job));
}

static void close_done(struct gb_job *job)
{
    (void)job; /* the end of the worker follows */
}

static void worker_closed(struct gb_op *op, void *arg)
{
    (void)op;
    struct gb_sqlite_db *db = arg;
    struct gb_sqlite_user *user = db->last_user;
    struct gb_op *close_op = user->close_op;
    user->free(user);
    db_free(db);
    gb_op_finish(close_op, gb_ok());
}

/* Its last request has finished. */
static void user_free(struct gb_sqlite_user *user)
{
    struct gb_sqlite_db *db = user->db;
    GB_ASSERT(db->users > 0);
    if (--db->users > 0) {
        struct gb_op *close_op = user->close_op;
        user->free(user);
        gb_op_finish(close_op, gb_ok());
        return;
    }
    db->closing = true;
    db->last_user = user;
    gb_task_cancel(&db->flush);
    gb_timer_stop(&db->timer);
    db->job = (struct gb_job){.run = run_close, .done = close_done};
    gb_worker_submit(db->worker, &db->job);
    gb_worker_close(db->worker, &db->worker_op, worker_closed, db);
}

void gb_sqlite_user_close(struct gb_sqlite_user *user, struct gb_op *op, gb_done_fn *done,
                          void *arg)
{
    gb_op_start(op, reactor_of(user->db), done, arg, NULL, user);
    if (user->close_op != NULL) {
        gb_op_finish(op, gb_err(GB_UNAVAILABLE, "sqlite %s: is closing already", user->db->path));
        return;
    }
    user->close_op = op;
    if (user->pending == 0) user_free(user);
}
