#include "app/options.h"

#include <stdlib.h>
#include <string.h>

const char gb_options_usage[] =
    "usage: gobridge [-config FILE] [flags]\n"
    "       gobridge check FILE [-json] [-strict]\n"
    "       gobridge tables create|plan FILE\n"
    "\n"
    "Moves messages between MQTT brokers and Amazon SQS without losing any.\n"
    "\n"
    "  -config FILE     configuration document (default bridge.yaml)\n"
    "  -overlay FILE    document laid over it: what it writes wins; repeatable, in order\n"
    "  -set PATH=VALUE  override one value at last, such as routes[ID].policy.max_in_flight=10;\n"
    "                   VALUE is YAML; repeatable, in order\n"
    "  -log-level L     debug, info, warn or error (default info); bridge.log_level then governs\n"
    "  -credentials-dir D\n"
    "                   folder of the file:// credential URIs (default credentials)\n"
    "  -monitor-addr A  HOST:PORT of the monitor API when the document has no http block (default\n"
    "                   :8081; port 0: any that is free, see the log)\n"
    "  -start-empty=B   true (default): a missing document starts an idle process; false: exit 1\n"
    "\n"
    "modes (at most one):\n"
    "  -validate        check the document without opening anything: exit 0 or 1, one problem a "
    "line\n"
    "                   on stderr with file, line and column; with -strict warnings fail too\n"
    "  -validate -explain [-json], check FILE\n"
    "                   the same, and on stdout what it comes to: lease cadence, activation, "
    "failover\n"
    "                   budgets with every term, content digest\n"
    "  -seed-managed-subscriptions ID[=FILTER,FILTER...]\n"
    "                   write the subscription baseline of a durable MQTT session and exit; "
    "repeatable\n"
    "  -create-tables, tables create FILE\n"
    "                   create the DynamoDB tables of the document's stores that are missing, wait "
    "until\n"
    "                   they can be used; what exists is compared and left as it is; exit 0 or 1\n"
    "  tables plan FILE\n"
    "                   say what that would do; asks DynamoDB only for the tables' descriptions\n"
    "  -inspect FILE    describe a document as one JSON object, findings included; exit 1 when it "
    "has errors\n"
    "  -config-digest FILE\n"
    "                   print the digest of its content: equal for every spelling of the same\n"
    "  -deployment-fingerprint FILE\n"
    "                   print the digest of what the deployment owns of it: cluster and stores\n"
    "  -diff OLD NEW    what a change would stop, start and need, as JSON; exit 0 equal, 1 "
    "different\n"
    "  -healthcheck     ask the bridge of this document or -monitor-addr whether it is live: exit "
    "0 "
    "or 1\n"
    "  -version         print the version\n"
    "  -help            print this text\n"
    "\n"
    "signals: SIGTERM, SIGINT drain within bridge.shutdown_timeout and exit 0, a second one exits "
    "2 at once;\n"
    "         SIGHUP looks for a changed document now; SIGUSR1 prints the counters as one JSON "
    "line "
    "on stderr\n"
    "exit:    0 clean stop or success, 1 failure, 2 usage error or second signal\n"
    "environment: AWS_* as for every AWS tool (AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_SQS,\n"
    "         AWS_ENDPOINT_URL_DYNAMODB, AWS_REGION, credentials),\n"
    "         GOBRIDGE_INSTANCE_ID, GOBRIDGE_ADMIN_API_KEY, GOBRIDGE_MONITOR_API_KEY,\n"
    "         GOBRIDGE_AWS_BOOTSTRAP_JSON or GOBRIDGE_FILEBASED_BOOTSTRAP_FILE (instead of "
    "-config)\n";

struct flag {
    const char *name;
    unsigned values; /* how many; the next arguments when there is no '=' */
    struct gb_err (*apply)(struct gb_options *o, const char *value);
};

static struct gb_err set_mode(struct gb_options *o, enum gb_mode mode)
{
    if (o->mode != GB_MODE_RUN && o->mode != mode)
        return gb_err(GB_INVALID_CONFIG, "at most one mode flag per call");
    o->mode = mode;
    return gb_ok();
}

/* "true" and "false", and nothing for a bare flag. */
static struct gb_err parse_bool(const char *name, const char *value, bool *out)
{
    if (value == NULL || strcmp(value, "true") == 0 || strcmp(value, "1") == 0) {
        *out = true;
    } else if (strcmp(value, "false") == 0 || strcmp(value, "0") == 0) {
        *out = false;
    } else {
        return gb_err(GB_INVALID_CONFIG, "-%s: \"%s\" is not true or false", name, value);
    }
    return gb_ok();
}

static struct gb_err mode_flag(struct gb_options *o, const char *name, const char *value,
                               enum gb_mode mode)
{
    bool on = false;
    struct gb_err err = parse_bool(name, value, &on);
    if (gb_failed(err) || !on) return err;
    return set_mode(o, mode);
}

static struct gb_err apply_config(struct gb_options *o, const char *value)
{
    o->config = value;
    o->config_given = true;
    return gb_ok();
}
static struct gb_err apply_overlay(struct gb_options *o, const char *value)
{
    if (o->overlay_count == GB_OPTIONS_OVERLAYS_MAX) {
        return gb_err(GB_INVALID_CONFIG, "-overlay: at most %d in one call",
                      GB_OPTIONS_OVERLAYS_MAX);
    }
    o->overlays[o->overlay_count++] = value;
    return gb_ok();
}
/* A message never holds the value: it may be a secret. */
static struct gb_err apply_set(struct gb_options *o, const char *value)
{
    if (o->set_count == GB_OPTIONS_SETS_MAX)
        return gb_err(GB_INVALID_CONFIG, "-set: at most %d in one call", GB_OPTIONS_SETS_MAX);
    o->sets[o->set_count++] = value;
    const char *equals = gb_options_set_equals(value);
    if (equals != NULL && equals != value) return gb_ok();
    return gb_err(GB_INVALID_CONFIG, "-set %zu is not PATH=VALUE", o->set_count);
}
static struct gb_err apply_log_level(struct gb_options *o, const char *value)
{
    if (!gb_log_parse_level(value, &o->log_level)) o->log_level = GB_LOG_INFO; /* spec 08 §2 */
    o->log_level_given = true;
    return gb_ok();
}
static struct gb_err apply_credentials_dir(struct gb_options *o, const char *value)
{
    o->credentials_dir = value;
    return gb_ok();
}
static struct gb_err apply_monitor_addr(struct gb_options *o, const char *value)
{
    o->monitor_addr = value;
    return gb_ok();
}
static struct gb_err apply_healthcheck(struct gb_options *o, const char *value)
{
    return mode_flag(o, "healthcheck", value, GB_MODE_HEALTHCHECK);
}
static struct gb_err apply_start_empty(struct gb_options *o, const char *value)
{
    return parse_bool("start-empty", value, &o->start_empty);
}
static struct gb_err apply_validate(struct gb_options *o, const char *value)
{
    return mode_flag(o, "validate", value, GB_MODE_VALIDATE);
}
static struct gb_err apply_strict(struct gb_options *o, const char *value)
{
    return parse_bool("strict", value, &o->strict);
}
static struct gb_err apply_explain(struct gb_options *o, const char *value)
{
    return parse_bool("explain", value, &o->explain);
}
static struct gb_err apply_json(struct gb_options *o, const char *value)
{
    return parse_bool("json", value, &o->json);
}
static struct gb_err apply_create_tables(struct gb_options *o, const char *value)
{
    return mode_flag(o, "create-tables", value, GB_MODE_CREATE_TABLES);
}
static struct gb_err apply_version(struct gb_options *o, const char *value)
{
    return mode_flag(o, "version", value, GB_MODE_VERSION);
}
static struct gb_err apply_help(struct gb_options *o, const char *value)
{
    return mode_flag(o, "help", value, GB_MODE_HELP);
}
static struct gb_err apply_seed(struct gb_options *o, const char *value)
{
    if (o->seed_count == GB_OPTIONS_SEEDS_MAX) {
        return gb_err(GB_INVALID_CONFIG, "-seed-managed-subscriptions: at most %d in one call",
                      GB_OPTIONS_SEEDS_MAX);
    }
    o->seeds[o->seed_count++] = value;
    return set_mode(o, GB_MODE_SEED);
}

static struct gb_err add_file(struct gb_options *o, const char *value, enum gb_mode mode,
                              size_t count)
{
    if (o->file_count == count) return gb_err(GB_INVALID_CONFIG, "at most one mode flag per call");
    struct gb_err err = set_mode(o, mode);
    if (!gb_failed(err)) o->files[o->file_count++] = value;
    return err;
}
static struct gb_err apply_inspect(struct gb_options *o, const char *value)
{
    return add_file(o, value, GB_MODE_INSPECT, 1);
}
static struct gb_err apply_digest(struct gb_options *o, const char *value)
{
    return add_file(o, value, GB_MODE_DIGEST, 1);
}
static struct gb_err apply_fingerprint(struct gb_options *o, const char *value)
{
    return add_file(o, value, GB_MODE_FINGERPRINT, 1);
}
static struct gb_err apply_diff(struct gb_options *o, const char *value)
{
    return add_file(o, value, GB_MODE_DIFF, 2);
}

static const struct flag flags[] = {
    {"config", 1, apply_config},
    {"overlay", 1, apply_overlay},
    {"set", 1, apply_set},
    {"log-level", 1, apply_log_level},
    {"credentials-dir", 1, apply_credentials_dir},
    {"start-empty", 0, apply_start_empty},
    {"validate", 0, apply_validate},
    {"strict", 0, apply_strict},
    {"explain", 0, apply_explain},
    {"json", 0, apply_json},
    {"version", 0, apply_version},
    {"help", 0, apply_help},
    {"h", 0, apply_help},
    {"seed-managed-subscriptions", 1, apply_seed},
    {"create-tables", 0, apply_create_tables},
    {"monitor-addr", 1, apply_monitor_addr},
    {"healthcheck", 0, apply_healthcheck},
    {"inspect", 1, apply_inspect},
    {"config-digest", 1, apply_digest},
    {"deployment-fingerprint", 1, apply_fingerprint},
    {"diff", 2, apply_diff},
};

/* Flags of the specification whose capability comes with a later release. */
static const char *const later[] = {
    "admin-addr",
    "initial-config-digest",
};

static const struct flag *find_flag(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strlen(flags[i].name) == size && memcmp(flags[i].name, name, size) == 0)
            return &flags[i];
    }
    return NULL;
}

/* It may be the rest of a secret that the shell took apart. */
static struct gb_err behind_set(void)
{
    return gb_err(GB_INVALID_CONFIG, "what stands behind -set PATH=VALUE is no flag; put the whole "
                                     "of PATH=VALUE into quotes");
}

static struct gb_err stray_argument(const struct flag *last, const char *text)
{
    if (last != NULL && last->apply == apply_set) return behind_set();
    return gb_err(GB_INVALID_CONFIG, "stray argument \"%s\"", text);
}

static struct gb_err unknown_flag(const struct flag *last, const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (strlen(later[i]) == size && memcmp(later[i], name, size) == 0)
            return gb_err(GB_INVALID_CONFIG, "-%s is not supported yet", later[i]);
    }
    if (last != NULL && last->apply == apply_set) return behind_set();
    return gb_err(GB_INVALID_CONFIG, "unknown flag -%.*s", (int)size, name);
}

static struct gb_err missing_value(const struct flag *f)
{
    if (f->values == 1) return gb_err(GB_INVALID_CONFIG, "-%s needs a value", f->name);
    return gb_err(GB_INVALID_CONFIG, "-%s needs %u values", f->name, f->values);
}

const char *gb_options_set_equals(const char *set)
{
    bool inside = false;
    for (; *set != '\0'; set++) {
        if (*set == '[') inside = true;
        if (*set == ']') inside = false;
        if (*set == '=' && !inside) return set;
    }
    return NULL;
}

static const char default_config[] = "bridge.yaml";

struct subcommand {
    const char *name, *verb; /* verb NULL: it has none */
    enum gb_mode mode;
    bool explain;
};
static const struct subcommand subcommands[] = {
    {"check", NULL, GB_MODE_VALIDATE, true},
    {"tables", "create", GB_MODE_CREATE_TABLES, false},
    {"tables", "plan", GB_MODE_PLAN_TABLES, false},
};

/* `*out` is NULL without one. */
static struct gb_err find_subcommand(int argc, char *const *argv, const struct subcommand **out)
{
    *out = NULL;
    if (argc < 2) return gb_ok();
    bool known = false;
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        const struct subcommand *s = &subcommands[i];
        if (strcmp(argv[1], s->name) != 0) continue;
        known = true;
        if (s->verb != NULL && (argc < 3 || strcmp(argv[2], s->verb) != 0)) continue;
        *out = s;
        return gb_ok();
    }
    return known ? gb_err(GB_INVALID_CONFIG, "%s needs create or plan, and a FILE", argv[1])
                 : gb_ok();
}

/* `file` is that of the subcommand, or NULL. */
static struct gb_err finish(struct gb_options *o, const struct subcommand *sub, const char *file)
{
    const char *verb = sub != NULL && sub->verb != NULL ? sub->verb : "";
    const char *blank = verb[0] != '\0' ? " " : "";
    if (sub != NULL && file == NULL)
        return gb_err(GB_INVALID_CONFIG, "%s%s%s needs a FILE", sub->name, blank, verb);
    if (sub != NULL && o->config_given) {
        return gb_err(GB_INVALID_CONFIG, "%s%s%s names its FILE; leave -config out", sub->name,
                      blank, verb);
    }
    if (sub != NULL) o->config = file;
    if (o->explain && o->mode != GB_MODE_VALIDATE)
        return gb_err(GB_INVALID_CONFIG, "-explain goes with -validate");
    if (o->json && !o->explain)
        return gb_err(GB_INVALID_CONFIG, "-json goes with check or -validate -explain");
    return gb_ok();
}

static struct gb_err apply(struct gb_options *o, const struct flag *f, const char *value, int argc,
                           char *const *argv, int *i)
{
    for (unsigned n = 0; n < f->values || n == 0; n++) {
        if (n > 0) value = NULL; /* only the first one follows an '=' */
        if (f->values > 0 && value == NULL) {
            if (*i + 1 == argc) return missing_value(f);
            value = argv[++*i];
        }
        struct gb_err err = f->apply(o, value);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

struct gb_err gb_options_parse(int argc, char *const *argv, struct gb_options *out)
{
    struct gb_options o = {.config = default_config,
                           .credentials_dir = "credentials",
                           .log_level = GB_LOG_INFO,
                           .start_empty = true};
    const struct flag *last = NULL;
    const struct subcommand *sub;
    const char *file = NULL;
    struct gb_err err = find_subcommand(argc, argv, &sub);
    if (gb_failed(err)) return err;
    if (sub != NULL) {
        o.mode = sub->mode;
        o.explain = sub->explain;
    }
    for (int i = sub == NULL ? 1 : sub->verb == NULL ? 2 : 3; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0') {
            bool behind = last != NULL && last->apply == apply_set;
            if (sub == NULL || file != NULL || behind) return stray_argument(last, arg);
            file = arg;
            continue;
        }
        const char *name = arg + (arg[1] == '-' ? 2 : 1);
        const char *equals = strchr(name, '=');
        size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name);
        const struct flag *f = find_flag(name, size);
        if (f == NULL) return unknown_flag(last, name, size);
        last = f;
        err = apply(&o, f, equals == NULL ? NULL : equals + 1, argc, argv, &i);
        if (gb_failed(err)) return err;
    }
    err = finish(&o, sub, file);
    if (!gb_failed(err)) *out = o;
    return err;
}
