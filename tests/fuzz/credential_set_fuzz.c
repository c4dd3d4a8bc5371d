#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "domain/credential_set.h"

/* Any bytes as a credentials file and as a parameter: a whole set or an error without a trace of
 * it. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(struct gb_err (*read)(struct gb_bytes, struct gb_credential_set *),
                    struct gb_bytes text)
{
    struct gb_credential_set set = {0};
    struct gb_err err = read(text, &set);
    if (gb_failed(err)) {
        GB_ASSERT(err.code == GB_INVALID_PAYLOAD);
        GB_ASSERT(set.username == NULL && set.cert_pem == NULL && set.ca_pem == NULL);
    } else {
        GB_ASSERT(set.username != NULL || set.cert_pem != NULL || set.ca_pem != NULL);
        GB_ASSERT((set.cert_pem == NULL) == (set.key_pem == NULL));
    }
    gb_credential_set_deinit(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(gb_credential_set_read_file, gb_bytes(data, size));
    read_as(gb_credential_set_read_parameter, gb_bytes(data, size));
    return 0;
}
