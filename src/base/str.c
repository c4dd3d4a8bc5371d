#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 64, DECIMAL_MAX = 20 };
#define SIZE_MAX_DEFAULT ((size_t)64 << 20)

static size_t limit_of(const struct gb_str *s)
{
    return s->size_max == 0 ? SIZE_MAX_DEFAULT : s->size_max;
}

void gb_str_deinit(struct gb_str *s)
{
    free(s->data);
    *s = (struct gb_str){0};
}

void gb_str_clear(struct gb_str *s)
{
    s->size = 0;
    s->failed = false;
    if (s->data != NULL) s->data[0] = '\0';
}

struct gb_err gb_str_check(const struct gb_str *s, const char *what)
{
    if (!s->failed) return gb_ok();
    return gb_err(GB_UNAVAILABLE, "%s: out of memory, or larger than the limit of %zu bytes", what,
                  limit_of(s));
}

char *gb_str_reserve(struct gb_str *s, size_t size)
{
    size_t limit = limit_of(s);
    if (s->failed) return NULL;
    if (s->size > limit || size > limit - s->size || limit == SIZE_MAX) {
        s->failed = true;
        return NULL;
    }
    size_t needed = s->size + size + 1; /* one byte for the terminator */
    if (needed > s->capacity) {
        size_t capacity = s->capacity < CAPACITY_MIN ? CAPACITY_MIN : s->capacity;
        while (capacity < needed) capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
        if (capacity > limit + 1) capacity = limit + 1;
        char *data = realloc(s->data, capacity);
        if (data == NULL) {
            s->failed = true;
            return NULL;
        }
        s->data = data;
        s->capacity = capacity;
    }
    s->data[s->size] = '\0';
    return s->data + s->size;
}

void gb_str_append(struct gb_str *s, struct gb_bytes bytes)
{
    char *room = gb_str_reserve(s, bytes.size);
    if (room == NULL) return;
    if (bytes.size > 0) memcpy(room, bytes.data, bytes.size);
    room[bytes.size] = '\0';
    s->size += bytes.size;
}

void gb_str_append_c(struct gb_str *s, const char *text)
{
    gb_str_append(s, gb_bytes_c(text));
}

void gb_str_append_char(struct gb_str *s, char c)
{
    gb_str_append(s, gb_bytes(&c, 1));
}

void gb_str_append_u64(struct gb_str *s, uint64_t value)
{
    char digits[DECIMAL_MAX];
    size_t start = sizeof digits;
    do {
        digits[--start] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    gb_str_append(s, gb_bytes(digits + start, sizeof digits - start));
}

void gb_str_append_i64(struct gb_str *s, int64_t value)
{
    if (value < 0) gb_str_append_char(s, '-');
    /* Negated as unsigned: -INT64_MIN has no signed value. */
    gb_str_append_u64(s, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void gb_str_appendf(struct gb_str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size < 0) s->failed = true;
    char *room = size < 0 ? NULL : gb_str_reserve(s, (size_t)size);
    if (room != NULL) {
        (void)vsnprintf(room, (size_t)size + 1, format, again);
        s->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

char *gb_str_take(struct gb_str *s)
{
    char *text = NULL;
    if (gb_str_reserve(s, 0) != NULL) { /* makes memory for the empty string, and terminates */
        text = s->data;
        s->data = NULL;
    }
    gb_str_deinit(s);
    return text;
}

char *gb_strdup(const char *text)
{
    return text == NULL ? NULL : gb_bytes_dup(gb_bytes_c(text));
}

char *gb_bytes_dup(struct gb_bytes bytes)
{
    if (bytes.size == SIZE_MAX) return NULL;
    char *copy = malloc(bytes.size + 1);
    if (copy == NULL) return NULL;
    if (bytes.size > 0) memcpy(copy, bytes.data, bytes.size);
    copy[bytes.size] = '\0';
    return copy;
}

char *gb_asprintf(const char *format, ...)
{
    /* Not vasprintf: its allocation is the C library's own and can't be made to fail in a test. */
    char *text = NULL;
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size >= 0) text = malloc((size_t)size + 1);
    if (text != NULL) (void)vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
