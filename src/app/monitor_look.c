#include "app/monitor_look.h"

#include <stdlib.h>

#include "app/runtime_parts.h"
#include "core/session_manager.h"

static bool reserve(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity) return true;
    void *grown = realloc(*items, count * size); /* counts of a checked document */
    if (grown == NULL) return false;
    *items = grown;
    *capacity = count;
    return true;
}

static void look_at_lease(const struct gb_built_session *b, struct gb_monitor_session *out)
{
    struct gb_session_manager_health h = {0};
    gb_session_manager_health(b->lease->manager, &h);
    out->exclusive = true;
    out->health = h.session;
    if (h.state == GB_MANAGER_TERMINAL) out->health.terminal = true;
    out->lease = (struct gb_monitor_lease){
        .state = gb_session_manager_state_name(h.state),
        .holds = h.holds,
        .connect_after = b->lease->connect_after,
        .owner = h.owner == NULL ? "" : h.owner,
        .version = h.version,
        .ttl_ns = h.cadence.ttl_ns,
        .renew_ns = h.cadence.renew_ns,
        .poll_ns = h.cadence.poll_ns,
        .remaining_ns = h.remaining_ns,
        .observed_ns = h.observed_ns,
        .required_ns = h.required_ns,
        .fails = h.fails,
        .store_error = h.last_error,
    };
}

static size_t look_at_sessions(const struct gb_runtime *r, struct gb_monitor_session *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->session_count; i++) {
        const struct gb_built_session *b = &r->sessions[i];
        if (b->session == NULL) continue; /* not in use */
        struct gb_monitor_session *one = &out[count++];
        *one = (struct gb_monitor_session){.id = b->bp->id};
        if (b->lease != NULL && b->lease->manager != NULL) {
            look_at_lease(b, one);
        } else {
            b->session->ops->health(b->session, &one->health);
        }
    }
    return count;
}

static const char *action_name(const struct gb_opt_word *action)
{
    return action->value == GB_ACTION_DROP ? "drop" : "dlq";
}

static size_t look_at_routes(const struct gb_runtime *r, struct gb_monitor_route *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->route_count; i++) {
        const struct gb_built_route *b = &r->routes[i];
        if (b->route == NULL) continue;
        struct gb_route_state state = {0};
        gb_route_get_state(b->route, &state);
        bool outbox = b->bp->delivery_mode.value == GB_SHARED_OUTBOX;
        bool fan_out = b->bp->dispatch_mode.value == GB_DISPATCH_FAN_OUT;
        out[count++] = (struct gb_monitor_route){
            .id = b->bp->id,
            .delivery_mode = outbox ? "shared_outbox" : "direct_hold",
            .dispatch_mode = fan_out ? "fan_out" : "single",
            .max_in_flight = b->bp->policy.max_in_flight.value,
            .max_replay = b->bp->policy.max_replay_attempts.value,
            .ack_after = outbox ? "outbox_persist" : "target_accept", /* no other is accepted */
            .on_expired = action_name(&b->bp->policy.on_expired),
            .on_perm_failure = action_name(&b->bp->policy.on_permanent_failure),
            .on_filtered = action_name(&b->bp->policy.on_filtered),
            .in_flight = state.in_flight,
            .ready = state.started && !state.stopping && !state.wedged,
            .dead = state.wedged,
        };
    }
    return count;
}

static void look_at_runtime(struct gb_monitor_room *room, const struct gb_runtime *r,
                            struct gb_monitor_snapshot *out)
{
    out->runtime = true;
    out->running = r->phase == GB_PHASE_RUNNING && !r->stopping;
    out->healthy = !r->terminal;
    if (!reserve((void **)&room->sessions, &room->session_capacity, r->session_count,
                 sizeof *room->sessions) ||
        !reserve((void **)&room->routes, &room->route_capacity, r->route_count,
                 sizeof *room->routes)) {
        out->healthy = false;
        return;
    }
    if (r->phase > GB_PHASE_SESSIONS) return; /* they are being freed */
    out->sessions = room->sessions;
    out->session_count = look_at_sessions(r, room->sessions);
    out->routes = room->routes;
    out->route_count = look_at_routes(r, room->routes);
    for (size_t i = 0; i < out->session_count; i++)
        out->healthy &= !out->sessions[i].health.terminal;
}

void gb_monitor_look(struct gb_monitor_room *room, const struct gb_supervisor *supervisor,
                     const struct gb_metrics *metrics, struct gb_monitor_snapshot *out)
{
    struct gb_supervisor_view v;
    gb_supervisor_look(supervisor, &v);
    *out = (struct gb_monitor_snapshot){
        .terminal = v.terminal,
        .instance_id = v.instance_id,
        .degraded = v.read_error != NULL || (v.activated && v.apply_error != NULL),
        .degraded_reason = v.read_error != NULL ? v.read_error : v.apply_error,
        .apply_error = v.apply_error,
        .startup_pending = !v.activated && !v.ending && v.apply_error == NULL,
        .reconfigure_pending = v.activated && v.swapping && !v.ending,
        .desired_version = v.attempted_version,
    };
    if (v.runtime != NULL) look_at_runtime(room, v.runtime, out);
    if (v.ending) out->running = false;
    if (v.blueprint == NULL) return;
    bool prometheus = v.blueprint->telemetry.metrics.exporter.value == GB_BP_EXPORT_PROMETHEUS;
    out->metrics = prometheus ? metrics : NULL;
    if (out->running) out->running_version = v.blueprint->version.value;
}

void gb_monitor_room_deinit(struct gb_monitor_room *room)
{
    free(room->sessions);
    free(room->routes);
    *room = (struct gb_monitor_room){0};
}
