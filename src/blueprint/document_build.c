#include "blueprint/document_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "blueprint/schema.h"

enum { SHOWN_MAX = 60, FEW_KEYS = 16 };

bool gb_build_in_secret(const struct gb_build *b)
{
    if (b->key != NULL && gb_schema_is_secret(b->key)) return true;
    for (size_t i = 0; i < b->depth; i++) {
        if (b->open[i]->key != NULL && gb_schema_is_secret(b->open[i]->key)) return true;
    }
    return false;
}

bool gb_build_fail(struct gb_build *b, enum gb_rule rule, uint32_t line, uint32_t column,
                   const char *format, ...)
{
    if (gb_findings_skip(b->findings, GB_FINDING_ERROR)) return false;
    struct gb_finding_at at = {.layer = b->layer, .line = line, .column = column, .rule = rule};
    if (rule != GB_RULE_D3 && gb_build_in_secret(b)) {
        gb_findings_add(b->findings, GB_FINDING_ERROR, at, "%s; write one text in quotes here",
                        gb_rule_asks(rule));
        return false;
    }
    va_list args;
    va_start(args, format);
    gb_findings_add_v(b->findings, GB_FINDING_ERROR, at, format, args);
    va_end(args);
    return false;
}

/* The longest prefix that is UTF-8, by halving: the check is linear, so this is too, nearly. */
static size_t valid_prefix(struct gb_bytes text)
{
    size_t start = 0;
    size_t line_start = 0;
    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != '\n') continue;
        if (!gb_utf8_valid(gb_bytes(text.data + line_start, i - line_start))) {
            start = line_start;
            break;
        }
        line_start = i + 1;
    }
    size_t good = start; /* text up to here is valid, up to `bad` it is not */
    size_t bad = text.size;
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        size_t end = middle;
        /* Cut before a sequence, not inside it. */
        while (end > good && (text.data[end] & 0xC0) == 0x80) end--;
        if (end == good) break;
        if (gb_utf8_valid(gb_bytes(text.data + good, end - good))) {
            good = end;
        } else {
            bad = end;
        }
    }
    return good;
}

bool gb_build_check_text(struct gb_build *b, struct gb_bytes *bytes)
{
    if (bytes->size > GB_DOCUMENT_SIZE_MAX) {
        return gb_build_fail(b, GB_RULE_D1, 0, 0,
                             "the document has %zu bytes, and at most %d (4 MiB) are accepted; "
                             "shorten it",
                             bytes->size, GB_DOCUMENT_SIZE_MAX);
    }
    if (bytes->size >= 3 && memcmp(bytes->data, "\xEF\xBB\xBF", 3) == 0) {
        *bytes = gb_bytes(bytes->data + 3, bytes->size - 3);
    }
    if (gb_utf8_valid(*bytes)) return true;
    size_t good = valid_prefix(*bytes);
    uint32_t line = 1;
    uint32_t column = 1;
    for (size_t i = 0; i < good; i++) {
        column++;
        if (bytes->data[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return gb_build_fail(b, GB_RULE_D2, line, column,
                         "byte 0x%02X is not UTF-8 here; save the document in that encoding",
                         (unsigned)bytes->data[good]);
}

/* What the arena refused: past its limit the document is to blame, else the machine. */
static bool no_room(struct gb_build *b, uint32_t line, uint32_t column)
{
    if (!gb_arena_full(b->arena)) return false;
    return gb_build_fail(b, GB_RULE_D4, line, column, GB_DOCUMENT_TOO_LARGE);
}

bool gb_build_wants_key(const struct gb_build *b)
{
    return b->depth > 0 && b->open[b->depth - 1]->kind == GB_NODE_MAP && b->key == NULL;
}

bool gb_build_key(struct gb_build *b, struct gb_bytes text, uint32_t line, uint32_t column)
{
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL) {
        return gb_build_fail(b, GB_RULE_D7, line, column,
                             "a key holds a NUL character, which no key may; remove it");
    }
    b->key = gb_arena_text(b->arena, text);
    b->key_line = line;
    b->key_column = column;
    return b->key != NULL || no_room(b, line, column);
}

void gb_build_key_again(struct gb_build *b, const struct gb_node *from)
{
    b->key = from->key;
    b->key_line = from->key_line;
    b->key_column = from->key_column;
}

static struct gb_node *add(struct gb_build *b, enum gb_node_kind kind, uint32_t line,
                           uint32_t column)
{
    if (b->nodes == GB_DOCUMENT_NODES_MAX) {
        (void)gb_build_fail(b, GB_RULE_D4, line, column,
                            "the document has more than %d values; shorten it",
                            GB_DOCUMENT_NODES_MAX);
        return NULL;
    }
    b->nodes++;
    struct gb_node *n = gb_arena_alloc(b->arena, sizeof *n);
    if (n == NULL) {
        (void)no_room(b, line, column);
        return NULL;
    }
    n->kind = kind;
    n->line = line;
    n->column = column;
    n->layer = b->layer;
    if (b->depth == 0) {
        GB_ASSERT(b->root == NULL);
        b->root = n;
        return n;
    }
    struct gb_node *parent = b->open[b->depth - 1];
    GB_ASSERT((parent->kind == GB_NODE_MAP) == (b->key != NULL));
    n->key = b->key;
    n->key_line = b->key_line;
    n->key_column = b->key_column;
    b->key = NULL;
    if (parent->first == NULL) {
        parent->first = n;
    } else {
        b->last[b->depth - 1]->next = n;
    }
    b->last[b->depth - 1] = n;
    parent->count++;
    return n;
}

struct gb_node *gb_build_scalar(struct gb_build *b, enum gb_node_kind kind, struct gb_bytes text,
                                uint32_t line, uint32_t column)
{
    if (text.size > 0 && memchr(text.data, '\0', text.size) != NULL) {
        (void)gb_build_fail(b, GB_RULE_D7, line, column,
                            "a text holds a NUL character, which no text may; remove it");
        return NULL;
    }
    struct gb_node *n = add(b, kind, line, column);
    if (n == NULL) return NULL;
    n->text = text.size == 0 ? "" : gb_arena_text(b->arena, text);
    n->size = text.size;
    if (n->text != NULL) return n;
    (void)no_room(b, line, column);
    return NULL;
}

struct gb_node *gb_build_scalar_again(struct gb_build *b, const struct gb_node *from)
{
    struct gb_node *n = add(b, from->kind, from->line, from->column);
    if (n == NULL) return NULL;
    n->text = from->text;
    n->size = from->size;
    return n;
}

struct gb_node *gb_build_begin(struct gb_build *b, enum gb_node_kind kind, uint32_t line,
                               uint32_t column)
{
    if (b->depth == GB_DOCUMENT_DEPTH_MAX) {
        (void)gb_build_fail(b, GB_RULE_D4, line, column,
                            "the document is nested deeper than %d levels here; flatten it",
                            GB_DOCUMENT_DEPTH_MAX);
        return NULL;
    }
    struct gb_node *n = add(b, kind, line, column);
    if (n == NULL) return NULL;
    n->text = "";
    b->open[b->depth] = n;
    b->last[b->depth] = NULL;
    b->depth++;
    return n;
}

static int compare_keys(const void *left, const void *right)
{
    const struct gb_node *a = *(const struct gb_node *const *)left;
    const struct gb_node *b = *(const struct gb_node *const *)right;
    int order = strcmp(a->key, b->key);
    if (order != 0) return order;
    if (a->key_line != b->key_line) return a->key_line < b->key_line ? -1 : 1;
    return a->key_column < b->key_column ? -1 : a->key_column > b->key_column;
}

/* Key line 0 marks the second one as to be left out: no rule is to speak about it. */
static void report_duplicate(struct gb_build *b, const struct gb_node *first,
                             struct gb_node *second)
{
    (void)gb_build_fail(b, GB_RULE_D5, second->key_line, second->key_column,
                        "duplicate key \"%.*s\"; it was already written at line %u and a map takes "
                        "it once, remove one of the two",
                        SHOWN_MAX, second->key, first->key_line);
    second->key_line = 0;
}

static void drop_duplicates(struct gb_node *map)
{
    for (struct gb_node **at = &map->first; *at != NULL;) {
        if ((*at)->key_line == 0) {
            *at = (*at)->next;
            map->count--;
        } else {
            at = &(*at)->next;
        }
    }
}

/* Sorting, not hashing: a document may be hostile (spec 01 §2). */
static bool check_duplicates(struct gb_build *b, struct gb_node *map)
{
    if (map->count < 2) return true;
    if (map->count <= FEW_KEYS) {
        for (struct gb_node *n = map->first; n != NULL; n = n->next) {
            const struct gb_node *earlier = map->first;
            while (strcmp(earlier->key, n->key) != 0) earlier = earlier->next;
            if (earlier != n) report_duplicate(b, earlier, n);
        }
        drop_duplicates(map);
        return true;
    }
    struct gb_node **sorted = malloc(map->count * sizeof *sorted);
    if (sorted == NULL) {
        b->findings->failed = true;
        return false;
    }
    size_t count = 0;
    for (struct gb_node *n = map->first; n != NULL; n = n->next) sorted[count++] = n;
    qsort(sorted, count, sizeof *sorted, compare_keys);
    size_t first = 0;
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[first]->key, sorted[i]->key) != 0) {
            first = i;
        } else {
            report_duplicate(b, sorted[first], sorted[i]);
        }
    }
    free(sorted);
    drop_duplicates(map);
    return true;
}

struct gb_node *gb_build_end(struct gb_build *b)
{
    GB_ASSERT(b->depth > 0);
    struct gb_node *n = b->open[b->depth - 1];
    if (n->kind == GB_NODE_MAP && !check_duplicates(b, n)) return NULL;
    b->depth--;
    return n;
}
