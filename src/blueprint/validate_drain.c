#include <inttypes.h>

#include "blueprint/validate.h"

/* routes[].session: references and drain settings (spec 01 §3.6, V8). Lease: validate_lease.c. */

static void refuse_key(struct gb_check *c, bool given, const char *key, const char *type)
{
    if (!given) return;
    gb_check_error(c, GB_RULE_V2, key, "%s has no meaning with type %s; remove it", key, type);
}

#define D "session.drain_strategy."

static void check_strategy(struct gb_check *c, const struct gb_bp_route_session *s)
{
    const struct gb_bp_drain_strategy *d = &s->drain_strategy;
    if (d->node == NULL) return;
    if (s->drain_interval.given) {
        gb_check_error(c, GB_RULE_V8, "session.drain_interval",
                       "session.drain_strategy and drain_interval are mutually exclusive");
    }
    if (d->type.value == GB_DRAIN_FIXED) {
        refuse_key(c, d->min_interval.given, D "min_interval", "fixed_poll");
        refuse_key(c, d->max_interval.given, D "max_interval", "fixed_poll");
        refuse_key(c, d->multiplier.given, D "multiplier", "fixed_poll");
        return;
    }
    refuse_key(c, d->interval.given, D "interval", "adaptive_backoff");
    if (d->max_interval.ns < d->min_interval.ns) {
        gb_check_error(c, GB_RULE_V2, d->max_interval.given ? D "max_interval" : D "min_interval",
                       D "max_interval is less than min_interval");
    }
    if (!(d->multiplier.value > 1.0)) {
        gb_check_error(c, GB_RULE_V2, D "multiplier", D "multiplier must be greater than 1");
    }
}

static void check_batches(struct gb_check *c, const struct gb_bp_route_session *s)
{
    if (s->drain_batch_size.value <= s->drain_max_batch_size.value) return;
    gb_check_error(c, GB_RULE_V2,
                   s->drain_max_batch_size.given ? "session.drain_max_batch_size"
                                                 : "session.drain_batch_size",
                   "session.drain_max_batch_size %" PRId64 " is less than drain_batch_size %" PRId64
                   "; raise it",
                   s->drain_max_batch_size.value, s->drain_batch_size.value);
}

void gb_validate_route_session(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_route_session *s = &r->session;
    if (s->node == NULL) return;
    if (s->session_id != NULL && s->session == NULL) {
        gb_check_error(c, GB_RULE_V5, "session.session_id",
                       "session.session_id \"%.*s\" not found in sessions", GB_SHOWN_MAX,
                       s->session_id);
    }
    if (s->sender_id != NULL && s->sender == NULL) {
        gb_check_error(c, GB_RULE_V5, "session.sender_id",
                       "session.sender_id \"%.*s\" not found in senders", GB_SHOWN_MAX,
                       s->sender_id);
    }
    check_strategy(c, s);
    check_batches(c, s);
    gb_validate_lease(c, s);
}
