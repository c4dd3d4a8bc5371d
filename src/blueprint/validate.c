#include "blueprint/validate.h"

#include <stdio.h>

#include "base/map.h"

void gb_check_enter(struct gb_check *c, const char *section, size_t index, const char *id,
                    const struct gb_node *entry)
{
    (void)snprintf(c->path, sizeof c->path, "%s[%zu]", section, index);
    c->id = id;
    c->entry = entry;
}

void gb_check_leave(struct gb_check *c)
{
    c->path[0] = '\0';
    c->id = NULL;
    c->entry = c->b->node;
}

static void add(struct gb_check *c, enum gb_severity severity, enum gb_rule rule, const char *key,
                const char *format, va_list args)
{
    if (gb_findings_skip(c->findings, severity)) return;
    struct gb_finding_at at = {.path = c->path, .id = c->id, .rule = rule};
    gb_node_position(gb_node_locate(c->entry, key), &at);
    struct gb_err text = gb_err_v(GB_INVALID_CONFIG, format, args);
    gb_findings_add(c->findings, severity, at, "%s", text.message);
}

void gb_check_error(struct gb_check *c, enum gb_rule rule, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(c, GB_FINDING_ERROR, rule, key, format, args);
    va_end(args);
}

void gb_check_warning(struct gb_check *c, enum gb_rule rule, const char *key, const char *format,
                      ...)
{
    va_list args;
    va_start(args, format);
    add(c, GB_FINDING_WARNING, rule, key, format, args);
    va_end(args);
}

void gb_check_id(struct gb_check *c, struct gb_map *seen, const char *id)
{
    if (id == NULL) return;
    struct gb_bytes text = gb_bytes_c(id);
    if (text.size > GB_BLUEPRINT_ID_MAX) {
        gb_check_error(c, GB_RULE_V3, "id", "id has %zu bytes; at most %d are accepted", text.size,
                       GB_BLUEPRINT_ID_MAX);
    }
    if (!gb_utf8_safe(text)) {
        gb_check_error(c, GB_RULE_V3, "id", "id must not hold control characters");
    }
    if (gb_map_has(seen, text)) {
        gb_check_error(c, GB_RULE_V3, "id",
                       "duplicate id \"%.*s\"; give every entry of the section its own",
                       GB_SHOWN_MAX, id);
    } else if (gb_failed(gb_map_put(seen, text, c))) {
        c->findings->failed = true;
    }
}

bool gb_key_is_unread(const struct gb_node *block, const char *key, bool given)
{
    const struct gb_node *written = gb_node_get(block, key);
    return !given && written != NULL && written->kind != GB_NODE_NULL;
}

void gb_validate(struct gb_check *c)
{
    gb_check_leave(c);
    gb_validate_bridge(c);
    gb_validate_stores(c);
    gb_validate_sessions(c);
    gb_validate_receivers(c);
    gb_validate_senders(c);
    gb_validate_bindings(c);
    gb_validate_routes(c);
    gb_validate_leases(c);
    gb_validate_cluster(c);
    gb_validate_processors(c);
    gb_validate_http(c);
}
