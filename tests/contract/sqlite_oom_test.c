#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "adapters/sqlite/sqlite_dlq.h"
#include "adapters/sqlite/sqlite_outbox.h"
#include "adapters/sqlite/sqlite_subscriptions.h"
#include "contract/outbox_contract.h"
#include "contract/sqlite_file.h"
#include "support/oom.h"

/* Allocation ladders of the SQLite stores: constructors leave nothing behind, calls answer
 * UNAVAILABLE and change nothing, until they have all they need. */

enum { LADDER_MAX = 200 };
#define S1 "SESSION#s1"

static struct sqlite_file file;
static struct outbox_backend backend = {.ctx = &file};

static struct gb_dlq *dlq;
static struct gb_subscriptions *subscriptions;

static struct gb_err open_outbox(void)
{
    struct gb_sqlite_outbox_cfg cfg = {.path = file.path};
    return gb_sqlite_outbox_new(file.pool, &cfg, &backend.store);
}

static void close_outbox(void)
{
    STORE_CLOSE(&backend.driver, backend.store);
}

static struct gb_err open_dlq(void)
{
    struct gb_sqlite_dlq_cfg cfg = {.path = file.path};
    return gb_sqlite_dlq_new(file.pool, &cfg, &dlq);
}

static void close_dlq(void)
{
    STORE_CLOSE(&backend.driver, dlq);
}

static struct gb_err open_subscriptions(void)
{
    struct gb_sqlite_subscriptions_cfg cfg = {.path = file.path};
    return gb_sqlite_subscriptions_new(file.pool, &cfg, &subscriptions);
}

static void close_subscriptions(void)
{
    STORE_CLOSE(&backend.driver, subscriptions);
}

/* A constructor may do without an allocation (a metric); it has all it needs when none failed. */
static void climb(struct gb_err (*open)(void), void (*close)(void))
{
    unsigned failures = 0;
    for (unsigned n = 1;; n++) {
        assert_true(n < LADDER_MAX);
        gb_oom_fail_at(n);
        struct gb_err err = open();
        bool all = gb_oom_count() < n;
        gb_oom_off();
        if (gb_failed(err)) {
            assert_int_equal(err.code, GB_UNAVAILABLE);
            failures++;
            continue;
        }
        close();
        if (all) break;
    }
    assert_true(failures > 2);
}

static void constructors(void **state)
{
    (void)state;
    store_driver_init_loop(&backend.driver);
    sqlite_file_init(&file, &backend.driver);
    climb(open_dlq, close_dlq); /* each opens the file anew */
    climb(open_subscriptions, close_subscriptions);
    climb(open_outbox, close_outbox);
    assert_int_equal(open_outbox().code, GB_OK);
    climb(open_dlq, close_dlq); /* each joins the outbox */
    climb(open_subscriptions, close_subscriptions);
    close_outbox();
    sqlite_file_deinit(&file);
    store_driver_deinit(&backend.driver);
}

static enum gb_code persist_failing_at(const struct gb_outbox_record *r, size_t count, unsigned n)
{
    struct gb_outbox_persist q = {.records = r, .count = count};
    store_driver_expect(&backend.driver);
    backend.store->ops->persist(backend.store, &q, store_driver_done, &backend.driver);
    gb_oom_fail_at(n);
    store_driver_run(&backend.driver);
    gb_oom_off();
    assert_int_equal(q.stored, q.op.result.code == GB_OK ? count : 0);
    return q.op.result.code;
}

static enum gb_code claim_failing_at(unsigned n)
{
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(S1), .token = {gb_bytes_c("o"), 1}, .limit = 10};
    store_driver_expect(&backend.driver);
    backend.store->ops->claim(backend.store, &q, store_driver_done, &backend.driver);
    gb_oom_fail_at(n);
    store_driver_run(&backend.driver);
    gb_oom_off();
    assert_true(q.op.result.code == GB_OK || q.batch == NULL);
    if (q.op.result.code == GB_OK) outbox_batch_is(q.batch, "A B C");
    gb_outbox_batch_free(q.batch);
    return q.op.result.code;
}

static void calls(void **state)
{
    (void)state;
    store_driver_init_loop(&backend.driver);
    sqlite_file_init(&file, &backend.driver);
    assert_int_equal(open_outbox().code, GB_OK);
    struct gb_outbox_record r[3];
    for (size_t i = 0; i < 3; i++) {
        r[i] =
            outbox_record(&(struct outbox_spec){.envelope_id = (const char *[]){"A", "B", "C"}[i],
                                                .binding_id = "b1",
                                                .session_id = "s1",
                                                .key = i > 0 ? "K" : NULL});
    }
    enum gb_code code = GB_UNAVAILABLE;
    for (unsigned n = 1; code != GB_OK; n++) {
        assert_true(n < LADDER_MAX);
        code = persist_failing_at(r, 3, n);
        assert_true(code == GB_OK || code == GB_UNAVAILABLE);
        assert_int_equal(outbox_stats(&backend, S1).pending, code == GB_OK ? 3 : 0);
    }
    code = GB_UNAVAILABLE;
    for (unsigned n = 1; code != GB_OK; n++) {
        assert_true(n < LADDER_MAX);
        code = claim_failing_at(n);
        assert_true(code == GB_OK || code == GB_UNAVAILABLE);
        assert_int_equal(outbox_stats(&backend, S1).claimed, code == GB_OK ? 3 : 0);
    }
    STORE_CLOSE(&backend.driver, backend.store);
    sqlite_file_deinit(&file);
    store_driver_deinit(&backend.driver);
    outbox_records_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructors),
        cmocka_unit_test(calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
