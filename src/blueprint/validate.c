#include "blueprint/validate.h"

#include <stdio.h>

#include "base/map.h"
#include "blueprint/decode.h"

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

bool gb_check_written(const struct gb_check *c, const char *key)
{
    const struct gb_node *n = gb_node_get(c->entry, key);
    return n != NULL && n->kind != GB_NODE_NULL && (n->kind != GB_NODE_STRING || n->size > 0);
}

static void add(struct gb_check *c, enum gb_severity severity, enum gb_rule rule, const char *key,
                const char *format, va_list args)
{
    if (gb_findings_skip(c->findings, severity)) return;
    struct gb_finding_at at = {.path = c->path, .id = c->id, .rule = rule};
    gb_node_position(gb_node_locate(c->entry, key), &at);
    gb_findings_add_v(c->findings, severity, at, format, args);
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
        gb_check_error(c, GB_RULE_V3, "id",
                       "id \"%.*s...\" has %zu bytes, and at most %d are accepted; shorten it",
                       GB_SHOWN_MAX, id, text.size, GB_BLUEPRINT_ID_MAX);
    }
    if (!gb_utf8_safe(text)) {
        gb_check_error(c, GB_RULE_V3, "id",
                       "id \"%.*s\" must not hold control characters; remove them", GB_SHOWN_MAX,
                       id);
    }
    if (gb_map_has(seen, text)) {
        gb_check_error(c, GB_RULE_V3, "id",
                       "duplicate id \"%.*s\" in the section; give every entry its own",
                       GB_SHOWN_MAX, id);
    } else if (gb_failed(gb_map_put(seen, text, c))) {
        c->findings->failed = true;
    }
}

/* An entry that could not be read may be the one that is looked for. */
static bool section_is_unread(struct gb_check *c, const char *section)
{
    const struct gb_node *all = gb_node_get(c->b->node, section);
    if (all == NULL || all->kind == GB_NODE_NULL) return false;
    if (all->kind != GB_NODE_LIST || all->count > GB_DECODE_LIST_MAX) return true;
    if (gb_findings_skip(c->findings, GB_FINDING_ERROR)) return true; /* no more walks */
    for (const struct gb_node *n = all->first; n != NULL; n = n->next) {
        const struct gb_node *id = gb_node_get(n, "id");
        if (n->kind != GB_NODE_MAP) return true;
        if (id == NULL || id->kind == GB_NODE_NULL) continue;
        bool text = id->kind == GB_NODE_STRING ||
                    (id->kind == GB_NODE_PLAIN && !gb_node_looks_like_number(id->text));
        if (!text) return true;
    }
    return false;
}

void gb_check_missing(struct gb_check *c, const char *key, const char *id, const char *section)
{
    if (c->unread && section_is_unread(c, section)) return;
    gb_check_error(c, GB_RULE_V5, key,
                   "%s \"%.*s\" not found in %s; add it there or correct the id", key, GB_SHOWN_MAX,
                   id, section);
}

/* The URI names where secrets are, so only its scheme is shown. */
void gb_validate_credentials_uri(struct gb_check *c, const char *uri)
{
    if (uri == NULL) return;
    const char *path = strstr(uri, "://");
    size_t scheme = path == NULL ? 0 : (size_t)(path - uri);
    bool known = gb_bytes_equal_c(gb_bytes(uri, scheme), "file") ||
                 gb_bytes_equal_c(gb_bytes(uri, scheme), "pms");
    if (path == NULL || !known) {
        gb_check_error(c, GB_RULE_K8, "options.credentials_uri",
                       "options.credentials_uri has the scheme \"%.*s\"; use file:// or pms://",
                       (int)gb_min_i64((int64_t)scheme, GB_SHOWN_MAX), uri);
        return;
    }
    for (path += 3;; path++) {
        size_t size = strcspn(path, "/");
        bool dots = gb_bytes_equal_c(gb_bytes(path, size), ".") ||
                    gb_bytes_equal_c(gb_bytes(path, size), "..");
        if (size == 0 || dots) {
            gb_check_error(c, GB_RULE_K8, "options.credentials_uri",
                           "options.credentials_uri (%.*s://...) has an empty segment, \".\" or "
                           "\"..\" in its path; write %.*s://a/b/c",
                           (int)scheme, uri, (int)scheme, uri);
            return;
        }
        path += size;
        if (*path == '\0') return;
    }
}

void gb_validate(struct gb_check *c)
{
    c->unread = c->findings->error_count > 0;
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
