#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_PARTS_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_PARTS_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "base/map.h"

/* The client's inside: what it counts (dynamodb_usage.c) beside what it does (dynamodb_client.c).
 * Owns:   a ledger owns its series and the texts in them; gb_dynamodb_ledger_deinit accepts zeroed
 *         memory.
 * Thread: loop thread only.
 * Errors: none; what can't be kept is counted in `lost`. */
struct gb_dynamodb_ledger {
    struct gb_map series; /* of struct gb_dynamodb_usage, by action, table and index */
    uint64_t lost;
};
void gb_dynamodb_ledger_deinit(struct gb_dynamodb_ledger *l);
/* A call that is about to end, with its answer. */
void gb_dynamodb_ledger_add(struct gb_dynamodb_ledger *l, const struct gb_dynamodb_call *call,
                            bool failed);
void gb_dynamodb_ledger_visit(const struct gb_dynamodb_ledger *l, gb_dynamodb_usage_fn *visit,
                              void *arg);
const struct gb_dynamodb_ledger *gb_dynamodb_ledger_of(const struct gb_dynamodb_client *c);

#endif
