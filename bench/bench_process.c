#include "bench_process.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t gb_bench_now_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) gb_bench_die("no monotonic clock");
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

void gb_bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s: ", program_invocation_short_name);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void gb_bench_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool failed = vprintf(format, args) < 0;
    va_end(args);
    failed |= putchar('\n') == EOF;
    failed |= fflush(stdout) != 0;
    if (failed) gb_bench_die("stdout: %s", strerror(errno));
}

static bool take_line(struct gb_bench_orders *o, char order[GB_BENCH_ORDER_MAX])
{
    char *end = memchr(o->bytes, '\n', o->size);
    if (end == NULL) return false;
    size_t size = (size_t)(end - o->bytes);
    memcpy(order, o->bytes, size);
    order[size] = '\0';
    o->size -= size + 1;
    memmove(o->bytes, end + 1, o->size);
    return true;
}

enum gb_bench_order_result gb_bench_next_order(struct gb_bench_orders *o,
                                               char order[GB_BENCH_ORDER_MAX])
{
    if (take_line(o, order)) return GB_BENCH_ORDER;
    if (o->ended) return GB_BENCH_ORDERS_END;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&ready, 1, 0) <= 0) return GB_BENCH_NO_ORDER;
    if (o->size == sizeof o->bytes) gb_bench_die("an order of more than %zu bytes", o->size);
    ssize_t got = read(STDIN_FILENO, o->bytes + o->size, sizeof o->bytes - o->size);
    if (got < 0) gb_bench_die("stdin: %s", strerror(errno));
    o->ended = got == 0;
    o->size += (size_t)got;
    if (take_line(o, order)) return GB_BENCH_ORDER;
    return o->ended ? GB_BENCH_ORDERS_END : GB_BENCH_NO_ORDER;
}

const char *gb_bench_option(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return fallback;
}

uint64_t gb_bench_option_u64(int argc, char **argv, const char *name, uint64_t fallback)
{
    const char *text = gb_bench_option(argc, argv, name, NULL);
    if (text == NULL) return fallback;
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
        gb_bench_die("%s: \"%s\" is not a number", name, text);
    return value;
}

void gb_bench_check_options(int argc, char **argv, const char *const *names, size_t count)
{
    for (int i = 1; i < argc; i += 2) {
        bool known = false;
        for (size_t n = 0; n < count; n++) known |= strcmp(argv[i], names[n]) == 0;
        if (!known)
            gb_bench_die("unknown option %s; see the comment at the top of the file", argv[i]);
        if (i + 1 == argc) gb_bench_die("%s needs a value", argv[i]);
    }
}
