#include <inttypes.h>

#include "blueprint/validate.h"

/* routes[].session: references and drain settings (spec 01 §3.6, V8). Lease: validate_lease.c. */

static void refuse_key(struct gb_check *c, bool given, const char *key, const char *type)
{
    if (!given) return;
    gb_check_error(c, GB_RULE_V2, key, "%s \"%.*s\" has no meaning with type %s; remove it", key,
                   GB_SHOWN_MAX, gb_node_locate(c->entry, key)->text, type);
}

#define D "session.drain_strategy."

static void check_strategy(struct gb_check *c, const struct gb_bp_route_session *s)
{
    const struct gb_bp_drain_strategy *d = &s->drain_strategy;
    if (d->node == NULL) return;
    if (s->drain_interval.given) {
        gb_check_error(c, GB_RULE_V8, "session.drain_interval",
                       "session.drain_strategy and drain_interval are mutually exclusive; remove "
                       "one of the two");
    }
    if (d->type.broken) return;
    if (d->type.value == GB_DRAIN_FIXED) {
        refuse_key(c, d->min_interval.given, D "min_interval", "fixed_poll");
        refuse_key(c, d->max_interval.given, D "max_interval", "fixed_poll");
        refuse_key(c, d->multiplier.given, D "multiplier", "fixed_poll");
        return;
    }
    refuse_key(c, d->interval.given, D "interval", "adaptive_backoff");
    bool known = !d->max_interval.broken && !d->min_interval.broken;
    if (known && d->max_interval.ns < d->min_interval.ns) {
        char most[GB_DURATION_TEXT_MAX];
        char least[GB_DURATION_TEXT_MAX];
        gb_duration_print(d->max_interval.ns, most);
        gb_duration_print(d->min_interval.ns, least);
        gb_check_error(c, GB_RULE_V2, d->max_interval.given ? D "max_interval" : D "min_interval",
                       D "max_interval %s is less than min_interval, %s; raise the former or lower "
                         "the latter",
                       most, least);
    }
    if (!(d->multiplier.value > 1.0)) {
        gb_check_error(c, GB_RULE_V2, D "multiplier",
                       D "multiplier %g must be greater than 1; raise it", d->multiplier.value);
    }
}

static void check_batches(struct gb_check *c, const struct gb_bp_route_session *s)
{
    if (s->drain_batch_size.value <= s->drain_max_batch_size.value) return;
    if (s->drain_batch_size.broken || s->drain_max_batch_size.broken) return;
    gb_check_error(c, GB_RULE_V2,
                   s->drain_max_batch_size.given ? "session.drain_max_batch_size"
                                                 : "session.drain_batch_size",
                   "session.drain_max_batch_size %" PRId64 " is less than drain_batch_size %" PRId64
                   "; raise the former or lower the latter",
                   s->drain_max_batch_size.value, s->drain_batch_size.value);
}

void gb_validate_route_session(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_route_session *s = &r->session;
    if (s->node == NULL) return; /* of a block that is no map, every key is absent */
    if (s->session_id != NULL && s->session == NULL) {
        gb_check_missing(c, "session.session_id", s->session_id, "sessions");
    }
    if (s->sender_id != NULL && s->sender == NULL) {
        gb_check_missing(c, "session.sender_id", s->sender_id, "senders");
    }
    check_strategy(c, s);
    check_batches(c, s);
    gb_validate_lease(c, s);
}
