#ifndef GB_BLUEPRINT_ARENA_H
#define GB_BLUEPRINT_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* Memory of one document: many small pieces, released together.
 * Owns:   all pieces; gb_arena_free overwrites them first, since a document holds secrets.
 * Thread: one at a time.
 * Errors: NULL when out of memory or past the size limit, which is sticky (gb_arena_failed), so
 *         that callers may check once. */
struct gb_arena;

struct gb_arena *gb_arena_new(size_t size_max);
void gb_arena_free(struct gb_arena *a); /* NULL ok */
/* Zeroed, aligned for every type. */
void *gb_arena_alloc(struct gb_arena *a, size_t size);
void *gb_arena_array(struct gb_arena *a, size_t count, size_t size);
/* A terminated copy. */
char *gb_arena_text(struct gb_arena *a, struct gb_bytes text);
bool gb_arena_failed(const struct gb_arena *a);
/* It failed at the size limit, not for want of memory. */
bool gb_arena_full(const struct gb_arena *a);

#endif
