#include <string.h>

#include "base/log.h"
#include "core/dead_letter.h"
#include "core/message_log.h"
#include "core/route_flight.h"
#include "domain/address.h"
#include "domain/mqtt_topic.h"
#include "domain/reserved.h"

static void dead_letter(struct gb_flight *f, const struct gb_route_target *target,
                        struct gb_err cause, const char *word);

static void log_completed(const struct gb_flight *f, int64_t latency_ns)
{
    struct gb_message_log m;
    if (f->acked_envelope == NULL || !gb_log_enabled(GB_LOG_DEBUG)) return;
    gb_message_log_set(&m, f->acked_envelope);
    GB_LOG(GB_LOG_DEBUG, "delivery completed", gb_lf_str("route_id", f->route->id),
           GB_LF_MESSAGE(m), gb_lf_int("latency_ms", latency_ns / GB_MS));
}

static void settled(void *arg, struct gb_err result)
{
    struct gb_flight *f = arg;
    struct gb_route *r = f->route;
    if (!f->acked && result.code == GB_NOT_SUPPORTED && !r->cancelling) {
        f->delivery->can_retry = false; /* so it is asked once only */
        struct gb_err cause = f->last;
        dead_letter(f, NULL, cause, "retry_unsupported");
        return;
    }
    if (result.code == GB_OK && f->acked) {
        int64_t latency_ns = (int64_t)(gb_reactor_now_ns(r->cfg.reactor) - f->started_ns);
        gb_metric_time(r->metrics.e2e_latency, latency_ns);
        log_completed(f, latency_ns);
        if (f->acked_envelope != NULL) gb_ledger_forget(r->cfg.ledger, f->acked_envelope);
    }
    gb_envelope_unref(f->acked_envelope);
    f->acked_envelope = NULL;
    gb_flight_release(f);
}

void gb_flight_ack(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    gb_flight_set_state(f, GB_FLIGHT_SETTLING);
    f->acked = true;
    /* Charges are forgotten only after a successful acknowledge (spec 02 §5.2), when the delivery
     * is gone; so is the debug line written. */
    if (gb_ledger_size(r->cfg.ledger) > 0 || gb_log_enabled(GB_LOG_DEBUG))
        f->acked_envelope = gb_envelope_ref(f->envelope);
    f->delivery->ops->ack(f->delivery, settled, f);
}

void gb_flight_abandon(struct gb_flight *f)
{
    f->route->left_unsettled = true;
    f->delivery->ops->abandon(f->delivery);
    gb_flight_release(f);
}

static void hand_back(struct gb_flight *f, const struct gb_err *cause, int64_t delay_ns)
{
    gb_flight_set_state(f, GB_FLIGHT_SETTLING);
    f->last = *cause;
    f->delivery->ops->retry(f->delivery, delay_ns, settled, f);
}

static void count_dropped(struct gb_route *r, const char *reason)
{
    gb_metric_add(gb_metrics_get(r->cfg.metrics, GB_METRIC_COUNTER, "MessagesDropped",
                                 GB_DIMS({"route_id", r->id}, {"reason", reason})),
                  1);
}

static void drop(struct gb_flight *f, const struct gb_err *cause, const char *word)
{
    struct gb_route *r = f->route;
    if (cause->class_ == GB_CLASS_EXPIRED) {
        gb_metric_add(r->metrics.expired, 1);
    } else {
        count_dropped(r, word);
        uint64_t suppressed = 0;
        if (gb_log_allow(&r->log_limit, gb_reactor_now_ns(r->cfg.reactor), GB_SEC * 10,
                         &suppressed)) {
            struct gb_message_log m;
            gb_message_log_set(&m, f->envelope);
            GB_LOG(GB_LOG_ERROR, "message dropped by policy", gb_lf_str("route_id", r->id),
                   GB_LF_MESSAGE(m), gb_lf_str("reason", word), gb_lf_err(cause),
                   gb_lf_int("more_since_last_line", (int64_t)suppressed));
        }
    }
    gb_flight_ack(f);
}

void gb_flight_hand_back(struct gb_flight *f, struct gb_err cause, int64_t delay_ns)
{
    if (f->route->cancelling || cause.code == GB_CANCELLED) {
        gb_flight_abandon(f);
    } else if (f->delivery->can_retry) {
        hand_back(f, &cause, delay_ns);
    } else {
        dead_letter(f, NULL, cause, "retry_unsupported");
    }
}

static uint32_t effective_attempt(const struct gb_flight *f)
{
    return f->delivery->receive_count > 0 ? f->delivery->receive_count
                                          : gb_ledger_attempts(f->route->cfg.ledger, f->envelope);
}

void gb_flight_recover(struct gb_flight *f, struct gb_err cause)
{
    struct gb_route *r = f->route;
    if (r->cancelling || cause.code == GB_CANCELLED) {
        gb_flight_abandon(f);
        return;
    }
    gb_metric_add(r->metrics.errors, 1);
    if (effective_attempt(f) >= r->cfg.policy.max_replay_attempts) {
        dead_letter(f, NULL,
                    gb_err(GB_POISON_MESSAGE, "gave up after %u attempts; last: %s",
                           effective_attempt(f), cause.message),
                    "max_retries");
        return;
    }
    if (!f->delivery->can_retry) {
        dead_letter(f, NULL, cause, "retry_unsupported");
        return;
    }
    /* The attempt that just failed, so before its charge (spec 02 §5.1). */
    int64_t delay_ns = gb_backoff_delay_ns(&r->cfg.policy.backoff, effective_attempt(f) + 1,
                                           cause.retry_after_ns, r->cfg.reactor);
    if (f->delivery->receive_count == 0) {
        if (!gb_ledger_countable(f->envelope)) {
            dead_letter(f, NULL, cause, "unstable_identity");
            return;
        }
        gb_ledger_charge(r->cfg.ledger, f->envelope);
    }
    hand_back(f, &cause, delay_ns);
}

static void handover_done(struct gb_op *op, void *arg)
{
    struct gb_flight *f = arg;
    struct gb_err result = op->result;
    gb_dlq_handover_deinit(&f->work.handover);
    if (result.code == GB_OK) {
        gb_flight_ack(f);
    } else if (f->route->cancelling || result.code == GB_CANCELLED) {
        gb_flight_abandon(f);
    } else if (f->delivery->can_retry) {
        hand_back(f, &result, f->route->cfg.policy.backoff.initial_ns);
    } else {
        count_dropped(f->route, "retry_unsupported_dlq_failed");
        gb_flight_ack(f);
    }
}

static bool wants_dlq(const struct gb_flight *f, const struct gb_err *cause, const char *word)
{
    const struct gb_route_cfg *cfg = &f->route->cfg;
    if (cfg->dlq == NULL) return false;
    if (cause->class_ == GB_CLASS_EXPIRED) return cfg->policy.on_expired == GB_ACTION_DLQ;
    if (strcmp(word, "retry_unsupported") == 0)
        return true; /* a drop needs the store to be absent */
    return cfg->policy.on_permanent_failure == GB_ACTION_DLQ;
}

/* Failures before dispatch have no address (spec 02 §10); nor has one whose template failed. */
static struct gb_bytes address_of(const struct gb_flight *f, const struct gb_route_target *target,
                                  const struct gb_err *cause)
{
    const struct gb_route *r = f->route;
    if (target == NULL || cause->code == GB_ADDRESS_TEMPLATE) return gb_bytes(NULL, 0);
    if (!target->placeholders) return gb_bytes_c(target->address);
    if (r->cfg.delivery_mode == GB_DIRECT_HOLD) return gb_str_bytes(&f->address);
    return gb_str_bytes(&f->legs[target - r->targets].address);
}

static void dead_letter(struct gb_flight *f, const struct gb_route_target *target,
                        struct gb_err cause, const char *word)
{
    struct gb_route *r = f->route;
    if (!wants_dlq(f, &cause, word)) {
        drop(f, &cause, word);
        return;
    }
    struct gb_dead_letter d = {
        .envelope = f->envelope,
        .route_id = r->id,
        .binding_id = target == NULL ? "" : target->id,
        .address = address_of(f, target, &cause),
        .session_id = gb_bytes_c(r->source_session_id),
        .source_id = r->instance_id,
        .cause = &cause,
        .attempts = effective_attempt(f) + 1,
        .now_ms = gb_reactor_wall_ms(r->cfg.reactor),
    };
    struct gb_dlq_entry *entry = NULL;
    struct gb_err err = gb_dead_letter_build(&d, &entry);
    if (gb_failed(err)) {
        if (f->delivery->can_retry) {
            hand_back(f, &err, r->cfg.policy.backoff.initial_ns);
        } else {
            count_dropped(r, "retry_unsupported_dlq_failed");
            gb_flight_ack(f);
        }
        return;
    }
    gb_flight_set_state(f, GB_FLIGHT_DEAD_LETTER);
    memset(&f->work.handover, 0, sizeof f->work.handover);
    gb_dlq_handover_start(&f->work.handover,
                          &(struct gb_dlq_handover_cfg){
                              .reactor = r->cfg.reactor,
                              .dlq = r->cfg.dlq,
                              .metrics = r->cfg.metrics,
                              .category = word,
                          },
                          entry, handover_done, f);
}

void gb_flight_terminal(struct gb_flight *f, const struct gb_route_target *target,
                        struct gb_err cause)
{
    dead_letter(f, target, cause, gb_dead_letter_word(&cause));
}

struct gb_err gb_flight_address(struct gb_flight *f, const struct gb_route_target *t,
                                struct gb_str *scratch, struct gb_bytes *out)
{
    *out = gb_bytes_c(t->address);
    if (!t->placeholders) return gb_ok();
    gb_str_clear(scratch);
    struct gb_err err = gb_address_expand(*out, f->envelope, scratch);
    if (gb_failed(err)) return err;
    *out = gb_str_bytes(scratch);
    if (t->mqtt) return gb_mqtt_address_check(*out);
    for (size_t i = 0; i < out->size; i++) {
        if (out->data[i] < 0x20 || out->data[i] == 0x7f) {
            return gb_err(GB_INVALID_TOPIC,
                          "address of binding %s holds a control character at byte %zu", t->id, i);
        }
    }
    return gb_ok();
}
