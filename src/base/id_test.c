#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void hex_is_32_lower_case_digits(void **state)
{
    (void)state;
    struct gb_reactor *r;
    assert_false(gb_failed(gb_reactor_new(0, &r)));
    char first[GB_ID_HEX_SIZE], second[GB_ID_HEX_SIZE];
    gb_id_hex(r, first);
    gb_id_hex(r, second);
    /* Seed 0: the generator's first two numbers, see reactor_test.c. */
    assert_string_equal(first, "99ec5f36cb75f2b4bf6e1f784956452a");
    assert_int_equal(strspn(second, "0123456789abcdef"), 32);
    assert_int_equal(second[32], 0);
    assert_string_not_equal(first, second);
    gb_reactor_free(r);
}

static void uuid_is_version_4(void **state)
{
    (void)state;
    struct gb_reactor *r;
    assert_false(gb_failed(gb_reactor_new(0, &r)));
    static const char digits_of_variant[] = "89ab";
    unsigned seen[4] = {0};
    for (int i = 0; i < 1000; i++) {
        char id[GB_ID_UUID_SIZE];
        gb_id_uuid(r, id);
        assert_int_equal(strlen(id), 36);
        for (size_t at = 0; at < 36; at++) {
            bool dash = at == 8 || at == 13 || at == 18 || at == 23;
            assert_non_null(strchr(dash ? "-" : "0123456789abcdef", id[at]));
        }
        assert_int_equal(id[14], '4');
        const char *variant = strchr(digits_of_variant, id[19]);
        assert_non_null(variant);
        seen[variant - digits_of_variant]++;
    }
    for (size_t i = 0; i < 4; i++) assert_in_range(seen[i], 180, 320); /* the rest stays random */
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_is_32_lower_case_digits),
        cmocka_unit_test(uuid_is_version_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
