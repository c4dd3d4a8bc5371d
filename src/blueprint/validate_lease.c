#include "base/map.h"
#include "blueprint/cadence.h"
#include "blueprint/validate.h"

/* The lease settings of routes[].session: V40-V43, W2, P3, P5 (spec 01 §4, §5). */

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

void gb_validate_lease(struct gb_check *c, const struct gb_bp_route_session *s)
{
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

static bool same_lease(const struct gb_bp_route_session *a, const struct gb_bp_route_session *b,
                       bool clustered)
{
    struct gb_cadence x = gb_blueprint_cadence(a, clustered);
    struct gb_cadence y = gb_blueprint_cadence(b, clustered);
    return x.ttl_ns == y.ttl_ns && x.renew_ns == y.renew_ns && x.jitter_ns == y.jitter_ns &&
           x.call_ns == y.call_ns && x.poll_ns == y.poll_ns && x.grace_ns == y.grace_ns &&
           x.fails == y.fails && a->failover_slo.ns == b->failover_slo.ns &&
           a->startup_allowance.ns == b->startup_allowance.ns &&
           a->broker_health_step_down.given == b->broker_health_step_down.given &&
           a->broker_health_step_down.ns == b->broker_health_step_down.ns &&
           a->connect_after_lease.value == b->connect_after_lease.value;
}

/* P3: a session has one lease, so all its users must agree. */
static void check_agreement(struct gb_check *c, struct gb_map *seen, struct gb_bp_route *r)
{
    if (r->session.session == NULL) return;
    struct gb_bytes id = gb_bytes_c(r->session.session_id);
    const struct gb_bp_route *other = gb_map_get(seen, id);
    if (other == NULL) {
        if (gb_failed(gb_map_put(seen, id, r))) c->findings->failed = true;
    } else if (!same_lease(&other->session, &r->session, gb_is_clustered(c->b))) {
        gb_check_error(c, GB_RULE_P3, "session",
                       "session \"%.*s\": lease settings differ from those of route \"%.*s\"; all "
                       "users of a session must agree",
                       GB_SHOWN_MAX, r->session.session_id, GB_SHOWN_MAX,
                       other->id == NULL ? "" : other->id);
    }
}

void gb_validate_leases(struct gb_check *c)
{
    struct gb_map sessions = {0};
    for (size_t i = 0; i < c->b->route_count; i++) {
        struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        check_agreement(c, &sessions, r);
    }
    gb_map_deinit(&sessions);
    gb_check_leave(c);
}
