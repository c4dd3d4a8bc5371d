#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_DLQ_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_DLQ_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "ports/dlq.h"

/* Dead letters in a DynamoDB table that instances share (spec 05 §3, §9).
 * Owns:   borrows reactor and client; the table's name is copied.
 * Thread: loop thread only.
 * Errors: gb_dynamodb_dlq_new: GB_UNAVAILABLE. Calls: as the port says, and the client's codes; a
 *         call without a deadline has 30 s. A row that can't be read: get answers
 *         GB_INVALID_OUTBOX_RECORD, list leaves it out and logs it. A removal that fails has
 *         counted what it removed. Without route and category a call reads the whole table, at most
 *         `max_scan_pages` of it, and logs when that was not all: then a list need not begin with
 *         the oldest, a count is too low, and the next removal without limit goes on from there. A
 *         limit above 10000 is 10000. */
struct gb_dynamodb_dlq_cfg {
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    const char *table;
    int64_t retention_ns;   /* > 0: the service deletes entries that failed longer ago */
    int64_t max_scan_pages; /* 0 = 100, negative: no bound */
    size_t queue_max;       /* calls pending; 0 = 1024 */
};
struct gb_err gb_dynamodb_dlq_new(const struct gb_dynamodb_dlq_cfg *cfg, struct gb_dlq **out);

#endif
