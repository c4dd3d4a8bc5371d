#ifndef GB_API_MONITOR_SNAPSHOT_H
#define GB_API_MONITOR_SNAPSHOT_H

#include "base/metrics.h"
#include "ports/session.h"

/* What the monitor API shows of the process at one moment (spec 08 §6).
 * Values: texts and arrays belong to who fills it and are valid inside the request. */

struct gb_monitor_lease {
    const char *state; /* "standby" ... */
    bool holds;
    bool connect_after; /* connect_after_lease: without the lease it is meant to be disconnected */
    const char *owner;  /* of the row as last seen; "" = none */
    uint64_t version;
    int64_t ttl_ns, renew_ns, poll_ns;
    int64_t remaining_ns;             /* until this holder gives up by itself */
    int64_t observed_ns, required_ns; /* evidence against the present owner */
    int64_t fails;                    /* renewals in a row */
    struct gb_err store_error;        /* of the last call; GB_OK: the lease store answers */
};
struct gb_monitor_session {
    const char *id;
    bool exclusive; /* a lease guards it: `lease` counts */
    struct gb_monitor_lease lease;
    struct gb_session_health health;
};
struct gb_monitor_route {
    const char *id, *delivery_mode, *dispatch_mode;
    int64_t max_in_flight, max_replay;
    const char *ack_after, *on_expired, *on_perm_failure, *on_filtered;
    uint32_t in_flight;
    bool ready; /* started, and takes deliveries */
    bool dead;  /* latched */
};
struct gb_monitor_snapshot {
    bool terminal; /* only a new process helps */
    bool runtime;  /* there is one */
    bool running, healthy;
    const char *instance_id;
    const struct gb_monitor_session *sessions;
    size_t session_count;
    const struct gb_monitor_route *routes;
    size_t route_count;
    int64_t running_version, desired_version; /* 0: none */
    bool degraded;                            /* updates are not applied */
    const char *degraded_reason;
    bool startup_pending, reconfigure_pending, restart_required;
    const char *apply_error;          /* of the last document; NULL: none */
    const struct gb_metrics *metrics; /* NULL: no exporter prometheus */
};

#endif
