#include "adapters/sqlite/sqlite_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

enum { FILE_MODE = 0600, DIRECTORY_MODE = 0700, MODE_MASK = 07777, NAME_SIZE = 256 };
enum { LOOSE_BITS = 0077, WRITABLE_BITS = 0022 };
static const char *const companions[] = {"-wal", "-shm", "-journal"};

static struct gb_err refused(const char *path, const char *why)
{
    return gb_err(GB_INVALID_CONFIG, "sqlite path %s: %s", path, why);
}

/* Lack of space, descriptors or a sick disk pass; the rest is what somebody configured. */
static struct gb_err failed_call(const char *path, const char *call, int error)
{
    bool passing = error == ENOSPC || error == EIO || error == EMFILE || error == ENFILE ||
                   error == ENOMEM || error == EDQUOT || error == EINTR;
    return gb_err(passing ? GB_UNAVAILABLE : GB_INVALID_CONFIG, "sqlite path %s: %s: %s", path,
                  call, error == ELOOP ? "it is a symbolic link" : strerror(error));
}

/* --- strict: the way to the file --- */

static struct gb_err check_text(const char *path)
{
    if (path[0] != '/') return refused(path, "must be absolute (no file: URI, no relative path)");
    if (strpbrk(path, "?#") != NULL) return refused(path, "must not contain '?' or '#'");
    if (strlen(path) >= PATH_MAX) return refused(path, "is too long");
    for (const char *part = path; *part != '\0';) {
        part++;
        size_t size = strcspn(part, "/");
        bool dots = (size == 1 && part[0] == '.') || (size == 2 && strncmp(part, "..", 2) == 0);
        if (size == 0 || dots)
            return refused(path, "must be normalised: no empty part, '.' or '..'");
        if (size >= NAME_SIZE) return refused(path, "has a part of more than 255 bytes");
        part += size;
    }
    return gb_ok();
}

static struct gb_err check_parent(const char *path, const char *name, int fd, bool last,
                                  struct stat *st)
{
    if (fstat(fd, st) != 0) return failed_call(path, "fstat of a parent", errno);
    unsigned mode = st->st_mode & MODE_MASK;
    if (last && (st->st_uid != geteuid() || mode != DIRECTORY_MODE)) {
        return gb_err(
            GB_INVALID_CONFIG,
            "sqlite path %s: directory %s has owner %u and mode %04o, must be owned by user "
            "%u with mode 0700",
            path, name, (unsigned)st->st_uid, mode, (unsigned)geteuid());
    }
    if (st->st_uid != 0 && st->st_uid != geteuid()) {
        return gb_err(GB_INVALID_CONFIG,
                      "sqlite path %s: parent %s belongs to user %u, must be root or user %u", path,
                      name, (unsigned)st->st_uid, (unsigned)geteuid());
    }
    bool sticky_root = st->st_uid == 0 && (mode & S_ISVTX) != 0;
    if ((mode & WRITABLE_BITS) != 0 && !sticky_root) {
        return gb_err(
            GB_INVALID_CONFIG,
            "sqlite path %s: parent %s has mode %04o, must not be group- or other-writable", path,
            name, mode);
    }
    return gb_ok();
}

/* One step down from `*fd`, which it replaces; a missing directory is made 0700. */
static struct gb_err enter(const char *path, const char *name, int *fd)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(*fd, name, flags);
    if (next < 0 && errno == ENOENT) {
        if (mkdirat(*fd, name, DIRECTORY_MODE) != 0 && errno != EEXIST)
            return failed_call(path, "creating a parent", errno);
        next = openat(*fd, name, flags);
    }
    if (next < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        return gb_err(GB_INVALID_CONFIG,
                      "sqlite path %s: parent %s must be a directory, not a symbolic link", path,
                      name);
    }
    if (next < 0) return failed_call(path, "opening a parent", errno);
    (void)close(*fd); /* read-only descriptor: nothing to lose */
    *fd = next;
    return gb_ok();
}

/* Walks from the root to the file's directory, which `*fd` is in the end. */
static struct gb_err walk_parents(const char *path, int *fd, struct stat *st)
{
    *fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) return failed_call(path, "opening /", errno);
    char name[NAME_SIZE] = "/";
    const char *part = path + 1;
    for (;;) {
        size_t size = strcspn(part, "/");
        bool last = part[size] == '\0';
        struct gb_err err = check_parent(path, name, *fd, last, st);
        if (gb_failed(err) || last) return err;
        memcpy(name, part, size); /* check_text has bounded it */
        name[size] = '\0';
        err = enter(path, name, fd);
        if (gb_failed(err)) return err;
        part += size + 1;
    }
}

static struct gb_err check_strict_file(const char *path, const char *name, const struct stat *st)
{
    unsigned mode = st->st_mode & MODE_MASK;
    if (S_ISREG(st->st_mode) && st->st_uid == geteuid() && mode == FILE_MODE) return gb_ok();
    return gb_err(
        GB_INVALID_CONFIG,
        "sqlite path %s: %s has owner %u and mode %04o, must be a regular file of user %u "
        "with mode 0600",
        path, name, (unsigned)st->st_uid, mode, (unsigned)geteuid());
}

static struct gb_err check_companions(const char *path, bool strict)
{
    for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
        char *name = gb_asprintf("%s%s", path, companions[i]);
        if (name == NULL) return gb_err_no_memory("a path");
        struct stat st;
        struct gb_err err = gb_ok();
        if (lstat(name, &st) == 0) {
            if (strict) {
                err = check_strict_file(path, name, &st);
            } else if (!S_ISREG(st.st_mode)) {
                err = gb_err(GB_INVALID_CONFIG, "sqlite path %s: %s must be a regular file", path,
                             name);
            }
        } else if (errno != ENOENT) {
            err = failed_call(path, "lstat", errno);
        }
        free(name);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

/* --- both: the file and its lock --- */

static struct gb_err check_file(const char *path, const char *name, int fd, bool strict)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return failed_call(path, "fstat", errno);
    if (strict) return check_strict_file(path, name, &st);
    if (!S_ISREG(st.st_mode))
        return gb_err(GB_INVALID_CONFIG, "sqlite path %s: %s must be a regular file", path, name);
    if ((st.st_mode & LOOSE_BITS) != 0) {
        GB_LOG(GB_LOG_WARN, "database file is accessible to others, 0600 is advised",
               gb_lf_str("path", name), gb_lf_int("mode_decimal", st.st_mode & MODE_MASK));
    }
    return gb_ok();
}

/* Opens or creates; a file just created gets 0600 whatever the umask is. */
static struct gb_err open_file(const char *path, const char *name, bool strict, int *out)
{
    int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK; /* a FIFO must not hang the start */
    int fd = open(name, flags);
    if (fd < 0 && errno == ENOENT) {
        fd = open(name, flags | O_CREAT | O_EXCL, FILE_MODE);
        if (fd >= 0 && fchmod(fd, FILE_MODE) != 0) {
            struct gb_err err = failed_call(path, "fchmod", errno);
            (void)close(fd);
            return err;
        }
    }
    if (fd < 0) return failed_call(path, "open", errno);
    struct gb_err err = check_file(path, name, fd, strict);
    if (gb_failed(err)) {
        (void)close(fd);
        return err;
    }
    *out = fd;
    return gb_ok();
}

static struct gb_err take_lock(const char *path, bool strict, int *out)
{
    char *name = gb_asprintf("%s.lock", path);
    if (name == NULL) return gb_err_no_memory("a path");
    int fd = -1;
    struct gb_err err = open_file(path, name, strict, &fd);
    free(name);
    if (gb_failed(err)) return err;
    char pid[24] = {0};
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        bool named = pread(fd, pid, sizeof pid - 1, 0) > 0;
        (void)close(fd);
        if (error != EWOULDBLOCK) return failed_call(path, "flock", error);
        return gb_err(GB_UNAVAILABLE,
                      "sqlite path %s is in use by another process (%s%.*s); one process at a time",
                      path, named ? "pid " : "unknown pid", (int)strcspn(pid, "\n"), pid);
    }
    /* The number helps an operator only: a disk too full for it must not stop the start. */
    int size = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, pid, (size_t)size, 0);
    *out = fd;
    return gb_ok();
}

static struct gb_err held_elsewhere(const char *path)
{
    return gb_err(GB_UNAVAILABLE,
                  "sqlite path %s is in use by another process, or under another name of the file; "
                  "one process and one name at a time",
                  path);
}

struct gb_err gb_sqlite_file_acquire(const char *path, bool strict, struct gb_sqlite_file *out)
{
    struct gb_sqlite_file file = {0};
    if (path[0] == '\0') return refused(path, "must not be empty");
    struct gb_err err;
    if (strict) {
        err = check_text(path);
        if (gb_failed(err)) return err;
        int parent = -1;
        struct stat st = {0};
        err = walk_parents(path, &parent, &st);
        if (parent >= 0) (void)close(parent);
        if (gb_failed(err)) return err;
        file.parent_device = st.st_dev;
        file.parent_inode = st.st_ino;
    }
    err = check_companions(path, strict);
    if (gb_failed(err)) return err;
    struct stat existing;
    if (lstat(path, &existing) == 0 && !S_ISREG(existing.st_mode))
        return refused(path, "must be a regular file, not a directory, symbolic link or device");
    err = take_lock(path, strict, &file.lock_fd);
    if (gb_failed(err)) return err;
    err = open_file(path, path, strict, &file.database_fd);
    if (!gb_failed(err) && flock(file.database_fd, LOCK_EX | LOCK_NB) != 0)
        err = errno == EWOULDBLOCK ? held_elsewhere(path) : failed_call(path, "flock", errno);
    if (gb_failed(err)) {
        gb_sqlite_file_release(&file);
        return err;
    }
    *out = file;
    return err;
}

struct gb_err gb_sqlite_file_recheck(const char *path, const struct gb_sqlite_file *file)
{
    int parent = -1;
    struct stat st = {0};
    struct gb_err err = walk_parents(path, &parent, &st);
    if (parent >= 0) (void)close(parent);
    if (gb_failed(err)) return err;
    if (file != NULL && (st.st_dev != file->parent_device || st.st_ino != file->parent_inode))
        return refused(path, "its directory was replaced while it was opened");
    if (lstat(path, &st) != 0) return failed_call(path, "lstat", errno);
    err = check_strict_file(path, path, &st);
    if (gb_failed(err)) return err;
    return check_companions(path, true);
}

void gb_sqlite_file_release(struct gb_sqlite_file *file)
{
    if (file->database_fd > 0) (void)close(file->database_fd); /* gives the lock back */
    if (file->lock_fd > 0) (void)close(file->lock_fd);
    *file = (struct gb_sqlite_file){0};
}

struct gb_err gb_sqlite_file_identity(const char *path, char **out)
{
    *out = NULL;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    char *folder = slash == NULL   ? gb_strdup(".")
                   : slash == path ? gb_strdup("/")
                                   : gb_bytes_dup(gb_bytes(path, (size_t)(slash - path)));
    if (folder == NULL) return gb_err_no_memory("a path");
    char *real = realpath(folder, NULL);
    free(folder);
    if (real == NULL) return errno == ENOMEM ? gb_err_no_memory("a path") : gb_ok();
    *out = gb_asprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    free(real);
    return *out == NULL ? gb_err_no_memory("a path") : gb_ok();
}
