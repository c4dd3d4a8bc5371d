#include "domain/credential_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/oom.h"

/* Every allocation fails once: an error, nothing leaked (the sanitizer watches), nothing kept. */

static unsigned climb(struct gb_err (*read)(struct gb_bytes, struct gb_credential_set *),
                      const char *text)
{
    for (unsigned n = 1;; n++) {
        struct gb_credential_set set = {0};
        gb_oom_fail_at(n);
        struct gb_err err = read(gb_bytes_c(text), &set);
        gb_oom_off();
        gb_credential_set_deinit(&set);
        if (!gb_failed(err)) return n - 1;
        assert_int_equal(err.code, GB_UNAVAILABLE);
        assert_true(n < 100);
    }
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(climb(gb_credential_set_read_file,
                      "{\"credentials\":{\"Password\":{\"Username\":\"u\",\"Password\":\"p\"},"
                      "\"TLS\":{\"CertPEM\":\"c\",\"KeyPEM\":\"k\",\"CAPEMs\":[\"a\",\"b\"]}}}") >=
                7);
    assert_true(climb(gb_credential_set_read_parameter, "user:password") >= 2);
    assert_true(climb(gb_credential_set_read_parameter,
                      "{\"type\":\"password\",\"user\":\"u\",\"password\":\"p\"}") >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
