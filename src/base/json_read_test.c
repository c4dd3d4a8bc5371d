#include "base/json_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* One letter per event; the texts of keys, strings and numbers follow theirs. */
static void append_event(struct gb_str *out, const struct gb_json_reader *r,
                         enum gb_json_event event)
{
    static const char letters[] = "!{}[]ksntf0.";
    if (out->size > 0) gb_str_append_char(out, ' ');
    gb_str_append_char(out, letters[event]);
    if (event == GB_JSON_KEY || event == GB_JSON_STRING || event == GB_JSON_NUMBER) {
        gb_str_append_char(out, '=');
        gb_str_append(out, r->text);
    }
}

static void walk(const char *json, struct gb_json_reader *r, struct gb_str *out)
{
    enum gb_json_event event;
    gb_str_clear(out);
    gb_json_init(r, gb_bytes_c(json));
    do {
        event = gb_json_next(r);
        append_event(out, r, event);
    } while (event != GB_JSON_END && event != GB_JSON_ERROR);
    assert_int_equal(gb_json_next(r), event); /* the end and an error stay */
}

static const struct good_row {
    const char *json;
    const char *want;
} good_rows[] = {
    {"{}", "{ } ."},
    {"[]", "[ ] ."},
    {" [ ] ", "[ ] ."},
    {"null", "0 ."},
    {"true", "t ."},
    {"\r\n\t false\r\n", "f ."},
    {"\"\"", "s= ."},
    {"0", "n=0 ."},
    {"-0", "n=-0 ."},
    {"[1,-2,3.5,4e5,6E+7,8.9e-10]", "[ n=1 n=-2 n=3.5 n=4e5 n=6E+7 n=8.9e-10 ] ."},
    {"{\"a\":1,\"b\" : [true , {\"c\":null}],\"\":\"x\"}",
     "{ k=a n=1 k=b [ t { k=c 0 } ] k= s=x } ."},
    {"[[],{},[{}]]", "[ [ ] { } [ { } ] ] ."},
    {"{\"a\":{},\"a\":[]}", "{ k=a { } k=a [ ] } ."}, /* duplicates: the caller's business */
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF\"", "s=\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF ."},
    {"\"\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and plain text after it\"",
     "s=\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and plain text after it ."},
};

static void reads(void **state)
{
    (void)state;
    struct gb_json_reader r;
    struct gb_str events = {0};
    for (size_t i = 0; i < sizeof good_rows / sizeof good_rows[0]; i++) {
        walk(good_rows[i].json, &r, &events);
        assert_string_equal(events.data, good_rows[i].want);
    }
    gb_str_deinit(&events);
}

static const struct bad_row {
    const char *name;
    const char *json;
    const char *want; /* after "invalid JSON at line " */
} bad_rows[] = {
    {"nothing", "", "1, column 1: the document ends too early"},
    {"blanks", " \n ", "2, column 2: the document ends too early"},
    {"open object", "{", "1, column 2: the document ends too early"},
    {"open array", "[1,", "1, column 4: the document ends too early"},
    {"no value", "{\"a\":", "1, column 6: the document ends too early"},
    {"no colon", "{\"a\"", "1, column 5: the document ends too early"},
    {"open string", "\"ab", "1, column 4: the document ends too early"},
    {"open escape", "\"ab\\", "1, column 4: unknown escape in a string"},
    {"literal cut short", "tru", "1, column 4: the document ends too early"},
    {"minus only", "-", "1, column 2: the document ends too early"},
    {"fraction cut short", "1.", "1, column 3: the document ends too early"},
    {"exponent cut short", "1e+", "1, column 4: the document ends too early"},
    {"misspelt literal", "nulL", "1, column 4: expected a value"},
    {"upper case literal", "True", "1, column 1: expected a value"},
    {"longer literal", "[nulls]", "1, column 6: expected ',' or ']'"},
    {"text after the value", "{} x", "1, column 4: text after the end of the document"},
    {"second value", "1 2", "1, column 3: text after the end of the document"},
    {"comma at the end of an array", "[1,]", "1, column 4: expected a value"},
    {"comma at the end of an object", "{\"a\":1,}", "1, column 8: expected a key in double quotes"},
    {"comma first", "[,1]", "1, column 2: expected a value"},
    {"two commas", "[1,,1]", "1, column 4: expected a value"},
    {"no comma", "[1 2]", "1, column 4: expected ',' or ']'"},
    {"no comma in an object", "{\"a\":1\n\"b\":2}", "2, column 1: expected ',' or '}'"},
    {"equals sign", "{\"a\"=1}", "1, column 5: expected ':' after a key"},
    {"key without quotes", "{a:1}", "1, column 2: expected a key in double quotes"},
    {"number as key", "{1:1}", "1, column 2: expected a key in double quotes"},
    {"value without key", "{\"a\"}", "1, column 5: expected ':' after a key"},
    {"closed by the wrong bracket", "[1}", "1, column 3: expected ',' or ']'"},
    {"closed by the wrong brace", "{\"a\":1]", "1, column 7: expected ',' or '}'"},
    {"closed twice", "[]]", "1, column 3: text after the end of the document"},
    {"single quotes", "'a'", "1, column 1: expected a value"},
    {"comment", "[1 /* */]", "1, column 4: expected ',' or ']'"},
    {"byte order mark", "\xef\xbb\xbf{}", "1, column 1: expected a value"},
    {"needless zero", "01", "1, column 1: a number starts with a needless zero"},
    {"needless zero after minus", "-00", "1, column 2: a number starts with a needless zero"},
    {"plus", "+1", "1, column 1: expected a value"},
    {"point first", ".5", "1, column 1: expected a value"},
    {"no digit after the point", "[1.]", "1, column 4: expected a digit"},
    {"no digit after minus", "[-]", "1, column 3: expected a digit"},
    {"no digit in the exponent", "[1e]", "1, column 4: expected a digit"},
    {"infinity", "Infinity", "1, column 1: expected a value"},
    {"hexadecimal", "0x10", "1, column 2: text after the end of the document"},
    {"line break in a string", "\"a\nb\"",
     "1, column 3: control character in a string, write it as an escape"},
    {"control character late", "\"0123456789\x1f\"",
     "1, column 12: control character in a string, write it as an escape"},
    {"unknown escape", "\"\\x41\"", "1, column 2: unknown escape in a string"},
    {"short unicode escape", "\"\\u12\"", "1, column 2: unknown escape in a string"},
    {"bad unicode escape", "\"\\u12g4\"", "1, column 2: unknown escape in a string"},
    {"lone tail byte", "\"\x80\"", "1, column 2: a string is not UTF-8"},
    {"overlong", "\"abc\xc0\xaf\"", "1, column 5: a string is not UTF-8"},
    {"surrogate", "\"\xed\xa0\x80\"", "1, column 2: a string is not UTF-8"},
    {"sequence cut by the quote", "\"\xe2\x82\"", "1, column 2: a string is not UTF-8"},
    {"bad key", "{\"\xff\":1}", "1, column 3: a string is not UTF-8"},
    {"line count", "{\n \"a\"\n :\n [1,\n\n  x]}", "6, column 3: expected a value"},
};

static void refuses(void **state)
{
    (void)state;
    struct gb_json_reader r;
    struct gb_str events = {0};
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        const struct bad_row *row = &bad_rows[i];
        char want[GB_ERR_MESSAGE_MAX];
        walk(row->json, &r, &events);
        if (r.err.code != GB_INVALID_PAYLOAD) fail_msg("%s: accepted", row->name);
        (void)snprintf(want, sizeof want, "invalid JSON at line %s", row->want);
        if (strcmp(r.err.message, want) != 0) fail_msg("%s: %s", row->name, r.err.message);
        assert_false(gb_json_skip(&r));
    }
    gb_str_deinit(&events);
    gb_json_init(&r, gb_bytes(NULL, 0));
    assert_int_equal(gb_json_next(&r), GB_JSON_ERROR);
    gb_json_init(&r, gb_bytes("\"a\0b\"", 5));
    assert_int_equal(gb_json_next(&r), GB_JSON_ERROR);
    gb_json_init(&r, gb_bytes("\"\\\0\"", 4));
    assert_int_equal(gb_json_next(&r), GB_JSON_ERROR);
    gb_json_init(&r, gb_bytes("1\0", 2));
    assert_int_equal(gb_json_next(&r), GB_JSON_NUMBER);
    assert_int_equal(gb_json_next(&r), GB_JSON_ERROR);
}

/* Each special byte at each place of a string, so that both the step of eight and its rest see
 * it. */
static void check_byte_at(uint8_t byte, size_t at, size_t size, bool special)
{
    struct gb_json_reader r;
    char text[32];
    memset(text, 'a', sizeof text);
    text[0] = '"';
    text[at + 1] = (char)byte;
    text[size + 1] = '"';
    gb_json_init(&r, gb_bytes(text, size + 2));
    enum gb_json_event event = gb_json_next(&r);
    if (!special) {
        assert_int_equal(event, GB_JSON_STRING);
        assert_int_equal(r.text.size, size);
        assert_int_equal(gb_json_next(&r), GB_JSON_END);
    } else if (event == GB_JSON_STRING) {
        /* A quote ends the string early; "\\" with the closing quote does not. */
        assert_int_equal(byte, '"');
        assert_int_equal(r.text.size, at);
        assert_int_equal(gb_json_next(&r), GB_JSON_ERROR);
    }
}

static void finds_special_bytes_at_every_place(void **state)
{
    (void)state;
    static const uint8_t specials[] = {0x00, 0x01, 0x1f, '"', '\\', 0x80, 0x9f, 0xa0, 0xff};
    static const uint8_t plains[] = {0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f};
    for (size_t size = 1; size < 20; size++) {
        for (size_t at = 0; at < size; at++) {
            for (size_t i = 0; i < sizeof plains; i++) check_byte_at(plains[i], at, size, false);
            for (size_t i = 0; i < sizeof specials; i++) check_byte_at(specials[i], at, size, true);
        }
    }
}

static void depth_is_limited(void **state)
{
    (void)state;
    char json[2 * GB_JSON_DEPTH_MAX + 2];
    struct gb_json_reader r;
    memset(json, '[', GB_JSON_DEPTH_MAX);
    memset(json + GB_JSON_DEPTH_MAX, ']', GB_JSON_DEPTH_MAX);
    gb_json_init(&r, gb_bytes(json, (size_t)2 * GB_JSON_DEPTH_MAX));
    assert_int_equal(gb_json_next(&r), GB_JSON_ARRAY_BEGIN);
    assert_true(gb_json_skip(&r));
    assert_int_equal(gb_json_next(&r), GB_JSON_END);

    memset(json, '[', sizeof json);
    gb_json_init(&r, gb_bytes(json, sizeof json));
    assert_int_equal(gb_json_next(&r), GB_JSON_ARRAY_BEGIN);
    assert_false(gb_json_skip(&r));
    assert_string_equal(r.err.message,
                        "invalid JSON at line 1, column 129: nested deeper than 128 levels");
}

static void positions_are_those_of_the_token(void **state)
{
    (void)state;
    static const struct {
        enum gb_json_event event;
        uint32_t line, column;
    } want[] = {
        {GB_JSON_OBJECT_BEGIN, 1, 1}, {GB_JSON_KEY, 2, 3},         {GB_JSON_NUMBER, 3, 3},
        {GB_JSON_KEY, 4, 1},          {GB_JSON_ARRAY_BEGIN, 4, 6}, {GB_JSON_TRUE, 4, 7},
        {GB_JSON_STRING, 5, 1},       {GB_JSON_ARRAY_END, 6, 1},   {GB_JSON_OBJECT_END, 6, 2},
        {GB_JSON_END, 7, 1},
    };
    struct gb_json_reader r;
    gb_json_init(&r, gb_bytes_c("{\n  \"a\"\n: 1,\n\"b\": [true,\n\"x\"\n]}\n"));
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(gb_json_next(&r), want[i].event);
        assert_int_equal(r.line, want[i].line);
        assert_int_equal(r.column, want[i].column);
    }
}

static void skips_whole_values(void **state)
{
    (void)state;
    struct gb_json_reader r;
    gb_json_init(&r, gb_bytes_c("{\"a\":[1,{\"b\":[]}],\"c\":7,\"d\":{\"e\":{}},\"f\":[2,3]}"));
    assert_int_equal(gb_json_next(&r), GB_JSON_OBJECT_BEGIN);
    assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
    assert_true(gb_json_skip(&r)); /* after a key: its value */
    assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
    assert_true(gb_json_text_is(&r, "c"));
    assert_true(gb_json_skip(&r));
    assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
    assert_true(gb_json_text_is(&r, "d"));
    assert_int_equal(gb_json_next(&r), GB_JSON_OBJECT_BEGIN);
    assert_true(gb_json_skip(&r)); /* after a begin: to its end */
    assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
    assert_true(gb_json_text_is(&r, "f"));
    assert_int_equal(gb_json_next(&r), GB_JSON_ARRAY_BEGIN);
    assert_int_equal(gb_json_next(&r), GB_JSON_NUMBER);
    assert_true(gb_json_skip(&r)); /* after a scalar: nothing */
    assert_int_equal(gb_json_next(&r), GB_JSON_NUMBER);
    assert_int_equal(gb_json_next(&r), GB_JSON_ARRAY_END);
    assert_int_equal(gb_json_next(&r), GB_JSON_OBJECT_END);
    assert_int_equal(gb_json_next(&r), GB_JSON_END);
}

static void skipped_values_are_told(void **state)
{
    static const char *const values[] = {
        "{}", "{\"a\":[{},\"}\"]}", "[ ]", "\"a\\\"b\"", "\"\"", "-1.5e3", "true", "false", "null"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof values / sizeof values[0]; i++) {
        struct gb_json_reader r;
        struct gb_bytes text = {0};
        char json[64];
        (void)snprintf(json, sizeof json, "{ \"k\" : %s , \"l\":1}", values[i / 2]);
        gb_json_init(&r, gb_bytes_c(json));
        assert_int_equal(gb_json_next(&r), GB_JSON_OBJECT_BEGIN);
        assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
        if (i % 2 == 1) (void)gb_json_next(&r);
        assert_true(gb_json_skip_text(&r, &text));
        assert_true(gb_bytes_equal_c(text, values[i / 2]));
        assert_int_equal(gb_json_next(&r), GB_JSON_KEY);
        assert_true(gb_json_text_is(&r, "l"));
    }
    struct gb_json_reader r;
    struct gb_bytes text = {0};
    gb_json_init(&r, gb_bytes_c("{\"k\":[1,"));
    (void)gb_json_next(&r);
    (void)gb_json_next(&r);
    assert_false(gb_json_skip_text(&r, &text));
    assert_null(text.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(refuses),
        cmocka_unit_test(finds_special_bytes_at_every_place),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(positions_are_those_of_the_token),
        cmocka_unit_test(skips_whole_values),
        cmocka_unit_test(skipped_values_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
