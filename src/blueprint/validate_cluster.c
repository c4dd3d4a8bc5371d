#include "blueprint/lease_plan.h"
#include "blueprint/validate.h"
#include "domain/mqtt_topic.h"

/* What only a cluster must keep to: C2, C4, C6, C9 (spec 01 §5.3). C8 is what stays legal: routes
 * without session run on every instance. */

/* C2, C4. */
static void check_receiver(struct gb_check *c, const struct gb_bp_receiver *r)
{
    const struct gb_bp_session *s = r->session;
    if (s == NULL || r->transport.value != GB_BP_MQTT || s->session_mode.broken) return;
    if (s->session_mode.value == GB_BP_EXCLUSIVE) return;
    bool shared = false;
    for (size_t i = 0; i < r->topic_count; i++) {
        const struct gb_bp_topic *t = &r->topics[i];
        if (t->topic == NULL) continue;
        if (gb_mqtt_filter_is_shared(gb_bytes_c(t->topic))) { /* well-formed: V9 */
            shared = true;
            continue;
        }
        struct gb_check at = *c;
        at.entry = t->node;
        gb_check_error(&at, GB_RULE_C2, "topic",
                       "topics[%zu] \"%.*s\" requires $share/ topic prefix or exclusive session; "
                       "else every instance gets each message",
                       i, GB_SHOWN_MAX, t->topic);
    }
    const struct gb_opt_word *suffix = &s->mqtt.client_id_suffix;
    if (!shared || suffix->broken || !gb_check_readable(s->raw)) return;
    if (!gb_check_readable(s->mqtt.node)) return;
    if (suffix->value != GB_BP_SUFFIX_NONE) return; /* nonce of a persistent one: M4 */
    bool ephemeral = s->session_mode.value == GB_BP_EPHEMERAL;
    gb_check_error(
        c, GB_RULE_C4, "session_id",
        "session \"%.*s\" is not exclusive, and its instances would share one client_id; "
        "write client_id_suffix: hostname%s there",
        GB_SHOWN_MAX, s->id, ephemeral ? " or nonce" : "");
}

/* C6: the old and the new owner may both send. */
static void check_http(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_receiver *in = r->receiver;
    if (in == NULL || in->transport.value != GB_BP_HTTP) return;
    bool exclusive = r->session.node != NULL ||
                     (in->session != NULL && in->session->session_mode.value == GB_BP_EXCLUSIVE);
    if (!exclusive || r->delivery_mode.broken || r->delivery_mode.value != GB_DIRECT_HOLD) return;
    gb_check_error(c, GB_RULE_C6, "delivery_mode",
                   "delivery_mode: direct_hold%s is refused on an exclusive route with HTTP "
                   "receiver \"%.*s\", since old and new owner may both send; use shared_outbox",
                   r->delivery_mode.given ? "" : " (the default)", GB_SHOWN_MAX, r->receiver_id);
}

/* C9. */
static void check_partitions(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->delivery_mode.value != GB_SHARED_OUTBOX) return;
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        const struct gb_bp_binding *b = r->bindings[i];
        if (b == NULL) continue;
        const struct gb_bp_session *s = gb_blueprint_effective_session(r, b);
        bool dangling = s == NULL && (b->session_id != NULL || r->session.node != NULL ||
                                      (b->sender != NULL && b->sender->session_id != NULL));
        if (dangling || (s != NULL && s->session_mode.broken)) continue; /* V5 has spoken */
        if (s != NULL && gb_blueprint_is_lease_managed(c->b, s)) continue;
        gb_check_error(c, GB_RULE_C9, "bindings",
                       "bindings[%zu] \"%.*s\" %s%.*s%s owns no lease, so nobody would drain its "
                       "outbox; put it on an exclusive session by session.session_id",
                       i, GB_SHOWN_MAX, b->id, s == NULL ? "has no session and" : "on session \"",
                       GB_SHOWN_MAX / 2, s == NULL ? "" : s->id, s == NULL ? "" : "\"");
    }
}

void gb_validate_cluster(struct gb_check *c)
{
    if (!gb_is_clustered(c->b)) return;
    for (size_t i = 0; i < c->b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &c->b->receivers[i];
        gb_check_enter(c, "receivers", i, r->id, r->node);
        check_receiver(c, r);
    }
    for (size_t i = 0; i < c->b->route_count; i++) {
        const struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        check_http(c, r);
        check_partitions(c, r);
    }
    gb_check_leave(c);
}
