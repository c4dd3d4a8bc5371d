#include "sim/sim_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The checkers of a cluster are checked: each planted mistake must be seen, by the invariant that
 * it breaks. `seed` is one that shows it; after a change of the core that moves the dice others are
 * tried, and the test says which. */

enum { SEEDS_MAX = 2000, SECONDS = 720 };

static void slow_table(struct sim_cfg *c)
{
    c->instances = SIM_INSTANCES_MAX;
    c->lease_delay_max_ns = 450 * GB_MS;
    c->crash = 600;
}

/* A renewal that was sent twice brings the earlier row back. */
static void late_renewals(struct sim_cfg *c)
{
    c->instances = SIM_INSTANCES_MAX;
    c->lease_late = 250;
    c->lease_late_max_ns = 4 * GB_SEC;
    c->lease_delay_max_ns = 300 * GB_MS;
    c->crash = 300;
}

static void hanging_closes(struct sim_cfg *c)
{
    c->close_hang = 500;
    c->suspend = 300;
}

static const struct fault_row {
    enum sim_fault fault;
    uint64_t seed;
    const char *seen_as[3]; /* any of these, part of the text */
    void (*change)(struct sim_cfg *c);
} rows[] = {
    {SIM_FAULT_CLAIM_STALE, 5, {"a claim under version"}, NULL},
    {SIM_FAULT_COMPLETE_STALE, 3, {"a record was settled under version"}, NULL},
    {SIM_FAULT_TAKE_BLINDLY, 2, {"of the lease was followed by", "was unchanged for"}, NULL},
    {SIM_FAULT_OBSERVE_TWICE, 3, {"evidence of", "was unchanged for"}, NULL},
    {SIM_FAULT_GENERATION_RESTARTS, 109, {"evidence of", "was unchanged for"}, late_renewals},
    {SIM_FAULT_EVIDENCE_STAYS, 1, {"evidence of", "was unchanged for"}, NULL},
    {SIM_FAULT_ROW_DELETED, 1, {"of the lease was followed by 0"}, NULL},
    {SIM_FAULT_VERSION_STAYS, 1, {"of the lease was followed by"}, NULL},
    {SIM_FAULT_OWN_VERSION_STAYS, 1, {"of the lease was followed by"}, NULL},
    {SIM_FAULT_RENEW_BLINDLY, 1, {"under one version"}, NULL},
    {SIM_FAULT_RELEASE_BLINDLY, 1, {"was released by"}, NULL},
    {SIM_FAULT_RENEW_LIES, 1, {"which has authority", "instances have authority"}, NULL},
    {SIM_FAULT_ACQUIRE_LIES, 3, {"instances have authority"}, NULL},
    {SIM_FAULT_TABLE_DEAF, 1, {"no instance serves"}, NULL},
    {SIM_FAULT_BASELINE_EARLY, 148, {"evidence of", "was unchanged for"}, slow_table},
    {SIM_FAULT_HALF_THE_TIME, 1, {"was unchanged for"}, NULL},
    {SIM_FAULT_WALL_EXPIRY, 3, {"was unchanged for"}, NULL},
    {SIM_FAULT_BASELINE_DROPPED, 4, {"no instance serves"}, NULL},
    {SIM_FAULT_NO_NONCE, 8, {"instances have authority", "which has authority"}, NULL},
    {SIM_FAULT_DEADLINE_FROM_ANSWER, 3, {"after its deadline"}, NULL},
    {SIM_FAULT_DEADLINE_IGNORED, 1, {"after its deadline"}, NULL},
    {SIM_FAULT_DEADLINE_BY_WALL, 5, {"after its deadline"}, NULL},
    {SIM_FAULT_RESUME_UNSEEN, 1, {"after its deadline"}, NULL},
    {SIM_FAULT_RELEASE_FIRST, 1, {"before its source was closed"}, NULL},
    {SIM_FAULT_HANG_RETURNS, 1, {"although its close hangs"}, hanging_closes},
    {SIM_FAULT_GRACE_SKIPPED, 1, {"with work in flight"}, NULL},
    {SIM_FAULT_CONNECT_FIRST, 1, {"without a lease"}, NULL},
    {SIM_FAULT_UNFENCED_WIRE, 1, {"wrote to the broker"}, NULL},
    {SIM_FAULT_OLD_CONNECTION_STAYS, 1, {"connected owners"}, NULL},
    /* Those of a bridge alone that a takeover could hide. */
    {SIM_FAULT_ACK_FIRST, 1, {"acknowledged before it was stored"}, NULL},
    {SIM_FAULT_SWALLOW_FAILED, 1, {"completed before it was stored"}, NULL},
    {SIM_FAULT_STORE_LIES, 1, {"acknowledged before it was stored"}, NULL},
    {SIM_FAULT_DROP_ON_RECONNECT, 1, {"acknowledged"}, NULL},
    {SIM_FAULT_ENDLESS_DUPLICATES, 1, {"is not delivered after the faults stopped"}, NULL},
};
enum { ROWS = sizeof rows / sizeof rows[0], OTHERS = 5 };

static bool is_seen(const struct fault_row *row, uint64_t seed, const struct sim_report *r)
{
    for (size_t i = 0; i < 3 && row->seen_as[i] != NULL; i++) {
        if (strstr(r->violation, row->seen_as[i]) == NULL) continue;
        print_message("  %s, seed %llu: %s\n", sim_fault_name(row->fault), (unsigned long long)seed,
                      r->violation);
        return true;
    }
    return false;
}

static bool run(const struct fault_row *row, uint64_t seed)
{
    struct sim_cluster_report r;
    const struct sim_cluster_run run = {
        .seed = seed, .fault = row->fault, .duration_ns = SECONDS * GB_SEC, .change = row->change};
    sim_cluster_run(&run, &r);
    return is_seen(row, seed, &r.run);
}

static void test_planted_faults_are_seen(void **state)
{
    (void)state;
    assert_int_equal(ROWS - OTHERS, SIM_FAULTS - SIM_FAULTS_ALONE);
    for (size_t i = 0; i < ROWS; i++) {
        const struct fault_row *row = &rows[i];
        bool seen = run(row, row->seed);
        for (uint64_t seed = 1; seed <= SEEDS_MAX && !seen; seed++) seen = run(row, seed);
        if (!seen) fail_msg("nothing sees %s", sim_fault_name(row->fault));
    }
}

/* The same runs without a mistake break nothing. */
static void test_without_fault_nothing_is_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        const struct sim_cluster_run run = {
            .seed = rows[i].seed, .duration_ns = SECONDS * GB_SEC, .change = rows[i].change};
        struct sim_cluster_report r;
        bool known =
            i > 0 && rows[i].seed == rows[i - 1].seed && rows[i].change == rows[i - 1].change;
        if (known) continue;
        sim_cluster_run(&run, &r);
        assert_string_equal(r.run.violation, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted_faults_are_seen),
        cmocka_unit_test(test_without_fault_nothing_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
