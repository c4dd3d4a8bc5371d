#ifndef GB_DOMAIN_LEASE_ROW_H
#define GB_DOMAIN_LEASE_ROW_H

#include "base/bytes.h"
#include "base/digest.h"
#include "base/err.h"

/* A lease row as a value (spec 06 §5), and what makes one valid (§5.1).
 * Owns:   nothing; views of what was read.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG naming the lease and the rule. A corrupt row is never repaired, seized
 *         or taken for a released one. */

#define GB_LEASE_VERSION_MAX (UINT64_MAX - 1) /* also of generations */

/* Takeover evidence: for how long the row was seen unchanged. */
struct gb_lease_evidence {
    struct gb_bytes fingerprint; /* of the row that it is about */
    int64_t elapsed_ns;
    uint64_t generation; /* 0: there is none */
};
struct gb_lease_row {
    struct gb_bytes key;   /* the lease id that the row is stored under */
    struct gb_bytes owner; /* token; empty: released */
    uint64_t version;
    int64_t acquired_ms, renewed_ms, expires_ms;
    unsigned evidence_parts; /* of its three attributes, how many are there */
    struct gb_lease_evidence evidence;
};
static inline bool gb_lease_is_released(const struct gb_lease_row *row)
{
    return row->owner.size == 0;
}
struct gb_err gb_lease_row_check(const struct gb_lease_row *row, struct gb_bytes lease_id);
/* SHA-256 of key, owner, version and both times, each with its length. */
void gb_lease_fingerprint(const struct gb_lease_row *row, char out[GB_SHA256_HEX]);
/* How long an active row has to be seen unchanged before another instance may take it: its own
 * duration, which one host wrote, so that no two clocks are compared. */
int64_t gb_lease_required_ns(const struct gb_lease_row *row);

#endif
