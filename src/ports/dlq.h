#ifndef GB_PORTS_DLQ_H
#define GB_PORTS_DLQ_H

#include "base/op.h"
#include "domain/dlq_entry.h"

/* Dead-letter store (spec 05 §3).
 * Owns:   requests and what they borrow belong to the caller until `done`; entries handed out
 *         belong to the caller.
 * Thread: loop thread only.
 * Errors: write: GB_DUPLICATE_RECORD (id exists, row untouched); get: GB_NOT_FOUND; GB_UNAVAILABLE,
 *         GB_TIMEOUT, GB_CANCELLED. */
struct gb_dlq_write {
    struct gb_op op;
    const struct gb_dlq_entry *entry; /* id derived by the caller */
};
struct gb_dlq_get {
    struct gb_op op;
    const char *id;
    struct gb_dlq_entry *entry; /* out */
};
struct gb_dlq_filter {
    const char *route_id, *category; /* NULL = any */
    int64_t since_ms;                /* inclusive; 0 = open */
    int64_t before_ms;               /* exclusive; 0 = open */
    int64_t limit;
};
struct gb_dlq_list {
    struct gb_op op;
    struct gb_dlq_filter filter;   /* limit <= 0 = 100; oldest first by (failed_at, id) */
    struct gb_dlq_entry **entries; /* out: malloc'd array of entries, caller frees both */
    size_t count;
};
struct gb_dlq_delete {
    struct gb_op op;
    const char *const *ids; /* by ids, or NULL: by filter (limit <= 0 = every match) */
    size_t id_count;
    struct gb_dlq_filter filter; /* purge = filter with before_ms alone */
    /* out: really removed; a store that asks twice because an answer got lost counts a row that is
     * gone then, also one of `ids` that was never there. */
    uint64_t deleted;
};
struct gb_dlq_count {
    struct gb_op op;
    uint64_t count; /* out */
};

struct gb_dlq;
struct gb_dlq_ops {
    void (*write)(struct gb_dlq *d, struct gb_dlq_write *q, gb_done_fn *done, void *arg);
    void (*get)(struct gb_dlq *d, struct gb_dlq_get *q, gb_done_fn *done, void *arg);
    void (*list)(struct gb_dlq *d, struct gb_dlq_list *q, gb_done_fn *done, void *arg);
    void (*remove)(struct gb_dlq *d, struct gb_dlq_delete *q, gb_done_fn *done, void *arg);
    void (*count)(struct gb_dlq *d, struct gb_dlq_count *q, gb_done_fn *done, void *arg);
    void (*close)(struct gb_dlq *d, struct gb_op *op, gb_done_fn *done, void *arg); /* frees `d` */
};
struct gb_dlq {
    const struct gb_dlq_ops *ops;
};

#endif
