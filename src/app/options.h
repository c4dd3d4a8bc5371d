#ifndef GB_APP_OPTIONS_H
#define GB_APP_OPTIONS_H

#include "base/err.h"
#include "base/log.h"

/* The command line (spec 08 §2): -name VALUE, -name=VALUE, also with two dashes; `check FILE` is
 * -config FILE -validate -explain, `tables create FILE` is -config FILE -create-tables.
 * Owns:   nothing; strings point into argv.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG: unknown flag, stray argument, missing value, two modes, a flag that is
 *         not supported yet; the caller prints it with the usage and exits 2. */
enum gb_mode {
    GB_MODE_RUN = 0,
    GB_MODE_VALIDATE,
    GB_MODE_VERSION,
    GB_MODE_HELP,
    GB_MODE_SEED,
    GB_MODE_CREATE_TABLES,
    GB_MODE_PLAN_TABLES,
    GB_MODE_INSPECT, /* these take `files` */
    GB_MODE_DIGEST,
    GB_MODE_FINGERPRINT,
    GB_MODE_DIFF,
    GB_MODE_HEALTHCHECK,
};
enum {
    GB_OPTIONS_SEEDS_MAX = 64,
    GB_OPTIONS_FILES_MAX = 2,
    GB_OPTIONS_OVERLAYS_MAX = 16,
    GB_OPTIONS_SETS_MAX = 64,
};

struct gb_options {
    enum gb_mode mode;
    const char *config; /* default bridge.yaml */
    bool config_given;
    const char *credentials_dir; /* default credentials */
    enum gb_log_level log_level;
    bool log_level_given;
    const char *monitor_addr; /* NULL: not given */
    bool strict;
    bool explain;     /* with GB_MODE_VALIDATE: say what the document comes to */
    bool json;        /* the explanation as JSON */
    bool start_empty; /* default true */
    const char *seeds[GB_OPTIONS_SEEDS_MAX];
    size_t seed_count;
    const char *files[GB_OPTIONS_FILES_MAX]; /* the documents a mode names itself */
    size_t file_count;
    const char *overlays[GB_OPTIONS_OVERLAYS_MAX]; /* laid over the document, in order */
    size_t overlay_count;
    const char *sets[GB_OPTIONS_SETS_MAX]; /* PATH=VALUE, applied last, in order */
    size_t set_count;
};
struct gb_err gb_options_parse(int argc, char *const *argv, struct gb_options *out);
/* The `=` between PATH and VALUE, NULL without one; an id in brackets may hold others. */
const char *gb_options_set_equals(const char *set);
extern const char gb_options_usage[];

#endif
