#include "adapters/dynamodb/dynamodb_outbox.h"

#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_outbox_direct.h"
#include "base/duration.h"

enum { QUEUE_MAX = 16384, PARTITIONS_MAX = 4096, DIRECT_MAX = 8192 };
#define CALL_TIMEOUT_NS (30 * GB_SEC)

int64_t gb_dbox_now_ms(const struct gb_dbox *s)
{
    return s->cfg.wall_ms != NULL ? s->cfg.wall_ms(s->cfg.clock_arg)
                                  : gb_reactor_wall_ms(s->cfg.reactor);
}

/* --- partitions --- */

static void partition_free(struct gb_dbox_partition *p)
{
    gb_str_deinit(&p->owner);
    gb_str_deinit(&p->seed_cursor);
    gb_str_deinit(&p->sweep_cursor);
    free(p->name);
    free(p);
}

/* Only what can be asked for again is lost. */
static void forget_idle_partitions(struct gb_dbox *s)
{
    size_t cursor = 0;
    struct gb_bytes name;
    void *value;
    while (gb_map_next(&s->partitions, &cursor, &name, &value)) {
        struct gb_dbox_partition *p = value;
        if (p->users > 0 || p->taking != NULL) continue;
        gb_map_remove(&s->partitions, name);
        partition_free(p);
    }
}

struct gb_dbox_partition *gb_dbox_partition(struct gb_dbox *s, struct gb_bytes name)
{
    struct gb_dbox_partition *p = gb_map_get(&s->partitions, name);
    if (p != NULL) return p;
    if (s->partitions.count >= PARTITIONS_MAX) forget_idle_partitions(s);
    p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    gb_list_init(&p->seq_waiting);
    gb_list_init(&p->queued);
    gb_list_init(&p->handed);
    gb_list_init(&p->leaving);
    p->name = gb_bytes_dup(name);
    p->key = gb_bytes(p->name, name.size);
    if (p->name != NULL && !gb_failed(gb_map_put(&s->partitions, name, p))) return p;
    partition_free(p);
    return NULL;
}

bool gb_dbox_hold(struct gb_dbox_task *t, struct gb_bytes partition)
{
    t->partition = gb_dbox_partition(t->s, partition);
    if (t->partition == NULL) {
        gb_dbox_end(t, gb_err_no_memory("an outbox partition"));
        return false;
    }
    t->partition->users++;
    return true;
}

struct gb_metric *gb_dbox_counter(struct gb_dbox *s, const struct gb_dbox_partition *p,
                                  const char *name)
{
    if (s->cfg.metrics == NULL) return NULL;
    return gb_metrics_get(s->cfg.metrics, GB_METRIC_COUNTER, name, GB_DIMS({"partition", p->name}));
}

/* --- tasks --- */

static void task_free(struct gb_dbox_task *t)
{
    if (t->partition != NULL) t->partition->users--;
    gb_timer_deinit(&t->timer);
    t->ops->free(t);
}

static void finish(struct gb_dbox_task *t)
{
    struct gb_dbox *s = t->s;
    struct gb_op *op = t->op;
    struct gb_err result = t->ops->finish(t, t->verdict);
    task_free(t);
    gb_op_finish(op, result);
    s->tasks--;
    gb_dbox_close_if_idle(s);
}

void gb_dbox_end(struct gb_dbox_task *t, struct gb_err verdict)
{
    if (t->ending) return;
    t->ending = true;
    t->verdict = verdict;
    if (t->ops->stop != NULL) t->ops->stop(t);
    struct gb_list_node *node = gb_list_first(&t->requests);
    for (; node != NULL; node = gb_list_next(&t->requests, node))
        gb_op_cancel(&GB_CONTAINER_OF(node, struct gb_dbox_request, node)->call.op);
    if (t->running == 0) finish(t);
}

/* `next` runs while the request still counts, so that an end from there does not free the task. */
static void request_done(struct gb_op *op, void *arg)
{
    struct gb_dbox_request *r = arg;
    struct gb_dbox_task *t = r->task;
    (void)op;
    gb_list_remove(&r->node);
    r->next(r);
    t->running--;
    if (t->ending && t->running == 0) finish(t);
}

void gb_dbox_send(struct gb_dbox_task *t, struct gb_dbox_request *r, gb_dbox_next_fn *next)
{
    r->task = t;
    r->next = next;
    r->call.op.deadline_ns = t->deadline_ns;
    gb_list_push(&t->requests, &r->node);
    t->running++;
    gb_dynamodb_start(t->s->cfg.client, &r->call, request_done, r);
}

static void task_expired(struct gb_timer *timer)
{
    struct gb_dbox_task *t = GB_CONTAINER_OF(timer, struct gb_dbox_task, timer);
    gb_dbox_end(t, gb_err(GB_TIMEOUT, "table \"%s\": the outbox call's time is over", t->s->table));
}

static void task_cancelled(struct gb_op *op)
{
    gb_dbox_end(op->provider, (struct gb_err){.code = GB_CANCELLED});
}

static struct gb_err admit(const struct gb_dbox *s)
{
    if (s->mending) return gb_ok(); /* the close's own */
    if (s->close_op != NULL) return gb_err(GB_UNAVAILABLE, "the outbox is closed");
    if (s->tasks < s->cfg.queue_max) return gb_ok();
    return gb_err(GB_UNAVAILABLE, "table \"%s\": %zu outbox calls are pending already", s->table,
                  s->tasks);
}

void *gb_dbox_task_new(struct gb_dbox *s, size_t size, const struct gb_dbox_task_ops *ops,
                       struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct gb_err err = admit(s);
    struct gb_dbox_task *t = gb_failed(err) ? NULL : calloc(1, size);
    if (!gb_failed(err) && t == NULL) err = gb_err_no_memory("an outbox call");
    if (t != NULL) err = gb_timer_init(&t->timer, s->cfg.reactor, task_expired);
    gb_op_start(op, s->cfg.reactor, done, arg, t == NULL ? NULL : task_cancelled, t);
    if (gb_failed(err)) {
        free(t);
        gb_op_finish(op, err);
        return NULL;
    }
    GB_ASSERT(t != NULL);
    t->s = s;
    t->ops = ops;
    t->op = op;
    gb_list_init(&t->requests);
    t->deadline_ns = op->deadline_ns != 0
                         ? op->deadline_ns
                         : gb_reactor_now_ns(s->cfg.reactor) + (uint64_t)CALL_TIMEOUT_NS;
    gb_timer_start(&t->timer, t->deadline_ns);
    s->tasks++;
    return t;
}

/* --- construction and close --- */

static void store_free(struct gb_dbox *s)
{
    gb_dbox_puts_deinit(s);
    gb_dbox_cursors_deinit(s);
    gb_dbox_ids_deinit(s);
    gb_dbox_direct_deinit(s);
    forget_idle_partitions(s);
    GB_ASSERT(s->partitions.count == 0 && s->lines.count == 0);
    gb_map_deinit(&s->partitions);
    gb_map_deinit(&s->lines);
    free(s->table);
    free(s);
}

static void on_mended(struct gb_op *op, void *arg)
{
    struct gb_dbox *s = arg;
    (void)op;
    s->mending = false;
    s->mended = true;
    gb_dbox_close_if_idle(s);
}

void gb_dbox_close_if_idle(struct gb_dbox *s)
{
    struct gb_op *op = s->close_op;
    if (op == NULL || s->tasks > 0 || s->takings > 0 || s->mending) return;
    if (s->direct.count > 0 && !s->mended) {
        s->mending = true;
        gb_dbox_mend_all(s, on_mended);
        return;
    }
    store_free(s);
    gb_op_finish(op, gb_ok());
}

static void close_store(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct gb_dbox *s = gb_dbox_of(o);
    GB_ASSERT(s->close_op == NULL);
    gb_op_start(op, s->cfg.reactor, done, arg, NULL, s);
    s->close_op = op;
    size_t cursor = 0;
    struct gb_bytes name;
    void *partition;
    while (gb_map_next(&s->partitions, &cursor, &name, &partition)) gb_dbox_sweep_end(partition);
    gb_dbox_close_if_idle(s);
}

static const struct gb_outbox_ops port_ops = {
    .persist = gb_dbox_persist,
    .claim = gb_dbox_claim,
    .settle = gb_dbox_settle,
    .expire = gb_dbox_expire,
    .depth = gb_dbox_depth,
    .stats = gb_dbox_stats,
    .close = close_store,
};

static int64_t to_ms(int64_t ns)
{
    return ns > 0 && ns < GB_MS ? 1 : ns / GB_MS;
}

struct gb_err gb_dynamodb_outbox_new(const struct gb_dynamodb_outbox_cfg *cfg,
                                     struct gb_outbox **out)
{
    struct gb_dbox *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("a DynamoDB outbox");
    s->port.ops = &port_ops;
    s->cfg = *cfg;
    if (s->cfg.queue_max == 0) s->cfg.queue_max = QUEUE_MAX;
    if (s->cfg.direct_max == 0) s->cfg.direct_max = DIRECT_MAX;
    s->stale_ms = cfg->stale_claim_ns <= 0 ? 0 : to_ms(cfg->stale_claim_ns);
    s->grace_ms = cfg->compaction_grace_ns <= 0 ? to_ms(GB_HOUR) : to_ms(cfg->compaction_grace_ns);
    s->keyed_after_ms = to_ms(cfg->keyed_after_ns <= 0 ? GB_MINUTE : cfg->keyed_after_ns);
    gb_list_init(&s->ids_by_age);
    gb_list_init(&s->ready);
    s->table = gb_strdup(cfg->table);
    struct gb_err err = s->table == NULL ? gb_err_no_memory("a DynamoDB outbox") : gb_ok();
    if (!gb_failed(err)) err = gb_dbox_puts_init(s);
    if (gb_failed(err)) {
        store_free(s);
        return err;
    }
    s->cfg.table = s->table;
    *out = &s->port;
    return err;
}
