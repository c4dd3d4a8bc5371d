#ifndef GB_TESTS_SIM_CALL_H
#define GB_TESTS_SIM_CALL_H

#include "sim/sim_world.h"

/* One operation of the bridge that is under way in the world: what happens when, and what is
 * answered. It dies with the process that asked; what was applied by then stays applied.
 * Owns:   itself (heap), until the answer or the process's end.
 * Thread: one.
 * Errors: none. */

enum sim_plan {
    SIM_PLAN_OK = 0,
    SIM_PLAN_FAIL,        /* nothing happens, an error is answered */
    SIM_PLAN_LOST_ANSWER, /* it happens, an error is answered */
    SIM_PLAN_SILENT,      /* nothing happens until the deadline: TIMEOUT */
    SIM_PLAN_LATE,        /* it happens, the answer comes only as TIMEOUT at the deadline */
    SIM_PLAN_HANG,        /* never answered, deadline and cancel ignored */
};
struct sim_call;
typedef void sim_apply_fn(struct sim_call *c);

struct sim_call {
    struct gb_list_node node; /* in bridge->calls */
    struct sim_world *world;
    struct sim_bridge *bridge;
    struct gb_op *op;
    struct gb_timer timer; /* of the world */
    enum sim_plan plan;
    bool applied;
    struct gb_err answer;   /* apply may change it */
    sim_apply_fn *apply;    /* changes the world, fills the request's results */
    sim_apply_fn *discard;  /* results that nobody will take; may be NULL */
    void *target, *request; /* for apply */
    void *result;           /* kept until the answer */
};

/* Starts `op`. `apply` runs at once or when the answer is due, by the dice. In a process that has
 * crashed nothing happens and GB_CANCELLED is answered. */
void sim_call_start(struct sim_bridge *b, struct gb_op *op, gb_done_fn *done, void *arg,
                    const struct sim_call *plan, int64_t delay_max_ns);
/* The process is gone: every call of it ends without effect. */
void sim_call_end_all(struct sim_bridge *b);

#endif
