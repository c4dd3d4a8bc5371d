#include "base/map.h"
#include "blueprint/validate.h"

static void check_stores(struct gb_check *c, const struct gb_bp_session *s)
{
    bool exclusive = s->session_mode.value == GB_BP_EXCLUSIVE;
    bool topics = s->receiver != NULL && s->receiver->topic_count > 0;
    if (exclusive && s->in_use && !gb_has_store(c->b, GB_BP_LEASE)) {
        gb_check_error(c, GB_RULE_V21, "session_mode",
                       "session_mode: exclusive session requires stores.lease, which decides who "
                       "may hold it; configure it, or use session_mode: persistent");
    }
    if (gb_session_is_durable(s) && topics && !gb_has_store(c->b, GB_BP_SUBSCRIPTIONS)) {
        gb_check_error(c, GB_RULE_V22, "session_mode",
                       "session_mode: %s with topics requires stores.managed_subscriptions, which "
                       "remembers the filters; configure it, or use session_mode: ephemeral",
                       exclusive ? "exclusive" : "persistent");
    }
}

void gb_validate_sessions(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->session_count; i++) {
        const struct gb_bp_session *s = &c->b->sessions[i];
        if (!gb_check_readable(s->node)) continue;
        gb_check_enter(c, "sessions", i, s->id, s->node);
        gb_check_id(c, &seen, s->id);
        check_stores(c, s);
        if (s->transport.value == GB_BP_MQTT) gb_validate_mqtt_session(c, s);
        gb_validate_credentials_uri(c, s->credentials_uri);
        if (!s->in_use && s->id != NULL && !c->unread) {
            gb_check_warning(
                c, GB_RULE_W5, "id",
                "id \"%.*s\": no route uses this session; it is not built, remove it or "
                "name it in a receiver or sender of a route",
                GB_SHOWN_MAX, s->id);
        }
    }
    gb_map_deinit(&seen);
    gb_validate_mqtt_identities(c);
    gb_check_leave(c);
}
