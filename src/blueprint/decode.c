#include "blueprint/decode.h"

#include <stdio.h>

#include "base/assert.h"

enum { SHOWN_MAX = 60, PATH_MAX_SIZE = 128 };

void gb_decode_error(struct gb_decode *d, enum gb_rule rule, const struct gb_node *at,
                     const char *format, ...)
{
    if (gb_findings_skip(d->findings, GB_FINDING_ERROR)) return;
    struct gb_finding_at where = {.path = d->path, .id = d->id, .rule = rule};
    gb_node_position(at, &where);
    va_list args;
    va_start(args, format);
    gb_findings_add_v(d->findings, GB_FINDING_ERROR, where, format, args);
    va_end(args);
}

size_t gb_decode_push(struct gb_decode *d, const char *key)
{
    size_t before = d->key_size;
    size_t room = sizeof d->key - before;
    const char *dot = before > 0 && key[0] != '[' ? "." : "";
    /* A key that does not fit is cut: only map names of the document can be so long. */
    int size = snprintf(d->key + before, room, "%s%.*s", dot, SHOWN_MAX, key);
    GB_ASSERT(size >= 0);
    d->key_size = (size_t)size < room ? before + (size_t)size : sizeof d->key - 1;
    return before;
}

void gb_decode_pop(struct gb_decode *d, size_t size)
{
    GB_ASSERT(size <= d->key_size);
    d->key_size = size;
    d->key[size] = '\0';
}

void gb_decode_enter(struct gb_decode *d, const char *section, size_t index, const char *id)
{
    char path[PATH_MAX_SIZE];
    (void)snprintf(path, sizeof path, "%s[%zu]", section, index);
    d->path = gb_arena_text(d->arena, gb_bytes_c(path));
    d->id = id;
    gb_decode_pop(d, 0);
}

void gb_decode_leave(struct gb_decode *d)
{
    d->path = NULL;
    d->id = NULL;
    gb_decode_pop(d, 0);
}

static void put_default(const struct gb_field *f, unsigned char *at)
{
    switch (f->type) {
    case GB_FIELD_TEXT:
        *(const char **)(void *)at = f->text_def;
        break;
    case GB_FIELD_BOOL:
        ((struct gb_opt_bool *)(void *)at)->value = f->def != 0;
        break;
    case GB_FIELD_INT:
        ((struct gb_opt_int *)(void *)at)->value = f->def;
        break;
    case GB_FIELD_NUMBER:
        ((struct gb_opt_num *)(void *)at)->value = f->num_def;
        break;
    case GB_FIELD_DURATION:
        ((struct gb_opt_ns *)(void *)at)->ns = f->def;
        break;
    case GB_FIELD_WORD:
        ((struct gb_opt_word *)(void *)at)->value = (int)f->def;
        break;
    case GB_FIELD_TEXTS:
    case GB_FIELD_TEXT_MAP:
    case GB_FIELD_BLOCK: /* filled by gb_decode_block */
    case GB_FIELD_BLOCKS:
    case GB_FIELD_BLOCK_MAP:
    case GB_FIELD_RAW:
        break;
    }
}

/* An entry with nothing in it lacks what is required; a single block would be as if absent. */
static void decode_entry_block(struct gb_decode *d, const struct gb_block *block,
                               const struct gb_node *node, unsigned char *entry)
{
    gb_decode_block(d, block, node, entry);
    if (node->kind == GB_NODE_NULL) gb_decode_required(d, block, NULL, node);
}

/* Entries of a section are named by index and id, those below by the key. */
static void decode_entry(struct gb_decode *d, const struct gb_field *f, size_t index,
                         const struct gb_node *node, unsigned char *entry)
{
    if (f->type == GB_FIELD_BLOCK_MAP) {
        /* The name follows the node in such structs. */
        *(const char **)(void *)(entry + sizeof(const struct gb_node *)) = node->key;
        size_t before = gb_decode_push(d, node->key);
        decode_entry_block(d, f->block, node, entry);
        gb_decode_pop(d, before);
    } else if ((f->flags & GB_FIELD_SECTION) != 0) {
        const struct gb_node *id = gb_node_get(node, "id");
        bool named = id != NULL && (id->kind == GB_NODE_PLAIN || id->kind == GB_NODE_STRING);
        gb_decode_enter(d, f->key, index, named ? id->text : NULL);
        decode_entry_block(d, f->block, node, entry);
        gb_decode_leave(d);
    } else {
        char bracket[24];
        (void)snprintf(bracket, sizeof bracket, "[%zu]", index);
        size_t before = gb_decode_push(d, bracket);
        decode_entry_block(d, f->block, node, entry);
        gb_decode_pop(d, before);
    }
    /* An empty entry still stands in the list: rules on its missing keys need its place. */
    *(const struct gb_node **)(void *)entry = node;
}

bool gb_decode_check_count(struct gb_decode *d, const struct gb_node *node, size_t count)
{
    if (count <= GB_DECODE_LIST_MAX) return true;
    gb_decode_error(d, GB_RULE_K4, node,
                    "%s has %zu entries, and at most %d are accepted; remove some, or use several "
                    "bridges",
                    d->key, count, GB_DECODE_LIST_MAX);
    return false;
}

static void decode_blocks(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                          unsigned char *out)
{
    bool map = f->type == GB_FIELD_BLOCK_MAP;
    if (node->kind != (map ? GB_NODE_MAP : GB_NODE_LIST)) {
        gb_decode_error(d, GB_RULE_K3, node, "%s must be a %s, not %s; %s", d->key,
                        map ? "map" : "list", gb_node_kind_name(node),
                        map ? "write each entry under its name"
                            : "begin each entry with a dash, or write [] around them");
        return;
    }
    if (!gb_decode_check_count(d, node, node->count)) return;
    unsigned char *entries = gb_arena_array(d->arena, node->count, f->block->size);
    if (entries == NULL) return;
    size_t index = 0;
    size_t before = d->key_size;
    if ((f->flags & GB_FIELD_SECTION) != 0 && !map) gb_decode_pop(d, 0);
    for (const struct gb_node *n = node->first; n != NULL; n = n->next, index++) {
        decode_entry(d, f, index, n, entries + index * f->block->size);
    }
    if ((f->flags & GB_FIELD_SECTION) != 0 && !map) before = 0;
    gb_decode_pop(d, before);
    *(void **)(void *)(out + f->offset) = entries;
    *(size_t *)(void *)(out + f->count_offset) = node->count;
}

static void decode_field(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                         unsigned char *out)
{
    if (f->type == GB_FIELD_BLOCK) {
        gb_decode_block(d, f->block, node, out + f->offset);
        return;
    }
    if (node->kind == GB_NODE_NULL) return; /* as if absent (spec 01 §2) */
    if (f->type == GB_FIELD_RAW) {
        *(const struct gb_node **)(void *)(out + f->offset) = node;
    } else if (f->type == GB_FIELD_BLOCKS || f->type == GB_FIELD_BLOCK_MAP) {
        decode_blocks(d, f, node, out);
    } else {
        gb_decode_value(d, f, node, out + f->offset);
    }
}

static void unknown_key(struct gb_decode *d, const struct gb_block *block,
                        const struct gb_node *node)
{
    enum { LISTED_MAX = 12 };
    if (gb_findings_skip(d->findings, GB_FINDING_ERROR)) return;
    const char *hint = gb_decode_suggest(block, node->key);
    struct gb_node at = *node; /* the key is the mistake, not its value */
    at.line = node->key_line;
    at.column = node->key_column;
    if (hint != NULL) {
        gb_decode_error(d, GB_RULE_K1, &at, "unknown key \"%s\"; did you mean \"%s\"?", d->key,
                        hint);
        return;
    }
    struct gb_str known = {0};
    for (size_t i = 0; i < block->count && block->count <= LISTED_MAX; i++) {
        gb_str_appendf(&known, "%s%s", i == 0 ? ", known here: " : ", ", block->fields[i].key);
    }
    gb_str_append_c(&known, "");
    if (known.failed) {
        d->findings->failed = true;
    } else {
        gb_decode_error(d, GB_RULE_K1, &at, "unknown key \"%s\"; remove it%s", d->key, known.data);
    }
    gb_str_deinit(&known);
}

/* Said once, at the innermost key whose value no longer fits. */
static void check_room(struct gb_decode *d, const struct gb_node *node)
{
    if (d->full || !gb_arena_full(d->arena)) return;
    d->full = true;
    gb_decode_error(d, GB_RULE_D4, node, GB_DOCUMENT_TOO_LARGE);
}

static void decode_keys(struct gb_decode *d, const struct gb_block *block,
                        const struct gb_node *node, unsigned char *out)
{
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        const struct gb_field *f = gb_schema_field(block, n->key);
        size_t before = gb_decode_push(d, n->key);
        if (f != NULL) {
            decode_field(d, f, n, out);
        } else {
            unknown_key(d, block, n);
        }
        check_room(d, n);
        gb_decode_pop(d, before);
    }
}

static bool is_empty(const struct gb_node *node)
{
    return node == NULL || node->kind == GB_NODE_NULL ||
           (node->kind == GB_NODE_STRING && node->size == 0);
}

static void required(struct gb_decode *d, const struct gb_field *f, const struct gb_node *at)
{
    struct gb_str words = {0};
    for (const struct gb_word *w = f->words; w != NULL && w->name != NULL; w++) {
        gb_str_appendf(&words, "%s%s", words.size == 0 ? ", one of: " : ", ", w->name);
    }
    gb_str_append_c(&words, "");
    if (words.failed) {
        d->findings->failed = true;
    } else {
        gb_decode_error(d, f->rule == GB_RULE_NONE ? GB_RULE_K2 : f->rule, at,
                        "%s is required; add it%s", d->key, words.data);
    }
    gb_str_deinit(&words);
}

void gb_decode_required(struct gb_decode *d, const struct gb_block *block,
                        const struct gb_node *node, const struct gb_node *place)
{
    for (size_t i = 0; !d->partial && i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        if ((f->flags & GB_FIELD_REQUIRED) == 0) continue;
        if (d->admin_key_given && strcmp(f->key, "admin_api_key") == 0) continue;
        const struct gb_node *value = gb_node_get(node, f->key);
        if (!is_empty(value)) continue;
        size_t before = gb_decode_push(d, f->key);
        required(d, f, value == NULL ? place : value);
        gb_decode_pop(d, before);
    }
}

void gb_decode_block(struct gb_decode *d, const struct gb_block *block, const struct gb_node *node,
                     void *out)
{
    bool written = node != NULL && node->kind != GB_NODE_NULL;
    unsigned char *at = out;
    for (size_t i = 0; i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        put_default(f, at + f->offset);
        if (f->type == GB_FIELD_BLOCK && (!written || gb_node_get(node, f->key) == NULL)) {
            gb_decode_block(d, f->block, NULL, at + f->offset);
        }
    }
    if (!written) return;
    if (!block->inner) *(const struct gb_node **)(void *)at = node;
    if (node->kind != GB_NODE_MAP) {
        gb_decode_error(d, GB_RULE_K3, node, "%s must be a map, not %s; write its keys there",
                        d->key_size == 0 ? "this" : d->key, gb_node_kind_name(node));
        return;
    }
    decode_keys(d, block, node, at);
    gb_decode_required(d, block, node, node);
}

void gb_decode_document(struct gb_decode *d, const struct gb_node *root, struct gb_blueprint *b)
{
    gb_decode_block(d, &gb_schema_root, root, b);
    gb_decode_kinds(d, b);
    check_room(d, root);
}
