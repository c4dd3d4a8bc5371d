#include "base/map.h"
#include "blueprint/validate.h"

static void check_timeouts(struct gb_check *c)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    bool both = bridge->per_record_drain_timeout.given && bridge->max_drain_timeout.given;
    if (both && bridge->max_drain_timeout.ns < bridge->per_record_drain_timeout.ns) {
        gb_check_error(c, GB_RULE_V2, "bridge.max_drain_timeout",
                       "bridge.max_drain_timeout is less than bridge.per_record_drain_timeout; the "
                       "ceiling of a batch must allow one record");
    }
    if (bridge->drain_timeout.given && bridge->drain_timeout.ns >= bridge->shutdown_timeout.ns) {
        gb_check_warning(c, GB_RULE_W5, "bridge.drain_timeout",
                         "bridge.drain_timeout is not less than bridge.shutdown_timeout, which "
                         "ends the process first");
    }
}

static void check_members(struct gb_check *c)
{
    const struct gb_bp_cluster *cluster = &c->b->bridge.cluster;
    const struct gb_bp_strings *members = &cluster->members;
    struct gb_map seen = {0};
    for (size_t i = 0; i < members->count; i++) {
        struct gb_bytes name = gb_bytes_c(members->items[i]);
        if (gb_map_has(&seen, name)) {
            gb_check_error(c, GB_RULE_C7, "bridge.cluster.members",
                           "bridge.cluster.members holds \"%.*s\" twice", GB_SHOWN_MAX,
                           members->items[i]);
        } else if (gb_failed(gb_map_put(&seen, name, c))) {
            c->findings->failed = true;
        }
    }
    gb_map_deinit(&seen);
}

/* C7. */
static void check_rollout(struct gb_check *c)
{
    const struct gb_bp_cluster *cluster = &c->b->bridge.cluster;
    bool coordinated = cluster->rollout.value == GB_BP_ROLLOUT_COORDINATED;
    check_members(c);
    if (coordinated && !gb_is_clustered(c->b)) {
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.rollout",
                       "bridge.cluster.rollout: coordinated requires deployment_mode: clustered");
    }
    if (coordinated && cluster->members.count == 0) {
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.rollout",
                       "bridge.cluster.rollout: coordinated requires bridge.cluster.members");
    }
    if (!coordinated && cluster->confirm_window.given) {
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.confirm_window",
                       "bridge.cluster.confirm_window requires rollout: coordinated");
    }
}

static bool is_http_url(const char *url)
{
    struct gb_bytes text = gb_bytes_c(url);
    size_t scheme = gb_bytes_starts_with_nocase(text, "https://")  ? 8
                    : gb_bytes_starts_with_nocase(text, "http://") ? 7
                                                                   : 0;
    return scheme > 0 && text.size > scheme && url[scheme] != '/';
}

/* C5: this instance's own endpoints by capability, not a map of peers. */
static void check_endpoints(struct gb_check *c)
{
    const struct gb_bp_map *endpoints = &c->b->bridge.cluster.endpoints;
    const char *http = NULL;
    for (size_t i = 0; i < endpoints->count; i++) {
        if (strcmp(endpoints->items[i].key, "http") == 0) http = endpoints->items[i].value;
    }
    if (endpoints->count == 0) return;
    if (http == NULL) {
        gb_check_error(c, GB_RULE_C5, "bridge.cluster.endpoints",
                       "bridge.cluster.endpoints has no key \"http\"; it lists this instance's own "
                       "endpoints by capability, not its peers");
    } else if (!is_http_url(http)) {
        gb_check_error(c, GB_RULE_C5, "bridge.cluster.endpoints.http",
                       "bridge.cluster.endpoints.http \"%.*s\" must be an absolute http or https "
                       "URL, such as http://10.0.1.10:8080",
                       GB_SHOWN_MAX, http);
    }
}

static void check_name(struct gb_check *c, const char *key, const char *value)
{
    if (value == NULL) return;
    if (strlen(value) > GB_BLUEPRINT_ID_MAX || !gb_utf8_safe(gb_bytes_c(value))) {
        gb_check_error(c, GB_RULE_V3, key, "%s must be at most %d bytes without control characters",
                       key, GB_BLUEPRINT_ID_MAX);
    }
}

void gb_validate_bridge(struct gb_check *c)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    const struct gb_node *id = gb_node_get(bridge->node, "id");
    bool wrong_type = id != NULL && id->kind != GB_NODE_NULL && id->size > 0;
    if (bridge->id == NULL && !wrong_type) {
        gb_check_error(c, GB_RULE_V1, "bridge.id",
                       "bridge.id is required; it names the logical bridge on every instance");
    }
    check_name(c, "bridge.id", bridge->id);
    check_name(c, "bridge.instance_id", bridge->instance_id);
    check_timeouts(c);
    check_rollout(c);
    check_endpoints(c);
}
