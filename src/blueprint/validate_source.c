#include <inttypes.h>

#include "blueprint/validate.h"

/* What a route's source can promise: P7, P9, P11 (spec 01 §5.4, 02 §2.4, 03 §2, §5.4, §6.4, 04 B3).
 * A client of an HTTP receiver is told of a failure and sends again (decision 0107). */

enum { METADATA_MAX = 131072, EXTENDABLE_SECONDS_MIN = 2 };

#define DLQ_BUDGET_NS (10 * GB_SEC) /* of a hand-over (spec 02 §10) */

static void check_memory(struct gb_check *c, const struct gb_bp_route *r,
                         const struct gb_bp_mqtt_session *m)
{
    if (m->ingress_memory_budget_bytes.broken || m->max_payload_bytes.broken ||
        m->receive_maximum.broken || r->policy.max_in_flight.broken) {
        return;
    }
    int64_t budget = m->ingress_memory_budget_bytes.value;
    int64_t packet = m->max_payload_bytes.value + METADATA_MAX;
    int64_t count = 2 * m->receive_maximum.value + r->policy.max_in_flight.value + 1;
    int64_t need;
    if (gb_mul_i64(packet, count, &need) && need <= budget) return;
    need = gb_mul_sat_i64(packet, count);
    struct gb_check at = *c;
    at.entry = r->policy.max_in_flight.given || !gb_check_readable(m->node) ? c->entry : m->node;
    const char *key = r->policy.max_in_flight.given ? "policy.max_in_flight"
                      : m->receive_maximum.given    ? "receive_maximum"
                      : m->max_payload_bytes.given  ? "max_payload_bytes"
                                                    : "ingress_memory_budget_bytes";
    gb_check_error(&at, GB_RULE_P7, key,
                   "policy.max_in_flight %" PRId64
                   ": (max_payload_bytes + %d) * (2 * receive_maximum + max_in_flight + 1) is "
                   "%" PRId64 " and must not exceed ingress_memory_budget_bytes, %" PRId64
                   "; lower the former or raise the latter",
                   r->policy.max_in_flight.value, METADATA_MAX, need, budget);
}

static bool has_qos(const struct gb_bp_receiver *receiver, bool zero)
{
    for (size_t i = 0; i < receiver->topic_count; i++) {
        if (receiver->topics[i].qos.broken || !gb_check_readable(receiver->topics[i].node))
            continue;
        if ((receiver->topics[i].qos.value == 0) == zero) return true;
    }
    return false;
}

/* P9. */
static void check_redelivery(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_session *s = r->receiver->session;
    if (s->session_mode.broken || s->mqtt.clean_start.broken || r->delivery_mode.broken) return;
    bool resumes = gb_session_resumes(s);
    bool direct = r->delivery_mode.value == GB_DIRECT_HOLD;
    bool acknowledged = has_qos(r->receiver, false);
    if (direct && acknowledged && !resumes) {
        gb_check_error(c, GB_RULE_P9, "receiver_id",
                       "receiver_id: direct_hold with a QoS 1 or 2 topic: the source does not "
                       "redeliver, since session \"%.*s\" does not resume; use session_mode "
                       "persistent or exclusive with clean_start: false",
                       GB_SHOWN_MAX, r->receiver->session_id);
    }
    bool lossy = has_qos(r->receiver, true) || (acknowledged && !resumes);
    if (r->policy.allow_retry_drop.broken || !gb_check_readable(r->policy.node)) return;
    if (!lossy || r->policy.allow_retry_drop.value || gb_has_store(c->b, GB_BP_DLQ)) return;
    gb_check_error(
        c, GB_RULE_P9, "receiver_id",
        "receiver_id \"%.*s\" cannot redeliver (%s) and there is no stores.dlq; configure "
        "one, or accept the loss with policy.allow_retry_drop: true",
        GB_SHOWN_MAX, r->receiver_id,
        has_qos(r->receiver, true) ? "a QoS 0 topic" : "its session does not resume");
}

static bool broken_activation(const struct gb_bp_mqtt_session *m)
{
    return m->connect_timeout.broken || m->reconcile_timeout.broken || m->unmatched_grace.broken;
}

/* P11: a send that outlives the session's recovery would be redelivered and sent again. */
static void check_recovery(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_policy *p = &r->policy;
    if (r->delivery_mode.value != GB_DIRECT_HOLD || r->delivery_mode.broken) return;
    if (p->send_retry_budget.broken || p->send_timeout.broken) return;
    if (broken_activation(&r->receiver->session->mqtt)) return;
    if (!gb_session_is_durable(r->receiver->session)) return;
    int64_t activation = gb_blueprint_activation_ns(r->receiver->session);
    int64_t sending = gb_add_sat_i64(r->policy.send_retry_budget.ns, r->policy.send_timeout.ns);
    if (sending <= activation) return;
    char shown[GB_DURATION_TEXT_MAX];
    char limit[GB_DURATION_TEXT_MAX];
    gb_duration_print(sending, shown);
    gb_duration_print(activation, limit);
    gb_check_error(c, GB_RULE_P11,
                   r->policy.send_retry_budget.given ? "policy.send_retry_budget"
                                                     : "policy.send_timeout",
                   "policy.send_retry_budget + policy.send_timeout is %s and must not exceed %s, "
                   "the recovery deadline of session \"%.*s\"; lower them",
                   shown, limit, GB_SHOWN_MAX, r->receiver->session_id);
}

/* A delivery that outlasts the window is given out again while it is worked on. */
static void check_worst_case(struct gb_check *c, const struct gb_bp_route *r, int64_t window)
{
    const struct gb_bp_policy *p = &r->policy;
    bool direct = r->delivery_mode.value == GB_DIRECT_HOLD; /* send_retry_budget is for it alone */
    int64_t retry = direct ? p->send_retry_budget.ns : 0;
    int64_t count = (int64_t)r->processors.count;
    int64_t worst = gb_mul_sat_i64(count, p->processor_timeout.ns);
    worst = gb_add_sat_i64(worst, retry);
    worst = gb_add_sat_i64(worst, p->send_timeout.ns);
    worst = gb_add_sat_i64(worst, DLQ_BUDGET_NS);
    if (worst <= window) return;
    char shown[5][GB_DURATION_TEXT_MAX];
    gb_duration_print(worst, shown[0]);
    gb_duration_print(p->processor_timeout.ns, shown[1]);
    gb_duration_print(retry, shown[2]);
    gb_duration_print(p->send_timeout.ns, shown[3]);
    gb_duration_print(window, shown[4]);
    gb_check_error(
        c, GB_RULE_P11, direct ? "policy.send_retry_budget" : "policy.send_timeout",
        "policy: a delivery may take %s (%" PRId64 " processors * processor_timeout %s + "
        "send_retry_budget %s + send_timeout %s + 10s for the DLQ) and must not exceed "
        "visibility_timeout, %s, of receiver \"%.*s\", which does not extend it; lower the "
        "former, raise visibility_timeout, or set auto_extend: true",
        shown[0], count, shown[1], shown[2], shown[3], shown[4], GB_SHOWN_MAX, r->receiver_id);
}

static void check_half_window(struct gb_check *c, const struct gb_bp_route *r, int64_t window)
{
    int64_t send = r->policy.send_timeout.ns;
    if (send < window / 2) return; /* whole seconds, so the half is exact */
    char shown[GB_DURATION_TEXT_MAX];
    char limit[GB_DURATION_TEXT_MAX];
    gb_duration_print(send, shown);
    gb_duration_print(window, limit);
    gb_check_error(c, GB_RULE_P11, "policy.send_timeout",
                   "policy.send_timeout %s must be less than half of visibility_timeout, %s, of "
                   "receiver \"%.*s\", which does not extend it; lower the former, raise "
                   "visibility_timeout, or set auto_extend: true",
                   shown, limit, GB_SHOWN_MAX, r->receiver_id);
}

/* P11 for SQS: without an effective extension. */
static void check_visibility(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_sqs_receiver *s = &r->receiver->sqs;
    const struct gb_bp_policy *p = &r->policy;
    if (s->auto_extend.broken || s->visibility_timeout.broken || r->delivery_mode.broken ||
        r->processors.broken || p->processor_timeout.broken || p->send_retry_budget.broken ||
        p->send_timeout.broken) {
        return;
    }
    if (s->auto_extend.value && s->visibility_timeout.value >= EXTENDABLE_SECONDS_MIN) return;
    int64_t window = s->visibility_timeout.value * GB_SEC;
    check_worst_case(c, r, window);
    check_half_window(c, r, window);
}

void gb_validate_route_source(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_receiver *receiver = r->receiver;
    if (receiver == NULL) return;
    if (receiver->transport.value == GB_BP_SQS) check_visibility(c, r);
    if (receiver->transport.value != GB_BP_MQTT || receiver->session == NULL) return;
    check_memory(c, r, &receiver->session->mqtt);
    check_redelivery(c, r);
    check_recovery(c, r);
}
