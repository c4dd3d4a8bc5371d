#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_H

#include "adapters/dynamodb/dynamodb_client.h"
#include "base/metrics.h"
#include "domain/token.h"
#include "ports/outbox.h"

/* Outbox in a DynamoDB table that instances share (spec 05 §9): success is crash-durable; claims of
 * a dead process are taken over by version or, at the same version, once they are older than
 * `stale_claim_ns`.
 *
 * While this process `holds` a partition, its records go a way that costs a fraction: they are
 * stored as claimed by it and enter no index (docs/decisions/0623). All others, and whatever of
 * these its process does not end itself, are rows of spec 05 §9.4. Without `holds` the rows of a
 * process that had it are not looked for.
 * Owns:   borrows reactor, client, metrics and the arguments of functions; the rest of the cfg is
 *         copied.
 * Thread: loop thread only.
 * Errors: gb_dynamodb_outbox_new: GB_UNAVAILABLE. Calls: as the port says, and the client's codes;
 *         a call without a deadline has 30 s. `queue_max` calls pending: GB_UNAVAILABLE. A persist
 *         is record by record: an error may leave some of them stored. A claim skips rows that
 *         can't be read and answers GB_INVALID_OUTBOX_RECORD only when it found no other
 *         (docs/decisions/0203). Record ids are taken as unique. */
struct gb_dynamodb_outbox_cfg {
    struct gb_reactor *reactor;
    struct gb_dynamodb_client *client;
    const char *table;
    int64_t stale_claim_ns;        /* <= 0: by version only */
    int64_t compaction_grace_ns;   /* that ended records stay; 0 = 1 h */
    size_t queue_max;              /* calls pending; 0 = 16384 */
    struct gb_metrics *metrics;    /* NULL: none */
    int64_t (*wall_ms)(void *arg); /* clock of the rows; NULL: the reactor's */
    void *clock_arg;
    /* The authority that this process has over a partition at this moment; asked for each record.
     * The owner's text is valid until the store's call returns. NULL: none, ever. */
    bool (*holds)(void *arg, struct gb_bytes partition, struct gb_token *out);
    void *holds_arg;
    size_t direct_max; /* records in memory that go the cheap way; 0 = 8192 */
    /* After so long under a new token no put of a former owner can be under way: keyed records may
     * go the cheap way then. 0 = 60 s, a call's 30 s twice. */
    int64_t keyed_after_ns;
};
struct gb_err gb_dynamodb_outbox_new(const struct gb_dynamodb_outbox_cfg *cfg,
                                     struct gb_outbox **out);

#endif
