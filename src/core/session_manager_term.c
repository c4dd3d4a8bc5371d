#include "base/duration.h"
#include "core/session_manager_parts.h"

/* A term from its win on: activating, renewing, watching the broker path (spec 06 §7.2, §7.3). */

static const uint64_t watch_ns = 100 * 1000000ull;

static bool deadline_reached(const struct gb_session_manager *m)
{
    return gb_reactor_boot_ns(m->cfg.reactor) >= m->deadline_boot_ns;
}

static void count_expiry(struct gb_session_manager *m)
{
    m->expiries++;
    gb_metric_add(m->m_expiries, 1);
}

static void lose(struct gb_session_manager *m, struct gb_err cause)
{
    count_expiry(m);
    gb_manager_begin_end(m, GB_MANAGER_END_LOST, cause);
}

static void lose_by_deadline(struct gb_session_manager *m)
{
    lose(m, gb_err(GB_TIMEOUT, "the lease could not be renewed before its local deadline"));
}

/* --- renewing --- */

/* Never beyond the local deadline. */
static void arm_renewal(struct gb_session_manager *m)
{
    int64_t delay_ns =
        gb_lease_renew_delay_ns(m->cfg.cadence.renew_ns, m->cfg.cadence.jitter_ns, m->cfg.reactor);
    uint64_t boot_ns = gb_reactor_boot_ns(m->cfg.reactor);
    uint64_t left_ns = m->deadline_boot_ns > boot_ns ? m->deadline_boot_ns - boot_ns : 0;
    if ((uint64_t)delay_ns > left_ns) delay_ns = (int64_t)left_ns;
    gb_timer_start(&m->renewal, gb_manager_now(m) + (uint64_t)delay_ns);
}

static void checked(struct gb_op *op, void *arg)
{
    struct gb_session_manager *m = arg;
    const struct gb_lease_holder *h = &m->check.holder;
    m->renewing = false;
    if (m->ending != GB_MANAGER_NOT_ENDING) {
        gb_manager_call_returned(m);
        return;
    }
    bool mine = !gb_failed(op->result) && h->version == m->token.version &&
                gb_bytes_equal_c(m->token.owner, h->owner) &&
                gb_reactor_wall_ms(m->cfg.reactor) < h->expires_ms;
    if (deadline_reached(m)) {
        lose_by_deadline(m);
    } else if (mine) {
        m->fails = m->cfg.cadence.fails - 1; /* each further failure reads again */
        arm_renewal(m);
    } else {
        lose(m, gb_failed(op->result)
                    ? op->result
                    : gb_err(GB_STALE_FENCING_TOKEN, "the lease is another's, or has expired"));
    }
}

static void check_row(struct gb_session_manager *m)
{
    gb_lease_holder_deinit(&m->check.holder);
    m->check = (struct gb_lease_current){.lease_id = gb_bytes_c(m->session_id)};
    m->check.op.deadline_ns = gb_manager_now(m) + (uint64_t)m->cfg.cadence.call_ns;
    m->renewing = true;
    m->cfg.lease->ops->current(m->cfg.lease, &m->check, checked, m);
}

static void renewed(struct gb_session_manager *m)
{
    m->deadline_boot_ns = m->call_boot_ns + (uint64_t)m->cfg.cadence.ttl_ns;
    m->fails = 0;
    m->last_error = gb_ok();
    arm_renewal(m);
}

static void renewal_failed(struct gb_session_manager *m, const struct gb_err *err)
{
    m->last_error = *err;
    m->fails++;
    GB_LOG(GB_LOG_WARN, "the lease was not renewed", gb_lf_str("session_id", m->session_id),
           gb_lf_int("failures", m->fails), gb_lf_err(err));
    if (m->fails >= m->cfg.cadence.fails) {
        check_row(m);
    } else {
        arm_renewal(m);
    }
}

static bool is_lost(enum gb_code code)
{
    return code == GB_STALE_FENCING_TOKEN || code == GB_NOT_FOUND || code == GB_VERSION_MISMATCH ||
           code == GB_ALREADY_EXISTS;
}

static void renew_done(struct gb_op *op, void *arg)
{
    struct gb_session_manager *m = arg;
    m->renewing = false;
    gb_metric_time(m->m_renew_latency, (int64_t)(gb_manager_now(m) - m->call_ns));
    if (m->ending != GB_MANAGER_NOT_ENDING) {
        gb_manager_call_returned(m);
    } else if (deadline_reached(m)) {
        lose_by_deadline(m); /* even if it was renewed: nobody was to rely on it any more */
    } else if (!gb_failed(op->result)) {
        renewed(m);
    } else if (is_lost(op->result.code)) {
        m->last_error = op->result;
        lose(m, op->result);
    } else {
        renewal_failed(m, &op->result);
    }
}

void gb_manager_renewal_due(struct gb_timer *t)
{
    struct gb_session_manager *m = GB_CONTAINER_OF(t, struct gb_session_manager, renewal);
    if (deadline_reached(m)) {
        lose_by_deadline(m);
        return;
    }
    m->renew = (struct gb_lease_renew){
        .lease_id = gb_bytes_c(m->session_id),
        .token = m->token,
        .ttl_ns = m->cfg.cadence.ttl_ns,
        .endpoints = m->endpoints.endpoints,
        .endpoint_count = m->endpoints.endpoint_count,
    };
    m->renewing = true;
    m->call_ns = gb_manager_now(m);
    m->call_boot_ns = gb_reactor_boot_ns(m->cfg.reactor);
    m->renew.op.deadline_ns = m->call_ns + (uint64_t)m->cfg.cadence.call_ns;
    m->cfg.lease->ops->renew(m->cfg.lease, &m->renew, renew_done, m);
}

/* --- the session --- */

static void serving(struct gb_session_manager *m)
{
    gb_manager_set_state(m, GB_MANAGER_ACTIVE);
    m->session_failures = 0;
    m->unhealthy_ns = 0;
    GB_LOG(GB_LOG_INFO, "session is active", gb_lf_str("session_id", m->session_id),
           gb_lf_int("version", (int64_t)m->token.version));
}

static void watch_activation(struct gb_session_manager *m, const struct gb_session_health *h)
{
    if (h->service_level == GB_LEVEL_FULL && h->ready) {
        serving(m);
    } else if (h->failed_attempts > 0) {
        gb_metric_add(m->m_reconcile_failures, 1);
        gb_manager_begin_end(m, GB_MANAGER_END_FAILED, h->last_error);
    } else if (gb_manager_now(m) >= m->activation_ns) {
        gb_manager_begin_end(m, GB_MANAGER_END_OVERRUN,
                             gb_err(GB_TIMEOUT, "the session did not serve within its activation "
                                                "bound"));
    }
}

/* Spec 06 §7.6: only convergence clears the clock. */
static void watch_broker(struct gb_session_manager *m, const struct gb_session_health *h)
{
    if (h->service_level == GB_LEVEL_FULL) {
        m->unhealthy_ns = 0;
        return;
    }
    uint64_t now_ns = gb_manager_now(m);
    if (m->unhealthy_ns == 0) m->unhealthy_ns = now_ns;
    if (m->cfg.step_down_ns > 0 && now_ns - m->unhealthy_ns >= (uint64_t)m->cfg.step_down_ns) {
        gb_manager_begin_end(m, GB_MANAGER_END_BROKER,
                             gb_err(GB_UNAVAILABLE, "the broker path was broken for longer than "
                                                    "broker_health_step_down"));
    }
}

void gb_manager_watch_due(struct gb_timer *t)
{
    struct gb_session_manager *m = GB_CONTAINER_OF(t, struct gb_session_manager, watch);
    struct gb_session_health h;
    if (deadline_reached(m)) { /* also after a suspend, when the renewal's timer is not due */
        lose_by_deadline(m);
        return;
    }
    m->cfg.session->ops->health(m->cfg.session, &h);
    if (m->state == GB_MANAGER_ACTIVATING) {
        watch_activation(m, &h);
    } else {
        watch_broker(m, &h);
    }
    if (m->state == GB_MANAGER_ACTIVATING || m->state == GB_MANAGER_ACTIVE)
        gb_timer_start(&m->watch, gb_manager_now(m) + watch_ns);
}

void gb_manager_begin_term(struct gb_session_manager *m, uint64_t version, uint64_t before_boot_ns)
{
    const struct gb_lease_cadence *k = &m->cfg.cadence;
    gb_manager_set_state(m, GB_MANAGER_ACTIVATING);
    m->terms++;
    m->holds = true;
    m->fails = 0;
    gb_lease_holder_deinit(&m->seen); /* it describes the row before this term */
    m->token.version = version;
    m->deadline_boot_ns = before_boot_ns + (uint64_t)k->ttl_ns;
    uint64_t elapsed_ns = gb_reactor_boot_ns(m->cfg.reactor) - before_boot_ns;
    int64_t left_ns = k->ttl_ns - (int64_t)elapsed_ns - gb_manager_bound_ns(m);
    int64_t bound_ns = m->cfg.activation_ns > 0 ? m->cfg.activation_ns : gb_max_i64(left_ns, 0);
    m->activation_ns = gb_manager_now(m) + (uint64_t)bound_ns;
    arm_renewal(m);
    gb_timer_start(&m->watch, gb_manager_now(m) + watch_ns);
    if (!m->session_running) {
        m->session_running = true;
        m->cfg.session->ops->start(m->cfg.session);
    }
    if (m->cfg.authority_changed != NULL) m->cfg.authority_changed(m->cfg.arg, true);
}
