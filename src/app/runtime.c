#include "app/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/lease_log.h"
#include "app/runtime_parts.h"
#include "base/log.h"
#include "io/net_uv.h"

#define GB_BIT(phase) (1u << (phase))
#define GB_STOP_BITS (GB_BIT(GB_PHASE_ROUTES) | GB_BIT(GB_PHASE_SESSIONS))
static const uint16_t exits[GB_PHASES] = {
    [GB_PHASE_BUILT] = GB_BIT(GB_PHASE_PREFLIGHT) | GB_STOP_BITS,
    [GB_PHASE_PREFLIGHT] = GB_BIT(GB_PHASE_MARKS) | GB_STOP_BITS,
    [GB_PHASE_MARKS] = GB_BIT(GB_PHASE_RUNNING) | GB_STOP_BITS,
    [GB_PHASE_RUNNING] = GB_STOP_BITS,
    [GB_PHASE_ROUTES] = GB_BIT(GB_PHASE_DRAINERS),
    [GB_PHASE_DRAINERS] = GB_BIT(GB_PHASE_SESSIONS),
    [GB_PHASE_SESSIONS] = GB_BIT(GB_PHASE_SENDERS),
    [GB_PHASE_SENDERS] = GB_BIT(GB_PHASE_STORES),
    [GB_PHASE_STORES] = GB_BIT(GB_PHASE_DYNAMODB),
    [GB_PHASE_DYNAMODB] = GB_BIT(GB_PHASE_HTTP),
    [GB_PHASE_HTTP] = GB_BIT(GB_PHASE_ENDED),
};

/* The settle phase of spec 08 §3, and what the later phases keep for themselves. */
static const uint64_t settle_max_ns = 25 * 1000000000ull;
static const uint64_t close_reserve_ns = 2 * 1000000000ull;

static void enter(struct gb_runtime *r, enum gb_runtime_phase phase);

static void set_phase(struct gb_runtime *r, enum gb_runtime_phase next)
{
    GB_ASSERT((exits[r->phase] & GB_BIT(next)) != 0);
    r->phase = next;
}

static struct gb_err build_io(struct gb_runtime *r)
{
    struct gb_err err = gb_net_uv_new(r->cfg.loop, &r->net);
    if (gb_failed(err)) return err;
    err = gb_app_http_new(r->cfg.loop, &r->http);
    if (gb_failed(err)) return err;
    return gb_ledger_new(0, &r->ledger);
}

static struct gb_err build(struct gb_runtime *r)
{
    static struct gb_err (*const steps[])(struct gb_runtime *) = {
        build_io,         gb_build_stores, gb_build_sessions, gb_build_leases,
        gb_build_senders, gb_build_routes, gb_build_drainers,
    };
    struct gb_err err = gb_lease_log(r->cfg.blueprint);
    for (size_t i = 0; !gb_failed(err) && i < sizeof steps / sizeof steps[0]; i++) {
        err = steps[i](r);
    }
    return err;
}

/* A half-built runtime is closed by the same phases as a running one. */
struct gb_err gb_runtime_new(const struct gb_runtime_cfg *cfg, struct gb_runtime **out)
{
    struct gb_runtime *r = calloc(1, sizeof *r);
    if (r == NULL) return gb_err_no_memory("runtime");
    r->cfg = *cfg;
    r->reactor = gb_loop_reactor(cfg->loop);
    *out = r;
    return build(r);
}

void gb_runtime_fail(struct gb_runtime *r, struct gb_err cause)
{
    if (r->terminal) return; /* the first cause is kept */
    r->terminal = true;
    r->cfg.terminal(r->cfg.arg, cause);
}

static void start_parts(struct gb_runtime *r)
{
    set_phase(r, GB_PHASE_RUNNING);
    r->started = true;
    for (size_t i = 0; i < r->drainer_count; i++) gb_drainer_start(r->drainers[i].drainer);
    for (size_t i = 0; i < r->route_count; i++) gb_route_start(r->routes[i].route);
    for (size_t i = 0; i < r->session_count; i++) {
        struct gb_built_session *b = &r->sessions[i];
        if (b->lease != NULL) {
            gb_session_manager_start(b->lease->manager);
        } else if (b->session != NULL) {
            b->session->ops->start(b->session);
        }
    }
    GB_LOG(GB_LOG_INFO, "bridge started", gb_lf_str("bridge_id", r->cfg.blueprint->bridge.id),
           gb_lf_int("routes", (int64_t)r->route_count),
           gb_lf_int("sessions", (int64_t)r->session_count));
    if (r->cfg.started != NULL) r->cfg.started(r->cfg.arg);
}

static void mark_read(struct gb_op *op, void *arg)
{
    struct gb_runtime *r = arg;
    if (gb_failed(op->result) && !r->stopping)
        gb_runtime_fail(r, gb_err_in(op->result, "reading the outbox's fencing mark"));
    if (--r->pending > 0) return; /* not before a stop from there has seen that this runs */
    if (r->stopping) {
        enter(r, GB_PHASE_ROUTES);
    } else if (!r->terminal) {
        start_parts(r);
    }
}

static void read_marks(struct gb_runtime *r)
{
    set_phase(r, GB_PHASE_MARKS);
    uint64_t deadline_ns = gb_reactor_now_ns(r->reactor) + 30 * (uint64_t)GB_SEC;
    r->pending = 1; /* not before the last one was asked */
    for (size_t i = 0; i < r->drainer_count; i++) {
        struct gb_built_drainer *b = &r->drainers[i];
        if (!b->local) continue; /* a lease gives the token */
        r->pending++;
        b->mark.deadline_ns = deadline_ns;
        const struct gb_local_authority_cfg cfg = {.reactor = r->reactor,
                                                   .outbox = r->outbox,
                                                   .owner = r->cfg.owner,
                                                   .partition = b->partition};
        gb_local_authority_start(&b->authority, &cfg, &b->mark, mark_read, r);
    }
    if (--r->pending == 0) start_parts(r);
}

static void preflight_news(void *arg, const struct gb_dynamodb_want *want,
                           enum gb_dynamodb_news news, const struct gb_err *err)
{
    (void)arg;
    if (news == GB_DYNAMODB_NEWS_MISSING) {
        GB_LOG(GB_LOG_WARN, "table is missing: create it with gobridge -create-tables",
               gb_lf_str("table", want->table));
    } else if (news == GB_DYNAMODB_NEWS_WARNING) {
        GB_LOG(GB_LOG_WARN, "table does not fit; preflight_advisory lets it pass",
               gb_lf_str("table", want->table), gb_lf_err(err));
    }
}

static void preflight_done(struct gb_op *op, void *arg)
{
    struct gb_runtime *r = arg;
    if (gb_failed(op->result) && !r->stopping)
        gb_runtime_fail(r, gb_err_in(op->result, "preflight of the stores"));
    r->pending = 0;
    if (r->stopping) {
        enter(r, GB_PHASE_ROUTES);
    } else if (!r->terminal) {
        read_marks(r);
    }
}

void gb_runtime_start(struct gb_runtime *r)
{
    set_phase(r, GB_PHASE_PREFLIGHT);
    if (r->dynamodb.client == NULL) {
        read_marks(r);
        return;
    }
    r->preflight = (struct gb_dynamodb_provision){
        .reactor = r->reactor,
        .client = r->dynamodb.client,
        .mode = GB_DYNAMODB_PREFLIGHT,
        .wants = r->wants,
        .want_count = r->want_count,
        .report = preflight_news,
    };
    r->preflight.op.deadline_ns = gb_reactor_now_ns(r->reactor) + 60 * (uint64_t)GB_SEC;
    r->pending = 1;
    gb_dynamodb_provision(&r->preflight, preflight_done, r);
}

/* Every stop operation of a phase ends here; the last one opens the next phase. */
static void phase_op_done(struct gb_op *op, void *arg)
{
    struct gb_runtime *r = arg;
    if (gb_failed(op->result)) {
        GB_LOG(GB_LOG_WARN, "stopping: a part did not end cleanly",
               gb_lf_int("phase", (int64_t)r->phase), gb_lf_err(&op->result));
        bool draining = r->phase == GB_PHASE_ROUTES || r->phase == GB_PHASE_DRAINERS;
        bool left = draining && op->result.code == GB_TIMEOUT;
        struct gb_err *first = left ? &r->left : &r->result;
        if (!gb_failed(*first)) *first = op->result;
    }
    if (--r->pending == 0) enter(r, (enum gb_runtime_phase)(r->phase + 1));
}

static void stop_routes(struct gb_runtime *r)
{
    for (size_t i = 0; i < r->route_count; i++) {
        struct gb_built_route *b = &r->routes[i];
        if (b->route == NULL || !r->started) continue;
        r->pending++;
        b->stop.deadline_ns = r->settle_deadline_ns;
        gb_route_stop(b->route, &b->stop, phase_op_done, r);
    }
}

static void stop_drainers(struct gb_runtime *r)
{
    for (size_t i = 0; i < r->drainer_count; i++) {
        struct gb_built_drainer *b = &r->drainers[i];
        if (b->drainer == NULL || !r->started) continue;
        r->pending++;
        b->stop.deadline_ns = r->settle_deadline_ns;
        gb_drainer_stop(b->drainer, &b->stop, phase_op_done, r);
    }
}

static void stop_sessions(struct gb_runtime *r)
{
    for (size_t i = 0; i < r->session_count; i++) {
        struct gb_built_session *b = &r->sessions[i];
        if (b->session == NULL || !r->started) continue;
        r->pending++;
        if (b->lease != NULL) {
            b->lease->close.deadline_ns = r->deadline_ns - close_reserve_ns / 2;
            gb_session_manager_close(b->lease->manager, &b->lease->close, phase_op_done, r);
            continue;
        }
        b->stop.deadline_ns = r->deadline_ns - close_reserve_ns / 2;
        b->session->ops->stop(b->session, &b->stop, phase_op_done, r);
    }
}

static void close_senders(struct gb_runtime *r)
{
    for (size_t i = 0; i < r->sender_count; i++) {
        struct gb_built_sender *b = &r->senders[i];
        if (b->sender == NULL || b->credentials == NULL) continue; /* a session's own */
        r->pending++;
        b->close.deadline_ns = r->deadline_ns - close_reserve_ns / 4;
        b->sender->ops->close(b->sender, &b->close, phase_op_done, r);
        b->sender = NULL;
    }
}

static void close_http(struct gb_runtime *r)
{
    for (size_t i = 0; i < r->sender_count; i++) {
        gb_aws_credentials_unref(r->senders[i].credentials);
        r->senders[i].credentials = NULL;
    }
    gb_aws_credentials_unref(r->dynamodb.credentials);
    r->dynamodb.credentials = NULL;
    if (r->http == NULL) return;
    r->pending++;
    r->http->ops->close(r->http, &r->close_http, phase_op_done, r);
    r->http = NULL;
}

static void close_stores(struct gb_runtime *r)
{
    /* The sessions, routes and drainers that use the stores have ended: free them before their
     * stores go. */
    for (size_t i = 0; i < r->route_count; i++) gb_route_free(r->routes[i].route);
    for (size_t i = 0; i < r->drainer_count; i++) {
        gb_drainer_free(r->drainers[i].drainer);
        gb_local_authority_deinit(&r->drainers[i].authority);
    }
    for (size_t i = 0; i < r->lease_count; i++) gb_session_manager_free(r->leases[i].manager);
    for (size_t i = 0; i < r->session_count; i++) {
        if (r->sessions[i].session != NULL)
            r->sessions[i].session->ops->free(r->sessions[i].session);
    }
    r->route_count = 0;
    r->drainer_count = 0;
    r->session_count = 0;
    r->lease_count = 0;
    if (r->outbox != NULL) {
        r->pending++;
        r->outbox->ops->close(r->outbox, &r->close_outbox, phase_op_done, r);
    }
    if (r->dlq != NULL) {
        r->pending++;
        r->dlq->ops->close(r->dlq, &r->close_dlq, phase_op_done, r);
    }
    if (r->subscriptions != NULL) {
        r->pending++;
        r->subscriptions->ops->close(r->subscriptions, &r->close_subscriptions, phase_op_done, r);
    }
    if (r->lease != NULL) {
        r->pending++;
        r->lease->ops->close(r->lease, &r->close_lease, phase_op_done, r);
    }
    r->lease = NULL;
    r->outbox = NULL;
    r->dlq = NULL;
    r->subscriptions = NULL;
}

static void close_dynamodb(struct gb_runtime *r)
{
    if (r->dynamodb.client == NULL) return;
    r->pending++;
    gb_dynamodb_client_close(r->dynamodb.client, &r->close_dynamodb, phase_op_done, r);
    r->dynamodb.client = NULL;
}

static void ended(struct gb_runtime *r)
{
    r->done(r->done_arg, gb_failed(r->result) ? r->result : r->left);
}

/* A phase without operations is passed through at once. */
static void enter(struct gb_runtime *r, enum gb_runtime_phase phase)
{
    static void (*const actions[GB_PHASES])(struct gb_runtime *) = {
        [GB_PHASE_ROUTES] = stop_routes,     [GB_PHASE_DRAINERS] = stop_drainers,
        [GB_PHASE_SESSIONS] = stop_sessions, [GB_PHASE_SENDERS] = close_senders,
        [GB_PHASE_STORES] = close_stores,    [GB_PHASE_DYNAMODB] = close_dynamodb,
        [GB_PHASE_HTTP] = close_http,        [GB_PHASE_ENDED] = ended,
    };
    for (;;) {
        set_phase(r, phase);
        GB_ASSERT(r->pending == 0);
        actions[phase](r);
        if (phase == GB_PHASE_ENDED || r->pending > 0) return;
        phase = (enum gb_runtime_phase)(phase + 1);
    }
}

static void set_deadline(struct gb_runtime *r, uint64_t deadline_ns)
{
    uint64_t now_ns = gb_reactor_now_ns(r->reactor);
    r->deadline_ns = deadline_ns;
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    uint64_t reserve_ns = left_ns / 4 < close_reserve_ns ? left_ns / 4 : close_reserve_ns;
    uint64_t settle_ns = left_ns - reserve_ns;
    int64_t drain_ns = r->cfg.blueprint->bridge.drain_timeout.ns;
    if (drain_ns > 0 && settle_ns > (uint64_t)drain_ns) settle_ns = (uint64_t)drain_ns;
    if (settle_ns > settle_max_ns) settle_ns = settle_max_ns;
    r->settle_deadline_ns = now_ns + settle_ns;
}

/* What comes after the drainers is bounded by their connections. */
void gb_runtime_hurry(struct gb_runtime *r, uint64_t deadline_ns)
{
    GB_ASSERT(r->stopping);
    uint64_t settle_ns = r->settle_deadline_ns;
    if (deadline_ns >= r->deadline_ns) return;
    set_deadline(r, deadline_ns);
    if (r->settle_deadline_ns > settle_ns) r->settle_deadline_ns = settle_ns;
    if (r->phase == GB_PHASE_ROUTES) {
        for (size_t i = 0; i < r->route_count; i++) {
            if (r->routes[i].route != NULL)
                gb_route_hurry(r->routes[i].route, r->settle_deadline_ns);
        }
    } else if (r->phase == GB_PHASE_DRAINERS) {
        for (size_t i = 0; i < r->drainer_count; i++) {
            if (r->drainers[i].drainer != NULL)
                gb_drainer_hurry(r->drainers[i].drainer, r->settle_deadline_ns);
        }
    }
}

void gb_runtime_stop(struct gb_runtime *r, uint64_t deadline_ns,
                     void (*done)(void *arg, struct gb_err result), void *arg)
{
    GB_ASSERT(!r->stopping);
    r->stopping = true;
    r->done = done;
    r->done_arg = arg;
    set_deadline(r, deadline_ns);
    bool starting = r->phase == GB_PHASE_PREFLIGHT || r->phase == GB_PHASE_MARKS;
    if (r->phase == GB_PHASE_PREFLIGHT) gb_op_cancel(&r->preflight.op);
    if (starting && r->pending > 0) return; /* preflight_done, mark_read go on from there */
    enter(r, GB_PHASE_ROUTES);
}

bool gb_runtime_closed(const struct gb_runtime *r)
{
    return r->phase == GB_PHASE_ENDED && !gb_failed(r->result);
}

void gb_runtime_free(struct gb_runtime *r)
{
    if (r == NULL) return;
    GB_ASSERT(r->phase == GB_PHASE_ENDED);
    if (r->net != NULL) gb_net_uv_free(r->net);
    gb_sqlite_pool_free(r->sqlite);
    gb_ledger_free(r->ledger);
    gb_map_deinit(&r->by_partition);
    free(r->sessions);
    free(r->leases);
    free(r->senders);
    free(r->routes);
    free(r->drainers);
    free(r);
}
