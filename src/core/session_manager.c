#include "core/session_manager.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "core/session_manager_parts.h"

#define GB_BIT(state) (1u << (state))
#define GB_LEAVING (GB_BIT(GB_MANAGER_STEPPING_DOWN))
static const uint8_t exits[GB_MANAGER_STATES] = {
    [GB_MANAGER_STANDBY] = GB_BIT(GB_MANAGER_ACTIVATING) | GB_LEAVING | GB_BIT(GB_MANAGER_CLOSED),
    [GB_MANAGER_ACTIVATING] = GB_BIT(GB_MANAGER_ACTIVE) | GB_LEAVING,
    [GB_MANAGER_ACTIVE] = GB_LEAVING,
    [GB_MANAGER_STEPPING_DOWN] = GB_BIT(GB_MANAGER_STANDBY) | GB_BIT(GB_MANAGER_FAILED) |
                                 GB_BIT(GB_MANAGER_TERMINAL) | GB_BIT(GB_MANAGER_CLOSED),
    [GB_MANAGER_FAILED] = GB_BIT(GB_MANAGER_STANDBY) | GB_LEAVING,
    [GB_MANAGER_TERMINAL] = GB_BIT(GB_MANAGER_CLOSED),
};

static const unsigned loud_outages = 5;
static const uint64_t outage_log_ns = 15 * 1000000000ull;

void gb_manager_set_state(struct gb_session_manager *m, enum gb_session_role_state next)
{
    GB_ASSERT((exits[m->state] & GB_BIT(next)) != 0);
    m->state = next;
}

const char *gb_session_manager_state_name(enum gb_session_role_state state)
{
    static const char *const names[GB_MANAGER_STATES] = {
        [GB_MANAGER_STANDBY] = "standby", [GB_MANAGER_ACTIVATING] = "activating",
        [GB_MANAGER_ACTIVE] = "active",   [GB_MANAGER_STEPPING_DOWN] = "stepping_down",
        [GB_MANAGER_FAILED] = "failed",   [GB_MANAGER_TERMINAL] = "terminal",
        [GB_MANAGER_CLOSED] = "closed",
    };
    return names[state];
}

uint64_t gb_manager_now(const struct gb_session_manager *m)
{
    return gb_reactor_now_ns(m->cfg.reactor);
}

int64_t gb_manager_bound_ns(const struct gb_session_manager *m)
{
    int64_t grace_ns = m->cfg.cadence.grace_ns;
    return grace_ns <= 0 || grace_ns > 5 * GB_SEC ? 5 * GB_SEC : grace_ns;
}

/* Spec 06 §7.9. */
void gb_manager_audit(const struct gb_session_manager *m, const char *action,
                      const struct gb_err *err)
{
    bool failed = err != NULL && err->code != GB_OK;
    GB_LOG(failed ? GB_LOG_WARN : GB_LOG_INFO, action, gb_lf_str("actor", m->owner),
           gb_lf_str("resource", "lease"), gb_lf_str("resource_id", m->session_id),
           gb_lf_str("outcome", failed ? "failure" : "success"), gb_lf_str("owner_id", m->owner),
           gb_lf_int("version", (int64_t)m->token.version),
           gb_lf_str("error", failed ? err->message : ""));
}

/* --- delays (spec 06 §4.3) --- */

static int64_t uniform_ns(int64_t from_ns, int64_t below_ns, struct gb_reactor *reactor)
{
    if (below_ns <= from_ns) return from_ns;
    return from_ns + (int64_t)gb_reactor_random_below(reactor, (uint64_t)(below_ns - from_ns));
}

int64_t gb_lease_poll_delay_ns(int64_t base_ns, struct gb_reactor *reactor)
{
    int64_t half_ns = base_ns / 2;
    int64_t from_ns = base_ns - half_ns / 2;
    return gb_max_i64(uniform_ns(from_ns, from_ns + half_ns, reactor), GB_MS);
}

int64_t gb_lease_renew_delay_ns(int64_t interval_ns, int64_t jitter_ns, struct gb_reactor *reactor)
{
    int64_t from_ns = interval_ns - jitter_ns / 2;
    return gb_max_i64(uniform_ns(from_ns, from_ns + jitter_ns, reactor), GB_MS);
}

/* --- standing by (spec 06 §7.1) --- */

void gb_manager_stand_by(struct gb_session_manager *m, int64_t delay_ns)
{
    m->fails = 0; /* of a term that is over */
    gb_timer_start(&m->poll, gb_manager_now(m) + (uint64_t)delay_ns);
}

static void wait_poll(struct gb_session_manager *m)
{
    gb_manager_stand_by(m, gb_lease_poll_delay_ns(m->cfg.cadence.poll_ns, m->cfg.reactor));
}

static void log_outage(struct gb_session_manager *m, const struct gb_err *err)
{
    uint64_t suppressed = 0;
    if (m->outages++ == 0) m->outage_ns = gb_manager_now(m);
    bool loud = m->outages >= loud_outages ||
                gb_manager_now(m) - m->outage_ns >= (uint64_t)m->cfg.cadence.ttl_ns;
    if (!gb_log_allow(&m->outage_limit, gb_manager_now(m), outage_log_ns, &suppressed)) return;
    GB_LOG(loud ? GB_LOG_ERROR : GB_LOG_WARN, "the lease store does not answer as it should",
           gb_lf_str("session_id", m->session_id), gb_lf_int("failures", m->outages),
           gb_lf_err(err));
}

static void end_outage(struct gb_session_manager *m)
{
    if (m->outages > 0) {
        GB_LOG(GB_LOG_INFO, "the lease store answers again", gb_lf_str("session_id", m->session_id),
               gb_lf_int("failures", m->outages));
    }
    m->outages = 0;
    m->outage_limit = (struct gb_log_limit){0};
}

static void log_takeover(const struct gb_session_manager *m)
{
    const struct gb_lease_holder *before = &m->acquire.seen;
    if (before->owner == NULL || before->owner[0] == '\0') return;
    GB_LOG(GB_LOG_INFO, "the lease was taken over", gb_lf_str("session_id", m->session_id),
           gb_lf_str("previous_owner", before->owner),
           gb_lf_int("previous_version", (int64_t)before->version),
           gb_lf_int("observed_ms", before->observed_ns / GB_MS),
           gb_lf_int("required_ms", before->required_ns / GB_MS));
}

static void acquired(struct gb_session_manager *m)
{
    bool first = m->terms == 0;
    end_outage(m);
    m->token = (struct gb_token){gb_bytes_c(m->owner), m->acquire.version};
    gb_manager_audit(m, first ? "lease.acquired" : "lease.reacquired", NULL);
    log_takeover(m);
    if (m->acquire.version > 1) {
        m->transfers++;
        gb_metric_add(m->m_transfers, 1);
    }
    gb_manager_begin_term(m, m->acquire.version, m->call_boot_ns);
}

static void not_acquired(struct gb_session_manager *m, const struct gb_err *err)
{
    m->acquire_failures++;
    gb_metric_add(m->m_acquire_failures, 1);
    if (err->code == GB_ALREADY_EXISTS) {
        end_outage(m);
        m->last_error = gb_ok();
        gb_lease_holder_deinit(&m->seen);
        m->seen = m->acquire.seen;
        m->acquire.seen = (struct gb_lease_holder){0};
        GB_LOG(GB_LOG_DEBUG, "the lease is held by another instance",
               gb_lf_str("session_id", m->session_id),
               gb_lf_str("owner", m->seen.owner == NULL ? "" : m->seen.owner),
               gb_lf_int("observed_ms", m->seen.observed_ns / GB_MS));
    } else {
        m->last_error = *err;
        log_outage(m, err);
    }
    wait_poll(m);
}

static void acquire_done(struct gb_op *op, void *arg)
{
    struct gb_session_manager *m = arg;
    struct gb_err err = op->result;
    m->acquiring = false;
    gb_metric_time(m->m_acquire_latency, (int64_t)(gb_manager_now(m) - m->call_ns));
    if (m->close_op != NULL) { /* a lease that was won in the last moment is given back */
        m->token = (struct gb_token){gb_bytes_c(m->owner), m->acquire.version};
        m->release_wanted = !gb_failed(err);
        gb_manager_begin_end(m, GB_MANAGER_END_CLOSE, gb_ok());
    } else if (gb_failed(err)) {
        not_acquired(m, &err);
    } else if (gb_reactor_boot_ns(m->cfg.reactor) - m->call_boot_ns >=
               (uint64_t)m->cfg.cadence.ttl_ns) {
        GB_LOG(GB_LOG_WARN, "the lease was won, but the answer came after its end",
               gb_lf_str("session_id", m->session_id));
        wait_poll(m); /* the own token takes it at once */
    } else {
        m->last_error = gb_ok();
        acquired(m);
    }
}

void gb_manager_poll_due(struct gb_timer *t)
{
    struct gb_session_manager *m = GB_CONTAINER_OF(t, struct gb_session_manager, poll);
    if (m->state == GB_MANAGER_FAILED) gb_manager_set_state(m, GB_MANAGER_STANDBY);
    gb_lease_holder_deinit(&m->acquire.seen);
    m->acquire = (struct gb_lease_acquire){
        .lease_id = gb_bytes_c(m->session_id),
        .owner = gb_bytes_c(m->owner),
        .ttl_ns = m->cfg.cadence.ttl_ns,
        .endpoints = m->endpoints.endpoints,
        .endpoint_count = m->endpoints.endpoint_count,
    };
    m->acquiring = true;
    m->call_ns = gb_manager_now(m);
    m->call_boot_ns = gb_reactor_boot_ns(m->cfg.reactor);
    m->acquire.op.deadline_ns = m->call_ns + (uint64_t)m->cfg.cadence.call_ns;
    m->cfg.lease->ops->acquire(m->cfg.lease, &m->acquire, acquire_done, m);
}

/* --- authority --- */

/* The deadline counts even when no timer has fired yet, as after a suspend. */
static bool current(void *ctx, struct gb_token *out)
{
    const struct gb_session_manager *m = ctx;
    if (!m->holds || gb_reactor_boot_ns(m->cfg.reactor) >= m->deadline_boot_ns) return false;
    *out = m->token;
    return true;
}

struct gb_authority gb_session_manager_authority(struct gb_session_manager *m)
{
    return (struct gb_authority){.current = current, .ctx = m};
}

/* --- life --- */

static void init_metrics(struct gb_session_manager *m)
{
    const struct gb_dimension id[] = {{"lease_id", m->session_id}};
    const struct gb_dimension session[] = {{"session_id", m->session_id}};
    struct gb_metrics *r = m->cfg.metrics;
    m->m_acquire_latency = gb_metrics_get(r, GB_METRIC_TIMER, "LeaseAcquireLatency", id, 1);
    m->m_renew_latency = gb_metrics_get(r, GB_METRIC_TIMER, "LeaseRenewLatency", id, 1);
    m->m_acquire_failures = gb_metrics_get(r, GB_METRIC_COUNTER, "LeaseAcquireFailures", id, 1);
    m->m_expiries = gb_metrics_get(r, GB_METRIC_COUNTER, "LeaseExpiries", id, 1);
    m->m_transfers = gb_metrics_get(r, GB_METRIC_COUNTER, "LeaseTransfers", id, 1);
    m->m_broker = gb_metrics_get(r, GB_METRIC_COUNTER, "BrokerHealthStepDown", session, 1);
    m->m_reconcile_failures = gb_metrics_get(r, GB_METRIC_COUNTER, "ReconcileFailures", session, 1);
}

static struct gb_err check_cfg(const struct gb_session_manager_cfg *c)
{
    const struct gb_lease_cadence *k = &c->cadence;
    if (c->session_id[0] == '\0' || c->owner[0] == '\0')
        return gb_err(GB_INVALID_CONFIG, "a lease needs a session id and an owner");
    if (k->ttl_ns <= 0 || k->renew_ns <= 0 || k->call_ns <= 0 || k->poll_ns <= 0 || k->fails <= 0) {
        return gb_err(GB_INVALID_CONFIG, "session %s: the lease cadence is not resolved",
                      c->session_id);
    }
    return gb_ok();
}

struct gb_err gb_session_manager_new(const struct gb_session_manager_cfg *cfg,
                                     struct gb_session_manager **out)
{
    struct gb_err err = check_cfg(cfg);
    if (gb_failed(err)) return err;
    struct gb_session_manager *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("session manager");
    const struct gb_lease_row nobody = {.version = 1};
    m->cfg = *cfg;
    m->session_id = gb_strdup(cfg->session_id);
    m->owner = gb_strdup(cfg->owner);
    if (m->session_id == NULL || m->owner == NULL) err = gb_err_no_memory("session manager");
    if (!gb_failed(err))
        err = gb_lease_holder_set(&m->endpoints, &nobody, cfg->endpoints, cfg->endpoint_count);
    if (!gb_failed(err)) err = gb_timer_init(&m->poll, cfg->reactor, gb_manager_poll_due);
    if (!gb_failed(err)) err = gb_timer_init(&m->renewal, cfg->reactor, gb_manager_renewal_due);
    if (!gb_failed(err)) err = gb_timer_init(&m->watch, cfg->reactor, gb_manager_watch_due);
    if (!gb_failed(err)) err = gb_timer_init(&m->step, cfg->reactor, gb_manager_step_due);
    if (gb_failed(err)) {
        gb_session_manager_free(m);
        return err;
    }
    init_metrics(m);
    *out = m;
    return gb_ok();
}

void gb_session_manager_start(struct gb_session_manager *m)
{
    GB_LOG(GB_LOG_INFO, "session waits for its lease", gb_lf_str("session_id", m->session_id),
           gb_lf_str("owner", m->owner), gb_lf_int("lease_ttl_ms", m->cfg.cadence.ttl_ns / GB_MS));
    if (!m->cfg.connect_after_lease) {
        m->session_running = true;
        m->cfg.session->ops->start(m->cfg.session);
    }
    gb_manager_stand_by(m, 0);
}

void gb_manager_finish_close(struct gb_session_manager *m, struct gb_err result)
{
    struct gb_op *op = m->close_op;
    m->close_op = NULL;
    gb_timer_stop(&m->poll);
    gb_timer_stop(&m->renewal);
    gb_timer_stop(&m->watch);
    gb_timer_stop(&m->step);
    gb_manager_set_state(m, GB_MANAGER_CLOSED);
    gb_op_finish(op, result);
}

/* A session that hangs holds its memory: the process is about to end. */
static void close_terminal(struct gb_session_manager *m)
{
    if (!m->stop_hangs) {
        gb_manager_finish_close(m, gb_ok());
    } else {
        gb_timer_start(&m->step, m->close_op->deadline_ns);
    }
}

void gb_session_manager_close(struct gb_session_manager *m, struct gb_op *op, gb_done_fn *done,
                              void *arg)
{
    GB_ASSERT(m->close_op == NULL && m->state != GB_MANAGER_CLOSED);
    gb_op_start(op, m->cfg.reactor, done, arg, NULL, m);
    m->close_op = op;
    gb_timer_stop(&m->poll);
    if (m->state == GB_MANAGER_TERMINAL) {
        close_terminal(m);
    } else if (m->acquiring) {
        gb_op_cancel(&m->acquire.op); /* acquire_done goes on from there */
    } else if (m->ending == GB_MANAGER_NOT_ENDING) {
        m->release_wanted = m->holds;
        gb_manager_begin_end(m, GB_MANAGER_END_CLOSE, gb_ok());
    } /* else the end under way ends in it */
}

void gb_session_manager_free(struct gb_session_manager *m)
{
    if (m == NULL) return;
    GB_ASSERT(!m->acquiring && !m->renewing && !m->releasing);
    gb_timer_deinit(&m->poll);
    gb_timer_deinit(&m->renewal);
    gb_timer_deinit(&m->watch);
    gb_timer_deinit(&m->step);
    if (m->stopping_session) return; /* the session hangs, and may still look here */
    gb_lease_holder_deinit(&m->endpoints);
    gb_lease_holder_deinit(&m->seen);
    gb_lease_holder_deinit(&m->acquire.seen);
    gb_lease_holder_deinit(&m->check.holder);
    free(m->session_id);
    free(m->owner);
    free(m);
}

/* --- health --- */

void gb_session_manager_health(const struct gb_session_manager *m,
                               struct gb_session_manager_health *out)
{
    uint64_t boot_ns = gb_reactor_boot_ns(m->cfg.reactor);
    bool holds = m->holds && boot_ns < m->deadline_boot_ns;
    const char *seen = m->seen.owner == NULL ? "" : m->seen.owner;
    *out = (struct gb_session_manager_health){
        .state = m->state,
        .holds = holds,
        .owner = holds ? m->owner : seen,
        .version = holds ? m->token.version : m->seen.version,
        .remaining_ns = holds ? (int64_t)(m->deadline_boot_ns - boot_ns) : 0,
        .observed_ns = holds ? 0 : m->seen.observed_ns,
        .required_ns = holds ? 0 : m->seen.required_ns,
        .fails = m->fails,
        .terms = m->terms,
        .expiries = m->expiries,
        .transfers = m->transfers,
        .acquire_failures = m->acquire_failures,
        .step_downs = m->step_downs,
        .cadence = m->cfg.cadence,
        .last_error = m->last_error,
    };
    m->cfg.session->ops->health(m->cfg.session, &out->session);
}
