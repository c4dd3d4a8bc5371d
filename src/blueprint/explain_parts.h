#ifndef GB_BLUEPRINT_EXPLAIN_PARTS_H
#define GB_BLUEPRINT_EXPLAIN_PARTS_H

#include "blueprint/explain.h"
#include "blueprint/lease_plan.h"

/* What both forms of the explanation say, in their order (explain*.c only).
 * Owns:   nothing; plain values, names are constant.
 * Thread: any. Pure.
 * Errors: none. */

enum gb_explain_source {
    GB_EXPLAIN_WRITTEN = 0,
    GB_EXPLAIN_DERIVED,
    GB_EXPLAIN_DEFAULT,
    GB_EXPLAIN_BASELINE, /* of a cluster that writes neither lease_ttl nor renew_interval */
    GB_EXPLAIN_SHORTENED,
};

struct gb_explain_value {
    const char *name;
    int64_t value; /* ns, but for max_renew_fails */
    enum gb_explain_source source;
};
enum { GB_EXPLAIN_VALUES = 7, GB_EXPLAIN_FAILS = 1 };

/* One term: count * each_ns. */
struct gb_explain_term {
    const char *name;
    int64_t count, each_ns, ns;
};
enum { GB_EXPLAIN_TERMS = 8 };
struct gb_explain_sum {
    struct gb_explain_term terms[GB_EXPLAIN_TERMS];
    size_t count;
    int64_t total_ns;
};

void gb_explain_cadence(const struct gb_lease_plan *plan,
                        struct gb_explain_value out[GB_EXPLAIN_VALUES]);
struct gb_explain_sum gb_explain_activation(const struct gb_lease_plan *plan);
/* Only of budgets that have a value. */
struct gb_explain_sum gb_explain_death(const struct gb_lease_plan *plan);
struct gb_explain_sum gb_explain_path(const struct gb_lease_plan *plan);

enum gb_explain_connect {
    GB_EXPLAIN_NEVER = 0, /* no route uses the session */
    GB_EXPLAIN_AT_START,
    GB_EXPLAIN_AFTER_LEASE,
};
/* `plan` NULL: not lease-managed. */
enum gb_explain_connect gb_explain_connect(const struct gb_bp_session *session,
                                           const struct gb_lease_plan *plan);
const char *gb_explain_mode(const struct gb_bp_session *session);

#endif
