#include <math.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/json_read.h"
#include "base/json_scan.h"

/* Values of texts that the reader (json_read.c) has found well-formed. */

/* A number is converted from a terminated copy; no number of a real document is longer. */
enum { NUMBER_TEXT_MAX = 128 };

static const uint8_t replacement[3] = {0xEF, 0xBF, 0xBD}; /* U+FFFD */

static uint32_t hex4(const uint8_t *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value << 4 | (uint32_t)gb_json_hex_value(p[i]);
    return value;
}

static size_t put_utf8(uint32_t point, uint8_t out[4])
{
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (uint8_t)(0xC0 | point >> 6);
        out[1] = (uint8_t)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (uint8_t)(0xE0 | point >> 12);
        out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | point >> 18);
    out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (point & 0x3F));
    return 4;
}

/* Decodes the escape at `*p`, which scan_string has checked, and steps over it. */
static size_t unescape(const uint8_t **p, const uint8_t *end, uint8_t out[4], bool *lossy)
{
    static const char names[] = "bfnrt";
    static const char values[] = "\b\f\n\r\t";
    const uint8_t *at = *p;
    if (at[1] != 'u') {
        const char *name = strchr(names, at[1]);
        out[0] = name == NULL ? at[1] : (uint8_t)values[name - names];
        *p = at + 2;
        return 1;
    }
    uint32_t point = hex4(at + 2);
    *p = at + 6;
    if (point < 0xD800 || point > 0xDFFF) return put_utf8(point, out);
    if (point < 0xDC00 && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
        uint32_t low = hex4(at + 8);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *p = at + 12;
            return put_utf8(0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00), out);
        }
    }
    *lossy = true;
    memcpy(out, replacement, sizeof replacement);
    return sizeof replacement;
}

bool gb_json_string(const struct gb_json_reader *r, struct gb_str *out, bool *lossy)
{
    GB_ASSERT(r->event == GB_JSON_KEY || r->event == GB_JSON_STRING);
    if (!r->has_escapes) {
        gb_str_append(out, r->text);
        return !out->failed;
    }
    /* No escape grows: six bytes of text stand for three at most, twelve for four. */
    uint8_t *to = (uint8_t *)gb_str_reserve(out, r->text.size);
    if (to == NULL) return false;
    const uint8_t *p = r->text.data;
    const uint8_t *end = p + r->text.size;
    bool lost = false;
    while (p < end) {
        const uint8_t *stop = memchr(p, '\\', (size_t)(end - p));
        if (stop == NULL) stop = end;
        memcpy(to, p, (size_t)(stop - p));
        to += stop - p;
        p = stop;
        if (p == end) break;
        uint8_t bytes[4];
        size_t size = unescape(&p, end, bytes, &lost);
        memcpy(to, bytes, size);
        to += size;
    }
    *to = '\0';
    out->size = (size_t)(to - (uint8_t *)out->data);
    if (lost && lossy != NULL) *lossy = true;
    return true;
}

bool gb_json_text_is(const struct gb_json_reader *r, const char *text)
{
    GB_ASSERT(r->event == GB_JSON_KEY || r->event == GB_JSON_STRING);
    struct gb_bytes want = gb_bytes_c(text);
    if (!r->has_escapes) return gb_bytes_equal(r->text, want);
    const uint8_t *p = r->text.data;
    const uint8_t *end = p + r->text.size;
    size_t at = 0;
    while (p < end) {
        uint8_t bytes[4] = {*p};
        size_t size = 1;
        bool lossy = false;
        if (*p == '\\') {
            size = unescape(&p, end, bytes, &lossy);
        } else {
            p++;
        }
        if (want.size - at < size || memcmp(want.data + at, bytes, size) != 0) return false;
        at += size;
    }
    return at == want.size;
}

/* The digits of an integer without sign; false for anything else and on overflow. */
static bool magnitude(struct gb_bytes text, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c < '0' || c > '9') return false;
        if (__builtin_mul_overflow(value, 10U, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(c - '0'), &value)) return false;
    }
    *out = value;
    return text.size > 0;
}

bool gb_json_i64(const struct gb_json_reader *r, int64_t *out)
{
    if (r->event != GB_JSON_NUMBER) return false;
    bool negative = r->text.data[0] == '-';
    size_t sign = negative ? 1 : 0;
    uint64_t value = 0;
    if (!magnitude(gb_bytes(r->text.data + sign, r->text.size - sign), &value)) return false;
    if (value > (uint64_t)INT64_MAX + sign) return false;
    if (!negative) {
        *out = (int64_t)value;
    } else {
        *out = value > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)value;
    }
    return true;
}

bool gb_json_u64(const struct gb_json_reader *r, uint64_t *out)
{
    return r->event == GB_JSON_NUMBER && magnitude(r->text, out);
}

bool gb_json_double(const struct gb_json_reader *r, double *out)
{
    if (r->event != GB_JSON_NUMBER || r->text.size >= NUMBER_TEXT_MAX) return false;
    char text[NUMBER_TEXT_MAX];
    memcpy(text, r->text.data, r->text.size);
    text[r->text.size] = '\0';
    double value = strtod(text, NULL);
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}
