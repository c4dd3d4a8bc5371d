#include <malloc.h>
#include <stdio.h>

#include "app/options.h"
#include "app/process.h"

int main(int argc, char **argv)
{
    struct gb_options o;
    struct gb_err err = gb_options_parse(argc, argv, &o);
    if (gb_failed(err)) {
        fprintf(stderr, "gobridge: %s\n%s", err.message, gb_options_usage);
        return 2;
    }
    switch (o.mode) {
    case GB_MODE_VERSION:
        printf("gobridge %s\n", GB_VERSION);
        return 0;
    case GB_MODE_HELP:
        fputs(gb_options_usage, stdout);
        return 0;
    case GB_MODE_VALIDATE:
        return gb_process_validate(&o);
    case GB_MODE_SEED:
        return gb_process_seed(&o);
    case GB_MODE_RUN:
        break;
    }
    /* Workers hand what they allocated to the loop: one arena keeps freed memory usable for
     * both. */
    mallopt(M_ARENA_MAX, 1);
    return gb_process_run(&o);
}
