#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/keys.h"
#include "api/service_level.h"
#include "base/assert.h"
#include "base/str.h"

/* Any text as a source of API keys: it is refused, or a key that was not in it opens nothing. The
 * same text as a header and as a level. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = gb_bytes_dup(gb_bytes(data, size));
    const char *const texts[] = {text};
    struct gb_keys *k = NULL;
    enum gb_readiness level = GB_READY_DOWN;
    if (text == NULL) return 0;
    GB_ASSERT(!gb_readiness_parse(text, &level) || level >= GB_READY_LIVE);
    struct gb_err err = gb_keys_new(texts, 1, &k);
    if (!gb_failed(err)) {
        GB_ASSERT(gb_keys_any(k) || text[0] == '\0' || text[0] == '{');
        GB_ASSERT(gb_keys_check(k, "never a key of it", text, "peer", 0) != GB_KEYS_THROTTLED);
        bool plain = text[0] != '\0' && text[0] != '{';
        GB_ASSERT(!plain || gb_keys_check(k, text, NULL, "peer", 0) == GB_KEYS_OK);
    }
    gb_keys_free(k);
    free(text);
    return 0;
}
