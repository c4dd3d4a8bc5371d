#include <stddef.h>
#include <stdint.h>

#include "adapters/aws/aws_document.h"
#include "base/assert.h"

/* Any bytes as a credential document (JSON) and as an STS answer (XML): no crash, a complete set or
 * an error that leaves the document alone. Covers: aws_sts_xml. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct gb_err err, struct gb_aws_document *d)
{
    if (gb_failed(err)) {
        GB_ASSERT(err.code == GB_TEMPORARY_AUTH_FAILURE || err.code == GB_UNAVAILABLE);
        GB_ASSERT(d->access_key_id.data == NULL && d->secret_access_key.data == NULL);
    } else {
        GB_ASSERT(d->access_key_id.size > 0 && d->secret_access_key.size > 0);
    }
    gb_aws_document_deinit(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_aws_document d = {0};
    check(gb_aws_document_parse(gb_bytes(data, size), &d), &d);
    check(gb_aws_sts_parse(gb_bytes(data, size), &d), &d);
    return 0;
}
