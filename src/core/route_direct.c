#include <string.h>

#include "base/log.h"
#include "core/message_log.h"
#include "core/route_flight.h"
#include "core/send_ceiling.h"

/* direct_hold (spec 02 §6): the source message is held until the destination accepted. */

static void start_send(struct gb_flight *f);
static void send_done(struct gb_op *op, void *arg);

/* Spec 02 §6.1: the sender ignores its deadline. A result that arrives together with the ceiling
 * wins: its op is finished, only `done` is still to run. */
static void ceiling_reached(struct gb_timer *t)
{
    struct gb_flight *f = GB_CONTAINER_OF(t, struct gb_flight, timer);
    struct gb_route *r = f->route;
    if (!gb_op_pending(&f->work.send.op)) return;
    r->targets[0].hung = true;
    gb_route_wedge(r, gb_err(GB_TIMEOUT, "sender of binding %s did not answer within its ceiling",
                             r->targets[0].id));
}

static void retry_due(struct gb_timer *t)
{
    start_send(GB_CONTAINER_OF(t, struct gb_flight, timer));
}

void gb_flight_send(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    if (r->target_count != 1 && r->cfg.every_binding) {
        gb_flight_terminal(
            f, NULL,
            gb_err(GB_INTERNAL, "direct_hold got %zu plans for one message", r->target_count));
        return;
    }
    f->first_try_ns = gb_reactor_now_ns(r->cfg.reactor);
    struct gb_bytes address;
    struct gb_err err = gb_flight_address(f, &r->targets[0], &f->address, &address);
    if (gb_failed(err)) {
        if (err.code == GB_ADDRESS_TEMPLATE || err.code == GB_INVALID_TOPIC) {
            if (err.code == GB_ADDRESS_TEMPLATE) gb_metric_add(r->metrics.template_errors, 1);
            gb_flight_terminal(f, &r->targets[0], err);
        } else {
            gb_flight_recover(f, err);
        }
        return;
    }
    memset(&f->work.send, 0, sizeof f->work.send);
    f->work.send.address = address;
    start_send(f);
}

static void start_send(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    const struct gb_policy *p = &r->cfg.policy;
    uint64_t now_ns = gb_reactor_now_ns(r->cfg.reactor);
    if (r->targets[0].hung) { /* no second send starts (spec 02 §6.1) */
        gb_flight_abandon(f);
        return;
    }
    gb_flight_set_state(f, GB_FLIGHT_SENDING);
    f->tries++;
    f->work.send.envelope = f->envelope;
    f->work.send.batch = false;
    f->work.send.op.deadline_ns = now_ns + (uint64_t)p->send_timeout_ns;
    f->timer.fire = ceiling_reached;
    gb_timer_start(&f->timer, now_ns + gb_send_ceiling_ns(p));
    r->targets[0].sender->ops->send(r->targets[0].sender, &f->work.send, send_done, f);
}

/* Spec 02 §6.2: in-process retry while the budget and the message's life allow it. */
static void retry_or_give_up(struct gb_flight *f, struct gb_err cause)
{
    struct gb_route *r = f->route;
    const struct gb_policy *p = &r->cfg.policy;
    uint64_t now_ns = gb_reactor_now_ns(r->cfg.reactor);
    int64_t delay_ns =
        gb_backoff_delay_ns(&p->backoff, f->tries, cause.retry_after_ns, r->cfg.reactor);
    int64_t spent_ns = gb_add_sat_i64((int64_t)(now_ns - f->first_try_ns), delay_ns);
    if (p->send_retry_budget_ns == 0 || spent_ns > p->send_retry_budget_ns) {
        if (p->send_retry_budget_ns > 0) gb_metric_add(r->metrics.budget_exhausted, 1);
        gb_flight_recover(f, cause);
        return;
    }
    int64_t next_wall_ms = gb_reactor_wall_ms(r->cfg.reactor) + delay_ns / GB_MS;
    if (gb_envelope_expired(f->envelope, next_wall_ms)) {
        gb_flight_terminal(f, &r->targets[0],
                           gb_err(GB_MESSAGE_EXPIRED, "would expire before the next try; last: %s",
                                  cause.message));
        return;
    }
    gb_metric_add(r->metrics.retries, 1);
    gb_flight_set_state(f, GB_FLIGHT_WAITING);
    f->timer.fire = retry_due;
    gb_timer_start(&f->timer, now_ns + (uint64_t)delay_ns);
}

/* Why nothing arrives must be in the log at every level; once in 10 s is enough. */
static void warn_failed(struct gb_flight *f, const struct gb_err *err)
{
    struct gb_route *r = f->route;
    struct gb_message_log m;
    uint64_t suppressed = 0;
    if (!gb_log_allow(&r->send_log_limit, gb_reactor_now_ns(r->cfg.reactor), 10 * GB_SEC,
                      &suppressed)) {
        return;
    }
    gb_message_log_set(&m, f->envelope);
    GB_LOG(GB_LOG_WARN, "send failed; the source is not acknowledged", gb_lf_str("route_id", r->id),
           gb_lf_str("binding_id", r->targets[0].id), GB_LF_MESSAGE(m), gb_lf_err(err),
           gb_lf_int("more_since_last_line", (int64_t)suppressed));
}

static void send_done(struct gb_op *op, void *arg)
{
    struct gb_flight *f = arg;
    struct gb_route *r = f->route;
    gb_timer_stop(&f->timer);
    if (op->result.code == GB_OK) {
        gb_metric_add(r->metrics.sent, 1);
        gb_flight_ack(f);
    } else if (op->result.code == GB_CANCELLED || r->cancelling || r->wedged) {
        gb_flight_abandon(f);
    } else if (gb_err_is_transient(&op->result)) {
        warn_failed(f, &op->result);
        retry_or_give_up(f, op->result);
    } else {
        gb_flight_terminal(f, &r->targets[0], op->result);
    }
}

void gb_flight_cancel_send(struct gb_flight *f)
{
    gb_op_cancel(&f->work.send.op);
}
