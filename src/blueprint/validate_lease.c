#include <inttypes.h>
#include <stdio.h>

#include "blueprint/lease_plan.h"
#include "blueprint/validate.h"

/* The lease settings of routes[].session: V40, V41, V43, W2, P1-P3, P5 (spec 01 §4, §5). */

static const int64_t ttl_least_ns = 5 * GB_SEC;
static const int64_t interval_least_ns = 250 * GB_MS;

enum { LEASE_KEYS = 11 };

struct lease_key {
    const char *key;
    bool given, broken;
};

static void list_keys(const struct gb_bp_route_session *s, struct lease_key out[LEASE_KEYS])
{
    const struct lease_key keys[LEASE_KEYS] = {
        {"session.lease_ttl", s->lease_ttl.given, s->lease_ttl.broken},
        {"session.renew_interval", s->renew_interval.given, s->renew_interval.broken},
        {"session.lease_renew_jitter", s->lease_renew_jitter.given, s->lease_renew_jitter.broken},
        {"session.renew_call_timeout", s->renew_call_timeout.given, s->renew_call_timeout.broken},
        {"session.acquire_poll_interval", s->acquire_poll_interval.given,
         s->acquire_poll_interval.broken},
        {"session.max_renew_fails", s->max_renew_fails.given, s->max_renew_fails.broken},
        {"session.step_down_grace", s->step_down_grace.given, s->step_down_grace.broken},
        {"session.connect_after_lease", s->connect_after_lease.given,
         s->connect_after_lease.broken},
        {"session.failover_slo", s->failover_slo.given, s->failover_slo.broken},
        {"session.startup_allowance", s->startup_allowance.given, s->startup_allowance.broken},
        {"session.broker_health_step_down", s->broker_health_step_down.given,
         s->broker_health_step_down.broken},
    };
    memcpy(out, keys, sizeof keys);
}

/* A key that could not be decoded: the decoder has spoken, and rules on the rest would judge a
 * cadence that nobody wrote. */
static bool block_is_broken(const struct gb_bp_route_session *s)
{
    struct lease_key keys[LEASE_KEYS];
    list_keys(s, keys);
    for (size_t i = 0; i < LEASE_KEYS; i++) {
        if (keys[i].broken) return true;
    }
    return false;
}

static bool session_is_broken(const struct gb_bp_session *s)
{
    const struct gb_bp_mqtt_session *m = &s->mqtt;
    return s->session_mode.broken || m->connect_timeout.broken || m->reconcile_timeout.broken ||
           m->unmatched_grace.broken;
}

/* Without deployment_mode nobody knows whether the HA baseline holds. */
static bool mode_is_broken(const struct gb_blueprint *b)
{
    return b->bridge.deployment_mode.broken;
}

static void check_minimum(struct gb_check *c, const char *key, int64_t value, int64_t least)
{
    if (value >= least) return;
    char shown[GB_DURATION_TEXT_MAX];
    char limit[GB_DURATION_TEXT_MAX];
    gb_duration_print(value, shown);
    gb_duration_print(least, limit);
    gb_check_error(c, GB_RULE_V41, key, "%s resolves to %s; at least %s is required, raise it", key,
                   shown, limit);
}

static bool is_too_short(const struct gb_lease_cadence *cadence)
{
    return cadence->ttl_ns < ttl_least_ns || cadence->renew_ns < interval_least_ns ||
           cadence->poll_ns < interval_least_ns;
}

static void refuse_cut(struct gb_check *c, const struct gb_lease_cadence *k)
{
    char ttl[GB_DURATION_TEXT_MAX];
    char span[GB_DURATION_TEXT_MAX] = "longer than any duration";
    char renew[2][GB_DURATION_TEXT_MAX];
    char call[2][GB_DURATION_TEXT_MAX];
    gb_duration_print(k->ttl_ns, ttl);
    if (k->asked_span_ns != GB_CADENCE_NO_SPAN) gb_duration_print(k->asked_span_ns, span);
    gb_duration_print(k->asked_renew_ns, renew[0]);
    gb_duration_print(k->renew_ns, renew[1]);
    gb_duration_print(k->asked_call_ns, call[0]);
    gb_duration_print(k->call_ns, call[1]);
    bool both = k->asked_renew_ns != k->renew_ns && k->asked_call_ns != k->call_ns;
    bool interval = k->asked_renew_ns != k->renew_ns;
    gb_check_error(
        c, GB_RULE_V40, "session.lease_ttl",
        "session.lease_ttl %s is too short: %" PRId64
        " renewals take %s; it would cut %s %s to %s%s%s%s%s; raise it, or lower them or "
        "max_renew_fails",
        ttl, k->fails, span, interval ? "renew_interval" : "renew_call_timeout",
        interval ? renew[0] : call[0], interval ? renew[1] : call[1],
        both ? ", renew_call_timeout " : "", both ? call[0] : "", both ? " to " : "",
        both ? call[1] : "");
}

static void warn_shed(struct gb_check *c, const struct gb_lease_cadence *k)
{
    char asked[GB_DURATION_TEXT_MAX];
    char jitter[GB_DURATION_TEXT_MAX];
    char ttl[GB_DURATION_TEXT_MAX];
    gb_duration_print(k->asked_jitter_ns, asked);
    gb_duration_print(k->jitter_ns, jitter);
    gb_duration_print(k->ttl_ns, ttl);
    gb_check_warning(
        c, GB_RULE_V40, "session.lease_renew_jitter",
        "session.lease_renew_jitter %s is shortened to %s, since %" PRId64
        " renewals have to fit into nine tenths of lease_ttl %s; write the shorter one",
        asked, jitter, k->fails, ttl);
}

/* V40, V41. */
static void check_cadence(struct gb_check *c, const struct gb_bp_route_session *s,
                          const struct gb_lease_cadence *cadence)
{
    if (cadence->fit == GB_CADENCE_CUT) refuse_cut(c, cadence);
    if (cadence->fit == GB_CADENCE_SHED) warn_shed(c, cadence);
    check_minimum(c, "session.lease_ttl", cadence->ttl_ns, ttl_least_ns);
    if (cadence->fit == GB_CADENCE_CUT) return; /* the rest would judge what the cut left */
    check_minimum(c, "session.renew_interval", cadence->renew_ns, interval_least_ns);
    if (s->acquire_poll_interval.ns == 0) return; /* derived from what was judged already */
    check_minimum(c, "session.acquire_poll_interval", cadence->poll_ns, interval_least_ns);
}

/* W2. */
static void check_activation(struct gb_check *c, const struct gb_bp_route_session *s,
                             const struct gb_lease_cadence *cadence)
{
    if (s->session == NULL || session_is_broken(s->session)) return;
    if (!s->connect_after_lease.value && !s->session->carries_a_binding) return;
    if (s->session->transport.value != GB_BP_MQTT) return;
    const struct gb_bp_mqtt_session *m = &s->session->mqtt;
    int64_t sum = gb_add_sat_i64(m->connect_timeout.ns, m->reconcile_timeout.ns);
    sum = gb_add_sat_i64(sum, cadence->renew_ns);
    sum = gb_add_sat_i64(sum, cadence->jitter_ns / 2);
    sum = gb_add_sat_i64(sum, cadence->call_ns);
    if (sum < cadence->ttl_ns) return;
    char shown[GB_DURATION_TEXT_MAX];
    char ttl[GB_DURATION_TEXT_MAX];
    gb_duration_print(sum, shown);
    gb_duration_print(cadence->ttl_ns, ttl);
    gb_check_warning(c, GB_RULE_W2, "session.lease_ttl",
                     "session.lease_ttl %s is not greater than %s, the time to connect, reconcile "
                     "and renew once; raise it, or lower connect_timeout and reconcile_timeout",
                     ttl, shown);
}

static void check_lease(struct gb_check *c, const struct gb_bp_route_session *s)
{
    struct gb_lease_cadence cadence = gb_blueprint_cadence(s, gb_is_clustered(c->b));
    check_cadence(c, s, &cadence);
    check_activation(c, s, &cadence);
    if (s->failover_slo.given && !s->broker_health_step_down.given) { /* V43 */
        char slo[GB_DURATION_TEXT_MAX];
        gb_duration_print(s->failover_slo.ns, slo);
        gb_check_error(c, GB_RULE_V43, "session.failover_slo",
                       "session.failover_slo %s needs broker_health_step_down to be decided: write "
                       "\"off\" or a duration",
                       slo);
    }
    bool overruled = s->session != NULL && s->session->carries_a_binding;
    if (overruled && !s->connect_after_lease.value) {
        gb_check_warning(c, GB_RULE_W5, "session.connect_after_lease",
                         "session.connect_after_lease: false has no effect, since a binding uses "
                         "session \"%.*s\"; remove it",
                         GB_SHOWN_MAX, s->session_id);
    }
}

/* Spec 02 §2.4: without a lease store the block is taken for its drain settings. */
static void warn_lease_keys(struct gb_check *c, const struct gb_bp_route_session *s)
{
    struct lease_key keys[LEASE_KEYS];
    list_keys(s, keys);
    for (size_t i = 0; i < LEASE_KEYS; i++) {
        if (!keys[i].given) continue;
        gb_check_warning(c, GB_RULE_P5, keys[i].key,
                         "%s has no effect: session \"%.*s\" is not exclusive and there is no "
                         "stores.lease; remove it",
                         keys[i].key, GB_SHOWN_MAX, s->session_id);
    }
}

void gb_validate_lease(struct gb_check *c, const struct gb_bp_route_session *s)
{
    if (block_is_broken(s) || mode_is_broken(c->b)) return;
    if (s->session == NULL || gb_blueprint_is_lease_managed(c->b, s->session)) {
        check_lease(c, s);
    } else {
        warn_lease_keys(c, s);
    }
    if (s->session == NULL || s->session->session_mode.value == GB_BP_EXCLUSIVE) return;
    if (!gb_has_store(c->b, GB_BP_LEASE) || session_is_broken(s->session)) return;
    gb_check_warning(c, GB_RULE_P5, "session.session_id",
                     "session \"%.*s\" is not exclusive; this block makes it lease-managed all the "
                     "same, write session_mode: exclusive if one owner is meant",
                     GB_SHOWN_MAX, s->session_id);
}

/* How much of a lease two blocks ask for; `why` names what differs. */
struct difference {
    const char *key;
    char values[2][GB_DURATION_TEXT_MAX];
};

static bool differ_ns(struct difference *d, const char *key, int64_t a, int64_t b)
{
    if (a == b) return false;
    d->key = key;
    gb_duration_print(a, d->values[0]);
    gb_duration_print(b, d->values[1]);
    return true;
}

static const char *word_of_bool(bool value)
{
    return value ? "true" : "false";
}

static bool differ_text(struct difference *d, const char *key, const char *a, const char *b)
{
    if (strcmp(a, b) == 0) return false;
    d->key = key;
    (void)snprintf(d->values[0], sizeof d->values[0], "%s", a);
    (void)snprintf(d->values[1], sizeof d->values[1], "%s", b);
    return true;
}

static void step_down_text(const struct gb_opt_ns *s, char out[GB_DURATION_TEXT_MAX])
{
    if (s->given && s->ns > 0) {
        gb_duration_print(s->ns, out);
    } else {
        (void)snprintf(out, GB_DURATION_TEXT_MAX, "%s", s->given ? "off" : "nothing");
    }
}

static bool differ(struct difference *d, const struct gb_bp_route_session *a,
                   const struct gb_bp_route_session *b, bool clustered)
{
    struct gb_lease_cadence x = gb_blueprint_cadence(a, clustered);
    struct gb_lease_cadence y = gb_blueprint_cadence(b, clustered);
    char fails[2][GB_DURATION_TEXT_MAX];
    char step_down[2][GB_DURATION_TEXT_MAX];
    (void)snprintf(fails[0], sizeof fails[0], "%" PRId64, x.fails);
    (void)snprintf(fails[1], sizeof fails[1], "%" PRId64, y.fails);
    step_down_text(&a->broker_health_step_down, step_down[0]);
    step_down_text(&b->broker_health_step_down, step_down[1]);
    return differ_ns(d, "lease_ttl", x.ttl_ns, y.ttl_ns) ||
           differ_text(d, "max_renew_fails", fails[0], fails[1]) ||
           differ_ns(d, "renew_interval", x.asked_renew_ns, y.asked_renew_ns) ||
           differ_ns(d, "lease_renew_jitter", x.asked_jitter_ns, y.asked_jitter_ns) ||
           differ_ns(d, "renew_call_timeout", x.asked_call_ns, y.asked_call_ns) ||
           differ_ns(d, "acquire_poll_interval", x.poll_ns, y.poll_ns) ||
           differ_ns(d, "step_down_grace", x.grace_ns, y.grace_ns) ||
           differ_text(d, "connect_after_lease", word_of_bool(a->connect_after_lease.value),
                       word_of_bool(b->connect_after_lease.value)) ||
           differ_ns(d, "failover_slo", a->failover_slo.ns, b->failover_slo.ns) ||
           differ_ns(d, "startup_allowance", a->startup_allowance.ns, b->startup_allowance.ns) ||
           differ_text(d, "broker_health_step_down", step_down[0], step_down[1]);
}

static void enter_session(struct gb_check *c, const struct gb_bp_session *s)
{
    gb_check_enter(c, "sessions", (size_t)(s - c->b->sessions), s->id, s->node);
}

/* P3: a session has one lease. Said at the session and in the order of ids, so that the order of
 * the routes changes nothing. */
static void check_agreement(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_session *s = r->session.session;
    if (s == NULL || s->lease_route == r || !gb_blueprint_is_lease_managed(c->b, s)) return;
    const struct gb_bp_route *other = s->lease_route;
    if (block_is_broken(&r->session) || block_is_broken(&other->session)) return;
    struct difference d = {0};
    if (!differ(&d, &other->session, &r->session, gb_is_clustered(c->b))) return;
    enter_session(c, s);
    gb_check_error(c, GB_RULE_P3, "id",
                   "routes \"%.*s\" and \"%.*s\" differ in session.%s: %s and %s; all users of a "
                   "session share its lease, write the same",
                   GB_SHOWN_MAX / 2, other->id == NULL ? "" : other->id, GB_SHOWN_MAX / 2,
                   r->id == NULL ? "" : r->id, d.key, d.values[0], d.values[1]);
}

static void term(struct gb_str *s, const char *name, int64_t ns)
{
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, shown);
    gb_str_appendf(s, "%s%s %s", s->size == 0 ? "" : " + ", name, shown);
}

/* The terms stand last: with ids of the longest kind the text is cut there. */
static void refuse_budget(struct gb_check *c, enum gb_rule rule, const struct gb_lease_plan *p,
                          int64_t total_ns)
{
    char total[GB_DURATION_TEXT_MAX];
    char slo[GB_DURATION_TEXT_MAX];
    char memory[GB_ERR_MESSAGE_MAX * 2];
    struct gb_str terms = gb_str_over(memory, sizeof memory);
    gb_duration_print(total_ns, total);
    gb_duration_print(p->failover_slo_ns, slo);
    if (rule == GB_RULE_P1) {
        term(&terms, "lease_ttl", p->terms.ttl_ns);
        term(&terms, "polls", p->death.polls_ns);
        term(&terms, "calls", p->death.calls_ns);
    } else {
        term(&terms, "broker_health_step_down", p->terms.step_down_ns);
        term(&terms, "renewal", p->path.tick_ns);
        term(&terms, "closing", gb_add_sat_i64(p->path.closes_ns, p->terms.grace_ns));
        term(&terms, "polls", p->path.polls_ns);
        term(&terms, "calls", p->path.calls_ns);
    }
    term(&terms, "activation", p->terms.activation_ns);
    if (p->terms.startup_ns > 0) term(&terms, "startup", p->terms.startup_ns);
    gb_check_error(c, rule, "session.failover_slo",
                   "budget %s of session \"%.*s\" exceeds declared "
                   "failover_slo %s; raise it, or lower %s",
                   total, GB_SHOWN_MAX / 2, p->session->id, slo, terms.failed ? "" : terms.data);
}

static void refuse_unknown(struct gb_check *c, enum gb_rule rule, const struct gb_lease_plan *p,
                           const struct gb_err *err)
{
    char slo[GB_DURATION_TEXT_MAX];
    gb_duration_print(p->failover_slo_ns, slo);
    gb_check_error(c, rule, "session.failover_slo",
                   "session.failover_slo %s of session \"%.*s\" can't be admitted, remove it: %s",
                   slo, GB_SHOWN_MAX / 2, p->session->id, err->message);
}

/* P1, P2. */
static void check_objective(struct gb_check *c, const struct gb_bp_session *s)
{
    struct gb_lease_plan p;
    if (session_is_broken(s) || !gb_blueprint_lease_plan(c->b, s, &p)) return;
    if (p.route == NULL || block_is_broken(&p.route->session) || p.failover_slo_ns == 0) return;
    if (p.cadence.fit == GB_CADENCE_CUT || is_too_short(&p.cadence)) return; /* V40, V41 spoke */
    gb_check_enter(c, "routes", (size_t)(p.route - c->b->routes), p.route->id, p.route->node);
    if (gb_failed(p.death_err)) {
        refuse_unknown(c, GB_RULE_P1, &p, &p.death_err);
    } else if (p.death.total_ns > p.failover_slo_ns) {
        refuse_budget(c, GB_RULE_P1, &p, p.death.total_ns);
    }
    if (p.terms.step_down_ns == 0) return;
    if (gb_failed(p.path_err) && !gb_failed(p.death_err)) {
        refuse_unknown(c, GB_RULE_P2, &p, &p.path_err);
    } else if (!gb_failed(p.path_err) && p.path.total_ns > p.failover_slo_ns) {
        refuse_budget(c, GB_RULE_P2, &p, p.path.total_ns);
    }
}

/* P5. */
static void check_owner(struct gb_check *c, const struct gb_bp_session *s)
{
    bool exclusive = s->session_mode.value == GB_BP_EXCLUSIVE;
    if (!exclusive || !s->in_use || c->unread || gb_blueprint_is_lease_managed(c->b, s)) return;
    enter_session(c, s);
    gb_check_error(c, GB_RULE_P5, "session_mode",
                   "session_mode: exclusive needs a lease, which nothing asks for; name session "
                   "\"%.*s\" in routes[].session.session_id",
                   GB_SHOWN_MAX, s->id == NULL ? "" : s->id);
}

void gb_validate_leases(struct gb_check *c)
{
    bool broken = mode_is_broken(c->b);
    for (size_t i = 0; i < c->b->route_count && !broken; i++) check_agreement(c, &c->b->routes[i]);
    for (size_t i = 0; i < c->b->session_count && !broken; i++) {
        check_owner(c, &c->b->sessions[i]);
        check_objective(c, &c->b->sessions[i]);
    }
    gb_check_leave(c);
}
