#include "domain/dlq_entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "domain/outbox_record.h"
#include "support/oom.h"

/* Entries and batches: each failed allocation is GB_UNAVAILABLE and leaks nothing, the reference of
 * the envelope included. */

static struct gb_err make_entry(struct gb_envelope *envelope, unsigned n)
{
    struct gb_dlq_entry *e = NULL;
    gb_oom_fail_at(n);
    struct gb_err err = gb_dlq_entry_new(envelope, &e);
    assert_int_equal(e == NULL, gb_failed(err));
    gb_dlq_entry_free(e);
    return err;
}

static struct gb_err copy_entry(struct gb_envelope *envelope, unsigned n)
{
    struct gb_dlq_entry *e = NULL;
    struct gb_dlq_entry *copy = NULL;
    assert_false(gb_failed(gb_dlq_entry_new(envelope, &e)));
    gb_oom_fail_at(n);
    struct gb_err err = gb_dlq_entry_copy(e, &copy);
    assert_int_equal(copy == NULL, gb_failed(err));
    gb_dlq_entry_free(copy);
    gb_dlq_entry_free(e);
    return err;
}

static struct gb_err set_error(struct gb_envelope *envelope, unsigned n)
{
    struct gb_dlq_entry *e = NULL;
    struct gb_err cause = gb_err(GB_TIMEOUT, "send took 30s");
    assert_false(gb_failed(gb_dlq_entry_new(envelope, &e)));
    gb_oom_fail_at(n);
    struct gb_err err = gb_dlq_entry_set_error(e, &cause);
    assert_non_null(e->reason);
    assert_non_null(e->error_code);
    gb_dlq_entry_free(e);
    return err;
}

static struct gb_err fill_batch(struct gb_envelope *envelope, unsigned n)
{
    struct gb_outbox_batch *b = NULL;
    gb_oom_fail_at(n);
    struct gb_err err = gb_outbox_batch_new(3, &b);
    if (gb_failed(err)) return err;
    for (size_t i = 0; i < 3 && !gb_failed(err); i++) {
        struct gb_outbox_record record = {
            .id = gb_bytes_c("id"),
            .envelope = gb_envelope_ref(envelope),
        };
        err = gb_outbox_batch_add(b, &record);
        assert_int_equal(b->count, i + (gb_failed(err) ? 0 : 1));
        if (gb_failed(err)) gb_envelope_unref(envelope); /* it stayed ours */
    }
    gb_outbox_batch_free(b);
    return err;
}

static const struct step_row {
    const char *name;
    struct gb_err (*run)(struct gb_envelope *envelope, unsigned n);
    unsigned failures; /* allocations that can fail */
} step_rows[] = {
    {"new", make_entry, 13},
    {"copy", copy_entry, 25},
    {"set error", set_error, 4},
    {"batch", fill_batch, 5},
};

static unsigned climb(const struct step_row *row, struct gb_envelope *envelope)
{
    for (unsigned n = 1; n < 50; n++) {
        struct gb_err err = row->run(envelope, n);
        gb_oom_off();
        assert_int_equal(envelope->refs, 1);
        if (!gb_failed(err)) return n - 1;
        assert_int_equal(err.code, GB_UNAVAILABLE);
    }
    fail_msg("%s: it never succeeds", row->name);
    return 0;
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    struct gb_envelope *envelope = NULL;
    gb_oom_off();
    assert_false(gb_failed(gb_envelope_new(0, &envelope)));
    for (size_t i = 0; i < sizeof step_rows / sizeof step_rows[0]; i++) {
        unsigned failures = climb(&step_rows[i], envelope);
        if (failures != step_rows[i].failures) {
            fail_msg("%s: %u failures", step_rows[i].name, failures);
        }
    }
    gb_envelope_unref(envelope);
}

static void a_failed_set_keeps_the_old_text(void **state)
{
    (void)state;
    char *member = NULL;
    gb_oom_off();
    assert_false(gb_failed(gb_dlq_set(&member, gb_bytes_c("old"))));
    gb_oom_fail_at(1);
    assert_int_equal(gb_dlq_set(&member, gb_bytes_c("new")).code, GB_UNAVAILABLE);
    gb_oom_off();
    assert_string_equal(member, "old");
    free(member);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(a_failed_set_keeps_the_old_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
