#include "app/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/document.h"
#include "app/runtime.h"
#include "base/id.h"
#include "base/log.h"
#include "io/file.h"

enum { SIGNALS = 4 };

struct process {
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    struct gb_blueprint *blueprint; /* NULL: idle */
    struct gb_runtime *runtime;
    struct gb_signal *signals[SIGNALS];
    struct gb_timer budget; /* T0 + shutdown_timeout */
    char *instance_id;
    char *owner; /* instance_id#<boot-nonce>: one for the life of the process (spec 06 §2) */
    bool stopping;
    int exit_code;
};

/* All counters as one JSON line on stderr, until the HTTP API exists (issue text, spec 08 §8). */
static void print_metrics(const struct process *p)
{
    struct gb_str line = {0};
    gb_str_append_c(&line, "{\"msg\":\"metrics\",\"snapshot\":");
    gb_metrics_print(p->metrics, &line);
    gb_str_append_c(&line, "}\n");
    if (!line.failed) gb_log_write_text(line.data, line.size);
    gb_str_deinit(&line);
}

static void runtime_ended(void *arg, struct gb_err result)
{
    struct process *p = arg;
    if (gb_failed(result) && p->exit_code == 0) {
        GB_LOG(GB_LOG_ERROR, "the shutdown was not clean", gb_lf_err(&result));
        p->exit_code = 1;
    }
    gb_timer_stop(&p->budget);
    gb_loop_stop(p->loop);
}

static void budget_over(struct gb_timer *t)
{
    struct process *p = GB_CONTAINER_OF(t, struct process, budget);
    GB_LOG(GB_LOG_ERROR, "shutdown_timeout is over; unsettled messages stay with their sources");
    print_metrics(p);
    _exit(1);
}

static void begin_stop(struct process *p)
{
    p->stopping = true;
    if (p->runtime == NULL) {
        gb_loop_stop(p->loop);
        return;
    }
    uint64_t deadline_ns =
        gb_reactor_now_ns(p->reactor) + (uint64_t)p->blueprint->bridge.shutdown_timeout.ns;
    gb_timer_start(&p->budget, deadline_ns);
    gb_runtime_stop(p->runtime, deadline_ns, runtime_ended, p);
}

static void on_stop_signal(void *arg, int signum)
{
    struct process *p = arg;
    if (p->stopping) {
        GB_LOG(GB_LOG_WARN, "second signal: exiting at once", gb_lf_int("signal", signum));
        _exit(2);
    }
    GB_LOG(GB_LOG_INFO, "shutdown signal received", gb_lf_int("signal", signum));
    begin_stop(p);
}

static void on_metrics_signal(void *arg, int signum)
{
    (void)signum;
    print_metrics(arg);
}

static void ignore_signal(void *arg, int signum)
{
    (void)arg;
    (void)signum;
}

/* Spec 08 §3: a self-inflicted stop first tries the normal shutdown and always exits non-zero. */
static void on_terminal(void *arg, struct gb_err cause)
{
    struct process *p = arg;
    GB_LOG(GB_LOG_ERROR, "terminal: the process stops and must be restarted", gb_lf_err(&cause));
    p->exit_code = 1;
    if (!p->stopping) begin_stop(p);
}

/* Instance identity, first non-empty (spec 01 §8.2). */
static char *instance_id(const struct process *p)
{
    const char *given = p->blueprint == NULL ? gb_env("GOBRIDGE_INSTANCE_ID")
                                             : gb_blueprint_instance_id(p->blueprint);
    if (given != NULL) return gb_strdup(given);
    char host[256] = {0};
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') host[0] = 'h';
    char id[GB_ID_HEX_SIZE];
    gb_id_hex(p->reactor, id);
    return gb_asprintf("%s-%.8s", host, id);
}

static struct gb_err name_instance(struct process *p)
{
    char nonce[GB_NONCE_SIZE];
    struct gb_err err = gb_nonce(nonce);
    if (gb_failed(err)) return err;
    p->instance_id = instance_id(p);
    if (p->instance_id != NULL) p->owner = gb_asprintf("%s#%s", p->instance_id, nonce);
    return p->owner == NULL ? gb_err_no_memory("instance id") : gb_ok();
}

static struct gb_err load_document(struct process *p, const struct gb_options *o)
{
    struct gb_err err = gb_document_load(o, o->config, GB_DOCUMENT_RUN, &p->blueprint);
    if (err.code == GB_NOT_FOUND && o->start_empty) {
        GB_LOG(GB_LOG_WARN,
               "no configuration document: idle until it exists and the process is restarted",
               gb_lf_str("config", o->config));
        return gb_ok();
    }
    return err;
}

static struct gb_err open_process(struct process *p)
{
    static const struct {
        int signum;
        void (*fn)(void *, int);
    } rows[SIGNALS] = {
        {SIGTERM, on_stop_signal},
        {SIGINT, on_stop_signal},
        {SIGUSR1, on_metrics_signal},
        {SIGHUP, ignore_signal}, /* no configuration source is watched yet */
    };
    for (size_t i = 0; i < SIGNALS; i++) {
        struct gb_err err = gb_signal_new(p->loop, rows[i].signum, rows[i].fn, p, &p->signals[i]);
        if (gb_failed(err)) return err;
    }
    struct gb_err err = gb_timer_init(&p->budget, p->reactor, budget_over);
    if (gb_failed(err)) return err;
    return gb_metrics_new(&p->metrics);
}

static struct gb_err start_runtime(struct process *p)
{
    if (p->blueprint == NULL) return gb_ok();
    if (p->blueprint->bridge.log_level.given)
        gb_log_set_level((enum gb_log_level)p->blueprint->bridge.log_level.value);
    const struct gb_runtime_cfg cfg = {
        .loop = p->loop,
        .metrics = p->metrics,
        .blueprint = p->blueprint,
        .instance_id = p->instance_id,
        .owner = p->owner,
        .terminal = on_terminal,
        .arg = p,
    };
    struct gb_err err = gb_runtime_new(&cfg, &p->runtime);
    if (!gb_failed(err)) gb_runtime_start(p->runtime);
    return err;
}

static void close_process(struct process *p)
{
    gb_runtime_free(p->runtime);
    for (size_t i = 0; i < SIGNALS; i++)
        if (p->signals[i] != NULL) gb_signal_free(p->signals[i]);
    if (p->loop != NULL) {
        gb_loop_drain_closing(p->loop);
        gb_timer_deinit(&p->budget);
        gb_loop_free(p->loop);
    }
    gb_metrics_free(p->metrics);
    gb_blueprint_free(p->blueprint);
    free(p->instance_id);
    free(p->owner);
}

int gb_process_run(const struct gb_options *o)
{
    struct process p = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* until their handlers stand, these must not end the start */
    (void)signal(SIGUSR1, SIG_IGN);
    gb_log_set_level(o->log_level);
    struct gb_err err = gb_loop_new(&p.loop);
    /* Before the handlers: a document in a pipe may be waited for, and SIGTERM must end that. */
    if (!gb_failed(err)) err = load_document(&p, o);
    if (!gb_failed(err)) {
        p.reactor = gb_loop_reactor(p.loop);
        err = open_process(&p);
    }
    if (!gb_failed(err)) err = name_instance(&p);
    if (!gb_failed(err)) {
        gb_log_set_instance(p.instance_id);
        err = start_runtime(&p);
    }
    if (gb_failed(err)) {
        GB_LOG(GB_LOG_ERROR, "start failed", gb_lf_str("config", o->config), gb_lf_err(&err));
        p.exit_code = 1;
        if (p.runtime != NULL) begin_stop(&p); /* closes what was opened */
    }
    if (!gb_failed(err) || p.runtime != NULL) gb_loop_run(p.loop);
    if (p.metrics != NULL && p.blueprint != NULL) print_metrics(&p);
    GB_LOG(GB_LOG_INFO, "bridge stopped", gb_lf_int("exit_code", p.exit_code));
    int exit_code = p.exit_code;
    close_process(&p);
    return exit_code;
}
