#ifndef GB_BLUEPRINT_DOCUMENT_BUILD_H
#define GB_BLUEPRINT_DOCUMENT_BUILD_H

#include "blueprint/document.h"

/* Builds the tree from a reader's events; shared by the YAML and the JSON reader.
 * Owns:   nothing; nodes go into the arena.
 * Thread: one at a time.
 * Errors: each step answers false when the reader must stop; the finding is then added. */

struct gb_build {
    struct gb_arena *arena;
    struct gb_findings *findings;
    uint32_t layer; /* of all nodes and findings */
    struct gb_node *root;
    struct gb_node *open[GB_DOCUMENT_DEPTH_MAX]; /* containers */
    struct gb_node *last[GB_DOCUMENT_DEPTH_MAX]; /* their last child */
    size_t depth;
    size_t nodes;
    /* The key that waits for its value. */
    const char *key;
    uint32_t key_line, key_column;
};

/* Size and encoding, for both formats; skips a byte order mark. */
bool gb_build_check_text(struct gb_build *b, struct gb_bytes *bytes);
/* The value of a secret key is being read: messages must not quote it (spec 01 §8.2). */
bool gb_build_in_secret(const struct gb_build *b);
/* Below a secret key the rule stands for the text, but for D3, whose texts quote nothing. */
__attribute__((format(printf, 5, 6))) bool gb_build_fail(struct gb_build *b, enum gb_rule rule,
                                                         uint32_t line, uint32_t column,
                                                         const char *format, ...);
/* In a map, and no key is waiting. */
bool gb_build_wants_key(const struct gb_build *b);
bool gb_build_key(struct gb_build *b, struct gb_bytes text, uint32_t line, uint32_t column);
/* The new node, or NULL to stop. */
struct gb_node *gb_build_scalar(struct gb_build *b, enum gb_node_kind kind, struct gb_bytes text,
                                uint32_t line, uint32_t column);
/* A key or scalar of the same arena once more; its text is shared. */
void gb_build_key_again(struct gb_build *b, const struct gb_node *from);
struct gb_node *gb_build_scalar_again(struct gb_build *b, const struct gb_node *from);
struct gb_node *gb_build_begin(struct gb_build *b, enum gb_node_kind kind, uint32_t line,
                               uint32_t column);
/* The finished container, or NULL to stop. */
struct gb_node *gb_build_end(struct gb_build *b);

#endif
