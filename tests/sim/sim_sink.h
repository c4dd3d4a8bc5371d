#ifndef GB_TESTS_SIM_SINK_H
#define GB_TESTS_SIM_SINK_H

#include "ports/sender.h"
#include "sim/sim_world.h"

/* The destination of the world: slow, failing, silent, taking a message and losing the answer.
 * Owns:   nothing; each process gets a port for each leg.
 * Thread: one.
 * Errors: by the dice. */

struct sim_sink_port {
    struct gb_sender sender;
    struct sim_bridge *bridge;
    uint8_t leg;
    struct gb_sender *through; /* the MQTT session's sender; NULL: the simulated destination */
};
void sim_sink_port(struct sim_sink_port *p, struct sim_bridge *b, uint8_t leg,
                   struct gb_sender *through);

#endif
