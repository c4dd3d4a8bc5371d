#ifndef GB_BLUEPRINT_CADENCE_H
#define GB_BLUEPRINT_CADENCE_H

#include "blueprint/blueprint.h"

/* The resolved lease cadence (spec 01 §4): one implementation for the validator and the lease
 * manager.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: `cut` says that a written cadence does not fit into the TTL (V40). */

struct gb_cadence {
    int64_t ttl_ns, renew_ns, jitter_ns, call_ns, poll_ns, grace_ns;
    int64_t fails;
    int64_t span_ns; /* before trimming */
    bool trimmed;    /* the jitter alone was shortened: a warning */
    bool cut;        /* renew or call would have to be shortened: an error */
};

struct gb_cadence gb_blueprint_cadence(const struct gb_bp_route_session *session, bool clustered);

#endif
