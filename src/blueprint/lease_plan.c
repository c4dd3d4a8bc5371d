#include "blueprint/lease_plan.h"

#include <stdlib.h>

#include "blueprint/validate.h"

struct gb_lease_cadence gb_blueprint_cadence(const struct gb_bp_route_session *session,
                                             bool clustered)
{
    const struct gb_lease_settings written = {
        .clustered = clustered,
        .ttl_ns = session->lease_ttl.ns,
        .renew_ns = session->renew_interval.ns,
        .jitter_ns = session->lease_renew_jitter.ns,
        .call_ns = session->renew_call_timeout.ns,
        .poll_ns = session->acquire_poll_interval.ns,
        .grace_ns = session->step_down_grace.ns,
        .fails = session->max_renew_fails.value,
    };
    return gb_lease_cadence(&written);
}

bool gb_blueprint_is_lease_managed(const struct gb_blueprint *b,
                                   const struct gb_bp_session *session)
{
    bool block = session->lease_route != NULL;
    if (session->session_mode.value == GB_BP_EXCLUSIVE) return block || session->named_by_binding;
    return block && gb_has_store(b, GB_BP_LEASE);
}

bool gb_blueprint_lease_plan(const struct gb_blueprint *b, const struct gb_bp_session *session,
                             struct gb_lease_plan *out)
{
    static const struct gb_bp_route_session defaults = {.connect_after_lease = {.value = true}};
    if (!gb_blueprint_is_lease_managed(b, session)) return false;
    struct gb_lease_plan p = {.session = session, .route = session->lease_route};
    const struct gb_bp_route_session *s = p.route == NULL ? &defaults : &p.route->session;
    p.cadence = gb_blueprint_cadence(s, gb_is_clustered(b));
    p.terms = (struct gb_failover_terms){
        .ttl_ns = p.cadence.ttl_ns,
        .renew_ns = p.cadence.renew_ns,
        .jitter_ns = p.cadence.jitter_ns,
        .call_ns = p.cadence.call_ns,
        .poll_ns = p.cadence.poll_ns,
        .grace_ns = p.cadence.grace_ns,
        .activation_ns = gb_blueprint_activation_ns(session),
        .startup_ns = s->startup_allowance.ns,
        .step_down_ns = s->broker_health_step_down.ns,
    };
    p.connect_after_lease = s->connect_after_lease.value || session->carries_a_binding;
    p.step_down_decided = s->broker_health_step_down.given;
    p.failover_slo_ns = s->failover_slo.ns;
    p.death_err = gb_failover_owner_death(&p.terms, &p.death);
    if (p.terms.step_down_ns > 0) p.path_err = gb_failover_broker_path(&p.terms, &p.path);
    *out = p;
    return true;
}

static int by_id(const void *left, const void *right)
{
    const struct gb_bp_session *const *a = left;
    const struct gb_bp_session *const *b = right;
    return strcmp((*a)->id, (*b)->id);
}

const struct gb_bp_session **gb_blueprint_sessions_by_id(const struct gb_blueprint *b)
{
    const struct gb_bp_session **list = calloc(b->session_count + 1, sizeof(*list));
    if (list == NULL) return NULL;
    for (size_t i = 0; i < b->session_count; i++) list[i] = &b->sessions[i];
    qsort(list, b->session_count, sizeof(*list), by_id);
    return list;
}
