#include "base/bytes.h"

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

bool gb_bytes_equal(struct gb_bytes a, struct gb_bytes b)
{
    if (a.size != b.size) return false;
    return a.size == 0 || memcmp(a.data, b.data, a.size) == 0; /* memcmp must not see NULL */
}

bool gb_bytes_equal_c(struct gb_bytes a, const char *b)
{
    return gb_bytes_equal(a, gb_bytes_c(b));
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

bool gb_bytes_equal_nocase(struct gb_bytes a, struct gb_bytes b)
{
    if (a.size != b.size) return false;
    for (size_t i = 0; i < a.size; i++) {
        if (lower(a.data[i]) != lower(b.data[i])) return false;
    }
    return true;
}

bool gb_bytes_ends_with(struct gb_bytes a, const char *suffix)
{
    struct gb_bytes want = gb_bytes_c(suffix);
    if (a.size < want.size) return false;
    return want.size == 0 || gb_bytes_equal(gb_bytes(a.data + a.size - want.size, want.size), want);
}

bool gb_bytes_starts_with_nocase(struct gb_bytes a, const char *prefix)
{
    struct gb_bytes want = gb_bytes_c(prefix);
    if (a.size < want.size) return false;
    return gb_bytes_equal_nocase(gb_bytes(a.data, want.size), want);
}

int gb_bytes_compare(struct gb_bytes a, struct gb_bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0) return order;
    return (a.size > b.size) - (a.size < b.size);
}

static bool is_tail(uint8_t c)
{
    return (c & 0xC0) == 0x80;
}

/* Decodes one multi-byte sequence; 0 when it is malformed (Unicode 15, table 3-7), else its length.
 */
static size_t decode_sequence(const uint8_t *p, size_t left, uint32_t *out)
{
    uint8_t lead = p[0];
    if (lead < 0xC2 || lead > 0xF4) return 0;
    if (lead < 0xE0) {
        if (left < 2 || !is_tail(p[1])) return 0;
        *out = (uint32_t)(lead & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (lead < 0xF0) {
        if (left < 3 || !is_tail(p[1]) || !is_tail(p[2])) return 0;
        *out = (uint32_t)(lead & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return *out < 0x800 || (*out >= 0xD800 && *out <= 0xDFFF) ? 0 : 3;
    }
    if (left < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) return 0;
    *out = (uint32_t)(lead & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
           (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return *out < 0x10000 || *out > 0x10FFFF ? 0 : 4;
}

/* The number of leading bytes, in steps of eight, that are ASCII and, when `printable`, neither
 * below 0x20 nor 0x7F: most texts are nothing else, so this decides the speed. */
static size_t ascii_run(struct gb_bytes text, bool printable)
{
    size_t i = 0;
    while (text.size - i >= 8) {
        uint64_t word;
        memcpy(&word, text.data + i, sizeof word);
        uint64_t bad = word;
        if (printable) bad |= (word - EACH_BYTE(0x20)) | (word + EACH_BYTE(0x01));
        if ((bad & EACH_BYTE(0x80)) != 0) break;
        i += 8;
    }
    return i;
}

typedef bool accept_fn(uint32_t point);

/* Well-formed, and every code point but printable ASCII is accepted by `accept` (NULL: all are). */
static bool check(struct gb_bytes text, accept_fn *accept)
{
    size_t i = 0;
    while (i < text.size) {
        i += ascii_run(gb_bytes(text.data + i, text.size - i), accept != NULL);
        /* The fast path is tried again after the ASCII that follows a sequence or a short rest. */
        size_t stop = text.size - i < 8 ? text.size : i + 8;
        while (i < stop) {
            uint32_t point = text.data[i];
            size_t length = 1;
            if (point >= 0x80) length = decode_sequence(text.data + i, text.size - i, &point);
            if (length == 0) return false;
            if (accept != NULL && !accept(point)) return false;
            i += length;
        }
    }
    return true;
}

static bool is_not_control(uint32_t point)
{
    return point >= 0x20 && (point < 0x7F || point > 0x9F);
}

static bool is_sqs_character(uint32_t point)
{
    if (point < 0x20) return point == 0x9 || point == 0xA || point == 0xD;
    return point != 0xFFFE && point != 0xFFFF;
}

bool gb_utf8_valid(struct gb_bytes text)
{
    return check(text, NULL);
}

bool gb_utf8_safe(struct gb_bytes text)
{
    return check(text, is_not_control);
}

bool gb_utf8_sqs_acceptable(struct gb_bytes text)
{
    return text.size > 0 && check(text, is_sqs_character);
}

void gb_bytes_show(struct gb_bytes text, char *out, size_t capacity)
{
    size_t size = text.size;
    bool cut = size > capacity - 1;
    if (cut) size = capacity - 4;
    while (cut && size > 0 && (text.data[size] & 0xC0) == 0x80) size--;
    bool safe = gb_utf8_safe(text); /* U+0080 to U+009F are controls as well */
    for (size_t i = 0; i < size; i++) {
        uint8_t c = text.data[i];
        bool plain = c >= 0x20 && c != 0x7F && (c < 0x80 || safe);
        out[i] = plain ? (char)c : '?';
    }
    if (cut) memcpy(out + size, "...", 3);
    out[cut ? size + 3 : size] = '\0';
}
