#include <sys/stat.h>

#include "app/supervisor_parts.h"
#include "blueprint/diff.h"

/* What the source says, and what becomes of it (spec 07 §2, §5, §7). */

static const int64_t resync_ns = 30 * GB_SEC, debounce_ns = 100 * GB_MS; /* spec 07 §2.2 */
static const uint64_t error_interval_ns = 60 * 1000000000ull;
enum { READ_ERRORS_LOUD = 10 };

/* --- a new document --- */

/* Spec 07 §5.2, §7: refused before anything is opened or stopped. */
static struct gb_err judge_change(const struct gb_supervisor *s, const struct gb_generation *g,
                                  bool *equal)
{
    const struct gb_blueprint *before = s->current->blueprint;
    struct gb_diff d;
    struct gb_err err = gb_diff_init(&d, before, g->blueprint);
    if (gb_failed(err)) return err;
    bool clustered = before->bridge.deployment_mode.value == GB_BP_CLUSTERED ||
                     g->blueprint->bridge.deployment_mode.value == GB_BP_CLUSTERED;
    *equal = d.equal;
    if (!d.equal && clustered) {
        err = gb_err(GB_INVALID_CONFIG, "a cluster refuses live changes (bridge.cluster.rollout: "
                                        "refuse); stop all instances, change it, start them");
    } else if (!d.equal && d.class_ == GB_DIFF_REPLACEMENT_REQUIRED) {
        err =
            gb_err(GB_INVALID_CONFIG, "not while the bridge runs: %s; stop it, change it, start it",
                   d.reason_count > 0 ? d.reasons[0] : "a durable identity would change");
    }
    gb_diff_deinit(&d);
    return err;
}

static void consider(struct gb_supervisor *s, const struct gb_source_texts *texts)
{
    struct gb_generation *g = NULL;
    struct gb_err err = gb_generation_read(&s->generations, texts, s->considered, &g);
    gb_supervisor_use(s, s->considered); /* a bad one is not judged again at each reading */
    gb_timer_stop(&s->retry);
    s->attempted_version = g == NULL ? 0 : g->blueprint->version.value;
    bool equal = false;
    if (g != NULL && s->current != NULL) err = judge_change(s, g, &equal);
    if (gb_failed(err)) {
        gb_supervisor_reject(s, &err);
        gb_generation_free(g);
    } else if (equal) {
        gb_supervisor_adopt(s, g);
    } else {
        gb_supervisor_run(s, g);
    }
}

/* --- the source --- */

static void document_is_gone(struct gb_supervisor *s)
{
    if (s->current == NULL) return;
    bool clustered = s->current->blueprint->bridge.deployment_mode.value == GB_BP_CLUSTERED;
    GB_LOG(GB_LOG_WARN,
           clustered ? "the configuration is gone: this instance ends and is to be replaced"
                     : "the configuration is gone: draining, then idle until there is another",
           gb_lf_str("config", s->paths[0]));
    gb_supervisor_use(s, NULL);
    if (clustered) {
        gb_supervisor_end_by_itself(s);
    } else {
        int64_t drain_ns = s->current->blueprint->bridge.drain_timeout.ns;
        gb_supervisor_stop_current(s, drain_ns > 0 ? drain_ns : gb_supervisor_shutdown_ns(s));
    }
}

static void read_failed(struct gb_supervisor *s, const struct gb_err *err)
{
    uint64_t suppressed = 0;
    s->read_errors++;
    s->read_error = *err;
    if (!gb_log_allow(&s->error_limit, gb_supervisor_now(s), error_interval_ns, &suppressed))
        return;
    bool loud = s->read_errors >= READ_ERRORS_LOUD;
    GB_LOG(loud ? GB_LOG_ERROR : GB_LOG_WARN,
           "the configuration can't be read: updates are not applied, what runs goes on",
           gb_lf_int("failures", s->read_errors), gb_lf_err(err));
}

static void observed(void *arg, enum gb_observation what, const struct gb_source_texts *texts,
                     const struct gb_err *err)
{
    struct gb_supervisor *s = arg;
    if (s->ending) return;
    if (what == GB_SOURCE_READ_ERROR) {
        read_failed(s, err);
        return;
    }
    if (s->read_errors > 0) GB_LOG(GB_LOG_INFO, "the configuration can be read again");
    s->read_errors = 0;
    s->error_limit = (struct gb_log_limit){0};
    if (what == GB_SOURCE_SAME) return;
    if (s->state != SUPERVISOR_IDLE && s->state != SUPERVISOR_RUNNING) {
        if (what == GB_SOURCE_MISSING) gb_supervisor_use(s, NULL); /* so that it is told again */
        s->again = true;
    } else if (what == GB_SOURCE_MISSING) {
        document_is_gone(s);
    } else {
        consider(s, texts);
    }
}

void gb_supervisor_try_again(struct gb_supervisor *s)
{
    gb_supervisor_use(s, NULL);
    if (s->source != NULL && !s->ending) gb_source_check(s->source);
}

void gb_supervisor_recheck(struct gb_supervisor *s)
{
    if (gb_failed(s->apply_error)) {
        gb_supervisor_try_again(s); /* who asks expects a verdict */
    } else if (s->source != NULL && !s->ending) {
        gb_source_check(s->source);
    }
}

struct gb_err gb_supervisor_watch(struct gb_supervisor *s)
{
    const struct gb_options *o = s->cfg.options;
    struct stat st;
    s->paths[0] = o->config;
    for (size_t i = 0; i < o->overlay_count; i++) s->paths[i + 1] = o->overlays[i];
    if (stat(o->config, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return gb_ok(); /* a pipe can't be read twice */
    const struct gb_source_cfg cfg = {
        .loop = s->cfg.loop,
        .paths = s->paths,
        .path_count = o->overlay_count + 1,
        .poll_interval_ns =
            s->cfg.bootstrap == NULL ? resync_ns : s->cfg.bootstrap->poll_interval_ns,
        .debounce_ns = debounce_ns,
        .notify = s->cfg.bootstrap == NULL, /* events do not cross network file systems */
        .observed = observed,
        .arg = s,
    };
    return gb_source_new(&cfg, &s->source);
}

void gb_supervisor_pace(struct gb_supervisor *s)
{
    const struct gb_bp_config_watch *w = &s->current->blueprint->config_watch;
    if (s->source == NULL || s->cfg.bootstrap != NULL) return; /* the deployment's pace stays */
    gb_source_pace(s->source, w->poll_interval.ns > 0 ? w->poll_interval.ns : resync_ns,
                   w->debounce.ns > 0 ? w->debounce.ns : debounce_ns,
                   w->mode.value == GB_BP_WATCH_NOTIFY);
}

void gb_supervisor_use(struct gb_supervisor *s, const char *digest)
{
    if (s->source != NULL) gb_source_loaded(s->source, digest);
}
