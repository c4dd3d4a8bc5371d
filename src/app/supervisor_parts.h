#ifndef GB_APP_SUPERVISOR_PARTS_H
#define GB_APP_SUPERVISOR_PARTS_H

#include "app/generation.h"
#include "app/source.h"
#include "app/supervisor.h"
#include "base/log.h"

/* Inside of the supervisor: what starts and stops (supervisor.c), and what comes from the source
 * (supervisor_watch.c).
 * Owns:   see struct gb_supervisor.
 * Thread: loop thread only.
 * Errors: see the functions. */

enum supervisor_state {
    SUPERVISOR_IDLE = 0,
    SUPERVISOR_RESOLVING, /* credentials of `next`; `current` may run */
    SUPERVISOR_STOPPING,  /* `current`, for `next` or for good */
    SUPERVISOR_STARTING,  /* `next` */
    SUPERVISOR_UNDOING,   /* `next` did not start and is closed */
    SUPERVISOR_RUNNING,
    SUPERVISOR_CLOSING, /* the source */
    SUPERVISOR_ENDED,
    SUPERVISOR_STATES,
};

struct gb_supervisor {
    struct gb_supervisor_cfg cfg;
    struct gb_generation_cfg generations;
    char *fallback_id;
    struct gb_source *source; /* NULL: the document comes from a pipe */
    const char *paths[GB_BLUEPRINT_LAYERS_MAX];
    struct gb_op close_source;
    enum supervisor_state state;
    struct gb_generation *current, *next;
    struct gb_generation *previous; /* while `next` starts: to go back to */
    bool activated;                 /* a document ran once */
    bool recovering;                /* `next` is the one before */
    bool again;                     /* look at the source once this is over */
    bool ending;
    int exit_code;
    uint64_t swap_started_ns;
    int64_t attempted_version;
    struct gb_timer retry;
    unsigned read_errors;           /* in a row */
    struct gb_err read_error;       /* the last one of them */
    struct gb_err apply_error;      /* of the last document; GB_OK: none */
    char considered[GB_SHA256_HEX]; /* digest of the last document; "": it was not read */
    bool terminal;
    struct gb_log_limit error_limit;
};

void gb_supervisor_reject(struct gb_supervisor *s, const struct gb_err *why);
/* The same content: nothing stops. */
void gb_supervisor_adopt(struct gb_supervisor *s, struct gb_generation *g);
/* Credentials, then stops what runs, then starts it. */
void gb_supervisor_run(struct gb_supervisor *s, struct gb_generation *g);
/* For good, unless `next` waits. */
void gb_supervisor_stop_current(struct gb_supervisor *s, int64_t budget_ns);
void gb_supervisor_end_by_itself(struct gb_supervisor *s);

struct gb_err gb_supervisor_watch(struct gb_supervisor *s); /* opens the source */
/* The verdict on these bytes stands; NULL: tell again whatever is there. */
void gb_supervisor_use(struct gb_supervisor *s, const char *digest);
/* What another try may cure. */
void gb_supervisor_try_again(struct gb_supervisor *s);
void gb_supervisor_pace(struct gb_supervisor *s); /* as the running document wants it */
static inline uint64_t gb_supervisor_now(const struct gb_supervisor *s)
{
    return gb_reactor_now_ns(gb_loop_reactor(s->cfg.loop));
}

#endif
