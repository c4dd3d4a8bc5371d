#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/duration.h"

/* Any text: what is accepted prints in a form that reads as the same value. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_duration(struct gb_bytes input)
{
    char text[GB_DURATION_TEXT_MAX];
    int64_t ns = 42;
    int64_t back = 0;
    struct gb_err err = gb_duration_parse(input, &ns);
    if (gb_failed(err)) {
        GB_ASSERT(err.code == GB_INVALID_CONFIG && ns == 42);
        GB_ASSERT(gb_utf8_safe(gb_bytes_c(err.message)));
        return;
    }
    gb_duration_print(ns, text);
    GB_ASSERT(!gb_failed(gb_duration_parse(gb_bytes_c(text), &back)));
    GB_ASSERT(back == ns);
}

static void check_time(struct gb_bytes input)
{
    char text[GB_TIME_TEXT_MAX];
    int64_t ms = 0;
    int64_t back = 0;
    if (!gb_time_parse(input, &ms) && !gb_http_date_parse(input, &ms)) return;
    gb_time_print(ms, text);
    GB_ASSERT(gb_time_parse(gb_bytes_c(text), &back));
    /* A zone or a leap second may lead out of the years that can be printed. */
    GB_ASSERT(back == ms || strncmp(text, "0000-01-01T00:00", 16) == 0 ||
              strncmp(text, "9999-12-31T23:59", 16) == 0);
}

/* The input as a number: every value prints, and reads back. */
static void check_print(struct gb_bytes input)
{
    char text[GB_DURATION_TEXT_MAX];
    char time_text[GB_TIME_TEXT_MAX];
    int64_t value = 0;
    int64_t back = 0;
    if (input.size != sizeof value) return;
    memcpy(&value, input.data, sizeof value);
    gb_duration_print(value, text);
    GB_ASSERT(!gb_failed(gb_duration_parse(gb_bytes_c(text), &back)));
    GB_ASSERT(back == value);
    gb_time_print(value, time_text);
    GB_ASSERT(gb_time_parse(gb_bytes_c(time_text), &back));
    gb_time_print_basic(value, time_text);
    GB_ASSERT(strlen(time_text) == 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes input = gb_bytes(data, size);
    check_duration(input);
    check_time(input);
    check_print(input);
    return 0;
}
