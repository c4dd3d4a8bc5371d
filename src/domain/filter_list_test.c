#include "domain/filter_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"

static void a_freed_list_is_empty(void **state)
{
    (void)state;
    struct gb_filter_list l = {.filters = calloc(2, sizeof(char *)), .count = 2};
    assert_non_null(l.filters);
    l.filters[0] = gb_strdup("a/#"); /* the sanitizer sees what is not freed */
    l.filters[1] = gb_strdup("b/#");
    for (int i = 0; i < 2; i++) {
        gb_filter_list_free(&l);
        assert_null(l.filters);
        assert_int_equal(l.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_list_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
