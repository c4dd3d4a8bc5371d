#include "blueprint/normal_value.h"

#include <math.h>
#include <stdlib.h>

#include "base/assert.h"

enum { SHOWN_MAX = 60 };

static void write_text(struct gb_normal_writer *to, const struct gb_node *node)
{
    gb_json_w_string(&to->json, gb_bytes(node->text, node->size));
}

static void write_double(struct gb_normal_writer *to, const char *text)
{
    double value = strtod(text, NULL);
    if (isfinite(value)) {
        gb_json_w_double(&to->json, value);
        return;
    }
    gb_json_w_null(&to->json);
    to->err = gb_err(GB_INVALID_CONFIG,
                     "the number %.*s is beyond the range of a double, so the document has no "
                     "content identity; write it as a text",
                     SHOWN_MAX, text);
}

/* Any number of digits: `+` and leading zeros say nothing. */
static bool write_integer(struct gb_normal_writer *to, const char *text)
{
    bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    if (text[strspn(text, "0123456789")] != '\0') return false;
    text += strspn(text, "0");
    if (*text == '\0') {
        gb_json_w_i64(&to->json, 0);
        return true;
    }
    struct gb_str digits = {0};
    gb_str_append_c(&digits, negative ? "-" : "");
    gb_str_append_c(&digits, text);
    if (digits.failed) {
        to->failed = true;
        gb_json_w_null(&to->json);
    } else {
        gb_json_w_raw(&to->json, gb_str_bytes(&digits));
    }
    gb_str_deinit(&digits);
    return true;
}

void gb_normal_scalar(struct gb_normal_writer *to, const struct gb_node *node, bool doubles)
{
    bool plain = node->kind == GB_NODE_PLAIN;
    bool yes = strcmp(node->text, "true") == 0;
    if (node->kind == GB_NODE_NULL) {
        gb_json_w_null(&to->json);
    } else if (node->kind == GB_NODE_BOOL || (plain && (yes || strcmp(node->text, "false") == 0))) {
        gb_json_w_bool(&to->json, yes);
    } else if (node->kind == GB_NODE_NUMBER || (plain && gb_node_looks_like_number(node->text))) {
        if (doubles || !write_integer(to, node->text)) write_double(to, node->text);
    } else {
        write_text(to, node);
    }
}

static void write_word(struct gb_normal_writer *to, const struct gb_field *f,
                       const struct gb_node *node)
{
    for (const struct gb_word *w = f->words; w->name != NULL; w++) {
        if ((f->flags & GB_FIELD_KIND) == 0 || strcmp(w->name, node->text) != 0) continue;
        gb_json_w_string_c(&to->json, gb_schema_word_name(f->words, w->value));
        return;
    }
    write_text(to, node);
}

static void write_duration(struct gb_normal_writer *to, const struct gb_field *f,
                           const struct gb_node *node, bool as_written)
{
    char text[GB_DURATION_TEXT_MAX];
    int64_t ns = f->def;
    if (node != NULL) {
        struct gb_err err = gb_duration_parse(gb_bytes(node->text, node->size), &ns);
        if (as_written || gb_failed(err)) { /* such as `off` */
            write_text(to, node);
            return;
        }
    }
    gb_duration_print(ns, text);
    gb_json_w_string_c(&to->json, text);
}

/* "a, b" as the decoder splits it. */
static void write_split(struct gb_normal_writer *to, const struct gb_node *node)
{
    static const char blank[] = " \t";
    gb_json_w_array(&to->json);
    for (const char *p = node->text;;) {
        p += strspn(p, blank);
        size_t part = strcspn(p, ",");
        size_t size = part;
        while (size > 0 && strchr(blank, p[size - 1]) != NULL) size--;
        gb_json_w_string(&to->json, gb_bytes(p, size));
        if (p[part] == '\0') break;
        p += part + 1;
    }
    gb_json_w_array_end(&to->json);
}

static int compare_texts(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static void write_set(struct gb_normal_writer *to, const struct gb_node *node)
{
    const char **sorted = calloc(node->count + 1, sizeof *sorted);
    if (sorted == NULL) {
        to->failed = true;
        return;
    }
    size_t count = 0;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) sorted[count++] = n->text;
    qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i - 1], sorted[i]) != 0)
            gb_json_w_string_c(&to->json, sorted[i]);
    }
    free(sorted);
}

static void write_texts(struct gb_normal_writer *to, const struct gb_field *f,
                        const struct gb_node *node, bool as_written)
{
    if (node->kind != GB_NODE_LIST) {
        if (as_written) {
            write_text(to, node);
        } else {
            write_split(to, node);
        }
        return;
    }
    gb_json_w_array(&to->json);
    if ((f->flags & GB_FIELD_SET) != 0) {
        write_set(to, node);
    } else {
        for (const struct gb_node *n = node->first; n != NULL; n = n->next) write_text(to, n);
    }
    gb_json_w_array_end(&to->json);
}

void gb_normal_field(struct gb_normal_writer *to, const struct gb_field *f,
                     const struct gb_node *node, bool as_written)
{
    switch (f->type) {
    case GB_FIELD_TEXT:
        write_text(to, node);
        break;
    case GB_FIELD_WORD:
        write_word(to, f, node);
        break;
    case GB_FIELD_BOOL:
    case GB_FIELD_INT:
        gb_normal_scalar(to, node, false);
        break;
    case GB_FIELD_NUMBER:
        write_double(to, node->text);
        break;
    case GB_FIELD_DURATION:
        write_duration(to, f, node, as_written);
        break;
    case GB_FIELD_TEXTS:
        write_texts(to, f, node, as_written);
        break;
    case GB_FIELD_TEXT_MAP:
    case GB_FIELD_BLOCK:
    case GB_FIELD_BLOCKS:
    case GB_FIELD_BLOCK_MAP:
    case GB_FIELD_RAW:
        GB_ASSERT(false);
    }
}
