#include "sim/sim_dlq.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/map.h"
#include "sim/sim_bridge.h"
#include "sim/sim_call.h"
#include "sim/sim_check.h"

struct sim_dlq {
    struct sim_world *world;
    struct gb_map ids;
};

struct sim_dlq *sim_dlq_new(struct sim_world *w)
{
    struct sim_dlq *d = calloc(1, sizeof *d);
    GB_ASSERT(d != NULL);
    d->world = w;
    return d;
}

void sim_dlq_free(struct sim_dlq *d)
{
    gb_map_deinit(&d->ids);
    free(d);
}

static void apply_write(struct sim_call *c)
{
    struct sim_dlq *d = c->target;
    const struct gb_dlq_entry *e = ((struct gb_dlq_write *)c->request)->entry;
    if (d->world->fault == SIM_FAULT_FORGET_DLQ) return;
    if (gb_map_has(&d->ids, gb_bytes_c(e->id))) {
        c->answer = gb_err(GB_DUPLICATE_RECORD, "known");
        return;
    }
    GB_ASSERT(!gb_failed(gb_map_put(&d->ids, gb_bytes_c(e->id), d)));
    uint32_t message;
    GB_ASSERT(sim_parse_payload(d->world, e->envelope->payload, &message));
    bool before_dispatch = e->binding_id[0] == '\0';
    uint8_t leg = before_dispatch ? SIM_LEGS_MAX : sim_bridge_leg(gb_bytes_c(e->binding_id));
    sim_check_dead_lettered(d->world, message, leg, e->error_code);
}

static void write(struct gb_dlq *p, struct gb_dlq_write *q, gb_done_fn *done, void *arg)
{
    struct sim_bridge *b = GB_CONTAINER_OF(p, struct sim_dlq_port, dlq)->bridge;
    struct sim_world *w = b->world;
    struct sim_call call = {.target = w->dlq, .request = q, .apply = apply_write};
    if (sim_chance(w, w->cfg.dlq_fail)) {
        static const enum sim_plan plans[] = {SIM_PLAN_FAIL, SIM_PLAN_LOST_ANSWER, SIM_PLAN_SILENT,
                                              SIM_PLAN_LATE};
        call.plan = plans[sim_below(w, 4)];
    }
    sim_call_start(b, &q->op, done, arg, &call, w->cfg.store_delay_max_ns);
}

void sim_dlq_port(struct sim_dlq_port *p, struct sim_bridge *b)
{
    static const struct gb_dlq_ops ops = {.write = write};
    *p = (struct sim_dlq_port){.dlq = {.ops = &ops}, .bridge = b};
}
