#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "app/monitor.h"
#include "app/offline.h"
#include "app/options.h"
#include "app/process.h"

/* A closed standard stream would give its number to the next file that is opened: log lines would
 * go into the event loop's own pipe, and libuv aborts when it closes a number below 3. */
static bool fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", O_RDWR) != fd) return false; /* the lowest free number is taken */
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_standard_streams()) return 1; /* and nowhere to say so */
    struct gb_options o;
    struct gb_err err = gb_options_parse(argc, argv, &o);
    if (gb_failed(err)) {
        (void)fprintf(stderr, "gobridge: %s\n%s", err.message, gb_options_usage);
        return 2;
    }
    switch (o.mode) {
    case GB_MODE_VERSION:
        (void)printf("gobridge %s\n", GB_VERSION);
        return 0;
    case GB_MODE_HELP:
        (void)fputs(gb_options_usage, stdout);
        return 0;
    case GB_MODE_VALIDATE:
        return o.explain ? gb_process_explain(&o) : gb_process_validate(&o);
    case GB_MODE_INSPECT:
        return gb_offline_inspect(&o);
    case GB_MODE_DIGEST:
        return gb_offline_digest(&o);
    case GB_MODE_FINGERPRINT:
        return gb_offline_fingerprint(&o);
    case GB_MODE_DIFF:
        return gb_offline_diff(&o);
    case GB_MODE_CREATE_TABLES:
    case GB_MODE_PLAN_TABLES:
        return gb_process_tables(&o);
    case GB_MODE_SEED:
        return gb_process_seed(&o);
    case GB_MODE_HEALTHCHECK:
        return gb_process_healthcheck(&o);
    case GB_MODE_RUN:
        break;
    }
    /* Workers hand what they allocated to the loop: one arena keeps freed memory usable for
     * both. */
    mallopt(M_ARENA_MAX, 1);
    return gb_process_run(&o);
}
