#include "domain/failover_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS(n) ((n)*GB_MS)
#define S(n) ((n)*GB_SEC)

static const struct gb_failover_terms seed = {
    .ttl_ns = S(300),
    .renew_ns = 62222222222,
    .jitter_ns = 15555555555,
    .call_ns = S(5),
    .poll_ns = S(5),
    .grace_ns = S(20),
    .activation_ns = S(240),
    .startup_ns = S(10),
};

/* Spec 06 §9.4; row 9 is in the table of refusals. */
static const struct death_row {
    const char *name;
    int64_t ttl, poll, call, activation, startup;
    int64_t min_poll, max_poll, calls, total;
} death_rows[] = {
    {"1 seed", S(300), S(5), S(5), S(240), S(10), MS(3750), MS(6250), 81, MS(967500)},
    {"2 HA baseline", S(45), S(5), S(3), S(240), 0, MS(3750), MS(6250), 13, MS(336500)},
    {"3 standalone default", S(360), S(5), S(5), S(240), 0, MS(3750), MS(6250), 97, MS(1097500)},
    {"4 exact boundary", S(5), S(4), S(1), S(5), S(4), S(3), S(5), 3, S(27)},
    {"5 the seed's 6s and 5s", S(6), S(4), S(1), S(40), 0, S(3), S(5), 3, S(59)},
    {"6 poll floor", S(5), MS(1), S(1), S(1), 0, MS(1), 1250000, 5001, 5007002500000},
    {"7 odd nanosecond", S(300), 5000000001, S(5), S(240), S(10), 3750000001, 6250000002, 81,
     967500000004},
    {"8 fits 120s", S(20), S(3), S(1), S(34), S(30), MS(2250), MS(3750), 10, MS(101500)},
    {"poll of one nanosecond", S(5), 1, S(1), S(1), 0, MS(1), MS(1), 5001, 5007002000000},
    {"ttl is a multiple of the shortest poll", S(6), S(4), S(1), 1, 0, S(3), S(5), 3, S(19) + 1},
    {"one more than a multiple", S(6) + 1, S(4), S(1), 1, 0, S(3), S(5), 4, S(20) + 2},
};

static void owner_death_of_table_9_4(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof death_rows / sizeof death_rows[0]; i++) {
        const struct death_row *row = &death_rows[i];
        const struct gb_failover_terms terms = {.ttl_ns = row->ttl,
                                                .poll_ns = row->poll,
                                                .call_ns = row->call,
                                                .activation_ns = row->activation,
                                                .startup_ns = row->startup};
        struct gb_owner_death b = {0};
        struct gb_err err = gb_failover_owner_death(&terms, &b);
        if (gb_failed(err)) fail_msg("%s: %s", row->name, err.message);
        if (b.min_poll_ns != row->min_poll || b.max_poll_ns != row->max_poll ||
            b.calls != row->calls || b.total_ns != row->total) {
            fail_msg("%s: polls %jd..%jd calls %jd total %jd", row->name, (intmax_t)b.min_poll_ns,
                     (intmax_t)b.max_poll_ns, (intmax_t)b.calls, (intmax_t)b.total_ns);
        }
        assert_int_equal(b.total_ns,
                         row->ttl + b.polls_ns + b.calls_ns + row->activation + row->startup);
    }
}

static void broker_path_of_table_9_4(void **state)
{
    (void)state;
    struct gb_failover_terms terms = seed;
    struct gb_broker_path b = {0};
    terms.step_down_ns = S(120);
    assert_int_equal(gb_failover_broker_path(&terms, &b).code, GB_OK);
    assert_int_equal(b.tick_ns, 69999999999);
    assert_int_equal(b.closes_ns, S(10));
    assert_int_equal(b.polls_ns, MS(12500));
    assert_int_equal(b.calls_ns, S(20));
    assert_int_equal(b.total_ns, 502499999999); /* row 10 */

    terms.step_down_ns = S(30);
    assert_int_equal(gb_failover_broker_path(&terms, &b).code, GB_OK);
    assert_int_equal(b.total_ns, 412499999999); /* spec 01 check 4 */

    terms = (struct gb_failover_terms){.ttl_ns = S(45),
                                       .renew_ns = S(10),
                                       .jitter_ns = S(1),
                                       .call_ns = S(3),
                                       .poll_ns = S(5),
                                       .grace_ns = S(5),
                                       .activation_ns = S(240),
                                       .step_down_ns = S(60)};
    assert_int_equal(gb_failover_broker_path(&terms, &b).code, GB_OK);
    assert_int_equal(b.total_ns, S(350)); /* row 11 */

    terms.grace_ns = S(2); /* close and release are bounded by the grace, too */
    assert_int_equal(gb_failover_broker_path(&terms, &b).code, GB_OK);
    assert_int_equal(b.closes_ns, S(4));
    assert_int_equal(b.total_ns, S(341));
}

/* Each row spoils one term of the seed's budgets. */
static const struct refusal_row {
    const char *name;
    size_t offset;
    int64_t value;
    const char *death; /* NULL: this budget still has a value */
    const char *path;
} refusals[] = {
#define TERM(field) offsetof(struct gb_failover_terms, field)
    {"no ttl", TERM(ttl_ns), 0, "lease_ttl is 0s", "lease_ttl is 0s"},
    {"negative ttl", TERM(ttl_ns), -1, "lease_ttl is -1ns", "lease_ttl is -1ns"},
    {"no poll", TERM(poll_ns), 0, "acquire_poll_interval is 0s", "acquire_poll_interval is 0s"},
    {"no call", TERM(call_ns), 0, "renew_call_timeout is 0s", "renew_call_timeout is 0s"},
    {"no activation", TERM(activation_ns), 0, "the activation is unknown",
     "the activation is unknown"},
    {"negative allowance", TERM(startup_ns), -1, "startup_allowance is negative",
     "startup_allowance is negative"},
    {"negative jitter", TERM(jitter_ns), -1, "lease_renew_jitter is negative",
     "lease_renew_jitter is negative"},
    {"no interval", TERM(renew_ns), 0, NULL, "renew_interval is 0s"},
    {"no grace", TERM(grace_ns), 0, NULL, "step_down_grace is 0s"},
    {"off", TERM(step_down_ns), 0, NULL, "broker_health_step_down is 0s"},
    {"9.4 row 9", TERM(ttl_ns), S(INT64_C(9223372036)), "acquire calls x renew_call_timeout", NULL},
    {"poll with its margin", TERM(poll_ns), INT64_MAX, "1.25 x acquire_poll_interval",
     "1.25 x acquire_poll_interval"},
    {"two polls", TERM(poll_ns), INT64_MAX / 4 * 3, "2 x the longest poll", "2 x the longest poll"},
    {"calls", TERM(call_ns), INT64_MAX / 81 + 1, "acquire calls x renew_call_timeout", NULL},
    {"four calls", TERM(call_ns), INT64_MAX / 4 + 1, "acquire calls x renew_call_timeout",
     "4 x renew_call_timeout"},
    {"polls beside the ttl", TERM(poll_ns), INT64_MAX / 5 * 2 - 10, "lease_ttl + polls",
     "the sum with two polls"},
    {"calls in the sum", TERM(call_ns), INT64_MAX / 81, "lease_ttl + polls + calls", NULL},
    {"activation in the sum", TERM(activation_ns), INT64_MAX, "the sum with the activation",
     "the sum with the activation"},
    {"allowance in the sum", TERM(startup_ns), INT64_MAX, "the sum with startup_allowance",
     "the sum with startup_allowance"},
    {"one renewal", TERM(renew_ns), INT64_MAX, NULL, "renew_interval + jitter / 2"},
    {"renewal in the sum", TERM(renew_ns), INT64_MAX - S(60), NULL, "the sum with one renewal"},
    {"grace in the sum", TERM(grace_ns), INT64_MAX, NULL, "the sum with step_down_grace"},
    {"step-down in the sum", TERM(step_down_ns), INT64_MAX, NULL, "the sum with one renewal"},
#undef TERM
};

static void check_refusal(const char *name, const char *want, struct gb_err err)
{
    if (want == NULL && gb_failed(err)) fail_msg("%s: %s", name, err.message);
    if (want == NULL) return;
    if (strstr(err.message, want) == NULL) fail_msg("%s: %s", name, err.message);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
}

static void what_cannot_be_computed_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct gb_failover_terms terms = seed;
        terms.step_down_ns = S(120);
        memcpy((char *)&terms + refusals[i].offset, &refusals[i].value, sizeof(int64_t));
        struct gb_owner_death death = {.total_ns = 7};
        struct gb_broker_path path = {.total_ns = 7};
        check_refusal(refusals[i].name, refusals[i].death, gb_failover_owner_death(&terms, &death));
        check_refusal(refusals[i].name, refusals[i].path, gb_failover_broker_path(&terms, &path));
        assert_true((refusals[i].death != NULL) == (death.total_ns == 7)); /* else untouched */
        assert_true((refusals[i].path != NULL) == (path.total_ns == 7));
    }
}

/* The last sum that has a value, and the first that has none. */
static void the_border_of_64_bits(void **state)
{
    (void)state;
    struct gb_failover_terms terms = seed;
    struct gb_owner_death death = {0};
    terms.activation_ns = INT64_MAX - (MS(967500) - S(240));
    assert_int_equal(gb_failover_owner_death(&terms, &death).code, GB_OK);
    assert_int_equal(death.total_ns, INT64_MAX);
    terms.activation_ns++;
    assert_int_equal(gb_failover_owner_death(&terms, &death).code, GB_INVALID_CONFIG);

    struct gb_broker_path path = {0};
    terms = seed;
    terms.step_down_ns = INT64_MAX - (INT64_C(502499999999) - S(120));
    assert_int_equal(gb_failover_broker_path(&terms, &path).code, GB_OK);
    assert_int_equal(path.total_ns, INT64_MAX);
    terms.step_down_ns++;
    assert_int_equal(gb_failover_broker_path(&terms, &path).code, GB_INVALID_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owner_death_of_table_9_4),
        cmocka_unit_test(broker_path_of_table_9_4),
        cmocka_unit_test(what_cannot_be_computed_is_refused),
        cmocka_unit_test(the_border_of_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
