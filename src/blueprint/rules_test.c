#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "blueprint/rules.h"

static void every_rule_has_a_name_and_says_what_it_asks(void **state)
{
    (void)state;
    assert_string_equal(gb_rule_name(GB_RULE_NONE), "");
    for (int i = GB_RULE_NONE + 1; i < GB_RULE_COUNT; i++) {
        assert_true(strlen(gb_rule_name((enum gb_rule)i)) >= 2);
        assert_true(strlen(gb_rule_asks((enum gb_rule)i)) > 10);
        for (int j = GB_RULE_NONE + 1; j < i; j++) {
            assert_string_not_equal(gb_rule_name((enum gb_rule)i), gb_rule_name((enum gb_rule)j));
            assert_string_not_equal(gb_rule_asks((enum gb_rule)i), gb_rule_asks((enum gb_rule)j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_a_name_and_says_what_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
