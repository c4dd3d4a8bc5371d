#ifndef GB_BASE_BYTES_H
#define GB_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* struct gb_bytes borrows; struct gb_str (str.h) owns.
 * Owns:   nothing; valid as long as what it points into.
 * Thread: any.
 * Errors: none. */

struct gb_bytes {
    const uint8_t *data; /* may be NULL when size is 0 */
    size_t size;
};

static inline struct gb_bytes gb_bytes(const void *data, size_t size)
{
    return (struct gb_bytes){data, size};
}
/* View of a terminated string; NULL gives the empty view. */
static inline struct gb_bytes gb_bytes_c(const char *text)
{
    return (struct gb_bytes){(const uint8_t *)text, text == NULL ? 0 : strlen(text)};
}
bool gb_bytes_equal(struct gb_bytes a, struct gb_bytes b);
bool gb_bytes_equal_c(struct gb_bytes a, const char *b);
bool gb_bytes_equal_nocase(struct gb_bytes a, struct gb_bytes b); /* ASCII letters only */
bool gb_bytes_ends_with(struct gb_bytes a, const char *suffix);
bool gb_bytes_starts_with_nocase(struct gb_bytes a, const char *prefix);
int gb_bytes_compare(struct gb_bytes a, struct gb_bytes b); /* byte order */

/* UTF-8 (spec 03 §6, 04 B9). Well-formed means: shortest form, no surrogates, <= U+10FFFF. */
bool gb_utf8_valid(struct gb_bytes text);
/* Well-formed, and no control characters U+0000..U+001F, U+007F..U+009F. */
bool gb_utf8_safe(struct gb_bytes text);
/* Well-formed, non-empty, only #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF (SQS). */
bool gb_utf8_sqs_acceptable(struct gb_bytes text);

/* The text as an operator may see it in a message: cut with "..." to fit `capacity` >= 4 bytes,
 * terminated, control characters and what is not UTF-8 as '?'. */
void gb_bytes_show(struct gb_bytes text, char *out, size_t capacity);

/* Big-endian stores. */
static inline void gb_put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static inline void gb_put_u32(uint8_t *p, uint32_t v)
{
    gb_put_u16(p, (uint16_t)(v >> 16));
    gb_put_u16(p + 2, (uint16_t)v);
}
static inline void gb_put_u64(uint8_t *p, uint64_t v)
{
    gb_put_u32(p, (uint32_t)(v >> 32));
    gb_put_u32(p + 4, (uint32_t)v);
}

#endif
