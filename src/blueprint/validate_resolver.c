#include "base/map.h"
#include "blueprint/validate.h"

/* V7 (spec 01 §3.6, 02 §8). */

enum { REGEX_MAX = 4096 };

/* Ids of the route's bindings. */
static bool is_bound(const struct gb_map *bound, const char *binding)
{
    return gb_map_has(bound, gb_bytes_c(binding));
}

static void check_binding(struct gb_check *c, const struct gb_map *bound, const char *key,
                          const char *binding)
{
    if (binding == NULL || is_bound(bound, binding)) return;
    gb_check_error(c, GB_RULE_V7, key, "%s \"%.*s\" not found in route bindings", key, GB_SHOWN_MAX,
                   binding);
}

static bool is_number(const struct gb_node *value)
{
    bool scalar = value->kind == GB_NODE_NUMBER || value->kind == GB_NODE_PLAIN;
    return scalar && gb_node_looks_like_number(value->text);
}

static bool is_bool(const struct gb_node *value)
{
    if (value->kind == GB_NODE_BOOL) return true;
    return value->kind == GB_NODE_PLAIN &&
           (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0);
}

/* What the operator's value must be, or NULL when it is. */
static const char *wrong_value(const struct gb_bp_condition *m)
{
    const struct gb_node *v = m->value;
    enum gb_bp_operator op = (enum gb_bp_operator)m->op.value;
    if (op == GB_BP_EXISTS) {
        return v == NULL || is_bool(v) ? NULL : "true or false, or left out";
    }
    if (v == NULL) return "written";
    bool text = v->kind == GB_NODE_STRING || v->kind == GB_NODE_PLAIN;
    switch (op) {
    case GB_BP_IN:
        return v->kind == GB_NODE_LIST ? NULL : "a list";
    case GB_BP_GT:
    case GB_BP_LT:
    case GB_BP_GTE:
    case GB_BP_LTE:
        return is_number(v) ? NULL : "a number";
    case GB_BP_REGEX:
        return text && v->size <= REGEX_MAX ? NULL : "a text of at most 4096 characters";
    case GB_BP_PREFIX:
    case GB_BP_CONTAINS:
        return text ? NULL : "a text";
    case GB_BP_EQ:
    case GB_BP_NE:
    case GB_BP_EXISTS:
        break;
    }
    return v->kind == GB_NODE_LIST || v->kind == GB_NODE_MAP ? "a text, a number or a boolean"
                                                             : NULL;
}

static void check_rule(struct gb_check *c, const struct gb_bp_route *r, size_t index,
                       const struct gb_map *bound)
{
    const struct gb_bp_rule *rule = &r->resolver.rules[index];
    struct gb_check at = *c; /* positions below the rule, without a walk over all rules */
    at.entry = rule->node;
    if (rule->binding_id != NULL && !is_bound(bound, rule->binding_id)) {
        gb_check_error(&at, GB_RULE_V7, "binding_id",
                       "resolver.rules[%zu].binding_id \"%.*s\" not found in route bindings", index,
                       GB_SHOWN_MAX, rule->binding_id);
    }
    for (size_t i = 0; i < rule->match_count; i++) {
        const struct gb_bp_condition *m = &rule->match[i];
        if (!m->op.given) continue;
        const char *want = wrong_value(m);
        at.entry = m->node;
        if (want == NULL) continue;
        gb_check_error(&at, GB_RULE_V7, "value", "resolver.rules[%zu].match[%zu].value must be %s",
                       index, i, want);
    }
}

static void check_header_map(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_resolver *v = &r->resolver;
    if (v->header_key == NULL) {
        gb_check_error(c, GB_RULE_V7, "resolver",
                       "resolver.header_key is required with type header_map");
    }
    if (v->header_map.count == 0) {
        gb_check_error(c, GB_RULE_V7, "resolver", "resolver.header_map needs at least one entry");
    }
}

static void check_bindings(struct gb_check *c, const struct gb_bp_route *r,
                           const struct gb_map *bound)
{
    const struct gb_bp_resolver *v = &r->resolver;
    check_binding(c, bound, "resolver.default_binding", v->default_binding);
    for (size_t i = 0; i < v->header_map.count; i++) {
        struct gb_check at = *c;
        at.entry = v->header_map.items[i].node;
        if (is_bound(bound, v->header_map.items[i].value)) continue;
        gb_check_error(
            &at, GB_RULE_V7, "", "resolver.header_map.%.*s \"%.*s\" not found in route bindings",
            GB_SHOWN_MAX, v->header_map.items[i].key, GB_SHOWN_MAX, v->header_map.items[i].value);
    }
    for (size_t i = 0; i < v->rule_count; i++) check_rule(c, r, i, bound);
}

void gb_validate_resolver(struct gb_check *c, const struct gb_bp_route *r)
{
    const struct gb_bp_resolver *v = &r->resolver;
    struct gb_map bound = {0};
    if (v->node == NULL) return;
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        if (gb_failed(gb_map_put(&bound, gb_bytes_c(r->binding_ids.items[i]), c))) {
            c->findings->failed = true;
        }
    }
    check_bindings(c, r, &bound);
    gb_map_deinit(&bound);
    if (v->type.value == GB_BP_HEADER_MAP) check_header_map(c, r);
    if (v->type.value == GB_BP_RULES && v->rule_count == 0 && v->default_binding == NULL) {
        gb_check_error(c, GB_RULE_V7, "resolver",
                       "resolver needs a rule or a default_binding with type rules");
    }
}
