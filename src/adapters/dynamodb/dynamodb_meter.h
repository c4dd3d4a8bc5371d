#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_METER_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_METER_H

#include "adapters/dynamodb/dynamodb_table.h"

/* Read and write units from AWS's published rules, to set beside what an endpoint reports. A write
 * costs a unit for each KB begun of the larger of the items before and after it, twice that in a
 * transaction; each index a write for an entry that comes, goes or changes and two for one whose
 * key changes, never doubled; a failed condition as if it had held, but for the indexes. A read
 * costs a unit for each 4 KB begun, half as much when it may be stale, twice as much in a
 * transaction.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: an item that is none. */

enum { GB_DYNAMODB_UNIT = 1000 }; /* all figures are thousandths: reads come in halves */

struct gb_dynamodb_units {
    uint64_t table;
    uint64_t index[GB_DYNAMODB_INDEXES_MAX]; /* in the order of the table's indexes */
    uint64_t total;
};

/* The write that made `after` of `before`; empty views for an item that was or is not there. Adds
 * to `out`. Index entries with projection INCLUDE are taken for whole items. */
struct gb_err gb_dynamodb_meter_write(const struct gb_dynamodb_table *table, struct gb_bytes before,
                                      struct gb_bytes after, bool in_transaction,
                                      struct gb_dynamodb_units *out);
/* A write whose condition failed, which costs by the larger of the item that is there and the one
 * that was to be; or a condition check, where `wanted` is empty. Adds to `out`. */
struct gb_err gb_dynamodb_meter_check(struct gb_bytes there, struct gb_bytes wanted,
                                      bool in_transaction, struct gb_dynamodb_units *out);

enum gb_dynamodb_read { GB_DYNAMODB_EVENTUAL, GB_DYNAMODB_CONSISTENT, GB_DYNAMODB_TRANSACTED };
/* `bytes`: of the item, or of all items that a Query or Scan passed, filtered ones included. */
uint64_t gb_dynamodb_meter_read(uint64_t bytes, enum gb_dynamodb_read read);

#endif
