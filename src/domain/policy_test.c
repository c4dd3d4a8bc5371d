#include "domain/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct gb_reactor *new_reactor(void)
{
    struct gb_reactor *r = NULL;
    assert_false(gb_failed(gb_reactor_new(42, &r)));
    return r;
}

/* The table of spec 02 §2.2. */
static void defaults_are_the_specified_ones(void **state)
{
    (void)state;
    struct gb_policy p = gb_policy_default();
    assert_int_equal(p.max_in_flight, 100);
    assert_int_equal(p.max_replay_attempts, 5);
    assert_int_equal(p.replay_budget_ns, 15 * GB_MINUTE);
    assert_int_equal(p.send_timeout_ns, 30 * GB_SEC);
    assert_int_equal(p.send_retry_budget_ns, 60 * GB_SEC);
    assert_int_equal(p.processor_timeout_ns, 30 * GB_SEC);
    assert_int_equal(p.max_outbox_depth, 10000);
    assert_int_equal(p.depth_cache_ttl_ns, GB_SEC);
    assert_int_equal(p.on_expired, GB_ACTION_DLQ);
    assert_int_equal(p.on_permanent_failure, GB_ACTION_DLQ);
    assert_int_equal(p.on_filtered, GB_ACTION_DROP);
    assert_false(p.allow_unfenced);
    assert_false(p.allow_retry_drop);
    assert_int_equal(p.backoff.initial_ns, GB_SEC);
    assert_int_equal(p.backoff.max_ns, 30 * GB_SEC);
    assert_true(p.backoff.multiplier == 2.0);
    assert_true(p.backoff.jitter == 0.2);

    struct gb_drain_policy d = gb_drain_policy_default();
    assert_int_equal(d.type, GB_DRAIN_ADAPTIVE);
    assert_int_equal(d.interval_ns, GB_SEC);
    assert_int_equal(d.min_interval_ns, 100 * GB_MS);
    assert_int_equal(d.max_interval_ns, 30 * GB_SEC);
    assert_true(d.multiplier == 2.0);
    assert_int_equal(d.batch_size, 100);
    assert_int_equal(d.max_batch_size, 500);
    assert_int_equal(d.max_concurrency, 10);
    assert_int_equal(d.per_record_timeout_ns, 3 * GB_SEC);
    assert_int_equal(d.max_timeout_ns, 10 * GB_SEC);
    assert_int_equal(d.legacy_ceiling_ns, 0);
    assert_int_equal(d.stale_claim_ns, 30 * GB_SEC);
}

/* Spec 02 check 14, first part. */
static void the_delay_doubles_to_its_maximum(void **state)
{
    (void)state;
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 30, 30};
    struct gb_backoff b = {GB_SEC, 30 * GB_SEC, 2.0, 0};
    struct gb_reactor *r = new_reactor();
    for (uint32_t n = 1; n <= 7; n++) {
        assert_int_equal(gb_backoff_base_ns(&b, n), seconds[n - 1] * GB_SEC);
        assert_int_equal(gb_backoff_delay_ns(&b, n, 0, r), seconds[n - 1] * GB_SEC);
    }
    gb_reactor_free(r);
}

static void extreme_backoffs_do_not_overflow(void **state)
{
    (void)state;
    static const struct backoff_row {
        const char *name;
        struct gb_backoff b;
        uint32_t attempt;
        int64_t want_ns;
    } rows[] = {
        {"attempt 0 is the first", {GB_SEC, GB_MINUTE, 2.0, 0}, 0, GB_SEC},
        {"last attempt", {1, INT64_MAX, 2.0, 0}, UINT32_MAX, INT64_MAX},
        {"huge multiplier", {GB_SEC, INT64_MAX, 1e300, 0}, 3, INT64_MAX},
        {"no growth", {GB_SEC, GB_MINUTE, 1.0, 0}, UINT32_MAX, GB_SEC},
        {"slow growth", {GB_SEC, GB_MINUTE, 1.0000001, 0}, UINT32_MAX, GB_MINUTE},
        {"initial above the maximum", {GB_MINUTE, GB_SEC, 2.0, 0}, 1, GB_SEC},
        {"zero initial", {0, GB_SEC, 2.0, 0}, UINT32_MAX, 0},
        {"fraction", {GB_SEC, GB_MINUTE, 1.5, 0}, 3, 2250 * GB_MS},
    };
    struct gb_reactor *r = new_reactor();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t base_ns = gb_backoff_base_ns(&rows[i].b, rows[i].attempt);
        if (base_ns != rows[i].want_ns) fail_msg("%s: %jd", rows[i].name, (intmax_t)base_ns);
        struct gb_backoff jittered = rows[i].b;
        jittered.jitter = 1;
        int64_t delay_ns = gb_backoff_delay_ns(&jittered, rows[i].attempt, 0, r);
        if (delay_ns < 0 || delay_ns > jittered.max_ns) fail_msg("%s, jittered", rows[i].name);
    }
    gb_reactor_free(r);
}

/* Spec 02 check 14, second part: within [0.8 d, d), and both ends are approached. */
static void jitter_takes_from_the_delay(void **state)
{
    (void)state;
    struct gb_backoff b = {GB_SEC, 30 * GB_SEC, 2.0, 0.2};
    struct gb_reactor *r = new_reactor();
    for (uint32_t n = 1; n <= 7; n++) {
        int64_t d = gb_backoff_base_ns(&b, n);
        int64_t low = INT64_MAX;
        int64_t high = 0;
        for (int i = 0; i < 2000; i++) {
            int64_t delay = gb_backoff_delay_ns(&b, n, 0, r);
            if (delay < low) low = delay;
            if (delay > high) high = delay;
        }
        assert_true(low >= d / 10 * 8 && low < d / 100 * 81);
        assert_true(high < d && high > d / 100 * 99);
    }
    gb_reactor_free(r);
}

static void a_hint_wins_as_it_is(void **state)
{
    (void)state;
    struct gb_backoff b = {GB_SEC, 3 * GB_SEC, 2.0, 0.2};
    struct gb_reactor *r = new_reactor();
    assert_int_equal(gb_backoff_delay_ns(&b, 1, 7 * GB_SEC, r), 7 * GB_SEC);
    assert_true(gb_backoff_delay_ns(&b, 1, -1, r) < GB_SEC);
    gb_reactor_free(r);
}

static void the_ceiling_follows_the_batch(void **state)
{
    (void)state;
    static const struct ceiling_row {
        const char *name;
        int64_t per_record_s, max_s, legacy_s;
        uint64_t records;
        int64_t want_s;
    } rows[] = {
        {"check 8: 4 records", 3, 30, 0, 4, 12},
        {"check 8: 50 records", 3, 30, 0, 50, 30},
        {"08 check 35: 20 records", 3, 30, 0, 20, 30},
        {"08 check 35: 5 records", 3, 30, 0, 5, 15},
        {"one record", 3, 30, 0, 1, 3},
        {"none counts as one", 3, 30, 0, 0, 3},
        {"at least one record's", 60, 30, 0, 1, 60},
        {"the default's cap", 3, 10, 0, 4, 10},
        {"overflow meets the cap", 3, 30, 0, UINT64_MAX, 30},
        {"legacy governs", 3, 30, 20, 1, 20},
        {"legacy alone", 0, 0, 20, 500, 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_drain_policy p = gb_drain_policy_default();
        p.per_record_timeout_ns = rows[i].per_record_s * GB_SEC;
        p.max_timeout_ns = rows[i].max_s * GB_SEC;
        p.legacy_ceiling_ns = rows[i].legacy_s * GB_SEC;
        int64_t got_ns = gb_drain_ceiling_ns(&p, rows[i].records);
        if (got_ns != rows[i].want_s * GB_SEC) fail_msg("%s: %jd", rows[i].name, (intmax_t)got_ns);
    }
}

/* Spec 02 §7.4 and check 8, last part: the ceiling only raises what the sends need. */
static void the_budget_never_cuts_a_send(void **state)
{
    (void)state;
    static const struct budget_row {
        const char *name;
        uint64_t records, longest;
        uint32_t concurrency;
        int64_t send_timeout_ns;
        int64_t want_ns;
    } rows[] = {
        {"one send and its grace", 1, 1, 10, 30 * GB_SEC, 35 * GB_SEC},
        {"ten at once", 10, 1, 10, 30 * GB_SEC, 35 * GB_SEC},
        {"eleven take two rounds", 11, 1, 10, 30 * GB_SEC, 70 * GB_SEC},
        {"the longest group counts", 11, 5, 10, 30 * GB_SEC, 175 * GB_SEC},
        {"short sends: the ceiling raises", 4, 1, 10, GB_SEC, 12 * GB_SEC},
        {"short grace", 100, 20, 10, 2 * GB_SEC, 80 * GB_SEC},
        {"an empty batch", 0, 0, 10, 30 * GB_SEC, 35 * GB_SEC},
        {"no concurrency is one", 3, 1, 0, 30 * GB_SEC, 105 * GB_SEC},
        {"saturates", UINT64_MAX, UINT64_MAX, 10, INT64_MAX, INT64_MAX},
    };
    struct gb_drain_policy p = gb_drain_policy_default();
    p.max_timeout_ns = 30 * GB_SEC;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        p.max_concurrency = rows[i].concurrency;
        int64_t got_ns =
            gb_drain_budget_ns(&p, rows[i].records, rows[i].longest, rows[i].send_timeout_ns);
        if (got_ns != rows[i].want_ns) fail_msg("%s: %jd", rows[i].name, (intmax_t)got_ns);
    }
    p.per_record_timeout_ns = GB_MS;
    p.max_timeout_ns = GB_MS;
    p.max_concurrency = 1;
    assert_int_equal(gb_drain_budget_ns(&p, 1, 1, GB_MS), 2 * GB_SEC); /* the least there is */
}

/* Spec 02 check 4: 500ms, 10s, x1.5. */
static void adaptive_waits_grow_while_idle(void **state)
{
    (void)state;
    struct gb_drain_policy p = gb_drain_policy_default();
    p.min_interval_ns = 500 * GB_MS;
    p.max_interval_ns = 10 * GB_SEC;
    p.multiplier = 1.5;
    int64_t wait = gb_drain_next_interval_ns(&p, 0, false);
    assert_int_equal(wait, 500 * GB_MS);
    assert_int_equal(gb_drain_next_interval_ns(&p, wait, false), 750 * GB_MS);
    int cycles = 0;
    while (wait < 10 * GB_SEC) {
        int64_t next = gb_drain_next_interval_ns(&p, wait, false);
        assert_true(next > wait && next <= 10 * GB_SEC);
        wait = next;
        cycles++;
    }
    assert_int_equal(cycles, 8); /* 0.5 x 1.5^8 = 12.8 */
    assert_int_equal(gb_drain_next_interval_ns(&p, wait, false), 10 * GB_SEC);
    assert_int_equal(gb_drain_next_interval_ns(&p, wait, true), 500 * GB_MS);
    p.type = GB_DRAIN_FIXED;
    assert_int_equal(gb_drain_next_interval_ns(&p, wait, true), GB_SEC);
    assert_int_equal(gb_drain_next_interval_ns(&p, wait, false), GB_SEC);
}

static void poll_jitter_is_a_quarter_either_way(void **state)
{
    (void)state;
    struct gb_reactor *r = new_reactor();
    int64_t low = INT64_MAX;
    int64_t high = 0;
    for (int i = 0; i < 5000; i++) {
        int64_t wait = gb_drain_jitter_ns(10 * GB_SEC, r);
        if (wait < low) low = wait;
        if (wait > high) high = wait;
    }
    assert_true(low >= 7500 * GB_MS && low < 7600 * GB_MS);
    assert_true(high <= 12500 * GB_MS && high > 12400 * GB_MS);
    static const int64_t small[] = {INT64_MIN, -1, 0, 1, 2, 3};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        assert_true(gb_drain_jitter_ns(small[i], r) > 0); /* never zero */
    }
    assert_true(gb_drain_jitter_ns(INT64_MAX, r) > 0);
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_specified_ones),
        cmocka_unit_test(the_delay_doubles_to_its_maximum),
        cmocka_unit_test(extreme_backoffs_do_not_overflow),
        cmocka_unit_test(jitter_takes_from_the_delay),
        cmocka_unit_test(a_hint_wins_as_it_is),
        cmocka_unit_test(the_ceiling_follows_the_batch),
        cmocka_unit_test(the_budget_never_cuts_a_send),
        cmocka_unit_test(adaptive_waits_grow_while_idle),
        cmocka_unit_test(poll_jitter_is_a_quarter_either_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
