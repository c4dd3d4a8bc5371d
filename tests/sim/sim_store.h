#ifndef GB_TESTS_SIM_STORE_H
#define GB_TESTS_SIM_STORE_H

#include "ports/outbox.h"
#include "ports/subscriptions.h"
#include "sim/sim_world.h"

/* The outbox and the subscription store of the world. They are durable: what was applied survives
 * the process. Below is the memory outbox, which is itself under test here.
 * Owns:   the records; each process gets a port of its own.
 * Thread: one.
 * Errors: those of the ports and, by the dice, failures before and after the effect. */

struct sim_store;
struct sim_outbox_port { /* one process's connection to the store */
    struct gb_outbox outbox;
    struct sim_bridge *bridge;
};
struct sim_subscriptions_port {
    struct gb_subscriptions subscriptions;
    struct sim_bridge *bridge;
};

struct sim_store *sim_store_new(struct sim_world *w);
void sim_store_free(struct sim_store *s);
void sim_store_port(struct sim_outbox_port *p, struct sim_bridge *b);
void sim_subscriptions_port(struct sim_subscriptions_port *p, struct sim_bridge *b);
uint64_t sim_store_pending(const struct sim_store *s); /* of all partitions */
uint64_t sim_store_open(const struct sim_store *s);    /* pending and claimed */
/* Looks the counts up again; after the world changed. */
void sim_store_count(struct sim_store *s);

#endif
