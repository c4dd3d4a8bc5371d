#ifndef GB_ADAPTERS_SQLITE_DLQ_H
#define GB_ADAPTERS_SQLITE_DLQ_H

#include "adapters/sqlite/sqlite_pool.h"
#include "ports/dlq.h"

/* Dead letters in an SQLite file (spec 05 §3, §8); a successful write is crash-durable.
 * A removal by filter is one transaction, however many rows match.
 * Owns:   its share of the database, until closed.
 * Thread: loop thread only.
 * Errors: gb_sqlite_dlq_new: GB_INVALID_CONFIG (path, file that is no database), GB_UNAVAILABLE.
 *         Calls: as the port says; `queue_max` calls waiting: GB_UNAVAILABLE. A row that can't be
 *                read: get answers
 *         GB_INVALID_OUTBOX_RECORD, list leaves it out and logs it (docs/decisions/0203). */
struct gb_sqlite_dlq_cfg {
    const char *path;
    int64_t retention_ns; /* > 0: entries that failed longer ago are deleted; else never */
    size_t queue_max;     /* 0 = 16384 */
};
struct gb_err gb_sqlite_dlq_new(struct gb_sqlite_pool *pool, const struct gb_sqlite_dlq_cfg *cfg,
                                struct gb_dlq **out);

#endif
