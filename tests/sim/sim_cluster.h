#ifndef GB_TESTS_SIM_CLUSTER_H
#define GB_TESTS_SIM_CLUSTER_H

#include "sim/sim_member.h"
#include "sim/sim_table.h"

/* Two or three instances around one broker session, one outbox and one table of leases: each a
 * whole bridge with its session manager, on a machine with clocks and lines of its own. Instances
 * crash at any step and come back with another nonce, stop, are suspended, have their clocks set,
 * lose their lines in one direction or in both.
 * Owns:   everything in it.
 * Thread: one.
 * Errors: as sim_world.h. */

enum { SIM_INSTANCES_MAX = 3 };

struct sim_cluster {
    struct sim_world *world;
    struct sim_host hosts[SIM_INSTANCES_MAX];
    struct sim_table table;
    struct gb_timer trouble;
    uint32_t failovers; /* another process than the last one serves */
    char served[64];    /* the last one's token */
    uint64_t serving_version;
    uint64_t lost_ns; /* since when nobody serves; 0: somebody does */
    uint64_t gap_max_ns;
    uint64_t healed_ns, recovered_ns;
};
struct sim_cluster_report {
    struct sim_report run;
    uint32_t failovers;
    uint64_t version;    /* of the lease at the end */
    uint64_t gap_max_ns; /* the longest time without an instance that serves */
    uint64_t bound_ns;   /* spec 06 §9.1 for this seed's cadence */
};
struct sim_cluster_run {
    uint64_t seed;
    enum sim_fault fault;
    bool trace;
    int64_t duration_ns; /* faults and messages; 0: ten minutes */
    void (*change)(struct sim_cfg *c);
};
void sim_cluster_run(const struct sim_cluster_run *run, struct sim_cluster_report *report);

/* --- for the parts of the world --- */

void sim_cluster_draw(struct sim_world *w);
struct sim_table *sim_cluster_table(struct sim_world *w);
int64_t sim_cluster_activation_ns(void);
/* Which instance has this token; SIM_INSTANCES_MAX: a process that is gone. */
uint32_t sim_cluster_index_of(struct sim_world *w, const char *owner);
/* The lease of `owner` was taken: it must have no authority any more. */
void sim_cluster_check_taken_from(struct sim_world *w, const char *owner);
void sim_cluster_serves(struct sim_world *w, uint32_t index, uint64_t version);

#endif
