#include "sim/sim_cluster.h"

/* Draws what a cluster adds to the configuration of sim_cfg.c: cadence, the table's manners, and
 * the trouble of machines and lines. As there, half of the faults are absent in a usual seed. */

static int64_t between(struct sim_world *w, int64_t low, int64_t high)
{
    return low + (int64_t)sim_below(w, (uint64_t)(high - low) + 1);
}

static uint32_t parts(struct sim_world *w, uint32_t max)
{
    return sim_below(w, 2) == 0 ? 0 : (uint32_t)between(w, 1, max);
}

static void draw_cadence(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    struct gb_lease_settings s = {.clustered = sim_below(w, 16) == 0};
    if (!s.clustered) {
        s.ttl_ns = between(w, 5, 15) * GB_SEC;
        if (sim_below(w, 2) == 0) s.grace_ns = between(w, 1, 4) * GB_SEC;
        if (sim_below(w, 2) == 0) s.poll_ns = between(w, 500, 3000) * GB_MS;
    }
    c->cadence = gb_lease_cadence(&s);
    c->step_down_ns = sim_below(w, 2) == 0 ? 0 : between(w, 5, 40) * GB_SEC;
}

static void draw_table(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    c->lease_delay_max_ns =
        sim_below(w, 3) == 0 ? between(w, 20, 700) * GB_MS : between(w, 1, 20) * GB_MS;
    c->lease_late_max_ns = between(w, 1, 30) * GB_SEC;
    c->lease_throttle = parts(w, 150);
    c->lease_lost_answer = parts(w, 150);
    c->lease_silent = parts(w, 60);
    c->lease_late = parts(w, 80);
}

/* What the checks of a single bridge have to excuse is left to it. */
static void leave_to_one_bridge(struct sim_cfg *c)
{
    c->shared_outbox = true;
    c->has_dlq = true;
    c->drop_permanent = c->drop_expired = false;
    c->policy.on_permanent_failure = c->policy.on_expired = GB_ACTION_DLQ;
    c->ephemeral = c->refilter = false;
    c->same_partition = true;
    c->broker_garbage = c->broker_amnesia = 0;
    c->sink_hang = 0;
    c->poison = 0;
}

void sim_cluster_draw(struct sim_world *w)
{
    struct sim_cfg *c = &w->cfg;
    leave_to_one_bridge(c);
    c->instances = (uint32_t)between(w, 2, SIM_INSTANCES_MAX);
    c->same_instance_id = sim_below(w, 4) == 0;
    draw_cadence(w);
    draw_table(w);
    c->crash = parts(w, 600);
    c->graceful = parts(w, 200);
    c->suspend = parts(w, 400);
    c->wall_jump = parts(w, 200);
    c->line_cut = parts(w, 300);
    c->store_cut = parts(w, 300);
    c->close_hang = sim_below(w, 4) == 0 ? parts(w, 200) : 0;
    c->publish_until_ns = w->duration_ns;
    c->faults_until_ns = w->duration_ns;
    int64_t messages = w->duration_ns / (between(w, 1, 8) * GB_SEC);
    c->messages = (uint32_t)gb_max_i64(messages, 5);
}
