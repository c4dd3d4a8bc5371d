#include "base/json_read.h"

#include "base/assert.h"
#include "base/json_scan.h"

/* What the grammar allows at `pos`. */
enum expect {
    EXPECT_VALUE,
    EXPECT_ELEMENT_OR_END, /* after '[' */
    EXPECT_KEY_OR_END,     /* after '{' */
    EXPECT_KEY,            /* after ',' in an object */
    EXPECT_COLON,          /* after a key */
    EXPECT_SEPARATOR,      /* after a value in an object or array */
    EXPECT_NOTHING,        /* after the document's value */
};

static uint32_t column_at(const struct gb_json_reader *r, const uint8_t *at)
{
    size_t column = (size_t)(at - r->line_start) + 1;
    return column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
}

static enum gb_json_event fail_at(struct gb_json_reader *r, const uint8_t *at, const char *why)
{
    r->column = column_at(r, at);
    r->err = gb_err(GB_INVALID_PAYLOAD, "invalid JSON at line %u, column %u: %s", r->line,
                    r->column, at == r->end ? "the document ends too early" : why);
    r->text = gb_bytes(NULL, 0);
    r->event = GB_JSON_ERROR;
    return GB_JSON_ERROR;
}

void gb_json_init(struct gb_json_reader *r, struct gb_bytes input)
{
    static const uint8_t nothing[1] = {0};
    r->text = gb_bytes(NULL, 0);
    r->has_escapes = false;
    r->line = 1;
    r->column = 1;
    r->err = gb_ok();
    r->pos = input.data == NULL ? nothing : input.data;
    r->end = r->pos + input.size;
    r->line_start = r->pos;
    r->depth = 0;
    r->expect = EXPECT_VALUE;
    r->event = GB_JSON_END; /* anything but an error */
}

static void skip_space(struct gb_json_reader *r)
{
    for (; r->pos < r->end; r->pos++) {
        if (*r->pos == '\n') {
            if (r->line < UINT32_MAX) r->line++;
            r->line_start = r->pos + 1;
        } else if (*r->pos != ' ' && *r->pos != '\t' && *r->pos != '\r') {
            return;
        }
    }
}

/* The size of the escape at `p`, 0 when it is none. */
static size_t escape_size(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 2 || p[1] == '\0') return 0;
    if (p[1] != 'u') return strchr("\"\\/bfnrt", p[1]) == NULL ? 0 : 2;
    if (end - p < 6) return 0;
    for (size_t i = 2; i < 6; i++) {
        if (gb_json_hex_value(p[i]) < 0) return 0;
    }
    return 6;
}

/* Passes over the string whose opening quote is at `pos` and makes its inside the current text. */
static bool scan_string(struct gb_json_reader *r)
{
    const uint8_t *start = r->pos + 1;
    const uint8_t *p = start;
    r->has_escapes = false;
    for (;;) {
        p = gb_json_plain_run(p, r->end);
        if (p == r->end) {
            (void)fail_at(r, p, "");
            return false;
        }
        if (*p == '"') break;
        if (*p >= 0x80) {
            const uint8_t *next = gb_json_high_run(p, r->end);
            if (!gb_utf8_valid(gb_bytes(p, (size_t)(next - p)))) {
                (void)fail_at(r, p, "a string is not UTF-8");
                return false;
            }
            p = next;
            continue;
        }
        size_t size = *p == '\\' ? escape_size(p, r->end) : 0;
        if (size == 0) {
            (void)fail_at(r, p,
                          *p == '\\' ? "unknown escape in a string"
                                     : "control character in a string, write it as an escape");
            return false;
        }
        r->has_escapes = true;
        p += size;
    }
    r->text = gb_bytes(start, (size_t)(p - start));
    r->pos = p + 1;
    return true;
}

static const uint8_t *skip_digits(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

static bool scan_number(struct gb_json_reader *r)
{
    const uint8_t *start = r->pos;
    const uint8_t *p = start;
    const uint8_t *digits;
    if (*p == '-') p++;
    digits = p;
    p = skip_digits(p, r->end);
    if (p == digits) goto fail;
    if (*digits == '0' && p - digits > 1) {
        (void)fail_at(r, digits, "a number starts with a needless zero");
        return false;
    }
    if (p < r->end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, r->end);
        if (p == digits) goto fail;
    }
    if (p < r->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < r->end && (*p == '+' || *p == '-')) p++;
        digits = p;
        p = skip_digits(p, r->end);
        if (p == digits) goto fail;
    }
    r->text = gb_bytes(start, (size_t)(p - start));
    r->pos = p;
    return true;
fail:
    (void)fail_at(r, p, "expected a digit");
    return false;
}

static bool scan_literal(struct gb_json_reader *r, const char *literal)
{
    for (const char *c = literal; *c != '\0'; c++, r->pos++) {
        if (r->pos < r->end && *r->pos == (uint8_t)*c) continue;
        (void)fail_at(r, r->pos, "expected a value");
        return false;
    }
    return true;
}

static enum gb_json_event emit(struct gb_json_reader *r, enum gb_json_event event)
{
    r->event = event;
    return event;
}

static enum gb_json_event open_container(struct gb_json_reader *r, enum gb_json_event event)
{
    if (r->depth == GB_JSON_DEPTH_MAX) {
        return fail_at(r, r->pos, "nested deeper than 128 levels");
    }
    r->stack[r->depth++] = *r->pos++;
    r->expect = event == GB_JSON_OBJECT_BEGIN ? EXPECT_KEY_OR_END : EXPECT_ELEMENT_OR_END;
    return emit(r, event);
}

static void after_value(struct gb_json_reader *r)
{
    r->expect = r->depth == 0 ? EXPECT_NOTHING : EXPECT_SEPARATOR;
}

static enum gb_json_event close_container(struct gb_json_reader *r)
{
    GB_ASSERT(r->depth > 0);
    r->pos++;
    r->depth--;
    bool object = r->stack[r->depth] == '{';
    after_value(r);
    return emit(r, object ? GB_JSON_OBJECT_END : GB_JSON_ARRAY_END);
}

static enum gb_json_event read_value(struct gb_json_reader *r)
{
    enum gb_json_event event = GB_JSON_ERROR;
    uint8_t c = *r->pos;
    bool ok = false;
    if (c == '"') {
        event = GB_JSON_STRING;
        ok = scan_string(r);
    } else if (c == '{') {
        return open_container(r, GB_JSON_OBJECT_BEGIN);
    } else if (c == '[') {
        return open_container(r, GB_JSON_ARRAY_BEGIN);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        event = GB_JSON_NUMBER;
        ok = scan_number(r);
    } else if (c == 't') {
        event = GB_JSON_TRUE;
        ok = scan_literal(r, "true");
    } else if (c == 'f') {
        event = GB_JSON_FALSE;
        ok = scan_literal(r, "false");
    } else if (c == 'n') {
        event = GB_JSON_NULL;
        ok = scan_literal(r, "null");
    } else {
        return fail_at(r, r->pos, "expected a value");
    }
    if (!ok) return GB_JSON_ERROR;
    after_value(r);
    return emit(r, event);
}

static enum gb_json_event read_key(struct gb_json_reader *r)
{
    if (*r->pos != '"') return fail_at(r, r->pos, "expected a key in double quotes");
    if (!scan_string(r)) return GB_JSON_ERROR;
    r->expect = EXPECT_COLON;
    return emit(r, GB_JSON_KEY);
}

static enum gb_json_event read_after_colon(struct gb_json_reader *r)
{
    if (*r->pos != ':') return fail_at(r, r->pos, "expected ':' after a key");
    r->pos++;
    skip_space(r);
    if (r->pos == r->end) return fail_at(r, r->pos, "");
    r->column = column_at(r, r->pos);
    return read_value(r);
}

/* Passes over the comma before the next key or value; false when the container ends instead. */
static bool next_in_container(struct gb_json_reader *r)
{
    bool object = r->stack[r->depth - 1] == '{';
    if (*r->pos == ',') {
        r->pos++;
        skip_space(r);
        r->expect = object ? EXPECT_KEY : EXPECT_VALUE;
        return true;
    }
    if (*r->pos == (object ? '}' : ']')) return false;
    (void)fail_at(r, r->pos, object ? "expected ',' or '}'" : "expected ',' or ']'");
    return false;
}

enum gb_json_event gb_json_next(struct gb_json_reader *r)
{
    if (r->event == GB_JSON_ERROR) return GB_JSON_ERROR;
    r->text = gb_bytes(NULL, 0);
    r->has_escapes = false;
    skip_space(r);
    if (r->expect == EXPECT_SEPARATOR && r->pos < r->end && !next_in_container(r)) {
        if (r->event == GB_JSON_ERROR) return GB_JSON_ERROR;
        r->column = column_at(r, r->pos);
        return close_container(r);
    }
    r->column = column_at(r, r->pos);
    if (r->expect == EXPECT_NOTHING) {
        if (r->pos == r->end) return emit(r, GB_JSON_END);
        return fail_at(r, r->pos, "text after the end of the document");
    }
    if (r->pos == r->end) return fail_at(r, r->pos, "");
    switch ((enum expect)r->expect) {
    case EXPECT_ELEMENT_OR_END:
        return *r->pos == ']' ? close_container(r) : read_value(r);
    case EXPECT_KEY_OR_END:
        return *r->pos == '}' ? close_container(r) : read_key(r);
    case EXPECT_KEY:
        return read_key(r);
    case EXPECT_COLON:
        return read_after_colon(r);
    case EXPECT_VALUE:
    case EXPECT_SEPARATOR:
    case EXPECT_NOTHING:
        break;
    }
    return read_value(r);
}

bool gb_json_skip(struct gb_json_reader *r)
{
    uint32_t depth = r->depth;
    if (r->event == GB_JSON_OBJECT_BEGIN || r->event == GB_JSON_ARRAY_BEGIN) {
        depth--;
    } else if (r->event != GB_JSON_KEY) {
        return r->event != GB_JSON_ERROR;
    }
    do {
        if (gb_json_next(r) == GB_JSON_ERROR) return false;
    } while (r->depth > depth);
    return true;
}

bool gb_json_skip_text(struct gb_json_reader *r, struct gb_bytes *out)
{
    if (r->event == GB_JSON_KEY && gb_json_next(r) == GB_JSON_ERROR) return false;
    const uint8_t *start = r->text.data; /* of a number */
    if (r->event == GB_JSON_STRING) {
        start--;
    } else if (r->event == GB_JSON_TRUE || r->event == GB_JSON_NULL) {
        start = r->pos - 4;
    } else if (r->event == GB_JSON_FALSE) {
        start = r->pos - 5;
    } else if (r->event != GB_JSON_NUMBER) {
        start = r->pos - 1; /* behind the bracket */
    }
    if (!gb_json_skip(r)) return false;
    *out = gb_bytes(start, (size_t)(r->pos - start));
    return true;
}
