#include "base/id.h"

#include <stddef.h>

static const char hex_digits[] = "0123456789abcdef";

static void append_hex(char *out, uint64_t value)
{
    for (size_t i = 0; i < 16; i++) out[i] = hex_digits[value >> (60 - 4 * i) & 0xF];
}

void gb_id_hex(struct gb_reactor *r, char out[GB_ID_HEX_SIZE])
{
    append_hex(out, gb_reactor_random(r));
    append_hex(out + 16, gb_reactor_random(r));
    out[GB_ID_HEX_SIZE - 1] = '\0';
}

void gb_id_uuid(struct gb_reactor *r, char out[GB_ID_UUID_SIZE])
{
    char digits[GB_ID_HEX_SIZE];
    gb_id_hex(r, digits);
    /* RFC 9562 §5.4: version 4 and variant 10 take six of the random bits. */
    digits[12] = '4';
    digits[16] = "89ab"[(unsigned char)digits[16] & 3];
    size_t from = 0;
    for (size_t i = 0; i < GB_ID_UUID_SIZE - 1; i++) {
        out[i] = i == 8 || i == 13 || i == 18 || i == 23 ? '-' : digits[from++];
    }
    out[GB_ID_UUID_SIZE - 1] = '\0';
}
