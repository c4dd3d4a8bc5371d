#ifndef GB_TESTS_CONTRACT_SUBSCRIPTIONS_CONTRACT_H
#define GB_TESTS_CONTRACT_SUBSCRIPTIONS_CONTRACT_H

#include "contract/store_driver.h"
#include "ports/subscriptions.h"

/* The managed-subscription suite: acceptance check 05 #34, cancel, close, limits. Every backend is
 * durable.
 * Owns:   the backend owns its store and driver between set_up and tear_down.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct subscriptions_backend {
    const char *name;
    size_t full_at; /* set_up_small: calls that wait; 0: no such limit */
    void (*set_up)(struct subscriptions_backend *b);
    void (*set_up_small)(struct subscriptions_backend *b);
    void (*reopen)(struct subscriptions_backend *b);
    void (*tear_down)(struct subscriptions_backend *b);
    struct store_driver driver;
    struct gb_subscriptions *store;
    void *ctx;
};
int subscriptions_contract_run(struct subscriptions_backend *b);

enum gb_code subscriptions_remember(struct subscriptions_backend *b, const char *identity,
                                    const char *const *filters, size_t count);
enum gb_code subscriptions_forget(struct subscriptions_backend *b, const char *identity,
                                  const char *const *filters, size_t count);
/* Demands these filters in this order (blank-separated). */
void subscriptions_list_is(struct subscriptions_backend *b, const char *identity, enum gb_code code,
                           const char *want);

#endif
