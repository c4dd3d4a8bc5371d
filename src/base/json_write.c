#include "base/json_write.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/digest.h"
#include "base/json_scan.h"

enum { DOUBLE_TEXT_MAX = 32 };

void gb_json_w_init(struct gb_json_writer *w, struct gb_str *out)
{
    *w = (struct gb_json_writer){.out = out};
}

/* Before a value: the comma that separates it, and the check that the document has one value. */
static void begin_value(struct gb_json_writer *w)
{
    GB_ASSERT(w->depth > 0 || !w->comma);
    if (w->comma) gb_str_append_char(w->out, ',');
    w->comma = true;
}

static void open_container(struct gb_json_writer *w, char c)
{
    begin_value(w);
    gb_str_append_char(w->out, c);
    w->depth++;
    w->comma = false;
}

static void close_container(struct gb_json_writer *w, char c)
{
    GB_ASSERT(w->depth > 0);
    gb_str_append_char(w->out, c);
    w->depth--;
    w->comma = true;
}

void gb_json_w_object(struct gb_json_writer *w)
{
    open_container(w, '{');
}

void gb_json_w_object_end(struct gb_json_writer *w)
{
    close_container(w, '}');
}

void gb_json_w_array(struct gb_json_writer *w)
{
    open_container(w, '[');
}

void gb_json_w_array_end(struct gb_json_writer *w)
{
    close_container(w, ']');
}

void gb_json_w_key(struct gb_json_writer *w, const char *key)
{
    GB_ASSERT(w->depth > 0);
    size_t size = strlen(key);
    char *at = gb_str_reserve(w->out, size + 4);
    bool comma = w->comma;
    w->comma = false;
    if (at == NULL) return;
    if (comma) *at++ = ',';
    *at++ = '"';
    memcpy(at, key, size);
    at += size;
    *at++ = '"';
    *at++ = ':';
    *at = '\0';
    w->out->size = (size_t)(at - w->out->data);
}

static void append_quoted(struct gb_str *out, struct gb_bytes text)
{
    char *at = gb_str_reserve(out, text.size + 2);
    if (at == NULL) return;
    const uint8_t *data = text.data;
    if (text.size > 0 && gb_json_plain_run(data, data + text.size) != data + text.size) {
        gb_str_append_char(out, '"');
        gb_json_escape(out, text);
        gb_str_append_char(out, '"');
        return;
    }
    *at++ = '"';
    if (text.size > 0) memcpy(at, text.data, text.size);
    at += text.size;
    *at++ = '"';
    *at = '\0';
    out->size += text.size + 2;
}

void gb_json_w_key_bytes(struct gb_json_writer *w, struct gb_bytes key)
{
    GB_ASSERT(w->depth > 0);
    if (w->comma) gb_str_append_char(w->out, ',');
    append_quoted(w->out, key);
    gb_str_append_char(w->out, ':');
    w->comma = false;
}

void gb_json_w_string(struct gb_json_writer *w, struct gb_bytes text)
{
    begin_value(w);
    append_quoted(w->out, text);
}

void gb_json_w_string_c(struct gb_json_writer *w, const char *text)
{
    gb_json_w_string(w, gb_bytes_c(text));
}

void gb_json_w_i64(struct gb_json_writer *w, int64_t value)
{
    begin_value(w);
    gb_str_append_i64(w->out, value);
}

void gb_json_w_u64(struct gb_json_writer *w, uint64_t value)
{
    begin_value(w);
    gb_str_append_u64(w->out, value);
}

/* The digits without point, and the place of the point: 0.<digits> * 10^point. */
static size_t shortest_digits(double value, char digits[DOUBLE_TEXT_MAX], int *point)
{
    char text[DOUBLE_TEXT_MAX];
    /* 15 digits survive a normal double, so fewer are these without their trailing zeros. */
    int precision = isnormal(value) ? DBL_DIG : 1;
    do {
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, value);
    } while (strtod(text, NULL) != value && precision++ < DBL_DECIMAL_DIG);
    size_t size = 0;
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') digits[size++] = *p;
    }
    while (size > 1 && digits[size - 1] == '0') size--;
    *point = (int)strtol(p + 1, NULL, 10) + 1;
    return size;
}

void gb_json_w_double(struct gb_json_writer *w, double value)
{
    enum { PLAIN_MAX = 21, ZEROS_MAX = 6 }; /* digits before the point, zeros behind it */
    static const char zeros[] = "000000000000000000000";
    char digits[DOUBLE_TEXT_MAX] = "0";
    int point;
    GB_ASSERT(isfinite(value));
    begin_value(w);
    if (signbit(value) && value != 0) gb_str_append_char(w->out, '-');
    size_t size = shortest_digits(fabs(value), digits, &point);
    if (value == 0) {
        gb_str_append_char(w->out, '0');
    } else if (point > PLAIN_MAX || point <= -ZEROS_MAX) {
        gb_str_append_char(w->out, digits[0]);
        if (size > 1) gb_str_append_char(w->out, '.');
        gb_str_append(w->out, gb_bytes(digits + 1, size - 1));
        gb_str_append_c(w->out, point > 0 ? "e+" : "e");
        gb_str_append_i64(w->out, point - 1);
    } else if (point <= 0) {
        gb_str_append_c(w->out, "0.");
        gb_str_append(w->out, gb_bytes(zeros, (size_t)-point));
        gb_str_append(w->out, gb_bytes(digits, size));
    } else {
        size_t whole = (size_t)point < size ? (size_t)point : size;
        gb_str_append(w->out, gb_bytes(digits, whole));
        gb_str_append(w->out, gb_bytes(zeros, (size_t)point - whole));
        if (whole < size) gb_str_append_char(w->out, '.');
        gb_str_append(w->out, gb_bytes(digits + whole, size - whole));
    }
}

void gb_json_w_bool(struct gb_json_writer *w, bool value)
{
    begin_value(w);
    gb_str_append_c(w->out, value ? "true" : "false");
}

void gb_json_w_null(struct gb_json_writer *w)
{
    begin_value(w);
    gb_str_append_c(w->out, "null");
}

void gb_json_w_raw(struct gb_json_writer *w, struct gb_bytes json)
{
    GB_ASSERT(json.size > 0);
    begin_value(w);
    gb_str_append(w->out, json);
}

void gb_json_w_base64(struct gb_json_writer *w, struct gb_bytes input)
{
    begin_value(w);
    gb_str_append_char(w->out, '"');
    gb_base64_append(w->out, input);
    gb_str_append_char(w->out, '"');
}

static void append_escape(struct gb_str *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte and letter by turns */
    for (const char *pair = shorts; *pair != '\0'; pair += 2) {
        if ((uint8_t)*pair != c) continue;
        gb_str_append(out, gb_bytes((const char[]){'\\', pair[1]}, 2));
        return;
    }
    const char text[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 0x0F]};
    gb_str_append(out, gb_bytes(text, sizeof text));
}

/* A run of bytes >= 0x80 that is not UTF-8 as a whole: keeps its good sequences. */
static void append_repaired(struct gb_str *out, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        size_t left = (size_t)(end - p);
        size_t size = 2;
        while (size <= 4 && size <= left && !gb_utf8_valid(gb_bytes(p, size))) size++;
        bool good = size <= 4 && size <= left;
        gb_str_append(out, good ? gb_bytes(p, size) : gb_bytes_c("\xEF\xBF\xBD"));
        p += good ? size : 1;
    }
}

void gb_json_escape(struct gb_str *out, struct gb_bytes text)
{
    if (text.size == 0) return;
    const uint8_t *end = text.data + text.size;
    const uint8_t *start = text.data; /* what from here to `p` needs no escape */
    const uint8_t *p = start;
    while ((p = gb_json_plain_run(p, end)) < end && !out->failed) {
        const uint8_t *next = *p >= 0x80 ? gb_json_high_run(p, end) : p + 1;
        if (*p < 0x80 || !gb_utf8_valid(gb_bytes(p, (size_t)(next - p)))) {
            gb_str_append(out, gb_bytes(start, (size_t)(p - start)));
            if (*p < 0x80) {
                append_escape(out, *p);
            } else {
                append_repaired(out, p, next);
            }
            start = next;
        }
        p = next;
    }
    gb_str_append(out, gb_bytes(start, (size_t)(p - start)));
}
