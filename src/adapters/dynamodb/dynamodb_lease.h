#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_LEASE_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_LEASE_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "ports/lease.h"

/* Leases in a DynamoDB table that instances share (spec 06 §5, §6; 05 §9.5). Every read is
 * consistent, every write conditional. A lease of another owner is taken over only once its row
 * was seen unchanged for its own duration (domain/takeover.h); what this process saw is kept here
 * for each lease id.
 * Owns:   borrows reactor and client; the rest of the cfg is copied.
 * Thread: loop thread only.
 * Errors: gb_dynamodb_lease_new: GB_UNAVAILABLE. Calls: as the port says, and the client's codes;
 *         a call without a deadline has 30 s. */
struct gb_dynamodb_lease_cfg {
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    const char *table;
    size_t queue_max;               /* calls pending; 0 = 1024 */
    int64_t (*wall_ms)(void *arg);  /* clock of the rows; NULL: the reactor's */
    uint64_t (*mono_ns)(void *arg); /* clock of observations; NULL: the reactor's */
    void *clock_arg;
};
struct gb_err gb_dynamodb_lease_new(const struct gb_dynamodb_lease_cfg *cfg, struct gb_lease **out);

#endif
