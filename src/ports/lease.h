#ifndef GB_PORTS_LEASE_H
#define GB_PORTS_LEASE_H

#include "base/op.h"
#include "domain/lease_holder.h"
#include "domain/token.h"

/* Lease store (spec 06 §6): one row per lease id, the permanent fencing counter of its partition.
 * Every call is one deadline (`op.deadline_ns`) for all its inner requests.
 * Owns:   request structs and what they borrow belong to the caller until `done`; texts in a
 *         `struct gb_lease_holder` live in the request and are valid until it is started again or
 *         gb_lease_holder_deinit.
 * Thread: loop thread only, for calls and for `done`.
 * Errors: acquire: GB_ALREADY_EXISTS = held by another owner, ask again at the next poll.
 *         renew, release: GB_STALE_FENCING_TOKEN, GB_NOT_FOUND (absent or released) = lost.
 *         current: GB_NOT_FOUND = absent or released.
 *         All: GB_INVALID_CONFIG = the row is corrupt (never repaired or seized) or the request is
 *         (ttl <= 0, empty owner or id); GB_UNAVAILABLE, GB_TIMEOUT, GB_THROTTLED,
 *         GB_NOT_AUTHORIZED, GB_CANCELLED. */

struct gb_lease_acquire {
    struct gb_op op;
    struct gb_bytes lease_id, owner; /* owner token: instance_id#<boot-nonce> */
    int64_t ttl_ns;
    const struct gb_lease_endpoint *endpoints;
    size_t endpoint_count;
    uint64_t version; /* out, on success */
    /* out: on GB_ALREADY_EXISTS who holds it and for how long it was seen unchanged; on success
     * whose lease was taken over, empty after a first acquire or a release. */
    struct gb_lease_holder seen;
};
struct gb_lease_renew {
    struct gb_op op;
    struct gb_bytes lease_id;
    struct gb_token token;
    int64_t ttl_ns;
    const struct gb_lease_endpoint *endpoints;
    size_t endpoint_count;
};
struct gb_lease_release {
    struct gb_op op;
    struct gb_bytes lease_id;
    struct gb_token token;
};
struct gb_lease_current {
    struct gb_op op;
    struct gb_bytes lease_id;
    struct gb_lease_holder holder; /* out */
};

struct gb_lease;
struct gb_lease_ops {
    void (*acquire)(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg);
    void (*renew)(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg);
    void (*release)(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg);
    /* A strongly consistent read. */
    void (*current)(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg);
    /* Refuses new calls (GB_UNAVAILABLE), finishes pending ones, completes once, frees `l`. */
    void (*close)(struct gb_lease *l, struct gb_op *op, gb_done_fn *done, void *arg);
};
struct gb_lease {
    const struct gb_lease_ops *ops;
};

#endif
