#ifndef GB_ADAPTERS_SQLITE_OPEN_H
#define GB_ADAPTERS_SQLITE_OPEN_H

#include <sqlite3.h>

#include "adapters/sqlite/sqlite_path.h"

/* Opens the one connection of a file: path rules, lock, is it a database at all, pragmas (spec 05
 * §8).
 * Owns:   the result owns the connection and the lock; gb_sqlite_close (zeroed: fine).
 * Thread: one at a time; blocking.
 * Errors: GB_INVALID_CONFIG (path, not a database, corrupt, no WAL), the file being left as it was;
 *         GB_UNAVAILABLE (in use by another process, file system). */
struct gb_sqlite_connection {
    sqlite3 *sql;
    struct gb_sqlite_file file;
};
/* `:memory:` is a private database without file, lock and WAL. */
struct gb_err gb_sqlite_open(const char *path, bool strict, struct gb_sqlite_connection *out);
void gb_sqlite_close(struct gb_sqlite_connection *c);

#endif
