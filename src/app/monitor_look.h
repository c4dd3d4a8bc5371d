#ifndef GB_APP_MONITOR_LOOK_H
#define GB_APP_MONITOR_LOOK_H

#include "api/monitor_snapshot.h"
#include "app/supervisor.h"

/* The runtime as the monitor API shows it.
 * Owns:   the arrays of the last look; zeroed memory is ready.
 * Thread: loop thread only.
 * Errors: out of memory shows as an unhealthy runtime. */
struct gb_monitor_room {
    struct gb_monitor_session *sessions;
    struct gb_monitor_route *routes;
    size_t session_capacity, route_capacity;
};
void gb_monitor_look(struct gb_monitor_room *room, const struct gb_supervisor *supervisor,
                     const struct gb_metrics *metrics, struct gb_monitor_snapshot *out);
void gb_monitor_room_deinit(struct gb_monitor_room *room);

#endif
