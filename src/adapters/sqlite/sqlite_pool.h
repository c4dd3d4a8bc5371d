#ifndef GB_ADAPTERS_SQLITE_POOL_H
#define GB_ADAPTERS_SQLITE_POOL_H

#include "base/metrics.h"
#include "io/loop.h"

/* The databases open in this process: stores that name the same path share one connection.
 * Owns:   the databases until their last store is closed.
 * Thread: loop thread only.
 * Errors: gb_sqlite_pool_new: GB_UNAVAILABLE. */
struct gb_sqlite_pool;
struct gb_sqlite_pool_cfg {
    struct gb_loop *loop;
    struct gb_metrics
        *metrics; /* SQLiteStoreUnhealthy, dimension entity = the role under `stores` */
    int64_t (*wall_ms)(
        void *arg); /* store clock, called on the loop; NULL: the loop's wall clock */
    void *arg;
};
struct gb_err gb_sqlite_pool_new(const struct gb_sqlite_pool_cfg *cfg, struct gb_sqlite_pool **out);
/* Asserts that every store was closed. NULL ok. */
void gb_sqlite_pool_free(struct gb_sqlite_pool *pool);

#endif
