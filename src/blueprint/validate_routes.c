#include <stdio.h>

#include "base/map.h"
#include "blueprint/validate.h"

/* Each text of a list once; entries that could not be read are empty. */
static void check_repeats(struct gb_check *c, enum gb_rule rule, const char *key,
                          const struct gb_bp_strings *list)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < list->count; i++) {
        struct gb_bytes text = gb_bytes_c(list->items[i]);
        if (text.size == 0) continue;
        if (gb_map_has(&seen, text)) {
            char path[GB_CHECK_PATH_MAX];
            (void)snprintf(path, sizeof path, "%s[%zu]", key, i);
            gb_check_error(c, rule, path,
                           "%s \"%.*s\" is listed twice, and a route takes each once; remove one "
                           "of the two",
                           path, GB_SHOWN_MAX, list->items[i]);
        } else if (gb_failed(gb_map_put(&seen, text, c))) {
            c->findings->failed = true;
        }
    }
    gb_map_deinit(&seen);
}

static void check_references(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->receiver_id != NULL && r->receiver == NULL) {
        gb_check_missing(c, "receiver_id", r->receiver_id, "receivers");
    }
    if (r->binding_ids.count == 0 && !r->binding_ids.broken) {
        gb_check_error(c, GB_RULE_V6, "bindings",
                       "bindings is required and needs at least one binding; list the ids of the "
                       "route's bindings");
    }
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        if (r->bindings[i] != NULL || r->binding_ids.items[i][0] == '\0') continue;
        char path[GB_CHECK_PATH_MAX];
        (void)snprintf(path, sizeof path, "bindings[%zu]", i);
        gb_check_missing(c, path, r->binding_ids.items[i], "bindings");
    }
    check_repeats(c, GB_RULE_V6, "bindings", &r->binding_ids);
    check_repeats(c, GB_RULE_P8, "processors", &r->processors);
}

/* V26. */
static void check_ack(struct gb_check *c, const struct gb_bp_route *r)
{
    bool outbox = r->delivery_mode.value == GB_SHARED_OUTBOX;
    const struct gb_opt_word *ack = &r->policy.ack_after;
    if (outbox && ack->given && ack->value == GB_BP_ACK_TARGET_ACCEPT) {
        gb_check_error(c, GB_RULE_V26, "policy.ack_after",
                       "policy.ack_after: target_accept is refused with shared_outbox, which "
                       "acknowledges after outbox_persist; write that, or leave it out");
    }
    if (!outbox && ack->given && ack->value == GB_BP_ACK_OUTBOX_PERSIST) {
        gb_check_error(c, GB_RULE_V26, "policy.ack_after",
                       "policy.ack_after: outbox_persist is refused with direct_hold, which "
                       "acknowledges after target_accept; write that, or leave it out");
    }
}

/* V27. */
static void check_direct(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->dispatch_mode.value == GB_DISPATCH_FAN_OUT) {
        gb_check_error(c, GB_RULE_V27, "dispatch_mode",
                       "dispatch_mode: fan_out is refused with direct_hold; use delivery_mode: "
                       "shared_outbox");
    }
    if (r->resolver.type.value == GB_BP_ALL) {
        gb_check_error(c, GB_RULE_V27, "resolver.type",
                       "resolver.type: all is refused with direct_hold; use delivery_mode: "
                       "shared_outbox");
    }
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        if (r->bindings[i] == NULL) continue;
        const struct gb_bp_session *s = gb_blueprint_effective_session(r, r->bindings[i]);
        if (s == NULL || s->session_mode.value != GB_BP_EXCLUSIVE) continue;
        char path[GB_CHECK_PATH_MAX];
        (void)snprintf(path, sizeof path, "bindings[%zu]", i);
        gb_check_error(c, GB_RULE_V27, path,
                       "%s \"%.*s\" runs on the exclusive session \"%.*s\", which is refused with "
                       "direct_hold; use delivery_mode: shared_outbox",
                       path, GB_SHOWN_MAX, r->binding_ids.items[i], GB_SHOWN_MAX,
                       s->id == NULL ? "" : s->id);
    }
}

/* V20, V26, V27. */
static void check_delivery(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->delivery_mode.broken) return;
    bool outbox = r->delivery_mode.value == GB_SHARED_OUTBOX;
    if (outbox && !gb_has_store(c->b, GB_BP_OUTBOX)) {
        gb_check_error(c, GB_RULE_V20, "delivery_mode",
                       "delivery_mode: shared_outbox requires stores.outbox; configure it, or use "
                       "direct_hold");
    }
    check_ack(c, r);
    if (!outbox) check_direct(c, r);
}

/* V25, W4. */
static void check_actions(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct {
        const char *key;
        const struct gb_opt_word *action;
    } actions[] = {{"policy.on_expired", &r->policy.on_expired},
                   {"policy.on_permanent_failure", &r->policy.on_permanent_failure},
                   {"policy.on_filtered", &r->policy.on_filtered}};
    bool dropped = false;
    if (gb_has_store(c->b, GB_BP_DLQ)) return;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (actions[i].action->value != GB_ACTION_DLQ || actions[i].action->broken) continue;
        if (actions[i].action->given) {
            gb_check_error(c, GB_RULE_V25, actions[i].key,
                           "%s: dlq requires stores.dlq; configure it or write drop",
                           actions[i].key);
        } else {
            dropped = true;
        }
    }
    if (dropped && gb_check_readable(r->policy.node)) {
        gb_check_warning(
            c, GB_RULE_W4, "policy",
            "policy: expired and refused messages are dropped with a metric, since there is no "
            "stores.dlq; configure it, or write on_expired: drop and "
            "on_permanent_failure: drop");
    }
}

/* The last part of P9, for a binding's sender or the drain target. */
static void check_target(struct gb_check *c, const struct gb_bp_sender *s, const char *key)
{
    if (s == NULL || s->transport.value != GB_BP_MQTT) return;
    if (s->mqtt.qos.value != 0 || s->mqtt.qos.broken) return;
    gb_check_error(c, GB_RULE_P9, key,
                   "%s: shared_outbox to an MQTT sender with qos: 0 would lose persisted messages; "
                   "set qos 1 or 2 on sender \"%.*s\"",
                   key, GB_SHOWN_MAX, s->id == NULL ? "" : s->id);
}

static void check_targets(struct gb_check *c, const struct gb_bp_route *r)
{
    if (r->delivery_mode.value != GB_SHARED_OUTBOX) return;
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        char path[GB_CHECK_PATH_MAX];
        (void)snprintf(path, sizeof path, "bindings[%zu]", i);
        if (r->bindings[i] != NULL) check_target(c, r->bindings[i]->sender, path);
    }
    for (size_t i = 0; r->bindings != NULL && i < r->binding_ids.count; i++) {
        if (r->bindings[i] != NULL && r->bindings[i]->sender == r->session.sender) return;
    }
    check_target(c, r->session.sender, "session.sender_id");
}

static void warn_route(struct gb_check *c, const struct gb_bp_route *r)
{
    bool direct = r->delivery_mode.value == GB_DIRECT_HOLD && !r->delivery_mode.broken;
    const struct gb_opt_bool *allowed = &r->policy.allow_unfenced;
    bool readable = !allowed->broken && gb_check_readable(r->policy.node);
    if (direct && readable && !allowed->value) { /* W1 */
        gb_check_warning(c, GB_RULE_W1, "delivery_mode",
                         "delivery_mode: direct_hold has no fencing between instances; use "
                         "shared_outbox, or say with policy.allow_unfenced: true that this is "
                         "known");
    }
    bool single = r->dispatch_mode.value == GB_DISPATCH_SINGLE && !r->dispatch_mode.broken;
    if (single && r->resolver.node == NULL && r->binding_ids.count > 1) { /* W5 */
        gb_check_warning(
            c, GB_RULE_W5, "bindings",
            "bindings: only the first of %zu, \"%.*s\", is used, since dispatch_mode is "
            "single and there is no resolver; add one, or remove the others",
            r->binding_ids.count, GB_SHOWN_MAX, r->binding_ids.items[0]);
    }
}

/* P12: an MQTT receiver feeds one route. */
static void check_single_route(struct gb_check *c, struct gb_map *seen, struct gb_bp_route *r)
{
    if (r->receiver == NULL || r->receiver->transport.value != GB_BP_MQTT) return;
    struct gb_bytes id = gb_bytes_c(r->receiver_id);
    const struct gb_bp_route *other = gb_map_get(seen, id);
    if (other != NULL) {
        gb_check_error(
            c, GB_RULE_P12, "receiver_id",
            "receiver_id \"%.*s\" already feeds route \"%.*s\", and an MQTT session (here "
            "\"%.*s\") feeds one route; use several bindings or another session",
            GB_SHOWN_MAX, r->receiver_id, GB_SHOWN_MAX, other->id == NULL ? "" : other->id,
            GB_SHOWN_MAX, r->receiver->session_id == NULL ? "" : r->receiver->session_id);
    } else if (gb_failed(gb_map_put(seen, id, r))) {
        c->findings->failed = true;
    }
}

static void check_backoff(struct gb_check *c, const struct gb_bp_backoff *b)
{
    if (b->max_interval.ns >= b->initial_interval.ns) return;
    if (b->max_interval.broken || b->initial_interval.broken) return;
    char most[GB_DURATION_TEXT_MAX];
    char first[GB_DURATION_TEXT_MAX];
    gb_duration_print(b->max_interval.ns, most);
    gb_duration_print(b->initial_interval.ns, first);
    gb_check_warning(c, GB_RULE_W5,
                     b->max_interval.given ? "policy.backoff.max_interval" : "policy.backoff",
                     "policy.backoff.max_interval %s is less than policy.backoff.initial_interval, "
                     "%s, and caps it; lower the latter",
                     most, first);
}

void gb_validate_routes(struct gb_check *c)
{
    struct gb_map ids = {0};
    struct gb_map receivers = {0};
    for (size_t i = 0; i < c->b->route_count; i++) {
        struct gb_bp_route *r = &c->b->routes[i];
        if (!gb_check_readable(r->node)) continue;
        gb_check_enter(c, "routes", i, r->id, r->node);
        gb_check_id(c, &ids, r->id);
        check_references(c, r);
        check_delivery(c, r);
        check_actions(c, r);
        check_backoff(c, &r->policy.backoff);
        check_targets(c, r);
        gb_validate_resolver(c, r);
        gb_validate_route_session(c, r);
        gb_validate_route_source(c, r);
        check_single_route(c, &receivers, r);
        warn_route(c, r);
    }
    gb_map_deinit(&ids);
    gb_map_deinit(&receivers);
    gb_check_leave(c);
}
