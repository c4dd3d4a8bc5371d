#ifndef GB_TESTS_SIM_INTERCEPT_H
#define GB_TESTS_SIM_INTERCEPT_H

#include "sim/sim_net.h"

/* Planted faults in the bytes that the bridge writes: packet ids that are used twice, and
 * acknowledgements in another order. Without such a fault it changes nothing.
 * Owns:   nothing.
 * Thread: one.
 * Errors: none. */
void sim_intercept_write(struct sim_conn *c, struct gb_str *bytes);

#endif
