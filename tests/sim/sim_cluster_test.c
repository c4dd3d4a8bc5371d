#include "sim/sim_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Spec 06 on two and three instances: seeds without a violation, one seed, one trace, and kinds of
 * trouble on their own. `make sim-cluster` runs 100,000 failovers. */

enum { SEEDS = 150, HASHED = 20, FAILOVERS_MIN = 10 * SEEDS };

static struct sim_cluster_report run(uint64_t seed, int64_t duration_ns,
                                     void (*change)(struct sim_cfg *c))
{
    const struct sim_cluster_run run = {.seed = seed, .duration_ns = duration_ns, .change = change};
    struct sim_cluster_report r;
    sim_cluster_run(&run, &r);
    if (r.run.violation[0] != '\0') {
        fail_msg("seed %llu: %s; replay: gobridge-sim -cluster -seed %llu -hours %g",
                 (unsigned long long)seed, r.run.violation, (unsigned long long)seed,
                 (double)duration_ns / 3600e9);
    }
    return r;
}

static void test_seeds(void **state)
{
    (void)state;
    uint64_t failovers = 0, messages = 0, arrivals = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_cluster_report r = run(seed, 12 * GB_MINUTE, NULL);
        failovers += r.failovers;
        messages += r.run.messages;
        arrivals += r.run.accepted;
    }
    print_message("%d seeds: %llu failovers, %llu messages, %llu arrivals\n", SEEDS,
                  (unsigned long long)failovers, (unsigned long long)messages,
                  (unsigned long long)arrivals);
    assert_true(failovers > FAILOVERS_MIN && arrivals >= messages);
}

static void test_same_seed_same_trace(void **state)
{
    (void)state;
    uint64_t previous = 0;
    for (uint64_t seed = 1; seed <= HASHED; seed++) {
        struct sim_cluster_report first = run(seed, 5 * GB_MINUTE, NULL);
        struct sim_cluster_report second = run(seed, 5 * GB_MINUTE, NULL);
        assert_int_equal(first.run.hash, second.run.hash);
        assert_int_equal(first.run.events, second.run.events);
        assert_true(first.run.hash != previous);
        previous = first.run.hash;
    }
}

/* --- kinds of trouble --- */

static void calm(struct sim_cfg *c)
{
    c->net_cut = c->net_stall = c->dial_fail = 0;
    c->broker_goodbye = c->broker_refuse = 0;
    c->sink_transient = c->sink_lost_answer = c->sink_silent = c->sink_down = 0;
    c->store_fail = c->store_lost_answer = c->store_silent = c->store_full = c->dlq_fail = 0;
    c->crash = c->graceful = c->suspend = c->wall_jump = c->line_cut = c->store_cut = 0;
    c->close_hang = 0;
    c->lease_throttle = c->lease_lost_answer = c->lease_silent = c->lease_late = 0;
    c->net_delay_max_ns = c->lease_delay_max_ns = c->store_delay_max_ns = 20 * GB_MS;
}

static void twins(struct sim_cfg *c)
{
    calm(c);
    c->same_instance_id = true;
}

/* Spec 06 check 1, for an hour. */
static void test_equal_instance_ids_for_an_hour(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sim_cluster_report r = run(seed, GB_HOUR, twins);
        assert_int_equal(r.version, 1);
        assert_int_equal(r.failovers, 0);
    }
}

static void killed_twins(struct sim_cfg *c)
{
    twins(c);
    c->crash = 300;
}

/* Only a death moves the lease; the successor serves within the budget of spec 06 §9.1. */
static void test_kills_fail_over_within_the_budget(void **state)
{
    (void)state;
    uint64_t failovers = 0, gap_max_ns = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim_cluster_report r = run(seed, 20 * GB_MINUTE, killed_twins);
        assert_true(r.version <= 1 + r.run.crashes);
        assert_true(r.gap_max_ns > 0 && r.gap_max_ns <= r.bound_ns);
        failovers += r.failovers;
        if (r.gap_max_ns > gap_max_ns) gap_max_ns = r.gap_max_ns;
    }
    print_message("%llu failovers by kill, the longest took %.3f s\n",
                  (unsigned long long)failovers, (double)gap_max_ns / 1e9);
    assert_true(failovers > 100);
}

static void suspends(struct sim_cfg *c)
{
    calm(c);
    c->suspend = 700;
}

static void clocks(struct sim_cfg *c)
{
    calm(c);
    c->wall_jump = 900;
    c->crash = 200;
}

static void lines(struct sim_cfg *c)
{
    calm(c);
    c->line_cut = 500;
    c->store_cut = 500;
    c->step_down_ns = 10 * GB_SEC;
}

static void bad_table(struct sim_cfg *c)
{
    calm(c);
    c->lease_throttle = c->lease_lost_answer = c->lease_late = 150;
    c->lease_silent = 60;
    c->crash = 200;
}

/* Spec 06 check 23: the lease is kept, the process ends, a standby waits for its time. */
static void hanging_closes(struct sim_cfg *c)
{
    calm(c);
    c->close_hang = 1000;
    c->suspend = c->graceful = 300;
}

static void test_kinds_of_trouble(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(struct sim_cfg *c);
    } rows[] = {
        {"suspends", suspends},
        {"clocks that are set", clocks},
        {"cut lines", lines},
        {"closes that hang", hanging_closes},
        {"a table that throttles, loses answers, applies late", bad_table},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t failovers = 0;
        for (uint64_t seed = 1; seed <= 15; seed++)
            failovers += run(seed, 12 * GB_MINUTE, rows[i].change).failovers;
        print_message("  %s: %llu failovers\n", rows[i].name, (unsigned long long)failovers);
        assert_true(failovers > 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_trace),
        cmocka_unit_test(test_equal_instance_ids_for_an_hour),
        cmocka_unit_test(test_kills_fail_over_within_the_budget),
        cmocka_unit_test(test_kinds_of_trouble),
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
