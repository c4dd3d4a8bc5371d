#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_session.h"
#include "app/runtime_parts.h"

static void route_wedged(void *arg, const char *route_id, struct gb_err cause)
{
    gb_runtime_fail(arg, gb_err_in(cause, "route %s", route_id));
}

static void drainer_stalled(void *arg, const char *partition, struct gb_err cause)
{
    gb_runtime_fail(arg, gb_err_in(cause, "outbox partition %s", partition));
}

static void records_persisted(void *arg, struct gb_bytes partition)
{
    struct gb_runtime *r = arg;
    struct gb_built_drainer *b = gb_map_get(&r->by_partition, partition);
    if (b != NULL && b->drainer != NULL) gb_drainer_wake(b->drainer);
}

static struct gb_err build_route(struct gb_runtime *r, struct gb_built_route *b)
{
    const struct gb_bp_route *bp = b->bp;
    struct gb_route_binding *bindings = calloc(bp->binding_ids.count, sizeof *bindings);
    if (bindings == NULL) return gb_err_no_memory("bindings");
    for (size_t i = 0; i < bp->binding_ids.count; i++) {
        const struct gb_bp_session *session = gb_blueprint_effective_session(bp, bp->bindings[i]);
        bindings[i] = (struct gb_route_binding){
            .id = bp->bindings[i]->id,
            .sender = gb_runtime_sender_of(r, bp->bindings[i]->sender),
            .address = bp->bindings[i]->address,
            .session_id = session == NULL ? NULL : session->id,
            .mqtt = bp->bindings[i]->sender->transport.value == GB_BP_MQTT,
        };
    }
    struct gb_built_session *source = gb_runtime_session_of(r, bp->receiver->session);
    const struct gb_route_cfg cfg = {
        .id = bp->id,
        .instance_id = r->cfg.instance_id,
        .source_session_id = bp->receiver->session == NULL ? NULL : bp->receiver->session->id,
        .delivery_mode = (enum gb_delivery_mode)bp->delivery_mode.value,
        .every_binding = gb_blueprint_every_binding(bp),
        .trust_bridge_headers = bp->trust_bridge_headers.value,
        .policy = gb_blueprint_route_policy(bp),
        .bindings = bindings,
        .binding_count = bp->binding_ids.count,
        .reactor = r->reactor,
        .metrics = r->cfg.metrics,
        .receiver = source == NULL ? NULL : gb_mqtt_session_receiver(source->session),
        .outbox = r->outbox,
        .dlq = r->dlq,
        .ledger = r->ledger,
        .persisted = records_persisted,
        .wedged = route_wedged,
        .arg = r,
    };
    struct gb_err err = cfg.receiver == NULL ? gb_err(GB_INVALID_CONFIG,
                                                      "receiver %s has no topics", bp->receiver_id)
                                             : gb_route_new(&cfg, &b->route);
    free(bindings);
    return gb_failed(err) ? gb_err_in(err, "route %s", bp->id) : err;
}

struct gb_err gb_build_routes(struct gb_runtime *r)
{
    const struct gb_blueprint *bp = r->cfg.blueprint;
    r->routes = calloc(bp->route_count + 1, sizeof *r->routes);
    if (r->routes == NULL) return gb_err_no_memory("routes");
    for (size_t i = 0; i < bp->route_count; i++) {
        r->routes[i].bp = &bp->routes[i];
        r->route_count = i + 1;
        struct gb_err err = build_route(r, &r->routes[i]);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

struct partition_plan { /* what one drainer serves */
    char name[GB_BLUEPRINT_PARTITION_MAX];
    const struct gb_bp_route *route; /* its session block gives the drain settings */
    const char *session_id;
    struct gb_drainer_target *targets;
    size_t target_count;
};

static struct partition_plan *plan_of(struct partition_plan *plans, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(plans[i].name, name) == 0) return &plans[i];
    struct partition_plan *p = &plans[(*count)++];
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

static struct gb_err add_targets(struct gb_runtime *r, const struct gb_bp_route *route,
                                 struct partition_plan *plans, size_t *count)
{
    for (size_t k = 0; k < route->binding_ids.count; k++) {
        const struct gb_bp_binding *binding = route->bindings[k];
        const struct gb_bp_session *session = gb_blueprint_effective_session(route, binding);
        char name[GB_BLUEPRINT_PARTITION_MAX];
        gb_blueprint_partition(route, binding, name);
        struct partition_plan *p = plan_of(plans, count, name);
        struct gb_drainer_target *grown =
            realloc(p->targets, (p->target_count + 1) * sizeof *p->targets);
        if (grown == NULL) return gb_err_no_memory("drainers");
        p->targets = grown;
        p->session_id = session == NULL ? "" : session->id;
        if (p->route == NULL || route->session.node != NULL) p->route = route;
        p->targets[p->target_count++] = (struct gb_drainer_target){
            .route_id = route->id,
            .binding_id = binding->id,
            .sender = gb_runtime_sender_of(r, binding->sender),
            .policy = gb_blueprint_route_policy(route),
        };
    }
    return gb_ok();
}

static struct gb_err build_drainer(struct gb_runtime *r, const struct partition_plan *p,
                                   struct gb_built_drainer *b)
{
    memcpy(b->partition, p->name, sizeof b->partition);
    const struct gb_built_lease *lease = gb_runtime_lease_of(r, gb_bytes_c(p->name));
    b->local = lease == NULL;
    b->holder =
        b->local ? gb_local_authority(&b->authority) : gb_session_manager_authority(lease->manager);
    const struct gb_drainer_cfg cfg = {
        .partition = p->name,
        .session_id = p->session_id,
        .instance_id = r->cfg.instance_id,
        .policy = gb_blueprint_drain_policy(r->cfg.blueprint, p->route),
        .targets = p->targets,
        .target_count = p->target_count,
        .reactor = r->reactor,
        .metrics = r->cfg.metrics,
        .outbox = r->outbox,
        .dlq = r->dlq,
        .authority = b->holder,
        .stalled = drainer_stalled,
        .arg = r,
    };
    struct gb_err err = gb_drainer_new(&cfg, &b->drainer);
    if (gb_failed(err)) return err;
    return gb_map_put(&r->by_partition, gb_bytes_c(b->partition), b);
}

struct gb_err gb_build_drainers(struct gb_runtime *r)
{
    const struct gb_blueprint *bp = r->cfg.blueprint;
    size_t plans_max = 1;
    for (size_t i = 0; i < bp->route_count; i++) plans_max += bp->routes[i].binding_ids.count;
    struct partition_plan *plans = calloc(plans_max, sizeof *plans);
    r->drainers = calloc(plans_max, sizeof *r->drainers);
    if (plans == NULL || r->drainers == NULL) {
        free(plans);
        return gb_err_no_memory("drainers");
    }
    size_t count = 0;
    struct gb_err err = gb_ok();
    for (size_t i = 0; i < bp->route_count && !gb_failed(err); i++) {
        if (bp->routes[i].delivery_mode.value == GB_SHARED_OUTBOX)
            err = add_targets(r, &bp->routes[i], plans, &count);
    }
    for (size_t i = 0; i < count && !gb_failed(err); i++) {
        r->drainer_count = i + 1;
        err = build_drainer(r, &plans[i], &r->drainers[i]);
    }
    for (size_t i = 0; i < count; i++) free(plans[i].targets);
    free(plans);
    return err;
}
