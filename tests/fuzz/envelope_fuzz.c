#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "domain/envelope_json.h"

/* Any bytes as a stored message: decoding does not crash, and what it accepts is encoded as a
 * message that decodes as the same one. The same bytes as values of a message: encode then decode
 * is the identity. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct gb_envelope *a, const struct gb_envelope *b)
{
    GB_ASSERT(gb_bytes_equal(a->id, b->id));
    GB_ASSERT(gb_bytes_equal(a->subject, b->subject));
    GB_ASSERT(gb_bytes_equal(a->payload, b->payload));
    GB_ASSERT(a->created_at_ms == b->created_at_ms);
    GB_ASSERT(a->expires_at_ms == b->expires_at_ms);
    GB_ASSERT(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        const struct gb_header *x = &a->headers[i];
        const struct gb_header *y = &b->headers[i];
        GB_ASSERT(gb_bytes_equal(x->name, y->name));
        GB_ASSERT(x->value.kind == y->value.kind);
        GB_ASSERT(gb_bytes_equal(x->value.text, y->value.text));
        GB_ASSERT(x->value.number == y->value.number);
    }
}

static void check_round_trip(const struct gb_envelope *e)
{
    struct gb_str once = {0};
    struct gb_str twice = {0};
    struct gb_envelope *back = NULL;
    gb_envelope_encode(&once, e);
    GB_ASSERT(!once.failed);
    GB_ASSERT(!gb_failed(gb_envelope_decode(gb_str_bytes(&once), &back)));
    check_same(e, back);
    gb_envelope_encode(&twice, back);
    GB_ASSERT(gb_bytes_equal(gb_str_bytes(&once), gb_str_bytes(&twice)));
    gb_envelope_unref(back);
    gb_str_deinit(&once);
    gb_str_deinit(&twice);
}

static void check_decode(struct gb_bytes input)
{
    struct gb_envelope *e = NULL;
    struct gb_err err = gb_envelope_decode(input, &e);
    if (gb_failed(err)) {
        GB_ASSERT(e == NULL && err.code == GB_INVALID_OUTBOX_RECORD);
        GB_ASSERT(gb_utf8_safe(gb_bytes_c(err.message)));
        return;
    }
    GB_ASSERT(e->id.size > 0);
    check_round_trip(e);
    struct gb_envelope *copy = NULL;
    GB_ASSERT(!gb_failed(gb_envelope_copy(e, &copy)));
    check_same(e, copy);
    gb_envelope_unref(copy);
    gb_envelope_unref(e);
}

static void check_headers(struct gb_bytes input)
{
    struct gb_envelope *e = NULL;
    GB_ASSERT(!gb_failed(gb_envelope_new(0, &e)));
    GB_ASSERT(!gb_failed(gb_envelope_set_id(e, gb_bytes_c("id"))));
    if (!gb_failed(gb_headers_decode_into(input, e))) {
        struct gb_str json = {0};
        gb_headers_encode(&json, e->headers, e->header_count);
        struct gb_envelope *again = NULL;
        GB_ASSERT(!gb_failed(gb_envelope_new(0, &again)));
        GB_ASSERT(!gb_failed(gb_envelope_set_id(again, gb_bytes_c("id"))));
        GB_ASSERT(!gb_failed(gb_headers_decode_into(gb_str_bytes(&json), again)));
        check_same(e, again);
        gb_envelope_unref(again);
        gb_str_deinit(&json);
    }
    check_round_trip(e); /* also of what came before a fault */
    gb_envelope_unref(e);
}

static void check_as_values(struct gb_bytes input)
{
    struct gb_envelope *e = NULL;
    GB_ASSERT(!gb_failed(gb_envelope_new(0, &e)));
    bool utf8 = gb_utf8_valid(input);
    GB_ASSERT(!gb_failed(gb_envelope_set_id(e, utf8 && input.size > 0 ? input : gb_bytes_c("id"))));
    GB_ASSERT(!gb_failed(gb_envelope_set_payload(e, input)));
    GB_ASSERT(!gb_failed(gb_envelope_put_text(e, "text", input)));
    struct gb_value bytes = {.kind = GB_VALUE_BYTES, .text = input};
    GB_ASSERT(!gb_failed(gb_envelope_put(e, gb_bytes_c("bytes"), bytes)));
    if (utf8) {
        struct gb_value decimal = {.kind = GB_VALUE_DECIMAL, .text = input};
        GB_ASSERT(!gb_failed(gb_envelope_set_subject(e, input)));
        GB_ASSERT(!gb_failed(gb_envelope_put(e, input, decimal)));
    }
    int64_t number = 0;
    memcpy(&number, input.data, input.size < sizeof number ? input.size : sizeof number);
    GB_ASSERT(!gb_failed(gb_envelope_put_number(e, "int", GB_VALUE_INT, number)));
    GB_ASSERT(!gb_failed(gb_envelope_put_number(e, "time", GB_VALUE_TIME, number)));
    GB_ASSERT(!gb_failed(gb_envelope_put_number(e, "bool", GB_VALUE_BOOL, number & 1)));
    e->created_at_ms = number;
    check_round_trip(e);
    gb_envelope_unref(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes input = gb_bytes(data, size);
    check_decode(input);
    check_headers(input);
    if (size > 0) check_as_values(input);
    return 0;
}
