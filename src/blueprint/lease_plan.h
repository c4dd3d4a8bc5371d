#ifndef GB_BLUEPRINT_LEASE_PLAN_H
#define GB_BLUEPRINT_LEASE_PLAN_H

#include "blueprint/blueprint.h"
#include "domain/failover_budget.h"
#include "domain/lease_cadence.h"

/* What a document asks of the lease of a session, resolved: cadence, activation, both failover
 * budgets (spec 01 §1, §4, §5.4; 06 §4, §9).
 * Owns:   nothing; pointers into the blueprint.
 * Thread: any. Pure.
 * Errors: `death_err`, `path_err`: why a budget has no value. */

struct gb_lease_cadence gb_blueprint_cadence(const struct gb_bp_route_session *session,
                                             bool clustered);

struct gb_lease_plan {
    const struct gb_bp_session *session;
    /* The route of the least id whose block names the session; the others agree with it (P3). NULL:
     * only a binding names it, and the defaults hold. */
    const struct gb_bp_route *route;
    struct gb_lease_cadence cadence;
    struct gb_failover_terms terms; /* step_down_ns 0: undecided or off */
    bool connect_after_lease;
    bool step_down_decided;
    int64_t failover_slo_ns; /* 0: no objective */
    struct gb_owner_death death;
    struct gb_err death_err;
    struct gb_broker_path path; /* only where step_down_ns > 0 */
    struct gb_err path_err;
};

/* False when the session is not lease-managed: a block or a binding in use has to name it, and
 * unless it is exclusive, a block and a configured stores.lease (P5; spec 02 §2.4). */
bool gb_blueprint_is_lease_managed(const struct gb_blueprint *b,
                                   const struct gb_bp_session *session);
/* The same, with the plan. */
bool gb_blueprint_lease_plan(const struct gb_blueprint *b, const struct gb_bp_session *session,
                             struct gb_lease_plan *out);

/* In the order of their ids, as leases are judged and shown (spec 06 §9.1); NULL: out of memory.
 * Free with free(). */
const struct gb_bp_session **gb_blueprint_sessions_by_id(const struct gb_blueprint *b);

#endif
