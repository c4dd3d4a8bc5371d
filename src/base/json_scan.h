#ifndef GB_BASE_JSON_SCAN_H
#define GB_BASE_JSON_SCAN_H

#include <endian.h>

#include "base/bytes.h"

/* What the JSON reader and writer share: finding the end of the part of a string that is copied as
 * it stands. Both are on the message path, hence eight bytes at a time.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: none. */

/* True for a byte that JSON text can't hold as it is, or that needs a check of its encoding. */
static inline bool gb_json_is_special(uint8_t c)
{
    return c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
}

/* The first special byte in [p, end), or `end`. */
static inline const uint8_t *gb_json_plain_run(const uint8_t *p, const uint8_t *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        word = le64toh(word); /* the first byte is the lowest one */
        uint64_t quote = word ^ ones * '"';
        uint64_t backslash = word ^ ones * '\\';
        /* The high bit of a byte: below 0x20, equal to 0, or >= 0x80. A borrow may mark bytes above
         * the first hit only, and the first one is all that counts. */
        uint64_t hits =
            ((word - ones * 0x20) | (quote - ones) | (backslash - ones) | word) & ones * 0x80;
        if (hits != 0) return p + (unsigned)__builtin_ctzll(hits) / 8;
        p += 8;
    }
    while (p < end && !gb_json_is_special(*p)) p++;
    return p;
}

/* The first byte below 0x80 in [p, end), or `end`. */
static inline const uint8_t *gb_json_high_run(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p >= 0x80) p++;
    return p;
}

/* -1 for any other character. */
static inline int gb_json_hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

#endif
