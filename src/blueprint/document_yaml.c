#include <yaml.h>

#include "base/map.h"
#include "blueprint/document_build.h"
#include "blueprint/schema.h"

struct reader {
    struct gb_build build;
    struct gb_bytes text;
    yaml_parser_t parser;
    struct gb_map anchors;                      /* name -> finished node */
    const char *pending[GB_DOCUMENT_DEPTH_MAX]; /* anchors of open containers */
    size_t expanded;                            /* nodes copied for aliases */
    size_t documents;
};

static uint32_t position(size_t zero_based)
{
    return zero_based >= UINT32_MAX ? UINT32_MAX : (uint32_t)zero_based + 1;
}

static bool fail(struct reader *r, enum gb_rule rule, yaml_mark_t mark, const char *text)
{
    return gb_build_fail(&r->build, rule, position(mark.line), position(mark.column), "%s", text);
}

static bool fail_on(struct reader *r, yaml_mark_t mark, const char *what, const yaml_char_t *name,
                    const char *rule)
{
    return gb_build_fail(&r->build, GB_RULE_D6, position(mark.line), position(mark.column),
                         "%s \"%.60s\" %s", what, (const char *)name, rule);
}

static const char tag_rule[] = "is not accepted, since a key decides the type of its value; remove "
                               "the tag";

static bool is_null(const yaml_event_t *e)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
    struct gb_bytes text = gb_bytes(e->data.scalar.value, e->data.scalar.length);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (gb_bytes_equal_c(text, words[i])) return true;
    }
    return false;
}

static bool remember(struct reader *r, const char *anchor, struct gb_node *node)
{
    if (anchor == NULL) return true;
    if (r->anchors.count == GB_DOCUMENT_ANCHORS_MAX) {
        return gb_build_fail(
            &r->build, GB_RULE_D4, node->line, node->column,
            "the document has more than %d anchors; remove some, and write out the "
            "values that stood for them",
            GB_DOCUMENT_ANCHORS_MAX);
    }
    struct gb_err err = gb_map_put(&r->anchors, gb_bytes_c(anchor), node);
    if (gb_failed(err)) r->build.findings->failed = true;
    return !gb_failed(err);
}

static bool take_scalar(struct reader *r, const yaml_event_t *e)
{
    uint32_t line = position(e->start_mark.line);
    uint32_t column = position(e->start_mark.column);
    struct gb_bytes text = gb_bytes(e->data.scalar.value, e->data.scalar.length);
    const char *anchor = (const char *)e->data.scalar.anchor;
    if (e->data.scalar.tag != NULL)
        return fail_on(r, e->start_mark, "tag", e->data.scalar.tag, tag_rule);
    if (gb_build_wants_key(&r->build)) {
        if (anchor != NULL) {
            return fail_on(r, e->start_mark, "anchor", e->data.scalar.anchor,
                           "on a key is not accepted; put it on the value");
        }
        return gb_build_key(&r->build, text, line, column);
    }
    enum gb_node_kind kind = GB_NODE_STRING;
    if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) kind = GB_NODE_PLAIN;
    if (is_null(e)) {
        kind = GB_NODE_NULL;
        text = gb_bytes_c("");
    }
    struct gb_node *n = gb_build_scalar(&r->build, kind, text, line, column);
    return n != NULL && remember(r, anchor, n);
}

static bool take_begin(struct reader *r, const yaml_event_t *e)
{
    bool map = e->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
    const yaml_char_t *anchor = map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
    if (tag != NULL) return fail_on(r, e->start_mark, "tag", tag, tag_rule);
    if (gb_build_wants_key(&r->build)) {
        return fail(r, GB_RULE_D6, e->start_mark,
                    map ? "a key must be a text, not a map; put it in quotes if it begins with {"
                        : "a key must be a text, not a list; put it in quotes if it begins with [");
    }
    const char *copy = NULL;
    if (anchor != NULL) {
        copy = gb_arena_text(r->build.arena, gb_bytes_c((const char *)anchor));
        if (copy == NULL) return false;
    }
    if (gb_build_begin(&r->build, map ? GB_NODE_MAP : GB_NODE_LIST, position(e->start_mark.line),
                       position(e->start_mark.column)) == NULL) {
        return false;
    }
    r->pending[r->build.depth - 1] = copy;
    return true;
}

static bool take_end(struct reader *r)
{
    struct gb_node *n = gb_build_end(&r->build);
    return n != NULL && remember(r, r->pending[r->build.depth], n);
}

/* Aliases are expanded by copying nodes; texts are shared. Depth, node and expansion limits end a
 * "billion laughs" early; the depth limit of the builder also bounds this recursion. Copies keep
 * the positions of the original, where a mistake has to be mended. */
static bool copy(struct reader *r, const struct gb_node *from, yaml_mark_t mark)
{
    if (++r->expanded > GB_DOCUMENT_EXPANDED_MAX) {
        return fail(r, GB_RULE_D4, mark,
                    "the aliases of the document expand to more than 100000 values; write out "
                    "fewer of them");
    }
    struct gb_build *b = &r->build;
    if (from->kind != GB_NODE_MAP && from->kind != GB_NODE_LIST) {
        return gb_build_scalar_again(b, from) != NULL;
    }
    if (gb_build_begin(b, from->kind, from->line, from->column) == NULL) return false;
    for (const struct gb_node *n = from->first; n != NULL; n = n->next) {
        if (n->key != NULL) gb_build_key_again(b, n);
        if (!copy(r, n, mark)) return false;
    }
    /* Duplicate keys were reported with the original. */
    b->depth--;
    return true;
}

static bool take_alias(struct reader *r, const yaml_event_t *e)
{
    if (gb_build_wants_key(&r->build)) {
        return fail_on(r, e->start_mark, "alias", e->data.alias.anchor,
                       "as a key is not accepted; write the key out");
    }
    const char *name = (const char *)e->data.alias.anchor;
    const struct gb_node *target = gb_map_get(&r->anchors, gb_bytes_c(name));
    if (target == NULL) {
        return gb_build_fail(
            &r->build, GB_RULE_D3, position(e->start_mark.line), position(e->start_mark.column),
            "alias \"%.60s\" has no anchor before it, or is inside its own; put the "
            "anchor on an earlier value, or quotes around a text that begins "
            "with *",
            gb_build_in_secret(&r->build) ? GB_REDACTED : name);
    }
    return copy(r, target, e->start_mark);
}

/* True to go on with the next event. */
static bool take(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++r->documents == 1) return true;
        return fail(r, GB_RULE_D6, e->start_mark,
                    "a second document starts here, and one is accepted; move it to a file of its "
                    "own");
    case YAML_SCALAR_EVENT:
        return take_scalar(r, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return take_begin(r, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return take_end(r);
    case YAML_ALIAS_EVENT:
        return take_alias(r, e);
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_END_EVENT:
        break;
    }
    return false;
}

static size_t break_size(const uint8_t *p, size_t size)
{
    if (p[0] == '\n') return 1;
    if (p[0] == '\r') return size > 1 && p[1] == '\n' ? 2 : 1;
    if (size > 1 && p[0] == 0xC2 && p[1] == 0x85) return 2;
    return size > 2 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] == 0xA8 || p[2] == 0xA9) ? 3 : 0;
}

/* libyaml reads ahead of its mark, so of a character that it refuses only the offset is known. */
static bool report_character(struct reader *r, const char *problem)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = 0;
    size_t column = 0;
    for (size_t i = 0; i < p->problem_offset && i < r->text.size;) {
        size_t size = break_size(r->text.data + i, r->text.size - i);
        if (size > 0) {
            line++;
            column = 0;
        } else if ((r->text.data[i] & 0xC0) != 0x80) { /* the first byte of its sequence */
            column++;
        }
        i += size > 0 ? size : 1;
    }
    return gb_build_fail(&r->build, GB_RULE_D3, position(line), position(column),
                         "invalid YAML: %s; remove U+%04X here", problem,
                         (unsigned)p->problem_value);
}

static bool report_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        r->build.findings->failed = true;
        return false;
    }
    const char *problem = p->problem == NULL ? "unreadable" : p->problem;
    if (p->error == YAML_READER_ERROR) return report_character(r, problem);
    return gb_build_fail(
        &r->build, GB_RULE_D3, position(p->problem_mark.line), position(p->problem_mark.column),
        "invalid YAML: %s%s%s; check indentation, quotes and brackets here", problem,
        p->context == NULL ? "" : " ", p->context == NULL ? "" : p->context);
}

static bool read_events(struct reader *r)
{
    yaml_event_t event;
    for (;;) {
        if (yaml_parser_parse(&r->parser, &event) == 0) return report_syntax(r);
        bool complete = event.type == YAML_STREAM_END_EVENT;
        bool more = take(r, &event);
        yaml_event_delete(&event);
        if (!more) return complete;
    }
}

/* libyaml holds each directive against all others before it says a word, so a document of them
 * would take minutes. Wherever such a line stands: nobody writes a hundred. */
static bool check_directives(struct gb_build *b, struct gb_bytes text)
{
    size_t directives = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < text.size;) {
        if (text.data[i] == '%' && ++directives > GB_DOCUMENT_DIRECTIVES_MAX) {
            return gb_build_fail(b, GB_RULE_D4, line, 1,
                                 "the document has more than %d lines that start with %%; "
                                 "directives are not needed, remove them",
                                 GB_DOCUMENT_DIRECTIVES_MAX);
        }
        size_t size = 0;
        while (i < text.size && size == 0) {
            size = break_size(text.data + i, text.size - i);
            i += size == 0 ? 1 : size;
        }
        line++;
    }
    return true;
}

bool gb_document_yaml(struct gb_bytes bytes, uint32_t layer, struct gb_arena *arena,
                      struct gb_findings *findings, const struct gb_node **root)
{
    struct reader r = {.build = {.arena = arena, .findings = findings, .layer = layer}};
    if (!gb_build_check_text(&r.build, &bytes)) return false;
    r.text = bytes;
    if (!check_directives(&r.build, bytes)) return false;
    if (yaml_parser_initialize(&r.parser) == 0) {
        findings->failed = true;
        return false;
    }
    static const unsigned char nothing[1] = {0};
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, bytes.size == 0 ? nothing : bytes.data, bytes.size);
    bool ok = read_events(&r);
    yaml_parser_delete(&r.parser);
    gb_map_deinit(&r.anchors);
    if (ok && r.build.root == NULL) { /* the empty document (spec 01 §2) */
        ok = gb_build_scalar(&r.build, GB_NODE_NULL, gb_bytes_c(""), 1, 1) != NULL;
    }
    if (ok) *root = r.build.root;
    return ok;
}
