#include "core/drainer.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/drain_batch.h"

enum drainer_state {
    DRAINER_IDLE = 0, /* new, or waits for the timer */
    DRAINER_EXPIRING,
    DRAINER_CLAIMING,
    DRAINER_SENDING,
    DRAINER_COUNTING, /* depth gauges after a cycle */
    DRAINER_STOPPED,
    DRAINER_STATES,
};
#define GB_BIT(state) (1u << (state))
static const uint8_t exits[DRAINER_STATES] = {
    [DRAINER_IDLE] = GB_BIT(DRAINER_EXPIRING) | GB_BIT(DRAINER_CLAIMING) | GB_BIT(DRAINER_STOPPED),
    [DRAINER_EXPIRING] = GB_BIT(DRAINER_CLAIMING) | GB_BIT(DRAINER_IDLE),
    [DRAINER_CLAIMING] = GB_BIT(DRAINER_SENDING) | GB_BIT(DRAINER_IDLE) | GB_BIT(DRAINER_COUNTING),
    [DRAINER_SENDING] = GB_BIT(DRAINER_COUNTING) | GB_BIT(DRAINER_STOPPED),
    [DRAINER_COUNTING] = GB_BIT(DRAINER_IDLE),
};

static const uint64_t sweep_interval_ns = 60 * 1000000000ull;
static const uint64_t trouble_floor_ns = 5 * 1000000000ull;
static const uint64_t no_lease_warning_ns = 30 * 1000000000ull;
static const uint64_t count_interval_ns = 1000000000ull;

struct gb_drainer {
    struct gb_drainer_cfg cfg;
    char *partition, *session_id, *instance_id;
    struct gb_drain_env env;
    enum drainer_state state;
    struct gb_timer timer;
    int64_t interval_ns;
    uint64_t cycle_started_ns, not_before_ns, next_sweep_ns, next_count_ns;
    uint32_t batch_size;
    struct gb_token token;
    struct gb_outbox_claim claim;
    struct gb_outbox_expire expire;
    struct gb_outbox_stats stats;
    struct gb_drain_batch *batch;
    bool found, drained_before, stopping;
    bool woken; /* records became durable after this cycle's claim began */
    struct gb_op *stop_op;
    bool stop_left, stop_overdue;
    struct gb_log_limit no_lease_limit;
    struct gb_metric *depth, *claimed_depth, *oldest_age, *claim_size, *latency, *depth_failures;
};

static void cycle(struct gb_timer *t);
static void claim_next(struct gb_drainer *d);

static void set_state(struct gb_drainer *d, enum drainer_state next)
{
    GB_ASSERT((exits[d->state] & GB_BIT(next)) != 0);
    d->state = next;
}

static void free_targets(struct gb_drainer *d)
{
    for (size_t i = 0; i < d->env.target_count; i++) {
        free(d->env.targets[i].route_id);
        free(d->env.targets[i].binding_id);
    }
    free(d->env.targets);
}

static void init_target_metrics(struct gb_drainer *d, struct gb_drain_target *t)
{
    const struct {
        struct gb_metric **handle;
        const char *name;
    } rows[] = {
        {&t->metrics.sent, "MessagesSent"},
        {&t->metrics.completions, "OutboxCompletions"},
        {&t->metrics.failures, "OutboxRecordFailures"},
        {&t->metrics.deferred, "OutboxDeferred"},
        {&t->metrics.replays, "OutboxReplayCount"},
        {&t->metrics.duplicate_risk, "OutboxDuplicateRisk"},
        {&t->metrics.expired_before_send, "OutboxExpiredBeforeSend"},
        {&t->metrics.expired, "MessagesExpired"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].handle = gb_metrics_get(d->cfg.metrics, GB_METRIC_COUNTER, rows[i].name,
                                         GB_DIMS({"route_id", t->route_id}));
    }
}

static struct gb_err copy_targets(struct gb_drainer *d, const struct gb_drainer_cfg *cfg)
{
    d->env.targets = calloc(cfg->target_count, sizeof *d->env.targets);
    if (d->env.targets == NULL) return gb_err_no_memory("drainer targets");
    uint32_t batch_max = 1;
    for (size_t i = 0; i < cfg->target_count; i++) {
        struct gb_drain_target *t = &d->env.targets[i];
        d->env.target_count = i + 1;
        t->cfg = cfg->targets[i];
        t->route_id = gb_strdup(t->cfg.route_id);
        t->binding_id = gb_strdup(t->cfg.binding_id);
        if (t->route_id == NULL || t->binding_id == NULL)
            return gb_err_no_memory("drainer targets");
        init_target_metrics(d, t);
        if (t->cfg.sender->batch_max > batch_max) batch_max = t->cfg.sender->batch_max;
    }
    d->env.groups_max = cfg->policy.max_concurrency * batch_max; /* docs/decisions/0003 */
    return gb_ok();
}

static void init_metrics(struct gb_drainer *d)
{
    const struct gb_dimension p[] = {{"partition", d->partition}};
    struct gb_metrics *m = d->cfg.metrics;
    d->depth = gb_metrics_get(m, GB_METRIC_GAUGE, "OutboxDepth", p, 1);
    d->claimed_depth = gb_metrics_get(m, GB_METRIC_GAUGE, "OutboxClaimedDepth", p, 1);
    d->oldest_age = gb_metrics_get(m, GB_METRIC_GAUGE, "OutboxOldestPendingAge", p, 1);
    d->claim_size = gb_metrics_get(m, GB_METRIC_GAUGE, "OutboxClaimBatchSize", p, 1);
    d->depth_failures = gb_metrics_get(m, GB_METRIC_COUNTER, "OutboxDepthFailures", p, 1);
    d->latency = gb_metrics_get(m, GB_METRIC_TIMER, "OutboxDrainLatency",
                                GB_DIMS({"session_id", d->session_id}));
}

static int64_t shortest_interval_ns(const struct gb_drainer *d)
{
    return d->cfg.policy.type == GB_DRAIN_FIXED ? d->cfg.policy.interval_ns
                                                : d->cfg.policy.min_interval_ns;
}

struct gb_err gb_drainer_new(const struct gb_drainer_cfg *cfg, struct gb_drainer **out)
{
    if (cfg->target_count == 0)
        return gb_err(GB_INVALID_CONFIG, "outbox partition %s has no binding", cfg->partition);
    struct gb_drainer *d = calloc(1, sizeof *d);
    if (d == NULL) return gb_err_no_memory("drainer");
    d->cfg = *cfg;
    d->partition = gb_strdup(cfg->partition);
    d->session_id = gb_strdup(cfg->session_id);
    d->instance_id = gb_strdup(cfg->instance_id);
    struct gb_err err = gb_err_no_memory("drainer");
    if (d->partition == NULL || d->session_id == NULL || d->instance_id == NULL) goto fail;
    d->env = (struct gb_drain_env){
        .reactor = cfg->reactor,
        .registry = cfg->metrics,
        .outbox = cfg->outbox,
        .dlq = cfg->dlq,
        .authority = cfg->authority,
        .partition = gb_bytes_c(d->partition),
        .session_id = gb_bytes_c(d->session_id),
        .instance_id = d->instance_id,
        .policy = cfg->policy,
    };
    err = copy_targets(d, cfg);
    if (gb_failed(err)) goto fail;
    err = gb_timer_init(&d->timer, cfg->reactor, cycle);
    if (gb_failed(err)) goto fail;
    init_metrics(d);
    d->batch_size = cfg->policy.batch_size;
    d->interval_ns = shortest_interval_ns(d);
    *out = d;
    return gb_ok();
fail:
    gb_drainer_free(d);
    return err;
}

void gb_drainer_free(struct gb_drainer *d)
{
    if (d == NULL) return;
    gb_timer_deinit(&d->timer);
    if (d->batch != NULL) {
        GB_ASSERT(d->state == DRAINER_STOPPED); /* stalled */
        if (!gb_drain_batch_ended(d->batch)) {
            gb_drain_batch_leave(d->batch);
            return;
        }
        gb_drain_batch_free(d->batch);
    }
    free_targets(d);
    free(d->partition);
    free(d->session_id);
    free(d->instance_id);
    free(d);
}

static uint64_t now_of(const struct gb_drainer *d)
{
    return gb_reactor_now_ns(d->cfg.reactor);
}

void gb_drainer_start(struct gb_drainer *d)
{
    d->next_sweep_ns = now_of(d) + sweep_interval_ns;
    gb_timer_start(&d->timer, now_of(d)); /* what the last run left behind goes at once */
}

static void finish_stop(struct gb_drainer *d)
{
    struct gb_op *op = d->stop_op;
    d->stop_op = NULL;
    gb_timer_stop(&d->timer);
    set_state(d, DRAINER_STOPPED);
    gb_op_finish(op, d->stop_left
                         ? gb_err(GB_TIMEOUT,
                                  "outbox partition %s: records were left for the next start",
                                  d->partition)
                         : gb_ok());
}

/* Polls are one interval apart, counted from the start of the cycle; after trouble at least 5 s
 * from now. */
static void wait_next(struct gb_drainer *d)
{
    if (d->state != DRAINER_IDLE) set_state(d, DRAINER_IDLE);
    if (d->stop_op != NULL) {
        finish_stop(d);
        return;
    }
    d->interval_ns = d->woken ? shortest_interval_ns(d)
                              : gb_drain_next_interval_ns(&d->cfg.policy, d->interval_ns, d->found);
    d->woken = false;
    uint64_t next_ns =
        d->cycle_started_ns + (uint64_t)gb_drain_jitter_ns(d->interval_ns, d->cfg.reactor);
    if (next_ns < d->not_before_ns) next_ns = d->not_before_ns;
    if (next_ns < now_of(d)) next_ns = now_of(d);
    gb_timer_start(&d->timer, next_ns);
}

void gb_drainer_wake(struct gb_drainer *d)
{
    if (d->state != DRAINER_IDLE) d->woken = true; /* this cycle may have looked too early */
    if (d->state != DRAINER_IDLE || d->stopping || !gb_timer_running(&d->timer)) return;
    int64_t shortest_ns = shortest_interval_ns(d);
    if (d->interval_ns <= shortest_ns) return; /* already as soon as it may be */
    d->interval_ns = shortest_ns;
    uint64_t next_ns =
        d->cycle_started_ns + (uint64_t)gb_drain_jitter_ns(shortest_ns, d->cfg.reactor);
    if (next_ns < d->not_before_ns) next_ns = d->not_before_ns;
    if (next_ns < now_of(d)) next_ns = now_of(d);
    gb_timer_start(&d->timer, next_ns);
}

static bool any_ready(const struct gb_drainer *d)
{
    for (size_t i = 0; i < d->env.target_count; i++) {
        const struct gb_sender *s = d->env.targets[i].cfg.sender;
        if (s->ops->ready(s)) return true;
    }
    return false;
}

/* The sweep serves `on_expired: drop` alone: under dlq the records go one by one (spec 02 §7.6). */
static bool sweep_allowed(const struct gb_drainer *d)
{
    for (size_t i = 0; i < d->env.target_count; i++) {
        if (d->env.targets[i].cfg.policy.on_expired != GB_ACTION_DROP && d->cfg.dlq != NULL)
            return false;
    }
    return true;
}

static uint64_t store_deadline(const struct gb_drainer *d)
{
    return now_of(d) + (uint64_t)d->env.targets[0].cfg.policy.send_timeout_ns;
}

static void expire_done(struct gb_op *op, void *arg)
{
    struct gb_drainer *d = arg;
    if (d->expire.expired > 0) {
        gb_metric_add(gb_metrics_get(d->cfg.metrics, GB_METRIC_COUNTER, "MessagesExpired",
                                     GB_DIMS({"route_id", d->env.targets[0].route_id},
                                             {"session_id", d->session_id})),
                      d->expire.expired);
    }
    if (gb_failed(op->result) && op->result.code != GB_CANCELLED) {
        GB_LOG(GB_LOG_WARN, "outbox expiry sweep failed; it is tried again in a minute",
               gb_lf_str("partition", d->partition), gb_lf_err(&op->result));
    }
    claim_next(d);
}

static void cycle(struct gb_timer *t)
{
    struct gb_drainer *d = GB_CONTAINER_OF(t, struct gb_drainer, timer);
    d->cycle_started_ns = now_of(d);
    d->found = false;
    if (!d->cfg.authority.current(d->cfg.authority.ctx, &d->token)) {
        gb_metric_add(gb_metrics_get(d->cfg.metrics, GB_METRIC_COUNTER, "DrainSkippedNoLease",
                                     GB_DIMS({"session_id", d->session_id},
                                             {"route_id", d->env.targets[0].route_id})),
                      1);
        uint64_t suppressed = 0;
        if (gb_log_allow(&d->no_lease_limit, now_of(d), no_lease_warning_ns, &suppressed)) {
            GB_LOG(GB_LOG_WARN, "outbox partition is not drained: no lease",
                   gb_lf_str("partition", d->partition));
        }
        wait_next(d);
        return;
    }
    if (now_of(d) >= d->next_sweep_ns && sweep_allowed(d)) {
        d->next_sweep_ns = now_of(d) + sweep_interval_ns;
        set_state(d, DRAINER_EXPIRING);
        memset(&d->expire, 0, sizeof d->expire);
        d->expire.partition = d->env.partition;
        d->expire.token = d->token;
        d->expire.cutoff_ms = gb_reactor_wall_ms(d->cfg.reactor);
        d->expire.op.deadline_ns = store_deadline(d);
        d->cfg.outbox->ops->expire(d->cfg.outbox, &d->expire, expire_done, d);
        return;
    }
    claim_next(d);
}

static void stats_done(struct gb_op *op, void *arg)
{
    struct gb_drainer *d = arg;
    if (op->result.code == GB_CANCELLED) {
        wait_next(d); /* stopping */
        return;
    }
    if (gb_failed(op->result)) {
        gb_metric_add(d->depth_failures, 1);
        gb_metric_clear(d->depth);
        GB_LOG(GB_LOG_ERROR, "outbox depth unknown", gb_lf_str("partition", d->partition),
               gb_lf_err(&op->result));
    } else {
        int64_t age_ms = d->stats.oldest_pending_ms == 0
                             ? 0
                             : gb_reactor_wall_ms(d->cfg.reactor) - d->stats.oldest_pending_ms;
        gb_metric_set(d->depth, (double)d->stats.pending);
        gb_metric_set(d->claimed_depth, (double)d->stats.claimed);
        gb_metric_set(d->oldest_age, (double)age_ms / 1000.0);
    }
    wait_next(d);
}

/* Gauges at the end of a cycle, at most once a second: exact counts are not free on every store. */
static void count_depth(struct gb_drainer *d)
{
    if (d->state != DRAINER_COUNTING) set_state(d, DRAINER_COUNTING);
    if (d->stop_overdue || now_of(d) < d->next_count_ns) {
        wait_next(d);
        return;
    }
    d->next_count_ns = now_of(d) + count_interval_ns;
    memset(&d->stats, 0, sizeof d->stats);
    d->stats.partition = d->env.partition;
    d->stats.op.deadline_ns = store_deadline(d);
    d->cfg.outbox->ops->stats(d->cfg.outbox, &d->stats, stats_done, d);
}

/* Spec 02 §7.3 item 8. */
static void adapt_batch_size(struct gb_drainer *d, const struct gb_drain_result *r)
{
    const struct gb_drain_policy *p = &d->cfg.policy;
    if (r->claimed >= d->batch_size && r->sent == r->claimed) {
        d->batch_size =
            d->batch_size > p->max_batch_size / 2 ? p->max_batch_size : d->batch_size * 2;
    } else if (r->sent == 0) {
        d->batch_size /= 2;
    }
    if (d->batch_size < p->batch_size) d->batch_size = p->batch_size;
}

static void batch_done(void *arg, const struct gb_drain_result *result)
{
    struct gb_drainer *d = arg;
    struct gb_drain_result r = *result;
    if (r.stalled) {
        gb_metric_add(gb_metrics_get(d->cfg.metrics, GB_METRIC_COUNTER, "OutboxDrainStalled",
                                     GB_DIMS({"session_id", d->session_id},
                                             {"route_id", d->env.targets[0].route_id})),
                      1);
        d->stop_left = true;
        if (d->stop_op != NULL) {
            finish_stop(d);
        } else {
            set_state(d, DRAINER_STOPPED);
        }
        if (d->cfg.stalled != NULL) {
            d->cfg.stalled(d->cfg.arg, d->partition,
                           gb_err(GB_TIMEOUT,
                                  "a drain batch of partition %s overran its budget by 30 s",
                                  d->partition));
        }
        return; /* senders still hold parts of the batch: it is left alone on purpose */
    }
    gb_drain_batch_free(d->batch);
    d->batch = NULL;
    d->drained_before = true;
    if (r.released > 0 || r.left || r.stale) {
        d->not_before_ns = now_of(d) + trouble_floor_ns;
    }
    adapt_batch_size(d, &r);
    gb_metric_time(d->latency, (int64_t)(now_of(d) - d->cycle_started_ns));
    count_depth(d);
}

static void claim_done(struct gb_op *op, void *arg)
{
    struct gb_drainer *d = arg;
    struct gb_outbox_batch *records = d->claim.batch;
    d->claim.batch = NULL;
    struct gb_err err = op->result;
    gb_metric_set(d->claim_size, records == NULL ? 0 : (double)records->count);
    if (!gb_failed(err) && records != NULL && records->count > 0) {
        d->found = true;
        err = gb_drain_batch_new(&d->env, &d->token, records, &d->batch);
        records = NULL;
        if (!gb_failed(err)) {
            set_state(d, DRAINER_SENDING);
            gb_drain_batch_start(d->batch, batch_done, d);
            if (d->stop_overdue) gb_drain_batch_cancel(d->batch);
            return;
        }
    }
    gb_outbox_batch_free(records);
    if (gb_failed(err)) {
        d->not_before_ns = now_of(d) + trouble_floor_ns;
        if (err.code != GB_CANCELLED) {
            GB_LOG(GB_LOG_ERROR, "outbox claim failed", gb_lf_str("partition", d->partition),
                   gb_lf_err(&err));
        }
        wait_next(d);
        return;
    }
    count_depth(d);
}

static void claim_next(struct gb_drainer *d)
{
    if (d->stop_overdue || !any_ready(d)) {
        wait_next(d);
        return;
    }
    set_state(d, DRAINER_CLAIMING);
    d->woken = false;
    memset(&d->claim, 0, sizeof d->claim);
    d->claim.partition = d->env.partition;
    d->claim.token = d->token;
    d->claim.limit = d->batch_size;
    d->claim.op.deadline_ns = store_deadline(d);
    d->cfg.outbox->ops->claim(d->cfg.outbox, &d->claim, claim_done, d);
}

static void stop_deadline(struct gb_timer *t)
{
    struct gb_drainer *d = GB_CONTAINER_OF(t, struct gb_drainer, timer);
    d->stop_left = true;
    d->stop_overdue = true;
    switch (d->state) {
    case DRAINER_SENDING:
        gb_drain_batch_cancel(d->batch);
        break;
    case DRAINER_EXPIRING:
        gb_op_cancel(&d->expire.op);
        break;
    case DRAINER_CLAIMING:
        gb_op_cancel(&d->claim.op);
        break;
    case DRAINER_COUNTING:
        gb_op_cancel(&d->stats.op);
        break;
    case DRAINER_IDLE:
    case DRAINER_STOPPED:
    case DRAINER_STATES:
        break;
    }
}

bool gb_drainer_idle(const struct gb_drainer *d)
{
    return d->state != DRAINER_CLAIMING && d->state != DRAINER_SENDING && d->batch == NULL;
}

void gb_drainer_stop(struct gb_drainer *d, struct gb_op *op, gb_done_fn *done, void *arg)
{
    GB_ASSERT(!d->stopping);
    gb_op_start(op, d->cfg.reactor, done, arg, NULL, d);
    d->stopping = true;
    d->stop_op = op;
    if (d->state == DRAINER_STOPPED) { /* stalled */
        d->stop_op = NULL;
        gb_op_finish(op, gb_err(GB_TIMEOUT, "outbox partition %s is stalled", d->partition));
        return;
    }
    bool idle = d->state == DRAINER_IDLE;
    gb_timer_stop(&d->timer);
    if (idle && d->drained_before && any_ready(d)) {
        cycle(&d->timer); /* the final drain; it ends in wait_next */
    } else if (idle) {
        finish_stop(d);
        return;
    }
    if (d->stop_op == NULL) return;
    uint64_t deadline_ns = now_of(d) + (uint64_t)d->cfg.policy.max_timeout_ns;
    if (op->deadline_ns > 0 && op->deadline_ns < deadline_ns) deadline_ns = op->deadline_ns;
    d->timer.fire = stop_deadline;
    gb_timer_start(&d->timer, deadline_ns);
}

void gb_drainer_hurry(struct gb_drainer *d, uint64_t deadline_ns)
{
    if (d->stop_op != NULL && !d->stop_overdue) gb_timer_start(&d->timer, deadline_ns);
}
