#include "domain/envelope_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void ok(struct gb_err err)
{
    if (gb_failed(err)) fail_msg("%s: %s", gb_code_name(err.code), err.message);
}

static struct gb_envelope *new_envelope(void)
{
    struct gb_envelope *e = NULL;
    ok(gb_envelope_new(0, &e));
    ok(gb_envelope_set_id(e, gb_bytes_c("m1")));
    return e;
}

static void assert_encoded(const struct gb_envelope *e, const char *want)
{
    struct gb_str out = {0};
    gb_envelope_encode(&out, e);
    assert_false(out.failed);
    assert_string_equal(out.data, want);
    gb_str_deinit(&out);
}

static void assert_same(const struct gb_envelope *a, const struct gb_envelope *b)
{
    assert_true(gb_bytes_equal(a->id, b->id));
    assert_true(gb_bytes_equal(a->subject, b->subject));
    assert_true(gb_bytes_equal(a->payload, b->payload));
    assert_int_equal(a->created_at_ms, b->created_at_ms);
    assert_int_equal(a->expires_at_ms, b->expires_at_ms);
    assert_int_equal(a->header_count, b->header_count);
    for (size_t i = 0; i < a->header_count; i++) {
        const struct gb_header *x = &a->headers[i];
        const struct gb_header *y = &b->headers[i];
        assert_true(gb_bytes_equal(x->name, y->name));
        assert_int_equal(x->value.kind, y->value.kind);
        assert_true(gb_bytes_equal(x->value.text, y->value.text));
        assert_int_equal(x->value.number, y->value.number);
    }
}

static void assert_round_trip(const struct gb_envelope *e)
{
    struct gb_str out = {0};
    gb_envelope_encode(&out, e);
    assert_false(out.failed);
    struct gb_envelope *back = NULL;
    ok(gb_envelope_decode(gb_str_bytes(&out), &back));
    assert_same(e, back);
    assert_null(back->chunks); /* one block held everything */
    gb_envelope_unref(back);
    gb_str_deinit(&out);
}

static void the_smallest_message_has_only_its_id(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope();
    assert_encoded(e, "{\"id\":\"m1\"}");
    assert_round_trip(e);
    gb_envelope_unref(e);
}

/* The layout is what stores of earlier versions hold: a change here needs a migration. */
static void the_layout_is_fixed(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope();
    ok(gb_envelope_set_subject(e, gb_bytes_c("temperature")));
    ok(gb_envelope_set_payload(e, gb_bytes_c("{\"t\":21}")));
    ok(gb_envelope_put_text(e, "t", gb_bytes_c("Malm\xC3\xB6")));
    ok(gb_envelope_put_number(e, "i", GB_VALUE_INT, -5));
    ok(gb_envelope_put(e, gb_bytes_c("d"),
                       (struct gb_value){.kind = GB_VALUE_DECIMAL, .text = gb_bytes_c("1.50")}));
    ok(gb_envelope_put_number(e, "b", GB_VALUE_BOOL, 1));
    ok(gb_envelope_put_number(e, "n", GB_VALUE_TIME, 1790000000000));
    ok(gb_envelope_put(e, gb_bytes_c("x"),
                       (struct gb_value){.kind = GB_VALUE_BYTES, .text = gb_bytes("\0\xFF", 2)}));
    ok(gb_envelope_put_text(e, "raw", gb_bytes("\xFF", 1)));
    e->created_at_ms = 1790000000001;
    e->expires_at_ms = 1790000060001;
    assert_encoded(e, "{\"id\":\"m1\",\"subject\":\"temperature\",\"payload\":\"{\\\"t\\\":21}\","
                      "\"created_at\":1790000000001,\"expires_at\":1790000060001,\"headers\":{"
                      "\"t\":\"Malm\xC3\xB6\",\"i\":{\"int\":-5},\"d\":{\"decimal\":\"1.50\"},"
                      "\"b\":{\"bool\":true},\"n\":{\"time\":1790000000000},"
                      "\"x\":{\"bytes\":\"AP8=\"},\"raw\":{\"text_b64\":\"/w==\"}}}");
    assert_round_trip(e);
    gb_envelope_unref(e);
}

static void payloads_take_the_form_that_holds_them(void **state)
{
    (void)state;
    static const struct payload_row {
        const char *name;
        const char *payload;
        size_t size;
        const char *want;
    } rows[] = {
        {"empty", "", 0, "{\"id\":\"m1\"}"},
        {"text", "plain", 5, "{\"id\":\"m1\",\"payload\":\"plain\"}"},
        {"controls", "a\n\x01", 3, "{\"id\":\"m1\",\"payload\":\"a\\n\\u0001\"}"},
        {"zero byte", "a\0b", 3, "{\"id\":\"m1\",\"payload_b64\":\"YQBi\"}"},
        {"bad UTF-8", "\xC3\x28", 2, "{\"id\":\"m1\",\"payload_b64\":\"wyg=\"}"},
        {"surrogate", "\xED\xA0\x80", 3, "{\"id\":\"m1\",\"payload_b64\":\"7aCA\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_envelope *e = new_envelope();
        ok(gb_envelope_set_payload(e, gb_bytes(rows[i].payload, rows[i].size)));
        assert_encoded(e, rows[i].want);
        assert_round_trip(e);
        gb_envelope_unref(e);
    }
}

/* encode then decode is the identity: each byte value alone, doubled, and all of them in a row, as
 * payload and in every kind that holds bytes. */
static void every_byte_survives(void **state)
{
    (void)state;
    uint8_t all[256];
    for (size_t i = 0; i < sizeof all; i++) all[i] = (uint8_t)i;
    for (size_t i = 0; i <= 256; i++) {
        uint8_t two[2] = {(uint8_t)i, (uint8_t)i};
        struct gb_bytes text = i < 256 ? gb_bytes(two, 1) : gb_bytes(all, sizeof all);
        struct gb_bytes twice = i < 256 ? gb_bytes(two, 2) : gb_bytes(all, 128);
        struct gb_envelope *e = new_envelope();
        ok(gb_envelope_set_payload(e, text));
        ok(gb_envelope_put_text(e, "text", text));
        ok(gb_envelope_put_text(e, "twice", twice));
        ok(gb_envelope_put(e, gb_bytes_c("bytes"),
                           (struct gb_value){.kind = GB_VALUE_BYTES, .text = text}));
        if (gb_utf8_valid(text)) {
            ok(gb_envelope_set_id(e, text));
            ok(gb_envelope_set_subject(e, twice));
            ok(gb_envelope_put_text(e, "x", gb_bytes_c("before")));
            ok(gb_envelope_put(e, text, (struct gb_value){.kind = GB_VALUE_DECIMAL, .text = text}));
        }
        assert_round_trip(e);
        gb_envelope_unref(e);
    }
}

static void every_kind_and_extreme_survives(void **state)
{
    (void)state;
    static const int64_t numbers[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct gb_envelope *e = new_envelope();
        ok(gb_envelope_put_number(e, "int", GB_VALUE_INT, numbers[i]));
        ok(gb_envelope_put_number(e, "time", GB_VALUE_TIME, numbers[i]));
        ok(gb_envelope_put_number(e, "bool", GB_VALUE_BOOL, numbers[i] == 1));
        ok(gb_envelope_put(e, gb_bytes_c("decimal"), (struct gb_value){.kind = GB_VALUE_DECIMAL}));
        ok(gb_envelope_put(e, gb_bytes_c("bytes"), (struct gb_value){.kind = GB_VALUE_BYTES}));
        ok(gb_envelope_put_text(e, "", gb_bytes_c("")));
        e->created_at_ms = numbers[i];
        e->expires_at_ms = numbers[i];
        assert_round_trip(e);
        gb_envelope_unref(e);
    }
}

static void long_texts_survive(void **state)
{
    (void)state;
    static const size_t sizes[] = {7, 8, 9, 63, 64, 65, 1000, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct gb_envelope *e = new_envelope();
        uint8_t *p = gb_envelope_reserve_payload(e, sizes[i]);
        assert_non_null(p);
        for (size_t k = 0; k < sizes[i]; k++) p[k] = (uint8_t)(k % 31 == 0 ? '"' : 'a' + k % 26);
        assert_round_trip(e);
        p[sizes[i] - 1] = 0xFE;
        assert_round_trip(e);
        gb_envelope_unref(e);
    }
}

static void other_spellings_are_read(void **state)
{
    (void)state;
    static const char json[] = " { \"headers\" : {\"a\\u0041\":\"\\ud83d\\ude00\\/\", "
                               "\"n\":{\"\\u0069nt\":3}, \"n\":{\"int\":4}} ,\n\"i\\u0064\":\"x\","
                               "\"payload_b64\":\"\"}\n";
    struct gb_envelope *e = NULL;
    ok(gb_envelope_decode(gb_bytes_c(json), &e));
    assert_true(gb_bytes_equal_c(e->id, "x"));
    assert_int_equal(e->payload.size, 0);
    assert_int_equal(e->header_count, 2);
    assert_true(gb_bytes_equal_c(gb_envelope_text(e, "aA"), "\xF0\x9F\x98\x80/"));
    assert_int_equal(gb_envelope_get(e, "n")->number, 4);
    gb_envelope_unref(e);
}

static void damaged_records_are_refused(void **state)
{
    (void)state;
    static const struct damage_row {
        const char *name;
        const char *json;
        const char *says; /* part of the message */
    } rows[] = {
        {"nothing", "", "line 1, column 1"},
        {"no object", "[]", "an object is expected"},
        {"cut short", "{\"id\":\"a\"", "ends too early"},
        {"trailing", "{\"id\":\"a\"}x", "column 11"},
        {"no id", "{}", "the id is missing"},
        {"empty id", "{\"id\":\"\"}", "the id is missing"},
        {"id is a number", "{\"id\":1}", "a string is expected"},
        {"unknown member", "{\"id\":\"a\",\"extra\":1}", "line 1, column 11: unknown member"},
        {"line of a fault", "{\"id\":\"a\",\n\n \"extra\":1}", "line 3, column 2"},
        {"id twice", "{\"id\":\"a\",\"id\":\"b\"}", "came before"},
        {"both payloads", "{\"id\":\"a\",\"payload\":\"\",\"payload_b64\":\"\"}", "came before"},
        {"bad base64", "{\"id\":\"a\",\"payload_b64\":\"A\"}", "base64"},
        {"stray bits in base64", "{\"id\":\"a\",\"payload_b64\":\"/x==\"}", "base64"},
        {"escaped base64", "{\"id\":\"a\",\"payload_b64\":\"\\u0041A==\"}", "base64"},
        {"base64 is a number", "{\"id\":\"a\",\"payload_b64\":0}", "base64"},
        {"half a pair", "{\"id\":\"\\ud800\"}", "surrogate"},
        {"fraction", "{\"id\":\"a\",\"created_at\":1.5}", "integer"},
        {"too large", "{\"id\":\"a\",\"expires_at\":9223372036854775808}", "integer"},
        {"time is text", "{\"id\":\"a\",\"expires_at\":\"1\"}", "integer"},
        {"headers are a list", "{\"id\":\"a\",\"headers\":[]}", "headers are an object"},
        {"header is a number", "{\"id\":\"a\",\"headers\":{\"h\":1}}", "a header value is"},
        {"header is null", "{\"id\":\"a\",\"headers\":{\"h\":null}}", "a header value is"},
        {"no kind", "{\"id\":\"a\",\"headers\":{\"h\":{}}}", "kind"},
        {"unknown kind", "{\"id\":\"a\",\"headers\":{\"h\":{\"float\":1}}}", "unknown kind"},
        {"two kinds", "{\"id\":\"a\",\"headers\":{\"h\":{\"int\":1,\"int\":1}}}", "one kind"},
        {"bool is 1", "{\"id\":\"a\",\"headers\":{\"h\":{\"bool\":1}}}", "true or false"},
        {"decimal is 1", "{\"id\":\"a\",\"headers\":{\"h\":{\"decimal\":1}}}", "a string"},
        {"bad bytes", "{\"id\":\"a\",\"headers\":{\"h\":{\"bytes\":\"=\"}}}", "base64"},
        {"cut in headers", "{\"id\":\"a\",\"headers\":{\"h\"", "ends too early"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_envelope *e = NULL;
        struct gb_err err = gb_envelope_decode(gb_bytes_c(rows[i].json), &e);
        if (err.code != GB_INVALID_OUTBOX_RECORD || strstr(err.message, rows[i].says) == NULL) {
            fail_msg("%s: %s: %s", rows[i].name, gb_code_name(err.code), err.message);
        }
        assert_null(e);
    }
}

static void too_many_headers_are_a_damaged_record(void **state)
{
    (void)state;
    struct gb_str json = {0};
    gb_str_append_c(&json, "{\"id\":\"a\",\"headers\":{\"h0\":\"\"");
    for (int i = 1; i < GB_ENVELOPE_HEADERS_MAX; i++) gb_str_appendf(&json, ",\"h%d\":\"\"", i);
    size_t size = json.size;
    gb_str_append_c(&json, "}}");
    struct gb_envelope *e = NULL;
    ok(gb_envelope_decode(gb_str_bytes(&json), &e));
    assert_int_equal(e->header_count, GB_ENVELOPE_HEADERS_MAX);
    gb_envelope_unref(e);
    e = NULL;
    json.size = size;
    gb_str_append_c(&json, ",\"more\":\"\"}}");
    assert_int_equal(gb_envelope_decode(gb_str_bytes(&json), &e).code, GB_INVALID_OUTBOX_RECORD);
    assert_null(e);
    gb_str_deinit(&json);
}

static void header_lists_travel_alone(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope();
    struct gb_envelope *to = new_envelope();
    struct gb_str json = {0};
    gb_headers_encode(&json, NULL, 0);
    assert_string_equal(json.data, "{}");
    ok(gb_headers_decode_into(gb_str_bytes(&json), to));
    assert_int_equal(to->header_count, 0);
    ok(gb_envelope_put_text(e, "a", gb_bytes_c("new")));
    ok(gb_envelope_put_number(e, "b", GB_VALUE_BOOL, 0));
    ok(gb_envelope_put_text(to, "a", gb_bytes_c("old")));
    gb_str_clear(&json);
    gb_headers_encode(&json, e->headers, e->header_count);
    assert_string_equal(json.data, "{\"a\":\"new\",\"b\":{\"bool\":false}}");
    ok(gb_headers_decode_into(gb_str_bytes(&json), to));
    assert_same(to, e);
    assert_int_equal(gb_headers_decode_into(gb_bytes_c("{}{}"), to).code, GB_INVALID_OUTBOX_RECORD);
    assert_int_equal(gb_headers_decode_into(gb_bytes_c("null"), to).code, GB_INVALID_OUTBOX_RECORD);
    gb_str_deinit(&json);
    gb_envelope_unref(e);
    gb_envelope_unref(to);
}

static void a_full_buffer_is_marked(void **state)
{
    (void)state;
    static const size_t limits[] = {5, 20, 80, 200};
    struct gb_envelope *e = new_envelope();
    ok(gb_envelope_set_payload(e, gb_bytes("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8)));
    ok(gb_envelope_put_text(e, "name", gb_bytes_c("a text that is longer than the buffer allows")));
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct gb_str out = {.size_max = limits[i]};
        gb_envelope_encode(&out, e);
        assert_true(out.failed == (limits[i] < 200));
        gb_str_deinit(&out);
    }
    gb_envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_message_has_only_its_id),
        cmocka_unit_test(the_layout_is_fixed),
        cmocka_unit_test(payloads_take_the_form_that_holds_them),
        cmocka_unit_test(every_byte_survives),
        cmocka_unit_test(every_kind_and_extreme_survives),
        cmocka_unit_test(long_texts_survive),
        cmocka_unit_test(other_spellings_are_read),
        cmocka_unit_test(damaged_records_are_refused),
        cmocka_unit_test(too_many_headers_are_a_damaged_record),
        cmocka_unit_test(header_lists_travel_alone),
        cmocka_unit_test(a_full_buffer_is_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
