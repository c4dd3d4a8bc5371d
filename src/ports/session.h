#ifndef GB_PORTS_SESSION_H
#define GB_PORTS_SESSION_H

#include "base/op.h"

/* A broker connection with one client id (spec 03 §1). Start and stop are the session manager's.
 * Owns:   the session owns its receiver and senders (they live as long as it).
 * Thread: loop thread only.
 * Errors: start never fails from the outside: connect attempts go on until stop; state is in
 *         `health`. */
enum gb_service_level { GB_LEVEL_NONE = 0, GB_LEVEL_DEGRADED, GB_LEVEL_FULL };

struct gb_session_health {
    bool connected;
    bool ready;    /* converged on the current epoch, no recovery, no reject penalty */
    bool terminal; /* spec 03 §12: the process must exit */
    enum gb_service_level service_level;
    uint32_t subscriptions_wanted, subscriptions_active;
    uint32_t unsettled_count;
    int64_t oldest_unsettled_age_ms;
    double receive_window_utilization;
    uint64_t recovery_recycle_count;
    uint64_t failed_attempts; /* to connect or converge, since start */
    struct gb_err last_error; /* GB_OK when none */
};

struct gb_session;
struct gb_session_ops {
    void (*start)(struct gb_session *s);
    /* Stops intake only: no further emit; acknowledgements still leave. */
    void (*quiesce)(struct gb_session *s);
    /* Graceful DISCONNECT after the acknowledgements that are due were written; op.deadline_ns
     * bounds it, then the connection is cut. Completes when no old callback can run any more. */
    void (*stop)(struct gb_session *s, struct gb_op *op, gb_done_fn *done, void *arg);
    void (*health)(const struct gb_session *s, struct gb_session_health *out);
    void (*free)(struct gb_session *s); /* only when never started or after stop completed */
};
struct gb_session {
    const struct gb_session_ops *ops;
    const char *id;
};

#endif
