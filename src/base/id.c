#include "base/id.h"

#include <stddef.h>

static const char hex_digits[] = "0123456789abcdef";

static void print_hex(char *out, uint64_t value)
{
    for (size_t i = 0; i < 16; i++) out[i] = hex_digits[value >> (60 - 4 * i) & 0xF];
}

void gb_id_hex(struct gb_reactor *r, char out[GB_ID_HEX_SIZE])
{
    print_hex(out, gb_reactor_random(r));
    print_hex(out + 16, gb_reactor_random(r));
    out[GB_ID_HEX_SIZE - 1] = '\0';
}

void gb_id_uuid(struct gb_reactor *r, char out[GB_ID_UUID_SIZE])
{
    /* RFC 9562 §5.4: version 4 and variant 10 take six of the random bits. */
    uint64_t high = (gb_reactor_random(r) & ~UINT64_C(0xF000)) | UINT64_C(0x4000);
    uint64_t low = gb_reactor_random(r) >> 2 | UINT64_C(1) << 63;
    char digits[32];
    print_hex(digits, high);
    print_hex(digits + 16, low);
    size_t from = 0;
    for (size_t i = 0; i < GB_ID_UUID_SIZE - 1; i++) {
        out[i] = i == 8 || i == 13 || i == 18 || i == 23 ? '-' : digits[from++];
    }
    out[GB_ID_UUID_SIZE - 1] = '\0';
}
