#ifndef GB_ADAPTERS_SQLITE_PATH_H
#define GB_ADAPTERS_SQLITE_PATH_H

#include <sys/types.h>

#include "base/err.h"

/* What a database path must be before SQLite may open it (spec 05 §8), and the lock beside it.
 *
 * Ordinary files (outbox, DLQ, lease): created 0600, no symbolic link, a looser existing mode is
 * warned of. Strict files (managed subscriptions): plain absolute normalised path; every parent
 * opened without following links, owned by root or by us, not group- or other-writable unless
 * root-owned and sticky; the last parent ours and exactly 0700 (missing ones are made so);
 * database, -wal, -shm, -journal and -lock ours and exactly 0600.
 * Owns:   an acquired gb_sqlite_file owns the lock; release with gb_sqlite_file_release (zeroed:
 *         fine).
 * Thread: any; blocking.
 * Errors: GB_INVALID_CONFIG naming the path, what was found and what is required; GB_UNAVAILABLE
 *         when the file system fails or another process holds the lock. */
struct gb_sqlite_file {
    int lock_fd, database_fd; /* > 0 while locked */
    dev_t parent_device;
    ino_t parent_inode;
};

/* Checks the path, creates the database file when it is missing and takes two locks: `<path>.lock`,
 * and the database file itself, which is the same under every name and whatever became of the
 * first. Release after SQLite has closed the file: a descriptor closed earlier would take SQLite's
 * own locks with it, as POSIX locks go. */
struct gb_err gb_sqlite_file_acquire(const char *path, bool strict, struct gb_sqlite_file *out);
/* The strict rules for files that are open; and, `file` given, the parent is still the one that was
 * checked. */
struct gb_err gb_sqlite_file_recheck(const char *path, const struct gb_sqlite_file *file);
void gb_sqlite_file_release(struct gb_sqlite_file *file);
/* Two spellings of one file give one text: the real directory plus the name. malloc'd; NULL: the
 * directory does not exist. */
struct gb_err gb_sqlite_file_identity(const char *path, char **out);

#endif
