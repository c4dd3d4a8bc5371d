#ifndef GB_APP_MONITOR_H
#define GB_APP_MONITOR_H

#include "app/options.h"
#include "app/supervisor.h"
#include "blueprint/bootstrap.h"
#include "io/loop.h"

/* The monitor's listener and what it shows of the process (spec 08 §2, §4, §6).
 * Owns:   listener and keys; borrows the rest until freed.
 * Thread: loop thread only.
 * Errors: gb_app_monitor_new: GB_INVALID_CONFIG (address, keys), GB_UNAVAILABLE. A default address
 *         that is taken is a warning: the bridge runs without the API. */
struct gb_app_monitor;
struct gb_app_monitor_cfg {
    struct gb_loop *loop;
    struct gb_metrics *metrics;
    const struct gb_options *options;
    const struct gb_bootstrap *bootstrap; /* NULL: flag mode */
    const struct gb_supervisor *supervisor;
};
struct gb_err gb_app_monitor_new(const struct gb_app_monitor_cfg *cfg, struct gb_app_monitor **out);
void gb_app_monitor_free(struct gb_app_monitor *m); /* NULL ok */

/* Where it listens: bootstrap, then document (NULL: none), then the command line. */
struct gb_app_monitor_at {
    const char *address;
    bool asked;      /* somebody wrote it; else it is the default */
    const char *key; /* what wrote it */
};
struct gb_app_monitor_at gb_app_monitor_at(const struct gb_options *o,
                                           const struct gb_bootstrap *bootstrap,
                                           const struct gb_blueprint *b);
/* -healthcheck: 0 or 1. */
int gb_process_healthcheck(const struct gb_options *o);

#endif
