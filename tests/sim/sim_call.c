#include "sim/sim_call.h"

#include <stdlib.h>

#include "base/assert.h"
#include "sim/sim_bridge.h"

static void end(struct sim_call *c, struct gb_err result)
{
    struct gb_op *op = c->op;
    gb_list_remove(&c->node);
    gb_timer_deinit(&c->timer);
    free(c);
    gb_op_finish(op, result);
}

static void apply_now(struct sim_call *c)
{
    if (c->applied) return;
    c->applied = true;
    c->apply(c);
}

static void answer_due(struct sim_call *c)
{
    struct gb_err error = c->plan == SIM_PLAN_SILENT || c->plan == SIM_PLAN_LATE
                              ? gb_err(GB_TIMEOUT, "simulated time-out")
                              : gb_err(GB_UNAVAILABLE, "simulated failure");
    bool applies =
        c->plan == SIM_PLAN_OK || c->plan == SIM_PLAN_LOST_ANSWER || c->plan == SIM_PLAN_LATE;
    if (applies) apply_now(c);
    if (c->plan == SIM_PLAN_OK) {
        end(c, c->answer);
        return;
    }
    if (c->applied && c->discard != NULL) c->discard(c);
    end(c, error);
}

static void due(struct gb_timer *t)
{
    struct sim_call *c = GB_CONTAINER_OF(t, struct sim_call, timer);
    struct sim_world *w = c->world;
    w->actor = c->bridge->host;
    answer_due(c);
    w->actor = NULL;
}

static void cancel(struct gb_op *op)
{
    struct sim_call *c = op->provider;
    if (c->plan == SIM_PLAN_HANG) return;
    /* A cancel may lose: the answer comes as planned then. */
    if (!c->bridge->dead && sim_chance(c->world, 500)) return;
    if (c->applied && c->discard != NULL) c->discard(c);
    end(c, gb_err(GB_CANCELLED, "cancelled"));
}

void sim_call_start(struct sim_bridge *b, struct gb_op *op, gb_done_fn *done, void *arg,
                    const struct sim_call *plan, int64_t delay_max_ns)
{
    struct sim_world *w = b->world;
    sim_bridge_step(b);
    if (b->dead) {
        gb_op_start(op, b->reactor, done, arg, NULL, NULL);
        gb_op_finish(op, gb_err(GB_CANCELLED, "the process is gone"));
        return;
    }
    struct sim_call *c = malloc(sizeof *c);
    GB_ASSERT(c != NULL);
    *c = *plan;
    c->world = w;
    c->bridge = b;
    c->op = op;
    c->answer = gb_ok();
    GB_ASSERT(!gb_failed(gb_timer_init(&c->timer, w->reactor, due)));
    gb_op_start(op, b->reactor, done, arg, cancel, c);
    gb_list_push(&b->calls, &c->node);
    if (c->plan == SIM_PLAN_HANG) return;
    uint64_t due_ns = w->now_ns + sim_delay_ns(w, delay_max_ns);
    bool at_deadline = c->plan == SIM_PLAN_SILENT || c->plan == SIM_PLAN_LATE;
    uint64_t deadline_ns = sim_host_world_ns(b->host, op->deadline_ns);
    if (deadline_ns > 0 && (at_deadline || due_ns > deadline_ns)) {
        due_ns = deadline_ns;
        if (c->plan == SIM_PLAN_OK) c->plan = SIM_PLAN_SILENT;
    }
    gb_timer_start(&c->timer, due_ns);
    /* In a cluster another owner may be there by then. */
    bool at_once = (c->plan == SIM_PLAN_LATE && w->cluster == NULL) || sim_below(w, 2) == 0;
    if (at_once && c->plan != SIM_PLAN_FAIL && c->plan != SIM_PLAN_SILENT) apply_now(c);
    sim_bridge_step(b); /* it may crash after the effect, before the answer */
}

void sim_call_end_all(struct sim_bridge *b)
{
    struct gb_list_node *next = NULL;
    for (struct gb_list_node *n = gb_list_first(&b->calls); n != NULL; n = next) {
        next = gb_list_next(&b->calls, n);
        struct sim_call *c = GB_CONTAINER_OF(n, struct sim_call, node);
        if (c->applied && c->discard != NULL) c->discard(c);
        end(c, gb_err(GB_CANCELLED, "the process is gone"));
    }
}
