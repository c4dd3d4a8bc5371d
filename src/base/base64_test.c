#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct good_row {
    const char *plain;
    size_t size;
    const char *standard, *url;
} good_rows[] = {
    {"", 0, "", ""},
    {"f", 1, "Zg==", "Zg"}, /* RFC 4648 §10 */
    {"fo", 2, "Zm8=", "Zm8"},
    {"foo", 3, "Zm9v", "Zm9v"},
    {"foob", 4, "Zm9vYg==", "Zm9vYg"},
    {"fooba", 5, "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", 6, "Zm9vYmFy", "Zm9vYmFy"},
    {"\0\0\0", 3, "AAAA", "AAAA"},
    {"\xfb\xff\xbf", 3, "+/+/", "-_-_"},
    {"\xff\xff", 2, "//8=", "__8"},
};

static void encodes_and_decodes(void **state)
{
    (void)state;
    struct gb_str s = {0};
    for (size_t i = 0; i < sizeof good_rows / sizeof good_rows[0]; i++) {
        const struct good_row *row = &good_rows[i];
        struct gb_bytes plain = gb_bytes(row->plain, row->size);
        gb_str_clear(&s);
        gb_base64_append(&s, plain);
        assert_string_equal(s.data, row->standard);
        gb_str_clear(&s);
        gb_base64url_append(&s, plain);
        assert_string_equal(s.data, row->url);
        gb_str_clear(&s);
        assert_true(gb_base64_decode(&s, gb_bytes_c(row->standard)));
        assert_true(gb_bytes_equal(gb_str_bytes(&s), plain));
        gb_str_clear(&s);
        assert_true(gb_base64url_decode(&s, gb_bytes_c(row->url)));
        assert_true(gb_bytes_equal(gb_str_bytes(&s), plain));
    }
    gb_str_deinit(&s);
}

static void every_byte_at_every_place(void **state)
{
    (void)state;
    struct gb_str text = {0};
    struct gb_str back = {0};
    uint8_t bytes[256 + 3];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37);
    for (size_t start = 0; start < 3; start++) {
        struct gb_bytes plain = gb_bytes(bytes + start, 256);
        gb_str_clear(&text);
        gb_str_clear(&back);
        gb_base64_append(&text, plain);
        assert_true(gb_base64_decode(&back, gb_str_bytes(&text)));
        assert_true(gb_bytes_equal(gb_str_bytes(&back), plain));
        gb_str_clear(&text);
        gb_str_clear(&back);
        gb_base64url_append(&text, plain);
        assert_true(gb_base64url_decode(&back, gb_str_bytes(&text)));
        assert_true(gb_bytes_equal(gb_str_bytes(&back), plain));
    }
    gb_str_deinit(&text);
    gb_str_deinit(&back);
}

static const struct bad_row {
    const char *name;
    const char *text;
    bool standard, url; /* accepted */
} bad_rows[] = {
    {"other alphabet, url", "-_-_", false, true},
    {"other alphabet, standard", "+/+/", true, false},
    {"no padding", "Zg", false, true},
    {"half the padding", "Zg=", false, false},
    {"padding", "Zg==", true, false},
    {"too much padding", "Zg===", false, false},
    {"three of padding", "Z===", false, false},
    {"padding only", "====", false, false},
    {"padding within", "Zg==Zg==", false, false},
    {"padding, then a digit", "Zm=v", false, false},
    {"padding where none is due", "Zm9v====", false, false},
    {"one digit", "Z", false, false},
    {"one digit left", "Zm9vZ", false, false},
    {"stray bits of two", "Zh==", false, false},
    {"stray bits of two, url", "Zh", false, false},
    {"stray bits of three", "Zm9=", false, false},
    {"stray bits of three, url", "Zm9", false, false},
    {"line break", "Zm9v\nZm9", false, false},
    {"blank", "Zm 9", false, false},
    {"high byte", "Zm\xc3\xa9", false, false},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        const struct bad_row *row = &bad_rows[i];
        struct gb_str s = {0};
        gb_str_append_c(&s, "kept");
        bool standard = gb_base64_decode(&s, gb_bytes_c(row->text));
        if (standard != row->standard) fail_msg("%s: standard", row->name);
        if (!standard) assert_string_equal(s.data, "kept");
        gb_str_clear(&s);
        gb_str_append_c(&s, "kept");
        bool url = gb_base64url_decode(&s, gb_bytes_c(row->text));
        if (url != row->url) fail_msg("%s: url", row->name);
        if (!url) assert_string_equal(s.data, "kept");
        assert_false(s.failed);
        gb_str_deinit(&s);
    }
}

static void the_limit_of_the_buffer_holds(void **state)
{
    (void)state;
    struct gb_str s = {.size_max = 8};
    gb_base64_append(&s, gb_bytes_c("123456"));
    assert_string_equal(s.data, "MTIzNDU2");
    gb_base64_append(&s, gb_bytes_c("7"));
    assert_true(s.failed);
    gb_str_clear(&s);
    assert_false(gb_base64_decode(&s, gb_bytes_c("MTIzNDU2Nzg5")));
    assert_true(s.failed);
    gb_str_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_and_decodes),
        cmocka_unit_test(every_byte_at_every_place),
        cmocka_unit_test(refuses),
        cmocka_unit_test(the_limit_of_the_buffer_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
