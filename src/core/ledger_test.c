#include "core/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "domain/reserved.h"

static struct gb_envelope *message(const char *id, const char *dedup, const char *idem)
{
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c(id)).code, GB_OK);
    if (dedup != NULL)
        assert_int_equal(gb_envelope_put_text(e, GB_H_DEDUP_ID, gb_bytes_c(dedup)).code, GB_OK);
    if (idem != NULL) {
        assert_int_equal(gb_envelope_put_text(e, GB_H_IDEMPOTENCY_KEY, gb_bytes_c(idem)).code,
                         GB_OK);
    }
    return e;
}

static const struct key_row {
    const char *name;
    const char *a[3], *b[3]; /* id, dedup id, idempotency key */
    bool same;
} key_rows[] = {
    {"same id", {"1", NULL, NULL}, {"1", NULL, NULL}, true},
    {"other id", {"1", NULL, NULL}, {"2", NULL, NULL}, false},
    {"dedup id beats id", {"1", "d", NULL}, {"2", "d", NULL}, true},
    {"dedup id beats idempotency key", {"1", "d", "i"}, {"1", "d", "j"}, true},
    {"idempotency key beats id", {"1", NULL, "i"}, {"2", NULL, "i"}, true},
    {"kinds don't meet", {"x", NULL, NULL}, {"1", NULL, "x"}, false},
};

static void test_identity(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof key_rows / sizeof key_rows[0]; i++) {
        const struct key_row *row = &key_rows[i];
        print_message("  %s\n", row->name);
        struct gb_ledger *l = NULL;
        assert_int_equal(gb_ledger_new(0, &l).code, GB_OK);
        struct gb_envelope *a = message(row->a[0], row->a[1], row->a[2]);
        struct gb_envelope *b = message(row->b[0], row->b[1], row->b[2]);
        gb_ledger_charge(l, a);
        gb_ledger_charge(l, a);
        assert_int_equal(gb_ledger_attempts(l, a), 2);
        assert_int_equal(gb_ledger_attempts(l, b), row->same ? 2 : 0);
        gb_ledger_forget(l, b);
        assert_int_equal(gb_ledger_size(l), row->same ? 0 : 1);
        gb_envelope_unref(a);
        gb_envelope_unref(b);
        gb_ledger_free(l);
    }
}

static void test_full_ledger_evicts_the_oldest(void **state)
{
    (void)state;
    struct gb_ledger *l = NULL;
    assert_int_equal(gb_ledger_new(3, &l).code, GB_OK);
    struct gb_envelope *e[5];
    for (size_t i = 0; i < 5; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "m%zu", i);
        e[i] = message(id, NULL, NULL);
        gb_ledger_charge(l, e[i]);
        assert_true(gb_ledger_size(l) <= 3);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(gb_ledger_attempts(l, e[i]), i < 2 ? 0 : 1);
        gb_envelope_unref(e[i]);
    }
    gb_ledger_free(l);
}

static const struct countable_row {
    const char *name;
    bool generated;
    const char *dedup, *idem;
    bool countable;
} countable_rows[] = {
    {"given id", false, NULL, NULL, true},
    {"minted id", true, NULL, NULL, false},
    {"minted id, dedup id", true, "d", NULL, true},
    {"minted id, idempotency key", true, NULL, "i", true},
};

static void test_countable(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof countable_rows / sizeof countable_rows[0]; i++) {
        const struct countable_row *row = &countable_rows[i];
        print_message("  %s\n", row->name);
        struct gb_envelope *e = message("1", row->dedup, row->idem);
        if (row->generated) {
            assert_int_equal(gb_envelope_put_text(e, GB_H_GENERATED_ID, gb_bytes_c("true")).code,
                             GB_OK);
        }
        assert_int_equal(gb_ledger_countable(e), row->countable);
        gb_envelope_unref(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_full_ledger_evicts_the_oldest),
        cmocka_unit_test(test_countable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
