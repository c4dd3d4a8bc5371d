#include "blueprint/override.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "blueprint/decode.h"
#include "blueprint/merge.h"

enum { SHOWN_MAX = 60, KNOWN_MAX = 8 };

struct step {
    struct gb_bytes name;
    bool bracket; /* an entry of a list, or a key that holds dots */
};

struct walk {
    struct gb_arena *arena;
    struct gb_findings *findings;
    uint32_t layer;
    const char *path, *rest; /* the whole of it, what is still to go */
    size_t steps;
};

__attribute__((format(printf, 3, 4))) static void *fail(struct walk *w, enum gb_rule rule,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct gb_err err = gb_err_v(GB_INVALID_CONFIG, format, args);
    va_end(args);
    gb_findings_add(w->findings, GB_FINDING_ERROR,
                    (struct gb_finding_at){.layer = w->layer, .rule = rule}, "%s", err.message);
    return NULL;
}

/* Up to the bracket that ends the step: an id may hold others. */
static size_t bracket_size(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0') {
        bool ends = text[size + 1] == '\0' || text[size + 1] == '.' || text[size + 1] == '[';
        if (text[size] == ']' && ends) return size;
        size++;
    }
    return 0;
}

static bool next_step(struct walk *w, struct step *s)
{
    const char *at = w->rest;
    s->bracket = *at == '[' && w->steps > 0;
    if (s->bracket) {
        size_t size = bracket_size(at + 1);
        s->name = gb_bytes(at + 1, size);
        w->rest = size == 0 ? at : at + size + 2;
    } else {
        if (*at == '.' && w->steps > 0) at++;
        s->name = gb_bytes(at, strcspn(at, ".["));
        w->rest = at + s->name.size;
    }
    w->steps++;
    if (s->name.size > 0) return true;
    (void)fail(w, GB_RULE_D3,
               "PATH is not well-formed after its first %zu characters; write it as in "
               "routes[ID].policy.max_in_flight",
               (size_t)(at - w->path));
    return false;
}

/* The size of what was walked before the step, for messages. The first step never fails: it starts
 * at a map. */
static int walked(const struct walk *w, const struct step *s)
{
    const char *name = (const char *)s->name.data;
    GB_ASSERT(name > w->path);
    return (int)(name - w->path) - 1;
}

static void *fail_unknown(struct walk *w, const struct step *s, const struct gb_node *list)
{
    char *wanted = gb_arena_text(w->arena, s->name);
    if (wanted == NULL) return NULL;
    struct gb_suggestion near = {0};
    struct gb_str known = {0};
    size_t count = 0;
    for (const struct gb_node *n = list->first; n != NULL; n = n->next) {
        const char *id = gb_node_id(n);
        if (id == NULL) continue;
        gb_suggest(&near, wanted, id);
        if (count++ < KNOWN_MAX)
            gb_str_appendf(&known, "%s%.*s", count == 1 ? "" : ", ", SHOWN_MAX / 2, id);
    }
    if (count > KNOWN_MAX) gb_str_appendf(&known, ", and %zu more", count - KNOWN_MAX);
    if (known.failed) {
        w->findings->failed = true;
    } else if (count > 0) {
        (void)fail(w, GB_RULE_V5, "%.*s has no entry \"%.*s\"%s%s%s; known: %s", walked(w, s),
                   w->path, SHOWN_MAX, wanted, near.best == NULL ? "" : "; did you mean \"",
                   near.best == NULL ? "" : near.best, near.best == NULL ? "" : "\"?", known.data);
    } else {
        (void)fail(w, GB_RULE_V5,
                   "%.*s has no entry \"%.*s\"; it has %zu entries, which count from 0; correct "
                   "the number",
                   walked(w, s), w->path, SHOWN_MAX, wanted, list->count);
    }
    gb_str_deinit(&known);
    return NULL;
}

/* By id, or by index in a list of which no entry has one. */
static const struct gb_node *find_entry(const struct gb_node *list, struct gb_bytes name)
{
    bool ids = false;
    for (const struct gb_node *n = list->first; n != NULL; n = n->next) {
        const char *id = gb_node_id(n);
        if (id != NULL && gb_bytes_equal_c(name, id)) return n;
        ids = ids || id != NULL;
    }
    size_t index = 0;
    for (const struct gb_node *n = ids ? NULL : list->first; n != NULL; n = n->next) {
        char text[24];
        (void)snprintf(text, sizeof text, "%zu", index++);
        if (gb_bytes_equal_c(name, text)) return n;
    }
    return NULL;
}

static const struct gb_node *find_key(const struct gb_node *map, struct gb_bytes name)
{
    for (const struct gb_node *n = map->first; n != NULL; n = n->next) {
        if (gb_bytes_equal_c(name, n->key)) return n;
    }
    return NULL;
}

/* Puts a copy of `like` in the place of `old`, or at the end: only what stands before it is copied.
 * `parent` is a copy itself. */
static struct gb_node *replace(struct walk *w, struct gb_node *parent, const struct gb_node *old,
                               const struct gb_node *like)
{
    struct gb_merge_chain chain = {.parent = parent};
    const struct gb_node *from = parent->first;
    size_t count = parent->count;
    parent->first = NULL;
    for (const struct gb_node *n = from; n != old; n = n->next) {
        if (!gb_merge_append(w->arena, &chain, n)) return NULL;
    }
    if (!gb_merge_append(w->arena, &chain, like)) return NULL;
    struct gb_node *fresh = chain.last;
    if (old != NULL) fresh->next = old->next;
    parent->count = old != NULL ? count : count + 1;
    return fresh;
}

/* The child that a step leads to, as a copy of its own; made when a map lacks it. */
static struct gb_node *enter(struct walk *w, struct gb_node *parent, const struct step *s)
{
    if (parent->kind == GB_NODE_NULL) {
        parent->kind = GB_NODE_MAP;
        parent->text = "";
    }
    if (parent->kind == GB_NODE_LIST) {
        const struct gb_node *entry = s->bracket ? find_entry(parent, s->name) : NULL;
        return entry == NULL ? fail_unknown(w, s, parent) : replace(w, parent, entry, entry);
    }
    if (parent->kind != GB_NODE_MAP) {
        return fail(w, GB_RULE_K3, "%.*s is %s and has no keys; end PATH here, or correct it",
                    walked(w, s), w->path, gb_node_kind_name(parent));
    }
    const struct gb_node *old = find_key(parent, s->name);
    if (old != NULL) return replace(w, parent, old, old);
    struct gb_node made = {.kind = GB_NODE_NULL, .layer = w->layer, .text = ""};
    made.key = gb_arena_text(w->arena, s->name);
    return made.key == NULL ? NULL : replace(w, parent, NULL, &made);
}

/* The value's positions would be taken for the document's. Answers its depth, which the reader
 * bounds and so this recursion. */
static size_t forget_places(struct gb_node *node)
{
    size_t depth = 0;
    node->line = node->column = node->key_line = node->key_column = 0;
    for (struct gb_node *n = node->first; n != NULL; n = n->next) {
        size_t below = forget_places(n);
        if (below > depth) depth = below;
    }
    return depth + 1;
}

/* What is wrong with the YAML is said without a word of it: it may be a secret. */
static struct gb_node *read_value(struct walk *w, struct gb_bytes value)
{
    struct gb_findings own = {0};
    const struct gb_node *node = NULL;
    bool ok = gb_document_yaml(value, w->layer, w->arena, &own, &node) && own.error_count == 0;
    if (own.failed) {
        w->findings->failed = true;
    } else if (own.error_count > 0) {
        (void)fail(
            w, own.items[0].rule,
            "VALUE is not accepted at line %u, column %u: %s; it is read as YAML, and a text "
            "with special characters takes quotes",
            own.items[0].line, own.items[0].column, gb_rule_asks(own.items[0].rule));
    }
    gb_findings_deinit(&own);
    return ok ? (struct gb_node *)(uintptr_t)node : NULL;
}

const struct gb_node *gb_override_apply(struct gb_arena *arena, struct gb_findings *findings,
                                        const struct gb_node *root, uint32_t layer,
                                        const struct gb_blueprint_override *override)
{
    struct walk w = {.arena = arena,
                     .findings = findings,
                     .layer = layer,
                     .path = override->path,
                     .rest = override->path};
    struct gb_node *value = read_value(&w, override->value);
    struct gb_node *top = gb_arena_alloc(arena, sizeof *top);
    if (value == NULL || top == NULL) return NULL;
    size_t depth = forget_places(value);
    *top = *root;
    struct gb_node *at = top;
    do {
        struct step s;
        if (depth + w.steps >= GB_DOCUMENT_DEPTH_MAX) {
            return fail(&w, GB_RULE_D4,
                        "PATH and VALUE are nested deeper than %d levels; shorten PATH, or "
                        "flatten VALUE",
                        GB_DOCUMENT_DEPTH_MAX);
        }
        if (!next_step(&w, &s)) return NULL;
        at = enter(&w, at, &s);
    } while (at != NULL && *w.rest != '\0');
    if (at == NULL) return NULL;
    value->key = at->key;
    value->next = at->next;
    *at = *value;
    return top;
}
