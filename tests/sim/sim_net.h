#ifndef GB_TESTS_SIM_NET_H
#define GB_TESTS_SIM_NET_H

#include "io/net.h"
#include "sim/sim_world.h"

/* The network of the world: bytes arrive late, in pieces, or not at all; connections are cut in the
 * middle of a packet, stall, or don't come up.
 * Owns:   a connection lives until both ends are done with it.
 * Thread: one.
 * Errors: those of io/net.h, by the dice. */

struct sim_conn;
struct sim_pipe { /* one direction */
    struct sim_conn *conn;
    struct gb_str bytes; /* on their way */
    struct gb_timer timer;
    bool to_broker;
    bool end; /* the writer is done; the reader learns it after the last byte */
};
struct sim_conn {
    struct gb_stream stream;
    struct gb_list_node node; /* the bridge's connections, then the world's dead ones */
    struct sim_world *world;
    struct sim_bridge *bridge; /* NULL: the process is gone */
    struct sim_host *host;
    const struct gb_stream_events *events;
    void *arg;
    struct sim_pipe up, down;                         /* to the broker, to the bridge */
    struct gb_timer dial;                             /* until connected; then: until `closed` */
    enum { SIM_DIALING, SIM_OPEN, SIM_CLOSED } state; /* of the bridge's end */
    struct gb_err close_reason;
    uint64_t dial_deadline_ns;
    struct gb_str rx;    /* the broker's incomplete packet */
    bool at_broker;      /* the broker still uses it */
    bool connected;      /* CONNECT was seen */
    uint8_t held_ack[4]; /* SIM_FAULT_ACK_OUT_OF_ORDER */
    bool holds_ack;
};
struct sim_net_port {
    struct gb_net net;
    struct sim_bridge *bridge;
};

void sim_net_port(struct sim_net_port *p, struct sim_bridge *b);
/* The process is gone: its ends close without a callback into the world; what the kernel had taken
 * still arrives at the broker. */
void sim_net_process_gone(struct sim_bridge *b);
/* Frees the connections that both ends are done with; between two moments only. */
void sim_net_bury(struct sim_world *w);
/* Broker side. */
void sim_conn_send(struct sim_conn *c, struct gb_str *take);
void sim_conn_close(struct sim_conn *c); /* after what was sent */
void sim_conn_cut(struct sim_conn *c);   /* at once, in both directions */

#endif
