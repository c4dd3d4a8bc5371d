#include <stddef.h>
#include <stdint.h>

#include "adapters/aws/aws_profile.h"
#include "base/assert.h"

/* Any bytes as a shared file: the parser does not crash, values lie within the text, and an error
 * names a line. The first byte chooses the kind of file. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct gb_bytes value, struct gb_bytes text)
{
    if (value.size == 0) return;
    GB_ASSERT(value.data >= text.data);
    GB_ASSERT(value.data + value.size <= text.data + text.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct gb_bytes text = gb_bytes(data + 1, size - 1);
    enum gb_aws_file_kind kind = data[0] % 2 == 0 ? GB_AWS_FILE_CREDENTIALS : GB_AWS_FILE_CONFIG;
    struct gb_aws_profile p = {0};
    struct gb_err err = gb_aws_profile_parse(text, kind, gb_bytes_c("default"), &p);
    if (gb_failed(err)) {
        GB_ASSERT(err.code == GB_INVALID_CONFIG);
        GB_ASSERT(strncmp(err.message, "line ", 5) == 0);
        GB_ASSERT(!p.found);
        return 0;
    }
    check_inside(p.access_key_id, text);
    check_inside(p.secret_access_key, text);
    check_inside(p.region, text);
    check_inside(p.credential_process, text);
    GB_ASSERT(p.found || p.region.size == 0);
    return 0;
}
