#ifndef GB_TESTS_SIM_CHECK_H
#define GB_TESTS_SIM_CHECK_H

#include "sim/sim_world.h"

/* The invariants, seen from outside of the bridge: the broker tells what was acknowledged, the
 * store what is durable, the destination what arrived.
 * Owns:   nothing.
 * Thread: one.
 * Errors: sim_violate. */

size_t sim_legs(const struct sim_cfg *c);
/* The bridge acknowledged it at its source: it must be safe by then. */
void sim_check_source_ack(struct sim_world *w, uint32_t message);
void sim_check_durable(struct sim_world *w, uint32_t message, uint8_t leg, int64_t created_at_ms);
void sim_check_claimed(struct sim_world *w, uint32_t message, uint8_t leg);
/* The destination took it: nothing older of its key may still wait. */
void sim_check_accepted(struct sim_world *w, uint32_t message, uint8_t leg);
/* The store was told that this record is done. */
void sim_check_completed(struct sim_world *w, uint32_t message, uint8_t leg);
/* `leg` SIM_LEGS_MAX: before dispatch, so every leg. */
void sim_check_dead_lettered(struct sim_world *w, uint32_t message, uint8_t leg, const char *code);
/* Queues stay within their limits. */
void sim_check_bounds(struct sim_world *w);
/* How much is left to do, in messages and records; without faults it falls. */
uint64_t sim_check_undone(const struct sim_world *w);
/* Everything that the broker took has reached its end. */
bool sim_check_all_done(const struct sim_world *w);
/* Why not, for the report. */
void sim_check_explain(struct sim_world *w);

#endif
