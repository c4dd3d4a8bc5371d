#ifndef GB_TESTS_CONTRACT_STORE_DRIVER_H
#define GB_TESTS_CONTRACT_STORE_DRIVER_H

#include "base/op.h"
#include "io/loop.h"

/* Runs a store's loop until operations are done, with a wall clock the test moves.
 * Owns:   the loop or the reactor.
 * Thread: the test's.
 * Errors: none; what goes wrong fails the test. */
struct store_driver {
    struct gb_loop *loop; /* NULL: a bare reactor */
    struct gb_reactor *reactor;
    int64_t wall_ms; /* the stores' clock; tests add to it */
    uint64_t mono_ns;
    size_t waiting; /* operations started and not done */
};
void store_driver_init_loop(struct store_driver *d);
void store_driver_init_reactor(struct store_driver *d);
void store_driver_deinit(struct store_driver *d);
int64_t store_driver_wall_ms(void *driver); /* as a store's clock */

/* Started like this: store_driver_expect(d); store->ops->x(store, &q, store_driver_done, d); */
void store_driver_expect(struct store_driver *d);
void store_driver_done(struct gb_op *op, void *driver);
/* Runs until all expected operations are done. */
void store_driver_run(struct store_driver *d);
/* Closes through the port's close function, whose type differs by port: cast in the macro. */
#define STORE_CLOSE(driver, store)                                                                 \
    do {                                                                                           \
        struct gb_op close_op = {0};                                                               \
        store_driver_expect(driver);                                                               \
        (store)->ops->close((store), &close_op, store_driver_done, (driver));                      \
        store_driver_run(driver);                                                                  \
        assert_int_equal(close_op.result.code, GB_OK);                                             \
    } while (0)

#endif
