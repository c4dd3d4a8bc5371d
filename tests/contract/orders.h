#ifndef GB_TESTS_CONTRACT_ORDERS_H
#define GB_TESTS_CONTRACT_ORDERS_H

#include <stddef.h>

#include "contract/dynamodb_rig.h"
#include "io/loop.h"

/* All orders of the individual requests of two operations, which a proxy holds and lets go one at a
 * time; an answer is taken in before anybody else's request goes.
 * Owns:   nothing.
 * Thread: the test's.
 * Errors: an operation that neither asks nor ends fails the test. */

enum { ORDERS_STEPS_MAX = 40 };

struct orders_side {
    const char *client; /* of the rig */
    struct gb_loop *loop;
    const size_t *waiting; /* operations that are not done, of a store driver */
};
struct orders {
    struct dynamodb_rig *rig;
    struct orders_side sides[2];
    void (*prepare)(void *arg);
    void (*start)(void *arg);                       /* both operations */
    void (*check)(void *arg, const char *schedule); /* such as "ABBA": whose request went when */
    void *arg;
};
/* How many there were. */
unsigned orders_run(struct orders *o);

#endif
