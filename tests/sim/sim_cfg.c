#include "sim/sim_world.h"

/* Draws a whole configuration: half of the faults are absent in a usual seed, so that most seeds
 * show one or two kinds of trouble and some show all. */

static int64_t between(struct sim_world *w, int64_t low, int64_t high)
{
    return low + (int64_t)sim_below(w, (uint64_t)(high - low) + 1);
}

static bool one_in(struct sim_world *w, uint64_t n)
{
    return sim_below(w, n) == 0;
}

static uint32_t parts(struct sim_world *w, uint32_t max)
{
    return one_in(w, 2) ? 0 : (uint32_t)between(w, 1, max);
}

static void draw_policy(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    c->policy = gb_policy_default();
    c->policy.max_in_flight = (uint32_t)between(w, 1, 20);
    c->policy.max_replay_attempts = (uint32_t)between(w, 1, 8);
    c->policy.replay_budget_ns = between(w, 5, 60) * GB_SEC;
    c->policy.send_timeout_ns = between(w, 1, 8) * GB_SEC;
    c->policy.send_retry_budget_ns = one_in(w, 3) ? 0 : between(w, 1, 30) * GB_SEC;
    c->policy.max_outbox_depth = (uint64_t)(one_in(w, 3) ? between(w, 2, 10) : 1000);
    c->policy.depth_cache_ttl_ns = between(w, 50, 1000) * GB_MS;
    c->policy.backoff.initial_ns = between(w, 50, 2000) * GB_MS;
    c->policy.backoff.max_ns = c->policy.backoff.initial_ns * between(w, 1, 10);
    c->drop_permanent = one_in(w, 4);
    c->drop_expired = one_in(w, 2);
    c->policy.on_permanent_failure = c->drop_permanent ? GB_ACTION_DROP : GB_ACTION_DLQ;
    c->policy.on_expired = c->drop_expired ? GB_ACTION_DROP : GB_ACTION_DLQ;
    c->drain = gb_drain_policy_default();
    c->drain.batch_size = (uint32_t)between(w, 1, 20);
    c->drain.max_batch_size = c->drain.batch_size * (uint32_t)between(w, 1, 4);
    c->drain.max_concurrency = (uint32_t)between(w, 1, 8);
    c->drain.max_interval_ns = between(w, 1, 10) * GB_SEC;
    if (one_in(w, 4)) {
        c->drain.type = GB_DRAIN_FIXED;
        c->drain.interval_ns = between(w, 100, 3000) * GB_MS;
    }
}

static void draw_faults(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    c->net_cut = parts(w, 40);
    c->net_split = parts(w, 500);
    c->net_stall = parts(w, 200);
    c->dial_fail = parts(w, 300);
    c->broker_goodbye = parts(w, 500);
    c->broker_garbage = one_in(w, 4) ? parts(w, 200) : 0;
    c->broker_refuse = parts(w, 200);
    c->sink_transient = parts(w, 400);
    c->sink_lost_answer = parts(w, 200);
    c->sink_silent = parts(w, 60);
    c->sink_hang = one_in(w, 8) ? 5 : 0;
    c->poison = parts(w, 150);
    c->store_fail = parts(w, 200);
    c->store_lost_answer = parts(w, 150);
    c->store_silent = parts(w, 40);
    c->store_full = parts(w, 200);
    c->dlq_fail = parts(w, 500);
    c->sink_down = parts(w, 200);
    c->broker_amnesia = one_in(w, 6) ? parts(w, 100) : 0;
    c->crash = parts(w, 400);
    c->graceful = parts(w, 150);
    c->net_delay_max_ns = between(w, 1, one_in(w, 4) ? 500 : 20) * GB_MS;
    c->sink_delay_max_ns = between(w, 1, one_in(w, 4) ? 3000 : 50) * GB_MS;
    c->store_delay_max_ns = between(w, 1, one_in(w, 4) ? 1500 : 20) * GB_MS;
}

void sim_cfg_draw(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    *c = (struct sim_cfg){0};
    c->shared_outbox = !one_in(w, 3);
    c->fan_out = one_in(w, 3);
    c->same_partition = one_in(w, 2);
    c->has_dlq = !one_in(w, 5);
    c->to_mqtt = one_in(w, 3);
    c->v5 = !one_in(w, 4);
    c->ephemeral = one_in(w, 12);
    c->refilter = c->has_dlq && !c->ephemeral && one_in(w, 4);
    c->sender_qos = (uint8_t)between(w, 1, 2);
    c->keys = (uint8_t)(one_in(w, 3) ? 0 : between(w, 1, SIM_KEYS_MAX));
    c->messages = (uint32_t)between(w, 5, one_in(w, 4) ? 300 : 60);
    c->batch_max = one_in(w, 2) ? 1 : 10;
    c->receive_maximum = (uint16_t)between(w, 1, 40);
    c->reconnect_delay_ns = between(w, 50, 2000) * GB_MS;
    c->keep_alive_s = (uint16_t)between(w, 2, 30);
    c->publish_until_ns = between(w, 1, 40) * GB_SEC;
    c->faults_until_ns = c->publish_until_ns + between(w, 0, 60) * GB_SEC;
    draw_policy(w);
    draw_faults(w);
}
