#include "domain/takeover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/reactor.h"

/* A row in memory and observers of it, as a store would run the protocol. Time is what the test
 * says. */
struct world {
    struct gb_lease_row row;
    char owner[16], fingerprint[GB_SHA256_HEX];
};
static const struct gb_bytes own = {(const uint8_t *)"me#1", 4};

static void renew(struct world *w, const char *owner, uint64_t version, int64_t now_ms,
                  int64_t ttl_ms)
{
    (void)strncpy(w->owner, owner, sizeof w->owner - 1);
    w->row = (struct gb_lease_row){.key = gb_bytes_c("s"),
                                   .owner = gb_bytes_c(w->owner),
                                   .version = version,
                                   .renewed_ms = now_ms,
                                   .expires_ms = now_ms + ttl_ms};
}

static void write_evidence(struct world *w, const struct gb_takeover_verdict *v)
{
    memcpy(w->fingerprint, v->fingerprint, sizeof w->fingerprint);
    w->row.evidence_parts = 3;
    w->row.evidence =
        (struct gb_lease_evidence){gb_bytes_c(w->fingerprint), v->elapsed_ns, v->generation};
}

static int64_t s(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

/* One poll whose answers come at `at_ns`, the write's after another `write_ns`; true: taken. */
static bool poll(struct world *w, struct gb_takeover *t, int64_t at_ns, int64_t write_ns)
{
    struct gb_takeover_verdict v;
    assert_int_equal(gb_takeover_judge(t, &w->row, own, (uint64_t)at_ns, &v).code, GB_OK);
    if (v.step == GB_TAKEOVER_WAIT) return false;
    if (v.step == GB_TAKEOVER_SEIZE) return true;
    write_evidence(w, &v);
    if (v.then_seize) return true;
    gb_takeover_observed(t, &v, (uint64_t)(at_ns + write_ns));
    return false;
}

static void check_06_4_refused_at_5_and_10(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_false(poll(&w, &t, s(5), 0));
    assert_false(poll(&w, &t, s(10), 0));
    assert_int_equal(w.row.evidence.elapsed_ns, s(5));
    assert_true(poll(&w, &t, s(15), 0)); /* in the same call that confirms it */
}

static void released_and_own_at_once(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    renew(&w, "", 3, 1000, 6000);
    w.row.expires_ms = 0;
    assert_true(poll(&w, &t, s(1), 0));
    renew(&w, "me#1", 4, 1000, 6000);
    assert_true(poll(&w, &t, s(1), 0));
}

static void check_06_5_wall_clock_is_never_read(void **state)
{
    (void)state;
    static const int64_t owner_clock_ms[] = {1, 1000000, 4102444800000};
    for (size_t i = 0; i < 3; i++) {
        struct world w;
        struct gb_takeover t = {0};
        renew(&w, "dead#9", 3, owner_clock_ms[i], 6000);
        assert_false(poll(&w, &t, s(1), 0));
        assert_false(poll(&w, &t, s(6.9), 0));
        assert_true(poll(&w, &t, s(7), 0));
    }
}

static void check_06_7_evidence_is_inherited(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover killed = {0}, replacement = {0}, fresh = {0};
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_false(poll(&w, &killed, s(10), 0));
    assert_false(poll(&w, &killed, s(14), 0)); /* 4 s confirmed */
    assert_false(poll(&w, &replacement, s(100), 0));
    assert_false(poll(&w, &replacement, s(101.9), 0));
    assert_true(poll(&w, &replacement, s(102), 0));
    renew(&w, "dead#9", 3, 2000, 6000); /* nothing confirmed about this one */
    assert_false(poll(&w, &fresh, s(200), 0));
    assert_false(poll(&w, &fresh, s(205.9), 0));
    assert_true(poll(&w, &fresh, s(206), 0));
}

static void confirmed_evidence_is_enough(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    struct gb_takeover_verdict v = {.elapsed_ns = s(6), .generation = 9};
    renew(&w, "dead#9", 3, 1000, 6000);
    gb_lease_fingerprint(&w.row, v.fingerprint);
    write_evidence(&w, &v);
    assert_true(poll(&w, &t, s(1), 0));
}

static void check_06_8_slow_writes_are_not_counted(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_false(poll(&w, &t, s(0), s(2)));
    assert_false(poll(&w, &t, s(4), s(2))); /* 2 s more */
    assert_int_equal(w.row.evidence.elapsed_ns, s(2));
    assert_false(poll(&w, &t, s(8), s(2)));
    assert_int_equal(w.row.evidence.elapsed_ns, s(4));
    assert_true(poll(&w, &t, s(12), s(2)));
}

static void any_change_starts_over(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    renew(&w, "slow#9", 3, 1000, 6000);
    assert_false(poll(&w, &t, s(0), 0));
    assert_false(poll(&w, &t, s(5), 0));
    renew(&w, "slow#9", 3, 1001, 6000); /* a renewal, a millisecond later by its own clock */
    assert_false(poll(&w, &t, s(6), 0));
    assert_int_equal(w.row.evidence.elapsed_ns, 0);
    assert_false(poll(&w, &t, s(11.9), 0));
    assert_true(poll(&w, &t, s(12), 0));
}

static void without_own_baseline_nothing_is_added(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0}, other = {0};
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_false(poll(&w, &t, s(0), 0));
    assert_false(poll(&w, &other, s(1), 0)); /* only looks */
    uint64_t first = w.row.evidence.generation;
    gb_takeover_forget(&t); /* a lost write */
    assert_false(poll(&w, &t, s(5), 0));
    assert_int_equal(w.row.evidence.elapsed_ns, 0);
    assert_false(poll(&w, &other, s(2), 0)); /* 1 s more */
    assert_int_equal(w.row.evidence.elapsed_ns, s(1));
    assert_int_equal(w.row.evidence.generation, first + 1);
    assert_false(poll(&w, &t, s(6), 0)); /* its baseline was about the one before */
    assert_int_equal(w.row.evidence.elapsed_ns, s(1));
}

/* A renewal was sent twice, and its first copy comes after the next renewal. The row looks as it
 * did, and so does evidence about it that begins anew, but it was not unchanged. */
static void a_row_that_returns_starts_over(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover paused = {0}, other = {0};
    renew(&w, "slow#9", 3, 1000, 6000);
    assert_false(poll(&w, &paused, s(1), 0));
    renew(&w, "slow#9", 3, 6000, 6000);
    renew(&w, "slow#9", 3, 1000, 6000);
    assert_false(poll(&w, &other, s(6.5), 0));
    assert_false(poll(&w, &paused, s(7), 0));
    assert_int_equal(w.row.evidence.elapsed_ns, 0);
}

static void evidence_begins_with_a_number_of_its_own(void **state)
{
    (void)state;
    const struct gb_bytes other = gb_bytes_c("me#2");
    struct world w;
    struct gb_takeover t = {0};
    struct gb_takeover_verdict v[4];
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_int_equal(gb_takeover_judge(&t, &w.row, own, 1, &v[0]).code, GB_OK);
    assert_int_equal(gb_takeover_judge(&t, &w.row, own, 1, &v[1]).code, GB_OK);
    assert_int_equal(gb_takeover_judge(&t, &w.row, own, 2, &v[2]).code, GB_OK);
    assert_int_equal(gb_takeover_judge(&t, &w.row, other, 1, &v[3]).code, GB_OK);
    assert_true(v[0].generation == v[1].generation);
    assert_true(v[0].generation != v[2].generation);
    assert_true(v[0].generation != v[3].generation);
    for (size_t i = 0; i < 4; i++)
        assert_true(v[i].generation > 0 && v[i].generation <= UINT64_C(1) << 48);
}

static void a_clock_that_stands_adds_nothing(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    renew(&w, "dead#9", 3, 1000, 6000);
    assert_false(poll(&w, &t, s(5), 0));
    assert_false(poll(&w, &t, s(5), 0));
    assert_false(poll(&w, &t, s(4), 0)); /* back: a new baseline */
    assert_int_equal(w.row.evidence.elapsed_ns, 0);
    assert_false(poll(&w, &t, s(5), 0));
    assert_int_equal(w.row.evidence.elapsed_ns, s(1));
}

static void borders_of_the_numbers(void **state)
{
    (void)state;
    struct world w;
    struct gb_takeover t = {0};
    struct gb_takeover_verdict v = {.elapsed_ns = 1, .generation = GB_LEASE_VERSION_MAX};
    renew(&w, "dead#9", 3, 1000, 6000);
    gb_lease_fingerprint(&w.row, v.fingerprint);
    write_evidence(&w, &v);
    assert_false(poll(&w, &t, 0, 0));
    assert_int_equal(gb_takeover_judge(&t, &w.row, own, 5, &v).code, GB_INVALID_CONFIG);
    assert_false(t.known);
    w.row.evidence.generation = 1;
    w.row.expires_ms = 1000 + INT64_MAX / GB_MS;
    gb_lease_fingerprint(&w.row, w.fingerprint);
    w.row.evidence.elapsed_ns = INT64_MAX - s(1) - INT64_MAX % GB_MS;
    assert_false(poll(&w, &t, 0, 0));
    assert_true(poll(&w, &t, s(2), 0)); /* saturates instead of wrapping */
    assert_int_equal(w.row.evidence.elapsed_ns, INT64_MAX);
}

/* 06 check 6: whatever observers do and lose, stored time never exceeds real time since the last
 * renewal, and nobody takes a lease that was renewed within its duration. */
static void check_06_6_observers_never_exceed_real_time(void **state)
{
    (void)state;
    struct gb_reactor *random;
    assert_false(gb_failed(gb_reactor_new(6, &random)));
    for (unsigned run = 0; run < 2000; run++) {
        struct world w;
        struct gb_takeover observers[3] = {{0}};
        int64_t offset_ns[3]; /* each has a monotonic clock of its own */
        int64_t now_ns = 0, renewed_ns = 0;
        uint64_t renewals = 0;
        for (size_t i = 0; i < 3; i++)
            offset_ns[i] = (int64_t)gb_reactor_random_below(random, 1000000) * GB_MS;
        renew(&w, "owner#9", 3, 1000, 6000);
        for (unsigned step = 0; step < 60; step++) {
            now_ns += (int64_t)gb_reactor_random_below(random, 3000) * GB_MS;
            size_t i = gb_reactor_random_below(random, 4);
            if (i == 3) {
                if (now_ns - renewed_ns >= s(6)) continue;
                renewed_ns = now_ns;
                renew(&w, "owner#9", 3, 1000 + (int64_t)++renewals, 6000);
                continue;
            }
            struct gb_takeover_verdict v;
            uint64_t at_ns = (uint64_t)(now_ns + offset_ns[i]);
            struct gb_lease_row seen = w.row;
            assert_int_equal(gb_takeover_judge(&observers[i], &seen, own, at_ns, &v).code, GB_OK);
            if (v.step == GB_TAKEOVER_SEIZE || v.then_seize) {
                assert_true(now_ns - renewed_ns >= s(6));
                break;
            }
            if (v.step != GB_TAKEOVER_OBSERVE) continue;
            if (gb_reactor_random_below(random, 4) == 0) { /* the write was lost */
                gb_takeover_forget(&observers[i]);
                continue;
            }
            write_evidence(&w, &v);
            gb_takeover_observed(&observers[i], &v, at_ns);
            assert_true(w.row.evidence.elapsed_ns <= now_ns - renewed_ns);
        }
    }
    gb_reactor_free(random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_06_4_refused_at_5_and_10),
        cmocka_unit_test(released_and_own_at_once),
        cmocka_unit_test(check_06_5_wall_clock_is_never_read),
        cmocka_unit_test(check_06_7_evidence_is_inherited),
        cmocka_unit_test(confirmed_evidence_is_enough),
        cmocka_unit_test(check_06_8_slow_writes_are_not_counted),
        cmocka_unit_test(any_change_starts_over),
        cmocka_unit_test(without_own_baseline_nothing_is_added),
        cmocka_unit_test(a_row_that_returns_starts_over),
        cmocka_unit_test(evidence_begins_with_a_number_of_its_own),
        cmocka_unit_test(a_clock_that_stands_adds_nothing),
        cmocka_unit_test(borders_of_the_numbers),
        cmocka_unit_test(check_06_6_observers_never_exceed_real_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
