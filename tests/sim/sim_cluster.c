#include "sim/sim_cluster.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/log.h"
#include "domain/failover_budget.h"
#include "sim/sim_bridge.h"
#include "sim/sim_broker.h"
#include "sim/sim_check.h"
#include "sim/sim_store.h"

static const uint64_t restart_max_ns = 5 * UINT64_C(1000000000);
static const uint64_t standstill_ns = 600 * UINT64_C(1000000000);
static const int64_t hour_ms = GB_HOUR / GB_MS;
static const uint64_t look_ns = UINT64_C(1000000000);

struct sim_table *sim_cluster_table(struct sim_world *w)
{
    return &w->cluster->table;
}

int64_t sim_cluster_activation_ns(void)
{
    return (2 * SIM_CONNECT_S + 4 * SIM_RECONCILE_S + 2 * SIM_UNMATCHED_S) * GB_SEC;
}

uint32_t sim_cluster_index_of(struct sim_world *w, const char *owner)
{
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        const struct sim_bridge *b = w->cluster->hosts[i].bridge;
        if (b != NULL && strcmp(b->member->owner, owner) == 0) return i;
    }
    return SIM_INSTANCES_MAX;
}

/* --- processes --- */

static void restart_due(struct gb_timer *t)
{
    struct sim_host *h = GB_CONTAINER_OF(t, struct sim_host, restart);
    struct sim_world *w = h->world;
    if (h->resume_ns > 0) { /* its machine sleeps */
        gb_timer_start(t, h->resume_ns + 1);
        return;
    }
    w->starts++;
    w->actor = h;
    sim_trace(w, "process starts", h->index, w->starts);
    h->bridge = sim_bridge_new(w, h);
    w->actor = NULL;
}

static void nobody_serves(struct sim_cluster *c, const struct sim_bridge *b)
{
    if (c->lost_ns == 0 && strcmp(b->member->owner, c->served) == 0) c->lost_ns = c->world->now_ns;
}

static void died(struct sim_host *h)
{
    struct sim_world *w = h->world;
    struct sim_bridge *b = h->bridge;
    w->actor = h;
    sim_trace(w, b->why, h->index, b->member->version);
    if (b->stopped) {
        w->graceful_stops++;
    } else {
        w->crashes++;
    }
    nobody_serves(w->cluster, b);
    sim_bridge_check_conservation(b);
    w->allowed_drops += sim_bridge_drops(b);
    h->bridge = NULL;
    sim_bridge_free(b);
    w->actor = NULL;
    gb_timer_start(&h->restart, w->now_ns + sim_delay_ns(w, (int64_t)restart_max_ns));
}

void sim_cluster_serves(struct sim_world *w, uint32_t index, uint64_t version)
{
    struct sim_cluster *c = w->cluster;
    const char *owner = c->hosts[index].bridge->member->owner;
    bool other = c->served[0] != '\0' && strcmp(c->served, owner) != 0;
    sim_trace(w, other ? "serves: failover" : "serves", index, version);
    c->failovers += other;
    if (version < c->serving_version) {
        sim_violate(w, "instance %u serves under version %llu, after %llu", index,
                    (unsigned long long)version, (unsigned long long)c->serving_version);
    }
    c->serving_version = version;
    (void)snprintf(c->served, sizeof c->served, "%s", owner);
    if (c->lost_ns > 0 && w->now_ns - c->lost_ns > c->gap_max_ns)
        c->gap_max_ns = w->now_ns - c->lost_ns;
    c->lost_ns = 0;
}

/* --- trouble --- */

static void wake(struct sim_host *h)
{
    struct sim_world *w = h->world;
    if (h->suspended_at_ns == 0) return;
    uint64_t slept_ns = w->now_ns - h->suspended_at_ns;
    h->suspended_ns += slept_ns;
    h->mono_ahead_ns -= (int64_t)slept_ns;
    h->suspended_at_ns = h->resume_ns = 0;
    sim_trace(w, "resumes", h->index, slept_ns / 1000000);
    if (h->bridge == NULL) return;
    struct gb_reactor *r = h->bridge->reactor;
    if (w->fault != SIM_FAULT_RESUME_UNSEEN) gb_reactor_set_suspended(r, h->suspended_ns);
}

static void suspend(struct sim_host *h)
{
    struct sim_world *w = h->world;
    uint64_t most_ns = 3 * (uint64_t)w->cfg.cadence.ttl_ns;
    h->suspended_at_ns = w->now_ns;
    h->resume_ns = w->now_ns + 1 + sim_below(w, most_ns);
    sim_trace(w, "suspended", h->index, (h->resume_ns - w->now_ns) / 1000000);
}

static void set_wall(struct sim_host *h)
{
    struct sim_world *w = h->world;
    int64_t span_ms = sim_below(w, 2) == 0 ? hour_ms : 2 * w->cfg.cadence.ttl_ns / GB_MS;
    int64_t to_ms = (int64_t)sim_below(w, (uint64_t)span_ms) - span_ms / 2;
    int64_t jump_ms = to_ms - h->wall_ahead_ms;
    sim_trace(w, "wall clock set", h->index, (uint64_t)(to_ms + hour_ms));
    h->wall_ahead_ms = to_ms;
    if (h->bridge != NULL) sim_member_wall_jumped(h->bridge->member, jump_ms);
}

static void cut_line(struct sim_host *h)
{
    struct sim_world *w = h->world;
    uint64_t until_ns = w->now_ns + sim_below(w, 20 * (uint64_t)GB_SEC);
    uint64_t which = sim_below(w, 3);
    if (which != 1) h->up_cut_ns = until_ns;
    if (which != 2) h->down_cut_ns = until_ns;
    sim_trace(w, "line to the broker cut", h->index, which);
}

static void cut_stores(struct sim_host *h)
{
    struct sim_world *w = h->world;
    h->store_cut_ns = w->now_ns + sim_below(w, 2 * (uint64_t)w->cfg.cadence.ttl_ns);
    h->store_hears = sim_below(w, 2) == 0;
    sim_trace(w, "line to the stores cut", h->index, h->store_hears);
}

/* More often than not it hits who serves. */
static struct sim_host *victim(struct sim_world *w)
{
    struct sim_cluster *c = w->cluster;
    uint32_t serving = sim_cluster_index_of(w, c->served);
    bool other = serving == SIM_INSTANCES_MAX || sim_below(w, 4) == 0;
    return &c->hosts[other ? sim_below(w, w->cfg.instances) : serving];
}

static void hit(struct sim_host *h)
{
    struct sim_world *w = h->world;
    const struct sim_cfg *c = &w->cfg;
    struct sim_bridge *b = h->bridge;
    if (h->resume_ns > 0) return;
    if (b != NULL && b->steps_to_crash == 0 && sim_chance(w, c->crash)) {
        b->why = "crash";
        if (sim_below(w, 2) == 0) { /* in the middle of what it does */
            b->steps_to_crash = 1 + sim_below(w, 60);
        } else {
            b->dead = true;
        }
        return;
    }
    if (b != NULL && sim_chance(w, c->graceful)) {
        sim_trace(w, "stop asked", h->index, 0);
        sim_bridge_stop(b);
    } else if (sim_chance(w, c->suspend)) {
        suspend(h);
    }
    if (sim_chance(w, c->wall_jump)) set_wall(h);
    if (sim_chance(w, c->line_cut)) cut_line(h);
    if (sim_chance(w, c->store_cut)) cut_stores(h);
}

static void heal(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    sim_trace(w, "healed", 0, 0);
    w->healed = true;
    c->healed_ns = w->now_ns;
    sim_table_drop_requests(&c->table);
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        wake(h);
        h->up_cut_ns = h->down_cut_ns = h->store_cut_ns = 0;
        if (h->bridge != NULL) h->bridge->steps_to_crash = 0;
    }
}

static void trouble_due(struct gb_timer *t)
{
    struct sim_cluster *c = GB_CONTAINER_OF(t, struct sim_cluster, trouble);
    struct sim_world *w = c->world;
    const struct sim_cfg *cfg = &w->cfg;
    if (w->now_ns >= (uint64_t)cfg->faults_until_ns && w->published == cfg->messages) {
        heal(c);
        return;
    }
    hit(victim(w));
    if (sim_chance(w, cfg->net_stall))
        w->net_stalled_until_ns = w->now_ns + sim_below(w, 10 * (uint64_t)GB_SEC);
    if (sim_chance(w, cfg->store_full))
        w->store_full_until_ns = w->now_ns + sim_below(w, 15 * (uint64_t)GB_SEC);
    if (sim_chance(w, cfg->sink_down))
        w->sink_down_until_ns = w->now_ns + sim_below(w, 30 * (uint64_t)GB_SEC);
    if (sim_chance(w, cfg->broker_goodbye)) sim_broker_trouble(w->broker);
    gb_timer_start(t, w->now_ns + 200 * (uint64_t)GB_MS + sim_below(w, 10 * (uint64_t)GB_SEC));
}

/* --- checks --- */

void sim_cluster_check_taken_from(struct sim_world *w, const char *owner)
{
    uint32_t i = sim_cluster_index_of(w, owner);
    if (i == SIM_INSTANCES_MAX) return;
    struct sim_bridge *b = w->cluster->hosts[i].bridge;
    if (!b->dead && w->now_ns < b->member->deadline_ns && sim_member_in_term(b->member))
        sim_violate(w, "the lease was taken from instance %u, which has authority", i);
}

static bool connected(const struct sim_bridge *b, bool at_broker)
{
    for (struct gb_list_node *n = gb_list_first(&b->conns); n != NULL;
         n = gb_list_next(&b->conns, n)) {
        const struct sim_conn *c = GB_CONTAINER_OF(n, struct sim_conn, node);
        if (c->connected && c->at_broker && (at_broker || c->state == SIM_OPEN)) return true;
    }
    return false;
}

static void check(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    unsigned owners = 0, authorities = 0, at_broker = 0;
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        struct sim_bridge *b = h->bridge;
        if (b == NULL || b->dead) continue;
        at_broker += connected(b, true);
        if (h->resume_ns > 0) continue; /* it does nothing, and learns the time when it wakes */
        sim_member_check(b->member);
        if (!b->member->serves) nobody_serves(c, b);
        bool holds = sim_member_holds(b->member);
        authorities += holds;
        owners += holds && connected(b, false);
        sim_bridge_check_bounds(b);
    }
    if (owners > 1 || authorities > 1) {
        sim_violate(w, "%u instances have authority, %u of them a connected session", authorities,
                    owners);
    }
    if (at_broker > 1) sim_violate(w, "the broker has %u connected owners", at_broker);
}

/* Spec 06 §9.1 with what it leaves out: a term that is under way when the faults stop first has to
 * end, the transport to see a dead line, a failed term to wait. */
static uint64_t bound_ns(const struct sim_world *w, bool with_rest)
{
    const struct sim_cfg *c = &w->cfg;
    const struct gb_failover_terms terms = {
        .ttl_ns = c->cadence.ttl_ns,
        .renew_ns = c->cadence.renew_ns,
        .jitter_ns = c->cadence.jitter_ns,
        .call_ns = c->cadence.call_ns,
        .poll_ns = c->cadence.poll_ns,
        .grace_ns = c->cadence.grace_ns,
        .activation_ns = sim_cluster_activation_ns(),
        .startup_ns = (int64_t)restart_max_ns,
    };
    struct gb_owner_death budget;
    GB_ASSERT(!gb_failed(gb_failover_owner_death(&terms, &budget)));
    uint64_t rest_ns =
        (uint64_t)(sim_cluster_activation_ns() + c->cadence.grace_ns + 8 * c->reconnect_delay_ns) +
        (uint64_t)(38 + 2 * c->keep_alive_s + 20) * (uint64_t)GB_SEC;
    return (uint64_t)budget.total_ns + (with_rest ? rest_ns : 0);
}

static unsigned serving(const struct sim_cluster *c)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < c->world->cfg.instances; i++) {
        const struct sim_bridge *b = c->hosts[i].bridge;
        n += b != NULL && b->member->serves && connected(b, false);
    }
    return n;
}

static void check_recovery(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    if (!w->healed || c->recovered_ns > 0) return;
    if (serving(c) == 1) c->recovered_ns = w->now_ns;
    if (c->recovered_ns == 0 && w->now_ns > c->healed_ns + bound_ns(w, true)) {
        sim_violate(w, "no instance serves %llu s after the faults stopped",
                    (unsigned long long)(w->now_ns - c->healed_ns) / 1000000000);
    }
}

/* --- the run --- */

static uint64_t next_of(const struct sim_host *h)
{
    if (h->resume_ns > 0) return h->resume_ns;
    if (h->bridge == NULL) return UINT64_MAX;
    return sim_host_world_ns(h, gb_reactor_next_ns(h->bridge->reactor));
}

static void run_host(struct sim_host *h)
{
    struct sim_bridge *b = h->bridge;
    if (b == NULL || h->resume_ns > 0) return;
    gb_reactor_set_now(b->reactor, sim_host_mono_ns(h), sim_host_wall_ms(h));
    if (b->dead || next_of(h) > h->world->now_ns) return;
    h->world->actor = h;
    sim_bridge_run(b);
    h->world->actor = NULL;
}

static bool step(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    sim_net_bury(w);
    uint64_t next_ns = gb_reactor_next_ns(w->reactor);
    for (uint32_t i = 0; i < w->cfg.instances; i++)
        if (next_of(&c->hosts[i]) < next_ns) next_ns = next_of(&c->hosts[i]);
    if (next_ns == UINT64_MAX) return false;
    if (next_ns > w->now_ns) w->now_ns = next_ns;
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        if (h->resume_ns > 0 && h->resume_ns <= w->now_ns) wake(h);
        if (h->bridge != NULL && h->resume_ns == 0)
            gb_reactor_set_now(h->bridge->reactor, sim_host_mono_ns(h), sim_host_wall_ms(h));
    }
    if (gb_reactor_next_ns(w->reactor) <= w->now_ns) {
        gb_reactor_run(w->reactor, w->now_ns, sim_wall_ms(w));
    } else {
        gb_reactor_set_now(w->reactor, w->now_ns, sim_wall_ms(w));
    }
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        run_host(h);
        if (h->bridge != NULL && (h->bridge->dead || h->bridge->ended)) died(h);
    }
    check(c);
    check_recovery(c);
    return true;
}

static void build(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    GB_ASSERT(!gb_failed(gb_timer_init(&c->trouble, w->reactor, trouble_due)));
    gb_timer_start(&c->trouble, w->now_ns + (uint64_t)GB_SEC);
    sim_table_init(&c->table, w);
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        h->index = i;
        h->world = w;
        h->mono_ahead_ns = (int64_t)sim_below(w, UINT64_C(1000000000000));
        if (w->cfg.wall_jump > 0) h->wall_ahead_ms = (int64_t)sim_below(w, 7200000) - 3600000;
        GB_ASSERT(!gb_failed(gb_timer_init(&h->restart, w->reactor, restart_due)));
        gb_timer_start(&h->restart, w->now_ns + sim_delay_ns(w, GB_SEC));
    }
}

static void take_down(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    for (uint32_t i = 0; i < w->cfg.instances; i++) {
        struct sim_host *h = &c->hosts[i];
        wake(h);
        if (h->bridge != NULL) sim_bridge_free(h->bridge);
        h->bridge = NULL;
        gb_timer_deinit(&h->restart);
    }
    gb_timer_deinit(&c->trouble);
    sim_table_drop_requests(&c->table);
    sim_world_tear_down(w);
}

static void run_to_end(struct sim_cluster *c)
{
    struct sim_world *w = c->world;
    uint64_t look_again_ns = 0, undone_min = UINT64_MAX, progress_ns = 0;
    while (w->violation[0] == '\0' && step(c)) {
        if (!w->healed || w->now_ns < look_again_ns) continue;
        look_again_ns = w->now_ns + look_ns;
        uint64_t undone = sim_check_undone(w);
        if (undone < undone_min) { /* a long backlog may take its time */
            undone_min = undone;
            progress_ns = w->now_ns;
        }
        bool stands_still = w->now_ns > progress_ns + standstill_ns;
        if (stands_still || (serving(c) == 1 && sim_check_all_done(w))) break;
    }
    if (w->violation[0] == '\0' && !sim_check_all_done(w)) sim_check_explain(w);
    if (w->violation[0] == '\0' && serving(c) != 1)
        sim_violate(w, "%u instances serve at the end", serving(c));
    for (uint32_t i = 0; i < w->cfg.instances; i++)
        if (c->hosts[i].bridge != NULL) sim_bridge_check_conservation(c->hosts[i].bridge);
}

void sim_cluster_run(const struct sim_cluster_run *run, struct sim_cluster_report *report)
{
    struct sim_world world = {.seed = run->seed, .fault = run->fault, .trace = run->trace};
    struct sim_world *w = &world;
    struct sim_cluster cluster = {.world = w};
    w->cluster = &cluster;
    w->duration_ns = run->duration_ns > 0 ? run->duration_ns : 10 * GB_MINUTE;
    sim_world_log_to_trace(w);
    sim_world_build(w, run->change);
    build(&cluster);
    run_to_end(&cluster);
    *report = (struct sim_cluster_report){
        .run = {.hash = w->hash,
                .events = w->events,
                .sim_ns = w->now_ns,
                .messages = w->published,
                .crashes = w->crashes,
                .accepted = w->accepted_total},
        .failovers = cluster.failovers,
        .version = cluster.table.version_max,
        .gap_max_ns = cluster.gap_max_ns,
        .bound_ns = bound_ns(w, false),
    };
    memcpy(report->run.violation, w->violation, sizeof report->run.violation);
    take_down(&cluster);
    gb_log_set_sink(NULL, NULL);
    gb_log_set_level(GB_LOG_INFO);
}
