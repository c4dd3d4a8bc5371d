#include "app/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARGS_MAX = 6 };

static struct gb_err parse(const char *const *args, struct gb_options *out)
{
    char copies[ARGS_MAX + 1][64] = {"gobridge"};
    char *argv[ARGS_MAX + 2] = {copies[0]};
    int argc = 1;
    for (; argc <= ARGS_MAX && args[argc - 1] != NULL; argc++) {
        assert_true(strlen(args[argc - 1]) < sizeof copies[0]);
        (void)snprintf(copies[argc], sizeof copies[0], "%s", args[argc - 1]);
        argv[argc] = copies[argc];
    }
    struct gb_err err = gb_options_parse(argc, argv, out);
    if (!gb_failed(err)) { /* the strings point into argv, which ends here */
        out->config = strcmp(out->config, "bridge.yaml") == 0 ? "bridge.yaml" : "another";
    }
    return err;
}

/* What is not named in `want` must keep its default. */
static const struct good_row {
    const char *name;
    const char *args[ARGS_MAX + 1];
    struct gb_options want;
} good_rows[] = {
#define DEFAULTS .config = "bridge.yaml", .log_level = GB_LOG_INFO, .start_empty = true
    {"nothing", {NULL}, {DEFAULTS}},
    {"config", {"-config", "x.json"}, {.config = "another", .start_empty = true}},
    {"config with =", {"-config=x"}, {.config = "another", .start_empty = true}},
    {"two dashes", {"--config=x"}, {.config = "another", .start_empty = true}},
    {"the last one wins", {"-config=x", "-config", "bridge.yaml"}, {DEFAULTS}},
    {"empty value", {"-config="}, {.config = "another", .start_empty = true}},
    {"a value may look like a flag",
     {"-config", "-strict"},
     {.config = "another", .start_empty = true}},
    {"log level",
     {"-log-level", "debug"},
     {.config = "bridge.yaml",
      .log_level = GB_LOG_DEBUG,
      .log_level_given = true,
      .start_empty = true}},
    {"unknown log level is info", {"-log-level=loud"}, {DEFAULTS, .log_level_given = true}},
    {"start-empty", {"-start-empty"}, {DEFAULTS}},
    {"start-empty=true", {"-start-empty=true"}, {DEFAULTS}},
    {"start-empty=false", {"-start-empty=false"}, {.config = "bridge.yaml"}},
    {"start-empty=0", {"--start-empty=0"}, {.config = "bridge.yaml"}},
    {"validate", {"-validate"}, {DEFAULTS, .mode = GB_MODE_VALIDATE}},
    {"validate, strict",
     {"-strict", "-validate"},
     {DEFAULTS, .mode = GB_MODE_VALIDATE, .strict = true}},
    {"a mode switched off", {"-validate=false"}, {DEFAULTS}},
    {"off and another on", {"-validate=false", "-version"}, {DEFAULTS, .mode = GB_MODE_VERSION}},
    {"the same mode twice", {"-version", "-version"}, {DEFAULTS, .mode = GB_MODE_VERSION}},
    {"help", {"-help"}, {DEFAULTS, .mode = GB_MODE_HELP}},
    {"h", {"-h"}, {DEFAULTS, .mode = GB_MODE_HELP}},
    {"seed, repeated",
     {"-seed-managed-subscriptions", "s1", "-seed-managed-subscriptions=s2=a"},
     {DEFAULTS, .mode = GB_MODE_SEED, .seed_count = 2}},
    {"inspect", {"-inspect", "f"}, {DEFAULTS, .mode = GB_MODE_INSPECT, .file_count = 1}},
    {"digest with =", {"-config-digest=f"}, {DEFAULTS, .mode = GB_MODE_DIGEST, .file_count = 1}},
    {"fingerprint",
     {"--deployment-fingerprint", "f"},
     {DEFAULTS, .mode = GB_MODE_FINGERPRINT, .file_count = 1}},
    {"diff", {"-diff", "a", "b"}, {DEFAULTS, .mode = GB_MODE_DIFF, .file_count = 2}},
    {"diff with =", {"-diff=a", "-b"}, {DEFAULTS, .mode = GB_MODE_DIFF, .file_count = 2}},
};

static void accepted_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_rows / sizeof good_rows[0]; i++) {
        const struct good_row *row = &good_rows[i];
        print_message("  %s\n", row->name);
        struct gb_options o;
        struct gb_err err = parse(row->args, &o);
        assert_string_equal(err.message, "");
        assert_int_equal(err.code, GB_OK);
        assert_int_equal(o.mode, row->want.mode);
        assert_string_equal(o.config, row->want.config);
        assert_int_equal(o.log_level_given, row->want.log_level_given);
        if (o.log_level_given) assert_int_equal(o.log_level, row->want.log_level);
        assert_int_equal(o.strict, row->want.strict);
        assert_int_equal(o.start_empty, row->want.start_empty);
        assert_int_equal(o.seed_count, row->want.seed_count);
        assert_int_equal(o.file_count, row->want.file_count);
    }
}

static const struct bad_row {
    const char *name;
    const char *args[ARGS_MAX + 1];
    const char *message;
} bad_rows[] = {
    {"unknown flag", {"-verbose"}, "unknown flag -verbose"},
    {"unknown flag with value", {"-verbose=1"}, "unknown flag -verbose"},
    {"prefix of a flag", {"-conf", "x"}, "unknown flag -conf"},
    {"flag and more", {"-configs", "x"}, "unknown flag -configs"},
    {"two dashes alone", {"--"}, "unknown flag -"},
    {"three dashes", {"---config=x"}, "unknown flag --config"},
    {"stray argument", {"bridge.yaml"}, "stray argument \"bridge.yaml\""},
    {"stray after flags", {"-validate", "x"}, "stray argument \"x\""},
    {"one dash", {"-"}, "stray argument \"-\""},
    {"empty argument", {""}, "stray argument \"\""},
    {"missing value", {"-config"}, "-config needs a value"},
    {"missing value at the end", {"-strict", "-log-level"}, "-log-level needs a value"},
    {"two modes", {"-validate", "-version"}, "at most one mode flag per call"},
    {"two modes, one with a value",
     {"-seed-managed-subscriptions", "s", "-help"},
     "at most one mode flag per call"},
    {"neither true nor false", {"-strict=yes"}, "-strict: \"yes\" is not true or false"},
    {"mode with a wrong value", {"-version=2"}, "-version: \"2\" is not true or false"},
    {"later: credentials", {"-credentials-dir", "d"}, "-credentials-dir is not supported yet"},
    {"later: admin", {"-admin-addr=:1"}, "-admin-addr is not supported yet"},
    {"later: monitor", {"--monitor-addr", ":1"}, "-monitor-addr is not supported yet"},
    {"later: healthcheck", {"-healthcheck"}, "-healthcheck is not supported yet"},
    {"inspect without a file", {"-inspect"}, "-inspect needs a value"},
    {"diff with one file", {"-diff", "a"}, "-diff needs 2 values"},
    {"diff with one file behind =", {"-diff=a"}, "-diff needs 2 values"},
    {"diff with three files", {"-diff", "a", "b", "c"}, "stray argument \"c\""},
    {"two digests",
     {"-config-digest", "a", "-config-digest", "b"},
     "at most one mode flag per call"},
    {"two diffs", {"-diff", "a", "b", "-diff", "c", "d"}, "at most one mode flag per call"},
    {"digest and fingerprint",
     {"-config-digest", "a", "-deployment-fingerprint", "b"},
     "at most one mode flag per call"},
    {"inspect and validate", {"-inspect", "a", "-validate"}, "at most one mode flag per call"},
    {"later: embedded digest",
     {"-initial-config-digest"},
     "-initial-config-digest is not supported yet"},
    {"later: tables", {"-create-tables"}, "-create-tables is not supported yet"},
};

static void refused_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        const struct bad_row *row = &bad_rows[i];
        print_message("  %s\n", row->name);
        struct gb_options o = {.config = "untouched"};
        struct gb_err err = parse(row->args, &o);
        assert_int_equal(err.code, GB_INVALID_CONFIG);
        assert_string_equal(err.message, row->message);
        assert_string_equal(o.config, "untouched");
    }
}

static void seeds_are_bounded(void **state)
{
    (void)state;
    static char name[] = "gobridge";
    static char seed[] = "-seed-managed-subscriptions=s";
    char *argv[GB_OPTIONS_SEEDS_MAX + 2] = {name};
    for (size_t i = 1; i < GB_OPTIONS_SEEDS_MAX + 2; i++) argv[i] = seed;
    struct gb_options o;
    assert_int_equal(gb_options_parse(GB_OPTIONS_SEEDS_MAX + 1, argv, &o).code, GB_OK);
    assert_int_equal(o.seed_count, GB_OPTIONS_SEEDS_MAX);
    assert_string_equal(o.seeds[GB_OPTIONS_SEEDS_MAX - 1], "s");
    struct gb_err err = gb_options_parse(GB_OPTIONS_SEEDS_MAX + 2, argv, &o);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "at most 64 in one call"));
}

/* Each flag that is accepted must be found in the usage text. */
static void usage_names_the_flags(void **state)
{
    (void)state;
    static const char *const names[] = {"-config ",
                                        "-log-level ",
                                        "-start-empty=",
                                        "-validate",
                                        "-strict",
                                        "-seed-managed-subscriptions ",
                                        "-version",
                                        "-help",
                                        "-inspect ",
                                        "-config-digest ",
                                        "-deployment-fingerprint ",
                                        "-diff "};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(strstr(gb_options_usage, names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_command_lines),
        cmocka_unit_test(refused_command_lines),
        cmocka_unit_test(seeds_are_bounded),
        cmocka_unit_test(usage_names_the_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
