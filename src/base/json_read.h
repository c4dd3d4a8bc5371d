#ifndef GB_BASE_JSON_READ_H
#define GB_BASE_JSON_READ_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"

/* Pull reader for one JSON document (RFC 8259), strict: one value, no trailing data, valid UTF-8,
 * no duplicate checks (the caller's business), depth limited. It allocates nothing and copies
 * nothing: values are views into the input, strings still escaped until gb_json_string.
 * Owns:   nothing; borrows the input.
 * Thread: one at a time.
 * Errors: GB_INVALID_PAYLOAD with line and column; sticky: after an error every call answers
 *         GB_JSON_ERROR. */

enum gb_json_event {
    GB_JSON_ERROR = 0,
    GB_JSON_OBJECT_BEGIN,
    GB_JSON_OBJECT_END,
    GB_JSON_ARRAY_BEGIN,
    GB_JSON_ARRAY_END,
    GB_JSON_KEY,    /* text: escaped, without quotes */
    GB_JSON_STRING, /* text: escaped, without quotes */
    GB_JSON_NUMBER, /* text: as written */
    GB_JSON_TRUE,
    GB_JSON_FALSE,
    GB_JSON_NULL,
    GB_JSON_END, /* the document is complete */
};

enum { GB_JSON_DEPTH_MAX = 128 };

struct gb_json_reader {
    struct gb_bytes text;  /* text of the current KEY, STRING or NUMBER */
    bool has_escapes;      /* the text holds a backslash */
    uint32_t line, column; /* 1-based, of the current token (column in bytes) */
    struct gb_err err;     /* when GB_JSON_ERROR */
    /* private */
    const uint8_t *pos, *end, *line_start;
    uint32_t depth;
    uint8_t stack[GB_JSON_DEPTH_MAX];
    uint8_t expect;
    enum gb_json_event event;
};

void gb_json_init(struct gb_json_reader *r, struct gb_bytes input);
enum gb_json_event gb_json_next(struct gb_json_reader *r);
/* After a BEGIN: to its END; after a KEY: past its value; after a scalar: nothing. False on
 * error. */
bool gb_json_skip(struct gb_json_reader *r);
/* The same, and the value that was passed over as it is written, for a reader of its own; a scalar
 * is its own text, with a string's quotes. Not after an END. */
bool gb_json_skip_text(struct gb_json_reader *r, struct gb_bytes *out);
/* Appends the unescaped text of the current KEY or STRING. A lone surrogate escape becomes U+FFFD
 * and sets `*lossy` when that is not NULL. False when the buffer fails. */
bool gb_json_string(const struct gb_json_reader *r, struct gb_str *out, bool *lossy);
/* Current key or string equals the plain text (escapes considered). */
bool gb_json_text_is(const struct gb_json_reader *r, const char *text);
/* Integers exactly: no fraction, no exponent, in range; false otherwise ("-0" is no u64). */
bool gb_json_i64(const struct gb_json_reader *r, int64_t *out);
bool gb_json_u64(const struct gb_json_reader *r, uint64_t *out);
/* False out of range, and for a text of 128 bytes or more. */
bool gb_json_double(const struct gb_json_reader *r, double *out);

#endif
