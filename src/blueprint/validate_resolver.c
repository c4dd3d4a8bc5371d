#include <stdio.h>

#include "base/map.h"
#include "blueprint/validate.h"
#include "blueprint/validate_condition.h"

/* V7 (spec 01 §3.6, 02 §8). */

/* `binding` is written at `key` below `at`; the text leads with `path`. */
static void check_binding(struct gb_check *c, const struct gb_map *bound,
                          const struct gb_node *entry, const char *key, const char *path,
                          const char *binding)
{
    if (binding == NULL || binding[0] == '\0' || gb_map_has(bound, gb_bytes_c(binding))) return;
    struct gb_check at = *c;
    at.entry = entry;
    gb_check_error(&at, GB_RULE_V7, key,
                   "%s \"%.*s\" not found in route bindings; add it there or correct the id", path,
                   GB_SHOWN_MAX, binding);
}

static void check_bindings(struct gb_check *c, const struct gb_bp_resolver *v,
                           const struct gb_map *bound)
{
    char path[2 * GB_CHECK_PATH_MAX];
    check_binding(c, bound, v->node, "default_binding", "resolver.default_binding",
                  v->default_binding);
    for (size_t i = 0; i < v->header_map.count; i++) {
        const struct gb_bp_pair *pair = &v->header_map.items[i];
        (void)snprintf(path, sizeof path, "resolver.header_map.%.*s", GB_SHOWN_MAX, pair->key);
        check_binding(c, bound, pair->node, "", path, pair->value);
    }
    for (size_t i = 0; i < v->rule_count; i++) {
        (void)snprintf(path, sizeof path, "resolver.rules[%zu].binding_id", i);
        check_binding(c, bound, v->rules[i].node, "binding_id", path, v->rules[i].binding_id);
    }
}

static void check_conditions(struct gb_check *c, const struct gb_bp_resolver *v)
{
    for (size_t i = 0; i < v->rule_count; i++) {
        const struct gb_bp_rule *rule = &v->rules[i];
        for (size_t j = 0; j < rule->match_count; j++) {
            const struct gb_bp_condition *m = &rule->match[j];
            char path[2 * GB_CHECK_PATH_MAX];
            (void)snprintf(path, sizeof path, "resolver.rules[%zu].match[%zu]", i, j);
            gb_validate_condition(c, &(struct gb_check_condition){.rule = GB_RULE_V7,
                                                                  .path = path,
                                                                  .node = m->node,
                                                                  .field = m->field,
                                                                  .op = &m->op,
                                                                  .value = m->value});
        }
    }
}

static void check_needs(struct gb_check *c, const struct gb_bp_resolver *v)
{
    struct gb_check at = *c;
    at.entry = v->node;
    if (v->type.value == GB_BP_HEADER_MAP) {
        if (!gb_check_written(&at, "header_key")) {
            gb_check_error(c, GB_RULE_V7, "resolver",
                           "resolver.header_key is required with type header_map; add the name of "
                           "the header that decides");
        }
        if (v->header_map.count == 0 && !v->header_map.broken) {
            gb_check_error(c, GB_RULE_V7, "resolver",
                           "resolver.header_map needs at least one entry with type header_map; add "
                           "{value: binding}");
        }
    }
    const struct gb_node *rules = gb_node_get(v->node, "rules");
    bool unread = rules != NULL && rules->kind != GB_NODE_LIST && rules->kind != GB_NODE_NULL;
    if (v->type.value == GB_BP_RULES && v->rule_count == 0 && !unread &&
        !gb_check_written(&at, "default_binding")) {
        gb_check_error(c, GB_RULE_V7, "resolver",
                       "resolver needs a rule or a default_binding with type rules; add one");
    }
}

void gb_validate_resolver(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_resolver *v = &r->resolver;
    struct gb_map bound = {0};   /* ids of the route's bindings */
    if (v->node == NULL) return; /* of a block that is no map, every key is absent */
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        if (gb_failed(gb_map_put(&bound, gb_bytes_c(r->binding_ids.items[i]), c))) {
            c->findings->failed = true;
        }
    }
    if (!r->binding_ids.broken) check_bindings(c, v, &bound);
    gb_map_deinit(&bound);
    check_conditions(c, v);
    check_needs(c, v);
}
