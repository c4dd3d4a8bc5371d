#ifndef GB_BASE_STR_H
#define GB_BASE_STR_H

#include "base/bytes.h"
#include "base/err.h"

/* A growing byte buffer with a hard limit; also a string builder (always terminated when non-NULL).
 * Owns:   `data`; release with gb_str_deinit, which accepts zeroed memory.
 * Thread: one at a time.
 * Errors: growth past `size_max` or out of memory makes `failed` sticky: later appends do nothing,
 *         the caller checks once with gb_str_check. */
struct gb_str {
    char *data;
    size_t size;
    size_t capacity;
    size_t size_max; /* 0 = 64 MiB */
    bool failed;
};

static inline struct gb_bytes gb_str_bytes(const struct gb_str *s)
{
    return gb_bytes(s->data, s->size);
}
/* A builder over the caller's memory of `capacity` >= 2 bytes, the terminator included: it fails
 * instead of growing. Never deinit it and never take from it. */
static inline struct gb_str gb_str_over(void *memory, size_t capacity)
{
    return (struct gb_str){.data = (char *)memory, .capacity = capacity, .size_max = capacity - 1};
}
void gb_str_deinit(struct gb_str *s);
void gb_str_clear(struct gb_str *s); /* keeps the memory, resets `failed` */
/* GB_UNAVAILABLE when failed; `what` names the text that was being built. */
struct gb_err gb_str_check(const struct gb_str *s, const char *what);
/* Room for `size` more bytes and a terminator at data + size, or NULL (failed); the caller then
 * adds what it wrote to `size` (the next append or gb_str_take terminates). */
char *gb_str_reserve(struct gb_str *s, size_t size);
void gb_str_append(struct gb_str *s, struct gb_bytes bytes); /* not a view into `s` itself */
void gb_str_append_c(struct gb_str *s, const char *text);
void gb_str_append_char(struct gb_str *s, char c);
void gb_str_append_u64(struct gb_str *s, uint64_t value);
void gb_str_append_i64(struct gb_str *s, int64_t value);
__attribute__((format(printf, 2, 3))) void gb_str_appendf(struct gb_str *s, const char *format,
                                                          ...);
/* Moves the memory out as a terminated malloc'd string and zeroes `s`; NULL when failed. */
char *gb_str_take(struct gb_str *s);

/* malloc'd, terminated copies; NULL when out of memory. Free with free(). */
char *gb_strdup(const char *text); /* NULL stays NULL */
char *gb_bytes_dup(struct gb_bytes bytes);
__attribute__((format(printf, 1, 2))) char *gb_asprintf(const char *format, ...);

#endif
