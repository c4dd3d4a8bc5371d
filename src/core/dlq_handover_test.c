#include "core/dlq_handover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/dead_letter.h"
#include "support/core_fixture.h"

struct fixture {
    struct core_fixture x;
    struct gb_dlq_handover handover;
    unsigned done;
    enum gb_code code;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    core_fixture_init(&f.x);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gb_dlq_handover_deinit(&f->handover);
    core_fixture_deinit(&f->x);
    return 0;
}

static void on_done(struct gb_op *op, void *arg)
{
    struct fixture *f = arg;
    f->done++;
    f->code = op->result.code;
}

static struct gb_dlq_entry *make_entry(const struct gb_err *cause)
{
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c("m1")).code, GB_OK);
    assert_int_equal(gb_envelope_put_text(e, "x-bridge.correlation-id", gb_bytes_c("corr")).code,
                     GB_OK);
    struct gb_dlq_entry *entry = NULL;
    assert_int_equal(gb_dead_letter_build(
                         &(struct gb_dead_letter){
                             .envelope = e,
                             .route_id = "r",
                             .binding_id = NULL,
                             .address = gb_bytes_c("a"),
                             .session_id = gb_bytes_c("s"),
                             .source_id = "i1",
                             .cause = cause,
                             .attempts = 3,
                             .now_ms = 42,
                         },
                         &entry)
                         .code,
                     GB_OK);
    gb_envelope_unref(e);
    return entry;
}

static void start(struct fixture *f)
{
    struct gb_err cause = gb_err(GB_FORBIDDEN, "no");
    gb_dlq_handover_start(&f->handover,
                          &(struct gb_dlq_handover_cfg){.reactor = f->x.reactor,
                                                        .dlq = &f->x.dlq.dlq,
                                                        .metrics = f->x.metrics,
                                                        .category = "permanent"},
                          make_entry(&cause), on_done, f);
    assert_int_equal(f->done, 0); /* never from inside the call */
}

static const struct try_row {
    const char *name;
    enum gb_code answers[3];
    unsigned writes;
    enum gb_code result;
    int64_t after_ns;
    unsigned entries, duplicates, failures;
} try_rows[] = {
    {"at once", {GB_OK}, 1, GB_OK, 0, 1, 0, 0},
    {"second try", {GB_UNAVAILABLE, GB_OK}, 2, GB_OK, 500 * GB_MS, 1, 0, 0},
    {"third try", {GB_UNAVAILABLE, GB_THROTTLED, GB_OK}, 3, GB_OK, 1500 * GB_MS, 1, 0, 0},
    {"never", {GB_UNAVAILABLE, GB_UNAVAILABLE, GB_TIMEOUT}, 3, GB_TIMEOUT, 1500 * GB_MS, 0, 0, 1},
    {"known already", {GB_DUPLICATE_RECORD}, 1, GB_OK, 0, 0, 1, 0},
};

static void test_tries(void **state)
{
    for (size_t i = 0; i < sizeof try_rows / sizeof try_rows[0]; i++) {
        const struct try_row *row = &try_rows[i];
        print_message("  %s\n", row->name);
        if (i > 0) setup(state);
        struct fixture *f = *state;
        for (unsigned k = 0; k < row->writes; k++) {
            fake_script_add(&f->x.dlq.script, row->answers[k] == GB_OK ? FAKE_DO : FAKE_FAIL,
                            row->answers[k]);
        }
        start(f);
        if (row->after_ns > 0) {
            core_fixture_run(&f->x, row->after_ns - 1);
            assert_int_equal(f->done, 0);
        }
        core_fixture_run(&f->x, 1);
        assert_int_equal(f->done, 1);
        assert_int_equal(f->code, row->result);
        assert_int_equal(f->x.dlq.writes, row->writes);
        assert_int_equal(core_fixture_count_of(&f->x, "DLQEntries", "category", "permanent"),
                         row->entries);
        assert_int_equal(core_fixture_count(&f->x, "DLQDuplicateSuppressed"), row->duplicates);
        assert_int_equal(core_fixture_count(&f->x, "DLQWriteFailures"), row->failures);
        if (i + 1 < sizeof try_rows / sizeof try_rows[0]) teardown(state);
    }
}

static void test_ten_seconds_in_all(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.dlq.script, FAKE_HOLD, GB_OK);
    start(f);
    uint64_t started_ns = f->x.now_ns;
    assert_int_equal(f->handover.write.op.deadline_ns, started_ns + (uint64_t)(10 * GB_SEC));
    core_fixture_run(&f->x, 9600 * GB_MS);
    fake_dlq_answer(&f->x.dlq, GB_UNAVAILABLE);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->x.dlq.writes, 1); /* the next try would begin after the tenth second */
    assert_int_equal(f->done, 1);
    assert_int_equal(f->code, GB_UNAVAILABLE);
}

static void test_cancel_while_writing(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.dlq.script, FAKE_HOLD, GB_OK);
    start(f);
    gb_op_cancel(&f->handover.op);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->code, GB_CANCELLED);
    assert_int_equal(core_fixture_count(&f->x, "DLQWriteFailures"), 0);
}

static void test_cancel_while_waiting(void **state)
{
    struct fixture *f = *state;
    fake_script_always(&f->x.dlq.script, FAKE_FAIL, GB_UNAVAILABLE);
    start(f);
    core_fixture_run(&f->x, GB_MS);
    gb_op_cancel(&f->handover.op);
    core_fixture_run(&f->x, 10 * GB_SEC);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->code, GB_CANCELLED);
    assert_int_equal(f->x.dlq.writes, 1);
}

static void test_cancel_that_loses(void **state)
{
    struct fixture *f = *state;
    start(f); /* the store has answered; `done` is still to run */
    gb_op_cancel(&f->handover.op);
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->code, GB_OK);
    gb_op_cancel(&f->handover.op); /* after: nothing */
    core_fixture_run(&f->x, GB_SEC);
    assert_int_equal(f->done, 1);
}

static void test_entry(void **state)
{
    (void)state;
    struct gb_err cause = gb_err(GB_PAYLOAD_TOO_LARGE, "too big");
    struct gb_dlq_entry *e = make_entry(&cause);
    assert_int_equal(strlen(e->id), 64);
    assert_string_equal(e->route_id, "r");
    assert_string_equal(e->binding_id, "");
    assert_string_equal(e->address, "a");
    assert_string_equal(e->session_id, "s");
    assert_string_equal(e->source_id, "i1");
    assert_string_equal(e->correlation_id, "corr");
    assert_string_equal(e->category, "rejected");
    assert_string_equal(e->error_code, "PAYLOAD_TOO_LARGE");
    assert_string_equal(e->reason, "too big");
    assert_string_equal(e->redrive_mode, "");
    assert_int_equal(e->failed_at_ms, 42);
    assert_int_equal(e->attempts, 3);
    gb_dlq_entry_free(e);
}

static void test_words(void **state)
{
    (void)state;
    struct gb_err e = gb_err(GB_MESSAGE_EXPIRED, "x");
    assert_string_equal(gb_dead_letter_word(&e), "expired");
    e = gb_err(GB_INVALID_TOPIC, "x");
    assert_string_equal(gb_dead_letter_word(&e), "rejected");
    e = gb_err(GB_INTERNAL, "x");
    assert_string_equal(gb_dead_letter_word(&e), "permanent");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tries),
        TEST(test_ten_seconds_in_all),
        TEST(test_cancel_while_writing),
        TEST(test_cancel_while_waiting),
        TEST(test_cancel_that_loses),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
