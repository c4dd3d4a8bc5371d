#ifndef GB_APP_LEASE_LOG_H
#define GB_APP_LEASE_LOG_H

#include "blueprint/blueprint.h"

/* INFO `worst-case failover budget` for each lease-managed session, in the order of ids (spec 06
 * §9.1). Durations as in the document; a budget without a value is `unknown`.
 * Owns:   nothing.
 * Thread: any.
 * Errors: GB_UNAVAILABLE: out of memory. */
struct gb_err gb_lease_log(const struct gb_blueprint *b);

#endif
