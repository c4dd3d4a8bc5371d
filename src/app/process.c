#include "app/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/bootstrap.h"
#include "app/monitor.h"
#include "app/supervisor.h"
#include "base/log.h"
#include "io/file.h"

enum { SIGNALS = 4 };

struct process {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    struct gb_bootstrap *bootstrap; /* NULL: flag mode */
    struct gb_supervisor *supervisor;
    struct gb_app_monitor *monitor;
    struct gb_signal *signals[SIGNALS];
    struct gb_timer budget;    /* T0 + shutdown_timeout */
    char nonce[GB_NONCE_SIZE]; /* the supervisor borrows it */
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

static void ended(void *arg, int exit_code)
{
    struct process *p = arg;
    p->exit_code = exit_code;
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

static void ending(void *arg, int64_t budget_ns)
{
    struct process *p = arg;
    p->stopping = true;
    gb_timer_start(&p->budget, gb_reactor_now_ns(gb_loop_reactor(p->loop)) + (uint64_t)budget_ns);
}

static void on_stop_signal(void *arg, int signum)
{
    struct process *p = arg;
    if (p->stopping) {
        GB_LOG(GB_LOG_WARN, "second signal: exiting at once", gb_lf_int("signal", signum));
        _exit(2);
    }
    GB_LOG(GB_LOG_INFO, "shutdown signal received", gb_lf_int("signal", signum));
    ending(p, gb_supervisor_shutdown_ns(p->supervisor));
    gb_supervisor_stop(p->supervisor, 0);
}

static void on_metrics_signal(void *arg, int signum)
{
    (void)signum;
    print_metrics(arg);
}

static void on_recheck_signal(void *arg, int signum)
{
    struct process *p = arg;
    (void)signum;
    gb_supervisor_recheck(p->supervisor);
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
        {SIGHUP, on_recheck_signal},
    };
    for (size_t i = 0; i < SIGNALS; i++) {
        struct gb_err err = gb_signal_new(p->loop, rows[i].signum, rows[i].fn, p, &p->signals[i]);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

static struct gb_err make_supervisor(struct process *p, const struct gb_options *o)
{
    const struct gb_supervisor_cfg cfg = {
        .loop = p->loop,
        .metrics = p->metrics,
        .options = o,
        .bootstrap = p->bootstrap,
        .nonce = p->nonce,
        .ended = ended,
        .ending = ending,
        .arg = p,
    };
    struct gb_err err = gb_nonce(p->nonce);
    return gb_failed(err) ? err : gb_supervisor_new(&cfg, &p->supervisor);
}

/* It opens once, with the first document's addresses (spec 08 §4). */
static struct gb_err make_monitor(struct process *p, const struct gb_options *o)
{
    const struct gb_app_monitor_cfg cfg = {
        .loop = p->loop,
        .metrics = p->metrics,
        .options = o,
        .bootstrap = p->bootstrap,
        .supervisor = p->supervisor,
    };
    return gb_app_monitor_new(&cfg, &p->monitor);
}

static void close_process(struct process *p)
{
    gb_app_monitor_free(p->monitor);
    gb_supervisor_free(p->supervisor);
    for (size_t i = 0; i < SIGNALS; i++)
        if (p->signals[i] != NULL) gb_signal_free(p->signals[i]);
    if (p->loop != NULL) {
        gb_loop_drain_closing(p->loop);
        gb_timer_deinit(&p->budget);
        gb_loop_free(p->loop);
    }
    gb_metrics_free(p->metrics);
    gb_bootstrap_free(p->bootstrap);
}

/* The document is read before the handlers stand: it may be waited for, and SIGTERM must end
 * that. */
static struct gb_err start(struct process *p, struct gb_options *o)
{
    struct gb_err err = gb_loop_new(&p->loop);
    if (gb_failed(err)) return err;
    err = gb_timer_init(&p->budget, gb_loop_reactor(p->loop), budget_over);
    if (!gb_failed(err)) err = gb_metrics_new(&p->metrics);
    if (!gb_failed(err)) err = gb_bootstrap_load(o, &p->bootstrap);
    if (!gb_failed(err)) err = make_supervisor(p, o);
    if (!gb_failed(err)) err = gb_supervisor_load(p->supervisor);
    if (!gb_failed(err)) err = open_process(p);
    if (!gb_failed(err)) err = make_monitor(p, o);
    return err;
}

int gb_process_run(const struct gb_options *options)
{
    struct process p = {0};
    struct gb_options o = *options;
    struct gb_err err = gb_bootstrap_check_flags(options);
    if (gb_failed(err)) {
        (void)fprintf(stderr, "gobridge: %s\n%s", err.message, gb_options_usage);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* until their handlers stand, these must not end the start */
    (void)signal(SIGUSR1, SIG_IGN);
    gb_log_set_level(o.log_level);
    err = start(&p, &o);
    if (gb_failed(err)) {
        GB_LOG(GB_LOG_ERROR, "start failed", gb_lf_str("config", o.config), gb_lf_err(&err));
        p.exit_code = 1;
    } else {
        gb_supervisor_start(p.supervisor);
        gb_loop_run(p.loop);
        print_metrics(&p);
    }
    GB_LOG(GB_LOG_INFO, "bridge stopped", gb_lf_int("exit_code", p.exit_code));
    int exit_code = p.exit_code;
    close_process(&p);
    return exit_code;
}
