#include "core/route.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/route_flight.h"
#include "domain/address.h"
#include "domain/reserved.h"

static enum gb_emit emit(void *arg, struct gb_delivery *d);
static void stop_deadline(struct gb_timer *t);
static void resume_receiver(struct gb_task *t);

#define GB_BIT(state) (1u << (state))
static const uint16_t exits[] = {
    /* row = state, bits = allowed next states */
    [GB_FLIGHT_FREE] = GB_BIT(GB_FLIGHT_SENDING) | GB_BIT(GB_FLIGHT_DEPTH) |
                       GB_BIT(GB_FLIGHT_PERSISTING) | GB_BIT(GB_FLIGHT_DEAD_LETTER) |
                       GB_BIT(GB_FLIGHT_SETTLING) | GB_BIT(GB_FLIGHT_FREE),
    [GB_FLIGHT_SENDING] = GB_BIT(GB_FLIGHT_WAITING) | GB_BIT(GB_FLIGHT_DEAD_LETTER) |
                          GB_BIT(GB_FLIGHT_SETTLING) | GB_BIT(GB_FLIGHT_FREE),
    [GB_FLIGHT_WAITING] =
        GB_BIT(GB_FLIGHT_SENDING) | GB_BIT(GB_FLIGHT_PERSISTING) | GB_BIT(GB_FLIGHT_FREE),
    [GB_FLIGHT_DEPTH] = GB_BIT(GB_FLIGHT_DEPTH) | GB_BIT(GB_FLIGHT_PERSISTING) |
                        GB_BIT(GB_FLIGHT_DEAD_LETTER) | GB_BIT(GB_FLIGHT_SETTLING) |
                        GB_BIT(GB_FLIGHT_FREE),
    [GB_FLIGHT_PERSISTING] = GB_BIT(GB_FLIGHT_WAITING) | GB_BIT(GB_FLIGHT_DEAD_LETTER) |
                             GB_BIT(GB_FLIGHT_SETTLING) | GB_BIT(GB_FLIGHT_FREE),
    [GB_FLIGHT_DEAD_LETTER] = GB_BIT(GB_FLIGHT_SETTLING) | GB_BIT(GB_FLIGHT_FREE),
    /* Not only FREE: the source may say that it can't take the message back. */
    [GB_FLIGHT_SETTLING] =
        GB_BIT(GB_FLIGHT_DEAD_LETTER) | GB_BIT(GB_FLIGHT_SETTLING) | GB_BIT(GB_FLIGHT_FREE),
};

void gb_flight_set_state(struct gb_flight *f, enum gb_flight_state next)
{
    GB_ASSERT((exits[f->state] & GB_BIT(next)) != 0);
    f->state = next;
}

static void free_targets(struct gb_route *r)
{
    for (size_t i = 0; i < r->target_count; i++) {
        free(r->targets[i].id);
        free(r->targets[i].address);
        free(r->targets[i].session_id);
    }
    free(r->targets);
}

static struct gb_err copy_targets(struct gb_route *r, const struct gb_route_cfg *cfg)
{
    r->targets = calloc(cfg->binding_count, sizeof *r->targets);
    if (r->targets == NULL) return gb_err_no_memory("route bindings");
    for (size_t i = 0; i < cfg->binding_count; i++) {
        struct gb_route_target *t = &r->targets[i];
        const struct gb_route_binding *b = &cfg->bindings[i];
        r->target_count = i + 1;
        t->id = gb_strdup(b->id);
        t->address = gb_strdup(b->address == NULL ? "" : b->address);
        t->session_id = gb_strdup(b->session_id == NULL ? "" : b->session_id);
        if (t->id == NULL || t->address == NULL || t->session_id == NULL)
            return gb_err_no_memory("route bindings");
        t->sender = b->sender;
        t->mqtt = b->mqtt;
        t->placeholders = gb_address_has_placeholders(gb_bytes_c(t->address));
    }
    return gb_ok();
}

static void init_metrics(struct gb_route *r)
{
    const struct {
        struct gb_metric **handle;
        const char *name;
        enum gb_metric_kind kind;
    } rows[] = {
        {&r->metrics.received, "MessagesReceived", GB_METRIC_COUNTER},
        {&r->metrics.sent, "MessagesSent", GB_METRIC_COUNTER},
        {&r->metrics.errors, "RouteErrors", GB_METRIC_COUNTER},
        {&r->metrics.retries, "SendRetries", GB_METRIC_COUNTER},
        {&r->metrics.budget_exhausted, "SendRetryBudgetExhausted", GB_METRIC_COUNTER},
        {&r->metrics.template_errors, "AddressTemplateErrors", GB_METRIC_COUNTER},
        {&r->metrics.e2e_latency, "DeliveryE2ELatency", GB_METRIC_TIMER},
        {&r->metrics.persist_latency, "OutboxPersistLatency", GB_METRIC_TIMER},
        {&r->metrics.duplicate_suppressed, "OutboxDuplicateSuppressed", GB_METRIC_COUNTER},
        {&r->metrics.expired, "MessagesExpired", GB_METRIC_COUNTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].handle = gb_metrics_get(r->cfg.metrics, rows[i].kind, rows[i].name,
                                         GB_DIMS({"route_id", r->id}));
    }
}

/* A flight's timer gets its meaning when it is started: the retry delay, or the send's ceiling. */
static void no_meaning_yet(struct gb_timer *t)
{
    GB_ASSERT(t->fire != no_meaning_yet);
}

static struct gb_err init_flights(struct gb_route *r)
{
    uint32_t count = r->cfg.policy.max_in_flight;
    r->flights = calloc(count, sizeof *r->flights);
    if (r->flights == NULL) return gb_err_no_memory("route slots");
    for (uint32_t i = 0; i < count; i++) {
        struct gb_flight *f = &r->flights[i];
        f->route = r;
        struct gb_err err = gb_timer_init(&f->timer, r->cfg.reactor, no_meaning_yet);
        if (gb_failed(err)) return err;
        gb_list_push(&r->free, &f->node);
    }
    return gb_ok();
}

static struct gb_err check_cfg(const struct gb_route_cfg *cfg)
{
    if (cfg->binding_count == 0)
        return gb_err(GB_INVALID_CONFIG, "route %s has no binding", cfg->id);
    if (cfg->delivery_mode == GB_SHARED_OUTBOX && cfg->outbox == NULL)
        return gb_err(GB_INVALID_CONFIG, "route %s: shared_outbox requires stores.outbox", cfg->id);
    if (cfg->policy.max_in_flight == 0)
        return gb_err(GB_INVALID_CONFIG, "route %s: max_in_flight must be positive", cfg->id);
    return gb_ok();
}

struct gb_err gb_route_new(const struct gb_route_cfg *cfg, struct gb_route **out)
{
    struct gb_err err = check_cfg(cfg);
    if (gb_failed(err)) return err;
    struct gb_route *r = calloc(1, sizeof *r);
    if (r == NULL) return gb_err_no_memory("route");
    r->cfg = *cfg;
    gb_list_init(&r->free);
    gb_list_init(&r->busy);
    r->resume.run = resume_receiver;
    r->id = gb_strdup(cfg->id);
    r->instance_id = gb_strdup(cfg->instance_id);
    r->source_session_id = gb_strdup(cfg->source_session_id == NULL ? "" : cfg->source_session_id);
    err = gb_err_no_memory("route");
    if (r->id == NULL || r->instance_id == NULL || r->source_session_id == NULL) goto fail;
    err = copy_targets(r, cfg);
    if (gb_failed(err)) goto fail;
    err = gb_timer_init(&r->stop_timer, cfg->reactor, stop_deadline);
    if (gb_failed(err)) goto fail;
    err = init_flights(r);
    if (gb_failed(err)) goto fail;
    if (cfg->delivery_mode == GB_SHARED_OUTBOX) {
        err = gb_route_outbox_init(r);
        if (gb_failed(err)) goto fail;
    }
    init_metrics(r);
    *out = r;
    return gb_ok();
fail:
    gb_route_free(r);
    return err;
}

void gb_route_free(struct gb_route *r)
{
    if (r == NULL) return;
    GB_ASSERT(r->in_flight == 0);
    gb_task_cancel(&r->resume);
    gb_route_outbox_deinit(r);
    for (uint32_t i = 0; r->flights != NULL && i < r->cfg.policy.max_in_flight; i++) {
        gb_timer_deinit(&r->flights[i].timer);
        gb_str_deinit(&r->flights[i].address);
    }
    free(r->flights);
    gb_timer_deinit(&r->stop_timer);
    free_targets(r);
    free(r->id);
    free(r->instance_id);
    free(r->source_session_id);
    free(r);
}

void gb_route_start(struct gb_route *r)
{
    GB_ASSERT(!r->started);
    r->started = true;
    r->cfg.receiver->ops->start(r->cfg.receiver, (struct gb_sink){.emit = emit, .arg = r});
}

void gb_route_get_state(const struct gb_route *r, struct gb_route_state *out)
{
    *out = (struct gb_route_state){
        .in_flight = r->in_flight,
        .started = r->started,
        .stopping = r->stopping,
        .wedged = r->wedged,
    };
}

/* Spec 02 §3 steps 3-7. */
static void run_pipeline(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    struct gb_sanitise s = {
        .route_id = r->id,
        .instance_id = r->instance_id,
        .trust_bridge_headers = r->cfg.trust_bridge_headers,
        .source_counts = f->delivery->source_counts,
        .derived = f->delivery->derived,
    };
    struct gb_err err = gb_sanitise_ingress(f->envelope, &s, r->cfg.reactor);
    if (gb_failed(err)) {
        gb_flight_recover(f, err);
        return;
    }
    if (gb_envelope_expired(f->envelope, gb_reactor_wall_ms(r->cfg.reactor))) {
        gb_flight_terminal(f, NULL,
                           gb_err(GB_MESSAGE_EXPIRED, "the message expired before dispatch"));
        return;
    }
    if (r->cfg.delivery_mode == GB_SHARED_OUTBOX) {
        gb_flight_store(f);
    } else {
        gb_flight_send(f);
    }
}

static enum gb_emit emit(void *arg, struct gb_delivery *d)
{
    struct gb_route *r = arg;
    if (r->stopping || r->wedged) return GB_EMIT_REFUSED;
    struct gb_list_node *n = gb_list_pop(&r->free);
    if (n == NULL) {
        r->blocked = true;
        return GB_EMIT_FULL;
    }
    struct gb_flight *f = GB_CONTAINER_OF(n, struct gb_flight, node);
    gb_list_push(&r->busy, &f->node);
    r->in_flight++;
    f->delivery = d;
    f->envelope = d->envelope;
    f->started_ns = gb_reactor_now_ns(r->cfg.reactor);
    f->tries = 0;
    f->acked = false;
    f->last = gb_ok();
    gb_metric_add(r->metrics.received, 1);
    run_pipeline(f);
    return GB_EMIT_TAKEN;
}

static void resume_receiver(struct gb_task *t)
{
    struct gb_route *r = GB_CONTAINER_OF(t, struct gb_route, resume);
    if (r->blocked && !r->stopping && !r->wedged) {
        r->blocked = false;
        r->cfg.receiver->ops->resume(r->cfg.receiver);
    }
}

void gb_route_maybe_stopped(struct gb_route *r)
{
    if (r->stop_op == NULL || r->in_flight > 0 || r->depth_queries > 0) return;
    struct gb_op *op = r->stop_op;
    r->stop_op = NULL;
    gb_timer_stop(&r->stop_timer);
    gb_op_finish(
        op,
        r->left_unsettled
            ? gb_err(GB_TIMEOUT,
                     "route %s: deliveries were cancelled at the deadline; their source keeps them",
                     r->id)
            : gb_ok());
}

void gb_flight_release(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    gb_timer_stop(&f->timer);
    gb_flight_set_state(f, GB_FLIGHT_FREE);
    f->delivery = NULL;
    f->envelope = NULL;
    gb_list_remove(&f->node);
    gb_list_push_front(&r->free, &f->node);
    r->in_flight--;
    if (r->blocked) gb_reactor_defer(r->cfg.reactor, &r->resume);
    gb_route_maybe_stopped(r);
}

void gb_route_wedge(struct gb_route *r, struct gb_err cause)
{
    if (r->wedged) return; /* the first cause is kept */
    r->wedged = true;
    GB_LOG(GB_LOG_ERROR, "route wedged: intake stopped, the process must be restarted",
           gb_lf_str("route_id", r->id), gb_lf_err(&cause));
    if (!r->stopping) r->cfg.receiver->ops->stop(r->cfg.receiver);
    if (r->cfg.wedged != NULL) r->cfg.wedged(r->cfg.arg, r->id, cause);
}

/* Cancels what is under way; each flight ends through its own completion (spec 02 §3, cancellation
 * rule). */
static void cancel_flight(struct gb_flight *f)
{
    switch (f->state) {
    case GB_FLIGHT_SENDING:
        gb_flight_cancel_send(f);
        break;
    case GB_FLIGHT_WAITING:
    case GB_FLIGHT_DEPTH:
    case GB_FLIGHT_PERSISTING:
        gb_flight_cancel_store(f);
        break;
    case GB_FLIGHT_DEAD_LETTER:
        gb_op_cancel(&f->work.handover.op);
        break;
    case GB_FLIGHT_FREE:
    case GB_FLIGHT_SETTLING:
        break;
    }
}

static void stop_deadline(struct gb_timer *t)
{
    struct gb_route *r = GB_CONTAINER_OF(t, struct gb_route, stop_timer);
    r->cancelling = true;
    struct gb_list_node *n = gb_list_first(&r->busy);
    while (n != NULL) {
        struct gb_list_node *next = gb_list_next(&r->busy, n);
        cancel_flight(GB_CONTAINER_OF(n, struct gb_flight, node));
        n = next;
    }
    for (size_t i = 0; i < r->partition_count; i++)
        if (r->partitions[i].querying) gb_op_cancel(&r->partitions[i].depth.op);
}

void gb_route_stop(struct gb_route *r, struct gb_op *op, gb_done_fn *done, void *arg)
{
    GB_ASSERT(!r->stopping);
    gb_op_start(op, r->cfg.reactor, done, arg, NULL, r);
    r->stopping = true;
    if (r->started && !r->wedged) r->cfg.receiver->ops->stop(r->cfg.receiver);
    r->stop_op = op;
    gb_timer_start(&r->stop_timer, op->deadline_ns);
    gb_route_maybe_stopped(r);
}

void gb_route_hurry(struct gb_route *r, uint64_t deadline_ns)
{
    if (r->stop_op != NULL && !r->cancelling) gb_timer_start(&r->stop_timer, deadline_ns);
}
