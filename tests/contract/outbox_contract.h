#ifndef GB_TESTS_CONTRACT_OUTBOX_CONTRACT_H
#define GB_TESTS_CONTRACT_OUTBOX_CONTRACT_H

#include "contract/store_driver.h"
#include "ports/outbox.h"

/* The outbox suite of spec 05: acceptance checks 1-13, cancel, close, limits, and random operations
 * against a model. One backend runs it with outbox_contract_run.
 * Owns:   the backend owns its store and driver between set_up and tear_down.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct outbox_backend {
    const char *name;
    bool durable;       /* reopen keeps everything */
    int64_t stale_ms;   /* same-version reclaim, inclusive; 0: never */
    size_t full_at;     /* set_up_small: that many records, or calls that wait, are the limit */
    bool ids_unchecked; /* a record id of another message is not noticed */
    size_t model_steps; /* 0: as many as a local store can do */
    void (*set_up)(struct outbox_backend *b);       /* fresh, empty store */
    void (*set_up_small)(struct outbox_backend *b); /* with the limit above */
    void (*reopen)(struct outbox_backend *b);
    void (*tear_down)(struct outbox_backend *b);
    struct store_driver driver;
    struct gb_outbox *store;
    void *ctx;
};
int outbox_contract_run(struct outbox_backend *b);

/* --- calls that wait, for the suites and the backends' own tests --- */

enum { RECORDS_MADE_MAX = 4096 };
/* A record of a new envelope that is freed by outbox_records_free. NULL texts are empty. */
struct outbox_spec {
    const char *envelope_id, *binding_id, *session_id, *key, *payload;
    const char *id; /* NULL: a fresh one */
    int64_t created_at_ms, expires_at_ms;
};
struct gb_outbox_record outbox_record(const struct outbox_spec *spec);
void outbox_records_free(void);
const char *
outbox_envelope_id(const struct gb_outbox_record *r); /* terminated, until the next call */

enum gb_code outbox_persist(struct outbox_backend *b, const struct gb_outbox_record *records,
                            size_t count, size_t *stored);
enum gb_code outbox_store(struct outbox_backend *b, const struct outbox_spec *spec);
struct gb_outbox_batch *outbox_claim(struct outbox_backend *b, const char *partition,
                                     const char *owner, uint64_t version, uint32_t limit,
                                     enum gb_code *code);
/* With a time-out of the call's own. */
struct gb_outbox_batch *outbox_claim_within(struct outbox_backend *b, const char *partition,
                                            const struct gb_token *token, uint32_t limit,
                                            uint64_t timeout_ns, enum gb_code *code);
/* Claims, demands exactly these envelope ids in this order (blank-separated), frees the batch. */
void outbox_claim_is(struct outbox_backend *b, const char *partition, const char *owner,
                     uint64_t version, uint32_t limit, const char *want);
void outbox_batch_is(const struct gb_outbox_batch *batch, const char *want);
enum gb_code outbox_settle(struct outbox_backend *b, enum gb_outbox_settle_kind kind,
                           const char *partition, struct gb_bytes id, const char *owner,
                           uint64_t version);
enum gb_code outbox_expire(struct outbox_backend *b, const char *partition, const char *owner,
                           uint64_t version, int64_t cutoff_ms, uint64_t *expired);
struct gb_outbox_stats outbox_stats(struct outbox_backend *b, const char *partition);
uint64_t outbox_depth(struct outbox_backend *b, const char *partition, uint64_t limit);

/* Random operations of two owners against a model (outbox_model.c). */
void outbox_model_run(struct outbox_backend *b, uint64_t seed, size_t steps);

#endif
