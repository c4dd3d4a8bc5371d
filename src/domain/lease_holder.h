#ifndef GB_DOMAIN_LEASE_HOLDER_H
#define GB_DOMAIN_LEASE_HOLDER_H

#include "domain/lease_row.h"

/* Who holds a lease, as a copy that outlives the row it was read from.
 * Owns:   its texts; gb_lease_holder_deinit accepts zeroed memory and leaves it zeroed.
 * Thread: one at a time.
 * Errors: GB_UNAVAILABLE (out of memory); the holder is empty then. */

struct gb_lease_endpoint { /* capability -> URL of the holder (spec 06 §13) */
    struct gb_bytes capability, url;
};
struct gb_lease_holder { /* empty owner: absent or released */
    char *owner;         /* terminated; NULL: nothing was read */
    uint64_t version;
    int64_t acquired_ms, renewed_ms, expires_ms;
    struct gb_lease_endpoint *endpoints;
    size_t endpoint_count;
    /* Takeover evidence (spec 06 §6.1); 0 where the store needs no observation. */
    int64_t observed_ns, required_ns;
};
/* What it held before is released. */
struct gb_err gb_lease_holder_set(struct gb_lease_holder *h, const struct gb_lease_row *row,
                                  const struct gb_lease_endpoint *endpoints, size_t count);
void gb_lease_holder_deinit(struct gb_lease_holder *h);

#endif
