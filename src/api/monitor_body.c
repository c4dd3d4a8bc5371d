#include "api/monitor_body.h"

#include "api/service_level.h"
#include "base/duration.h"
#include "base/json_write.h"

static void text(struct gb_json_writer *w, const char *key, const char *value)
{
    gb_json_w_key(w, key);
    gb_json_w_string_c(w, value);
}

static void flag(struct gb_json_writer *w, const char *key, bool value)
{
    gb_json_w_key(w, key);
    gb_json_w_bool(w, value);
}

static void number(struct gb_json_writer *w, const char *key, int64_t value)
{
    gb_json_w_key(w, key);
    gb_json_w_i64(w, value);
}

static void print_policy(struct gb_json_writer *w, const struct gb_monitor_route *r)
{
    number(w, "max_in_flight", r->max_in_flight);
    number(w, "max_replay", r->max_replay);
    text(w, "ack_after", r->ack_after);
    text(w, "on_expired", r->on_expired);
    text(w, "on_perm_failure", r->on_perm_failure);
    text(w, "on_filtered", r->on_filtered);
}

static void print_route_list(struct gb_json_writer *w, const struct gb_monitor_snapshot *s,
                             bool policy)
{
    gb_json_w_key(w, "routes");
    gb_json_w_array(w);
    for (size_t i = 0; i < s->route_count; i++) {
        const struct gb_monitor_route *r = &s->routes[i];
        gb_json_w_object(w);
        text(w, "id", r->id);
        text(w, "delivery_mode", r->delivery_mode);
        text(w, "dispatch_mode", r->dispatch_mode);
        if (policy) print_policy(w, r);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
}

void gb_monitor_print_topology(const struct gb_monitor_snapshot *s, struct gb_str *out)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    text(&w, "instance_id", s->instance_id);
    flag(&w, "running", s->running);
    print_route_list(&w, s, false);
    if (s->running_version > 0) number(&w, "config_version", s->running_version);
    gb_json_w_object_end(&w);
}

void gb_monitor_print_routes(const struct gb_monitor_snapshot *s, struct gb_str *out)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    print_route_list(&w, s, true);
    gb_json_w_object_end(&w);
}

static void print_lease(struct gb_json_writer *w, const struct gb_monitor_lease *l)
{
    if (l->owner[0] != '\0') {
        text(w, "lease_owner", l->owner);
        gb_json_w_key(w, "fencing_version");
        gb_json_w_u64(w, l->version);
    }
    gb_json_w_key(w, "lease");
    gb_json_w_object(w);
    text(w, "state", l->state);
    number(w, "lease_ttl_ms", l->ttl_ns / GB_MS);
    number(w, "renew_interval_ms", l->renew_ns / GB_MS);
    number(w, "poll_interval_ms", l->poll_ns / GB_MS);
    number(w, "remaining_ms", l->remaining_ns / GB_MS);
    number(w, "evidence_ms", l->observed_ns / GB_MS);
    number(w, "evidence_required_ms", l->required_ns / GB_MS);
    number(w, "renewal_failures", l->fails);
    if (gb_failed(l->store_error)) text(w, "store_error", l->store_error.message);
    gb_json_w_object_end(w);
}

static void print_session(struct gb_json_writer *w, const struct gb_monitor_session *m)
{
    const struct gb_session_health *h = &m->health;
    gb_json_w_object(w);
    text(w, "session_id", m->id);
    flag(w, "connected", h->connected);
    flag(w, "has_lease", m->exclusive && m->lease.holds);
    number(w, "subscriptions_wanted", h->subscriptions_wanted);
    number(w, "subscriptions_active", h->subscriptions_active);
    flag(w, "ready", h->ready);
    text(w, "service_level",
         gb_service_level_name(h->connected ? h->service_level : GB_LEVEL_NONE));
    number(w, "unsettled_count", h->unsettled_count);
    number(w, "oldest_unsettled_age_ms", h->oldest_unsettled_age_ms);
    gb_json_w_key(w, "receive_window_utilization");
    gb_json_w_double(w, h->receive_window_utilization);
    gb_json_w_key(w, "recovery_recycle_count");
    gb_json_w_u64(w, h->recovery_recycle_count);
    if (m->exclusive) print_lease(w, &m->lease);
    gb_json_w_object_end(w);
}

static void print_routes_health(struct gb_json_writer *w, const struct gb_monitor_snapshot *s)
{
    gb_json_w_key(w, "routes");
    gb_json_w_array(w);
    for (size_t i = 0; i < s->route_count; i++) {
        const struct gb_monitor_route *r = &s->routes[i];
        gb_json_w_object(w);
        text(w, "id", r->id);
        text(w, "delivery_mode", r->delivery_mode);
        flag(w, "ready", r->ready);
        number(w, "in_flight", r->in_flight);
        flag(w, "route_dead", r->dead);
        gb_json_w_object_end(w);
    }
    gb_json_w_array_end(w);
}

static void print_config_watch(struct gb_json_writer *w, const struct gb_monitor_snapshot *s)
{
    gb_json_w_key(w, "config_watch");
    gb_json_w_object(w);
    flag(w, "degraded", s->degraded);
    if (s->degraded) text(w, "reason", s->degraded_reason);
    if (s->startup_pending) flag(w, "startup_pending", true);
    flag(w, "reconfigure_pending", s->reconfigure_pending);
    if (s->desired_version > 0) number(w, "desired_version", s->desired_version);
    if (s->running_version > 0) number(w, "running_version", s->running_version);
    if (s->apply_error != NULL) text(w, "last_apply_error", s->apply_error);
    if (s->restart_required) flag(w, "restart_required", true);
    gb_json_w_object_end(w);
}

void gb_monitor_print_deephealth(const struct gb_monitor_snapshot *s, struct gb_str *out)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    flag(&w, "running", s->running);
    flag(&w, "healthy", s->healthy);
    text(&w, "instance_id", s->instance_id);
    text(&w, "role", gb_role_name(gb_role_of(s)));
    flag(&w, "ready_for_traffic", gb_ready_for_traffic(s));
    flag(&w, "empty", gb_monitor_empty(s));
    text(&w, "service_level", gb_service_level_name(gb_service_level_of(s)));
    text(&w, "level", gb_readiness_name(gb_readiness_of(s)));
    gb_json_w_key(&w, "sessions");
    gb_json_w_array(&w);
    for (size_t i = 0; i < s->session_count; i++) print_session(&w, &s->sessions[i]);
    gb_json_w_array_end(&w);
    print_routes_health(&w, s);
    print_config_watch(&w, s);
    gb_json_w_object_end(&w);
}
