#include "domain/envelope_json.h"

#include <string.h>

#include "base/digest.h"
#include "base/json_read.h"
#include "base/json_write.h"

static void write_value(struct gb_json_writer *w, const struct gb_value *v)
{
    switch (v->kind) {
    case GB_VALUE_TEXT:
        if (gb_utf8_valid(v->text)) {
            gb_json_w_string(w, v->text);
            return;
        }
        gb_json_w_object(w); /* a processor's, or of a lax source: kept byte for byte */
        gb_json_w_key(w, "text_b64");
        gb_json_w_base64(w, v->text);
        break;
    case GB_VALUE_INT:
        gb_json_w_object(w);
        gb_json_w_key(w, "int");
        gb_json_w_i64(w, v->number);
        break;
    case GB_VALUE_DECIMAL:
        gb_json_w_object(w);
        gb_json_w_key(w, "decimal");
        gb_json_w_string(w, v->text);
        break;
    case GB_VALUE_BOOL:
        gb_json_w_object(w);
        gb_json_w_key(w, "bool");
        gb_json_w_bool(w, v->number != 0);
        break;
    case GB_VALUE_TIME:
        gb_json_w_object(w);
        gb_json_w_key(w, "time");
        gb_json_w_i64(w, v->number);
        break;
    case GB_VALUE_BYTES:
        gb_json_w_object(w);
        gb_json_w_key(w, "bytes");
        gb_json_w_base64(w, v->text);
        break;
    }
    gb_json_w_object_end(w);
}

static void write_headers(struct gb_json_writer *w, const struct gb_header *headers, size_t count)
{
    gb_json_w_object(w);
    for (size_t i = 0; i < count; i++) {
        gb_json_w_key_bytes(w, headers[i].name);
        write_value(w, &headers[i].value);
    }
    gb_json_w_object_end(w);
}

static void write_payload(struct gb_json_writer *w, struct gb_bytes payload)
{
    if (payload.size == 0) return;
    bool text = memchr(payload.data, '\0', payload.size) == NULL && gb_utf8_valid(payload);
    gb_json_w_key(w, text ? "payload" : "payload_b64");
    if (text) {
        gb_json_w_string(w, payload);
    } else {
        gb_json_w_base64(w, payload);
    }
}

/* No text is written shorter than it is, so this asks for no more than is needed; it spares the
 * buffer most of its growth. */
static size_t size_min(const struct gb_envelope *e)
{
    size_t size = e->id.size + e->subject.size + e->payload.size;
    for (size_t i = 0; i < e->header_count; i++) size += e->headers[i].name.size;
    return size;
}

void gb_envelope_encode(struct gb_str *out, const struct gb_envelope *e)
{
    struct gb_json_writer w;
    if (gb_str_reserve(out, size_min(e)) == NULL) return;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "id");
    gb_json_w_string(&w, e->id);
    if (e->subject.size > 0) {
        gb_json_w_key(&w, "subject");
        gb_json_w_string(&w, e->subject);
    }
    write_payload(&w, e->payload);
    if (e->created_at_ms != 0) {
        gb_json_w_key(&w, "created_at");
        gb_json_w_i64(&w, e->created_at_ms);
    }
    if (e->expires_at_ms != 0) {
        gb_json_w_key(&w, "expires_at");
        gb_json_w_i64(&w, e->expires_at_ms);
    }
    if (e->header_count > 0) {
        gb_json_w_key(&w, "headers");
        write_headers(&w, e->headers, e->header_count);
    }
    gb_json_w_object_end(&w);
}

void gb_headers_encode(struct gb_str *out, const struct gb_header *headers, size_t count)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    write_headers(&w, headers, count);
}

/* --- decoding --------------------------------------------------------------------------------- */

/* Texts are written straight into the envelope's memory, where they stay. */
struct decoder {
    struct gb_json_reader r;
    struct gb_envelope *e;
    struct gb_err err; /* of the first failure */
};

static bool fail(struct decoder *d, const char *what)
{
    if (gb_failed(d->err)) return false;
    if (gb_failed(d->r.err)) {
        d->err = gb_err(GB_INVALID_OUTBOX_RECORD, "stored message: %s", d->r.err.message);
    } else {
        d->err = gb_err(GB_INVALID_OUTBOX_RECORD, "stored message at line %u, column %u: %s",
                        d->r.line, d->r.column, what);
    }
    return false;
}

static bool expect(struct decoder *d, enum gb_json_event want, const char *what)
{
    return gb_json_next(&d->r) == want || fail(d, what);
}

/* A buffer for `size` >= 1 bytes in the envelope's memory. */
static bool reserve(struct decoder *d, size_t size, struct gb_str *out)
{
    char *p = gb_envelope_alloc(d->e, size + 1); /* no overflow: less than the input's size */
    if (p == NULL) {
        d->err = gb_err_no_memory("stored message");
        return false;
    }
    *out = gb_str_over(p, size + 1);
    return true;
}

/* The current key or string. */
static bool take_text(struct decoder *d, struct gb_bytes *out)
{
    struct gb_str text;
    bool lossy = false;
    *out = gb_bytes(NULL, 0);
    if (d->r.text.size == 0) return true;
    if (!reserve(d, d->r.text.size, &text)) return false;
    if (!gb_json_string(&d->r, &text, &lossy) || lossy) {
        return fail(d, "half of a surrogate pair in a string");
    }
    *out = gb_str_bytes(&text);
    return true;
}

static bool read_text(struct decoder *d, struct gb_bytes *out)
{
    return expect(d, GB_JSON_STRING, "a string is expected") && take_text(d, out);
}

static bool read_base64(struct decoder *d, struct gb_bytes *out)
{
    struct gb_str bytes;
    if (!expect(d, GB_JSON_STRING, "a base64 string is expected")) return false;
    *out = gb_bytes(NULL, 0);
    if (d->r.text.size == 0) return true;
    if (!reserve(d, d->r.text.size / 4 * 3 + 1, &bytes)) return false;
    if (d->r.has_escapes || !gb_base64_decode(&bytes, d->r.text)) {
        return fail(d, "the base64 is malformed");
    }
    *out = gb_str_bytes(&bytes);
    return true;
}

static bool read_i64(struct decoder *d, int64_t *out)
{
    (void)gb_json_next(&d->r);
    return gb_json_i64(&d->r, out) || fail(d, "an integer of 64 bits is expected");
}

static bool read_bool(struct decoder *d, int64_t *out)
{
    enum gb_json_event event = gb_json_next(&d->r);
    if (event != GB_JSON_TRUE && event != GB_JSON_FALSE) {
        return fail(d, "true or false is expected");
    }
    *out = event == GB_JSON_TRUE ? 1 : 0;
    return true;
}

/* {"int": 1} and its siblings, after the brace. */
static bool read_typed(struct decoder *d, struct gb_value *v)
{
    static const struct {
        const char *key;
        enum gb_value_kind kind;
    } forms[] = {
        {"int", GB_VALUE_INT},   {"decimal", GB_VALUE_DECIMAL}, {"bool", GB_VALUE_BOOL},
        {"time", GB_VALUE_TIME}, {"bytes", GB_VALUE_BYTES},     {"text_b64", GB_VALUE_TEXT},
    };
    enum { FORMS = sizeof forms / sizeof forms[0] };
    if (!expect(d, GB_JSON_KEY, "the kind of a header value is expected")) return false;
    size_t i = 0;
    while (i < FORMS && !gb_json_text_is(&d->r, forms[i].key)) i++;
    if (i == FORMS) return fail(d, "unknown kind of header value");
    v->kind = forms[i].kind;
    bool ok = false;
    switch (v->kind) {
    case GB_VALUE_INT:
    case GB_VALUE_TIME:
        ok = read_i64(d, &v->number);
        break;
    case GB_VALUE_BOOL:
        ok = read_bool(d, &v->number);
        break;
    case GB_VALUE_DECIMAL:
        ok = read_text(d, &v->text);
        break;
    case GB_VALUE_TEXT:
    case GB_VALUE_BYTES:
        ok = read_base64(d, &v->text);
        break;
    }
    return ok && expect(d, GB_JSON_OBJECT_END, "a header value has one kind");
}

static bool read_value(struct decoder *d, struct gb_value *v)
{
    enum gb_json_event event = gb_json_next(&d->r);
    *v = (struct gb_value){.kind = GB_VALUE_TEXT};
    if (event == GB_JSON_STRING) return take_text(d, &v->text);
    if (event == GB_JSON_OBJECT_BEGIN) return read_typed(d, v);
    return fail(d, "a header value is a string or an object with its kind");
}

static bool put(struct decoder *d, struct gb_bytes name, struct gb_value value)
{
    struct gb_err err = gb_envelope_put_view(d->e, name, value);
    if (!gb_failed(err)) return true;
    if (err.code == GB_PAYLOAD_TOO_LARGE) return fail(d, err.message);
    d->err = err;
    return false;
}

static bool read_headers(struct decoder *d)
{
    if (!expect(d, GB_JSON_OBJECT_BEGIN, "headers are an object")) return false;
    enum gb_json_event event;
    while ((event = gb_json_next(&d->r)) == GB_JSON_KEY) {
        struct gb_bytes name;
        struct gb_value value;
        if (!take_text(d, &name) || !read_value(d, &value) || !put(d, name, value)) return false;
    }
    return event == GB_JSON_OBJECT_END || fail(d, "the name of a header is expected");
}

/* The members of the document; each may come once. */
enum member { ID, SUBJECT, PAYLOAD, PAYLOAD_B64, CREATED_AT, EXPIRES_AT, HEADERS, MEMBERS };

static enum member member_of(const struct gb_json_reader *r)
{
    static const char *const names[MEMBERS] = {
        [ID] = "id",
        [SUBJECT] = "subject",
        [PAYLOAD] = "payload",
        [PAYLOAD_B64] = "payload_b64",
        [CREATED_AT] = "created_at",
        [EXPIRES_AT] = "expires_at",
        [HEADERS] = "headers",
    };
    int i = 0;
    while (i < MEMBERS && !gb_json_text_is(r, names[i])) i++;
    return (enum member)i;
}

static bool read_member(struct decoder *d, enum member member)
{
    switch (member) {
    case ID:
        return read_text(d, &d->e->id);
    case SUBJECT:
        return read_text(d, &d->e->subject);
    case PAYLOAD:
        return read_text(d, &d->e->payload);
    case PAYLOAD_B64:
        return read_base64(d, &d->e->payload);
    case CREATED_AT:
        return read_i64(d, &d->e->created_at_ms);
    case EXPIRES_AT:
        return read_i64(d, &d->e->expires_at_ms);
    case HEADERS:
        return read_headers(d);
    case MEMBERS:
        break;
    }
    return fail(d, "unknown member");
}

static bool read_envelope(struct decoder *d)
{
    unsigned seen = 0;
    enum gb_json_event event;
    if (!expect(d, GB_JSON_OBJECT_BEGIN, "an object is expected")) return false;
    while ((event = gb_json_next(&d->r)) == GB_JSON_KEY) {
        enum member member = member_of(&d->r);
        /* Both forms of the payload count as one. */
        unsigned bit = 1U << (member == PAYLOAD_B64 ? PAYLOAD : member);
        if ((seen & bit) != 0) return fail(d, "this member came before");
        seen |= bit;
        if (!read_member(d, member)) return false;
    }
    if (event != GB_JSON_OBJECT_END) return fail(d, "a member is expected");
    if (d->e->id.size == 0) return fail(d, "the id is missing");
    return expect(d, GB_JSON_END, "text after the object");
}

struct gb_err gb_envelope_decode(struct gb_bytes json, struct gb_envelope **out)
{
    struct decoder d = {.err = gb_ok()};
    /* The texts are shorter than their JSON, terminators included: one block holds them all. */
    struct gb_err err = gb_envelope_new(json.size, &d.e);
    if (gb_failed(err)) return err;
    gb_json_init(&d.r, json);
    if (!read_envelope(&d)) {
        gb_envelope_unref(d.e);
        return d.err;
    }
    *out = d.e;
    return gb_ok();
}

struct gb_err gb_headers_decode_into(struct gb_bytes json, struct gb_envelope *e)
{
    struct decoder d = {.e = e, .err = gb_ok()};
    gb_json_init(&d.r, json);
    if (!read_headers(&d) || !expect(&d, GB_JSON_END, "text after the object")) return d.err;
    return gb_ok();
}
