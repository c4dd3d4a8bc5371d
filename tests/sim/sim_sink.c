#include "sim/sim_sink.h"

#include "base/assert.h"
#include "sim/sim_bridge.h"
#include "sim/sim_call.h"
#include "sim/sim_check.h"

static struct sim_sink_port *port_of(struct gb_sender *s)
{
    return GB_CONTAINER_OF(s, struct sim_sink_port, sender);
}

static void apply_send(struct sim_call *c)
{
    const struct sim_sink_port *p = c->target;
    const struct gb_send *q = c->request;
    uint32_t message;
    GB_ASSERT(sim_parse_payload(c->world, q->envelope->payload, &message));
    if (c->world->messages[message].poison) {
        c->answer = sim_below(c->world, 2) == 0 ? gb_err(GB_FORBIDDEN, "refused for good")
                                                : gb_err(GB_INVALID_PAYLOAD, "refused for good");
        return;
    }
    sim_check_accepted(c->world, message, p->leg);
}

static void planned_send(struct sim_sink_port *p, struct gb_send *q, gb_done_fn *done, void *arg)
{
    struct sim_world *w = p->bridge->world;
    const struct sim_cfg *c = &w->cfg;
    struct sim_call call = {.target = p, .request = q, .apply = apply_send};
    bool down = w->now_ns < w->sink_down_until_ns && !w->healed;
    if (down || sim_chance(w, c->sink_transient)) {
        call.plan = SIM_PLAN_FAIL;
    } else if (sim_chance(w, c->sink_lost_answer)) {
        call.plan = SIM_PLAN_LOST_ANSWER;
    } else if (sim_chance(w, c->sink_silent)) {
        call.plan = sim_below(w, 2) == 0 ? SIM_PLAN_SILENT : SIM_PLAN_LATE;
    } else if (sim_chance(w, c->sink_hang)) {
        call.plan = SIM_PLAN_HANG;
    }
    if (w->fault == SIM_FAULT_SWALLOW_FAILED && call.plan == SIM_PLAN_FAIL) {
        gb_op_start(&q->op, p->bridge->reactor, done, arg, NULL, NULL);
        gb_op_finish(&q->op, gb_ok());
        return;
    }
    sim_call_start(p->bridge, &q->op, done, arg, &call, c->sink_delay_max_ns);
}

static void send(struct gb_sender *s, struct gb_send *q, gb_done_fn *done, void *arg)
{
    struct sim_sink_port *p = port_of(s);
    GB_ASSERT(q->op.deadline_ns > 0);
    if (p->through == NULL) {
        planned_send(p, q, done, arg);
    } else {
        sim_bridge_step(p->bridge);
        p->through->ops->send(p->through, q, done, arg);
    }
}

static bool ready(const struct gb_sender *s)
{
    const struct sim_sink_port *p = (const struct sim_sink_port *)(const void *)s;
    return p->through == NULL || p->through->ops->ready(p->through);
}

void sim_sink_port(struct sim_sink_port *p, struct sim_bridge *b, uint8_t leg,
                   struct gb_sender *through)
{
    static const struct gb_sender_ops ops = {send, ready, NULL};
    *p = (struct sim_sink_port){
        .sender = {.ops = &ops, .id = "sink", .batch_max = b->world->cfg.batch_max},
        .bridge = b,
        .leg = leg,
        .through = through,
    };
}
