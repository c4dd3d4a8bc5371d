#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "blueprint/validate.h"

static void check_timeouts(struct gb_check *c)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    char left[GB_DURATION_TEXT_MAX];
    char right[GB_DURATION_TEXT_MAX];
    bool both = bridge->per_record_drain_timeout.given && bridge->max_drain_timeout.given;
    if (both && bridge->max_drain_timeout.ns < bridge->per_record_drain_timeout.ns) {
        gb_duration_print(bridge->max_drain_timeout.ns, left);
        gb_duration_print(bridge->per_record_drain_timeout.ns, right);
        gb_check_error(c, GB_RULE_V2, "bridge.max_drain_timeout",
                       "bridge.max_drain_timeout %s is less than bridge.per_record_drain_timeout, "
                       "%s; the ceiling of a batch must allow one record, raise it",
                       left, right);
    }
    if (bridge->drain_timeout.given && !bridge->shutdown_timeout.broken &&
        bridge->drain_timeout.ns >= bridge->shutdown_timeout.ns) {
        gb_duration_print(bridge->drain_timeout.ns, left);
        gb_duration_print(bridge->shutdown_timeout.ns, right);
        gb_check_warning(c, GB_RULE_W5, "bridge.drain_timeout",
                         "bridge.drain_timeout %s is not less than bridge.shutdown_timeout, %s, "
                         "which ends the process first; lower it",
                         left, right);
    }
}

static void check_members(struct gb_check *c)
{
    const struct gb_bp_cluster *cluster = &c->b->bridge.cluster;
    const struct gb_bp_strings *members = &cluster->members;
    struct gb_map seen = {0};
    for (size_t i = 0; i < members->count; i++) {
        struct gb_bytes name = gb_bytes_c(members->items[i]);
        if (name.size == 0) continue; /* the decoder has spoken */
        if (gb_map_has(&seen, name)) {
            char path[GB_CHECK_PATH_MAX];
            (void)snprintf(path, sizeof path, "bridge.cluster.members[%zu]", i);
            gb_check_error(c, GB_RULE_C7, path,
                           "bridge.cluster.members holds \"%.*s\" twice; a member stands in the "
                           "roster once, remove one of the two",
                           GB_SHOWN_MAX, members->items[i]);
        } else if (gb_failed(gb_map_put(&seen, name, c))) {
            c->findings->failed = true;
        }
    }
    gb_map_deinit(&seen);
}

/* C7. */
static void check_rollout(struct gb_check *c)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    const struct gb_bp_cluster *cluster = &bridge->cluster;
    check_members(c);
    if (cluster->rollout.broken) return;
    if (cluster->rollout.value != GB_BP_ROLLOUT_COORDINATED) {
        if (!cluster->confirm_window.given) return;
        char shown[GB_DURATION_TEXT_MAX];
        gb_duration_print(cluster->confirm_window.ns, shown);
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.confirm_window",
                       "bridge.cluster.confirm_window %s requires rollout: coordinated; set that, "
                       "or remove the window",
                       shown);
        return;
    }
    bool known = !bridge->deployment_mode.broken && !cluster->endpoints.broken;
    if (known && !gb_is_clustered(c->b)) {
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.rollout",
                       "bridge.cluster.rollout: coordinated requires deployment_mode: clustered; "
                       "set that, or write rollout: refuse");
    }
    if (cluster->members.count == 0 && !cluster->members.broken) {
        gb_check_error(c, GB_RULE_C7, "bridge.cluster.rollout",
                       "bridge.cluster.rollout: coordinated requires bridge.cluster.members; list "
                       "the member_id of every instance there");
    }
}

/* `host` or `[v6]`, and a port behind it where there is a colon. */
static bool is_authority(const char *at)
{
    size_t size = strcspn(at, "/?#");
    const char *user = memrchr(at, '@', size);
    const char *host = user == NULL ? at : user + 1;
    size -= (size_t)(host - at);
    size_t name = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
    if (name > size || name == 0) return false;
    if (name == size) return true;
    size_t digits = strspn(host + name + 1, "0123456789");
    if (host[name] != ':' || name + 1 + digits != size) return false;
    unsigned long port = strtoul(host + name + 1, NULL, 10);
    return port >= 1 && port <= 65535;
}

static bool is_http_url(const char *url)
{
    struct gb_bytes text = gb_bytes_c(url);
    size_t scheme = gb_bytes_starts_with_nocase(text, "https://")  ? 8
                    : gb_bytes_starts_with_nocase(text, "http://") ? 7
                                                                   : 0;
    if (scheme == 0 || !is_authority(url + scheme)) return false;
    for (const char *p = url; *p != '\0'; p++) {
        if (*p <= ' ' || *p == 0x7f) return false;
    }
    return true;
}

/* C5: this instance's own endpoints by capability, not a map of peers. */
static void check_endpoints(struct gb_check *c)
{
    const struct gb_bp_map *endpoints = &c->b->bridge.cluster.endpoints;
    const char *http = NULL;
    for (size_t i = 0; i < endpoints->count; i++) {
        if (strcmp(endpoints->items[i].key, "http") == 0) http = endpoints->items[i].value;
    }
    if (endpoints->count == 0 || endpoints->broken) return;
    if (http == NULL) {
        gb_check_error(
            c, GB_RULE_C5, "bridge.cluster.endpoints",
            "bridge.cluster.endpoints has the key \"%.*s\" but no key \"http\"; it lists "
            "this instance's own endpoints by capability, not its peers, write {http: "
            "\"http://10.0.1.10:8080\"}",
            GB_SHOWN_MAX, endpoints->items[0].key);
    } else if (!is_http_url(http)) {
        gb_check_error(c, GB_RULE_C5, "bridge.cluster.endpoints.http",
                       "bridge.cluster.endpoints.http \"%.*s\" must be an absolute http or https "
                       "URL; write one such as http://10.0.1.10:8080",
                       GB_SHOWN_MAX, http);
    }
}

static void check_name(struct gb_check *c, const char *key, const char *value)
{
    if (value == NULL) return;
    size_t size = strlen(value);
    if (size > GB_BLUEPRINT_ID_MAX) {
        gb_check_error(c, GB_RULE_V3, key,
                       "%s \"%.*s...\" has %zu bytes, and at most %d are accepted; shorten it", key,
                       GB_SHOWN_MAX, value, size, GB_BLUEPRINT_ID_MAX);
    }
    if (!gb_utf8_safe(gb_bytes_c(value))) {
        gb_check_error(c, GB_RULE_V3, key,
                       "%s \"%.*s\" must not hold control characters; remove them", key,
                       GB_SHOWN_MAX, value);
    }
}

void gb_validate_bridge(struct gb_check *c)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    const struct gb_node *id = gb_node_get(bridge->node, "id");
    bool wrong_type = id != NULL && id->kind != GB_NODE_NULL && id->kind != GB_NODE_STRING;
    bool readable = gb_check_readable(c->b->node) && gb_check_readable(bridge->node);
    if (bridge->id == NULL && !wrong_type && readable) {
        gb_check_error(c, GB_RULE_V1, "bridge.id",
                       "bridge.id is required; write the name of the logical bridge, equal on "
                       "every instance");
    }
    check_name(c, "bridge.id", bridge->id);
    check_name(c, "bridge.instance_id", bridge->instance_id);
    check_timeouts(c);
    check_rollout(c);
    check_endpoints(c);
}
