#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_SUBSCRIPTIONS_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_SUBSCRIPTIONS_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "ports/subscriptions.h"

/* Managed-subscription history in a DynamoDB table (spec 05 §5, §9.4): one item a broker session,
 * changed by single atomic updates.
 * Owns:   borrows reactor and client; the table's name is copied.
 * Thread: loop thread only.
 * Errors: gb_dynamodb_subscriptions_new: GB_UNAVAILABLE. Calls: as the port says, and the client's
 *         codes; GB_INVALID_CONFIG also names a damaged item. A call without a deadline has 30
 *         s. */
struct gb_dynamodb_subscriptions_cfg {
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    const char *table;
    size_t queue_max; /* calls pending; 0 = 1024 */
};
struct gb_err gb_dynamodb_subscriptions_new(const struct gb_dynamodb_subscriptions_cfg *cfg,
                                            struct gb_subscriptions **out);

#endif
