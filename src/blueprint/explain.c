#include "blueprint/explain_parts.h"

static enum gb_explain_source source_of(int64_t written, bool baseline,
                                        enum gb_explain_source other)
{
    if (written > 0) return GB_EXPLAIN_WRITTEN;
    return baseline ? GB_EXPLAIN_BASELINE : other;
}

void gb_explain_cadence(const struct gb_lease_plan *plan,
                        struct gb_explain_value out[GB_EXPLAIN_VALUES])
{
    static const struct gb_bp_route_session nothing = {0};
    const struct gb_bp_route_session *s = plan->route == NULL ? &nothing : &plan->route->session;
    const struct gb_lease_cadence *c = &plan->cadence;
    bool ha = c->ha_baseline;
    const struct gb_explain_value values[GB_EXPLAIN_VALUES] = {
        {"lease_ttl", c->ttl_ns, source_of(s->lease_ttl.ns, ha, GB_EXPLAIN_DEFAULT)},
        {"max_renew_fails", c->fails,
         source_of(s->max_renew_fails.given ? c->fails : 0, ha, GB_EXPLAIN_DEFAULT)},
        {"renew_interval", c->renew_ns, source_of(s->renew_interval.ns, ha, GB_EXPLAIN_DERIVED)},
        {"lease_renew_jitter", c->jitter_ns,
         c->fit == GB_CADENCE_SHED
             ? GB_EXPLAIN_SHORTENED
             : source_of(s->lease_renew_jitter.ns, ha,
                         s->renew_interval.ns > 0 ? GB_EXPLAIN_DEFAULT : GB_EXPLAIN_DERIVED)},
        {"renew_call_timeout", c->call_ns,
         source_of(s->renew_call_timeout.ns, ha, GB_EXPLAIN_DERIVED)},
        {"acquire_poll_interval", c->poll_ns,
         source_of(s->acquire_poll_interval.ns, false, GB_EXPLAIN_DERIVED)},
        {"step_down_grace", c->grace_ns,
         c->grace_ns < c->asked_grace_ns
             ? GB_EXPLAIN_SHORTENED
             : source_of(s->step_down_grace.ns, ha, GB_EXPLAIN_DEFAULT)},
    };
    memcpy(out, values, sizeof values);
}

/* The products were checked where the sum was. */
static void add(struct gb_explain_sum *s, const char *name, int64_t count, int64_t each_ns)
{
    s->terms[s->count++] = (struct gb_explain_term){
        .name = name,
        .count = count,
        .each_ns = each_ns,
        .ns = gb_mul_sat_i64(count, each_ns),
    };
}

struct gb_explain_sum gb_explain_activation(const struct gb_lease_plan *plan)
{
    const struct gb_bp_mqtt_session *m = &plan->session->mqtt;
    struct gb_explain_sum s = {.total_ns = plan->terms.activation_ns};
    if (s.total_ns == 0) return s;
    add(&s, "connect_timeout", 2, m->connect_timeout.ns);
    add(&s, "reconcile_timeout", 4, m->reconcile_timeout.ns);
    add(&s, "unmatched_grace", 2, m->unmatched_grace.ns);
    return s;
}

struct gb_explain_sum gb_explain_death(const struct gb_lease_plan *plan)
{
    struct gb_explain_sum s = {.total_ns = plan->death.total_ns};
    add(&s, "lease_ttl", 1, plan->terms.ttl_ns);
    add(&s, "longest poll", 2, plan->death.max_poll_ns);
    add(&s, "renew_call_timeout", plan->death.calls, plan->terms.call_ns);
    add(&s, "activation", 1, plan->terms.activation_ns);
    add(&s, "startup_allowance", 1, plan->terms.startup_ns);
    return s;
}

struct gb_explain_sum gb_explain_path(const struct gb_lease_plan *plan)
{
    struct gb_explain_sum s = {.total_ns = plan->path.total_ns};
    add(&s, "broker_health_step_down", 1, plan->terms.step_down_ns);
    add(&s, "renewal with jitter", 1, plan->path.tick_ns);
    add(&s, "close or release", 2, plan->path.closes_ns / 2);
    add(&s, "step_down_grace", 1, plan->terms.grace_ns);
    add(&s, "longest poll", 2, plan->path.polls_ns / 2);
    add(&s, "renew_call_timeout", 4, plan->terms.call_ns);
    add(&s, "activation", 1, plan->terms.activation_ns);
    add(&s, "startup_allowance", 1, plan->terms.startup_ns);
    return s;
}

enum gb_explain_connect gb_explain_connect(const struct gb_bp_session *session,
                                           const struct gb_lease_plan *plan)
{
    if (!session->in_use) return GB_EXPLAIN_NEVER;
    if (plan == NULL || !plan->connect_after_lease) return GB_EXPLAIN_AT_START;
    return GB_EXPLAIN_AFTER_LEASE;
}

const char *gb_explain_mode(const struct gb_bp_session *session)
{
    static const char *const names[] = {[GB_BP_EPHEMERAL] = "ephemeral",
                                        [GB_BP_PERSISTENT] = "persistent",
                                        [GB_BP_EXCLUSIVE] = "exclusive"};
    return names[session->session_mode.value];
}
