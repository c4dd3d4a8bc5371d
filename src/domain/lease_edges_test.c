#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "domain/failover_budget.h"
#include "domain/lease_cadence.h"

/* Both sides of each bound of cadence and budgets (what scripts/mutate.py asked for). */

static void one_nanosecond_is_written(void **state)
{
    (void)state;
    struct gb_lease_cadence c;
    c = gb_lease_cadence(&(struct gb_lease_settings){.clustered = true});
    assert_true(c.ha_baseline);
    c = gb_lease_cadence(&(struct gb_lease_settings){.clustered = true, .ttl_ns = 1});
    assert_false(c.ha_baseline);
    c = gb_lease_cadence(&(struct gb_lease_settings){.clustered = true, .renew_ns = 1});
    assert_false(c.ha_baseline);
    c = gb_lease_cadence(&(struct gb_lease_settings){.renew_ns = 1});
    assert_int_equal(c.asked_renew_ns, 1);
    assert_int_equal(c.asked_jitter_ns, 0); /* only a derived interval brings a jitter */
}

static struct gb_failover_terms terms(void)
{
    return (struct gb_failover_terms){.ttl_ns = 45 * GB_SEC,
                                      .renew_ns = 10 * GB_SEC,
                                      .jitter_ns = GB_SEC,
                                      .call_ns = 3 * GB_SEC,
                                      .poll_ns = 5 * GB_SEC,
                                      .grace_ns = 5 * GB_SEC,
                                      .activation_ns = 240 * GB_SEC,
                                      .step_down_ns = 30 * GB_SEC};
}

static void polls_round_up(void **state)
{
    (void)state;
    static const struct {
        int64_t poll_ns, max_ns, min_ns;
    } rows[] = {{4000004, 5000005, 3000003}, {4000005, 5000007, 3000004},
                {4000003, 5000004, 3000003}, {800000, 1000000, 1000000},
                {800001, 1000002, 1000000},  {1, 1000000, 1000000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_failover_terms t = terms();
        struct gb_owner_death b = {0};
        t.poll_ns = rows[i].poll_ns;
        assert_false(gb_failed(gb_failover_owner_death(&t, &b)));
        assert_int_equal(b.max_poll_ns, rows[i].max_ns);
        assert_int_equal(b.min_poll_ns, rows[i].min_ns);
    }
}

static void closing_takes_at_most_five_seconds_each(void **state)
{
    (void)state;
    static const struct {
        int64_t grace_ns, closes_ns;
    } rows[] = {{1, 2},
                {5 * GB_SEC - 1, 10 * GB_SEC - 2},
                {5 * GB_SEC, 10 * GB_SEC},
                {5 * GB_SEC + 1, 10 * GB_SEC},
                {7 * GB_SEC, 10 * GB_SEC}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_failover_terms t = terms();
        struct gb_broker_path b = {0};
        t.grace_ns = rows[i].grace_ns;
        assert_false(gb_failed(gb_failover_broker_path(&t, &b)));
        assert_int_equal(b.closes_ns, rows[i].closes_ns);
    }
}

static void negative_terms_are_named(void **state)
{
    (void)state;
    struct gb_owner_death b;
    struct gb_failover_terms t = terms();
    t.jitter_ns = -1;
    assert_non_null(strstr(gb_failover_owner_death(&t, &b).message, "lease_renew_jitter"));
    t = terms();
    t.startup_ns = -1;
    assert_non_null(strstr(gb_failover_owner_death(&t, &b).message, "startup_allowance"));
    t = terms();
    t.jitter_ns = 0;
    t.startup_ns = 0;
    assert_false(gb_failed(gb_failover_owner_death(&t, &b)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_nanosecond_is_written),
        cmocka_unit_test(polls_round_up),
        cmocka_unit_test(closing_takes_at_most_five_seconds_each),
        cmocka_unit_test(negative_terms_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
