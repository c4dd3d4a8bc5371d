#ifndef GB_ADAPTERS_SQLITE_SCHEMA_H
#define GB_ADAPTERS_SQLITE_SCHEMA_H

#include <sqlite3.h>

#include "base/err.h"

/* Tables and indexes of spec 05 §8. Applying is idempotent: it creates what is missing and adds
 * columns that an older file lacks; two connections doing so at once both succeed.
 * Owns:   nothing.
 * Thread: that of the connection.
 * Errors: GB_INVALID_CONFIG for a table that can't be brought to this shape; GB_UNAVAILABLE
 *         else. */
enum gb_sqlite_role {
    GB_SQLITE_OUTBOX,
    GB_SQLITE_DLQ,
    GB_SQLITE_SUBSCRIPTIONS,
    GB_SQLITE_LEASE,
    GB_SQLITE_ROLES,
};

struct gb_err gb_sqlite_schema_apply(sqlite3 *sql, const char *path, enum gb_sqlite_role role);
const char *gb_sqlite_role_name(enum gb_sqlite_role role); /* as under `stores` */

#endif
