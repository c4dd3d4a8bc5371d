#ifndef GB_CORE_SESSION_MANAGER_H
#define GB_CORE_SESSION_MANAGER_H

#include "base/metrics.h"
#include "domain/lease_cadence.h"
#include "ports/authority.h"
#include "ports/lease.h"
#include "ports/session.h"

/* The managed life of one lease-bearing session (spec 06 §7): stands by, acquires, activates,
 * renews, steps down, acquires again, all in one process.
 * Owns:   its requests and timers; borrows the cfg's parts until freed; texts are copied.
 * Thread: loop thread only. No clock of its own: local deadlines count on the reactor's clock that
 *         advances during suspend (gb_reactor_boot_ns, spec 06 §6.3).
 * Errors: gb_session_manager_new: GB_UNAVAILABLE, GB_INVALID_CONFIG. Run-time faults go to log,
 *         metrics, health; `terminal` ends the process (spec 06 §7.7). */
struct gb_session_manager;

enum gb_session_role_state { /* spec 06 §7 */
                             GB_MANAGER_STANDBY = 0,
                             GB_MANAGER_ACTIVATING,
                             GB_MANAGER_ACTIVE,
                             GB_MANAGER_STEPPING_DOWN,
                             GB_MANAGER_FAILED,
                             GB_MANAGER_TERMINAL,
                             GB_MANAGER_CLOSED,
                             GB_MANAGER_STATES,
};
const char *gb_session_manager_state_name(enum gb_session_role_state state); /* "standby" ... */

struct gb_session_manager_cfg {
    const char *session_id; /* = lease id */
    const char *owner;      /* owner token */
    struct gb_lease_cadence cadence;
    int64_t activation_ns; /* hard bound of an activation (spec 06 §9.3); 0: unknown, §7.2 */
    int64_t step_down_ns;  /* broker_health_step_down; 0: off */
    bool connect_after_lease;
    const struct gb_lease_endpoint *endpoints; /* copied */
    size_t endpoint_count;
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    struct gb_lease *lease;
    struct gb_session *session; /* started and stopped by the manager alone */
    /* True when no drainer of this session has work in flight: skips the grace (§7.4 item 4). */
    bool (*drained)(void *arg);
    /* Authority was won (true) or has gone (false); drainers may be woken. May be NULL. */
    void (*authority_changed)(void *arg, bool held);
    void (*terminal)(void *arg, const char *session_id, struct gb_err cause);
    void *arg;
};

struct gb_err gb_session_manager_new(const struct gb_session_manager_cfg *cfg,
                                     struct gb_session_manager **out);
void gb_session_manager_start(struct gb_session_manager *m);
/* What the session's drainers ask before each claim. Valid until gb_session_manager_free. */
struct gb_authority gb_session_manager_authority(struct gb_session_manager *m);
/* Spec 06 §7.8: authority off, source closed, then released; never released before the close.
 * op.deadline_ns bounds it. GB_TIMEOUT: the close did not return, the lease was kept. */
void gb_session_manager_close(struct gb_session_manager *m, struct gb_op *op, gb_done_fn *done,
                              void *arg);
/* Never started, or close completed; NULL ok. */
void gb_session_manager_free(struct gb_session_manager *m);

struct gb_session_manager_health { /* texts are valid until the next turn */
    enum gb_session_role_state state;
    bool holds;                       /* local authority */
    const char *owner;                /* of the row as last seen; "" = none, or not seen since
                                       * the last term of this instance */
    uint64_t version;                 /* of it */
    int64_t remaining_ns;             /* of the local deadline; 0 without authority */
    int64_t observed_ns, required_ns; /* evidence against the present owner, as last seen */
    int64_t fails;                    /* renewals in a row */
    uint64_t terms, expiries, transfers, acquire_failures, step_downs;
    struct gb_lease_cadence cadence;
    struct gb_session_health session;
    struct gb_err last_error; /* of the store; GB_OK when the last call answered */
};
void gb_session_manager_health(const struct gb_session_manager *m,
                               struct gb_session_manager_health *out);

/* Spec 06 §4.3, uniform: a standby's wait [base - base/4, base + base/4), a renewal's. */
int64_t gb_lease_poll_delay_ns(int64_t base_ns, struct gb_reactor *reactor);
int64_t gb_lease_renew_delay_ns(int64_t interval_ns, int64_t jitter_ns, struct gb_reactor *reactor);

#endif
