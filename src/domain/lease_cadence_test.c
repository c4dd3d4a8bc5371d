#include "domain/lease_cadence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS(n) ((n)*GB_MS)
#define S(n) ((n)*GB_SEC)

static const struct cadence_row {
    const char *name;
    struct gb_lease_settings written;
    int64_t ttl, renew, jitter, call, poll, grace, span;
} rows[] = {
    /* Spec 06 §4.1, to the nanosecond. */
    {"5s", {.ttl_ns = S(5)}, S(5), 555555555, 138888888, S(1), 555555555, MS(2500), 4874999997},
    {"45s, ttl pinned",
     {.clustered = true, .ttl_ns = S(45)},
     S(45),
     5555555555,
     1388888888,
     2777777777,
     S(5),
     S(15),
     27083333328},
    {"300s",
     {.clustered = true, .ttl_ns = S(300)},
     S(300),
     62222222222,
     15555555555,
     S(5),
     S(5),
     S(15),
     224999999997},
    {"360s", {0}, S(360), 75555555555, 18888888888, S(5), S(5), S(15), 269999999997},
    {"45s, HA baseline", {.clustered = true}, S(45), S(10), S(1), S(3), S(5), S(5), MS(40500)},
    /* Spec 01 §11. */
    {"seed example",
     {.clustered = true, .ttl_ns = S(300), .grace_ns = S(20), .fails = 3},
     S(300),
     62222222222,
     15555555555,
     S(5),
     S(5),
     S(20),
     224999999997},
    {"30s",
     {.ttl_ns = S(30)},
     S(30),
     3333333333,
     833333333,
     1666666666,
     3333333333,
     S(15),
     16249999995},
    /* Either key drops the baseline, and a written interval has no derived jitter. */
    {"only the interval",
     {.clustered = true, .renew_ns = S(20)},
     S(360),
     S(20),
     0,
     S(5),
     S(5),
     S(15),
     S(75)},
    {"baseline with overrides",
     {.clustered = true,
      .jitter_ns = S(2),
      .call_ns = S(2),
      .grace_ns = S(7),
      .poll_ns = S(4),
      .fails = 2},
     S(45),
     S(10),
     S(2),
     S(2),
     S(4),
     S(7),
     S(26)},
    {"written poll, one attempt",
     {.poll_ns = MS(100), .fails = 1},
     S(360),
     235555555555,
     58888888888,
     S(5),
     MS(100),
     S(15),
     S(270) - 1},
    {"call not below 1s",
     {.ttl_ns = S(30), .renew_ns = MS(500)},
     S(30),
     MS(500),
     0,
     S(1),
     MS(500),
     S(15),
     MS(4500)},
    {"call not above 5s",
     {.ttl_ns = S(60), .renew_ns = S(11)},
     S(60),
     S(11),
     0,
     S(5),
     S(5),
     S(15),
     S(48)},
    {"poll by the ttl",
     {.ttl_ns = S(12), .renew_ns = S(2), .fails = 2},
     S(12),
     S(2),
     0,
     S(1),
     S(2),
     MS(6000),
     S(6)},
    {"poll is a quarter of the ttl",
     {.ttl_ns = S(10), .renew_ns = S(4), .fails = 1},
     S(10),
     S(4),
     0,
     S(2),
     MS(2500),
     S(5),
     S(6)},
    {"poll not below 1ms",
     {.ttl_ns = MS(2), .fails = 1, .renew_ns = 1, .call_ns = 1},
     MS(2),
     1,
     0,
     1,
     MS(1),
     MS(1),
     2},
    {"grace just below the ttl",
     {.ttl_ns = S(30), .grace_ns = S(30) - 1},
     S(30),
     3333333333,
     833333333,
     1666666666,
     3333333333,
     S(30) - 1,
     16249999995},
    {"grace of the ttl is halved",
     {.ttl_ns = S(30), .grace_ns = S(30)},
     S(30),
     3333333333,
     833333333,
     1666666666,
     3333333333,
     S(15),
     16249999995},
    /* P = ttl * 3 / (fails * 4), of which 5s are kept; no product of the whole TTL. */
    {"the longest ttl",
     {.ttl_ns = INT64_MAX},
     INT64_MAX,
     2049638225967727956,
     512409556491931989,
     S(5),
     S(5),
     S(15),
     6917529027641081850},
};

static void table_4_1_and_its_borders(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct cadence_row *row = &rows[i];
        struct gb_lease_cadence c = gb_lease_cadence(&row->written);
        if (c.ttl_ns != row->ttl || c.renew_ns != row->renew || c.jitter_ns != row->jitter ||
            c.call_ns != row->call || c.poll_ns != row->poll || c.grace_ns != row->grace ||
            c.span_ns != row->span || c.fit != GB_CADENCE_FITS) {
            fail_msg("%s: ttl %jd renew %jd jitter %jd call %jd poll %jd grace %jd span %jd fit %d",
                     row->name, (intmax_t)c.ttl_ns, (intmax_t)c.renew_ns, (intmax_t)c.jitter_ns,
                     (intmax_t)c.call_ns, (intmax_t)c.poll_ns, (intmax_t)c.grace_ns,
                     (intmax_t)c.span_ns, (int)c.fit);
        }
        int64_t fails = row->written.fails > 0 ? row->written.fails : 3;
        assert_int_equal(c.fails, fails);
        assert_int_equal(c.asked_span_ns, c.span_ns);
    }
}

/* Spec 06 §4.2. */
static const struct clamp_row {
    const char *name;
    struct gb_lease_settings written;
    int64_t asked_renew, asked_jitter, asked_call, asked_span;
    int64_t renew, jitter, call, span;
    enum gb_cadence_fit fit;
} clamp_rows[] = {
    {"6s, 4 fails: cut to 350ms",
     {.ttl_ns = S(6), .fails = 4},
     MS(500),
     MS(125),
     S(1),
     MS(6250),
     MS(350),
     0,
     S(1),
     MS(5400),
     GB_CADENCE_CUT},
    {"5s, 5 fails",
     {.ttl_ns = S(5), .fails = 5},
     333333333,
     83333333,
     S(1),
     6874999995,
     1000000,
     0,
     MS(899),
     MS(4500),
     GB_CADENCE_CUT},
    {"45s, 50 fails",
     {.ttl_ns = S(45), .fails = 50},
     S(300) / 1000,
     MS(75),
     S(1),
     66875000000,
     MS(1),
     0,
     MS(809),
     MS(40500),
     GB_CADENCE_CUT},
    {"01 row 16: 10s, renew 3s",
     {.ttl_ns = S(10), .renew_ns = S(3)},
     S(3),
     0,
     MS(1500),
     MS(13500),
     MS(1500),
     0,
     MS(1500),
     S(9),
     GB_CADENCE_CUT},
    {"the jitter alone",
     {.ttl_ns = S(30), .renew_ns = S(5), .jitter_ns = S(10), .call_ns = S(3)},
     S(5),
     S(10),
     S(3),
     S(39),
     S(5),
     S(2),
     S(3),
     S(27),
     GB_CADENCE_SHED},
    {"the whole jitter",
     {.ttl_ns = S(30), .renew_ns = S(6), .jitter_ns = S(10), .call_ns = S(3)},
     S(6),
     S(10),
     S(3),
     S(42),
     S(6),
     0,
     S(3),
     S(27),
     GB_CADENCE_SHED},
    {"one more is a cut",
     {.ttl_ns = S(30), .renew_ns = S(6) + 1, .jitter_ns = S(10), .call_ns = S(3)},
     S(6) + 1,
     S(10),
     S(3),
     S(42) + 3,
     S(6),
     0,
     S(3),
     S(27),
     GB_CADENCE_CUT},
    {"a span of the ttl is clamped",
     {.ttl_ns = S(30), .renew_ns = S(7), .call_ns = S(3)},
     S(7),
     0,
     S(3),
     S(30),
     S(6),
     0,
     S(3),
     S(27),
     GB_CADENCE_CUT},
    {"call cut, the rest has room",
     {.ttl_ns = S(30), .renew_ns = 1, .call_ns = S(20)},
     1,
     0,
     S(20),
     S(60) + 3,
     1,
     0,
     S(9) - MS(1),
     S(27) - MS(3) + 3,
     GB_CADENCE_CUT},
};

static void a_span_beyond_the_ttl_is_clamped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof clamp_rows / sizeof clamp_rows[0]; i++) {
        const struct clamp_row *row = &clamp_rows[i];
        struct gb_lease_cadence c = gb_lease_cadence(&row->written);
        if (c.asked_renew_ns != row->asked_renew || c.asked_jitter_ns != row->asked_jitter ||
            c.asked_call_ns != row->asked_call || c.asked_span_ns != row->asked_span) {
            fail_msg("%s: asked for renew %jd jitter %jd call %jd span %jd", row->name,
                     (intmax_t)c.asked_renew_ns, (intmax_t)c.asked_jitter_ns,
                     (intmax_t)c.asked_call_ns, (intmax_t)c.asked_span_ns);
        }
        if (c.renew_ns != row->renew || c.jitter_ns != row->jitter || c.call_ns != row->call ||
            c.span_ns != row->span || c.fit != row->fit) {
            fail_msg("%s: renew %jd jitter %jd call %jd span %jd fit %d", row->name,
                     (intmax_t)c.renew_ns, (intmax_t)c.jitter_ns, (intmax_t)c.call_ns,
                     (intmax_t)c.span_ns, (int)c.fit);
        }
    }
}

static void the_poll_follows_the_clamped_interval(void **state)
{
    (void)state;
    const struct gb_lease_settings written = {.ttl_ns = S(6), .fails = 4};
    assert_int_equal(gb_lease_cadence(&written).poll_ns, MS(350));
}

static void a_span_beyond_64_bits_is_clamped(void **state)
{
    (void)state;
    const struct gb_lease_settings written = {
        .ttl_ns = S(30), .renew_ns = INT64_MAX, .call_ns = INT64_MAX, .jitter_ns = INT64_MAX};
    struct gb_lease_cadence c = gb_lease_cadence(&written);
    assert_int_equal(c.asked_span_ns, GB_CADENCE_NO_SPAN);
    assert_int_equal(c.fit, GB_CADENCE_CUT);
    assert_int_equal(c.span_ns, S(27));
}

/* Every mix of least, usual and largest inputs, under the sanitizer. */
static void extremes_stay_positive(void **state)
{
    (void)state;
    static const int64_t values[] = {INT64_MIN, -1, 0, 1, S(5), INT64_MAX};
    enum { N = sizeof values / sizeof values[0], MIXES = N * N * N * N * N };
    for (size_t mix = 0; mix < MIXES; mix++) {
        const struct gb_lease_settings written = {
            .clustered = mix % 2 == 1,
            .ttl_ns = values[mix % N],
            .renew_ns = values[mix / N % N],
            .jitter_ns = values[mix / N / N % N],
            .call_ns = values[mix / N / N / N % N],
            .fails = values[mix / N / N / N / N],
            .poll_ns = values[(mix + 3) % N],
            .grace_ns = values[(mix + 1) % N],
        };
        struct gb_lease_cadence c = gb_lease_cadence(&written);
        assert_true(c.ttl_ns > 0 && c.renew_ns > 0 && c.call_ns > 0 && c.poll_ns > 0);
        assert_true(c.jitter_ns >= 0 && c.fails > 0 && c.grace_ns >= 0);
        assert_true(c.grace_ns < c.ttl_ns);
        assert_true(c.fit != GB_CADENCE_FITS || (c.span_ns > 0 && c.span_ns < c.ttl_ns));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_4_1_and_its_borders),
        cmocka_unit_test(a_span_beyond_the_ttl_is_clamped),
        cmocka_unit_test(the_poll_follows_the_clamped_interval),
        cmocka_unit_test(a_span_beyond_64_bits_is_clamped),
        cmocka_unit_test(extremes_stay_positive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
