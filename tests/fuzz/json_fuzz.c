#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/json_read.h"
#include "base/json_write.h"

/* Any bytes: the reader does not crash, its events are balanced, walking and skipping agree, and a
 * document written again from its events reads as the same one. The same bytes as a string: what is
 * written is JSON, and comes back as it was when it was UTF-8. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gb_bytes unescaped(const struct gb_json_reader *r, struct gb_str *scratch)
{
    gb_str_clear(scratch);
    gb_str_append_c(scratch, "");
    GB_ASSERT(gb_json_string(r, scratch, NULL));
    GB_ASSERT(gb_utf8_valid(gb_str_bytes(scratch)));
    return gb_str_bytes(scratch);
}

static void check_number(const struct gb_json_reader *r)
{
    int64_t i64 = 0;
    uint64_t u64 = 0;
    double number = 0;
    bool is_i64 = gb_json_i64(r, &i64);
    bool is_u64 = gb_json_u64(r, &u64);
    GB_ASSERT(!(is_i64 && is_u64) || (uint64_t)i64 == u64);
    GB_ASSERT(!is_i64 || gb_json_double(r, &number) || r->text.size >= 128);
    struct gb_str text = {0};
    if (is_i64) gb_str_append_i64(&text, i64);
    bool minus_zero = gb_bytes_equal(r->text, gb_bytes_c("-0"));
    GB_ASSERT(!is_i64 || minus_zero || gb_bytes_equal(gb_str_bytes(&text), r->text));
    gb_str_deinit(&text);
}

/* Writes the current event again. */
static void copy_event(struct gb_json_writer *w, const struct gb_json_reader *r,
                       enum gb_json_event event, struct gb_str *scratch)
{
    switch (event) {
    case GB_JSON_OBJECT_BEGIN:
        gb_json_w_object(w);
        return;
    case GB_JSON_OBJECT_END:
        gb_json_w_object_end(w);
        return;
    case GB_JSON_ARRAY_BEGIN:
        gb_json_w_array(w);
        return;
    case GB_JSON_ARRAY_END:
        gb_json_w_array_end(w);
        return;
    case GB_JSON_KEY:
        gb_json_w_key_bytes(w, unescaped(r, scratch));
        return;
    case GB_JSON_STRING:
        gb_json_w_string(w, unescaped(r, scratch));
        return;
    case GB_JSON_NUMBER:
        check_number(r);
        gb_json_w_raw(w, r->text);
        return;
    case GB_JSON_TRUE:
    case GB_JSON_FALSE:
        gb_json_w_bool(w, event == GB_JSON_TRUE);
        return;
    case GB_JSON_NULL:
        gb_json_w_null(w);
        return;
    case GB_JSON_ERROR:
    case GB_JSON_END:
        return;
    }
}

/* Walks all of the document and copies it to `out`; false when it is malformed. */
static bool walk(struct gb_bytes input, struct gb_str *out)
{
    struct gb_str scratch = {0};
    struct gb_json_reader r;
    struct gb_json_writer w;
    char open[GB_JSON_DEPTH_MAX];
    size_t depth = 0;
    enum gb_json_event event;
    gb_json_init(&r, input);
    gb_json_w_init(&w, out);
    do {
        event = gb_json_next(&r);
        if (event == GB_JSON_OBJECT_BEGIN || event == GB_JSON_ARRAY_BEGIN) {
            GB_ASSERT(depth < GB_JSON_DEPTH_MAX);
            open[depth++] = event == GB_JSON_OBJECT_BEGIN ? '{' : '[';
        } else if (event == GB_JSON_OBJECT_END || event == GB_JSON_ARRAY_END) {
            GB_ASSERT(depth > 0);
            GB_ASSERT(open[--depth] == (event == GB_JSON_OBJECT_END ? '{' : '['));
        } else if (event == GB_JSON_KEY) {
            GB_ASSERT(depth > 0 && open[depth - 1] == '{');
        }
        copy_event(&w, &r, event, &scratch);
    } while (event != GB_JSON_END && event != GB_JSON_ERROR);
    GB_ASSERT(gb_json_next(&r) == event);
    GB_ASSERT(event == GB_JSON_ERROR || (depth == 0 && w.depth == 0));
    GB_ASSERT((event == GB_JSON_ERROR) == gb_failed(r.err));
    gb_str_deinit(&scratch);
    return event == GB_JSON_END;
}

static bool skip(struct gb_bytes input)
{
    struct gb_json_reader r;
    gb_json_init(&r, input);
    (void)gb_json_next(&r);
    return gb_json_skip(&r) && gb_json_next(&r) == GB_JSON_END;
}

static void check_as_string(struct gb_bytes input)
{
    struct gb_str written = {0};
    struct gb_str back = {0};
    struct gb_json_writer w;
    struct gb_json_reader r;
    gb_json_w_init(&w, &written);
    gb_json_w_string(&w, input);
    gb_json_init(&r, gb_str_bytes(&written));
    GB_ASSERT(gb_json_next(&r) == GB_JSON_STRING);
    struct gb_bytes text = unescaped(&r, &back);
    GB_ASSERT(!gb_utf8_valid(input) || gb_bytes_equal(text, input));
    GB_ASSERT(gb_json_next(&r) == GB_JSON_END);
    gb_str_deinit(&written);
    gb_str_deinit(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gb_bytes input = gb_bytes(data, size);
    struct gb_str once = {0};
    struct gb_str twice = {0};
    bool ok = walk(input, &once);
    GB_ASSERT(skip(input) == ok);
    if (ok) {
        GB_ASSERT(walk(gb_str_bytes(&once), &twice));
        GB_ASSERT(gb_bytes_equal(gb_str_bytes(&once), gb_str_bytes(&twice)));
    }
    check_as_string(input);
    gb_str_deinit(&once);
    gb_str_deinit(&twice);
    return 0;
}
