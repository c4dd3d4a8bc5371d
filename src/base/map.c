#include "base/map.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/str.h"

/* Open addressing with linear probing: `slots` (twice as many as entries, a power of two) hold an
 * entry's index + 1, 0 = never used. A removed entry keeps its slot until the next rebuild, so that
 * probing goes on over it. */
enum { CAPACITY_MIN = 8 };
#define CAPACITY_MAX ((size_t)1 << 30) /* an index + 1 fits a slot */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return x ^ x >> 32;
}

static uint64_t hash_of(struct gb_bytes key)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15) ^ key.size;
    size_t i = 0;
    for (; key.size - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, key.data + i, sizeof word);
        hash = mix(hash ^ word) + word;
    }
    uint64_t rest = 0;
    for (; i < key.size; i++) rest = rest << 8 | key.data[i];
    return mix(hash ^ rest);
}

static size_t slot_mask(const struct gb_map *m)
{
    return m->capacity * 2 - 1;
}

static struct gb_map_entry *find(const struct gb_map *m, struct gb_bytes key, uint64_t hash)
{
    if (m->capacity == 0) return NULL;
    size_t mask = slot_mask(m);
    for (size_t i = (size_t)hash & mask; m->slots[i] != 0; i = (i + 1) & mask) {
        struct gb_map_entry *entry = &m->entries[m->slots[i] - 1];
        if (entry->hash == hash && entry->key.data != NULL && gb_bytes_equal(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

static void index_entry(struct gb_map *m, size_t entry)
{
    size_t mask = slot_mask(m);
    size_t i = (size_t)m->entries[entry].hash & mask;
    while (m->slots[i] != 0) i = (i + 1) & mask;
    m->slots[i] = (uint32_t)(entry + 1);
}

/* Drops the removed entries and builds the slots, which are all 0, anew. */
static void compact(struct gb_map *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->used; i++) {
        if (m->entries[i].key.data == NULL) continue;
        m->entries[kept] = m->entries[i];
        index_entry(m, kept++);
    }
    m->used = kept;
}

/* Makes room for one more entry: at the same size when half are removed ones, else at twice the
 * size. */
static bool make_room(struct gb_map *m)
{
    if (m->used < m->capacity) return true;
    if (m->capacity > 0 && m->count <= m->capacity / 2) {
        memset(m->slots, 0, m->capacity * 2 * sizeof *m->slots);
        compact(m);
        return true;
    }
    size_t capacity = m->capacity == 0 ? CAPACITY_MIN : m->capacity * 2;
    if (capacity > CAPACITY_MAX) return false;
    uint32_t *slots = calloc(capacity * 2, sizeof *slots);
    if (slots == NULL) return false;
    struct gb_map_entry *entries = realloc(m->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        free(slots);
        return false;
    }
    free(m->slots);
    m->slots = slots;
    m->entries = entries;
    m->capacity = capacity;
    compact(m);
    return true;
}

void gb_map_deinit(struct gb_map *m)
{
    for (size_t i = 0; i < m->used; i++) free((void *)(uintptr_t)m->entries[i].key.data);
    free(m->entries);
    free(m->slots);
    *m = (struct gb_map){0};
}

struct gb_err gb_map_put(struct gb_map *m, struct gb_bytes key, void *value)
{
    uint64_t hash = hash_of(key);
    struct gb_map_entry *entry = find(m, key, hash);
    if (entry != NULL) {
        entry->value = value;
        return gb_ok();
    }
    char *copy = gb_bytes_dup(key); /* not NULL for an empty key either */
    if (copy == NULL || !make_room(m)) {
        free(copy);
        return gb_err_no_memory("a map entry");
    }
    GB_ASSERT(m->used < m->capacity);
    m->entries[m->used] = (struct gb_map_entry){gb_bytes(copy, key.size), value, hash};
    index_entry(m, m->used++);
    m->count++;
    return gb_ok();
}

void *gb_map_get(const struct gb_map *m, struct gb_bytes key)
{
    const struct gb_map_entry *entry = find(m, key, hash_of(key));
    return entry == NULL ? NULL : entry->value;
}

bool gb_map_has(const struct gb_map *m, struct gb_bytes key)
{
    return find(m, key, hash_of(key)) != NULL;
}

void *gb_map_remove(struct gb_map *m, struct gb_bytes key)
{
    struct gb_map_entry *entry = find(m, key, hash_of(key));
    if (entry == NULL) return NULL;
    void *value = entry->value;
    free((void *)(uintptr_t)entry->key.data);
    entry->key = gb_bytes(NULL, 0);
    entry->value = NULL;
    m->count--;
    return value;
}

bool gb_map_next(const struct gb_map *m, size_t *cursor, struct gb_bytes *key, void **value)
{
    while (*cursor < m->used) {
        const struct gb_map_entry *entry = &m->entries[(*cursor)++];
        if (entry->key.data == NULL) continue;
        *key = entry->key;
        *value = entry->value;
        return true;
    }
    return false;
}
