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
    {"explain", {"-validate", "-explain"}, {DEFAULTS, .mode = GB_MODE_VALIDATE, .explain = true}},
    {"check",
     {"check", "f"},
     {.config = "another", .start_empty = true, .mode = GB_MODE_VALIDATE, .explain = true}},
    {"check with flags around",
     {"check", "-json", "f", "-strict"},
     {.config = "another",
      .start_empty = true,
      .mode = GB_MODE_VALIDATE,
      .explain = true,
      .json = true,
      .strict = true}},
    {"check of a file with that name",
     {"check", "check"},
     {.config = "another", .start_empty = true, .mode = GB_MODE_VALIDATE, .explain = true}},
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

static void overlays_and_sets_keep_their_order(void **state)
{
    (void)state;
    static char args[][32] = {"gobridge", "-overlay",   "a.yaml",         "-set=routes[a=b].x=1=2",
                              "-set",     "bridge.id=", "-overlay=b.yaml"};
    char *argv[sizeof args / sizeof args[0]];
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) argv[i] = args[i];
    struct gb_options o;
    assert_int_equal(gb_options_parse(sizeof args / sizeof args[0], argv, &o).code, GB_OK);
    assert_int_equal(o.overlay_count, 2);
    assert_string_equal(o.overlays[0], "a.yaml");
    assert_string_equal(o.overlays[1], "b.yaml");
    assert_int_equal(o.set_count, 2);
    assert_string_equal(o.sets[0], "routes[a=b].x=1=2");
    assert_string_equal(gb_options_set_equals(o.sets[0]), "=1=2");
    assert_string_equal(o.sets[1], "bridge.id=");
    assert_string_equal(gb_options_set_equals(o.sets[1]), "=");
}

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
        assert_int_equal(o.explain, row->want.explain);
        assert_int_equal(o.json, row->want.json);
        assert_int_equal(o.start_empty, row->want.start_empty);
        assert_int_equal(o.seed_count, row->want.seed_count);
        assert_int_equal(o.file_count, row->want.file_count);
    }
}

#define BEHIND_SET                                                                                 \
    "what stands behind -set PATH=VALUE is no flag; put the whole of PATH=VALUE into quotes"

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
    {"check without a file", {"check"}, "check needs a FILE"},
    {"check without a file, with a flag", {"check", "-json"}, "check needs a FILE"},
    {"check of two files", {"check", "a", "b"}, "stray argument \"b\""},
    {"check with -config",
     {"check", "-config", "a", "b"},
     "check names its FILE; leave -config out"},
    {"check and a mode", {"check", "a", "-version"}, "at most one mode flag per call"},
    {"check behind a set", {"check", "-set", "a=b", "hidden"}, BEHIND_SET},
    {"check is the first argument", {"-strict", "check", "a"}, "stray argument \"check\""},
    {"explain alone", {"-explain"}, "-explain goes with -validate"},
    {"explain with another mode", {"-version", "-explain"}, "-explain goes with -validate"},
    {"json alone", {"-json"}, "-json goes with check or -validate -explain"},
    {"json without explain", {"-validate", "-json"}, "-json goes with check or -validate -explain"},
    {"missing value", {"-config"}, "-config needs a value"},
    {"missing value at the end", {"-strict", "-log-level"}, "-log-level needs a value"},
    {"set without a value", {"-set"}, "-set needs a value"},
    {"set without =", {"-set", "http.admin_api_key hidden"}, "-set 1 is not PATH=VALUE"},
    {"second set without =", {"-set=a=b", "-set=hidden"}, "-set 2 is not PATH=VALUE"},
    {"set without a path", {"-set", "=hidden"}, "-set 1 is not PATH=VALUE"},
    {"= in an open bracket only", {"-set", "a[b=hidden"}, "-set 1 is not PATH=VALUE"},
    {"value behind a set", {"-set", "http.admin_api_key=", "hidden"}, BEHIND_SET},
    {"the same like a flag", {"-set", "a=b", "-hidden", "-strict"}, BEHIND_SET},
    {"stray behind another flag", {"-set", "a=b", "-strict", "x"}, "stray argument \"x\""},
    {"overlay without a value", {"-overlay"}, "-overlay needs a value"},
    {"two modes", {"-validate", "-version"}, "at most one mode flag per call"},
    {"two modes, one with a value",
     {"-seed-managed-subscriptions", "s", "-help"},
     "at most one mode flag per call"},
    {"neither true nor false", {"-strict=yes"}, "-strict: \"yes\" is not true or false"},
    {"mode with a wrong value", {"-version=2"}, "-version: \"2\" is not true or false"},
    {"later: admin", {"-admin-addr=:1"}, "-admin-addr is not supported yet"},
    {"later: admin, two dashes", {"--admin-addr", ":1"}, "-admin-addr is not supported yet"},
    {"two modes with healthcheck", {"-healthcheck", "-version"}, "at most one mode flag per call"},
    {"monitor-addr without", {"-monitor-addr"}, "-monitor-addr needs a value"},
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
    {"tables alone", {"tables"}, "tables needs create or plan, and a FILE"},
    {"tables with another verb",
     {"tables", "drop", "a"},
     "tables needs create or plan, and a FILE"},
    {"tables without a file", {"tables", "plan"}, "tables plan needs a FILE"},
    {"tables with two files", {"tables", "create", "a", "b"}, "stray argument \"b\""},
    {"tables with -config",
     {"tables", "create", "a", "-config", "b"},
     "tables create names its FILE; leave -config out"},
    {"tables and a mode",
     {"tables", "plan", "a", "-create-tables"},
     "at most one mode flag per call"},
    {"tables and validate", {"-create-tables", "-validate"}, "at most one mode flag per call"},
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

static void overlays_and_sets_are_bounded(void **state)
{
    (void)state;
    static char name[] = "gobridge";
    static char texts[][16] = {"-overlay=x", "-set=a=b"};
    static const int most[] = {GB_OPTIONS_OVERLAYS_MAX, GB_OPTIONS_SETS_MAX};
    for (size_t k = 0; k < 2; k++) {
        char *argv[GB_OPTIONS_SETS_MAX + 2] = {name};
        for (int i = 1; i <= most[k] + 1; i++) argv[i] = texts[k];
        struct gb_options o;
        assert_int_equal(gb_options_parse(most[k] + 1, argv, &o).code, GB_OK);
        assert_int_equal(gb_options_parse(most[k] + 2, argv, &o).code, GB_INVALID_CONFIG);
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

static void tables_name_their_document(void **state)
{
    (void)state;
    static char args[][16] = {"gobridge", "tables", "plan", "-log-level=warn", "a.yaml"};
    char *argv[sizeof args / sizeof args[0]];
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) argv[i] = args[i];
    struct gb_options o;
    assert_int_equal(gb_options_parse(sizeof args / sizeof args[0], argv, &o).code, GB_OK);
    assert_int_equal(o.mode, GB_MODE_PLAN_TABLES);
    assert_string_equal(o.config, "a.yaml");
    assert_int_equal(o.log_level, GB_LOG_WARN);
    const struct {
        const char *args[ARGS_MAX + 1];
        enum gb_mode mode;
    } rows[] = {
        {{"-create-tables"}, GB_MODE_CREATE_TABLES},
        {{"-config", "a", "-create-tables"}, GB_MODE_CREATE_TABLES},
        {{"-create-tables=false"}, GB_MODE_RUN},
        {{"tables", "create", "a"}, GB_MODE_CREATE_TABLES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].args, &o).code, GB_OK);
        assert_int_equal(o.mode, rows[i].mode);
    }
}

/* Each flag that is accepted must be found in the usage text. */
static void usage_names_the_flags(void **state)
{
    (void)state;
    static const char *const names[] = {"-config ",
                                        "-overlay ",
                                        "-set ",
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
                                        "-diff ",
                                        "-create-tables",
                                        "tables plan "};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_non_null(strstr(gb_options_usage, names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_command_lines),
        cmocka_unit_test(refused_command_lines),
        cmocka_unit_test(seeds_are_bounded),
        cmocka_unit_test(tables_name_their_document),
        cmocka_unit_test(overlays_and_sets_keep_their_order),
        cmocka_unit_test(overlays_and_sets_are_bounded),
        cmocka_unit_test(usage_names_the_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
