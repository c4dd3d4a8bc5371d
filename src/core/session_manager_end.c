#include "base/duration.h"
#include "core/session_manager_parts.h"

/* The end of a term: authority off, source closed, grace for what is in flight, released, in this
 * order and never another (spec 06 §7.4 to §7.8). */

static const uint64_t grace_look_ns = 50 * 1000000ull;
static const uint64_t close_slack_ns = 500 * 1000000ull; /* behind the session's own bound */
static const int64_t backoff_min_ns = GB_SEC, backoff_max_ns = 30 * GB_SEC;

static void release_lease(struct gb_session_manager *m);
static void close_source(struct gb_session_manager *m);

/* --- the last step --- */

/* A term that failed waits longer each time, so that another instance gets its chance. */
static int64_t backoff_ns(struct gb_session_manager *m)
{
    int64_t delay_ns = backoff_min_ns;
    for (unsigned i = 1; i < m->session_failures && delay_ns < backoff_max_ns; i++) delay_ns *= 2;
    if (delay_ns > backoff_max_ns) delay_ns = backoff_max_ns;
    delay_ns = gb_max_i64(delay_ns, m->cfg.cadence.poll_ns);
    return gb_lease_poll_delay_ns(delay_ns, m->cfg.reactor);
}

void gb_manager_terminal(struct gb_session_manager *m, struct gb_err cause)
{
    m->ending = GB_MANAGER_NOT_ENDING;
    gb_manager_set_state(m, GB_MANAGER_TERMINAL);
    m->cfg.terminal(m->cfg.arg, m->session_id, cause);
}

static void ended(struct gb_session_manager *m)
{
    if (m->end == GB_MANAGER_END_LOST) gb_manager_audit(m, "lease.lost", &m->cause);
    if (m->close_op != NULL) {
        m->ending = GB_MANAGER_NOT_ENDING;
        gb_manager_finish_close(m, gb_ok());
    } else if (m->end == GB_MANAGER_END_BROKER || m->end == GB_MANAGER_END_OVERRUN) {
        gb_manager_terminal(m, m->cause);
    } else if (m->end == GB_MANAGER_END_FAILED) {
        m->ending = GB_MANAGER_NOT_ENDING;
        m->session_failures++;
        gb_manager_set_state(m, GB_MANAGER_FAILED);
        gb_manager_stand_by(m, backoff_ns(m));
    } else {
        m->ending = GB_MANAGER_NOT_ENDING;
        gb_manager_set_state(m, GB_MANAGER_STANDBY);
        gb_manager_stand_by(m, gb_lease_poll_delay_ns(m->cfg.cadence.poll_ns, m->cfg.reactor));
    }
}

static void released(struct gb_op *op, void *arg)
{
    struct gb_session_manager *m = arg;
    m->releasing = false;
    gb_manager_audit(m, "lease.release", &op->result); /* refused: the row runs out by itself */
    if (!gb_failed(op->result) && m->end == GB_MANAGER_END_BROKER) gb_metric_add(m->m_broker, 1);
    ended(m);
}

static void release_lease(struct gb_session_manager *m)
{
    m->ending = GB_MANAGER_RELEASING;
    if (m->renewing) return; /* gb_manager_call_returned goes on */
    if (!m->release_wanted) {
        ended(m);
        return;
    }
    uint64_t deadline_ns = gb_manager_now(m) + (uint64_t)gb_manager_bound_ns(m);
    if (m->close_op != NULL && m->close_op->deadline_ns > 0 &&
        m->close_op->deadline_ns < deadline_ns)
        deadline_ns = m->close_op->deadline_ns;
    m->releasing = true;
    m->release =
        (struct gb_lease_release){.lease_id = gb_bytes_c(m->session_id), .token = m->token};
    m->release.op.deadline_ns = deadline_ns;
    m->cfg.lease->ops->release(m->cfg.lease, &m->release, released, m);
}

void gb_manager_call_returned(struct gb_session_manager *m)
{
    if (m->ending == GB_MANAGER_RELEASING && !m->releasing) release_lease(m);
}

/* --- grace --- */

static void look_at_grace(struct gb_session_manager *m)
{
    bool drained = m->cfg.drained == NULL || m->cfg.drained(m->cfg.arg);
    if (drained || gb_manager_now(m) >= m->grace_end_ns) {
        release_lease(m);
    } else {
        gb_timer_start(&m->step, gb_manager_now(m) + grace_look_ns);
    }
}

/* At a shutdown the drainers have ended before. */
static void begin_grace(struct gb_session_manager *m)
{
    m->ending = GB_MANAGER_GRACE;
    m->grace_end_ns = gb_manager_now(m) + (uint64_t)m->cfg.cadence.grace_ns;
    if (m->end == GB_MANAGER_END_CLOSE) {
        release_lease(m);
    } else {
        look_at_grace(m);
    }
}

/* --- closing the source --- */

static void source_hangs(struct gb_session_manager *m)
{
    struct gb_err cause =
        gb_err(GB_TIMEOUT, "the session did not close in time; its lease is kept until it expires");
    m->stop_hangs = true;
    gb_manager_audit(m, "lease.lost", &cause);
    if (m->close_op != NULL) {
        m->ending = GB_MANAGER_NOT_ENDING;
        gb_manager_finish_close(m, cause);
    } else {
        gb_manager_terminal(m, cause);
    }
}

/* A close that returns with an error has returned, too. */
static void source_closed(struct gb_op *op, void *arg)
{
    struct gb_session_manager *m = arg;
    (void)op;
    m->stopping_session = false;
    m->session_running = false;
    if (m->stop_hangs) {
        m->stop_hangs = false; /* too late to release; a close may end now */
        if (m->state == GB_MANAGER_TERMINAL && m->close_op != NULL)
            gb_manager_finish_close(m, gb_ok());
        return;
    }
    gb_timer_stop(&m->step);
    begin_grace(m);
}

static void close_source(struct gb_session_manager *m)
{
    m->ending = GB_MANAGER_CLOSING_SOURCE;
    if (!m->session_running) {
        begin_grace(m);
        return;
    }
    uint64_t deadline_ns = gb_manager_now(m) + (uint64_t)gb_manager_bound_ns(m);
    if (m->end == GB_MANAGER_END_CLOSE && m->close_op != NULL && m->close_op->deadline_ns > 0)
        deadline_ns = m->close_op->deadline_ns;
    m->stopping_session = true;
    m->stop = (struct gb_op){.deadline_ns = deadline_ns};
    m->cfg.session->ops->stop(m->cfg.session, &m->stop, source_closed, m);
    gb_timer_start(&m->step, deadline_ns + close_slack_ns);
}

void gb_manager_step_due(struct gb_timer *t)
{
    struct gb_session_manager *m = GB_CONTAINER_OF(t, struct gb_session_manager, step);
    if (m->state == GB_MANAGER_TERMINAL) { /* a close waited for a session that hangs */
        gb_manager_finish_close(
            m, gb_err(GB_TIMEOUT, "session %s did not close; its lease was kept", m->session_id));
    } else if (m->ending == GB_MANAGER_GRACE) {
        look_at_grace(m);
    } else {
        source_hangs(m);
    }
}

void gb_manager_begin_end(struct gb_session_manager *m, enum gb_manager_end end,
                          struct gb_err cause)
{
    bool held = m->holds;
    m->end = end;
    m->cause = cause;
    if (end != GB_MANAGER_END_CLOSE) m->release_wanted = true;
    m->holds = false;
    gb_timer_stop(&m->renewal);
    gb_timer_stop(&m->watch);
    gb_manager_set_state(m, GB_MANAGER_STEPPING_DOWN);
    if (m->renewing) {
        gb_op_cancel(&m->renew.op);
        gb_op_cancel(&m->check.op);
    }
    if (held) {
        m->step_downs += end != GB_MANAGER_END_CLOSE;
        gb_manager_audit(m, "lease.stepdown", &cause);
        if (m->cfg.authority_changed != NULL) m->cfg.authority_changed(m->cfg.arg, false);
    }
    close_source(m);
}
