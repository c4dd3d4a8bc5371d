#ifndef GB_APP_RUNTIME_PARTS_H
#define GB_APP_RUNTIME_PARTS_H

#include "adapters/aws/aws_credentials.h"
#include "adapters/sqlite/sqlite_pool.h"
#include "app/dynamodb.h"
#include "app/runtime.h"
#include "base/map.h"
#include "base/op.h"
#include "core/drainer.h"
#include "core/ledger.h"
#include "core/route.h"
#include "core/session_manager.h"
#include "io/http.h"
#include "io/net.h"
#include "ports/dlq.h"
#include "ports/session.h"
#include "ports/subscriptions.h"

/* Inside of the runtime (src/app/runtime*.c, build_*.c only).
 * Owns:   see struct gb_runtime.
 * Thread: loop thread only.
 * Errors: builders return the first error; gb_runtime_free releases what is there. */

enum gb_runtime_phase {
    GB_PHASE_BUILT = 0,
    GB_PHASE_PREFLIGHT, /* shapes of the tables */
    GB_PHASE_MARKS,     /* local tokens are read */
    GB_PHASE_RUNNING,
    GB_PHASE_ROUTES,   /* intake has stopped, deliveries settle */
    GB_PHASE_DRAINERS, /* last batch of each partition */
    GB_PHASE_SESSIONS, /* DISCONNECT */
    GB_PHASE_SENDERS,
    GB_PHASE_STORES,
    GB_PHASE_DYNAMODB,
    GB_PHASE_HTTP,
    GB_PHASE_ENDED,
    GB_PHASES,
};

struct gb_built_lease {
    struct gb_runtime *runtime;
    struct gb_session_manager *manager;
    char partition[GB_BLUEPRINT_PARTITION_MAX]; /* which its lease fences */
    bool connect_after;                         /* connect_after_lease */
    struct gb_op close;
};
struct gb_built_session {
    const struct gb_bp_session *bp;
    struct gb_session *session;   /* NULL: not in use */
    struct gb_built_lease *lease; /* its manager starts and stops it; NULL: the runtime does */
    struct gb_op stop;
};
struct gb_built_sender {
    const struct gb_bp_sender *bp;
    struct gb_sender *sender; /* NULL: not in use */
    struct gb_aws_credentials *credentials;
    struct gb_op close; /* senders of a session are closed with it */
};
struct gb_built_route {
    const struct gb_bp_route *bp;
    struct gb_route *route;
    struct gb_op stop;
};
struct gb_built_drainer {
    char partition[GB_BLUEPRINT_PARTITION_MAX];
    struct gb_drainer *drainer;
    bool local;                 /* no lease fences it: the local token does */
    struct gb_authority holder; /* the token of either */
    struct gb_local_authority authority;
    struct gb_op mark;
    struct gb_op stop;
};

struct gb_runtime {
    struct gb_runtime_cfg cfg;
    struct gb_reactor *reactor;
    struct gb_net *net;
    struct gb_http *http;
    struct gb_app_dynamodb dynamodb; /* empty: no store needs it */
    struct gb_dynamodb_want wants[GB_BP_ROLE_COUNT];
    size_t want_count;
    struct gb_dynamodb_provision preflight;
    struct gb_sqlite_pool *sqlite;
    struct gb_outbox *outbox;
    struct gb_dlq *dlq;
    struct gb_subscriptions *subscriptions;
    struct gb_lease *lease;
    struct gb_ledger *ledger;
    struct gb_built_session *sessions;
    size_t session_count;
    struct gb_built_lease *leases;
    size_t lease_count;
    struct gb_built_sender *senders;
    size_t sender_count;
    struct gb_built_route *routes;
    size_t route_count;
    struct gb_built_drainer *drainers;
    size_t drainer_count;
    struct gb_map by_partition; /* -> struct gb_built_drainer */
    enum gb_runtime_phase phase;
    size_t pending; /* operations of the phase */
    struct gb_op close_http, close_dynamodb, close_outbox, close_dlq, close_subscriptions,
        close_lease;
    bool started, stopping, terminal;
    uint64_t deadline_ns, settle_deadline_ns;
    struct gb_err left;   /* deliveries were cut off at the deadline: they come again */
    struct gb_err result; /* first failure of the stop beside that */
    void (*done)(void *arg, struct gb_err result);
    void *done_arg;
};

struct gb_err gb_build_stores(struct gb_runtime *r);   /* build_stores.c */
struct gb_err gb_build_sessions(struct gb_runtime *r); /* build_sessions.c */
struct gb_err gb_build_lease_store(struct gb_runtime *r,
                                   const struct gb_bp_store *s); /* build_leases.c */
struct gb_err gb_build_leases(struct gb_runtime *r);   /* build_leases.c, after the sessions */
struct gb_err gb_build_senders(struct gb_runtime *r);  /* build_senders.c */
struct gb_err gb_build_routes(struct gb_runtime *r);   /* build_routes.c */
struct gb_err gb_build_drainers(struct gb_runtime *r); /* build_routes.c, after the routes */
struct gb_built_session *gb_runtime_session_of(struct gb_runtime *r,
                                               const struct gb_bp_session *bp);
/* The lease that fences a partition; NULL: none. */
struct gb_built_lease *gb_runtime_lease_of(struct gb_runtime *r, struct gb_bytes partition);
struct gb_sender *gb_runtime_sender_of(struct gb_runtime *r, const struct gb_bp_sender *bp);
/* Something under the runtime became terminal. */
void gb_runtime_fail(struct gb_runtime *r, struct gb_err cause);

#endif
