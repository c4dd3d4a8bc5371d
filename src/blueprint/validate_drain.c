#include <inttypes.h>

#include "blueprint/cadence.h"
#include "blueprint/validate.h"

/* routes[].session: drain settings, lease settings (spec 01 §3.6, V8, V40-V43, W2). */

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

static void check_minimum(struct gb_check *c, const char *key, int64_t value, int64_t least)
{
    if (value >= least) return;
    char shown[GB_DURATION_TEXT_MAX];
    char limit[GB_DURATION_TEXT_MAX];
    gb_duration_print(value, shown);
    gb_duration_print(least, limit);
    gb_check_error(c, GB_RULE_V41, key, "%s resolves to %s; at least %s is required", key, shown,
                   limit);
}

/* V40, V41. */
static void check_cadence(struct gb_check *c, const struct gb_cadence *cadence)
{
    char span[GB_DURATION_TEXT_MAX];
    char ttl[GB_DURATION_TEXT_MAX];
    gb_duration_print(cadence->span_ns, span);
    gb_duration_print(cadence->ttl_ns, ttl);
    if (cadence->cut) {
        gb_check_error(c, GB_RULE_V40, "session.lease_ttl",
                       "session: (renew_interval + lease_renew_jitter/2 + renew_call_timeout) * "
                       "max_renew_fails is %s and must be less than lease_ttl, %s; raise the ttl "
                       "or shorten the others",
                       span, ttl);
    } else if (cadence->trimmed) {
        gb_check_warning(c, GB_RULE_V40, "session.lease_renew_jitter",
                         "session.lease_renew_jitter is shortened, since %s of renewing must fit "
                         "into lease_ttl, %s",
                         span, ttl);
    }
    check_minimum(c, "session.lease_ttl", cadence->ttl_ns, 5 * GB_SEC);
    check_minimum(c, "session.renew_interval", cadence->renew_ns, 250 * GB_MS);
    check_minimum(c, "session.acquire_poll_interval", cadence->poll_ns, 250 * GB_MS);
}

static void check_activation(struct gb_check *c, const struct gb_bp_route_session *s,
                             const struct gb_cadence *cadence)
{
    if (!s->connect_after_lease.value || s->session == NULL) return;
    if (s->session->transport.value != GB_BP_MQTT) return;
    const struct gb_bp_mqtt_session *m = &s->session->mqtt;
    int64_t sum = gb_add_sat_i64(m->connect_timeout.ns, m->reconcile_timeout.ns);
    sum = gb_add_sat_i64(sum, cadence->renew_ns);
    sum = gb_add_sat_i64(sum, cadence->jitter_ns / 2);
    sum = gb_add_sat_i64(sum, cadence->call_ns);
    if (sum < cadence->ttl_ns) return;
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(sum, shown);
    gb_check_warning(c, GB_RULE_W2, "session.lease_ttl",
                     "session.lease_ttl is not greater than %s, the time to connect, reconcile and "
                     "renew once",
                     shown);
}

static void check_lease(struct gb_check *c, const struct gb_bp_route_session *s)
{
    struct gb_cadence cadence = gb_blueprint_cadence(s, gb_is_clustered(c->b));
    check_cadence(c, &cadence);
    check_activation(c, s, &cadence);
    if (s->failover_slo.given && !s->broker_health_step_down.given) { /* V43 */
        gb_check_error(c, GB_RULE_V43, "session.failover_slo",
                       "session.failover_slo needs broker_health_step_down to be decided: write "
                       "\"off\" or a duration");
    }
}

/* Spec 02 §2.4: without a lease store the block is taken for its drain settings. */
static void warn_lease_keys(struct gb_check *c, const struct gb_bp_route_session *s)
{
    const struct {
        const char *key;
        bool given;
    } keys[] = {
        {"session.lease_ttl", s->lease_ttl.given},
        {"session.renew_interval", s->renew_interval.given},
        {"session.lease_renew_jitter", s->lease_renew_jitter.given},
        {"session.renew_call_timeout", s->renew_call_timeout.given},
        {"session.acquire_poll_interval", s->acquire_poll_interval.given},
        {"session.max_renew_fails", s->max_renew_fails.given},
        {"session.step_down_grace", s->step_down_grace.given},
        {"session.connect_after_lease", s->connect_after_lease.given},
        {"session.failover_slo", s->failover_slo.given},
        {"session.startup_allowance", s->startup_allowance.given},
        {"session.broker_health_step_down", s->broker_health_step_down.given},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!keys[i].given) continue;
        gb_check_warning(c, GB_RULE_P5, keys[i].key,
                         "%s has no effect: the session is not exclusive and there is no "
                         "stores.lease",
                         keys[i].key);
    }
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
    bool exclusive = s->session != NULL && s->session->session_mode.value == GB_BP_EXCLUSIVE;
    bool lease = gb_has_store(c->b, GB_BP_LEASE) || gb_is_clustered(c->b);
    if (exclusive || lease) {
        check_lease(c, s);
        if (!exclusive && s->session != NULL) { /* P5 */
            gb_check_warning(c, GB_RULE_P5, "session.session_id",
                             "session \"%.*s\" is not exclusive; this block makes it "
                             "lease-managed all the same",
                             GB_SHOWN_MAX, s->session_id);
        }
    } else {
        warn_lease_keys(c, s);
    }
}
