#include "adapters/dynamodb/dynamodb_item.h"

#include "base/digest.h"

static const char *const type_names[] = {
    [GB_DYNAMODB_S] = "S",   [GB_DYNAMODB_N] = "N",       [GB_DYNAMODB_B] = "B",
    [GB_DYNAMODB_SS] = "SS", [GB_DYNAMODB_NS] = "NS",     [GB_DYNAMODB_BS] = "BS",
    [GB_DYNAMODB_L] = "L",   [GB_DYNAMODB_BOOL] = "BOOL", [GB_DYNAMODB_NULL] = "NULL",
    [GB_DYNAMODB_M] = "M",
};
enum { TYPES = sizeof type_names / sizeof type_names[0] };

const char *gb_dynamodb_type_name(enum gb_dynamodb_type type)
{
    return type_names[type];
}

/* --- numbers --- */

static bool read_number(struct gb_bytes digits, struct gb_json_reader *r)
{
    gb_json_init(r, digits);
    return gb_json_next(r) == GB_JSON_NUMBER && r->text.size == digits.size;
}

bool gb_dynamodb_parse_i64(struct gb_bytes digits, int64_t *out)
{
    struct gb_json_reader r;
    return read_number(digits, &r) && gb_json_i64(&r, out);
}

bool gb_dynamodb_parse_u64(struct gb_bytes digits, uint64_t *out)
{
    struct gb_json_reader r;
    return read_number(digits, &r) && gb_json_u64(&r, out);
}

/* --- one value --- */

/* The text of the reader's key or string: itself, or unescaped in `scratch`. */
static bool plain_text(struct gb_dynamodb_cursor *c, struct gb_bytes *out)
{
    struct gb_str *s = c->scratch;
    size_t start = s->size;
    *out = c->reader.text;
    if (!c->reader.has_escapes) return true;
    if (!gb_json_string(&c->reader, s, NULL)) return false;
    *out = gb_bytes(s->data + start, s->size - start);
    return true;
}

static bool binary(struct gb_dynamodb_cursor *c, struct gb_bytes *out)
{
    struct gb_str *s = c->scratch;
    struct gb_bytes text;
    if (!plain_text(c, &text)) return false;
    size_t start = s->size;
    if (!gb_base64_decode(s, text)) return false;
    *out = gb_bytes(s->data + start, s->size - start);
    return true;
}

static bool scalar(struct gb_dynamodb_cursor *c, enum gb_dynamodb_type type, struct gb_bytes *out)
{
    struct gb_json_reader number;
    if (type == GB_DYNAMODB_B) return binary(c, out);
    return plain_text(c, out) && (type != GB_DYNAMODB_N || read_number(*out, &number));
}

static enum gb_dynamodb_type element_of(enum gb_dynamodb_type set)
{
    if (set == GB_DYNAMODB_SS) return GB_DYNAMODB_S;
    return set == GB_DYNAMODB_NS ? GB_DYNAMODB_N : GB_DYNAMODB_B;
}

static bool take(struct gb_dynamodb_cursor *c, enum gb_json_event event,
                 struct gb_dynamodb_value *out)
{
    switch (out->type) {
    case GB_DYNAMODB_S:
    case GB_DYNAMODB_N:
    case GB_DYNAMODB_B:
        return event == GB_JSON_STRING && scalar(c, out->type, &out->text);
    case GB_DYNAMODB_BOOL:
        out->boolean = event == GB_JSON_TRUE;
        return event == GB_JSON_TRUE || event == GB_JSON_FALSE;
    case GB_DYNAMODB_NULL:
        return event == GB_JSON_TRUE || event == GB_JSON_FALSE;
    case GB_DYNAMODB_M:
        return event == GB_JSON_OBJECT_BEGIN && gb_json_skip_text(&c->reader, &out->text);
    case GB_DYNAMODB_SS:
    case GB_DYNAMODB_NS:
    case GB_DYNAMODB_BS:
    case GB_DYNAMODB_L:
        return event == GB_JSON_ARRAY_BEGIN && gb_json_skip_text(&c->reader, &out->text);
    }
    return false;
}

static bool type_of_key(const struct gb_json_reader *r, enum gb_dynamodb_type *out)
{
    for (size_t i = 0; i < TYPES; i++) {
        if (!gb_json_text_is(r, type_names[i])) continue;
        *out = (enum gb_dynamodb_type)i;
        return true;
    }
    return false;
}

/* {"S":"text"}, from inside of the brace. */
static bool typed_value(struct gb_dynamodb_cursor *c, struct gb_dynamodb_value *out)
{
    struct gb_json_reader *r = &c->reader;
    if (gb_json_next(r) != GB_JSON_KEY || !type_of_key(r, &out->type)) return false;
    return take(c, gb_json_next(r), out) && gb_json_next(r) == GB_JSON_OBJECT_END;
}

/* --- one after the other --- */

void gb_dynamodb_cursor_init(struct gb_dynamodb_cursor *c, enum gb_dynamodb_type type,
                             struct gb_bytes json, struct gb_str *scratch)
{
    c->err = gb_ok();
    c->scratch = scratch;
    c->is_set = type == GB_DYNAMODB_SS || type == GB_DYNAMODB_NS || type == GB_DYNAMODB_BS;
    c->element = c->is_set ? element_of(type) : type;
    c->ended = false;
    gb_json_init(&c->reader, json);
    enum gb_json_event event = gb_json_next(&c->reader);
    /* Binary whose text is escaped is kept twice, hence double. */
    bool room = gb_str_reserve(scratch, json.size * 2) != NULL;
    if (!room) c->err = gb_err_no_memory("attributes of a DynamoDB item");
    if (room && event != (type == GB_DYNAMODB_M ? GB_JSON_OBJECT_BEGIN : GB_JSON_ARRAY_BEGIN))
        c->err = gb_err(GB_UNAVAILABLE, "malformed attributes");
}

static bool fail(struct gb_dynamodb_cursor *c)
{
    c->err = c->scratch->failed ? gb_err_no_memory("attributes of a DynamoDB item")
                                : gb_err(GB_UNAVAILABLE, "malformed attributes");
    return false;
}

bool gb_dynamodb_next(struct gb_dynamodb_cursor *c, struct gb_dynamodb_value *out)
{
    struct gb_dynamodb_value v = {0};
    struct gb_json_reader *r = &c->reader;
    if (gb_failed(c->err) || c->ended) return false;
    enum gb_json_event event = gb_json_next(r);
    if (event == GB_JSON_OBJECT_END || event == GB_JSON_ARRAY_END) {
        c->ended = true;
        return gb_json_next(r) == GB_JSON_END ? false : fail(c);
    }
    if (event == GB_JSON_KEY) {
        if (!plain_text(c, &v.name)) return fail(c);
        event = gb_json_next(r);
    }
    bool good = false;
    if (c->is_set) {
        v.type = c->element;
        good = event == GB_JSON_STRING && scalar(c, v.type, &v.text);
    } else {
        good = event == GB_JSON_OBJECT_BEGIN && typed_value(c, &v);
    }
    if (!good) return fail(c);
    *out = v;
    return true;
}

void gb_dynamodb_items_init(struct gb_dynamodb_items *i, struct gb_bytes json)
{
    gb_json_init(&i->reader, json);
    i->begun = false;
}

bool gb_dynamodb_items_next(struct gb_dynamodb_items *i, struct gb_bytes *item)
{
    if (!i->begun && gb_json_next(&i->reader) != GB_JSON_ARRAY_BEGIN) return false;
    i->begun = true;
    return gb_json_next(&i->reader) == GB_JSON_OBJECT_BEGIN && gb_json_skip_text(&i->reader, item);
}
