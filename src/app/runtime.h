#ifndef GB_APP_RUNTIME_H
#define GB_APP_RUNTIME_H

#include "app/secrets.h"
#include "base/metrics.h"
#include "blueprint/blueprint.h"
#include "io/loop.h"

/* The engine built from one document (spec 08 §1): stores, sessions, senders, routes, drainers.
 * Single use.
 * Owns:   everything it builds; borrows loop, metrics and blueprint until freed.
 * Thread: loop thread only.
 * Errors: gb_runtime_new opens stores and builds parts but connects to no broker; it returns the
 *         first error and closes what it had opened. `ended` tells the end: GB_OK after a clean
 *         stop, else the failing phase. */
struct gb_runtime;

struct gb_runtime_cfg {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    const struct gb_blueprint *blueprint;
    const char *instance_id;
    const char *owner;                /* token of the process: instance_id#<boot-nonce> */
    const struct gb_secrets *secrets; /* resolved; needed while the runtime is built */
    bool again;                       /* not the first one that ran in this process */
    /* Preflight and marks are done, everything runs. */
    void (*started)(void *arg);
    /* Something is terminal (spec 08 §1): the process must stop and exit non-zero. */
    void (*terminal)(void *arg, struct gb_err cause);
    void *arg;
};
struct gb_err gb_runtime_new(const struct gb_runtime_cfg *cfg, struct gb_runtime **out);
/* Reads the partitions' marks, then starts drainers, routes and sessions; `terminal` when that
 * fails. */
void gb_runtime_start(struct gb_runtime *r);
/* The sequence of spec 08 §3 under one deadline; `done` once, then gb_runtime_free. Stopping a
 * runtime that never started only closes it. */
void gb_runtime_stop(struct gb_runtime *r, uint64_t deadline_ns,
                     void (*done)(void *arg, struct gb_err result), void *arg);
/* An earlier deadline for a stop under way. */
void gb_runtime_hurry(struct gb_runtime *r, uint64_t deadline_ns);
/* After `done`: nothing of it is left at work, so that another may take its place. Deliveries that
 * were cut off at the deadline do not count: their source or the outbox has them. */
bool gb_runtime_closed(const struct gb_runtime *r);
void gb_runtime_free(struct gb_runtime *r); /* after `done`; NULL ok */

#endif
