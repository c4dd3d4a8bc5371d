#ifndef GB_TESTS_CONTRACT_SQLITE_FILE_H
#define GB_TESTS_CONTRACT_SQLITE_FILE_H

#include <sqlite3.h>

#include "adapters/sqlite/sqlite_pool.h"
#include "contract/store_driver.h"

/* A database path in a directory of its own, and the pool that opens it.
 * Owns:   directory (removed with all in it), pool, metrics.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct sqlite_file {
    char directory[64];
    char path[96];
    struct gb_metrics *metrics;
    struct gb_sqlite_pool *pool;
};
void sqlite_file_init(struct sqlite_file *f, struct store_driver *d);
void sqlite_file_deinit(struct sqlite_file *f);
/* Makes only metrics and pool, for a path that is set already. */
void sqlite_file_pool(struct sqlite_file *f, struct store_driver *d);
void sqlite_file_pool_free(struct sqlite_file *f);

/* A connection of the test's own beside the store's. */
sqlite3 *sqlite_file_connect(const char *path);
void sqlite_file_exec(const char *path, const char *text);
/* First column of the first row as text ("" without a row or NULL); until the next call. */
const char *sqlite_file_query(const char *path, const char *text);

#endif
