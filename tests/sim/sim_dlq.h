#ifndef GB_TESTS_SIM_DLQ_H
#define GB_TESTS_SIM_DLQ_H

#include "ports/dlq.h"
#include "sim/sim_world.h"

/* The dead-letter store of the world, and its destination.
 * Owns:   the entries' ids; each process gets ports of its own.
 * Thread: one.
 * Errors: those of the ports, by the dice. */

struct sim_dlq;
struct sim_dlq_port {
    struct gb_dlq dlq;
    struct sim_bridge *bridge;
};
struct sim_dlq *sim_dlq_new(struct sim_world *w);
void sim_dlq_free(struct sim_dlq *d);
void sim_dlq_port(struct sim_dlq_port *p, struct sim_bridge *b);

#endif
