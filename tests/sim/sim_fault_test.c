#include "sim/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The checkers are checked: each planted mistake must be seen within a few seeds, by the invariant
 * that it breaks (issue A11). */

enum { SEEDS_MAX = 300 };

static const struct fault_row {
    enum sim_fault fault;
    const char *seen_as[3]; /* any of these, part of the text */
} rows[] = {
    {SIM_FAULT_ACK_FIRST, {"acknowledged before it was stored, sent or dead-lettered"}},
    {SIM_FAULT_SWALLOW_FAILED,
     {"acknowledged before it was stored", "completed before it was stored"}},
    {SIM_FAULT_REUSE_PACKET_ID, {"is used again while it is in flight"}},
    {SIM_FAULT_DROP_ON_RECONNECT, {"acknowledged before it was stored"}},
    {SIM_FAULT_LOSE_ORDER, {"overtook"}},
    {SIM_FAULT_STORE_LIES, {"acknowledged before it was stored"}},
    {SIM_FAULT_ACK_OUT_OF_ORDER, {"acknowledged out of order"}},
    {SIM_FAULT_STALE_TOKEN, {"after the faults stopped"}},
    {SIM_FAULT_ENDLESS_DUPLICATES, {"after the faults stopped"}},
    {SIM_FAULT_FORGET_DLQ, {"acknowledged before it was stored", "completed before it was stored"}},
    {SIM_FAULT_UNBOUNDED, {"the limit with its overshoot"}},
};

static bool is_expected(const struct fault_row *row, const char *violation)
{
    for (size_t i = 0; i < 3 && row->seen_as[i] != NULL; i++)
        if (strstr(violation, row->seen_as[i]) != NULL) return true;
    return false;
}

static void test_planted_faults_are_seen(void **state)
{
    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], SIM_FAULTS_ALONE - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct fault_row *row = &rows[i];
        uint64_t first_any = 0, first_expected = 0;
        for (uint64_t seed = 1; seed <= SEEDS_MAX && first_expected == 0; seed++) {
            struct sim_report r;
            sim_run(seed, row->fault, false, &r);
            if (r.violation[0] == '\0') continue;
            if (first_any == 0) first_any = seed;
            if (is_expected(row, r.violation)) first_expected = seed;
        }
        print_message("  %s: seen with seed %llu, as expected with seed %llu\n",
                      sim_fault_name(row->fault), (unsigned long long)first_any,
                      (unsigned long long)first_expected);
        assert_true(first_expected > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted_faults_are_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
