#ifndef GB_BLUEPRINT_MERGE_H
#define GB_BLUEPRINT_MERGE_H

#include "blueprint/arena.h"
#include "blueprint/document.h"

/* Layers of documents become one tree (spec 01 §8.1, 07 §10.2). What is written wins, `false`, `0`
 * and `[]` too; null is not written. How far a section merges is told by the flags of schema.h; the
 * rest is replaced as a whole:
 *   bridge, stores, http             key by key; an http secret also outlives "" and [REDACTED]
 *   sessions, receivers, senders, bindings
 *                                    by id, key by key; `options` go when the kind changes,
 *                                    also an inherited one, unless the overlay writes them
 *   routes, processors               by id or name, whole entries
 *   version                          unless it is 0
 * Nothing is deleted, no mistake is mended: an entry that stands twice in a layer stays twice, and
 * a marker that found no secret stays for the decoder to refuse.
 * Owns:   new nodes live in the arena; they share what did not change with the inputs, which stay
 *         as they are and must live as long.
 * Thread: one at a time.
 * Errors: NULL when out of memory. Both trees must have passed a partial gb_decode_document. */
const struct gb_node *gb_merge_layers(struct gb_arena *arena, const struct gb_node *base,
                                      const struct gb_node *overlay);

/* Drops options that were written for another kind (merge_kinds.c). `merged` comes from the other
 * two. */
const struct gb_node *gb_merge_drop_options(struct gb_arena *arena, const struct gb_node *base,
                                            const struct gb_node *overlay,
                                            const struct gb_node *merged);

/* A map or list being put together, from nodes that also stand elsewhere. */
struct gb_merge_chain {
    struct gb_node *parent, *last;
};
/* The parent is a copy of `like` without children; false: out of memory. */
bool gb_merge_begin(struct gb_arena *arena, const struct gb_node *like,
                    struct gb_merge_chain *chain);
/* Appends a copy of `child`, which shares its children; false: out of memory. */
bool gb_merge_append(struct gb_arena *arena, struct gb_merge_chain *chain,
                     const struct gb_node *child);

/* Present, and not null. */
bool gb_node_given(const struct gb_node *node);
/* The text below `id`, NULL without one. */
const char *gb_node_id(const struct gb_node *entry);

#endif
