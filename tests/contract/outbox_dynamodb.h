#ifndef GB_TESTS_CONTRACT_OUTBOX_DYNAMODB_H
#define GB_TESTS_CONTRACT_OUTBOX_DYNAMODB_H

#include "adapters/dynamodb/dynamodb_outbox.h"
#include "adapters/dynamodb/dynamodb_table.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"
#include "contract/outbox_contract.h"

/* The outbox store over a table of its own in the emulator, as an outbox_backend.
 * Owns:   all but the rig.
 * Thread: the test's.
 * Errors: what goes wrong fails the test. */

enum { OUTBOX_STALE_MS = 35000 };
struct outbox_dynamodb {
    struct dynamodb_rig *rig;
    bool through_proxy; /* the client is "A" there */
    int64_t attempt_timeout_ns;
    struct gb_metrics *metrics;
    struct dynamodb_driver client;
    char table[DYNAMODB_TABLE_SIZE];
};

extern const struct gb_dynamodb_table outbox_dynamodb_shape; /* spec 05 §9.2 */

/* A fresh table and a store with `queue_max`; b->ctx is the struct outbox_dynamodb. */
void outbox_dynamodb_set_up(struct outbox_backend *b, size_t queue_max);
void outbox_dynamodb_reopen(struct outbox_backend *b, size_t queue_max);
void outbox_dynamodb_tear_down(struct outbox_backend *b);
/* Runs a call of the test's own. */
enum gb_code outbox_dynamodb_run(struct outbox_dynamodb *d, struct gb_dynamodb_call *call);
/* The item's text, until the next run of `call`; empty: none. */
struct gb_bytes outbox_dynamodb_get(struct outbox_dynamodb *d, struct gb_dynamodb_call *call,
                                    const char *partition, const char *sort_key);

#endif
