#ifndef GB_CORE_SESSION_MANAGER_PARTS_H
#define GB_CORE_SESSION_MANAGER_PARTS_H

#include "base/log.h"
#include "core/session_manager.h"

/* Inside of the session manager (src/core/session_manager*.c only): standing by and life
 * (session_manager.c), a term from its win on (session_manager_term.c), its end
 * (session_manager_end.c).
 * Owns:   see struct gb_session_manager.
 * Thread: loop thread only.
 * Errors: see the functions. */

/* How a term ends; all take the same steps: authority off, source closed, grace, released. */
enum gb_manager_end {
    GB_MANAGER_END_LOST = 0, /* then standby again */
    GB_MANAGER_END_FAILED,   /* the session could not serve: standby after a back-off */
    GB_MANAGER_END_BROKER,   /* broker path: then terminal (spec 06 §7.6) */
    GB_MANAGER_END_OVERRUN,  /* activation took too long: then terminal */
    GB_MANAGER_END_CLOSE,    /* shutdown */
};
enum gb_manager_ending {
    GB_MANAGER_NOT_ENDING = 0,
    GB_MANAGER_CLOSING_SOURCE,
    GB_MANAGER_GRACE,
    GB_MANAGER_RELEASING,
};

struct gb_session_manager {
    struct gb_session_manager_cfg cfg; /* texts are copies */
    char *session_id, *owner;
    struct gb_lease_holder endpoints; /* copies of cfg.endpoints */
    enum gb_session_role_state state;
    /* standing by */
    struct gb_timer poll;
    struct gb_lease_acquire acquire;
    bool acquiring;
    uint64_t call_boot_ns; /* boot clock before the call that is out */
    uint64_t call_ns;
    unsigned outages; /* failed acquires in a row */
    uint64_t outage_ns;
    struct gb_log_limit outage_limit;
    struct gb_lease_holder seen; /* as last seen */
    unsigned session_failures;   /* terms in a row that did not get to serve */
    /* the term */
    bool holds;
    struct gb_token token;
    uint64_t deadline_boot_ns;
    uint64_t activation_ns; /* when it has to be complete */
    struct gb_timer renewal, watch;
    struct gb_lease_renew renew;
    struct gb_lease_current check;
    bool renewing; /* renew or check is out */
    int64_t fails;
    uint64_t unhealthy_ns; /* since when the broker path is broken; 0: it is not */
    bool session_running;
    /* its end */
    enum gb_manager_ending ending;
    enum gb_manager_end end;
    struct gb_err cause;
    struct gb_timer step;
    struct gb_op stop;
    bool stopping_session, stop_hangs;
    uint64_t grace_end_ns;
    struct gb_lease_release release;
    bool releasing, release_wanted;
    struct gb_op *close_op;
    /* what was counted */
    uint64_t terms, expiries, transfers, acquire_failures, step_downs;
    struct gb_err last_error;
    struct gb_metric *m_acquire_latency, *m_renew_latency, *m_acquire_failures, *m_expiries,
        *m_transfers, *m_broker, *m_reconcile_failures;
};

void gb_manager_set_state(struct gb_session_manager *m, enum gb_session_role_state next);
uint64_t gb_manager_now(const struct gb_session_manager *m);
/* min(5s, step_down_grace): what closing the source and releasing may take each (spec 06 §7.4). */
int64_t gb_manager_bound_ns(const struct gb_session_manager *m);
void gb_manager_audit(const struct gb_session_manager *m, const char *action,
                      const struct gb_err *err);
void gb_manager_stand_by(struct gb_session_manager *m, int64_t delay_ns); /* polls after it */
/* A lease was won: spec 06 §7.2. */
void gb_manager_begin_term(struct gb_session_manager *m, uint64_t version, uint64_t before_boot_ns);
void gb_manager_begin_end(struct gb_session_manager *m, enum gb_manager_end end,
                          struct gb_err cause);
/* A renewal that was out when the end began has come back. */
void gb_manager_call_returned(struct gb_session_manager *m);
void gb_manager_terminal(struct gb_session_manager *m, struct gb_err cause);
void gb_manager_finish_close(struct gb_session_manager *m, struct gb_err result);

void gb_manager_poll_due(struct gb_timer *t);
void gb_manager_renewal_due(struct gb_timer *t);
void gb_manager_watch_due(struct gb_timer *t);
void gb_manager_step_due(struct gb_timer *t);

#endif
