#ifndef GB_BASE_JSON_WRITE_H
#define GB_BASE_JSON_WRITE_H

#include "base/str.h"

/* Streaming JSON writer into a gb_str: commas by itself, no white space.
 * Owns:   nothing; appends to the caller's buffer, whose `failed` flag is the error.
 * Thread: one at a time.
 * Errors: unbalanced calls are assertions. Text that is not UTF-8 is written with U+FFFD for each
 *         bad byte. */
struct gb_json_writer {
    struct gb_str *out;
    uint32_t depth;
    bool comma;
};

void gb_json_w_init(struct gb_json_writer *w, struct gb_str *out);
void gb_json_w_object(struct gb_json_writer *w);
void gb_json_w_object_end(struct gb_json_writer *w);
void gb_json_w_array(struct gb_json_writer *w);
void gb_json_w_array_end(struct gb_json_writer *w);
void gb_json_w_key(struct gb_json_writer *w, const char *key); /* key needs no escapes */
void gb_json_w_key_bytes(struct gb_json_writer *w, struct gb_bytes key);
void gb_json_w_string(struct gb_json_writer *w, struct gb_bytes text);
void gb_json_w_string_c(struct gb_json_writer *w, const char *text);
void gb_json_w_i64(struct gb_json_writer *w, int64_t value);
void gb_json_w_u64(struct gb_json_writer *w, uint64_t value);
/* Finite. The shortest digits that read back as the same double, as ECMAScript prints them: 1, 0.1,
 * 1e+21, 1e-7; zero has no sign. */
void gb_json_w_double(struct gb_json_writer *w, double value);
void gb_json_w_bool(struct gb_json_writer *w, bool value);
void gb_json_w_null(struct gb_json_writer *w);
void gb_json_w_raw(struct gb_json_writer *w, struct gb_bytes json); /* one finished value */
/* String value from base64 of the input, without an intermediate copy. */
void gb_json_w_base64(struct gb_json_writer *w, struct gb_bytes input);
/* Appends `text` escaped, without quotes. */
void gb_json_escape(struct gb_str *out, struct gb_bytes text);

#endif
