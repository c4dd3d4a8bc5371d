#include "base/json_read.h"
#include "blueprint/document_build.h"

static bool add_text(struct gb_build *b, struct gb_json_reader *r, struct gb_str *text, bool key)
{
    bool lossy = false;
    gb_str_clear(text);
    if (!gb_json_string(r, text, &lossy)) {
        b->findings->failed = true;
        return false;
    }
    if (lossy) {
        return gb_build_fail(
            b, GB_RULE_D2, r->line, r->column,
            "a text holds half of a surrogate pair, which is not UTF-8; write both "
            "halves, or the character itself");
    }
    if (key) return gb_build_key(b, gb_str_bytes(text), r->line, r->column);
    return gb_build_scalar(b, GB_NODE_STRING, gb_str_bytes(text), r->line, r->column) != NULL;
}

/* True to go on with the next event. */
static bool take(struct gb_build *b, struct gb_json_reader *r, enum gb_json_event event,
                 struct gb_str *text)
{
    switch (event) {
    case GB_JSON_OBJECT_BEGIN:
        return gb_build_begin(b, GB_NODE_MAP, r->line, r->column) != NULL;
    case GB_JSON_ARRAY_BEGIN:
        return gb_build_begin(b, GB_NODE_LIST, r->line, r->column) != NULL;
    case GB_JSON_OBJECT_END:
    case GB_JSON_ARRAY_END:
        return gb_build_end(b) != NULL;
    case GB_JSON_KEY:
        return add_text(b, r, text, true);
    case GB_JSON_STRING:
        return add_text(b, r, text, false);
    case GB_JSON_NUMBER:
        return gb_build_scalar(b, GB_NODE_NUMBER, r->text, r->line, r->column) != NULL;
    case GB_JSON_TRUE:
        return gb_build_scalar(b, GB_NODE_BOOL, gb_bytes_c("true"), r->line, r->column) != NULL;
    case GB_JSON_FALSE:
        return gb_build_scalar(b, GB_NODE_BOOL, gb_bytes_c("false"), r->line, r->column) != NULL;
    case GB_JSON_NULL:
        return gb_build_scalar(b, GB_NODE_NULL, gb_bytes_c(""), r->line, r->column) != NULL;
    case GB_JSON_ERROR:
        return gb_build_fail(b, GB_RULE_D3, r->line, r->column,
                             "%s; check quotes, commas and brackets here", r->err.message);
    case GB_JSON_END:
        break;
    }
    return false;
}

static bool is_blank(struct gb_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return false;
    }
    return true;
}

bool gb_document_json(struct gb_bytes bytes, uint32_t layer, struct gb_arena *arena,
                      struct gb_findings *findings, const struct gb_node **root)
{
    struct gb_build b = {.arena = arena, .findings = findings, .layer = layer};
    if (!gb_build_check_text(&b, &bytes)) return false;
    if (is_blank(bytes)) { /* the empty document (spec 01 §2) */
        *root = gb_build_scalar(&b, GB_NODE_NULL, gb_bytes_c(""), 1, 1);
        return *root != NULL;
    }
    struct gb_json_reader r;
    struct gb_str text = {.size_max = GB_DOCUMENT_SIZE_MAX};
    enum gb_json_event event;
    gb_json_init(&r, bytes);
    do {
        event = gb_json_next(&r);
    } while (take(&b, &r, event, &text));
    gb_str_deinit(&text);
    if (event != GB_JSON_END) return false;
    *root = b.root;
    return true;
}
