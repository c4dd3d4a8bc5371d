#include "adapters/mqtt/mqtt_session.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_session_parts.h"
#include "base/duration.h"

/* The life of a session: history, attempts, penalties, recycles, stop (spec 03 §4, §5.4, §7 item
 * 3). */

enum { DISCONNECT_NORMAL = 0 };
static const uint64_t stable_ns =
    30 * 1000000000ull; /* a connection that lasts this long clears streaks */
static const uint64_t recovery_gap_ns = 30 * 1000000000ull; /* between recovery recycles */
static const uint64_t stop_poll_ns = 20 * 1000000ull;

#define GB_BIT(state) (1u << (state))
#define GB_STOP (GB_BIT(GB_MQTT_S_STOPPING) | GB_BIT(GB_MQTT_S_TERMINAL))
static const uint16_t exits[GB_MQTT_S_STATES] = {
    [GB_MQTT_S_NEW] = GB_BIT(GB_MQTT_S_HISTORY) | GB_BIT(GB_MQTT_S_CONNECTING) | GB_STOP,
    [GB_MQTT_S_HISTORY] = GB_BIT(GB_MQTT_S_HISTORY_WAIT) | GB_BIT(GB_MQTT_S_CONNECTING) | GB_STOP,
    [GB_MQTT_S_HISTORY_WAIT] = GB_BIT(GB_MQTT_S_HISTORY) | GB_STOP,
    [GB_MQTT_S_BACKOFF] = GB_BIT(GB_MQTT_S_CONNECTING) | GB_STOP,
    [GB_MQTT_S_CONNECTING] = GB_BIT(GB_MQTT_S_ONLINE) | GB_BIT(GB_MQTT_S_BACKOFF) | GB_STOP,
    [GB_MQTT_S_ONLINE] = GB_BIT(GB_MQTT_S_BACKOFF) | GB_BIT(GB_MQTT_S_DRAINING) | GB_STOP,
    [GB_MQTT_S_DRAINING] = GB_BIT(GB_MQTT_S_CYCLING) | GB_BIT(GB_MQTT_S_BACKOFF) | GB_STOP,
    [GB_MQTT_S_CYCLING] = GB_BIT(GB_MQTT_S_CONNECTING) | GB_BIT(GB_MQTT_S_BACKOFF) | GB_STOP,
    [GB_MQTT_S_STOPPING] = GB_BIT(GB_MQTT_S_STOPPED),
    [GB_MQTT_S_STOPPED] = GB_BIT(GB_MQTT_S_HISTORY) | GB_BIT(GB_MQTT_S_CONNECTING),
    [GB_MQTT_S_TERMINAL] = GB_BIT(GB_MQTT_S_STOPPING),
};

static void connect_now(struct gb_mqtt_session *s);
static void read_history(struct gb_mqtt_session *s);

static void set_state(struct gb_mqtt_session *s, enum gb_mqtt_session_state next)
{
    GB_ASSERT((exits[s->state] & GB_BIT(next)) != 0);
    s->state = next;
}

struct gb_mqtt_session *gb_mqtt_session_of(struct gb_session *s)
{
    return GB_CONTAINER_OF(s, struct gb_mqtt_session, base);
}

static uint64_t now_of(const struct gb_mqtt_session *s)
{
    return gb_reactor_now_ns(s->cfg.reactor);
}

static bool is_durable(const struct gb_mqtt_session *s)
{
    return s->cfg.mode != GB_MQTT_EPHEMERAL;
}

static bool is_ending(const struct gb_mqtt_session *s)
{
    return s->state == GB_MQTT_S_STOPPING || s->state == GB_MQTT_S_STOPPED ||
           s->state == GB_MQTT_S_TERMINAL;
}

/* --- terminal ------------------------------------------------------------------------------- */

static void tell_terminal(struct gb_task *t)
{
    struct gb_mqtt_session *s = GB_CONTAINER_OF(t, struct gb_mqtt_session, terminal_task);
    if (s->cfg.terminal != NULL) s->cfg.terminal(s->cfg.arg, s->cfg.id, s->terminal_cause);
}

void gb_mqtt_session_fail(struct gb_mqtt_session *s, struct gb_err cause)
{
    if (is_ending(s)) return;
    s->terminal_cause = cause;
    s->last_error = cause;
    gb_timer_stop(&s->timer);
    set_state(s, GB_MQTT_S_TERMINAL);
    gb_mqtt_inbound_stop(s->inbound);
    GB_LOG(GB_LOG_ERROR, "mqtt session is terminal", gb_lf_str("session_id", s->cfg.id),
           gb_lf_err(&cause));
    gb_mqtt_link_close(&s->link, DISCONNECT_NORMAL, GB_MQTT_DOWN_CLOSED, cause);
    gb_reactor_defer(s->cfg.reactor, &s->terminal_task);
}

/* --- history ---------------------------------------------------------------------------------- */

static void history_listed(struct gb_op *op, void *arg)
{
    struct gb_mqtt_session *s = arg;
    struct gb_err err = op->result;
    s->listing = false;
    if (err.code == GB_OK) err = gb_mqtt_reconcile_history(s->reconcile, &s->list.filters);
    gb_filter_list_free(&s->list.filters);
    if (s->state != GB_MQTT_S_HISTORY) return; /* stopped meanwhile */
    if (err.code == GB_OK) {
        connect_now(s);
        return;
    }
    if (err.code == GB_NOT_FOUND) {
        err = gb_err(GB_NOT_FOUND,
                     "no subscription baseline: run gobridge -seed-managed-subscriptions %s (or "
                     "%s=FILTER,...) first",
                     s->cfg.id, s->cfg.id);
    }
    s->last_error = err;
    s->failed_attempts++;
    GB_LOG(GB_LOG_ERROR, "mqtt session does not connect: its subscription history is unknown",
           gb_lf_str("session_id", s->cfg.id), gb_lf_err(&err));
    set_state(s, GB_MQTT_S_HISTORY_WAIT);
    uint64_t half_ns = (uint64_t)s->history_wait_ns / 2;
    gb_timer_start(&s->timer,
                   now_of(s) + half_ns + gb_reactor_random_below(s->cfg.reactor, half_ns));
    s->history_wait_ns =
        s->history_wait_ns * 2 > 30 * GB_SEC ? 30 * GB_SEC : s->history_wait_ns * 2;
}

static void read_history(struct gb_mqtt_session *s)
{
    set_state(s, GB_MQTT_S_HISTORY);
    memset(&s->list, 0, sizeof s->list);
    s->list.identity = s->identity;
    s->list.op.deadline_ns = now_of(s) + (uint64_t)s->cfg.reconcile_timeout_ns;
    s->listing = true;
    s->cfg.subscriptions->ops->list(s->cfg.subscriptions, &s->list, history_listed, s);
}

/* --- attempts --------------------------------------------------------------------------------- */

static void connect_now(struct gb_mqtt_session *s)
{
    set_state(s, GB_MQTT_S_CONNECTING);
    int64_t timeout_ns = s->cfg.reconnect_timeout_ns;
    if (!s->connected_once && s->cfg.connect_timeout_ns < timeout_ns)
        timeout_ns = s->cfg.connect_timeout_ns;
    const struct gb_mqtt_endpoint *e = &s->endpoints[s->endpoint_next];
    s->endpoint_next = (s->endpoint_next + 1) % s->cfg.url_count;
    /* clean_start wipes the backlog once per process start; a reconnect of this process resumes
     * (spec 03 §2). */
    bool clean = !is_durable(s) || (s->cfg.clean_start && s->epoch == 0);
    gb_mqtt_link_open(&s->link, e, clean, now_of(s) + (uint64_t)timeout_ns);
}

/* Uniform in [d/2, d), d doubling from reconnect_delay (spec 03 §4.1). */
static uint64_t backoff_ns(struct gb_mqtt_session *s, uint32_t doublings, int64_t base_ns,
                           int64_t max_ns)
{
    int64_t d = base_ns;
    for (uint32_t i = 0; i < doublings && d < max_ns; i++) d = gb_mul_sat_i64(d, 2);
    if (d > max_ns) d = max_ns;
    uint64_t half_ns = (uint64_t)d / 2;
    return half_ns + gb_reactor_random_below(s->cfg.reactor, (uint64_t)d - half_ns);
}

static int64_t max_delay_ns(const struct gb_mqtt_session *s)
{
    return s->cfg.reconnect_max_delay_ns < s->cfg.reconnect_delay_ns
               ? s->cfg.reconnect_delay_ns
               : s->cfg.reconnect_max_delay_ns;
}

/* Spec 03 §4.4: extra delays 0, 1, 2, 4 .. 64 s. */
static uint64_t takeover_penalty_ns(struct gb_mqtt_session *s)
{
    s->takeover_streak++;
    if (s->takeover_streak < 2) return 0;
    uint32_t doublings = s->takeover_streak - 2;
    return (UINT64_C(1) << (doublings > 6 ? 6 : doublings)) * UINT64_C(1000000000);
}

static uint64_t told_takeover_ns(struct gb_mqtt_session *s)
{
    uint64_t penalty_ns = takeover_penalty_ns(s);
    gb_metric_add(s->m.takeovers, 1);
    if (s->takeover_streak >= 2 || s->topics_shared) {
        GB_LOG(GB_LOG_ERROR, "another connection uses this client_id; give every instance its own",
               gb_lf_str("session_id", s->cfg.id), gb_lf_str("client_id", s->cfg.client_id),
               gb_lf_int("streak", s->takeover_streak));
    }
    return penalty_ns;
}

/* v3.1.1 does not tell a takeover from a loss, nor do some brokers of v5: two processes with one
 * client_id would throw each other out hundreds of times a second (docs/decisions/0305). */
static uint64_t short_connection_ns(struct gb_mqtt_session *s)
{
    uint64_t penalty_ns = takeover_penalty_ns(s);
    uint64_t most_ns = (uint64_t)max_delay_ns(s);
    if (s->takeover_streak >= 2) {
        GB_LOG(GB_LOG_ERROR,
               "connections end soon after they came up: the network is unsteady, or another "
               "connection uses this client_id; give every instance its own",
               gb_lf_str("session_id", s->cfg.id), gb_lf_str("client_id", s->cfg.client_id),
               gb_lf_int("streak", s->takeover_streak));
    }
    return s->cfg.version == GB_MQTT_V5 && penalty_ns > most_ns ? most_ns : penalty_ns;
}

static uint64_t reject_penalty_ns(struct gb_mqtt_session *s)
{
    uint64_t now_ns = now_of(s);
    bool recent = s->reject_streak > 0 && now_ns - s->rejected_ns < stable_ns;
    s->reject_streak = recent ? s->reject_streak + 1 : 1;
    s->rejected_ns = now_ns;
    s->rejecting = true;
    gb_metric_add(s->m.rejected, 1);
    GB_LOG(GB_LOG_ERROR, "refused what the broker sent; reconnecting",
           gb_lf_str("session_id", s->cfg.id), gb_lf_int("streak", s->reject_streak),
           gb_lf_err(&s->last_error));
    return recent ? backoff_ns(s, s->reject_streak - 1, s->cfg.reconnect_delay_ns, max_delay_ns(s))
                  : 0;
}

static void count_connect_failure(struct gb_mqtt_session *s, const struct gb_err *reason)
{
    gb_metric_add(
        gb_metrics_get(s->cfg.metrics, GB_METRIC_COUNTER, "MQTTConnectFailures",
                       GB_DIMS({"session_id", s->cfg.id}, {"code", gb_code_name(reason->code)})),
        1);
    GB_LOG(GB_LOG_WARN, "mqtt connect failed", gb_lf_str("session_id", s->cfg.id),
           gb_lf_int("attempt", s->failures), gb_lf_err(reason));
}

static uint64_t next_attempt_delay_ns(struct gb_mqtt_session *s, bool was_up,
                                      enum gb_mqtt_down_cause cause, const struct gb_err *reason)
{
    uint64_t delay_ns = 0;
    bool stable = was_up && now_of(s) - s->up_ns >= stable_ns;
    if (stable) s->takeover_streak = 0;
    if (was_up) {
        s->failures = 0;
        gb_metric_add(s->m.reconnects, 1);
        GB_LOG(GB_LOG_WARN, "mqtt connection lost", gb_lf_str("session_id", s->cfg.id),
               gb_lf_int("epoch", (int64_t)s->epoch), gb_lf_err(reason));
    } else {
        s->failures++;
        count_connect_failure(s, reason);
        delay_ns = backoff_ns(s, s->failures - 1, s->cfg.reconnect_delay_ns, max_delay_ns(s));
    }
    if (cause == GB_MQTT_DOWN_TAKEOVER) {
        delay_ns += told_takeover_ns(s);
    } else if (was_up && !stable && cause == GB_MQTT_DOWN_LOST) {
        delay_ns += short_connection_ns(s);
    }
    if (cause == GB_MQTT_DOWN_REJECTED) delay_ns += reject_penalty_ns(s);
    return delay_ns;
}

static void try_finish_stop(struct gb_mqtt_session *s);

static void link_down(void *arg, enum gb_mqtt_down_cause cause, struct gb_err reason)
{
    struct gb_mqtt_session *s = arg;
    bool was_up = s->state == GB_MQTT_S_ONLINE || s->state == GB_MQTT_S_DRAINING ||
                  s->state == GB_MQTT_S_CYCLING;
    bool converged = gb_mqtt_reconcile_converged(s->reconcile);
    gb_mqtt_publisher_down(s->publisher, is_durable(s) && !is_ending(s));
    gb_mqtt_inbound_disconnected(s->inbound);
    gb_mqtt_reconcile_disconnected(s->reconcile);
    if (is_ending(s)) {
        try_finish_stop(s);
        return;
    }
    gb_timer_stop(&s->timer);
    if (s->state == GB_MQTT_S_CYCLING && cause == GB_MQTT_DOWN_CLOSED) {
        connect_now(s);
        return;
    }
    s->last_error = reason;
    if (!converged) s->failed_attempts++;
    uint64_t delay_ns = next_attempt_delay_ns(s, was_up, cause, &reason);
    set_state(s, GB_MQTT_S_BACKOFF);
    gb_timer_start(&s->timer, now_of(s) + delay_ns);
}

/* Spec 03 §4.3: the broker forgot a session that should have been there. */
static void check_resumed(struct gb_mqtt_session *s, bool session_present)
{
    if (!is_durable(s) || session_present) return;
    if (s->epoch == 1 && (s->cfg.clean_start || gb_mqtt_reconcile_history_size(s->reconcile) == 0))
        return;
    gb_metric_add(s->m.resume_lost, 1);
    s->last_error =
        gb_err(GB_UNAVAILABLE, "the broker has lost the session; messages queued there are gone");
    GB_LOG(GB_LOG_WARN, "mqtt session was not resumed: the broker had no session",
           gb_lf_str("session_id", s->cfg.id));
}

static void online_timer(struct gb_mqtt_session *s);

static void link_up(void *arg, const struct gb_mqtt_connack *ack)
{
    struct gb_mqtt_session *s = arg;
    if (s->state != GB_MQTT_S_CONNECTING) return;
    bool v5 = s->cfg.version == GB_MQTT_V5;
    set_state(s, GB_MQTT_S_ONLINE);
    s->connected_once = true;
    s->epoch++;
    s->failures = 0;
    s->up_ns = now_of(s);
    s->last_error = gb_ok();
    s->recovery_wanted = false; /* a new connection brings everything again */
    if (s->epoch == 1) gb_metric_time(s->m.connect_latency, (int64_t)(s->up_ns - s->started_ns));
    GB_LOG(GB_LOG_INFO, "mqtt connected", gb_lf_str("session_id", s->cfg.id),
           gb_lf_int("epoch", (int64_t)s->epoch),
           gb_lf_bool("session_present", ack->session_present));
    gb_str_clear(&s->orphan_topic);
    s->excess = false;
    s->excess_told = false;
    gb_mqtt_acks_reset(&s->acks, ack->session_present && is_durable(s));
    gb_mqtt_inbound_connected(s->inbound);
    check_resumed(s, ack->session_present);
    const struct gb_mqtt_publisher_peer peer = {
        .v5 = v5,
        .receive_maximum = v5 ? ack->receive_maximum : 65535,
        .maximum_packet_size = v5 ? ack->maximum_packet_size : 0,
        .maximum_qos = v5 ? ack->maximum_qos : 2,
        .retain_available = !v5 || ack->retain_available,
    };
    gb_mqtt_publisher_up(s->publisher, &peer, ack->session_present);
    gb_mqtt_reconcile_connected(s->reconcile, ack->session_present);
    online_timer(s);
}

static void link_written(void *arg)
{
    struct gb_mqtt_session *s = arg;
    gb_mqtt_publisher_written(s->publisher);
}

/* --- recycle ---------------------------------------------------------------------------------- */

static void close_for_recycle(struct gb_mqtt_session *s)
{
    set_state(s, GB_MQTT_S_CYCLING);
    gb_timer_stop(&s->timer);
    gb_mqtt_link_close(&s->link, DISCONNECT_NORMAL, GB_MQTT_DOWN_CLOSED,
                       gb_err(GB_CONNECTION_LOST, "the session is recycled"));
}

/* Stops ingress, waits for what the route has accepted, then replaces the connection (spec 03
 * §5.4). */
static void start_recycle(struct gb_mqtt_session *s)
{
    set_state(s, GB_MQTT_S_DRAINING);
    gb_mqtt_inbound_quiesce(s->inbound);
    int64_t bound_ns = gb_mqtt_activation_ns(s->cfg.connect_timeout_ns, s->cfg.reconcile_timeout_ns,
                                             s->cfg.unmatched_grace_ns);
    gb_timer_start(&s->timer, now_of(s) + (uint64_t)bound_ns);
    if (gb_mqtt_inbound_held(s->inbound) == 0) close_for_recycle(s);
}

static void maybe_recover(struct gb_mqtt_session *s)
{
    if (!s->recovery_wanted || s->recovery_running || s->state != GB_MQTT_S_ONLINE) return;
    if (s->recovery_count > 0 && now_of(s) < s->recovery_ended_ns + recovery_gap_ns) {
        online_timer(s);
        return;
    }
    s->recovery_running = true;
    s->recovery_count++;
    gb_metric_add(s->m.recoveries, 1);
    GB_LOG(GB_LOG_WARN, "mqtt session is recycled: a delivery was handed back",
           gb_lf_str("session_id", s->cfg.id), gb_lf_int("recycles", (int64_t)s->recovery_count));
    start_recycle(s);
}

static void inbound_recycle(void *arg)
{
    struct gb_mqtt_session *s = arg;
    if (s->state != GB_MQTT_S_ONLINE) return; /* the next connection brings the message again */
    s->recovery_wanted = true;
    online_timer(s); /* never from inside the route's call */
}

static void reconcile_recycle(void *arg)
{
    struct gb_mqtt_session *s = arg;
    if (s->state == GB_MQTT_S_ONLINE) start_recycle(s);
}

static void inbound_drained(void *arg)
{
    struct gb_mqtt_session *s = arg;
    if (s->state == GB_MQTT_S_DRAINING) close_for_recycle(s);
}

static void reconcile_changed(void *arg)
{
    struct gb_mqtt_session *s = arg;
    if (!gb_mqtt_reconcile_converged(s->reconcile)) {
        if (gb_failed(*gb_mqtt_reconcile_error(s->reconcile))) {
            s->last_error = *gb_mqtt_reconcile_error(s->reconcile);
            s->failed_attempts++;
        }
        return;
    }
    s->last_error = gb_ok();
    gb_mqtt_inbound_rematch(s->inbound);
    if (s->recovery_running) {
        s->recovery_running = false;
        s->recovery_ended_ns = now_of(s);
        /* what was handed back on this connection already waits for the next one */
        online_timer(s);
    }
}

/* --- the timer -------------------------------------------------------------------------------- */

/* Online it waits for the end of the reject penalty and for the next recovery, whichever comes
 * first. */
static void online_timer(struct gb_mqtt_session *s)
{
    if (s->state != GB_MQTT_S_ONLINE) return;
    uint64_t next_ns = UINT64_MAX;
    if (s->rejecting) next_ns = s->up_ns + stable_ns;
    if (s->recovery_wanted && !s->recovery_running) {
        uint64_t due_ns =
            s->recovery_count == 0 ? now_of(s) : s->recovery_ended_ns + recovery_gap_ns;
        if (due_ns < next_ns) next_ns = due_ns;
    }
    if (next_ns == UINT64_MAX) {
        gb_timer_stop(&s->timer);
    } else {
        gb_timer_start(&s->timer, next_ns);
    }
}

static void online_due(struct gb_mqtt_session *s)
{
    if (s->rejecting && now_of(s) >= s->up_ns + stable_ns) {
        s->rejecting = false;
        s->reject_streak = 0;
    }
    online_timer(s);
    maybe_recover(s);
}

static void timer_fired(struct gb_timer *t)
{
    struct gb_mqtt_session *s = GB_CONTAINER_OF(t, struct gb_mqtt_session, timer);
    switch (s->state) {
    case GB_MQTT_S_HISTORY_WAIT:
        read_history(s);
        break;
    case GB_MQTT_S_BACKOFF:
        connect_now(s);
        break;
    case GB_MQTT_S_ONLINE:
        online_due(s);
        break;
    case GB_MQTT_S_DRAINING:
        gb_mqtt_session_fail(
            s, gb_err(GB_TIMEOUT,
                      "session %s: %u deliveries did not settle before the recycle's deadline",
                      s->cfg.id, gb_mqtt_inbound_held(s->inbound)));
        break;
    case GB_MQTT_S_STOPPING:
        try_finish_stop(s);
        break;
    case GB_MQTT_S_NEW:
    case GB_MQTT_S_HISTORY:
    case GB_MQTT_S_CONNECTING:
    case GB_MQTT_S_CYCLING:
    case GB_MQTT_S_STOPPED:
    case GB_MQTT_S_TERMINAL:
    case GB_MQTT_S_STATES:
        break;
    }
}

void gb_mqtt_session_reject(struct gb_mqtt_session *s, uint8_t reason, struct gb_err cause)
{
    gb_mqtt_link_close(&s->link, reason, GB_MQTT_DOWN_REJECTED, cause);
}

/* --- session port ----------------------------------------------------------------------------- */

/* After a stop another owner may have had the broker's session: nothing of what this process knew
 * about packet ids holds any more. */
static void session_start(struct gb_session *base)
{
    struct gb_mqtt_session *s = gb_mqtt_session_of(base);
    s->started_ns = now_of(s);
    s->connected_once = false;
    s->failed_attempts = 0;
    s->failures = 0;
    gb_mqtt_acks_reset(&s->acks, false);
    gb_mqtt_inbound_start(s->inbound);
    if (is_durable(s) && s->cfg.subscriptions != NULL) {
        read_history(s);
    } else {
        connect_now(s);
    }
}

static void session_quiesce(struct gb_session *base)
{
    gb_mqtt_inbound_stop(gb_mqtt_session_of(base)->inbound);
}

/* Nothing may call back into the session after this: connection gone, stores answered. */
static void try_finish_stop(struct gb_mqtt_session *s)
{
    if (s->state != GB_MQTT_S_STOPPING) return;
    bool busy = s->listing || s->replaying || gb_mqtt_reconcile_busy(s->reconcile) ||
                s->link.state != GB_MQTT_LINK_IDLE;
    if (busy) {
        gb_timer_start(&s->timer, now_of(s) + stop_poll_ns);
        return;
    }
    gb_mqtt_publisher_down(s->publisher, false);
    gb_timer_stop(&s->timer);
    set_state(s, GB_MQTT_S_STOPPED);
    struct gb_op *op = s->stop_op;
    s->stop_op = NULL;
    gb_op_finish(op, gb_ok());
}

static void session_stop(struct gb_session *base, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct gb_mqtt_session *s = gb_mqtt_session_of(base);
    GB_ASSERT(s->stop_op == NULL && s->state != GB_MQTT_S_STOPPED);
    gb_op_start(op, s->cfg.reactor, done, arg, NULL, s);
    s->stop_op = op;
    gb_timer_stop(&s->timer);
    set_state(s, GB_MQTT_S_STOPPING);
    gb_mqtt_inbound_stop(s->inbound);
    if (s->listing) gb_op_cancel(&s->list.op);
    if (s->replaying) gb_op_cancel(&s->replay_write.op);
    gb_mqtt_link_close(&s->link, DISCONNECT_NORMAL, GB_MQTT_DOWN_CLOSED,
                       gb_err(GB_CONNECTION_LOST, "the session is stopped"));
    gb_timer_start(&s->timer, now_of(s)); /* looks whether all is quiet */
}

static void session_health(const struct gb_session *base, struct gb_session_health *out)
{
    const struct gb_mqtt_session *s = GB_CONTAINER_OF(base, struct gb_mqtt_session, base);
    memset(out, 0, sizeof *out);
    out->connected = gb_mqtt_link_is_up(&s->link);
    out->terminal = s->state == GB_MQTT_S_TERMINAL;
    bool full = out->connected && gb_mqtt_reconcile_converged(s->reconcile) &&
                !s->recovery_wanted && !s->rejecting && !gb_mqtt_inbound_buffering(s->inbound);
    out->ready = full;
    out->service_level = !out->connected || s->rejecting ? GB_LEVEL_NONE
                         : full                          ? GB_LEVEL_FULL
                                                         : GB_LEVEL_DEGRADED;
    out->subscriptions_wanted = (uint32_t)s->cfg.topic_count;
    out->subscriptions_active = out->connected ? gb_mqtt_reconcile_active(s->reconcile) : 0;
    out->unsettled_count = gb_mqtt_acks_unsettled(&s->acks);
    out->oldest_unsettled_age_ms = gb_mqtt_inbound_oldest_age_ms(s->inbound);
    out->receive_window_utilization = (double)out->unsettled_count / (double)s->cfg.receive_maximum;
    out->recovery_recycle_count = s->recovery_count;
    out->failed_attempts = s->failed_attempts;
    out->last_error = s->last_error;
}

void gb_mqtt_session_fence(struct gb_session *base, struct gb_authority authority)
{
    gb_mqtt_session_of(base)->cfg.authority = authority;
}

static void free_senders(struct gb_mqtt_session *s)
{
    struct gb_list_node *n = gb_list_first(&s->senders);
    while (n != NULL) {
        struct gb_list_node *next = gb_list_next(&s->senders, n);
        free(GB_CONTAINER_OF(n, struct gb_mqtt_sender, node));
        n = next;
    }
    gb_list_init(&s->senders);
}

static void session_free(struct gb_session *base)
{
    struct gb_mqtt_session *s = gb_mqtt_session_of(base);
    GB_ASSERT(s->state == GB_MQTT_S_NEW || s->state == GB_MQTT_S_STOPPED);
    gb_task_cancel(&s->terminal_task);
    gb_timer_deinit(&s->timer);
    gb_timer_deinit(&s->replay_quiet);
    free_senders(s);
    gb_mqtt_inbound_free(s->inbound);
    gb_mqtt_publisher_free(s->publisher);
    gb_mqtt_reconcile_free(s->reconcile);
    gb_mqtt_acks_deinit(&s->acks);
    gb_mqtt_link_deinit(&s->link);
    gb_str_deinit(&s->urls_joined);
    gb_str_deinit(&s->orphan_topic);
    free(s->endpoints);
    for (size_t i = 0; i < s->owned_count; i++) free(s->owned[i]);
    free(s->owned);
    free(s);
}

static const struct gb_session_ops session_ops = {
    .start = session_start,
    .quiesce = session_quiesce,
    .stop = session_stop,
    .health = session_health,
    .free = session_free,
};

static void flush(void *arg)
{
    struct gb_mqtt_session *s = arg;
    gb_mqtt_link_flush(&s->link);
}

/* What was left with the broker comes with a new connection, once the old one owes nothing. */
static void acknowledged(void *arg)
{
    struct gb_mqtt_session *s = arg;
    gb_mqtt_link_flush(&s->link);
    if (!s->excess || s->state != GB_MQTT_S_ONLINE || gb_mqtt_acks_unsettled(&s->acks) > 0) return;
    gb_mqtt_link_close(
        &s->link, DISCONNECT_NORMAL, GB_MQTT_DOWN_CLOSED,
        gb_err(GB_CONNECTION_LOST, "fetching the messages that the broker sent beyond the window"));
}

static const struct gb_mqtt_link_events link_events = {
    .up = link_up,
    .packet = gb_mqtt_session_packet,
    .oversized = gb_mqtt_session_oversized,
    .written = link_written,
    .down = link_down,
};
static const struct gb_mqtt_reconcile_events reconcile_events = {
    .subscribe = gb_mqtt_session_subscribe,
    .unsubscribe = gb_mqtt_session_unsubscribe,
    .recycle = reconcile_recycle,
    .replays = gb_mqtt_session_replays,
    .changed = reconcile_changed,
};

static struct gb_err build_parts(struct gb_mqtt_session *s)
{
    struct gb_err err = gb_timer_init(&s->timer, s->cfg.reactor, timer_fired);
    if (!gb_failed(err)) {
        err = gb_timer_init(&s->replay_quiet, s->cfg.reactor, gb_mqtt_session_replays_quiet);
    }
    if (gb_failed(err)) return err;
    const struct gb_mqtt_link_cfg link = {
        .reactor = s->cfg.reactor,
        .net = s->cfg.net,
        .session = &s->cfg,
        .packet_bytes_max = s->cfg.max_payload_bytes + 131072,
        .events = &link_events,
        .arg = s,
    };
    err = gb_mqtt_link_init(&s->link, &link);
    if (gb_failed(err)) return err;
    err = gb_mqtt_acks_init(&s->acks);
    if (gb_failed(err)) return err;
    err = gb_mqtt_reconcile_new(&s->cfg, s->identity, &reconcile_events, s, &s->reconcile);
    if (gb_failed(err)) return err;
    const struct gb_mqtt_publisher_cfg publisher = {
        .reactor = s->cfg.reactor,
        .metrics = s->cfg.metrics,
        .session_id = s->cfg.id,
        .flush = flush,
        .arg = s,
        .tx = &s->link.tx,
    };
    err = gb_mqtt_publisher_new(&publisher, &s->publisher);
    if (gb_failed(err)) return err;
    const struct gb_mqtt_inbound_cfg inbound = {
        .session = &s->cfg,
        .acks = &s->acks,
        .reconcile = s->reconcile,
        .tx = &s->link.tx,
        .flush = acknowledged,
        .recycle = inbound_recycle,
        .orphan = gb_mqtt_session_orphan,
        .drained = inbound_drained,
        .arg = s,
    };
    return gb_mqtt_inbound_new(&inbound, &s->inbound);
}

struct gb_err gb_mqtt_session_new(const struct gb_mqtt_session_cfg *cfg, struct gb_session **out)
{
    struct gb_mqtt_session *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("MQTT session");
    s->base = (struct gb_session){.ops = &session_ops};
    s->history_wait_ns = GB_SEC;
    s->terminal_task.run = tell_terminal;
    gb_list_init(&s->senders);
    struct gb_err err = gb_mqtt_session_copy_cfg(s, cfg);
    if (!gb_failed(err)) err = build_parts(s);
    if (gb_failed(err)) {
        session_free(&s->base);
        return err;
    }
    gb_mqtt_session_init_metrics(s);
    s->base.id = s->cfg.id;
    *out = &s->base;
    return gb_ok();
}

struct gb_receiver *gb_mqtt_session_receiver(struct gb_session *base)
{
    struct gb_mqtt_session *s = gb_mqtt_session_of(base);
    return s->cfg.topic_count == 0 ? NULL : gb_mqtt_inbound_receiver(s->inbound);
}
