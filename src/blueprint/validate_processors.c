#include <stdio.h>

#include "base/map.h"
#include "blueprint/validate.h"

/* Spec 01 §3.8, P8: each listed processor is defined, each defined one has a good name. What their
 * configuration says: validate_config.c. */

enum { NAME_SIZE_MAX = 64 };

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_SIZE_MAX) return false;
    for (const char *p = name; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        bool digit = *p >= '0' && *p <= '9';
        if (!letter && !digit && strchr("._-", *p) == NULL) return false;
    }
    return true;
}

static void put(struct gb_check *c, struct gb_map *map, const char *name)
{
    if (gb_failed(gb_map_put(map, gb_bytes_c(name), c))) c->findings->failed = true;
}

static void check_lists(struct gb_check *c, const struct gb_map *defined, struct gb_map *listed)
{
    const struct gb_node *section = gb_node_get(c->b->node, "processors");
    for (size_t i = 0; i < c->b->route_count; i++) {
        const struct gb_bp_route *r = &c->b->routes[i];
        gb_check_enter(c, "routes", i, r->id, r->node);
        for (size_t j = 0; j < r->processors.count; j++) {
            const char *name = r->processors.items[j];
            if (gb_map_has(defined, gb_bytes_c(name))) {
                put(c, listed, name);
                continue;
            }
            if (name[0] == '\0' || !gb_check_readable(section)) continue;
            char path[GB_CHECK_PATH_MAX];
            (void)snprintf(path, sizeof path, "processors[%zu]", j);
            gb_check_error(
                c, GB_RULE_P8, path,
                "%s \"%.*s\" not found in processors; define it there or correct the name", path,
                GB_SHOWN_MAX, name);
        }
    }
    gb_check_leave(c);
}

static void check_one(struct gb_check *c, const struct gb_bp_processor *p, bool listed)
{
    struct gb_check at = *c;
    at.entry = p->node;
    if (!is_name(p->name)) {
        gb_check_error(&at, GB_RULE_V3, "",
                       "processors: name \"%.*s\" must match [A-Za-z0-9._-]{1,64}; rename it",
                       GB_SHOWN_MAX, p->name);
    }
    if (!listed && !c->unread) {
        gb_check_warning(&at, GB_RULE_W5, "",
                         "processors.%.*s is listed by no route; list it or remove it",
                         GB_SHOWN_MAX, p->name);
    }
    if (p->config != NULL) gb_validate_config(&at, p);
}

void gb_validate_processors(struct gb_check *c)
{
    struct gb_map defined = {0};
    struct gb_map listed = {0};
    for (size_t i = 0; i < c->b->processor_count; i++) put(c, &defined, c->b->processors[i].name);
    check_lists(c, &defined, &listed);
    for (size_t i = 0; i < c->b->processor_count; i++) {
        const struct gb_bp_processor *p = &c->b->processors[i];
        check_one(c, p, gb_map_has(&listed, gb_bytes_c(p->name)));
    }
    gb_map_deinit(&defined);
    gb_map_deinit(&listed);
}
