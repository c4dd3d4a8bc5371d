#ifndef GB_TESTS_SIM_LEASE_H
#define GB_TESTS_SIM_LEASE_H

#include "domain/takeover.h"
#include "ports/lease.h"
#include "sim/sim_world.h"

/* The table of leases, one row, and each process's way to it: the requests of spec 06 §6.1 as the
 * DynamoDB adapter sends them, with the conditions that it sets. A request may be throttled, lost
 * with its answer, applied long after its sender gave up or died; a write that may have been
 * applied is sent once more, as the adapter's client does.
 * The row is checked at every change: versions, and for how long it was unchanged.
 * Owns:   requests that are out (heap); they outlive their sender.
 * Thread: one.
 * Errors: those of ports/lease.h, by the dice; sim_violate. */

struct sim_row_image { /* a copy of the row */
    bool exists;
    char owner[64]; /* "": released */
    uint64_t version;
    int64_t acquired_ms, renewed_ms, expires_ms;
    bool evidence;
    char fingerprint[GB_SHA256_HEX];
    int64_t elapsed_ns;
    uint64_t generation;
};
struct sim_table {
    struct sim_world *world;
    struct sim_row_image row;
    uint64_t version_max;  /* ever written */
    uint64_t unchanged_ns; /* since when the tuple is what it is */
    uint64_t writes, takeovers;
    struct gb_list requests;
};
struct sim_lease_port { /* one process's */
    struct gb_lease lease;
    struct sim_bridge *bridge;
    struct gb_takeover seen;
    struct gb_list tasks;
    /* Told at the end of each call, in the process's turn; `began_ns` is the world's. */
    void (*answered)(struct sim_bridge *b, struct gb_op *op, uint64_t began_ns, bool renewal);
};

void sim_table_init(struct sim_table *t, struct sim_world *w);
/* Requests that are out are lost: at the end, and when the faults stop. */
void sim_table_drop_requests(struct sim_table *t);
void sim_lease_port(struct sim_lease_port *p, struct sim_bridge *b);
/* The process is gone; its requests go on. */
void sim_lease_process_gone(struct sim_lease_port *p);

#endif
