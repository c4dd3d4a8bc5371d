#ifndef GB_API_MONITOR_H
#define GB_API_MONITOR_H

#include "api/keys.h"
#include "api/monitor_snapshot.h"
#include "io/http_server.h"

/* The monitor API (spec 08 §6): probes without a key, the rest with one.
 * Owns:   nothing; borrows the cfg's parts.
 * Thread: loop thread only.
 * Errors: become answers. */
struct gb_monitor_source {
    void (*look)(void *arg, struct gb_monitor_snapshot *out); /* `out` is zeroed before */
    void *arg;
};
struct gb_monitor {
    struct gb_reactor *reactor;
    struct gb_keys *keys; /* none in it: only the probes are served */
    struct gb_monitor_source source;
};
/* `handle` of the server's cfg, with the monitor as its `arg`. */
void gb_monitor_handle(void *arg, const struct gb_http_server_request *request,
                       struct gb_http_server_answer *answer);

#endif
