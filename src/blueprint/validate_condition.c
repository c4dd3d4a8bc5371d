#include "blueprint/validate_condition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "domain/regex.h"

static bool is_text(const struct gb_node *v)
{
    if (v->kind == GB_NODE_STRING) return true;
    return v->kind == GB_NODE_PLAIN && !gb_node_looks_like_number(v->text);
}

static bool is_bool(const struct gb_node *v)
{
    if (v->kind == GB_NODE_BOOL) return true;
    return v->kind == GB_NODE_PLAIN &&
           (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0);
}

static bool is_number(const struct gb_node *v)
{
    bool scalar = v->kind == GB_NODE_NUMBER || v->kind == GB_NODE_PLAIN;
    return scalar && gb_node_looks_like_number(v->text);
}

/* Numbers of conditions are compared as doubles, and the content digest writes them so (spec 01
 * §9.1). */
static bool is_too_large(const struct gb_node *v)
{
    return is_number(v) && !isfinite(strtod(v->text, NULL));
}

static void refuse_too_large(struct gb_check *c, const struct gb_check_condition *m,
                             const char *key, const struct gb_node *v)
{
    gb_check_error(c, m->rule, key,
                   "%s.%s %.*s is beyond the range of a number, 1.8e308; write a smaller one, or a "
                   "text in quotes",
                   m->path, key, GB_SHOWN_MAX, v->text);
}

/* What the operator's value must be, or NULL when it is. */
static const char *wrong_value(const struct gb_node *v, enum gb_bp_operator op)
{
    switch (op) {
    case GB_BP_EXISTS:
        return is_bool(v) ? NULL : "true or false";
    case GB_BP_IN:
        return v->kind == GB_NODE_LIST ? NULL : "a list of texts and numbers";
    case GB_BP_GT:
    case GB_BP_LT:
    case GB_BP_GTE:
    case GB_BP_LTE:
        return is_number(v) ? NULL : "a number";
    case GB_BP_REGEX:
    case GB_BP_PREFIX:
    case GB_BP_CONTAINS:
        return is_text(v) ? NULL : "a text";
    case GB_BP_EQ:
    case GB_BP_NE:
        break;
    }
    return v->kind == GB_NODE_LIST || v->kind == GB_NODE_MAP ? "a text, a number or a boolean"
                                                             : NULL;
}

static void check_pattern(struct gb_check *c, const struct gb_check_condition *m)
{
    struct gb_regex *regex = NULL;
    struct gb_err err = gb_regex_new(gb_bytes(m->value->text, m->value->size), &regex);
    gb_regex_free(regex);
    if (!gb_failed(err)) return;
    if (err.code != GB_INVALID_CONFIG) {
        c->findings->failed = true;
        return;
    }
    gb_check_error(c, m->rule, "value",
                   "%s.value \"%.*s\" is no usable regular expression: %s; correct or shorten it",
                   m->path, GB_SHOWN_MAX, m->value->text, err.message);
}

static void check_items(struct gb_check *c, const struct gb_check_condition *m)
{
    size_t i = 0;
    for (const struct gb_node *n = m->value->first; n != NULL; n = n->next, i++) {
        char key[GB_CHECK_PATH_MAX];
        (void)snprintf(key, sizeof key, "value[%zu]", i);
        if (is_too_large(n)) refuse_too_large(c, m, key, n);
        if (is_number(n) || (is_text(n) && !is_bool(n))) continue;
        bool scalar = n->kind != GB_NODE_LIST && n->kind != GB_NODE_MAP;
        gb_check_error(c, m->rule, key,
                       "%s.%s must be a text or a number, not %s%s%.*s%s; correct it", m->path, key,
                       gb_node_kind_name(n), scalar ? " (\"" : "", GB_SHOWN_MAX,
                       scalar ? n->text : "", scalar ? "\")" : "");
    }
}

static void check_value(struct gb_check *c, const struct gb_check_condition *m)
{
    enum gb_bp_operator op = (enum gb_bp_operator)m->op->value;
    const struct gb_node *written = gb_node_get(m->node, "operator");
    const char *name = written == NULL ? "" : written->text;
    if (m->value == NULL) {
        if (op == GB_BP_EXISTS && !m->exists_needs_value) return;
        gb_check_error(c, m->rule, "", "%s.value is required with operator %.*s; add it", m->path,
                       GB_SHOWN_MAX, name);
        return;
    }
    const char *want = wrong_value(m->value, op);
    if (want != NULL) {
        bool scalar = m->value->kind != GB_NODE_LIST && m->value->kind != GB_NODE_MAP;
        gb_check_error(c, m->rule, "value",
                       "%s.value must be %s with operator %.*s, not %s%s%.*s%s; correct the value "
                       "or the operator",
                       m->path, want, GB_SHOWN_MAX, name, gb_node_kind_name(m->value),
                       scalar ? " (\"" : "", GB_SHOWN_MAX, scalar ? m->value->text : "",
                       scalar ? "\")" : "");
    } else if (is_too_large(m->value)) {
        refuse_too_large(c, m, "value", m->value);
    } else if (op == GB_BP_REGEX) {
        check_pattern(c, m);
    } else if (op == GB_BP_IN) {
        check_items(c, m);
    }
}

/* `subject`, `header.<key>`, `$.<a.b.c>` or a header's bare name. */
static bool is_field(const char *field)
{
    if (strncmp(field, "header.", 7) == 0) return field[7] != '\0';
    if (field[0] != '$') return true;
    const char *p = field + 1;
    if (*p != '.' || strchr(p, '[') != NULL) return false;
    while (*p == '.') {
        size_t size = strcspn(p + 1, ".");
        if (size == 0) return false;
        p += 1 + size;
    }
    return true;
}

void gb_validate_condition(struct gb_check *c, const struct gb_check_condition *m)
{
    if (!gb_check_readable(m->node)) return;
    struct gb_check at = *c;
    at.entry = m->node;
    if (m->field != NULL && !is_field(m->field)) {
        gb_check_error(
            &at, m->rule, "field",
            "%s.field \"%.*s\" names nothing; write subject, header.<name>, $.<a.b.c> or "
            "a header's name",
            m->path, GB_SHOWN_MAX, m->field);
    }
    if (m->op->given) check_value(&at, m);
}
