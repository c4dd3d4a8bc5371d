#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_PARTS_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_PARTS_H

#include "adapters/dynamodb/dynamodb_outbox.h"
#include "adapters/dynamodb/dynamodb_outbox_row.h"
#include "base/log.h"
#include "base/map.h"

/* The outbox store's inside, shared by its operations (dynamodb_outbox_<operation>.c).
 * Owns:   the store its partitions, cursors, cached ids and put slots; a task its requests.
 * Thread: loop thread only.
 * Errors: see the functions.
 *
 * A port call is a task: it has one deadline and any number of requests. It ends through
 * gb_dbox_end, which stops what has not been sent, cancels what has, and finishes the op when the
 * last request is done. */

enum { GB_DBOX_PUTS_MAX = 32, GB_DBOX_IDS_MAX = 10000, GB_DBOX_CURSORS_MAX = 1024 };
#define GB_DBOX_DAY_MS INT64_C(86400000)

struct gb_dbox_partition {
    char *name;          /* terminated */
    struct gb_bytes key; /* the same */
    unsigned users;      /* tasks that point here */
    /* fence: `mark` is what the table is known to hold, at least */
    uint64_t mark;
    int64_t raised_ms;  /* when `mark` was seen or written; 0 = not known */
    bool seeded;        /* no mark in the table; `mark` is that of the rows */
    uint64_t seed_mark; /* of the rows up to seed_cursor */
    uint64_t claims, claims_running;
    /* sequence numbers taken and not given out */
    uint64_t seq_next, seq_end;
    int64_t seq_taken_ms;
    struct gb_list seq_waiting; /* put jobs */
    struct gb_dbox_taking *taking;
    /* direct records (dynamodb_outbox_direct.h); each counts as a user */
    struct gb_list queued; /* oldest first */
    struct gb_list handed; /* in the order of their hand-outs */
    struct gb_list leaving;
    struct gb_str owner; /* of the last claim, and its version: */
    uint64_t version;
    int64_t owned_ms; /* since when */
    /* of the last sweep under that token */
    bool swept, sweep_saw_keyed;             /* saw: live ones that are in the indexes */
    int64_t swept_ms, sweep_due_ms;          /* due: 0 = the usual one only */
    struct gb_str seed_cursor, sweep_cursor; /* where a long read goes on */
    struct gb_dbox_sweep *sweep;             /* NULL: none is under way */
    int64_t sweep_began_ms;                  /* of the one that is not through; 0 = none */
    unsigned sweep_pages, swept_pages;       /* of that one, and of the last */
    uint64_t sweep_events;                   /* `keyed_events` then */
    /* all live keyed ones of the indexes are in `handed`, by a read of clean_ms */
    bool keyed_clean, keyed_wish; /* wish: one went the ordinary way for lack of that */
    int64_t clean_ms;
    /* what may be pending in the indexes */
    bool backlog_empty;
    int64_t backlog_ms; /* the oldest, if not empty */
    uint64_t backlog_seq;
    uint64_t index_events, keyed_events; /* records that came into the indexes */
    int64_t looked_ms;
};

struct gb_dbox_put {
    struct gb_dbox_job *job; /* NULL: free */
    struct gb_dbox_request *request;
};

struct gb_dbox {
    struct gb_outbox port;
    struct gb_dynamodb_outbox_cfg cfg; /* table: own copy */
    char *table;
    int64_t stale_ms, grace_ms, keyed_after_ms;
    size_t tasks, takings; /* pending */
    struct gb_op *close_op;
    struct gb_map partitions, cursors, ids, lines;
    struct gb_list ids_by_age;
    struct gb_map direct; /* of struct gb_dbox_direct, by record id */
    size_t direct_bytes;
    int64_t forgot_ms;
    struct gb_op mend_op; /* at the end */
    bool mending, mended;
    struct gb_list ready; /* put jobs that may be sent */
    struct gb_dbox_put puts[GB_DBOX_PUTS_MAX];
    bool warned_keyed, warned_no_index;
    struct gb_log_limit corrupt_log, refused_log, sweep_log;
};
static inline struct gb_dbox *gb_dbox_of(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct gb_dbox, port);
}
int64_t gb_dbox_now_ms(const struct gb_dbox *s);

/* --- tasks --- */

struct gb_dbox_task;
struct gb_dbox_task_ops {
    void (*stop)(struct gb_dbox_task *t); /* drop what was not sent; NULL ok */
    /* Fill in the port call's results and say how it ended. */
    struct gb_err (*finish)(struct gb_dbox_task *t, struct gb_err verdict);
    void (*free)(struct gb_dbox_task *t); /* what the task holds, and the task */
};
struct gb_dbox_task {
    struct gb_dbox *s;
    const struct gb_dbox_task_ops *ops;
    struct gb_op *op;
    struct gb_timer timer;
    uint64_t deadline_ns;
    struct gb_list requests; /* those under way */
    unsigned running;
    bool ending, started;
    struct gb_err verdict;
    struct gb_dbox_partition *partition; /* NULL: none held */
};
struct gb_dbox_request;
typedef void gb_dbox_next_fn(struct gb_dbox_request *r);
struct gb_dbox_request {
    struct gb_dynamodb_call call;
    struct gb_dbox_task *task;
    struct gb_list_node node;
    gb_dbox_next_fn *next; /* also when the task is ending: look at task->ending */
    void *step;            /* whose request it is now */
};

/* Allocates `size` bytes that begin with a task and starts the op; NULL when the op is refused or
 * out of memory, it is finished then. `free` is called even when the task is never used. */
void *gb_dbox_task_new(struct gb_dbox *s, size_t size, const struct gb_dbox_task_ops *ops,
                       struct gb_op *op, gb_done_fn *done, void *arg);
/* The first verdict counts. The task may be gone when this returns, unless one of its requests is
 * under way. */
void gb_dbox_end(struct gb_dbox_task *t, struct gb_err verdict);
/* Sends what was written into r->call. */
void gb_dbox_send(struct gb_dbox_task *t, struct gb_dbox_request *r, gb_dbox_next_fn *next);
/* Takes `partition` for the task; false: the task has ended, out of memory. */
bool gb_dbox_hold(struct gb_dbox_task *t, struct gb_bytes partition);
struct gb_dbox_partition *gb_dbox_partition(struct gb_dbox *s, struct gb_bytes name);
void gb_dbox_close_if_idle(struct gb_dbox *s);
struct gb_metric *gb_dbox_counter(struct gb_dbox *s, const struct gb_dbox_partition *p,
                                  const char *name);

/* --- fence (dynamodb_outbox_fence.c) --- */

struct gb_err gb_dbox_stale(const struct gb_token *token, const char *why);
/* What a task with a token embeds. `accepted` also follows a mere look; the mark is then in
 * t->partition. */
struct gb_dbox_fence {
    struct gb_dbox_request *request;
    const struct gb_token *token; /* NULL: only look */
    void (*accepted)(struct gb_dbox_task *t);
    bool always, check; /* ask the table even when the mark is known; `check` writes no equal one */
    struct gb_str scratch;
};
/* Validity, mark, raise; ends the task when the token is refused. */
void gb_dbox_fence(struct gb_dbox_task *t, struct gb_dbox_fence *f);
void gb_dbox_fence_deinit(struct gb_dbox_fence *f);
void gb_dbox_write_fence_check(struct gb_dynamodb_call *call, const char *table,
                               const struct gb_dbox_partition *p, uint64_t version);
uint64_t gb_dbox_fence_ttl(const struct gb_dbox *s);
uint64_t gb_dbox_ttl(const struct gb_dbox *s, int64_t from_ms);

/* --- fenced transactions (dynamodb_outbox_fenced.c) --- */

enum gb_dbox_target_state { GB_DBOX_OPEN = 0, GB_DBOX_SENT, GB_DBOX_DONE, GB_DBOX_LOST };
struct gb_dbox_target {
    struct gb_bytes sort_key;
    struct gb_bytes key; /* once one is lost, those after it with the same key are, too */
    size_t bytes;        /* of the item, at most */
    enum gb_dbox_target_state state;
};
struct gb_dbox_fenced {
    struct gb_dbox_request *request;
    const struct gb_token *token;
    struct gb_dbox_target **targets;
    size_t count;
    /* Writes the update of one target: expressions and values, key excepted. */
    void (*write)(struct gb_dbox_task *t, struct gb_dbox_target *target,
                  struct gb_dynamodb_call *call);
    /* Whether the item shows that this very transaction was applied. */
    bool (*is_own)(struct gb_dbox_task *t, const struct gb_dbox_target *target,
                   const struct gb_dbox_row *row);
    void (*done)(struct gb_dbox_task *t); /* each target is DONE or LOST */
    struct gb_err refused; /* out: the first that was lost because DynamoDB refuses its row */
    /* private */
    unsigned conflicts;
    struct gb_timer pause;
    bool paused;
    struct gb_err failure;
    struct gb_str scratch;
    struct gb_dbox_task *task;
};
/* Runs all targets, several to a transaction with the fence's check; ends the task on a failure,
 * targets that are DONE are so all the same. */
void gb_dbox_fenced_run(struct gb_dbox_task *t, struct gb_dbox_fenced *f);
void gb_dbox_fenced_deinit(struct gb_dbox_fenced *f);

/* --- ids of claimed records (dynamodb_outbox_ids.c) --- */

/* A failure to keep one is no error: the index knows it, too. */
void gb_dbox_ids_put(struct gb_dbox *s, struct gb_bytes id, struct gb_bytes partition,
                     struct gb_bytes sort_key);
/* Valid until the next change; false: not known. */
bool gb_dbox_ids_get(struct gb_dbox *s, struct gb_bytes id, struct gb_bytes *partition,
                     struct gb_bytes *sort_key);
void gb_dbox_ids_remove(struct gb_dbox *s, struct gb_bytes id);
void gb_dbox_ids_deinit(struct gb_dbox *s);

/* --- candidates of a claim (dynamodb_outbox_select.c) --- */

struct gb_dbox_candidate {
    struct gb_dbox_target target;
    struct gb_dbox_row row; /* views into `memory` */
    char memory[];
};
struct gb_dbox_select {
    struct gb_dbox_request *request;
    const struct gb_token *token;
    uint32_t limit;
    int64_t cutoff_ms; /* claims before that are stale; 0 disables */
    void (*done)(struct gb_dbox_task *t);
    /* out */
    struct gb_dbox_candidate **found; /* oldest first */
    size_t count;
    struct gb_err corrupt; /* the first row that can't be read */
    bool left, foreign;    /* some were not taken; some with keys are held by nobody here */
    /* private */
    size_t capacity, bytes, pages;
    bool scanning;
    bool again;   /* the second scan: all blockers are known */
    bool trimmed; /* none as young as this one is complete: */
    int64_t trimmed_ms;
    uint64_t trimmed_seq;
    struct gb_map blockers; /* of struct gb_dbox_blocker, by ordering key */
    struct gb_str scratch;
};
void gb_dbox_select_run(struct gb_dbox_task *t, struct gb_dbox_select *sel);
void gb_dbox_select_deinit(struct gb_dbox_select *sel);

/* --- operations --- */

void gb_dbox_persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg);
void gb_dbox_claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg);
void gb_dbox_settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg);
void gb_dbox_expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg);
void gb_dbox_depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg);
void gb_dbox_stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg);
struct gb_err gb_dbox_puts_init(struct gb_dbox *s);
void gb_dbox_puts_deinit(struct gb_dbox *s);
void gb_dbox_cursors_deinit(struct gb_dbox *s);
void gb_dbox_direct_deinit(struct gb_dbox *s);

#endif
