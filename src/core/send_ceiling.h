#ifndef GB_CORE_SEND_CEILING_H
#define GB_CORE_SEND_CEILING_H

#include "domain/policy.h"

/* How long a sender may ignore its deadline before it counts as hung (spec 02 §6.1):
 * send_timeout + min(send_timeout, 5 s).
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: none; saturates. */
static inline uint64_t gb_send_ceiling_ns(const struct gb_policy *p)
{
    int64_t grace_ns = p->send_timeout_ns < 5 * GB_SEC ? p->send_timeout_ns : 5 * GB_SEC;
    return (uint64_t)gb_add_sat_i64(p->send_timeout_ns, grace_ns);
}

#endif
