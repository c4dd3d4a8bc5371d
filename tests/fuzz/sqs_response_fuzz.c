#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "adapters/sqs/sqs_response.h"
#include "base/assert.h"

/* Any bytes as the answer to a send, a batch or a look-up: no crash, texts printable and ended,
 * views inside. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct gb_sqs_entry *e, struct gb_bytes answer)
{
    GB_ASSERT(strnlen(e->code, sizeof e->code) < sizeof e->code);
    GB_ASSERT(strnlen(e->message, sizeof e->message) < sizeof e->message);
    if (e->md5_body.size > 0) {
        GB_ASSERT(e->md5_body.data >= answer.data);
        GB_ASSERT(e->md5_body.data + e->md5_body.size <= answer.data + answer.size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes answer = gb_bytes(data, size);
    struct gb_sqs_entry entries[GB_SQS_ENTRIES_MAX];
    char *url = NULL;
    if (!gb_failed(gb_sqs_read_send(answer, &entries[0]))) {
        GB_ASSERT(entries[0].outcome == GB_SQS_ACCEPTED);
        check_entry(&entries[0], answer);
    }
    (void)gb_sqs_read_batch(answer, GB_SQS_ENTRIES_MAX, entries);
    for (size_t i = 0; i < GB_SQS_ENTRIES_MAX; i++) check_entry(&entries[i], answer);
    if (!gb_failed(gb_sqs_read_queue_url(answer, &url))) GB_ASSERT(url[0] != '\0');
    free(url);
    return 0;
}
