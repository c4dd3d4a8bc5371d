#include "app/supervisor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/supervisor_parts.h"
#include "base/assert.h"
#include "base/id.h"

#define GB_BIT(state) (1u << (state))
static const uint8_t exits[SUPERVISOR_STATES] = {
    [SUPERVISOR_IDLE] = GB_BIT(SUPERVISOR_RESOLVING) | GB_BIT(SUPERVISOR_CLOSING),
    [SUPERVISOR_RESOLVING] = GB_BIT(SUPERVISOR_IDLE) | GB_BIT(SUPERVISOR_RUNNING) |
                             GB_BIT(SUPERVISOR_STOPPING) | GB_BIT(SUPERVISOR_STARTING) |
                             GB_BIT(SUPERVISOR_CLOSING),
    [SUPERVISOR_STOPPING] =
        GB_BIT(SUPERVISOR_STARTING) | GB_BIT(SUPERVISOR_IDLE) | GB_BIT(SUPERVISOR_CLOSING),
    [SUPERVISOR_STARTING] =
        GB_BIT(SUPERVISOR_RUNNING) | GB_BIT(SUPERVISOR_UNDOING) | GB_BIT(SUPERVISOR_STOPPING),
    [SUPERVISOR_UNDOING] =
        GB_BIT(SUPERVISOR_STARTING) | GB_BIT(SUPERVISOR_IDLE) | GB_BIT(SUPERVISOR_CLOSING),
    [SUPERVISOR_RUNNING] = GB_BIT(SUPERVISOR_RESOLVING) | GB_BIT(SUPERVISOR_STOPPING),
    [SUPERVISOR_CLOSING] = GB_BIT(SUPERVISOR_ENDED),
};

/* Of a start that failed for the time being. */
static const uint64_t retry_ns = 10 * 1000000000ull;

static void begin_closing(struct gb_supervisor *s);
static void start_next(struct gb_supervisor *s);

static void set_state(struct gb_supervisor *s, enum supervisor_state next)
{
    GB_ASSERT((exits[s->state] & GB_BIT(next)) != 0);
    s->state = next;
}

static int64_t running_version(const struct gb_supervisor *s)
{
    return s->current == NULL ? 0 : s->current->blueprint->version.value;
}

/* --- the verdict on a change --- */

static void count_reload(struct gb_supervisor *s, bool ok)
{
    gb_metric_add(gb_metrics_get(s->cfg.metrics, GB_METRIC_COUNTER, "ConfigReloads",
                                 GB_DIMS({"state", ok ? "success" : "failure"})),
                  1);
}

static void log_applied(struct gb_supervisor *s, const char *how)
{
    count_reload(s, true);
    GB_LOG(
        GB_LOG_INFO, "configuration applied", gb_lf_str("swap", how),
        gb_lf_int("config_version", running_version(s)),
        gb_lf_int("duration_ms", (int64_t)((gb_supervisor_now(s) - s->swap_started_ns) / GB_MS)));
}

/* In flag mode the first document runs, or the process ends (spec 08 §2). */
static bool must_start(const struct gb_supervisor *s)
{
    return s->cfg.bootstrap == NULL && !s->activated;
}

/* What runs goes on, nothing else has changed (spec 07 §5). */
void gb_supervisor_reject(struct gb_supervisor *s, const struct gb_err *why)
{
    if (s->activated) count_reload(s, false);
    s->apply_error = *why;
    GB_LOG(GB_LOG_ERROR,
           s->current != NULL    ? "configuration rejected; the running one serves on"
           : must_start(s)       ? "start failed"
           : s->previous != NULL ? "configuration rejected: it does not start"
                                 : "configuration rejected; idle until it is corrected",
           gb_lf_int("config_version", running_version(s)),
           gb_lf_int("attempted_config_version", s->attempted_version), gb_lf_err(why));
}

static void apply_log_level(const struct gb_supervisor *s)
{
    const struct gb_opt_word *level = &s->current->blueprint->bridge.log_level;
    gb_log_set_level(level->given ? (enum gb_log_level)level->value : s->cfg.options->log_level);
}

/* What another try may cure is tried again; the rest waits for another document. */
static void maybe_retry(struct gb_supervisor *s, const struct gb_err *why)
{
    if (!gb_err_is_transient(why) || s->ending) return;
    gb_timer_start(&s->retry, gb_supervisor_now(s) + retry_ns);
}

static void retry_due(struct gb_timer *timer)
{
    gb_supervisor_try_again(GB_CONTAINER_OF(timer, struct gb_supervisor, retry));
}

/* --- starting --- */

static void settle(struct gb_supervisor *s)
{
    if (!s->again || s->ending) return;
    s->again = false;
    if (s->source != NULL) gb_source_check(s->source);
}

static void on_started(void *arg)
{
    struct gb_supervisor *s = arg;
    if (s->state != SUPERVISOR_STARTING) return;
    bool reload = s->activated && !s->recovering;
    set_state(s, SUPERVISOR_RUNNING);
    s->current = s->next;
    s->next = NULL;
    gb_generation_free(s->previous);
    s->previous = NULL;
    if (s->recovering) {
        GB_LOG(GB_LOG_WARN, "the configuration before runs again",
               gb_lf_int("config_version", running_version(s)));
    }
    if (!s->recovering) s->apply_error = gb_ok();
    s->recovering = false;
    s->activated = true;
    gb_supervisor_pace(s);
    if (reload) log_applied(s, "serialized");
    apply_log_level(s);
    settle(s);
}

static void undone(void *arg, struct gb_err result)
{
    struct gb_supervisor *s = arg;
    (void)result; /* it never served */
    gb_generation_free(s->next);
    s->next = NULL;
    if (s->previous != NULL && !s->ending) {
        s->next = s->previous;
        s->previous = NULL;
        s->recovering = true;
        start_next(s);
        return;
    }
    if (s->recovering)
        GB_LOG(GB_LOG_ERROR, "the configuration before does not start either: nothing runs");
    s->recovering = false;
    bool fatal = must_start(s);
    if (fatal && s->exit_code == 0) s->exit_code = 1;
    if (fatal || s->ending) {
        begin_closing(s);
        return;
    }
    set_state(s, SUPERVISOR_IDLE);
    settle(s);
}

static void undo(struct gb_supervisor *s, struct gb_err why)
{
    set_state(s, SUPERVISOR_UNDOING);
    gb_supervisor_reject(s, &why);
    if (s->previous == NULL) maybe_retry(s, &why); /* else each try stops what serves */
    if (s->next->runtime == NULL) {
        undone(s, gb_ok());
        return;
    }
    gb_runtime_stop(s->next->runtime, gb_supervisor_now(s) + (uint64_t)gb_supervisor_shutdown_ns(s),
                    undone, s);
}

void gb_supervisor_end_by_itself(struct gb_supervisor *s)
{
    if (s->ending) return;
    s->cfg.ending(s->cfg.arg, gb_supervisor_shutdown_ns(s));
    gb_supervisor_stop(s, 1);
}

/* Spec 08 §3: a self-inflicted stop first tries the normal shutdown and always exits non-zero. */
static void on_terminal(void *arg, struct gb_err cause)
{
    struct gb_supervisor *s = arg;
    if (s->state == SUPERVISOR_STARTING && !s->ending) {
        undo(s, cause);
        return;
    }
    s->terminal = true;
    GB_LOG(GB_LOG_ERROR, "terminal: the process stops and must be restarted", gb_lf_err(&cause));
    s->exit_code = 1;
    gb_supervisor_end_by_itself(s);
}

static void start_next(struct gb_supervisor *s)
{
    set_state(s, SUPERVISOR_STARTING);
    if (!s->activated) { /* its own start is told at its own level */
        const struct gb_opt_word *level = &s->next->blueprint->bridge.log_level;
        if (level->given) gb_log_set_level((enum gb_log_level)level->value);
    }
    s->generations.again = s->activated;
    struct gb_err err = gb_generation_build(s->next, &s->generations, on_started, on_terminal, s);
    if (gb_failed(err)) undo(s, err);
}

/* --- stopping --- */

static void current_stopped(void *arg, struct gb_err result)
{
    struct gb_supervisor *s = arg;
    bool closed = gb_runtime_closed(s->current->runtime);
    if (gb_failed(result) && (s->ending || !closed)) {
        GB_LOG(GB_LOG_ERROR, "the shutdown was not clean", gb_lf_err(&result));
        if (s->exit_code == 0) s->exit_code = 1;
    }
    gb_runtime_free(s->current->runtime);
    s->current->runtime = NULL;
    if (!closed && !s->ending) {
        s->ending = true; /* an uncertain teardown: no second runtime beside it (spec 07 §3) */
        s->cfg.ending(s->cfg.arg, gb_supervisor_shutdown_ns(s));
    }
    if (s->ending) {
        begin_closing(s);
    } else if (s->next == NULL) {
        gb_generation_free(s->current);
        s->current = NULL;
        set_state(s, SUPERVISOR_IDLE);
        GB_LOG(GB_LOG_INFO, "idle: no configuration");
        settle(s);
    } else {
        s->previous = s->current;
        s->current = NULL;
        start_next(s);
    }
}

void gb_supervisor_stop_current(struct gb_supervisor *s, int64_t budget_ns)
{
    set_state(s, SUPERVISOR_STOPPING);
    gb_runtime_stop(s->current->runtime, gb_supervisor_now(s) + (uint64_t)budget_ns,
                    current_stopped, s);
}

/* --- a new document --- */

static void secrets_resolved(struct gb_op *op, void *arg)
{
    struct gb_supervisor *s = arg;
    struct gb_err err = op->result;
    if (s->ending || gb_failed(err)) {
        gb_generation_free(s->next);
        s->next = NULL;
        bool fatal = must_start(s);
        if (!s->ending) gb_supervisor_reject(s, &err);
        if (!s->ending && fatal) s->exit_code = 1;
        if (s->current != NULL && s->ending) {
            gb_supervisor_stop_current(s, gb_supervisor_shutdown_ns(s));
        } else if (s->ending || fatal) {
            begin_closing(s);
        } else {
            maybe_retry(s, &err);
            set_state(s, s->current == NULL ? SUPERVISOR_IDLE : SUPERVISOR_RUNNING);
            settle(s);
        }
        return;
    }
    if (s->current == NULL) {
        start_next(s);
        return;
    }
    int64_t drain_ns = s->current->blueprint->bridge.drain_timeout.ns;
    gb_supervisor_stop_current(s, drain_ns > 0 ? drain_ns : gb_supervisor_shutdown_ns(s));
}

void gb_supervisor_run(struct gb_supervisor *s, struct gb_generation *g)
{
    s->next = g;
    s->swap_started_ns = gb_supervisor_now(s);
    set_state(s, SUPERVISOR_RESOLVING);
    gb_secrets_resolve(g->secrets, &g->secrets_op, secrets_resolved, s);
}

/* The same content: nothing stops, and the new document counts as the running one. The runtime
 * keeps the old one, which says the same. */
void gb_supervisor_adopt(struct gb_supervisor *s, struct gb_generation *g)
{
    s->swap_started_ns = gb_supervisor_now(s);
    s->current->blueprint->version = g->blueprint->version;
    gb_generation_free(g);
    s->apply_error = gb_ok(); /* back to it, after one that was rejected */
    log_applied(s, "none");
}

/* --- life --- */

/* Instance identity, where neither the environment nor the document gives one (spec 01 §8.2). */
static char *make_id(struct gb_reactor *reactor)
{
    char host[256] = {0};
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = 'h';
    char id[GB_ID_HEX_SIZE];
    gb_id_hex(reactor, id);
    return gb_asprintf("%s-%.8s", host, id);
}

struct gb_err gb_supervisor_new(const struct gb_supervisor_cfg *cfg, struct gb_supervisor **out)
{
    struct gb_supervisor *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("supervisor");
    struct gb_reactor *reactor = gb_loop_reactor(cfg->loop);
    s->cfg = *cfg;
    s->fallback_id = make_id(reactor);
    s->generations = (struct gb_generation_cfg){.loop = cfg->loop,
                                                .metrics = cfg->metrics,
                                                .options = cfg->options,
                                                .bootstrap = cfg->bootstrap,
                                                .nonce = cfg->nonce,
                                                .fallback_id = s->fallback_id};
    struct gb_err err = gb_timer_init(&s->retry, reactor, retry_due);
    if (!gb_failed(err) && s->fallback_id == NULL) err = gb_err_no_memory("instance id");
    if (gb_failed(err)) {
        gb_supervisor_free(s);
    } else {
        *out = s;
    }
    return err;
}

struct gb_err gb_supervisor_load(struct gb_supervisor *s)
{
    struct gb_generation *g = NULL;
    struct gb_err err = gb_generation_read(&s->generations, NULL, s->considered, &g);
    if (err.code == GB_NOT_FOUND && (s->cfg.bootstrap != NULL || s->cfg.options->start_empty)) {
        GB_LOG(GB_LOG_WARN, "no configuration document: idle until it exists",
               gb_lf_str("config", s->cfg.options->config));
        return gb_ok();
    }
    if (gb_failed(err) && s->cfg.bootstrap != NULL) {
        gb_supervisor_reject(s, &err);
        return gb_ok();
    }
    s->next = g;
    return err;
}

void gb_supervisor_start(struct gb_supervisor *s)
{
    struct gb_generation *g = s->next;
    s->next = NULL;
    struct gb_err err = gb_supervisor_watch(s);
    if (gb_failed(err)) {
        GB_LOG(GB_LOG_ERROR, "the configuration is not watched", gb_lf_err(&err));
    }
    gb_supervisor_use(s, s->considered);
    if (g == NULL) {
        gb_log_set_instance(s->fallback_id);
    } else {
        gb_supervisor_run(s, g);
    }
}

int64_t gb_supervisor_shutdown_ns(const struct gb_supervisor *s)
{
    const struct gb_generation *g = s->current != NULL ? s->current : s->next;
    return g == NULL ? 30 * GB_SEC : g->blueprint->bridge.shutdown_timeout.ns;
}

static void source_closed(struct gb_op *op, void *arg)
{
    struct gb_supervisor *s = arg;
    (void)op;
    set_state(s, SUPERVISOR_ENDED);
    s->cfg.ended(s->cfg.arg, s->exit_code);
}

static void begin_closing(struct gb_supervisor *s)
{
    s->ending = true;
    set_state(s, SUPERVISOR_CLOSING);
    gb_timer_stop(&s->retry);
    struct gb_source *source = s->source;
    s->source = NULL;
    if (source == NULL) {
        source_closed(NULL, s);
    } else {
        gb_source_close(source, &s->close_source, source_closed, s);
    }
}

void gb_supervisor_stop(struct gb_supervisor *s, int exit_code)
{
    if (s->exit_code == 0) s->exit_code = exit_code;
    if (s->ending) return;
    s->ending = true;
    switch (s->state) {
    case SUPERVISOR_IDLE:
        begin_closing(s);
        break;
    case SUPERVISOR_RESOLVING:
        gb_op_cancel(&s->next->secrets_op);
        break;
    case SUPERVISOR_STARTING: /* as far as it came */
        s->current = s->next;
        s->next = NULL;
        gb_supervisor_stop_current(s, gb_supervisor_shutdown_ns(s));
        break;
    case SUPERVISOR_RUNNING:
        gb_supervisor_stop_current(s, gb_supervisor_shutdown_ns(s));
        break;
    case SUPERVISOR_STOPPING: /* for another document; the process has less time */
        gb_runtime_hurry(s->current->runtime,
                         gb_supervisor_now(s) + (uint64_t)gb_supervisor_shutdown_ns(s));
        break;
    case SUPERVISOR_UNDOING:
    case SUPERVISOR_CLOSING:
    case SUPERVISOR_ENDED:
    case SUPERVISOR_STATES:
        break; /* on its way */
    }
}

void gb_supervisor_free(struct gb_supervisor *s)
{
    if (s == NULL) return;
    gb_timer_deinit(&s->retry);
    gb_generation_free(s->current);
    gb_generation_free(s->next);
    gb_generation_free(s->previous);
    free(s->fallback_id);
    free(s);
}
