#include <stdio.h>
#include <string.h>

#include "blueprint/bootstrap.h"
#include "blueprint/identity.h"
#include "blueprint/lease_plan.h"
#include "blueprint/schema.h"
#include "blueprint/validate.h"

/* Spec 01 §6, 07 §1.2, §9: the rules of the deployment's profile on a valid document. */

static const char ha[] = "topology dynamodb_coordinated_ha";

static void check_bridge(struct gb_check *c, const struct gb_bootstrap *boot)
{
    if (strcmp(c->b->bridge.id, boot->bridge_id) == 0) return;
    gb_check_error(c, GB_RULE_A1, "bridge.id",
                   "bridge.id \"%.*s\" is not the deployment's bridge_id \"%.*s\"; deploy the "
                   "document of that bridge",
                   GB_SHOWN_MAX, c->b->bridge.id, GB_SHOWN_MAX, boot->bridge_id);
}

/* --- dynamodb_coordinated_ha --- */

static void check_stores(struct gb_check *c, const struct gb_bootstrap *boot)
{
    const struct {
        enum gb_bp_role role;
        const char *table;
    } rows[] = {
        {GB_BP_LEASE, boot->lease_table},
        {GB_BP_OUTBOX, boot->outbox_table},
        {GB_BP_SUBSCRIPTIONS, boot->subscriptions_table},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct gb_bp_store *s = &c->b->stores[rows[i].role];
        const char *role = gb_schema_role_name(rows[i].role);
        char key[GB_CHECK_PATH_MAX];
        (void)snprintf(key, sizeof key, "stores.%s", role);
        if (s->node == NULL || s->type.value != GB_BP_DYNAMODB) {
            gb_check_error(c, GB_RULE_A2, key, "stores.%s: %s needs it of type dynamodb, %s; %s",
                           role, ha, s->node == NULL ? "it is absent" : "it has another type",
                           s->node == NULL ? "configure it" : "change the type");
            continue;
        }
        if (strcmp(s->options.table_name, rows[i].table) == 0) continue;
        (void)snprintf(key, sizeof key, "stores.%s.options.table_name", role);
        gb_check_error(c, GB_RULE_A3, key,
                       "%s \"%.*s\" is not the deployment's table \"%.*s\"; name that one", key,
                       GB_SHOWN_MAX, s->options.table_name, GB_SHOWN_MAX, rows[i].table);
    }
    for (int i = 0; i < GB_BP_ROLE_COUNT; i++) {
        char key[GB_CHECK_PATH_MAX];
        if (!c->b->stores[i].options.preflight_advisory.value) continue;
        (void)snprintf(key, sizeof key, "stores.%s.options.preflight_advisory",
                       gb_schema_role_name((enum gb_bp_role)i));
        gb_check_error(c, GB_RULE_A4, key,
                       "%s: true is for development and refused under %s; remove it", key, ha);
    }
}

/* Member slots share the table of their bridge. */
static void check_rollout_table(struct gb_check *c, const struct gb_bootstrap *boot)
{
    static const char suffix[] = "-rollouts";
    size_t size = strlen(c->b->bridge.id);
    if (strncmp(boot->rollout_table, c->b->bridge.id, size) == 0 &&
        strcmp(boot->rollout_table + size, suffix) == 0)
        return;
    gb_check_error(c, GB_RULE_A7, "bridge.id",
                   "bridge.id \"%.*s\": the deployment's rollout table is \"%.*s\", not "
                   "<bridge.id>%s; deploy the document of that bridge",
                   GB_SHOWN_MAX, c->b->bridge.id, GB_SHOWN_MAX, boot->rollout_table, suffix);
}

static void check_ha_bridge(struct gb_check *c, const struct gb_bootstrap *boot)
{
    const struct gb_bp_bridge *bridge = &c->b->bridge;
    const struct gb_bp_cluster *cluster = &bridge->cluster;
    if (bridge->deployment_mode.value != GB_BP_CLUSTERED) {
        gb_check_error(c, GB_RULE_A2, "bridge.deployment_mode",
                       "bridge.deployment_mode: standalone is refused under %s; write clustered",
                       ha);
    }
    if (cluster->endpoints.count > 0) {
        gb_check_error(c, GB_RULE_A4, "bridge.cluster.endpoints",
                       "bridge.cluster.endpoints is refused under %s, where each task finds its "
                       "own; remove it",
                       ha);
    }
    bool coordinated = cluster->rollout.value == GB_BP_ROLLOUT_COORDINATED;
    if (boot->member_id == NULL && (coordinated || cluster->members.count > 0)) {
        gb_check_error(c, GB_RULE_A7, "bridge.cluster",
                       "bridge.cluster: rollout: coordinated and members need member slots, and "
                       "the deployment has interchangeable workers (no member_id); remove them");
        return;
    }
    if (boot->member_id == NULL) return;
    check_rollout_table(c, boot);
    for (size_t i = 0; i < cluster->members.count; i++)
        if (strcmp(cluster->members.items[i], boot->member_id) == 0) return;
    gb_check_error(c, GB_RULE_A7, "bridge.cluster.members",
                   "bridge.cluster.members lacks this process's member_id \"%.*s\"; add it",
                   GB_SHOWN_MAX, boot->member_id);
}

/* A route that some lease stands behind. */
static bool is_leased(const struct gb_blueprint *b, const struct gb_bp_route *r)
{
    const struct gb_bp_session *in = r->receiver->session;
    if (r->session.node != NULL) return true;
    if (in != NULL && gb_blueprint_is_lease_managed(b, in)) return true;
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        const struct gb_bp_session *s = gb_blueprint_effective_session(r, r->bindings[i]);
        if (s != NULL && gb_blueprint_is_lease_managed(b, s)) return true;
    }
    return false;
}

static void check_ha_route(struct gb_check *c, const struct gb_bp_route *r)
{
    if (!is_leased(c->b, r)) return;
    if (r->delivery_mode.value != GB_SHARED_OUTBOX) {
        gb_check_error(c, GB_RULE_A5, "delivery_mode",
                       "delivery_mode: direct_hold%s is refused under %s; use shared_outbox",
                       r->delivery_mode.given ? "" : " (the default)", ha);
    } else if (!r->policy.ack_after.given) {
        gb_check_error(c, GB_RULE_A5, "policy.ack_after",
                       "policy.ack_after has to be written under %s; add ack_after: "
                       "outbox_persist",
                       ha);
    }
    if (!r->session.failover_slo.given) {
        gb_check_error(c, GB_RULE_A6, "session.failover_slo",
                       "session.failover_slo has to be declared under %s; add it", ha);
    }
    if (!r->session.startup_allowance.given) {
        gb_check_error(c, GB_RULE_A6, "session.startup_allowance",
                       "session.startup_allowance has to be declared under %s; add it, 0s if a "
                       "start costs nothing",
                       ha);
    }
}

/* The tables and the cluster block say what differs in detail; this also covers the DLQ and what
 * an older deployment was made from. */
static void check_fingerprint(struct gb_check *c, const struct gb_bootstrap *boot)
{
    char own[GB_SHA256_HEX];
    struct gb_err err = gb_blueprint_fingerprint(c->b, own);
    if (gb_failed(err)) {
        gb_check_error(c, GB_RULE_A8, "bridge", "the document has no fingerprint: %s", err.message);
    } else if (strcmp(own, boot->fingerprint) != 0) {
        gb_check_error(c, GB_RULE_A8, "bridge",
                       "the document's deployment fingerprint is %s, and the deployment was made "
                       "for %s; deploy again, or restore what the deployment owns: "
                       "deployment_mode, cluster, stores",
                       own, boot->fingerprint);
    }
}

static void admit_ha(struct gb_check *c, const struct gb_bootstrap *boot)
{
    check_ha_bridge(c, boot);
    check_stores(c, boot);
    for (size_t i = 0; i < c->b->route_count; i++) {
        const struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        check_ha_route(c, r);
    }
    gb_check_leave(c);
    check_fingerprint(c, boot);
}

/* --- filesystem_replicated --- */

static void admit_replicas(struct gb_check *c)
{
    for (size_t i = 0; i < c->b->route_count; i++) {
        const struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        if (r->session.node != NULL) {
            gb_check_error(c, GB_RULE_A9, "session",
                           "session is refused under topology filesystem_replicated, where nobody "
                           "takes over; remove the block");
        }
        if (r->delivery_mode.value == GB_SHARED_OUTBOX) {
            gb_check_error(c, GB_RULE_A9, "delivery_mode",
                           "delivery_mode: shared_outbox is refused under topology "
                           "filesystem_replicated, where replicas share no store; use "
                           "direct_hold");
        }
    }
    gb_check_leave(c);
}

struct gb_err gb_bootstrap_admit(const struct gb_bootstrap *boot, const struct gb_blueprint *b,
                                 struct gb_findings *findings)
{
    struct gb_check c = {.b = b, .findings = findings};
    gb_check_leave(&c);
    check_bridge(&c, boot);
    if (boot->topology == GB_TOPOLOGY_HA) admit_ha(&c, boot);
    if (boot->topology == GB_TOPOLOGY_REPLICATED) admit_replicas(&c);
    gb_findings_sort(findings);
    return gb_findings_check(findings);
}
