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
        gb_json_w_object(w); /* text of a lax source: kept byte for byte */
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
    if (text)
        gb_json_w_string(w, payload);
    else
        gb_json_w_base64(w, payload);
}

/* An id or subject that is not UTF-8 can't come from any adapter; it would be written with U+FFFD. */
void gb_envelope_encode(struct gb_str *out, const struct gb_envelope *e)
{
    struct gb_json_writer w;
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

struct decoder {
    struct gb_json_reader r;
    struct gb_envelope *e;
    struct gb_str text, name;
    struct gb_err err;
};

static bool fail(struct decoder *d, const char *what)
{
    if (!gb_failed(d->err))
        d->err = gb_err(GB_INVALID_OUTBOX_RECORD, "stored message, line %u column %u: %s",
                        d->r.line, d->r.column, d->r.err.code != GB_OK ? d->r.err.message : what);
    return false;
}

static bool check(struct decoder *d, struct gb_err err)
{
    if (gb_failed(err) && !gb_failed(d->err)) d->err = err;
    return !gb_failed(err);
}

/* The current string unescaped; a view into the input when it holds no escapes. */
static bool read_text(struct decoder *d, struct gb_str *scratch, struct gb_bytes *out)
{
    if (!d->r.has_escapes) {
        *out = d->r.text;
        return true;
    }
    bool lossy = false;
    gb_str_clear(scratch);
    if (!gb_json_string(&d->r, scratch, &lossy) || lossy) return fail(d, "a string is damaged");
    *out = gb_str_bytes(scratch);
    return true;
}

static bool read_base64(struct decoder *d, struct gb_bytes *out)
{
    gb_str_clear(&d->text);
    if (d->r.has_escapes || !gb_base64_decode(&d->text, d->r.text))
        return fail(d, "base64 is damaged");
    *out = gb_str_bytes(&d->text);
    return true;
}

static bool expect(struct decoder *d, enum gb_json_event want, const char *what)
{
    return gb_json_next(&d->r) == want ? true : fail(d, what);
}

static bool read_i64(struct decoder *d, int64_t *out)
{
    if (gb_json_next(&d->r) != GB_JSON_NUMBER || !gb_json_i64(&d->r, out))
        return fail(d, "an integer is expected");
    return true;
}

/* {"int": n} and its siblings; the object's begin was read. */
static bool read_typed(struct decoder *d, struct gb_value *v)
{
    if (!expect(d, GB_JSON_KEY, "a value kind is expected")) return false;
    if (gb_json_text_is(&d->r, "int") || gb_json_text_is(&d->r, "time")) {
        v->kind = gb_json_text_is(&d->r, "int") ? GB_VALUE_INT : GB_VALUE_TIME;
        if (!read_i64(d, &v->number)) return false;
    } else if (gb_json_text_is(&d->r, "bool")) {
        enum gb_json_event ev = gb_json_next(&d->r);
        if (ev != GB_JSON_TRUE && ev != GB_JSON_FALSE) return fail(d, "true or false is expected");
        v->kind = GB_VALUE_BOOL;
        v->number = ev == GB_JSON_TRUE;
    } else if (gb_json_text_is(&d->r, "decimal")) {
        v->kind = GB_VALUE_DECIMAL;
        if (!expect(d, GB_JSON_STRING, "a decimal text is expected") ||
            !read_text(d, &d->text, &v->text))
            return false;
    } else if (gb_json_text_is(&d->r, "bytes") || gb_json_text_is(&d->r, "text_b64")) {
        v->kind = gb_json_text_is(&d->r, "bytes") ? GB_VALUE_BYTES : GB_VALUE_TEXT;
        if (!expect(d, GB_JSON_STRING, "base64 is expected") || !read_base64(d, &v->text))
            return false;
    } else {
        return fail(d, "unknown value kind");
    }
    return expect(d, GB_JSON_OBJECT_END, "one kind a value");
}

static bool read_value(struct decoder *d, struct gb_value *v)
{
    *v = (struct gb_value){.kind = GB_VALUE_TEXT};
    enum gb_json_event ev = gb_json_next(&d->r);
    if (ev == GB_JSON_STRING) return read_text(d, &d->text, &v->text);
    if (ev == GB_JSON_OBJECT_BEGIN) return read_typed(d, v);
    return fail(d, "a header value is text or a typed object");
}

/* After the object's begin. */
static bool read_headers(struct decoder *d)
{
    for (;;) {
        enum gb_json_event ev = gb_json_next(&d->r);
        if (ev == GB_JSON_OBJECT_END) return true;
        if (ev != GB_JSON_KEY) return fail(d, "a header name is expected");
        struct gb_bytes name;
        struct gb_value value;
        if (!read_text(d, &d->name, &name)) return false;
        if (!read_value(d, &value)) return false;
        if (!check(d, gb_envelope_put(d->e, name, value))) return false;
    }
}

static bool read_string(struct decoder *d,
                        struct gb_err (*set)(struct gb_envelope *, struct gb_bytes))
{
    struct gb_bytes text;
    return expect(d, GB_JSON_STRING, "a string is expected") && read_text(d, &d->text, &text) &&
           check(d, set(d->e, text));
}

static bool read_member(struct decoder *d)
{
    if (gb_json_text_is(&d->r, "id")) return read_string(d, gb_envelope_set_id);
    if (gb_json_text_is(&d->r, "subject")) return read_string(d, gb_envelope_set_subject);
    if (gb_json_text_is(&d->r, "payload")) return read_string(d, gb_envelope_set_payload);
    if (gb_json_text_is(&d->r, "created_at")) return read_i64(d, &d->e->created_at_ms);
    if (gb_json_text_is(&d->r, "expires_at")) return read_i64(d, &d->e->expires_at_ms);
    if (gb_json_text_is(&d->r, "headers"))
        return expect(d, GB_JSON_OBJECT_BEGIN, "headers are an object") && read_headers(d);
    if (gb_json_text_is(&d->r, "payload_b64")) {
        struct gb_bytes payload;
        return expect(d, GB_JSON_STRING, "base64 is expected") && read_base64(d, &payload) &&
               check(d, gb_envelope_set_payload(d->e, payload));
    }
    return fail(d, "unknown member");
}

static bool read_envelope(struct decoder *d)
{
    if (!expect(d, GB_JSON_OBJECT_BEGIN, "an object is expected")) return false;
    for (;;) {
        enum gb_json_event ev = gb_json_next(&d->r);
        if (ev == GB_JSON_OBJECT_END) break;
        if (ev != GB_JSON_KEY) return fail(d, "a member is expected");
        if (!read_member(d)) return false;
    }
    if (!expect(d, GB_JSON_END, "text after the object")) return false;
    return d->e->id.size > 0 ? true : fail(d, "id is missing");
}

static void end_decoder(struct decoder *d)
{
    gb_str_deinit(&d->text);
    gb_str_deinit(&d->name);
}

struct gb_err gb_envelope_decode(struct gb_bytes json, struct gb_envelope **out)
{
    struct decoder d = {.err = gb_ok()};
    struct gb_err err = gb_envelope_new(json.size, &d.e);
    if (gb_failed(err)) return err;
    gb_json_init(&d.r, json);
    bool ok = read_envelope(&d);
    end_decoder(&d);
    if (!ok) {
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
    bool ok = expect(&d, GB_JSON_OBJECT_BEGIN, "headers are an object") && read_headers(&d) &&
              expect(&d, GB_JSON_END, "text after the object");
    end_decoder(&d);
    return ok ? gb_ok() : d.err;
}
