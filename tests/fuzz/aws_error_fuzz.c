#include <stddef.h>
#include <stdint.h>

#include "adapters/aws/aws_client.h"
#include "adapters/sqs/sqs_errors.h"
#include "base/assert.h"

/* Any bytes as an error answer: no crash, printable text, and each service makes an error of it.
 * The first two bytes choose the status; what follows the first newline is the body, what is before
 * serves as both headers. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
    size_t n = strnlen(text, size);
    GB_ASSERT(n < size);
    for (size_t i = 0; i < n; i++) GB_ASSERT(text[i] >= ' ' && text[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    int status = 300 + (data[0] << 1 | (data[1] & 1));
    struct gb_bytes rest = gb_bytes(data + 2, size - 2);
    const uint8_t *newline = rest.size == 0 ? NULL : memchr(rest.data, '\n', rest.size);
    size_t head = newline == NULL ? 0 : (size_t)(newline - rest.data);
    struct gb_bytes header = gb_bytes(rest.data, head);
    struct gb_bytes body = gb_bytes(rest.data + head, rest.size - head);
    struct gb_aws_error e;
    gb_aws_error_parse(status, body, header, header, &e);
    check_text(e.code, sizeof e.code);
    check_text(e.legacy_code, sizeof e.legacy_code);
    check_text(e.message, sizeof e.message);
    GB_ASSERT(gb_failed(gb_aws_classify_default(&e)));
    GB_ASSERT(gb_failed(gb_sqs_classify(&e)));
    GB_ASSERT(!gb_sqs_is_plain_auth(&e) || gb_sqs_classify(&e).code == GB_NOT_AUTHORIZED);
    return 0;
}
