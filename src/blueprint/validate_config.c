#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "blueprint/blueprint_processors.h"
#include "blueprint/validate.h"
#include "blueprint/validate_condition.h"
#include "domain/reserved.h"

/* `config` of processors (spec 02 §9): what is wrong there fails the load. */

enum { PLACE_MAX = 256 };

/* processors.<name>.config.<rest>, for texts. */
static void place(char out[PLACE_MAX], const struct gb_bp_processor *p, const char *rest)
{
    (void)snprintf(out, PLACE_MAX, "processors.%.*s.config.%s", GB_SHOWN_MAX, p->name, rest);
}

static void check_filter(struct gb_check *c, const struct gb_bp_processor *p)
{
    const struct gb_bp_filter *f = p->config;
    char path[PLACE_MAX];
    for (size_t i = 0; i < f->condition_count; i++) {
        const struct gb_bp_condition *m = &f->conditions[i];
        char rest[GB_CHECK_PATH_MAX];
        (void)snprintf(rest, sizeof rest, "conditions[%zu]", i);
        place(path, p, rest);
        gb_validate_condition(c, &(struct gb_check_condition){.rule = GB_RULE_P8,
                                                              .path = path,
                                                              .node = m->node,
                                                              .field = m->field,
                                                              .op = &m->op,
                                                              .value = m->value,
                                                              .exists_needs_value = true});
    }
    bool written = gb_node_get(f->node, "routeTo") != NULL || gb_node_get(f->node, "route_to");
    if (f->action.value == GB_BP_ROUTE && !f->action.broken && f->route_to == NULL && !written) {
        place(path, p, "routeTo");
        gb_check_error(c, GB_RULE_P8, "config.action",
                       "%s is required with action: route; add the id of a binding of the route",
                       path);
    }
}

static bool is_base64(const char *text)
{
    struct gb_str out = {0};
    bool ok = gb_base64_decode(&out, gb_bytes_c(text)) || out.failed;
    gb_str_deinit(&out);
    return ok;
}

static bool is_whole(const char *text)
{
    if (*text == '-') text++;
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 18 && text[digits] == '\0';
}

static bool converts(const struct gb_node *v, enum gb_bp_transform_type type)
{
    if (type == GB_BP_TO_NOTHING) return true;
    if (v->kind == GB_NODE_LIST || v->kind == GB_NODE_MAP) return false;
    switch (type) {
    case GB_BP_TO_INT:
        return is_whole(v->text);
    case GB_BP_TO_FLOAT:
        return gb_node_looks_like_number(v->text);
    case GB_BP_TO_BOOL:
        return strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0;
    case GB_BP_BASE64_DECODE:
        return is_base64(v->text);
    case GB_BP_TO_NOTHING:
    case GB_BP_TO_STRING:
    case GB_BP_BASE64_ENCODE:
        break;
    }
    return true;
}

/* The first number in it that the content digest can't write (spec 01 §9.1), or NULL; whole ones
 * are written as they are. */
static const struct gb_node *too_large(const struct gb_node *v)
{
    bool scalar = v->kind == GB_NODE_NUMBER || v->kind == GB_NODE_PLAIN;
    if (scalar && strpbrk(v->text, ".eE") != NULL && gb_node_looks_like_number(v->text) &&
        !isfinite(strtod(v->text, NULL))) {
        return v;
    }
    const struct gb_node *found = NULL;
    for (const struct gb_node *n = v->first; n != NULL && found == NULL; n = n->next) {
        found = too_large(n);
    }
    return found;
}

/* What is wrong with the target of a mapping, or NULL. */
static const char *wrong_target(const char *target)
{
    if (strncmp(target, "header.", 7) == 0) {
        const char *key = target + 7;
        if (key[0] == '\0') return "names no header";
        if (gb_reserved_kind(gb_bytes_c(key)) != GB_RESERVED_NONE) {
            return "is a reserved header, which only the bridge sets";
        }
        return NULL;
    }
    for (const char *p = target;; p++) {
        size_t size = strcspn(p, ".");
        if (size == 0) return "has an empty part";
        p += size;
        if (*p == '\0') return NULL;
    }
}

static void check_mapping(struct gb_check *c, const struct gb_bp_processor *p, size_t index)
{
    const struct gb_bp_mapping *m = &((const struct gb_bp_transform *)p->config)->mappings[index];
    struct gb_check at = *c;
    char path[PLACE_MAX];
    char rest[GB_CHECK_PATH_MAX];
    if (!gb_check_readable(m->node)) return;
    at.entry = m->node;
    (void)snprintf(rest, sizeof rest, "mappings[%zu]", index);
    place(path, p, rest);
    if (m->source != NULL && m->source[0] != '$') {
        gb_check_error(&at, GB_RULE_P8, "source",
                       "%s.source \"%.*s\" must be a JSONPath; write it as $.user.name", path,
                       GB_SHOWN_MAX, m->source);
    }
    const char *wrong = m->target == NULL ? NULL : wrong_target(m->target);
    if (wrong != NULL) {
        gb_check_error(&at, GB_RULE_P8, "target",
                       "%s.target \"%.*s\" %s; write a dotted path or header.<name>", path,
                       GB_SHOWN_MAX, m->target, wrong);
    }
    const struct gb_node *v = m->default_value;
    if (v == NULL || m->transform.broken) return;
    const char *key = gb_node_get(m->node, "defaultValue") ? "defaultValue" : "default_value";
    const struct gb_node *number = too_large(v);
    if (number != NULL) {
        gb_check_error(&at, GB_RULE_P8, key,
                       "%s.defaultValue %.*s is beyond the range of a number, 1.8e308; write a "
                       "smaller one, or a text in quotes",
                       path, GB_SHOWN_MAX, number->text);
        return;
    }
    if (converts(v, (enum gb_bp_transform_type)m->transform.value)) return;
    bool scalar = v->kind != GB_NODE_LIST && v->kind != GB_NODE_MAP;
    const struct gb_node *word = gb_node_get(m->node, "transform");
    gb_check_error(
        &at, GB_RULE_P8, key,
        "%s.defaultValue %s%.*s%s does not convert to the mapping's own transform, %.*s; "
        "correct one of the two",
        path, scalar ? "\"" : "", GB_SHOWN_MAX, scalar ? v->text : gb_node_kind_name(v),
        scalar ? "\"" : "", GB_SHOWN_MAX, word == NULL ? "" : word->text);
}

static void check_breaker(struct gb_check *c, const struct gb_bp_processor *p)
{
    const struct gb_bp_circuitbreaker *b = p->config;
    char path[PLACE_MAX];
    if (b->key == NULL || strcmp(b->key, "global") == 0 || strcmp(b->key, "subject") == 0) return;
    if (strncmp(b->key, "header:", 7) == 0 && b->key[7] != '\0') return;
    place(path, p, "key");
    gb_check_error(c, GB_RULE_P8, "config.key",
                   "%s \"%.*s\" is invalid; must be one of: global, subject, header:<name>", path,
                   GB_SHOWN_MAX, b->key);
}

void gb_validate_config(struct gb_check *c, const struct gb_bp_processor *p)
{
    switch ((enum gb_bp_processor_type)p->type.value) {
    case GB_BP_FILTER:
        check_filter(c, p);
        break;
    case GB_BP_TRANSFORM:
        for (size_t i = 0; i < ((const struct gb_bp_transform *)p->config)->mapping_count; i++) {
            check_mapping(c, p, i);
        }
        break;
    case GB_BP_CIRCUITBREAKER:
        check_breaker(c, p);
        break;
    case GB_BP_TENANT:
    case GB_BP_PROCESSOR_NONE:
        break;
    }
}
