#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/message_log.h"
#include "core/route_flight.h"
#include "domain/reserved.h"

/* The ingress side of shared_outbox (spec 02 §7.1): depth check, persist, acknowledge. */

enum { FULL_DELAY_S = 5, QUERY_FAILED_DELAY_S = 1 };
/* How soon a held delivery asks again whether its partition has room (docs/decisions/0006). */
static const uint64_t recheck_ns = 10 * 1000000ull;

static void check_depth(struct gb_flight *f);
static void query_depth(struct gb_route_partition *p);
static void recheck_due(struct gb_timer *t);
static void persist(struct gb_flight *f);

static struct gb_route_partition *partition_of(struct gb_route *r, struct gb_bytes name)
{
    for (size_t i = 0; i < r->partition_count; i++)
        if (gb_bytes_equal(gb_str_bytes(&r->partitions[i].name), name)) return &r->partitions[i];
    return NULL;
}

static struct gb_err add_partition(struct gb_route *r, struct gb_route_target *t)
{
    struct gb_str name = {0};
    gb_outbox_partition(&name, gb_bytes_c(t->session_id), gb_bytes_c(t->id));
    struct gb_err err = gb_str_check(&name, "partition name");
    if (gb_failed(err)) {
        gb_str_deinit(&name);
        return err;
    }
    t->partition = partition_of(r, gb_str_bytes(&name));
    if (t->partition != NULL) {
        gb_str_deinit(&name);
        return gb_ok();
    }
    struct gb_route_partition *p = &r->partitions[r->partition_count++];
    p->name = name;
    p->route = r;
    gb_list_init(&p->waiting);
    t->partition = p;
    return gb_timer_init(&p->recheck, r->cfg.reactor, recheck_due);
}

struct gb_err gb_route_outbox_init(struct gb_route *r)
{
    r->partitions = calloc(r->target_count, sizeof *r->partitions);
    if (r->partitions == NULL) return gb_err_no_memory("route partitions");
    for (size_t i = 0; i < r->target_count; i++) {
        struct gb_err err = add_partition(r, &r->targets[i]);
        if (gb_failed(err)) return err;
    }
    size_t legs = r->cfg.every_binding ? r->target_count : 1;
    for (uint32_t i = 0; i < r->cfg.policy.max_in_flight; i++) {
        struct gb_flight *f = &r->flights[i];
        f->records = calloc(legs, sizeof *f->records);
        f->legs = calloc(legs, sizeof *f->legs);
        if (f->records == NULL || f->legs == NULL) return gb_err_no_memory("route records");
    }
    return gb_ok();
}

void gb_route_outbox_deinit(struct gb_route *r)
{
    size_t legs = r->cfg.every_binding ? r->target_count : 1;
    for (uint32_t i = 0; r->flights != NULL && i < r->cfg.policy.max_in_flight; i++) {
        struct gb_flight *f = &r->flights[i];
        for (size_t k = 0; f->legs != NULL && k < legs; k++) gb_str_deinit(&f->legs[k].address);
        free(f->records);
        free(f->legs);
    }
    for (size_t i = 0; i < r->partition_count; i++) {
        gb_timer_deinit(&r->partitions[i].recheck);
        gb_str_deinit(&r->partitions[i].name);
    }
    free(r->partitions);
}

static size_t leg_count(const struct gb_route *r)
{
    return r->cfg.every_binding ? r->target_count : 1;
}

static struct gb_err build_record(struct gb_flight *f, size_t i)
{
    struct gb_route *r = f->route;
    const struct gb_route_target *t = &r->targets[i];
    struct gb_flight_leg *leg = &f->legs[i];
    struct gb_bytes address;
    struct gb_err err = gb_flight_address(f, t, &leg->address, &address);
    if (gb_failed(err)) return err;
    gb_id_hex(r->cfg.reactor, leg->id);
    f->records[i] = (struct gb_outbox_record){
        .id = gb_bytes_c(leg->id),
        .route_id = gb_bytes_c(r->id),
        .binding_id = gb_bytes_c(t->id),
        .session_id = gb_bytes_c(t->session_id),
        .address = address,
        .envelope = f->envelope,
        .ordering_key = gb_envelope_text(f->envelope, GB_H_ORDERING_KEY),
        .created_at_ms = gb_reactor_wall_ms(r->cfg.reactor),
        .expires_at_ms = f->envelope->expires_at_ms,
    };
    return gb_ok();
}

/* Redelivery counters never cross a hop (spec 02 §1.3). */
static void strip_counters(struct gb_envelope *e)
{
    for (size_t i = e->header_count; i > 0; i--)
        if (gb_is_redelivery_counter(e->headers[i - 1].name)) gb_envelope_remove_at(e, i - 1);
}

void gb_flight_store(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    f->first_try_ns = gb_reactor_now_ns(r->cfg.reactor);
    f->depth_leg = 0;
    strip_counters(f->envelope);
    for (size_t i = 0; i < leg_count(r); i++) {
        struct gb_err err = build_record(f, i);
        if (!gb_failed(err)) continue;
        if (err.code == GB_ADDRESS_TEMPLATE) gb_metric_add(r->metrics.template_errors, 1);
        if (gb_err_is_transient(&err)) {
            gb_flight_recover(f, err);
        } else {
            gb_flight_terminal(f, &r->targets[i], err);
        }
        return;
    }
    check_depth(f);
}

/* A source with its own redelivery clock gets the message back for the specified delay; every other
 * one is held back by its occupied slot, which costs no recycle of its session
 * (docs/decisions/0006). */
static void no_room(struct gb_flight *f, struct gb_route_partition *p, struct gb_err why,
                    int64_t delay_s)
{
    struct gb_reactor *reactor = f->route->cfg.reactor;
    if (f->delivery->source_counts) {
        gb_flight_hand_back(f, why, delay_s * GB_SEC);
        return;
    }
    gb_list_push(&p->waiting, &f->depth_node);
    if (!gb_timer_running(&p->recheck))
        gb_timer_start(&p->recheck, gb_reactor_now_ns(reactor) + recheck_ns);
}

static void recheck_due(struct gb_timer *t)
{
    query_depth(GB_CONTAINER_OF(t, struct gb_route_partition, recheck));
}

static void depth_done(struct gb_op *op, void *arg)
{
    struct gb_route_partition *p = arg;
    struct gb_route *r = p->route;
    struct gb_err err = op->result;
    uint64_t now_ns = gb_reactor_now_ns(r->cfg.reactor);
    bool full = !gb_failed(err) && p->depth.pending >= r->cfg.policy.max_outbox_depth;
    p->querying = false;
    r->depth_queries--;
    p->under_until_ns =
        gb_failed(err) || full ? 0 : now_ns + (uint64_t)r->cfg.policy.depth_cache_ttl_ns;
    const struct gb_dimension partition = {"partition", p->name.data};
    if (gb_failed(err) && err.code != GB_CANCELLED) {
        gb_metric_add(
            gb_metrics_get(r->cfg.metrics, GB_METRIC_COUNTER, "OutboxDepthFailures", &partition, 1),
            1);
    } else if (!gb_failed(err)) {
        gb_metric_set(gb_metrics_get(r->cfg.metrics, GB_METRIC_GAUGE, "OutboxDepth", &partition, 1),
                      (double)p->depth.pending);
    }
    if (!gb_failed(err) && !full) {
        p->credits = r->cfg.policy.max_outbox_depth - p->depth.pending;
    } else if (full) {
        err = gb_err(GB_UNAVAILABLE,
                     "outbox partition %s holds %llu records, max_outbox_depth is %llu",
                     p->name.data, (unsigned long long)p->depth.pending,
                     (unsigned long long)r->cfg.policy.max_outbox_depth);
    }
    struct gb_list waiting;
    gb_list_init(&waiting);
    gb_list_splice(&waiting, &p->waiting);
    struct gb_list_node *n;
    while ((n = gb_list_pop(&waiting)) != NULL) {
        struct gb_flight *f = GB_CONTAINER_OF(n, struct gb_flight, depth_node);
        if (r->cancelling) {
            gb_flight_abandon(f);
        } else if (gb_failed(err)) {
            no_room(f, p, err, full ? FULL_DELAY_S : QUERY_FAILED_DELAY_S);
        } else if (p->credits == 0) {
            gb_list_push(&p->waiting, &f->depth_node); /* what the answer allowed is used up */
        } else {
            f->depth_leg++;
            check_depth(f);
        }
    }
    if (!gb_list_empty(&p->waiting) && !gb_timer_running(&p->recheck)) query_depth(p);
    gb_route_maybe_stopped(r);
}

static void query_depth(struct gb_route_partition *p)
{
    struct gb_route *r = p->route;
    if (p->querying) return;
    p->querying = true;
    r->depth_queries++;
    memset(&p->depth, 0, sizeof p->depth);
    p->depth.partition = gb_str_bytes(&p->name);
    p->depth.limit = r->cfg.policy.max_outbox_depth + 1;
    p->depth.op.deadline_ns =
        gb_reactor_now_ns(r->cfg.reactor) + (uint64_t)r->cfg.policy.send_timeout_ns;
    r->cfg.outbox->ops->depth(r->cfg.outbox, &p->depth, depth_done, p);
}

/* Every distinct partition must be believed under capacity (spec 02 §7.1 item 2); one that was for
 * this delivery is not asked again, or a store slower than the cache's life would keep a fan-out
 * asking for ever. Half way through a cached answer's life it is asked again in the background, so
 * that a busy route does not stand still once per cache life. */
static void check_depth(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    uint64_t now_ns = gb_reactor_now_ns(r->cfg.reactor);
    for (; f->depth_leg < leg_count(r); f->depth_leg++) {
        struct gb_route_partition *p = r->targets[f->depth_leg].partition;
        if (now_ns >= p->under_until_ns || p->credits == 0) {
            gb_flight_set_state(f, GB_FLIGHT_DEPTH);
            gb_list_push(&p->waiting, &f->depth_node);
            query_depth(p);
            return;
        }
        if (p->under_until_ns - now_ns < (uint64_t)r->cfg.policy.depth_cache_ttl_ns / 2 ||
            p->credits < r->cfg.policy.max_outbox_depth / 4)
            query_depth(p);
    }
    persist(f);
}

static void persist_due(struct gb_timer *t)
{
    persist(GB_CONTAINER_OF(t, struct gb_flight, timer));
}

/* A store that can't take the record at present is not the message's fault: it is held and tried
 * again for send_retry_budget, then handed back without a charge, never dead-lettered
 * (docs/decisions/0005). */
static void retry_persist(struct gb_flight *f, struct gb_err cause)
{
    struct gb_route *r = f->route;
    const struct gb_policy *p = &r->cfg.policy;
    uint64_t now_ns = gb_reactor_now_ns(r->cfg.reactor);
    int64_t delay_ns =
        gb_backoff_delay_ns(&p->backoff, f->tries, cause.retry_after_ns, r->cfg.reactor);
    uint64_t suppressed = 0;
    if (gb_log_allow(&r->log_limit, now_ns, 10 * GB_SEC, &suppressed)) {
        struct gb_message_log m;
        gb_message_log_set(&m, f->envelope);
        GB_LOG(GB_LOG_ERROR, "outbox refused a record; the source is not acknowledged",
               gb_lf_str("route_id", r->id), GB_LF_MESSAGE(m), gb_lf_err(&cause),
               gb_lf_int("more_since_last_line", (int64_t)suppressed));
    }
    if (gb_add_sat_i64((int64_t)(now_ns - f->first_try_ns), delay_ns) > p->send_retry_budget_ns) {
        gb_metric_add(r->metrics.errors, 1);
        gb_flight_hand_back(f, cause, delay_ns);
        return;
    }
    gb_flight_set_state(f, GB_FLIGHT_WAITING);
    f->timer.fire = persist_due;
    gb_timer_start(&f->timer, now_ns + (uint64_t)delay_ns);
}

static void tell_persisted(struct gb_route *r)
{
    if (r->cfg.persisted == NULL) return;
    size_t used = r->cfg.every_binding ? r->partition_count : 1;
    for (size_t i = 0; i < used; i++)
        r->cfg.persisted(r->cfg.arg, gb_str_bytes(&r->partitions[i].name));
}

static void persist_done(struct gb_op *op, void *arg)
{
    struct gb_flight *f = arg;
    struct gb_route *r = f->route;
    struct gb_err err = op->result;
    if (err.code == GB_OK || err.code == GB_DUPLICATE_RECORD) {
        gb_metric_time(r->metrics.persist_latency,
                       (int64_t)(gb_reactor_now_ns(r->cfg.reactor) - f->first_try_ns));
        if (err.code == GB_DUPLICATE_RECORD) gb_metric_add(r->metrics.duplicate_suppressed, 1);
        tell_persisted(r);
        gb_flight_ack(f);
    } else if (err.code == GB_CANCELLED || r->cancelling) {
        gb_flight_abandon(f);
    } else if (err.code == GB_TIMEOUT) {
        gb_flight_hand_back(f, err, r->cfg.policy.backoff.initial_ns);
    } else if (gb_err_is_transient(&err)) {
        retry_persist(f, err);
    } else if (err.class_ == GB_CLASS_REJECTED) {
        gb_flight_terminal(f, &r->targets[0], err);
    } else {
        gb_flight_recover(f, err);
    }
}

static void persist(struct gb_flight *f)
{
    struct gb_route *r = f->route;
    gb_flight_set_state(f, GB_FLIGHT_PERSISTING);
    f->tries++;
    memset(&f->work.persist, 0, sizeof f->work.persist);
    f->work.persist.records = f->records;
    f->work.persist.count = leg_count(r);
    for (size_t i = 0; i < leg_count(r); i++)
        if (r->targets[i].partition->credits > 0) r->targets[i].partition->credits--;
    f->work.persist.op.deadline_ns =
        gb_reactor_now_ns(r->cfg.reactor) + (uint64_t)r->cfg.policy.send_timeout_ns;
    r->cfg.outbox->ops->persist(r->cfg.outbox, &f->work.persist, persist_done, f);
}

/* The route is being cancelled; also ends the waits of direct_hold. */
void gb_flight_cancel_store(struct gb_flight *f)
{
    if (f->state == GB_FLIGHT_PERSISTING) {
        gb_op_cancel(&f->work.persist.op);
        return;
    }
    if (f->state == GB_FLIGHT_DEPTH) gb_list_remove(&f->depth_node);
    gb_flight_abandon(f);
}
