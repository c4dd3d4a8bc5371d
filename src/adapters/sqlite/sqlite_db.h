#ifndef GB_ADAPTERS_SQLITE_DB_H
#define GB_ADAPTERS_SQLITE_DB_H

#include "adapters/sqlite/sqlite_pool.h"
#include "adapters/sqlite/sqlite_schema.h"
#include "adapters/sqlite/sqlite_tx.h"
#include "base/op.h"

/* One file, one connection, one worker thread; shared by the stores that name the same path.
 *
 * Group commit: requests wait on the loop while a transaction runs; all of them become the next
 * one: BEGIN IMMEDIATE, each request in the order of its call, COMMIT, one fsync. At most
 * GB_SQLITE_TX_REQUESTS requests or (about) GB_SQLITE_TX_BYTES of payload in one.
 * A request that refuses by itself (duplicate, stale token) leaves the transaction going; a fault,
 * or a failed COMMIT, rolls everything back and is the result of every request in it.
 * Deadline: a request that still waits finishes GB_TIMEOUT; one inside a transaction reports what
 *           happened.
 * Cancel: wins while the request waits, loses afterwards.
 * Owns:   users are embedded in their stores; role states belong to the database.
 * Thread: everything here on the loop thread; `run`, `discard` and the state's functions on the
 *         worker.
 * Errors: GB_UNAVAILABLE: closing, `queue_max` requests of this user already wait or run, or a
 *         fault. */

enum { GB_SQLITE_TX_REQUESTS = 4096, GB_SQLITE_TX_BYTES = 8 * 1024 * 1024 };
enum { GB_SQLITE_QUEUE_DEFAULT = 16384 };

/* What one role keeps on the worker: prepared statements and caches. */
struct gb_sqlite_state {
    const struct gb_sqlite_state_ops *ops;
};
struct gb_sqlite_state_ops {
    void (*forget)(struct gb_sqlite_state *state); /* a rollback: caches no longer hold */
    /* Retention, asked after each commit that wrote. A sweep deletes at most `rows` rows, in its
     * own transaction. */
    bool (*sweep_due)(const struct gb_sqlite_state *state, int64_t now_ms);
    void (*sweep)(struct gb_sqlite_state *state, struct gb_sqlite_tx *tx, int64_t rows);
    void (*free)(struct gb_sqlite_state *state); /* finalizes its statements */
};

struct gb_sqlite_user {
    /* private */
    struct gb_sqlite_db *db;
    struct gb_sqlite_state *state;
    size_t pending, queue_max;
    struct gb_metric *unhealthy;
    uint64_t counted_tx; /* the last transaction that counted on `unhealthy` */
    struct gb_op *close_op;
    void (*free)(struct gb_sqlite_user *user);
};
/* One per kind of call of a store; the op's provider while it is pending. */
struct gb_sqlite_verb {
    struct gb_sqlite_user *user;
    const struct gb_sqlite_verb_ops *ops;
};
struct gb_sqlite_verb_ops {
    struct gb_err (*run)(struct gb_sqlite_tx *tx, struct gb_sqlite_verb *verb, struct gb_op *op);
    void (*discard)(struct gb_op *op); /* rolled back: takes results back; NULL: there are none */
    size_t (*bytes)(const struct gb_op *op); /* payload, for the bound; NULL: none worth counting */
};

struct gb_sqlite_user_cfg {
    const char *path;
    enum gb_sqlite_role role;
    bool strict;      /* rules for files: sqlite_path.h */
    size_t queue_max; /* 0 = GB_SQLITE_QUEUE_DEFAULT */
    /* Makes the role's state when the database has none yet. */
    struct gb_err (*state_new)(struct gb_sqlite_state **out);
    void (*free)(struct gb_sqlite_user *user); /* the store, after its close */
};
/* Opens the file, or joins the stores that have it open; blocks until the schema is in place. */
struct gb_err gb_sqlite_user_open(struct gb_sqlite_pool *pool, const struct gb_sqlite_user_cfg *cfg,
                                  struct gb_sqlite_user *user);
void gb_sqlite_user_submit(struct gb_sqlite_verb *verb, struct gb_op *op, gb_done_fn *done,
                           void *arg);
/* Lets what waits run, then calls `free` and finishes; the last user closes the file first. */
void gb_sqlite_user_close(struct gb_sqlite_user *user, struct gb_op *op, gb_done_fn *done,
                          void *arg);

#endif
