#ifndef GB_PORTS_OUTBOX_H
#define GB_PORTS_OUTBOX_H

#include "base/op.h"
#include "domain/outbox_record.h"
#include "domain/token.h"

/* Outbox store (spec 05 §2). Each request struct embeds its op; `op.deadline_ns` bounds the call.
 * Owns:   request structs and everything they borrow belong to the caller and stay untouched until
 *         `done`; a claimed batch belongs to the caller after `done` (gb_outbox_batch_free).
 * Thread: loop thread only, for calls and for `done`.
 * Errors: GB_STALE_FENCING_TOKEN, GB_DUPLICATE_RECORD (persist: all existed), GB_UNAVAILABLE,
 *         GB_TIMEOUT, GB_CANCELLED, GB_INVALID_OUTBOX_RECORD. Success means crash-durable on SQLite
 *         and DynamoDB. */

struct gb_outbox_persist {
    struct gb_op op;
    const struct gb_outbox_record *records; /* the envelope's reference is held by the caller */
    size_t count;
    size_t stored; /* out: new records; the rest existed */
};
struct gb_outbox_claim {
    struct gb_op op;
    struct gb_bytes partition;
    struct gb_token token;
    uint32_t limit;                /* 0 = pure fencing call */
    struct gb_outbox_batch *batch; /* out, NULL when nothing was claimed; oldest first */
};
enum gb_outbox_settle_kind { GB_OUTBOX_COMPLETE, GB_OUTBOX_RELEASE };
struct gb_outbox_settle {
    struct gb_op op;
    enum gb_outbox_settle_kind kind;
    struct gb_bytes partition;
    struct gb_bytes id; /* exactly one record (spec 05, chance 5) */
    struct gb_token token;
};
struct gb_outbox_expire {
    struct gb_op op;
    struct gb_bytes partition;
    struct gb_token token;
    int64_t cutoff_ms;
    uint64_t expired; /* out; may be positive together with an error */
};
struct gb_outbox_depth {
    struct gb_op op;
    struct gb_bytes partition;
    uint64_t limit;
    uint64_t pending; /* out: min(pending, limit) */
};
struct gb_outbox_stats {
    struct gb_op op;
    struct gb_bytes partition;
    uint64_t pending, claimed; /* out: exact */
    int64_t oldest_pending_ms; /* out: 0 = none */
    uint64_t mark;             /* out: highest token version accepted so far (spec 05 §2.5) */
};

struct gb_outbox;
struct gb_outbox_ops {
    /* Idempotent per (partition, envelope id, binding id); atomic for one call on memory and
     * SQLite. */
    void (*persist)(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg);
    /* Token check, mark raise, then the oldest N claimable by (created_at, seq, envelope_id),
     * head-of-line rule. */
    void (*claim)(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg);
    void (*settle)(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg);
    void (*expire)(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg);
    void (*depth)(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg);
    void (*stats)(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg);
    /* Refuses new calls (GB_UNAVAILABLE), finishes pending ones, completes once, frees `o`. */
    void (*close)(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg);
};
struct gb_outbox {
    const struct gb_outbox_ops *ops;
};

#endif
