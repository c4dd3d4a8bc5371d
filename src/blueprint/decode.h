#ifndef GB_BLUEPRINT_DECODE_H
#define GB_BLUEPRINT_DECODE_H

#include "blueprint/document.h"
#include "blueprint/schema.h"

/* Tree to model by the tables of schema.h (spec 01 §2): strict keys, strict types, bounds, words,
 * defaults; then kinds are inherited, options decoded by kind, ids linked.
 * Owns:   everything decoded lives in the arena.
 * Thread: one at a time.
 * Errors: every mistake becomes a finding and decoding goes on with the field's default; out of
 *         memory is gb_arena_failed. */

enum { GB_DECODE_LIST_MAX = 10000, GB_DECODE_KEY_MAX = 256 };

struct gb_decode {
    struct gb_arena *arena;
    struct gb_findings *findings;
    bool partial;                /* one layer of several: what it lacks may stand in another */
    bool admin_key_given;        /* by the environment: `http.admin_api_key` may be absent */
    const char *path, *id;       /* of the entry being decoded; NULL for single blocks */
    char key[GB_DECODE_KEY_MAX]; /* below the path */
    size_t key_size;
    bool full; /* the arena's limit was reported */
};

/* `b` is zeroed and has its arena. */
void gb_decode_document(struct gb_decode *d, const struct gb_node *root, struct gb_blueprint *b);
/* Kinds, options and links; the tree may hold mistakes. */
void gb_decode_kinds(struct gb_decode *d, struct gb_blueprint *b);

/* Fills the struct at `out` from a map, or with its defaults when `node` is NULL or null. */
void gb_decode_block(struct gb_decode *d, const struct gb_block *block, const struct gb_node *node,
                     void *out);
/* Required keys that `node` lacks are reported at `place`. gb_decode_block does it for written
 * blocks; an absent options block still has its kind's checks (spec 01 §2). */
void gb_decode_required(struct gb_decode *d, const struct gb_block *block,
                        const struct gb_node *node, const struct gb_node *place);
void gb_decode_enter(struct gb_decode *d, const char *section, size_t index, const char *id);
void gb_decode_leave(struct gb_decode *d);
/* Appends to the key and answers its former size, for gb_decode_pop. */
size_t gb_decode_push(struct gb_decode *d, const char *key);
void gb_decode_pop(struct gb_decode *d, size_t size);
__attribute__((format(printf, 4, 5))) void gb_decode_error(struct gb_decode *d, enum gb_rule rule,
                                                           const struct gb_node *at,
                                                           const char *format, ...);
/* False, with a finding, when a list or map of `count` entries is too long. */
bool gb_decode_check_count(struct gb_decode *d, const struct gb_node *node, size_t count);
/* A scalar or list field from its node (decode_value.c). */
void gb_decode_value(struct gb_decode *d, const struct gb_field *field, const struct gb_node *node,
                     unsigned char *out);
/* Did you mean: tries one known name after the other; `best` starts and stays NULL when none is
 * close (decode_suggest.c). */
struct gb_suggestion {
    const char *best;
    size_t distance; /* of it; private */
};
void gb_suggest(struct gb_suggestion *s, const char *wanted, const char *known);
/* The closest of the block's keys. */
const char *gb_decode_suggest(const struct gb_block *block, const char *key);

#endif
