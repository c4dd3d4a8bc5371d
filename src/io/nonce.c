#include <sys/random.h>
#include <sys/types.h>

#include "io/file.h"

struct gb_err gb_nonce(char out[GB_NONCE_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[(GB_NONCE_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return gb_err(GB_UNAVAILABLE, "the kernel gave no random bytes (getrandom)");
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[GB_NONCE_SIZE - 1] = '\0';
    return gb_ok();
}
