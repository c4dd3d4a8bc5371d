#ifndef GB_DOMAIN_FAILOVER_BUDGET_H
#define GB_DOMAIN_FAILOVER_BUDGET_H

#include "base/duration.h"
#include "base/err.h"

/* The worst-case failover budget (spec 06 §9): from the detection of a failure until a successor
 * serves. Every term by name, so that it can be shown; it admits an objective and proves no
 * achieved time.
 * Owns:   nothing; plain values.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG with the reason: a term that is not positive, an unknown activation, a
 *         sum or product beyond 2^63-1 ns. Results are untouched then. */

struct gb_failover_terms {
    /* The resolved cadence. */
    int64_t ttl_ns, renew_ns, jitter_ns, call_ns, poll_ns, grace_ns;
    int64_t activation_ns; /* 0: unknown */
    int64_t startup_ns;    /* startup_allowance, >= 0 */
    int64_t step_down_ns;  /* broker_health_step_down; only for the broker path, > 0 */
};

/* Spec 06 §9.1; the sum is ttl + polls + calls_ns + activation + startup. */
struct gb_owner_death {
    int64_t min_poll_ns, max_poll_ns;
    int64_t calls;    /* 1 + ceil(ttl / min_poll) */
    int64_t polls_ns; /* 2 * max_poll */
    int64_t calls_ns; /* calls * call */
    int64_t total_ns;
};
struct gb_err gb_failover_owner_death(const struct gb_failover_terms *terms,
                                      struct gb_owner_death *out);

/* Spec 06 §9.2; the sum is step_down + tick + closes + grace + polls + calls_ns + activation +
 * startup. */
struct gb_broker_path {
    int64_t tick_ns;   /* renew + jitter / 2 */
    int64_t closes_ns; /* 2 * min(5s, grace): closing the source, releasing */
    int64_t polls_ns;  /* 2 * max_poll */
    int64_t calls_ns;  /* 4 * call */
    int64_t total_ns;
};
struct gb_err gb_failover_broker_path(const struct gb_failover_terms *terms,
                                      struct gb_broker_path *out);

#endif
