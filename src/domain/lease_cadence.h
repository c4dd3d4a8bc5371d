#ifndef GB_DOMAIN_LEASE_CADENCE_H
#define GB_DOMAIN_LEASE_CADENCE_H

#include "base/duration.h"

/* The resolved lease cadence (spec 06 §4): one function for the validator, the explanation and the
 * lease manager.
 * Owns:   nothing; plain values.
 * Thread: any. Pure.
 * Errors: none here; `fit` GB_CADENCE_CUT is a refusal of the validator (V40), GB_CADENCE_SHED a
 *         warning. No input overflows: what 64 bits can't hold is GB_CADENCE_NO_SPAN. */

/* As written; zero or less: not written. */
struct gb_lease_settings {
    bool clustered; /* the HA baseline applies when neither the TTL nor the interval is written */
    int64_t ttl_ns, renew_ns, jitter_ns, call_ns, poll_ns, grace_ns;
    int64_t fails;
};

enum { GB_CADENCE_NO_SPAN = -1 }; /* the span is longer than 2^63-1 ns */

enum gb_cadence_fit {
    GB_CADENCE_FITS = 0,
    GB_CADENCE_SHED, /* only the jitter was shortened */
    GB_CADENCE_CUT,  /* the interval or the call timeout was */
};

struct gb_lease_cadence {
    bool ha_baseline;
    int64_t ttl_ns, renew_ns, jitter_ns, call_ns, poll_ns, grace_ns;
    int64_t fails;
    int64_t span_ns; /* the longest that `fails` renewals in a row take */
    enum gb_cadence_fit fit;
    /* What the clamp found. */
    int64_t asked_renew_ns, asked_jitter_ns, asked_call_ns, asked_span_ns;
    int64_t asked_grace_ns; /* a grace of lease_ttl or more becomes lease_ttl / 2 */
};

struct gb_lease_cadence gb_lease_cadence(const struct gb_lease_settings *written);

#endif
