#include "base/map.h"
#include "blueprint/validate.h"
#include "domain/address.h"
#include "domain/mqtt_topic.h"

/* Bindings: V5, V6, W3, W5. */

enum { LOOP_TOPICS_MAX = 300 }; /* every binding is held against every topic of its session */

static bool has_control(struct gb_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] == 0x7f) return true;
    }
    return false;
}

/* V6; an address without placeholders must also suit its destination (spec 02 §8.3). */
static void check_address(struct gb_check *c, const struct gb_bp_binding *b)
{
    if (b->address == NULL) return;
    struct gb_bytes address = gb_bytes_c(b->address);
    struct gb_err err = gb_address_check(address);
    if (gb_failed(err)) {
        gb_check_error(c, GB_RULE_V6, "address",
                       "address \"%.*s\": %s; write a placeholder as {header}", GB_SHOWN_MAX,
                       b->address, err.message);
        return;
    }
    if (b->sender == NULL || gb_address_has_placeholders(address)) return;
    if (b->sender->transport.value == GB_BP_MQTT) {
        err = gb_mqtt_address_check(address);
        if (!gb_failed(err)) return;
        gb_check_error(c, GB_RULE_V6, "address", "address: %s; write a topic such as a/b",
                       err.message);
    } else if (has_control(address)) {
        gb_check_error(c, GB_RULE_V6, "address",
                       "address \"%.*s\" must not hold control characters; remove them",
                       GB_SHOWN_MAX, b->address);
    }
}

static void check_loop_on(struct gb_check *c, const struct gb_bp_binding *b,
                          const struct gb_bp_session *s)
{
    struct gb_bytes address = gb_bytes_c(b->address);
    const struct gb_bp_receiver *r = s->receiver;
    if (r == NULL || s->mqtt.no_local.value || r->topic_count > LOOP_TOPICS_MAX) return;
    for (size_t i = 0; i < r->topic_count; i++) {
        if (r->topics[i].topic == NULL) continue;
        struct gb_bytes topic = gb_bytes_c(r->topics[i].topic);
        if (gb_failed(gb_mqtt_filter_check(topic))) continue;
        if (!gb_mqtt_filter_matches(topic, address)) continue;
        gb_check_warning(c, GB_RULE_W3, "address",
                         "address \"%.*s\" is subscribed on the same session by \"%.*s\", so "
                         "messages will loop; publish elsewhere, or set no_local: true",
                         GB_SHOWN_MAX, b->address, GB_SHOWN_MAX, r->topics[i].topic);
        return;
    }
}

/* W3, for topics with wildcards too. The binding's own session is the effective one (spec 02 §2.4);
 * the sender's is where the message really goes. */
static void check_loop(struct gb_check *c, const struct gb_bp_binding *b)
{
    if (b->address == NULL || b->sender == NULL) return;
    if (b->sender->transport.value != GB_BP_MQTT) return;
    struct gb_bytes address = gb_bytes_c(b->address);
    if (gb_failed(gb_mqtt_publish_topic_check(address))) return;
    if (gb_address_has_placeholders(address)) return;
    const struct gb_bp_session *own = b->session;
    const struct gb_bp_session *s = b->sender->session;
    if (s != NULL) check_loop_on(c, b, s);
    if (own != NULL && own != s) check_loop_on(c, b, own);
}

void gb_validate_bindings(struct gb_check *c)
{
    struct gb_map seen = {0};
    for (size_t i = 0; i < c->b->binding_count; i++) {
        const struct gb_bp_binding *b = &c->b->bindings[i];
        if (!gb_check_readable(b->node)) continue;
        gb_check_enter(c, "bindings", i, b->id, b->node);
        gb_check_id(c, &seen, b->id);
        if (b->sender_id != NULL && b->sender == NULL) {
            gb_check_missing(c, "sender_id", b->sender_id, "senders");
        }
        if (b->session_id != NULL && b->session == NULL) {
            gb_check_missing(c, "session_id", b->session_id, "sessions");
        }
        check_address(c, b);
        check_loop(c, b);
        if (b->raw != NULL && b->raw->count > 0) {
            gb_check_warning(c, GB_RULE_W5, "options",
                             "options of a binding have no effect; set them on sender \"%.*s\"",
                             GB_SHOWN_MAX, b->sender_id == NULL ? "" : b->sender_id);
        }
    }
    gb_map_deinit(&seen);
    gb_check_leave(c);
}
