#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_SUBSCRIPTIONS_ROW_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_SUBSCRIPTIONS_ROW_H

#include "adapters/dynamodb/dynamodb_item.h"
#include "ports/subscriptions.h"

/* Managed-subscription rows as lists of filters (spec 05 §5, §9.4).
 * Owns:   the list owns its filters (gb_filter_list_free).
 * Thread: any. Pure.
 * Errors: GB_NOT_FOUND: no baseline; GB_INVALID_CONFIG names table, identity and what is wrong;
 *         GB_UNAVAILABLE (out of memory). */

struct gb_err gb_dsub_no_baseline(const char *identity);
/* `item` may be empty: there is none. `out` is zeroed before; sorted, each filter once; empty on
 * failure. */
struct gb_err gb_dsub_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               const char *identity, struct gb_str *scratch,
                               struct gb_filter_list *out);

#endif
