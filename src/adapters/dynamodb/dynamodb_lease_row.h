#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_LEASE_ROW_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_LEASE_ROW_H

#include "adapters/dynamodb/dynamodb_call.h"
#include "domain/lease_holder.h"

/* Lease rows as items (spec 06 §5, 05 §9.4).
 * Owns:   a read row is views into the item and `scratch`.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG naming table, lease and what is wrong; GB_UNAVAILABLE. */

enum { GB_DLEASE_ENDPOINTS_MAX = 64 };

struct gb_dlease_row {
    struct gb_lease_row row;
    struct gb_lease_endpoint endpoints[GB_DLEASE_ENDPOINTS_MAX];
    size_t endpoint_count;
};
struct gb_err gb_dlease_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                                 struct gb_bytes lease_id, struct gb_str *scratch,
                                 struct gb_dlease_row *out);
/* The key attribute of the item that is open. */
void gb_dlease_write_key(struct gb_json_writer *w, struct gb_bytes lease_id);
/* Attribute `name` (":endpoints"); nothing for none. */
void gb_dlease_write_endpoints(struct gb_json_writer *w, const char *name,
                               const struct gb_lease_endpoint *endpoints, size_t count);

#endif
