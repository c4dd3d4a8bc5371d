#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void gb_assert_failed(const char *file, int line, const char *condition)
{
    /* One write of a finished line: the stdio buffers may be what is broken. */
    char text[512];
    int size = snprintf(text, sizeof text, "%s:%d: assertion failed: %s\n", file, line, condition);
    if (size > 0) {
        size_t length = (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
        ssize_t written = write(STDERR_FILENO, text, length);
        (void)written; /* nothing is left to do about a lost stderr before the abort */
    }
    abort();
}
