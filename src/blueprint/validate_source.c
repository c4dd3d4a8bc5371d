#include <inttypes.h>

#include "blueprint/validate.h"

/* What a route's MQTT source can promise: P7, P9, P11 (spec 01 §5.4, 03 §2, §5.4, §6.4). */

enum { METADATA_MAX = 131072 };

static void check_memory(struct gb_check *c, const struct gb_bp_route *r,
                         const struct gb_bp_mqtt_session *m)
{
    int64_t budget = m->ingress_memory_budget_bytes.value;
    int64_t packet = m->max_payload_bytes.value + METADATA_MAX;
    int64_t count = 2 * m->receive_maximum.value + r->policy.max_in_flight.value + 1;
    int64_t need;
    if (gb_mul_i64(packet, count, &need) && need <= budget) return;
    need = gb_mul_sat_i64(packet, count);
    gb_check_error(c, GB_RULE_P7, "policy.max_in_flight",
                   "(max_payload_bytes + %d) * (2 * receive_maximum + max_in_flight + 1) is "
                   "%" PRId64 " and must not exceed ingress_memory_budget_bytes, %" PRId64
                   "; lower the former or raise the latter",
                   METADATA_MAX, need, budget);
}

static bool has_qos(const struct gb_bp_receiver *receiver, bool zero)
{
    for (size_t i = 0; i < receiver->topic_count; i++) {
        if ((receiver->topics[i].qos.value == 0) == zero) return true;
    }
    return false;
}

/* P9. */
static void check_redelivery(struct gb_check *c, const struct gb_bp_route *r)
{
    bool resumes = gb_session_resumes(r->receiver->session);
    bool direct = r->delivery_mode.value == GB_DIRECT_HOLD;
    bool acknowledged = has_qos(r->receiver, false);
    if (direct && acknowledged && !resumes) {
        gb_check_error(c, GB_RULE_P9, "receiver_id",
                       "direct_hold with a QoS 1 or 2 topic: the source does not redeliver, since "
                       "session \"%.*s\" does not resume; use session_mode persistent or exclusive "
                       "with clean_start: false",
                       GB_SHOWN_MAX, r->receiver->session_id);
    }
    bool lossy = has_qos(r->receiver, true) || (acknowledged && !resumes);
    if (!lossy || r->policy.allow_retry_drop.value || gb_has_store(c->b, GB_BP_DLQ)) return;
    gb_check_error(c, GB_RULE_P9, "receiver_id",
                   "receiver \"%.*s\" cannot redeliver (%s) and there is no stores.dlq; configure "
                   "one, or accept the loss with policy.allow_retry_drop: true",
                   GB_SHOWN_MAX, r->receiver_id,
                   has_qos(r->receiver, true) ? "a QoS 0 topic" : "its session does not resume");
}

/* P11: a send that outlives the session's recovery would be redelivered and sent again. */
static void check_recovery(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->delivery_mode.value != GB_DIRECT_HOLD) return;
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

void gb_validate_route_source(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_receiver *receiver = r->receiver;
    if (receiver == NULL || receiver->session == NULL) return;
    if (receiver->transport.value != GB_BP_MQTT) return;
    check_memory(c, r, &receiver->session->mqtt);
    check_redelivery(c, r);
    check_recovery(c, r);
}
