#ifndef GB_BLUEPRINT_DOCUMENT_H
#define GB_BLUEPRINT_DOCUMENT_H

#include "blueprint/arena.h"
#include "blueprint/findings.h"

/* A document as a tree with positions, before any meaning (spec 01 §2). Limits: 4 MiB of text, 100
 * levels, 400000 nodes, 100000 nodes expanded from aliases, 10000 anchors, 100 directives.
 * Duplicate keys, a second document, tags, keys that are no text and texts with NUL bytes are
 * refused.
 * Owns:   nodes and texts live in the arena.
 * Thread: one at a time while it is built; constant afterwards.
 * Errors: a malformed document adds findings; false when there is no tree to go on with, also when
 *         out of memory (gb_arena_failed or findings.failed tells). */

enum {
    GB_DOCUMENT_SIZE_MAX = 4194304,
    GB_DOCUMENT_DEPTH_MAX = 100,
    GB_DOCUMENT_NODES_MAX = 400000,
    GB_DOCUMENT_EXPANDED_MAX = 100000,
    GB_DOCUMENT_ANCHORS_MAX = 10000,
    GB_DOCUMENT_DIRECTIVES_MAX = 100,
};

/* A finding on a document that does not fit into its arena. */
#define GB_DOCUMENT_TOO_LARGE                                                                      \
    "the document needs more memory than is allowed from here on; shorten its lists, or divide "   \
    "it "                                                                                          \
    "over several bridges"

enum gb_node_kind {
    GB_NODE_NULL = 0, /* null, ~ or nothing at all */
    GB_NODE_PLAIN,    /* YAML text without quotes: the target field decides what it is */
    GB_NODE_STRING,   /* quoted, or a JSON string */
    GB_NODE_NUMBER,   /* JSON */
    GB_NODE_BOOL,     /* JSON */
    GB_NODE_LIST,
    GB_NODE_MAP,
};

struct gb_node {
    enum gb_node_kind kind;
    uint32_t line, column; /* 1-based */
    uint32_t key_line, key_column;
    uint32_t layer;        /* document that it was written in, 0: the base (spec 01 §8.1) */
    const char *key;       /* in a map; terminated */
    const char *text;      /* of a scalar; terminated, without inner NUL */
    size_t size;           /* of the text */
    size_t count;          /* children */
    struct gb_node *first; /* children in document order */
    struct gb_node *next;
};

/* `layer` marks the nodes and findings. */
bool gb_document_yaml(struct gb_bytes bytes, uint32_t layer, struct gb_arena *arena,
                      struct gb_findings *findings, const struct gb_node **root);
bool gb_document_json(struct gb_bytes bytes, uint32_t layer, struct gb_arena *arena,
                      struct gb_findings *findings, const struct gb_node **root);

/* NULL when the map has no such key, or the node is NULL or no map. */
const struct gb_node *gb_node_get(const struct gb_node *map, const char *key);
/* Follows `a.b[2].c` as far as it exists; the last node found. */
const struct gb_node *gb_node_locate(const struct gb_node *from, const char *path);
/* Layer, line and column where an editor should jump to: a block's key, a scalar itself. NULL is
 * the base as a whole. */
void gb_node_position(const struct gb_node *node, struct gb_finding_at *at);
/* "a list", "a number" ... for messages. */
const char *gb_node_kind_name(const struct gb_node *node);
/* Plain text that every YAML reader takes for a number. */
bool gb_node_looks_like_number(const char *text);

#endif
