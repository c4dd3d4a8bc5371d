#ifndef GB_APP_SUPERVISOR_H
#define GB_APP_SUPERVISOR_H

#include "app/options.h"
#include "app/runtime.h"
#include "base/metrics.h"
#include "blueprint/bootstrap.h"
#include "io/loop.h"

/* Decides which document runs (spec 07 §3, §5): watches its source, admits, starts, swaps, goes
 * back to the one before when a new one does not start, and stops.
 * Owns:   source, documents, credentials and runtimes; borrows the cfg's parts until freed.
 * Thread: loop thread only.
 * Errors: gb_supervisor_new: GB_UNAVAILABLE. gb_supervisor_load: the document's; later ones are
 *         logged, counted as ConfigReloads, and change nothing. */
struct gb_supervisor;
struct gb_supervisor_cfg {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    const struct gb_options *options;
    const struct gb_bootstrap *bootstrap; /* NULL: flag mode (spec 07 §1) */
    const char *nonce;                    /* of the process (spec 06 §2) */
    /* Everything is closed; the process ends with this code. Runs once, after gb_supervisor_stop
     * or by itself. */
    void (*ended)(void *arg, int exit_code);
    /* The end began by itself, within so many ns it must be over. */
    void (*ending)(void *arg, int64_t budget_ns);
    void *arg;
};
struct gb_err gb_supervisor_new(const struct gb_supervisor_cfg *cfg, struct gb_supervisor **out);
/* Reads the first document, before the loop runs; only in flag mode its mistakes are an error. */
struct gb_err gb_supervisor_load(struct gb_supervisor *s);
void gb_supervisor_start(struct gb_supervisor *s);
/* Looks at the source now (SIGHUP). */
void gb_supervisor_recheck(struct gb_supervisor *s);
/* Drains and closes everything, then `ended`; a second call does nothing. */
void gb_supervisor_stop(struct gb_supervisor *s, int exit_code);
/* What it does right now; texts and pointers are valid until it goes on. */
struct gb_supervisor_view {
    const char *instance_id;
    const struct gb_runtime *runtime;     /* NULL: none */
    const struct gb_blueprint *blueprint; /* of it, or of the first one to come; NULL: none */
    bool terminal, ending, activated;
    bool swapping;             /* one document is on its way in */
    int64_t attempted_version; /* 0: unknown */
    const char *read_error;    /* the source can't be read; NULL: it can */
    const char *apply_error;   /* of the last document; NULL: none */
};
void gb_supervisor_look(const struct gb_supervisor *s, struct gb_supervisor_view *out);
int64_t gb_supervisor_shutdown_ns(const struct gb_supervisor *s); /* of the running document */
void gb_supervisor_free(struct gb_supervisor *s);                 /* after `ended`; NULL ok */

#endif
