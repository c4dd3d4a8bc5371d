#ifndef GB_BASE_MAP_H
#define GB_BASE_MAP_H

#include "base/bytes.h"
#include "base/err.h"

/* Hash map from byte-string keys to pointers; zeroed memory is an empty map. The iteration order is
 * the insertion order, so that nothing depends on addresses.
 * Owns:   its key copies, which are terminated; values are borrowed.
 * Thread: one at a time.
 * Errors: gb_map_put: GB_UNAVAILABLE (out of memory), map unchanged. */
struct gb_map_entry {
    struct gb_bytes key; /* NULL data: deleted */
    void *value;
    uint64_t hash;
};
struct gb_map {
    struct gb_map_entry *entries; /* private, insertion order */
    uint32_t *slots;              /* private */
    size_t count;                 /* live entries */
    size_t used;                  /* private: entries incl. deleted */
    size_t capacity;              /* private */
};

void gb_map_deinit(struct gb_map *m);
struct gb_err gb_map_put(struct gb_map *m, struct gb_bytes key, void *value); /* replaces */
void *gb_map_get(const struct gb_map *m, struct gb_bytes key);                /* NULL: absent */
bool gb_map_has(const struct gb_map *m, struct gb_bytes key);
void *gb_map_remove(struct gb_map *m, struct gb_bytes key); /* the value, NULL: absent */
/* Iteration: `*cursor` starts at 0; false at the end. Meanwhile the current entry may be removed,
 * but no new one put. */
bool gb_map_next(const struct gb_map *m, size_t *cursor, struct gb_bytes *key, void **value);

#endif
