#ifndef GB_BLUEPRINT_TREE_ROWS_H
#define GB_BLUEPRINT_TREE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "blueprint/arena.h"
#include "blueprint/document.h"

/* For the tests of what works on trees: YAML in, one line of flow style out.
 * Owns:   nothing.
 * Thread: one at a time.
 * Errors: a failed test. */

static inline const struct gb_node *tree_of(struct gb_arena *arena, const char *text,
                                            uint32_t layer)
{
    struct gb_findings findings = {0};
    const struct gb_node *root = NULL;
    if (!gb_document_yaml(gb_bytes_c(text), layer, arena, &findings, &root))
        fail_msg("no document: %s", text);
    gb_findings_deinit(&findings);
    return root;
}

/* {a: 1, b: [x, "y"]}; quotes only where they matter. */
static inline void print_tree(const struct gb_node *n, struct gb_str *out)
{
    bool map = n->kind == GB_NODE_MAP;
    if (!map && n->kind != GB_NODE_LIST) {
        gb_str_append_c(out, n->kind == GB_NODE_NULL ? "~" : n->size == 0 ? "\"\"" : n->text);
        return;
    }
    size_t count = 0;
    gb_str_append_c(out, map ? "{" : "[");
    for (const struct gb_node *c = n->first; c != NULL; c = c->next) {
        if (count++ > 0) gb_str_append_c(out, ", ");
        if (map) gb_str_appendf(out, "%s: ", c->key);
        print_tree(c, out);
    }
    gb_str_append_c(out, map ? "}" : "]");
    assert_int_equal(count, n->count);
}

/* To be freed. */
static inline char *tree_text(const struct gb_node *n)
{
    struct gb_str s = {0};
    print_tree(n, &s);
    char *text = gb_str_take(&s);
    assert_non_null(text);
    return text;
}

#endif
