#ifndef GB_ADAPTERS_SQLITE_SQLITE_LEASE_H
#define GB_ADAPTERS_SQLITE_SQLITE_LEASE_H

#include "adapters/sqlite/sqlite_pool.h"
#include "ports/lease.h"

/* Leases of a standalone bridge that survive its restarts (spec 05 §8), so that versions keep
 * growing above what a durable outbox has seen. The file's lock proves that every earlier holder is
 * dead: an active row of another token is taken over at once.
 * Owns:   borrows the pool; the cfg is copied.
 * Thread: loop thread only.
 * Errors: gb_sqlite_lease_new: GB_INVALID_CONFIG (path, another process has the file),
 *         GB_UNAVAILABLE. */
struct gb_sqlite_lease_cfg {
    const char *path;
    size_t queue_max; /* 0: GB_SQLITE_QUEUE_DEFAULT */
};
struct gb_err gb_sqlite_lease_new(struct gb_sqlite_pool *pool,
                                  const struct gb_sqlite_lease_cfg *cfg, struct gb_lease **out);

#endif
