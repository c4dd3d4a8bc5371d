#include "sim/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Issue A11: seeds without a violation, and one seed, one trace. A failing seed is printed with the
 * command that replays it; `make soak` runs a million. */

enum { SEEDS = 10000, HASHED = 500 };

static void run_seeds(uint64_t first, uint64_t count, void (*change)(struct sim_cfg *c))
{
    uint64_t messages = 0, crashes = 0, accepted = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct sim_report r;
        sim_run_as(seed, SIM_FAULT_NONE, false, change, &r);
        messages += r.messages;
        crashes += r.crashes;
        accepted += r.accepted;
        if (r.violation[0] != '\0') {
            fail_msg("seed %llu: %s; replay: gobridge-sim -seed %llu -trace",
                     (unsigned long long)seed, r.violation, (unsigned long long)seed);
        }
    }
    print_message("%llu seeds: %llu messages, %llu arrivals, %llu crashes\n",
                  (unsigned long long)count, (unsigned long long)messages,
                  (unsigned long long)accepted, (unsigned long long)crashes);
    assert_true(messages > count && accepted > 0);
}

static void test_seeds(void **state)
{
    (void)state;
    run_seeds(1, SEEDS, NULL);
}

static void test_same_seed_same_trace(void **state)
{
    (void)state;
    uint64_t previous = 0;
    for (uint64_t seed = 1; seed <= HASHED; seed++) {
        struct sim_report first, second;
        sim_run(seed, SIM_FAULT_NONE, false, &first);
        sim_run(seed, SIM_FAULT_NONE, false, &second);
        assert_int_equal(first.hash, second.hash);
        assert_int_equal(first.events, second.events);
        assert_true(first.hash != previous);
        previous = first.hash;
    }
}

/* --- scenarios: a kind of trouble that was found once, on its own and often --- */

static void calm(struct sim_cfg *c)
{
    c->net_cut = c->net_stall = c->dial_fail = 0;
    c->broker_goodbye = c->broker_garbage = c->broker_refuse = c->broker_amnesia = 0;
    c->sink_transient = c->sink_lost_answer = c->sink_silent = c->sink_hang = c->sink_down = 0;
    c->store_fail = c->store_lost_answer = c->store_silent = c->store_full = c->dlq_fail = 0;
    c->crash = c->graceful = c->poison = 0;
    c->ephemeral = false;
}

/* A crash leaves QoS 2 identifiers at the broker; a new message under one of them must not pass for
 * the old one. */
static void crashes_while_publishing_qos2(struct sim_cfg *c)
{
    calm(c);
    c->to_mqtt = true;
    c->sender_qos = 2;
    c->crash = 500;
}

/* Deliveries are handed back while the recycle for earlier ones runs; each of them must lead to
 * another one, or its message stays at the broker for ever. */
static void hand_backs_during_recycles(struct sim_cfg *c)
{
    calm(c);
    c->policy.send_retry_budget_ns = 0;
    c->store_fail = 300;
    c->sink_transient = 300;
}

static void cut_all_the_time(struct sim_cfg *c)
{
    calm(c);
    c->net_cut = 60;
    c->net_split = 700;
    c->dial_fail = 300;
}

static void crash_all_the_time(struct sim_cfg *c)
{
    calm(c);
    c->crash = 1000;
}

static void stop_all_the_time(struct sim_cfg *c)
{
    calm(c);
    c->graceful = 800;
    c->sink_silent = 100;
    c->store_silent = 50;
}

static void disk_full(struct sim_cfg *c)
{
    calm(c);
    c->shared_outbox = true;
    c->store_full = 700;
}

static void hung_senders(struct sim_cfg *c)
{
    calm(c);
    c->to_mqtt = false;
    c->sink_hang = 60;
}

static void nothing_wrong(struct sim_cfg *c)
{
    calm(c);
}

static void test_scenarios(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(struct sim_cfg *c);
    } rows[] = {
        {"nothing wrong", nothing_wrong},
        {"crashes while publishing QoS 2", crashes_while_publishing_qos2},
        {"hand-backs during recycles", hand_backs_during_recycles},
        {"cut all the time", cut_all_the_time},
        {"crash all the time", crash_all_the_time},
        {"stop all the time", stop_all_the_time},
        {"disk full", disk_full},
        {"hung senders", hung_senders},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("  %s: ", rows[i].name);
        run_seeds(1, 300, rows[i].change);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_trace),
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
