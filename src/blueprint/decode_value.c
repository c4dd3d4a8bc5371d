#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "blueprint/decode.h"

enum { SHOWN_MAX = 60 };

static bool is_secret(const struct gb_field *f)
{
    return (f->flags & GB_FIELD_SECRET) != 0;
}

static bool is_text(const struct gb_node *node)
{
    return node->kind == GB_NODE_STRING || node->kind == GB_NODE_PLAIN;
}

static void wrong_type(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                       const char *want, const char *remedy)
{
    bool quoted = node->kind != GB_NODE_LIST && node->kind != GB_NODE_MAP && !is_secret(f);
    gb_decode_error(d, GB_RULE_K3, node, "%s must be %s, not %s%s%.*s%s; %s", d->key, want,
                    gb_node_kind_name(node), quoted ? " (\"" : "", SHOWN_MAX,
                    quoted ? node->text : "", quoted ? "\")" : "", remedy);
}

/* A text field takes plain text whatever YAML 1.1 sees in it, but no number (spec 01 §2). */
static bool take_text(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                      const char **out)
{
    if (!is_text(node)) {
        bool scalar = node->kind == GB_NODE_NUMBER || node->kind == GB_NODE_BOOL;
        wrong_type(d, f, node, "a text", scalar ? "put it in quotes" : "write one text");
        return false;
    }
    if (node->kind == GB_NODE_PLAIN && gb_node_looks_like_number(node->text)) {
        wrong_type(d, f, node, "a text", "put it in quotes");
        return false;
    }
    *out = node->size == 0 ? NULL : node->text;
    return true;
}

static void decode_bool(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                        struct gb_opt_bool *out)
{
    bool scalar = node->kind == GB_NODE_BOOL || node->kind == GB_NODE_PLAIN;
    bool yes = scalar && strcmp(node->text, "true") == 0;
    if (!yes && !(scalar && strcmp(node->text, "false") == 0)) {
        wrong_type(d, f, node, "true or false", "write one of them without quotes");
        return;
    }
    *out = (struct gb_opt_bool){.value = yes, .given = true};
}

static bool is_integer(const char *text)
{
    if (*text == '-') text++;
    if (*text == '0') return text[1] == '\0'; /* 010 would be eight to some readers */
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
    }
    return true;
}

static void decode_int(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                       struct gb_opt_int *out)
{
    bool scalar = node->kind == GB_NODE_NUMBER || node->kind == GB_NODE_PLAIN;
    if (!scalar || !is_integer(node->text)) {
        if (scalar && gb_node_looks_like_number(node->text)) {
            gb_decode_error(d, GB_RULE_K3, node,
                            "%s must be a whole number without fraction or exponent, not %.*s; "
                            "write its digits only",
                            d->key, SHOWN_MAX, node->text);
        } else {
            wrong_type(d, f, node, "a whole number", "write digits only, without quotes and unit");
        }
        return;
    }
    errno = 0;
    int64_t value = strtoll(node->text, NULL, 10);
    if (errno == ERANGE || value < f->min || value > f->max) {
        gb_decode_error(d, GB_RULE_K4, node,
                        "%s %.*s is out of range; must be %" PRId64 "..%" PRId64 ", %s it", d->key,
                        SHOWN_MAX, node->text, f->min, f->max, value < f->min ? "raise" : "lower");
        return;
    }
    if (value == 0 && (f->flags & GB_FIELD_ZERO_DEFAULT) != 0) value = f->def;
    *out = (struct gb_opt_int){.value = value, .given = true};
}

static void decode_number(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                          struct gb_opt_num *out)
{
    bool scalar = node->kind == GB_NODE_NUMBER || node->kind == GB_NODE_PLAIN;
    if (!scalar || !gb_node_looks_like_number(node->text)) {
        wrong_type(d, f, node, "a number", "write it with digits and a point, without quotes");
        return;
    }
    double value = strtod(node->text, NULL);
    if (!(value >= f->num_min && value <= f->num_max)) {
        gb_decode_error(d, GB_RULE_K4, node, "%s %.*s is out of range; must be %g..%g, %s it",
                        d->key, SHOWN_MAX, node->text, f->num_min, f->num_max,
                        value < f->num_min ? "raise" : "lower");
        return;
    }
    *out = (struct gb_opt_num){.value = value, .given = true};
}

static void wrong_duration(struct gb_decode *d, const struct gb_field *f,
                           const struct gb_node *node)
{
    char limit[GB_DURATION_TEXT_MAX];
    enum gb_rule rule = f->rule == GB_RULE_NONE ? GB_RULE_K4 : f->rule;
    if (f->min > 0) {
        gb_decode_error(
            d, rule, node, "%s \"%.*s\" must be greater than zero%s; raise it, or leave it out",
            d->key, SHOWN_MAX, node->text, (f->flags & GB_FIELD_OFF) != 0 ? ", or \"off\"" : "");
    } else if (f->max == INT64_MAX) {
        gb_decode_error(d, rule, node,
                        "%s \"%.*s\" must not be negative; raise it, or leave it out", d->key,
                        SHOWN_MAX, node->text);
    } else {
        gb_duration_print(f->max, limit);
        gb_decode_error(d, rule, node, "%s \"%.*s\" is out of range; must be 0s..%s, %s it", d->key,
                        SHOWN_MAX, node->text, limit, node->text[0] == '-' ? "raise" : "lower");
    }
}

static void decode_duration(struct gb_decode *d, const struct gb_field *f,
                            const struct gb_node *node, struct gb_opt_ns *out)
{
    if (!is_text(node) && node->kind != GB_NODE_NUMBER) {
        wrong_type(d, f, node, "a duration", "write a text with a unit, such as \"30s\"");
        return;
    }
    if ((f->flags & GB_FIELD_OFF) != 0 && is_text(node) && strcmp(node->text, "off") == 0) {
        *out = (struct gb_opt_ns){.ns = 0, .given = true};
        return;
    }
    if (node->kind == GB_NODE_NUMBER) { /* also 0: a JSON number is no text (spec 01 §2) */
        gb_decode_error(d, GB_RULE_K6, node,
                        "%s: invalid duration \"%.*s\"; write a text with a unit, such as \"30s\"",
                        d->key, SHOWN_MAX, node->text);
        return;
    }
    if (node->size == 0) return; /* as if absent */
    int64_t ns;
    struct gb_err err = gb_duration_parse(gb_bytes(node->text, node->size), &ns);
    if (gb_failed(err)) {
        gb_decode_error(d, GB_RULE_K6, node, "%s: %s", d->key, err.message);
        return;
    }
    if (ns < f->min || ns > f->max) {
        wrong_duration(d, f, node);
        return;
    }
    if (ns == 0 && (f->flags & GB_FIELD_ZERO_DEFAULT) != 0) ns = f->def;
    *out = (struct gb_opt_ns){.ns = ns, .given = true};
}

static bool word_is(const struct gb_field *f, struct gb_bytes word, const char *name)
{
    if ((f->flags & GB_FIELD_ANY_CASE) != 0) return gb_bytes_equal_nocase(word, gb_bytes_c(name));
    return gb_bytes_equal_c(word, name);
}

static void decode_word(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                        struct gb_opt_word *out)
{
    if (is_text(node) && node->size == 0) return; /* as if absent; required words are checked */
    for (const struct gb_word *w = f->words; w->name != NULL && is_text(node); w++) {
        if (!word_is(f, gb_bytes(node->text, node->size), w->name)) continue;
        *out = (struct gb_opt_word){.value = w->value, .given = true};
        return;
    }
    struct gb_str list = {0};
    for (const struct gb_word *w = f->words; w->name != NULL; w++) {
        gb_str_appendf(&list, "%s%s", list.size == 0 ? "" : ", ", w->name);
    }
    if (list.failed) {
        d->findings->failed = true;
    } else if (node->kind == GB_NODE_LIST || node->kind == GB_NODE_MAP) {
        gb_decode_error(d, GB_RULE_K5, node, "%s must be a text, not %s; must be one of: %s",
                        d->key, gb_node_kind_name(node), list.data);
    } else { /* no word is a secret */
        gb_decode_error(d, GB_RULE_K5, node, "%s \"%.*s\" is invalid; must be one of: %s", d->key,
                        SHOWN_MAX, node->text, list.data);
    }
    gb_str_deinit(&list);
}

/* A comma or the end of the text stands at `end`. */
static struct gb_bytes trim(const char *start, const char *end)
{
    start += strspn(start, " \t");
    while (end > start && strchr(" \t", end[-1]) != NULL) end--;
    return gb_bytes(start, (size_t)(end - start));
}

/* "a, b" for a list of texts (spec 01 §2). */
static void split_commas(struct gb_decode *d, const struct gb_node *node, struct gb_bp_strings *out)
{
    size_t count = 1;
    for (const char *p = node->text; *p != '\0'; p++) count += *p == ',';
    if (!gb_decode_check_count(d, node, count)) return;
    const char **items = gb_arena_array(d->arena, count, sizeof *items);
    if (items == NULL) return;
    const char *p = node->text;
    for (size_t i = 0; i < count; i++) {
        const char *end = p + strcspn(p, ",");
        struct gb_bytes part = trim(p, end);
        if (part.size == 0) {
            gb_decode_error(d, GB_RULE_K3, node,
                            "%s \"%.*s\" has an empty entry between its commas; remove one of them",
                            d->key, SHOWN_MAX, node->text);
            return;
        }
        items[i] = gb_arena_text(d->arena, part);
        p = end + 1;
    }
    *out = (struct gb_bp_strings){.items = items, .count = count, .given = true};
}

static void decode_texts(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node,
                         struct gb_bp_strings *out)
{
    if (is_text(node) && (f->flags & GB_FIELD_COMMAS) != 0) {
        if (node->size > 0) split_commas(d, node, out);
        return;
    }
    if (node->kind != GB_NODE_LIST) {
        wrong_type(d, f, node, "a list of texts",
                   (f->flags & GB_FIELD_COMMAS) != 0 ? "write [a, b] or \"a, b\"" : "write [a, b]");
        return;
    }
    if (!gb_decode_check_count(d, node, node->count)) return;
    const char **items = gb_arena_array(d->arena, node->count, sizeof *items);
    if (items == NULL) return;
    size_t count = 0;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        char bracket[24];
        (void)snprintf(bracket, sizeof bracket, "[%zu]", count);
        size_t before = gb_decode_push(d, bracket);
        const char *text = NULL;
        bool ok = take_text(d, f, n, &text);
        if (ok && text == NULL) {
            gb_decode_error(d, GB_RULE_K3, n, "%s must not be empty; remove the entry", d->key);
        }
        gb_decode_pop(d, before);
        items[count++] = text == NULL ? "" : text;
    }
    *out = (struct gb_bp_strings){.items = items, .count = count, .given = true};
}

static void decode_text_map(struct gb_decode *d, const struct gb_field *f,
                            const struct gb_node *node, struct gb_bp_map *out)
{
    if (node->kind != GB_NODE_MAP) {
        wrong_type(d, f, node, "a map of texts", "write keys with texts, such as {a: b}");
        return;
    }
    if (!gb_decode_check_count(d, node, node->count)) return;
    struct gb_bp_pair *items = gb_arena_array(d->arena, node->count, sizeof *items);
    if (items == NULL) return;
    size_t count = 0;
    for (const struct gb_node *n = node->first; n != NULL; n = n->next) {
        size_t before = gb_decode_push(d, n->key);
        const char *text = NULL;
        if (n->kind != GB_NODE_NULL) (void)take_text(d, f, n, &text);
        gb_decode_pop(d, before);
        items[count++] = (struct gb_bp_pair){n->key, text == NULL ? "" : text, n};
    }
    *out = (struct gb_bp_map){.items = items, .count = count, .given = true};
}

/* A document that was read from the API: its secrets are gone. A layer by itself may hold the
 * marker (merge.h). */
static bool refuse_marker(struct gb_decode *d, const struct gb_field *f, const struct gb_node *node)
{
    if (d->partial || (f->flags & GB_FIELD_SECRET) == 0) return false;
    const struct gb_node *n = node->kind == GB_NODE_MAP ? node->first : node;
    while (n != NULL && !(is_text(n) && strcmp(n->text, GB_REDACTED) == 0))
        n = n == node ? NULL : n->next;
    if (n == NULL) return false;
    gb_decode_error(d, GB_RULE_K7, n,
                    "%s is the marker " GB_REDACTED
                    ", and no layer below holds a secret that it could keep; write the secret",
                    d->key);
    return true;
}

void gb_decode_value(struct gb_decode *d, const struct gb_field *field, const struct gb_node *node,
                     unsigned char *out)
{
    void *at = out;
    if (refuse_marker(d, field, node)) return;
    size_t errors = d->findings->error_count;
    bool *broken = NULL;
    switch (field->type) {
    case GB_FIELD_TEXT: {
        const char *text = NULL;
        if (take_text(d, field, node, &text) && text != NULL) *(const char **)at = text;
        break;
    }
    case GB_FIELD_BOOL:
        decode_bool(d, field, node, at);
        broken = &((struct gb_opt_bool *)at)->broken;
        break;
    case GB_FIELD_INT:
        decode_int(d, field, node, at);
        broken = &((struct gb_opt_int *)at)->broken;
        break;
    case GB_FIELD_NUMBER:
        decode_number(d, field, node, at);
        broken = &((struct gb_opt_num *)at)->broken;
        break;
    case GB_FIELD_DURATION:
        decode_duration(d, field, node, at);
        broken = &((struct gb_opt_ns *)at)->broken;
        break;
    case GB_FIELD_WORD:
        decode_word(d, field, node, at);
        broken = &((struct gb_opt_word *)at)->broken;
        break;
    case GB_FIELD_TEXTS:
        decode_texts(d, field, node, at);
        broken = &((struct gb_bp_strings *)at)->broken;
        break;
    case GB_FIELD_TEXT_MAP:
        decode_text_map(d, field, node, at);
        broken = &((struct gb_bp_map *)at)->broken;
        break;
    case GB_FIELD_BLOCK:
    case GB_FIELD_BLOCKS:
    case GB_FIELD_BLOCK_MAP:
    case GB_FIELD_RAW:
        break;
    }
    if (broken != NULL) *broken = d->findings->error_count > errors;
}
