#ifndef GB_TESTS_CONTRACT_LEASE_CONTRACT_H
#define GB_TESTS_CONTRACT_LEASE_CONTRACT_H

#include "contract/store_driver.h"
#include "ports/lease.h"

/* The lease suite (spec 06 §6, 05 #26): what every backend does alike.
 * Owns:   the backend owns its store and driver between set_up and tear_down.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct lease_backend {
    const char *name;
    bool durable;
    /* Another owner's active lease is taken at once: its holder is known to be dead (SQLite). */
    bool local;
    void (*set_up)(struct lease_backend *b);
    void (*reopen)(struct lease_backend *b); /* durable only */
    void (*tear_down)(struct lease_backend *b);
    struct store_driver driver;
    struct gb_lease *store;
    void *ctx;
};
int lease_contract_run(struct lease_backend *b);

/* Each answers the code; `*version` is the one acquired. `seen` may be NULL. */
enum gb_code lease_acquire(struct lease_backend *b, const char *id, const char *owner,
                           int64_t ttl_ns, uint64_t *version, struct gb_lease_holder *seen);
enum gb_code lease_renew(struct lease_backend *b, const char *id, const char *owner,
                         uint64_t version, int64_t ttl_ns);
enum gb_code lease_release(struct lease_backend *b, const char *id, const char *owner,
                           uint64_t version);
/* The holder is valid until the next call. */
enum gb_code lease_current(struct lease_backend *b, const char *id,
                           const struct gb_lease_holder **holder);
/* The text of the last call's error. */
const char *lease_message(void);

#endif
