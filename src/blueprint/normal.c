#include "blueprint/normal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "blueprint/document.h"
#include "blueprint/normal_value.h"
#include "blueprint/schema.h"

/* One walk over the tables of the schema and, beside them, the tree and the model: the tree says
 * what was written, the model which kind an entry has. Recursion is as deep as the document. */

struct entry {
    const char *key;
    size_t index; /* place in the document */
    const struct gb_node *node;
    const struct gb_field *field; /* NULL: no table knows the key */
};

struct walk {
    struct gb_normal_writer to;
    struct entry *stack; /* the keys of every open map, one behind the other */
    size_t count, capacity;
    bool in_options;                 /* their values stay as written */
    struct gb_sha256_stream *stream; /* takes what is written; NULL: it stays in the text */
    size_t taken;
};

enum { PIECE_MIN = 64 * 1024 };

static void write_block(struct walk *k, const struct gb_block *block, const struct gb_node *node,
                        const unsigned char *at);

static void push(struct walk *k, struct entry entry)
{
    if (k->count == k->capacity) {
        size_t capacity = k->capacity == 0 ? 64 : 2 * k->capacity;
        struct entry *grown = realloc(k->stack, capacity * sizeof *grown);
        if (grown == NULL) {
            k->to.failed = true;
            return;
        }
        k->stack = grown;
        k->capacity = capacity;
    }
    k->stack[k->count++] = entry;
}

/* Between values. What a member may still take back (write_member) is shorter than a piece. */
static void drain(struct walk *k)
{
    struct gb_str *text = k->to.json.out;
    if (k->stream == NULL || text->failed || text->size < PIECE_MIN) return;
    gb_sha256_add(k->stream, gb_str_bytes(text));
    k->taken += text->size;
    gb_str_clear(text);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = strcmp(a->key, b->key);
    if (order != 0) return order;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void sort_from(struct walk *k, size_t base)
{
    if (k->count - base > 1)
        qsort(k->stack + base, k->count - base, sizeof *k->stack, compare_entries);
}

/* As the decoder sees it (spec 01 §2); null is a value of its own only in a condition. */
static bool is_absent(const struct gb_field *f, const struct gb_node *node)
{
    bool empty = node->kind == GB_NODE_NULL ||
                 (node->size == 0 && (node->kind == GB_NODE_STRING || node->kind == GB_NODE_PLAIN));
    return empty && (f->type != GB_FIELD_RAW ||
                     (node->kind == GB_NODE_NULL && (f->flags & GB_FIELD_CONDITION) == 0));
}

/* An empty one equals an absent one (spec 01 §9.1 item 6). */
static bool is_collection(const struct gb_field *f)
{
    switch (f->type) {
    case GB_FIELD_TEXTS:
    case GB_FIELD_TEXT_MAP:
    case GB_FIELD_BLOCK:
    case GB_FIELD_BLOCKS:
    case GB_FIELD_BLOCK_MAP:
        return true;
    case GB_FIELD_RAW:
        return f->options_of != NULL;
    case GB_FIELD_TEXT:
    case GB_FIELD_BOOL:
    case GB_FIELD_INT:
    case GB_FIELD_NUMBER:
    case GB_FIELD_DURATION:
    case GB_FIELD_WORD:
        break;
    }
    return false;
}

static void write_entry(struct walk *k, const struct gb_block *block, const struct gb_node *node,
                        const unsigned char *entries, size_t index)
{
    write_block(k, block, node, entries == NULL ? NULL : entries + index * block->size);
}

static const unsigned char *entries_of(const struct gb_field *f, const unsigned char *at)
{
    return at == NULL ? NULL : *(const unsigned char *const *)(const void *)(at + f->offset);
}

static void write_blocks(struct walk *k, const struct gb_field *f, const struct gb_node *node,
                         const unsigned char *at)
{
    size_t base = k->count;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        const struct gb_node *id = gb_node_get(n, "id");
        /* Only entries of sections have an id; the order of others counts. */
        push(k, (struct entry){id == NULL ? "" : id->text, k->count - base, n, f});
    }
    sort_from(k, base);
    gb_json_w_array(&k->to.json);
    for (size_t i = base, end = k->count; i < end; i++) {
        write_entry(k, f->block, k->stack[i].node, entries_of(f, at), k->stack[i].index);
        drain(k);
    }
    gb_json_w_array_end(&k->to.json);
    k->count = base;
}

static void write_block_map(struct walk *k, const struct gb_field *f, const struct gb_node *node,
                            const unsigned char *at)
{
    size_t base = k->count;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        push(k, (struct entry){n->key, k->count - base, n, f});
    }
    sort_from(k, base);
    gb_json_w_object(&k->to.json);
    for (size_t i = base, end = k->count; i < end; i++) {
        gb_json_w_key_bytes(&k->to.json, gb_bytes_c(k->stack[i].key));
        write_entry(k, f->block, k->stack[i].node, entries_of(f, at), k->stack[i].index);
        drain(k);
    }
    gb_json_w_object_end(&k->to.json);
    k->count = base;
}

static void write_untyped_map(struct walk *k, const struct gb_node *node);

/* A place that no table types; `condition`: numbers are doubles and a map is a text (item 5). */
static void write_untyped(struct walk *k, const struct gb_node *node, bool condition)
{
    if (node->kind == GB_NODE_LIST) {
        gb_json_w_array(&k->to.json);
        for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
            write_untyped(k, n, condition);
            drain(k);
        }
        gb_json_w_array_end(&k->to.json);
    } else if (node->kind != GB_NODE_MAP) {
        gb_normal_scalar(&k->to, node, condition);
    } else if (!condition) {
        write_untyped_map(k, node);
    } else {
        struct gb_str text = {0};
        struct gb_json_writer outer = k->to.json;
        struct gb_sha256_stream *stream = k->stream;
        k->stream = NULL; /* a text of its own */
        gb_json_w_init(&k->to.json, &text);
        write_untyped_map(k, node);
        k->to.json = outer;
        k->stream = stream;
        if (text.failed) k->to.failed = true;
        gb_json_w_string(&k->to.json, gb_str_bytes(&text));
        gb_str_deinit(&text);
    }
}

static void write_untyped_map(struct walk *k, const struct gb_node *node)
{
    size_t base = k->count;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        push(k, (struct entry){.key = n->key, .node = n});
    }
    sort_from(k, base);
    gb_json_w_object(&k->to.json);
    for (size_t i = base, end = k->count; i < end; i++) {
        gb_json_w_key_bytes(&k->to.json, gb_bytes_c(k->stack[i].key));
        write_untyped(k, k->stack[i].node, false);
        drain(k);
    }
    gb_json_w_object_end(&k->to.json);
    k->count = base;
}

static void write_text_map(struct walk *k, const struct gb_node *node)
{
    size_t base = k->count;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        push(k, (struct entry){.key = n->key, .node = n});
    }
    sort_from(k, base);
    gb_json_w_object(&k->to.json);
    for (size_t i = base; i < k->count; i++) {
        const struct gb_node *n = k->stack[i].node;
        gb_json_w_key_bytes(&k->to.json, gb_bytes_c(k->stack[i].key));
        gb_json_w_string(&k->to.json, gb_bytes(n->text, n->size)); /* null is "" there */
        drain(k);
    }
    gb_json_w_object_end(&k->to.json);
    k->count = base;
}

static void write_raw(struct walk *k, const struct gb_field *f, const struct gb_node *node,
                      const unsigned char *at)
{
    const struct gb_block *block = NULL;
    if (f->options_of != NULL && at != NULL) block = f->options_of(at);
    if (block == NULL) {
        write_untyped(k, node, (f->flags & GB_FIELD_CONDITION) != 0);
        return;
    }
    k->in_options = true;
    write_block(k, block, node, NULL);
    k->in_options = false;
}

static void write_value(struct walk *k, const struct gb_field *f, const struct gb_node *node,
                        const unsigned char *at)
{
    switch (f->type) {
    case GB_FIELD_BLOCK:
        write_block(k, f->block, node, at == NULL ? NULL : at + f->offset);
        break;
    case GB_FIELD_BLOCKS:
        write_blocks(k, f, node, at);
        break;
    case GB_FIELD_BLOCK_MAP:
        write_block_map(k, f, node, at);
        break;
    case GB_FIELD_TEXT_MAP:
        write_text_map(k, node);
        break;
    case GB_FIELD_RAW:
        write_raw(k, f, node, at);
        break;
    case GB_FIELD_TEXT:
    case GB_FIELD_BOOL:
    case GB_FIELD_INT:
    case GB_FIELD_NUMBER:
    case GB_FIELD_DURATION:
    case GB_FIELD_WORD:
    case GB_FIELD_TEXTS:
        gb_normal_field(&k->to, f, node, k->in_options);
        break;
    }
}

static void write_member(struct walk *k, const struct entry *e, const unsigned char *at)
{
    struct gb_str *out = k->to.json.out;
    size_t before = out->size;
    bool comma = k->to.json.comma;
    gb_json_w_key_bytes(&k->to.json, gb_bytes_c(e->key));
    size_t start = k->taken + out->size;
    if (e->field == NULL) {
        write_untyped(k, e->node, false);
        return;
    }
    write_value(k, e->field, e->node, at);
    if (is_collection(e->field) && !out->failed && k->taken + out->size == start + strlen("{}")) {
        out->size = before;
        k->to.json.comma = comma;
    }
}

static void push_filled(struct walk *k, const struct gb_block *block, const struct gb_node *node)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct gb_field *f = &block->fields[i];
        if ((f->flags & GB_FIELD_FILLED) == 0) continue;
        const struct gb_node *written = gb_node_get(node, f->key);
        if (written == NULL || is_absent(f, written))
            push(k, (struct entry){.key = f->key, .field = f});
    }
}

static void write_block(struct walk *k, const struct gb_block *block, const struct gb_node *node,
                        const unsigned char *at)
{
    size_t base = k->count;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        const struct gb_field *f = gb_schema_field(block, n->key);
        if (f != NULL && ((f->flags & GB_FIELD_NO_CONTENT) != 0 || is_absent(f, n))) continue;
        push(k, (struct entry){f == NULL ? n->key : f->key, k->count - base, n, f});
    }
    push_filled(k, block, node);
    sort_from(k, base);
    gb_json_w_object(&k->to.json);
    for (size_t i = base, end = k->count; i < end; i++) {
        struct entry e = k->stack[i]; /* the stack may move meanwhile */
        /* Both spellings of a key: the decoder took the last one. */
        if (i + 1 < end && strcmp(e.key, k->stack[i + 1].key) == 0) continue;
        write_member(k, &e, at);
        drain(k);
    }
    gb_json_w_object_end(&k->to.json);
    k->count = base;
}

static struct gb_err finish(struct walk *k)
{
    free(k->stack);
    if (k->to.failed) return gb_err_no_memory("the normal form");
    struct gb_err err = gb_str_check(k->to.json.out, "the normal form");
    return gb_failed(err) ? err : k->to.err;
}

static const unsigned char *model(const struct gb_blueprint *b)
{
    return (const unsigned char *)b;
}

static void write_document(struct walk *k, const struct gb_blueprint *b)
{
    GB_ASSERT(b->node != NULL); /* a document without bridge.id is refused */
    write_block(k, &gb_schema_root, b->node, model(b));
}

struct gb_err gb_normal_document(const struct gb_blueprint *b, struct gb_str *out)
{
    struct walk k = {0};
    gb_json_w_init(&k.to.json, out);
    write_document(&k, b);
    return finish(&k);
}

/* A walk whose text is hashed in pieces. */
struct hashing {
    struct walk walk;
    struct gb_str text;
    struct gb_sha256_stream stream;
};

static void hashing_begin(struct hashing *h)
{
    *h = (struct hashing){.walk = {.stream = &h->stream}};
    gb_json_w_init(&h->walk.to.json, &h->text);
    gb_sha256_begin(&h->stream);
}

static struct gb_err hashing_end(struct hashing *h, uint8_t out[GB_SHA256_SIZE])
{
    uint8_t digest[GB_SHA256_SIZE];
    struct gb_err err = finish(&h->walk);
    gb_sha256_add(&h->stream, gb_str_bytes(&h->text));
    gb_sha256_end(&h->stream, digest);
    if (!gb_failed(err)) memcpy(out, digest, sizeof digest);
    if (h->text.data != NULL) gb_wipe(h->text.data, h->text.capacity);
    gb_str_deinit(&h->text);
    return err;
}

struct gb_err gb_normal_document_digest(const struct gb_blueprint *b, uint8_t out[GB_SHA256_SIZE])
{
    struct hashing h;
    hashing_begin(&h);
    write_document(&h.walk, b);
    return hashing_end(&h, out);
}

struct gb_err gb_normal_section_digest(const struct gb_blueprint *b, const char *key,
                                       uint8_t out[GB_SHA256_SIZE])
{
    struct hashing h;
    const struct gb_field *f = gb_schema_field(&gb_schema_root, key);
    const struct gb_node *node = gb_node_get(b->node, key);
    GB_ASSERT(f != NULL);
    hashing_begin(&h);
    gb_json_w_object(&h.walk.to.json);
    if (node != NULL && !is_absent(f, node))
        write_member(&h.walk, &(struct entry){.key = f->key, .node = node, .field = f}, model(b));
    gb_json_w_object_end(&h.walk.to.json);
    return hashing_end(&h, out);
}

struct gb_err gb_normal_entry_digest(const struct gb_blueprint *b, const char *section,
                                     size_t index, uint8_t out[GB_SHA256_SIZE])
{
    struct hashing h;
    const struct gb_field *f = gb_schema_field(&gb_schema_root, section);
    GB_ASSERT(f != NULL && (f->type == GB_FIELD_BLOCKS || f->type == GB_FIELD_BLOCK_MAP));
    const unsigned char *entry = entries_of(f, model(b)) + index * f->block->size;
    hashing_begin(&h);
    write_block(&h.walk, f->block, *(const struct gb_node *const *)(const void *)entry, entry);
    return hashing_end(&h, out);
}
