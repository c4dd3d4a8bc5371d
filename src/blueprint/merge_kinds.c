#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "blueprint/merge.h"
#include "blueprint/schema.h"

/* Which options outlive a merge: those that are still read by the same kind's table. A kind may be
 * inherited over ids, so that an entry which no overlay names can lose its options too. */

/* Entries of one tree that others take their kind from, by id. */
struct givers {
    struct gb_map sessions, senders;
};

/* The first one of an id counts, as for the decoder. */
static bool index_ids(const struct gb_node *list, struct gb_map *ids)
{
    if (list == NULL || list->kind != GB_NODE_LIST) return true;
    for (const struct gb_node *n = list->first; n != NULL; n = n->next) {
        const char *id = gb_node_id(n);
        if (id == NULL || gb_map_has(ids, gb_bytes_c(id))) continue;
        if (gb_failed(gb_map_put(ids, gb_bytes_c(id), (void *)(uintptr_t)n))) return false;
    }
    return true;
}

static bool index_givers(const struct gb_node *root, struct givers *g)
{
    return index_ids(gb_node_get(root, "sessions"), &g->sessions) &&
           index_ids(gb_node_get(root, "senders"), &g->senders);
}

static void forget_givers(struct givers *g)
{
    gb_map_deinit(&g->sessions);
    gb_map_deinit(&g->senders);
}

static const struct gb_node *refer(const struct gb_map *ids, const struct gb_node *entry,
                                   const char *key)
{
    const struct gb_node *id = gb_node_get(entry, key);
    if (!gb_node_given(id) || id->size == 0) return NULL;
    return gb_map_get(ids, gb_bytes(id->text, id->size));
}

static enum gb_bp_kind written_kind(const struct gb_node *entry)
{
    const struct gb_node *word = gb_node_get(entry, "transport");
    if (!gb_node_given(word)) return GB_BP_KIND_NONE;
    for (const struct gb_word *w = gb_schema_kinds; w->name != NULL; w++) {
        if (strcmp(w->name, word->text) == 0) return (enum gb_bp_kind)w->value;
    }
    return GB_BP_KIND_NONE;
}

/* Kind inheritance (spec 01 §2). */
static enum gb_bp_kind kind_of(const struct givers *g, const struct gb_node *entry)
{
    bool bound = gb_node_given(gb_node_get(entry, "sender_id"));
    const struct gb_node *from = bound ? refer(&g->senders, entry, "sender_id") : entry;
    enum gb_bp_kind kind = written_kind(from);
    if (kind != GB_BP_KIND_NONE) return kind;
    return written_kind(refer(&g->sessions, from, "session_id"));
}

struct section {
    struct gb_arena *arena;
    struct givers before, after; /* the merge */
    struct gb_map base, overlay; /* entries of the section */
};

static bool loses_options(const struct section *s, const struct gb_node *entry)
{
    const char *id = gb_node_id(entry);
    if (id == NULL) return false;
    const struct gb_node *base = gb_map_get(&s->base, gb_bytes_c(id));
    if (!gb_node_given(gb_node_get(base, "options"))) return false;
    if (gb_node_given(gb_node_get(gb_map_get(&s->overlay, gb_bytes_c(id)), "options")))
        return false;
    enum gb_bp_kind before = kind_of(&s->before, base);
    enum gb_bp_kind after = kind_of(&s->after, entry);
    return before != GB_BP_KIND_NONE && after != GB_BP_KIND_NONE && before != after;
}

static const struct gb_node *without(struct gb_arena *arena, const struct gb_node *map,
                                     const char *key)
{
    struct gb_merge_chain chain;
    bool ok = gb_merge_begin(arena, map, &chain);
    for (const struct gb_node *n = map->first; ok && n != NULL; n = n->next) {
        if (strcmp(n->key, key) != 0) ok = gb_merge_append(arena, &chain, n);
    }
    return ok ? chain.parent : NULL;
}

static const struct gb_node *rebuild(const struct section *s, const struct gb_node *list)
{
    struct gb_merge_chain chain;
    bool ok = gb_merge_begin(s->arena, list, &chain);
    for (const struct gb_node *n = list->first; ok && n != NULL; n = n->next) {
        const struct gb_node *pick = loses_options(s, n) ? without(s->arena, n, "options") : n;
        ok = pick != NULL && gb_merge_append(s->arena, &chain, pick);
    }
    return ok ? chain.parent : NULL;
}

/* The section as it may stay: `list` itself when nothing is lost; NULL: out of memory. */
static const struct gb_node *keep_section(struct section *s, const struct gb_node *list,
                                          const struct gb_node *base, const struct gb_node *overlay)
{
    bool ok = index_ids(gb_node_get(base, list->key), &s->base) &&
              index_ids(gb_node_get(overlay, list->key), &s->overlay);
    bool any = false;
    for (const struct gb_node *n = list->first; ok && !any && n != NULL; n = n->next)
        any = loses_options(s, n);
    const struct gb_node *kept = any ? rebuild(s, list) : list;
    gb_map_deinit(&s->base);
    gb_map_deinit(&s->overlay);
    return ok ? kept : NULL;
}

static bool takes_a_kind(const struct gb_node *node)
{
    enum { ENTRY_BY_ENTRY = GB_FIELD_BY_ID | GB_FIELD_MERGE };
    const struct gb_field *f = gb_schema_field(&gb_schema_root, node->key);
    GB_ASSERT(f != NULL); /* the layers were decoded */
    return (f->flags & ENTRY_BY_ENTRY) == ENTRY_BY_ENTRY;
}

const struct gb_node *gb_merge_drop_options(struct gb_arena *arena, const struct gb_node *base,
                                            const struct gb_node *overlay,
                                            const struct gb_node *merged)
{
    struct section s = {.arena = arena};
    struct gb_merge_chain chain;
    bool ok = gb_merge_begin(arena, merged, &chain) && index_givers(base, &s.before) &&
              index_givers(merged, &s.after);
    for (const struct gb_node *n = merged->first; ok && n != NULL; n = n->next) {
        const struct gb_node *kept = takes_a_kind(n) ? keep_section(&s, n, base, overlay) : n;
        ok = kept != NULL && gb_merge_append(arena, &chain, kept);
    }
    forget_givers(&s.before);
    forget_givers(&s.after);
    return ok ? chain.parent : NULL;
}
