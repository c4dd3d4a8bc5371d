#ifndef GB_TESTS_SIM_TAP_H
#define GB_TESTS_SIM_TAP_H

#include "ports/receiver.h"
#include "sim/sim_world.h"

/* Between the session's receiver and the route: counts what becomes of each delivery, checks that
 * it is settled exactly once, and plants faults at the receiver port.
 * Owns:   its deliveries, each until it is settled.
 * Thread: one.
 * Errors: sim_violate. */

struct sim_tap {
    struct gb_receiver receiver;
    struct gb_receiver *inner;
    struct sim_world *world;
    struct gb_reactor *reactor;
    struct gb_sink sink; /* the route's */
    uint64_t taken, acks, retries, abandons;
};
void sim_tap_init(struct sim_tap *t, struct sim_world *w, struct gb_reactor *r,
                  struct gb_receiver *inner);

#endif
