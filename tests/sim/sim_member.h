#ifndef GB_TESTS_SIM_MEMBER_H
#define GB_TESTS_SIM_MEMBER_H

#include "core/session_manager.h"
#include "sim/sim_lease.h"

/* What makes a simulated process a member of a cluster: its session manager, its way to the table
 * of leases, and an account of its authority that is kept without the manager: from the instant
 * before each call that won or renewed the lease, on the world's clock.
 * Owns:   itself and the manager, until the bridge is freed.
 * Thread: one.
 * Errors: sim_violate. */

enum { SIM_CONNECT_S = 10, SIM_RECONCILE_S = 10, SIM_UNMATCHED_S = 5 };

struct sim_member {
    struct sim_bridge *bridge;
    char instance[24], owner[64];
    struct gb_session_manager *manager;
    struct sim_lease_port lease;
    struct gb_session gate; /* between the manager and the MQTT session */
    struct gb_op *gate_stop;
    struct gb_op inner_stop;
    struct gb_timer late_stop; /* planted */
    bool inner_running, inner_stopping;
    bool hangs; /* the close does not return before the process ends */
    struct gb_err stop_result;
    uint64_t deadline_ns; /* the world's: authority ends here at the latest */
    uint64_t authority_gone_ns;
    bool closing, serves;
    uint64_t version; /* of the last term */
};

struct sim_member *sim_member_new(struct sim_bridge *b);
void sim_member_build(struct sim_member *m); /* when the bridge's session is there */
void sim_member_start(struct sim_member *m);
void sim_member_close(struct sim_member *m, struct gb_op *op, gb_done_fn *done);
void sim_member_gone(struct sim_member *m); /* the process has died */
void sim_member_free(struct sim_member *m); /* NULL ok */
struct gb_authority sim_member_authority(struct sim_member *m);
const char *sim_member_instance(const struct sim_member *m);
/* The process's wall clock was set. */
void sim_member_wall_jumped(struct sim_member *m, int64_t ms);
/* What the process does, against what it may do at this instant. */
bool sim_member_holds(struct sim_member *m);
bool sim_member_in_term(const struct sim_member *m); /* whatever the clock says */
void sim_member_check(struct sim_member *m);
void sim_member_check_dial(struct sim_member *m);
void sim_member_check_write(struct sim_member *m, struct gb_bytes bytes);
void sim_member_check_release(struct sim_member *m);

#endif
