#ifndef GB_ADAPTERS_SQLITE_OUTBOX_H
#define GB_ADAPTERS_SQLITE_OUTBOX_H

#include "adapters/sqlite/sqlite_pool.h"
#include "ports/outbox.h"

/* Outbox in an SQLite file (spec 05 §8): success is crash-durable, claims of a dead process are
 * taken over by version or, at the same version, once they are `stale_claim_ns` old.
 * Owns:   its share of the database, until closed.
 * Thread: loop thread only.
 * Errors: gb_sqlite_outbox_new: GB_INVALID_CONFIG (path, file that is no database, foreign tables),
 *         GB_UNAVAILABLE (in use by another process, disk). Calls: as the port says; `queue_max`
 *         calls waiting: GB_UNAVAILABLE; a record id that names another message:
 *         GB_INVALID_OUTBOX_RECORD. A claim skips rows that can't be read and answers
 *         GB_INVALID_OUTBOX_RECORD only when it found no other (docs/decisions/0203). */
struct gb_sqlite_outbox_cfg {
    const char *path;
    int64_t stale_claim_ns; /* <= 0: by version only */
    int64_t retention_ns;   /* of ended records: 0 = 1 h, negative = for ever */
    size_t queue_max;       /* calls waiting or running; 0 = 16384 */
};
struct gb_err gb_sqlite_outbox_new(struct gb_sqlite_pool *pool,
                                   const struct gb_sqlite_outbox_cfg *cfg, struct gb_outbox **out);

#endif
