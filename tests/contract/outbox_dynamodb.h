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

enum { OUTBOX_STALE_MS = 35000, OUTBOX_HELD_MAX = 8 };
/* What this process holds of a partition. */
struct outbox_held {
    char partition[64], owner[32];
    uint64_t version; /* 0: nothing */
};
struct outbox_dynamodb {
    struct dynamodb_rig *rig;
    bool through_proxy; /* the client is "A" there */
    bool direct;        /* the store asks what is held: what claims have named, or the test has */
    size_t direct_max;
    int64_t keyed_after_ns;
    struct outbox_held held[OUTBOX_HELD_MAX];
    struct gb_outbox port; /* remembers the claims' tokens */
    struct gb_outbox *inner;
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
/* A store of another process on the table of `first`, which stays open longer; b->ctx is another
 * struct outbox_dynamodb. Close it by STORE_CLOSE. */
void outbox_dynamodb_share(struct outbox_backend *b, const struct outbox_backend *first);
/* version 0: nothing from now on */
void outbox_dynamodb_hold(struct outbox_dynamodb *d, const char *partition, const char *owner,
                          uint64_t version);
/* Runs a call of the test's own. */
enum gb_code outbox_dynamodb_run(struct outbox_dynamodb *d, struct gb_dynamodb_call *call);
/* The item's text, until the next run of `call`; empty: none. */
struct gb_bytes outbox_dynamodb_get(struct outbox_dynamodb *d, struct gb_dynamodb_call *call,
                                    const char *partition, const char *sort_key);

/* The same with a connection of its own, which is `client` for the proxy, for a process that is to
 * die: outbox_dynamodb_crash lets nothing more through and closes all of it. */
void outbox_dynamodb_join(struct outbox_backend *b, const struct outbox_backend *first,
                          const char *client);
void outbox_dynamodb_crash(struct outbox_backend *b, const char *client);

#endif
