#ifndef GB_ADAPTERS_SQLITE_SUBSCRIPTIONS_H
#define GB_ADAPTERS_SQLITE_SUBSCRIPTIONS_H

#include "adapters/sqlite/sqlite_pool.h"
#include "ports/subscriptions.h"

/* Managed-subscription history in an SQLite file (spec 05 §5, §8), under the strict rules for files
 * of sqlite_path.h.
 * Owns:   its share of the database, until closed.
 * Thread: loop thread only.
 * Errors: gb_sqlite_subscriptions_new: GB_INVALID_CONFIG naming path and required mode,
 *         GB_UNAVAILABLE. Calls: as the port says; `queue_max` calls waiting: GB_UNAVAILABLE. */
struct gb_sqlite_subscriptions_cfg {
    const char *path;
    size_t queue_max; /* 0 = 16384 */
};
struct gb_err gb_sqlite_subscriptions_new(struct gb_sqlite_pool *pool,
                                          const struct gb_sqlite_subscriptions_cfg *cfg,
                                          struct gb_subscriptions **out);

#endif
