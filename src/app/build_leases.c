#include <stdio.h>
#include <stdlib.h>

#include "adapters/dynamodb/dynamodb_lease.h"
#include "adapters/memory/memory_lease.h"
#include "adapters/mqtt/mqtt_session.h"
#include "adapters/sqlite/sqlite_lease.h"
#include "app/runtime_parts.h"
#include "base/log.h"
#include "blueprint/lease_plan.h"

/* The lease store and a manager for each lease-bearing session (spec 06 §7). */

static void warn_process_local(const char *type)
{
    GB_LOG(GB_LOG_WARN,
           "SPLIT-BRAIN RISK: stores.lease is local to this process; a second instance would own "
           "the same sessions. Run one instance, or use type dynamodb",
           gb_lf_str("type", type));
}

struct gb_err gb_build_lease_store(struct gb_runtime *r, const struct gb_bp_store *s)
{
    if (s->type.value == GB_BP_DYNAMODB) {
        const struct gb_dynamodb_lease_cfg shared = {
            .reactor = r->reactor,
            .client = r->dynamodb.client,
            .table = s->options.table_name,
        };
        return gb_dynamodb_lease_new(&shared, &r->lease);
    }
    if (s->type.value == GB_BP_MEMORY) {
        warn_process_local("memory");
        return gb_memory_lease_new(r->reactor, &r->lease);
    }
    warn_process_local("sqlite");
    const struct gb_sqlite_lease_cfg cfg = {.path = s->options.path};
    return gb_sqlite_lease_new(r->sqlite, &cfg, &r->lease);
}

/* --- what a manager asks of the runtime --- */

static struct gb_drainer *drainer_of(const struct gb_built_lease *b)
{
    struct gb_built_drainer *d = gb_map_get(&b->runtime->by_partition, gb_bytes_c(b->partition));
    return d == NULL ? NULL : d->drainer;
}

static bool drained(void *arg)
{
    const struct gb_drainer *d = drainer_of(arg);
    return d == NULL || gb_drainer_idle(d);
}

static void authority_changed(void *arg, bool held)
{
    struct gb_drainer *d = drainer_of(arg);
    if (held && d != NULL) gb_drainer_wake(d);
}

static void lease_terminal(void *arg, const char *session_id, struct gb_err cause)
{
    const struct gb_built_lease *b = arg;
    gb_runtime_fail(b->runtime, gb_err_in(cause, "session %s", session_id));
}

/* --- building --- */

static struct gb_err build_manager(struct gb_runtime *r, const struct gb_lease_plan *plan,
                                   struct gb_built_session *s, struct gb_built_lease *b)
{
    const struct gb_bp_map *map = &r->cfg.blueprint->bridge.cluster.endpoints;
    struct gb_lease_endpoint *endpoints = calloc(map->count + 1, sizeof *endpoints);
    if (endpoints == NULL) return gb_err_no_memory("lease endpoints");
    for (size_t i = 0; i < map->count; i++) {
        endpoints[i] = (struct gb_lease_endpoint){gb_bytes_c(map->items[i].key),
                                                  gb_bytes_c(map->items[i].value)};
    }
    b->runtime = r;
    b->connect_after = plan->connect_after_lease;
    (void)snprintf(b->partition, sizeof b->partition, "SESSION#%s", plan->session->id);
    const struct gb_session_manager_cfg cfg = {
        .session_id = plan->session->id,
        .owner = r->cfg.owner,
        .cadence = plan->cadence,
        .activation_ns = plan->terms.activation_ns,
        .step_down_ns = plan->terms.step_down_ns,
        .connect_after_lease = plan->connect_after_lease,
        .endpoints = endpoints,
        .endpoint_count = map->count,
        .reactor = r->reactor,
        .metrics = r->cfg.metrics,
        .lease = r->lease,
        .session = s->session,
        .drained = drained,
        .authority_changed = authority_changed,
        .terminal = lease_terminal,
        .arg = b,
    };
    struct gb_err err = gb_session_manager_new(&cfg, &b->manager);
    free(endpoints);
    s->lease = b;
    if (!gb_failed(err) && plan->connect_after_lease)
        gb_mqtt_session_fence(s->session, gb_session_manager_authority(b->manager));
    return gb_failed(err) ? gb_err_in(err, "session %s", plan->session->id) : err;
}

struct gb_err gb_build_leases(struct gb_runtime *r)
{
    r->leases = calloc(r->session_count + 1, sizeof *r->leases);
    if (r->leases == NULL) return gb_err_no_memory("leases");
    for (size_t i = 0; i < r->session_count; i++) {
        struct gb_built_session *s = &r->sessions[i];
        struct gb_lease_plan plan;
        if (s->session == NULL || !gb_blueprint_lease_plan(r->cfg.blueprint, s->bp, &plan))
            continue;
        struct gb_err err = build_manager(r, &plan, s, &r->leases[r->lease_count++]);
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}

struct gb_built_lease *gb_runtime_lease_of(struct gb_runtime *r, struct gb_bytes partition)
{
    for (size_t i = 0; i < r->lease_count; i++)
        if (gb_bytes_equal(gb_bytes_c(r->leases[i].partition), partition)) return &r->leases[i];
    return NULL;
}
