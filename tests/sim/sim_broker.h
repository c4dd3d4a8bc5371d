#ifndef GB_TESTS_SIM_BROKER_H
#define GB_TESTS_SIM_BROKER_H

#include "sim/sim_net.h"

/* The broker of the world, on the server half of the codec: one client's session with its queue,
 * redelivery with DUP, receive maximum, QoS 0/1/2, session present, takeover, refusals and, rarely,
 * garbage. It also takes the bridge's own publishes.
 * Owns:   the session; a connection is shared with the network.
 * Thread: one.
 * Errors: sim_violate for what a client must never do. */

struct sim_broker;
struct sim_broker *sim_broker_new(struct sim_world *w);
void sim_broker_free(struct sim_broker *b);
/* A producer's message. */
void sim_broker_publish(struct sim_broker *b, uint32_t message);
/* Nothing queued or unacknowledged. */
bool sim_broker_quiet(const struct sim_broker *b);
/* Trouble by the dice: says goodbye, lets another client take over, sends garbage, restarts. */
void sim_broker_trouble(struct sim_broker *b);

/* Loses the session and all that it held; only what the bridge did not acknowledge goes with it. */
void sim_broker_forget(struct sim_broker *b);

/* From the network. */
void sim_broker_accept(struct sim_broker *b, struct sim_conn *c);
void sim_broker_data(struct sim_broker *b, struct sim_conn *c, struct gb_bytes bytes);
void sim_broker_lost(struct sim_broker *b, struct sim_conn *c);

#endif
