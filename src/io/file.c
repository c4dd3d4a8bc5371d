#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16384 };

static struct gb_err error_of(int code, const char *path)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return gb_err(GB_NOT_FOUND, "%s: no such file", path);
    case EACCES:
    case EPERM:
        return gb_err(GB_NOT_AUTHORIZED, "%s: access denied; check owner and mode", path);
    case EISDIR:
        return gb_err(GB_UNAVAILABLE, "%s: is a directory, a file is needed", path);
    default:
        return gb_err(GB_UNAVAILABLE, "%s: can't be read: %s", path, strerror(code));
    }
}

static struct gb_err read_all(int fd, const char *path, size_t size_max, struct gb_str *out)
{
    size_t total = 0;
    for (;;) {
        char *room = gb_str_reserve(out, CHUNK_BYTES);
        if (room == NULL) return gb_err_in(gb_str_check(out, "file content"), "%s", path);
        ssize_t n = read(fd, room, CHUNK_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_of(errno, path);
        if (n == 0) return gb_ok();
        /* Counted instead of asking for the size first: files of /proc and pipes have none. */
        if ((size_t)n > size_max - total) {
            return gb_err(GB_PAYLOAD_TOO_LARGE, "%s: larger than the limit of %zu bytes", path,
                          size_max);
        }
        total += (size_t)n;
        out->size += (size_t)n;
        out->data[out->size] = '\0';
    }
}

struct gb_err gb_file_read(const char *path, size_t size_max, struct gb_str *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_of(errno, path);
    size_t size_before = out->size;
    struct gb_err err = read_all(fd, path, size_max, out);
    if (gb_failed(err)) {
        out->size = size_before;
        if (out->data != NULL) out->data[out->size] = '\0';
    }
    (void)close(fd); /* opened for reading: nothing can be lost here */
    return err;
}
