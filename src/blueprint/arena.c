#include "blueprint/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/digest.h"

enum { CHUNK_SIZE = 64 * 1024, ALIGNMENT = alignof(max_align_t) };

struct chunk {
    struct chunk *next;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct gb_arena {
    struct chunk *chunks; /* the first one is being filled */
    size_t size, size_max;
    bool failed, full;
};

struct gb_arena *gb_arena_new(size_t size_max)
{
    struct gb_arena *a = calloc(1, sizeof *a);
    if (a != NULL) a->size_max = size_max;
    return a;
}

void gb_arena_free(struct gb_arena *a)
{
    if (a == NULL) return;
    while (a->chunks != NULL) {
        struct chunk *c = a->chunks;
        a->chunks = c->next;
        gb_wipe(c->bytes, c->used);
        free(c);
    }
    free(a);
}

static struct chunk *add_chunk(struct gb_arena *a, size_t size)
{
    size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
    if (room > a->size_max - a->size) {
        a->full = true;
        return NULL;
    }
    struct chunk *c = calloc(1, sizeof *c + room);
    if (c == NULL) return NULL;
    c->size = room;
    a->size += room;
    if (a->chunks != NULL && size > CHUNK_SIZE / 2) {
        /* A large piece gets a chunk behind the one being filled, whose rest stays usable. */
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *gb_arena_alloc(struct gb_arena *a, size_t size)
{
    if (a->failed) return NULL;
    if (size > a->size_max) {
        a->failed = true;
        a->full = true;
        return NULL;
    }
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct chunk *c = a->chunks;
    if (c == NULL || rounded > c->size - c->used) c = add_chunk(a, rounded);
    if (c == NULL) {
        a->failed = true;
        return NULL;
    }
    void *piece = c->bytes + c->used;
    c->used += rounded;
    return piece;
}

void *gb_arena_array(struct gb_arena *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        a->failed = true;
        return NULL;
    }
    return gb_arena_alloc(a, count * size);
}

char *gb_arena_text(struct gb_arena *a, struct gb_bytes text)
{
    if (text.size == SIZE_MAX) {
        a->failed = true;
        return NULL;
    }
    char *copy = gb_arena_alloc(a, text.size + 1);
    if (copy != NULL && text.size > 0) memcpy(copy, text.data, text.size);
    return copy;
}

bool gb_arena_failed(const struct gb_arena *a)
{
    return a->failed;
}

bool gb_arena_full(const struct gb_arena *a)
{
    return a->full;
}
