#include "blueprint/merge.h"

#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "blueprint/schema.h"

bool gb_node_given(const struct gb_node *node)
{
    return node != NULL && node->kind != GB_NODE_NULL;
}

const char *gb_node_id(const struct gb_node *entry)
{
    const struct gb_node *id = gb_node_get(entry, "id");
    bool text = id != NULL && (id->kind == GB_NODE_PLAIN || id->kind == GB_NODE_STRING);
    return text && id->size > 0 ? id->text : NULL;
}

bool gb_merge_begin(struct gb_arena *arena, const struct gb_node *like,
                    struct gb_merge_chain *chain)
{
    struct gb_node *parent = gb_arena_alloc(arena, sizeof *parent);
    *chain = (struct gb_merge_chain){.parent = parent};
    if (parent == NULL) return false;
    *parent = *like;
    parent->first = NULL;
    parent->count = 0;
    parent->next = NULL;
    return true;
}

bool gb_merge_append(struct gb_arena *arena, struct gb_merge_chain *chain,
                     const struct gb_node *child)
{
    struct gb_node *n = gb_arena_alloc(arena, sizeof *n);
    if (n == NULL) return false;
    *n = *child;
    n->next = NULL;
    if (chain->last == NULL) {
        chain->parent->first = n;
    } else {
        chain->last->next = n;
    }
    chain->last = n;
    chain->parent->count++;
    return true;
}

/* What an API reader sent back without knowing the secret (spec 01 §8.2). */
static bool is_no_secret(const struct gb_node *node)
{
    /* Without quotes the marker would be a list, and nothing at all is null. */
    return node->kind == GB_NODE_STRING &&
           (node->size == 0 || strcmp(node->text, GB_REDACTED) == 0);
}

static bool is_zero(const struct gb_node *node)
{
    return strcmp(node->text, "0") == 0 || strcmp(node->text, "-0") == 0;
}

/* Both are given. */
static bool base_wins(const struct gb_field *f, const struct gb_node *base,
                      const struct gb_node *overlay)
{
    if (f == NULL) return false;
    if ((f->flags & GB_FIELD_SECRET) != 0) return is_no_secret(overlay) && base->size > 0;
    return strcmp(f->key, "version") == 0 && is_zero(overlay);
}

struct slot {
    const struct gb_node *node;
    bool merged; /* with an entry of the overlay */
};

static const struct gb_node *merge_map(struct gb_arena *arena, const struct gb_block *block,
                                       const struct gb_node *base, const struct gb_node *overlay);

/* Entries of both lists in their order, those of the same id made one. A second one of an id in
 * the same list stays: the rule on ids must see it. */
static bool merge_entries(struct gb_arena *arena, const struct gb_field *f, struct gb_map *ids,
                          struct slot *slots, size_t *count, const struct gb_node *overlay)
{
    for (const struct gb_node *n = overlay->first; n != NULL; n = n->next) {
        const char *id = gb_node_id(n);
        struct slot *slot = id == NULL ? NULL : gb_map_get(ids, gb_bytes_c(id));
        if (slot == NULL || slot->merged) {
            slots[(*count)++] = (struct slot){.node = n, .merged = true};
            continue;
        }
        slot->merged = true;
        slot->node =
            (f->flags & GB_FIELD_MERGE) == 0 ? n : merge_map(arena, f->block, slot->node, n);
        if (slot->node == NULL) return false;
    }
    return true;
}

static const struct gb_node *merge_list(struct gb_arena *arena, const struct gb_field *f,
                                        const struct gb_node *base, const struct gb_node *overlay)
{
    struct slot *slots = gb_arena_array(arena, base->count + overlay->count, sizeof *slots);
    if (slots == NULL) return NULL;
    struct gb_map ids = {0};
    size_t count = 0;
    bool ok = true;
    for (const struct gb_node *n = base->first; ok && n != NULL; n = n->next) {
        slots[count] = (struct slot){.node = n};
        const char *id = gb_node_id(n);
        if (id != NULL && !gb_map_has(&ids, gb_bytes_c(id)))
            ok = !gb_failed(gb_map_put(&ids, gb_bytes_c(id), &slots[count]));
        count++;
    }
    ok = ok && merge_entries(arena, f, &ids, slots, &count, overlay);
    gb_map_deinit(&ids);
    struct gb_merge_chain chain;
    ok = ok && gb_merge_begin(arena, base, &chain);
    for (size_t i = 0; ok && i < count; i++) ok = gb_merge_append(arena, &chain, slots[i].node);
    return ok ? chain.parent : NULL;
}

/* Both are given. `f` is NULL below names of the document, such as processors. This calls back into
 * merge_map only where a table says so: three levels deep. */
static const struct gb_node *merge_value(struct gb_arena *arena, const struct gb_field *f,
                                         const struct gb_node *base, const struct gb_node *overlay)
{
    if (base_wins(f, base, overlay)) return base;
    if (f == NULL || base->kind != overlay->kind) return overlay;
    if ((f->flags & GB_FIELD_BY_ID) != 0 && base->kind == GB_NODE_LIST)
        return merge_list(arena, f, base, overlay);
    if ((f->flags & GB_FIELD_MERGE) != 0 && base->kind == GB_NODE_MAP)
        return merge_map(arena, f->type == GB_FIELD_BLOCK ? f->block : NULL, base, overlay);
    return overlay;
}

static bool merge_keys(struct gb_arena *arena, const struct gb_block *block, struct gb_map *written,
                       struct gb_merge_chain *chain, const struct gb_node *base)
{
    for (const struct gb_node *n = base->first; n != NULL; n = n->next) {
        const struct gb_node *over = gb_map_remove(written, gb_bytes_c(n->key));
        const struct gb_node *pick = over == NULL ? n : over;
        if (over != NULL && gb_node_given(n)) {
            const struct gb_field *f = block == NULL ? NULL : gb_schema_field(block, n->key);
            pick = merge_value(arena, f, n, over);
        }
        if (pick == NULL || !gb_merge_append(arena, chain, pick)) return false;
    }
    return true;
}

/* Keys of both maps, those of the base first. */
static const struct gb_node *merge_map(struct gb_arena *arena, const struct gb_block *block,
                                       const struct gb_node *base, const struct gb_node *overlay)
{
    struct gb_map written = {0}; /* keys of the overlay that wait for their place */
    struct gb_merge_chain chain;
    bool ok = gb_merge_begin(arena, base, &chain);
    for (const struct gb_node *n = overlay->first; ok && n != NULL; n = n->next) {
        if (gb_node_given(n))
            ok = !gb_failed(gb_map_put(&written, gb_bytes_c(n->key), (void *)(uintptr_t)n));
    }
    ok = ok && merge_keys(arena, block, &written, &chain, base);
    for (const struct gb_node *n = overlay->first; ok && n != NULL; n = n->next) {
        if (gb_map_has(&written, gb_bytes_c(n->key))) ok = gb_merge_append(arena, &chain, n);
    }
    gb_map_deinit(&written);
    return ok ? chain.parent : NULL;
}

const struct gb_node *gb_merge_layers(struct gb_arena *arena, const struct gb_node *base,
                                      const struct gb_node *overlay)
{
    if (!gb_node_given(overlay)) return base;
    if (!gb_node_given(base)) return overlay;
    GB_ASSERT(base->kind == GB_NODE_MAP && overlay->kind == GB_NODE_MAP);
    const struct gb_node *merged = merge_map(arena, &gb_schema_root, base, overlay);
    return merged == NULL ? NULL : gb_merge_drop_options(arena, base, overlay, merged);
}
