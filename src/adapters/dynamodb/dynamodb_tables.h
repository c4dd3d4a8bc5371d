#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_TABLES_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_TABLES_H

#include "adapters/dynamodb/dynamodb_table.h"

/* The tables of the stores (spec 05 §9.2) as data, and the comparison of a table with its
 * definition (§9.3).
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG: the table has another shape; the text names it, what was expected and
 *         what is there. */

enum gb_dynamodb_role {
    GB_DYNAMODB_LEASE = 0,
    GB_DYNAMODB_OUTBOX,
    GB_DYNAMODB_DLQ,
    GB_DYNAMODB_SUBSCRIPTIONS,
    GB_DYNAMODB_ROLES,
};
const struct gb_dynamodb_table *gb_dynamodb_table_of(enum gb_dynamodb_role role);

/* Keys and required indexes exactly; other indexes are tolerated. */
struct gb_err gb_dynamodb_table_check(enum gb_dynamodb_role role, const char *name,
                                      const struct gb_dynamodb_table *actual);

#endif
