#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "io/ws_codec.h"

/* Any bytes from a server: as an answer to the upgrade no crash; as frames, whole or byte by byte,
 * the same payload, the same control frames and the same end. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct trace {
    struct gb_str data;
    size_t controls;
    size_t control_bytes;
    bool failed;
};

static void decode(struct gb_bytes input, size_t step, struct trace *t)
{
    struct gb_ws_decoder d = {0};
    for (size_t at = 0; at < input.size && !t->failed; at += step) {
        size_t size = input.size - at < step ? input.size - at : step;
        struct gb_bytes piece = gb_bytes(input.data + at, size);
        enum gb_ws_event event = GB_WS_DATA;
        while (event != GB_WS_NEED_MORE && !t->failed) {
            struct gb_bytes payload;
            struct gb_err err = gb_ws_decode(&d, &piece, &event, &payload);
            t->failed = gb_failed(err);
            if (t->failed || event == GB_WS_NEED_MORE) break;
            if (event == GB_WS_DATA) {
                GB_ASSERT(payload.size > 0);
                gb_str_append(&t->data, payload);
            } else {
                GB_ASSERT(payload.size <= GB_WS_CONTROL_MAX);
                t->controls++;
                t->control_bytes += payload.size;
            }
        }
        GB_ASSERT(t->failed || piece.size == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes input = gb_bytes(data, size);
    struct trace whole = {0};
    struct trace bytes = {0};
    decode(input, size == 0 ? 1 : size, &whole);
    decode(input, 1, &bytes);
    GB_ASSERT(whole.failed == bytes.failed && whole.controls == bytes.controls);
    GB_ASSERT(whole.control_bytes == bytes.control_bytes);
    GB_ASSERT(gb_bytes_equal(gb_str_bytes(&whole.data), gb_str_bytes(&bytes.data)));
    gb_str_deinit(&whole.data);
    gb_str_deinit(&bytes.data);

    size_t head_size = gb_ws_head_size(input);
    GB_ASSERT(head_size <= size);
    struct gb_err err =
        gb_ws_check_answer(gb_bytes(data, head_size), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    GB_ASSERT(err.code == GB_OK || err.code == GB_CONNECTION_LOST);
    GB_ASSERT(gb_utf8_valid(gb_bytes_c(err.message)));
    return 0;
}
