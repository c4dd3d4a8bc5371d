#ifndef GB_BLUEPRINT_OVERRIDE_H
#define GB_BLUEPRINT_OVERRIDE_H

#include "blueprint/blueprint.h"
#include "blueprint/document.h"

/* `-set PATH=VALUE` on a tree (decision 0140). PATH is what findings print: keys joined by dots,
 * entries of a list by id in brackets (`routes[ingest].policy`), by index where they have none.
 * VALUE is YAML and replaces what stands there; maps on the way are made when missing, entries
 * never. Whether the keys mean anything is for the decoder to say.
 * Owns:   new nodes live in the arena and carry no line; unchanged ones are shared with `root`,
 *         which stays as it is.
 * Thread: one at a time.
 * Errors: NULL after a finding, or when out of memory. Findings never hold the value. */
const struct gb_node *gb_override_apply(struct gb_arena *arena, struct gb_findings *findings,
                                        const struct gb_node *root, uint32_t layer,
                                        const struct gb_blueprint_override *override);

#endif
