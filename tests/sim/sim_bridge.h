#ifndef GB_TESTS_SIM_BRIDGE_H
#define GB_TESTS_SIM_BRIDGE_H

#include "core/drainer.h"
#include "core/route.h"
#include "ports/session.h"
#include "sim/sim_dlq.h"
#include "sim/sim_net.h"
#include "sim/sim_sink.h"
#include "sim/sim_store.h"
#include "sim/sim_tap.h"

/* One process: MQTT session, route and drainers, built as the application builds them, on a reactor
 * of its own, in the world's surroundings.
 *
 * A crash sets `dead`: from then on nothing that it calls has an effect and nothing calls it, so to
 * the world it is gone in the middle of its turn. Its memory is then taken down by the ordinary
 * stop in a time of its own (sim_bridge_free); that every state can be stopped is checked on the
 * way.
 * Owns:   everything in it.
 * Thread: one.
 * Errors: sim_violate when a stop does not end. */

struct sim_member;

struct sim_drain {
    struct sim_bridge *bridge;
    struct gb_local_authority authority;
    struct gb_op authority_op, stop_op;
    struct gb_timer again;
    struct gb_drainer *drainer;
    bool reading, has_authority;
};
struct sim_bridge {
    struct sim_world *world;
    struct sim_host *host;
    struct sim_member *member; /* of a cluster; NULL: alone */
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    bool dead;  /* crashed: no effects any more */
    bool ended; /* terminal or stopped: the process exits after this turn */
    const char *why;
    uint64_t steps_to_crash; /* 0 = none planned */
    struct gb_list calls;    /* sim_call */
    struct gb_list conns;    /* sim_conn */
    struct sim_outbox_port outbox;
    struct sim_dlq_port dlq;
    struct sim_subscriptions_port subscriptions;
    struct sim_net_port net;
    struct sim_sink_port sinks[SIM_LEGS_MAX];
    struct sim_tap tap;
    struct gb_session *session;
    struct gb_ledger *ledger;
    struct gb_route *route;
    struct sim_drain drains[SIM_LEGS_MAX];
    size_t drain_count;
    struct gb_op route_op, session_op;
    size_t drains_stopping;
    bool stopping, stopped;
};

struct sim_bridge *sim_bridge_new(struct sim_world *w, struct sim_host *h);
/* The ordinary shutdown: route, drainers, session. */
void sim_bridge_stop(struct sim_bridge *b);
/* A point where the process may crash: before and after each effect on the world. */
void sim_bridge_step(struct sim_bridge *b);
void sim_bridge_run(struct sim_bridge *b);                  /* one turn now */
void sim_bridge_end(struct sim_bridge *b, const char *why); /* the process exits by itself */
void sim_bridge_wake_drains(struct sim_bridge *b);
bool sim_bridge_drained(const struct sim_bridge *b);
/* Takes a dead or stopped process down. */
void sim_bridge_free(struct sim_bridge *b);

uint64_t
sim_bridge_drops(const struct sim_bridge *b); /* messages it dropped or expired by policy */
void sim_bridge_check_bounds(struct sim_bridge *b);
/* Nothing is in flight any more: every message taken has exactly one end (spec 02 §4.2). */
void sim_bridge_check_conservation(struct sim_bridge *b);

/* Names that all parts agree on. */
size_t sim_bridge_partitions(const struct sim_cfg *c);
const char *sim_bridge_partition(size_t i);
uint8_t sim_bridge_leg(struct gb_bytes binding_or_topic); /* "b0", "out/0" -> 0 */
const char *sim_bridge_filter(const char *filter);        /* the static text of an equal filter */

#endif
