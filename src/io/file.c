#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* A pipe can stay silent for ever; a file is always ready. */
static struct gb_err wait_for_data(int fd, const char *path, int wait_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int rc;
    do {
        rc = poll(&ready, 1, wait_ms);
    } while (rc < 0 && errno == EINTR);
    if (rc > 0) return gb_ok();
    if (rc < 0) return error_of(errno, path);
    return gb_err(GB_UNAVAILABLE, "%s: is a pipe, and nobody wrote to it within %d ms", path,
                  wait_ms);
}

static struct gb_err read_all(int fd, const char *path, size_t size_max, int wait_ms,
                              struct gb_str *out)
{
    size_t total = 0;
    for (;;) {
        struct gb_err err = wait_for_data(fd, path, wait_ms);
        if (gb_failed(err)) return err;
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
    return gb_file_read_wait(path, size_max, 0, out);
}

struct gb_err gb_file_read_wait(const char *path, size_t size_max, int wait_ms, struct gb_str *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* else a pipe waits for its writer */
    if (fd < 0) return error_of(errno, path);
    size_t size_before = out->size;
    struct gb_err err = read_all(fd, path, size_max, wait_ms, out);
    if (gb_failed(err)) {
        out->size = size_before;
        if (out->data != NULL) out->data[out->size] = '\0';
    }
    (void)close(fd); /* opened for reading: nothing can be lost here */
    return err;
}
