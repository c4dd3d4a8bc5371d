#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct compare_row {
    const char *name;
    const char *a, *b;
    int order; /* sign */
    bool nocase;
} compare_rows[] = {
    {"equal", "abc", "abc", 0, true},
    {"both empty", "", "", 0, true},
    {"NULL is empty", NULL, "", 0, true},
    {"case", "aBz", "AbZ", 1, true},
    {"prefix first", "ab", "abc", -1, false},
    {"empty first", NULL, "a", -1, false},
    {"bytes are unsigned", "\xC3", "a", 1, false},
    {"only letters fold", "[", "{", -1, false},
    {"neighbours of letters", "@`", "`@", -1, false},
    {"no folding beyond ASCII", "\xC3\x89", "\xC3\xA9", -1, false},
};

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void comparisons(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof compare_rows / sizeof compare_rows[0]; i++) {
        const struct compare_row *row = &compare_rows[i];
        struct gb_bytes a = gb_bytes_c(row->a);
        struct gb_bytes b = gb_bytes_c(row->b);
        if (sign(gb_bytes_compare(a, b)) != row->order) fail_msg("%s: order", row->name);
        if (sign(gb_bytes_compare(b, a)) != -row->order) fail_msg("%s: reverse", row->name);
        if (gb_bytes_equal(a, b) != (row->order == 0)) fail_msg("%s: equal", row->name);
        if (gb_bytes_equal_c(a, row->b) != (row->order == 0)) fail_msg("%s: equal_c", row->name);
        if (gb_bytes_equal_nocase(a, b) != row->nocase) fail_msg("%s: nocase", row->name);
    }
}

static void views_hold_zero_bytes(void **state)
{
    (void)state;
    assert_false(gb_bytes_equal(gb_bytes("a\0b", 3), gb_bytes("a\0c", 3)));
    assert_true(gb_bytes_equal(gb_bytes("a\0b", 3), gb_bytes("a\0b", 3)));
    assert_false(gb_bytes_equal_c(gb_bytes("a\0b", 3), "a"));
}

static void prefixes(void **state)
{
    (void)state;
    assert_true(gb_bytes_starts_with_nocase(gb_bytes_c("Bearer x"), "bearer "));
    assert_true(gb_bytes_starts_with_nocase(gb_bytes_c("x"), ""));
    assert_true(gb_bytes_starts_with_nocase(gb_bytes_c(NULL), ""));
    assert_false(gb_bytes_starts_with_nocase(gb_bytes_c("Bear"), "bearer"));
    assert_false(gb_bytes_starts_with_nocase(gb_bytes_c("Basic x"), "bearer"));
}

static void suffixes(void **state)
{
    (void)state;
    assert_true(gb_bytes_ends_with(gb_bytes_c("a.fifo"), ".fifo"));
    assert_true(gb_bytes_ends_with(gb_bytes_c(".fifo"), ".fifo"));
    assert_true(gb_bytes_ends_with(gb_bytes_c("a"), ""));
    assert_true(gb_bytes_ends_with(gb_bytes_c(NULL), ""));
    assert_false(gb_bytes_ends_with(gb_bytes_c("fifo"), ".fifo"));
    assert_false(gb_bytes_ends_with(gb_bytes_c(".fifo.b"), ".fifo"));
    assert_false(gb_bytes_ends_with(gb_bytes_c(NULL), ".fifo"));
}

#define TEXT(literal) (literal), sizeof(literal) - 1

static const struct utf8_row {
    const char *name;
    const char *text;
    size_t size;
    bool valid, safe, sqs;
} utf8_rows[] = {
    {"letter", TEXT("a"), true, true, true},
    {"space", TEXT(" "), true, true, true},
    {"U+0000", TEXT("\0"), true, false, false},
    {"tab", TEXT("\t"), true, false, true},
    {"line feed", TEXT("\n"), true, false, true},
    {"carriage return", TEXT("\r"), true, false, true},
    {"U+000B", TEXT("\x0B"), true, false, false},
    {"U+001F", TEXT("\x1F"), true, false, false},
    {"tilde", TEXT("~"), true, true, true},
    {"U+007F", TEXT("\x7F"), true, false, true},
    {"U+0080", TEXT("\xC2\x80"), true, false, true},
    {"U+009F", TEXT("\xC2\x9F"), true, false, true},
    {"U+00A0", TEXT("\xC2\xA0"), true, true, true},
    {"place name", TEXT("Malm\xC3\xB6"), true, true, true},
    {"U+0800", TEXT("\xE0\xA0\x80"), true, true, true},
    {"U+D7FF", TEXT("\xED\x9F\xBF"), true, true, true},
    {"U+E000", TEXT("\xEE\x80\x80"), true, true, true},
    {"U+FFFD", TEXT("\xEF\xBF\xBD"), true, true, true},
    {"U+FFFE", TEXT("\xEF\xBF\xBE"), true, true, false},
    {"U+FFFF", TEXT("\xEF\xBF\xBF"), true, true, false},
    {"U+10000", TEXT("\xF0\x90\x80\x80"), true, true, true},
    {"U+1FFFE", TEXT("\xF0\x9F\xBF\xBE"), true, true, true},
    {"U+10FFFF", TEXT("\xF4\x8F\xBF\xBF"), true, true, true},
    {"above U+10FFFF", TEXT("\xF4\x90\x80\x80"), false, false, false},
    {"lead F5", TEXT("\xF5\x80\x80\x80"), false, false, false},
    {"lead FF", TEXT("\xFF"), false, false, false},
    {"lone tail", TEXT("\x80"), false, false, false},
    {"surrogate D800", TEXT("\xED\xA0\x80"), false, false, false},
    {"surrogate DFFF", TEXT("\xED\xBF\xBF"), false, false, false},
    {"long form of slash, 2", TEXT("\xC0\xAF"), false, false, false},
    {"long form, C1 BF", TEXT("\xC1\xBF"), false, false, false},
    {"long form, 3", TEXT("\xE0\x9F\xBF"), false, false, false},
    {"long form, 4", TEXT("\xF0\x8F\xBF\xBF"), false, false, false},
    {"cut after 1 of 2", TEXT("\xC3"), false, false, false},
    {"cut after 2 of 3", TEXT("\xE2\x82"), false, false, false},
    {"cut after 3 of 4", TEXT("\xF0\x9F\x98"), false, false, false},
    {"second byte no tail", TEXT("\xC3("), false, false, false},
    {"third byte no tail", TEXT("\xE2\x82("), false, false, false},
    {"fourth byte no tail", TEXT("\xF0\x9F\x98("), false, false, false},
};

/* The text alone, then with up to 20 letters on either side: each place relative to the steps of
 * eight. */
static void check_utf8_at(const struct utf8_row *row, size_t place)
{
    size_t before = place % 21;
    char text[64];
    memset(text, 'a', sizeof text);
    memcpy(text + before, row->text, row->size);
    struct gb_bytes view = gb_bytes(text, before + row->size + place / 21);
    if (gb_utf8_valid(view) != row->valid) fail_msg("%s: valid, %zu", row->name, place);
    if (gb_utf8_safe(view) != row->safe) fail_msg("%s: safe, %zu", row->name, place);
    if (gb_utf8_sqs_acceptable(view) != row->sqs) fail_msg("%s: sqs, %zu", row->name, place);
}

static void utf8_vectors_at_every_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
        for (size_t place = 0; place < (size_t)21 * 21; place++)
            check_utf8_at(&utf8_rows[i], place);
    }
}

static void utf8_empty_text(void **state)
{
    (void)state;
    assert_true(gb_utf8_valid(gb_bytes(NULL, 0)));
    assert_true(gb_utf8_safe(gb_bytes(NULL, 0)));
    assert_false(gb_utf8_sqs_acceptable(gb_bytes(NULL, 0)));
}

static size_t encode(uint32_t point, uint8_t out[4])
{
    size_t tails = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (uint8_t)(leads[tails] | point >> (6 * tails));
    for (size_t i = 1; i <= tails; i++)
        out[i] = (uint8_t)(0x80 | (point >> (6 * (tails - i)) & 0x3F));
    return tails + 1;
}

static void utf8_every_code_point(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 0x120000; point++) {
        uint8_t text[4];
        struct gb_bytes view = gb_bytes(text, encode(point, text));
        bool valid = point <= 0x10FFFF && !(point >= 0xD800 && point <= 0xDFFF);
        bool safe = valid && point >= 0x20 && !(point >= 0x7F && point <= 0x9F);
        bool sqs = valid && (point >= 0x20 || point == 9 || point == 10 || point == 13) &&
                   !(point == 0xFFFE || point == 0xFFFF);
        if (gb_utf8_valid(view) != valid || gb_utf8_safe(view) != safe ||
            gb_utf8_sqs_acceptable(view) != sqs) {
            fail_msg("U+%04X", point);
        }
    }
}

static void utf8_every_pair_of_bytes(void **state)
{
    (void)state;
    unsigned valid = 0;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        uint8_t text[2] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        if (gb_utf8_valid(gb_bytes(text, sizeof text))) valid++;
    }
    assert_int_equal(valid, 128 * 128 + (0x800 - 0x80));
}

static void big_endian_stores(void **state)
{
    (void)state;
    uint8_t out[9] = {0};
    gb_put_u16(out, 0xFE01);
    assert_memory_equal(out, "\xFE\x01\x00", 3);
    gb_put_u32(out, 0xFEDCBA98);
    assert_memory_equal(out, "\xFE\xDC\xBA\x98\x00", 5);
    gb_put_u64(out, UINT64_C(0xFEDCBA9876543210));
    assert_memory_equal(out, "\xFE\xDC\xBA\x98\x76\x54\x32\x10\x00", 9);
}

static void shown_texts_are_safe(void **state)
{
    (void)state;
    static const struct show_row {
        const char *text;
        const char *want; /* in 10 bytes */
    } rows[] = {
        {"", ""},
        {"short", "short"},
        {"123456789", "123456789"},
        {"1234567890", "123456..."},
        {"a\nb\x7F", "a?b?"},
        {"M\xC3\xB6", "M\xC3\xB6"},
        {"\xC3\x28", "?("},
        {"\xC2\x85", "??"}, /* U+0085 */
        {"12345\xC3\xB6"
         "8910",
         "12345..."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char shown[10];
        gb_bytes_show(gb_bytes_c(rows[i].text), shown, sizeof shown);
        assert_string_equal(shown, rows[i].want);
    }
    char zero[10];
    gb_bytes_show(gb_bytes("a\0b", 3), zero, sizeof zero);
    assert_string_equal(zero, "a?b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons),
        cmocka_unit_test(views_hold_zero_bytes),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(suffixes),
        cmocka_unit_test(utf8_vectors_at_every_place),
        cmocka_unit_test(utf8_empty_text),
        cmocka_unit_test(utf8_every_code_point),
        cmocka_unit_test(utf8_every_pair_of_bytes),
        cmocka_unit_test(big_endian_stores),
        cmocka_unit_test(shown_texts_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
