#include "sim/sim_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/log.h"
#include "sim/sim_bridge.h"
#include "sim/sim_broker.h"
#include "sim/sim_check.h"
#include "sim/sim_cluster.h"
#include "sim/sim_dlq.h"
#include "sim/sim_store.h"

static const int64_t wall_start_ms = INT64_C(1764547200000);
static const uint64_t heal_limit_ns = 2000 * UINT64_C(1000000000);
static const uint64_t events_max = 2000000;

const char *sim_fault_name(enum sim_fault fault)
{
    static const char *const names[SIM_FAULTS] = {
        "none",
        "ack-first",
        "swallow-failed",
        "reuse-packet-id",
        "drop-on-reconnect",
        "lose-order",
        "store-lies",
        "ack-out-of-order",
        "stale-token",
        "endless-duplicates",
        "forget-dlq",
        "unbounded",
        "claim-stale",
        "complete-stale",
        "take-blindly",
        "observe-twice",
        "generation-restarts",
        "evidence-stays",
        "row-deleted",
        "version-stays",
        "own-version-stays",
        "renew-blindly",
        "release-blindly",
        "renew-lies",
        "acquire-lies",
        "table-deaf",
        "baseline-early",
        "half-the-time",
        "wall-expiry",
        "baseline-dropped",
        "no-nonce",
        "deadline-from-answer",
        "deadline-ignored",
        "deadline-by-wall",
        "resume-unseen",
        "release-first",
        "hang-returns",
        "grace-skipped",
        "connect-first",
        "unfenced-wire",
        "old-connection-stays",
    };
    return names[fault];
}

int64_t sim_wall_ms(const struct sim_world *w)
{
    return wall_start_ms + (int64_t)(w->now_ns / (uint64_t)GB_MS);
}

uint64_t sim_below(struct sim_world *w, uint64_t bound)
{
    return gb_reactor_random_below(w->reactor, bound);
}

bool sim_chance(struct sim_world *w, uint32_t parts)
{
    return parts > 0 && !w->healed && sim_below(w, 1000) < parts;
}

uint64_t sim_delay_ns(struct sim_world *w, int64_t max_ns)
{
    if (w->healed && max_ns > 10 * GB_MS) max_ns = 10 * GB_MS;
    return 1000 + sim_below(w, (uint64_t)max_ns);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value;
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

/* The time and, in a cluster, who. */
static void print_head(const struct sim_world *w)
{
    (void)fprintf(stdout, "%12.6f  ", (double)w->now_ns / 1e9);
    if (w->cluster == NULL) return;
    if (w->actor != NULL) {
        (void)fprintf(stdout, "i%u  ", w->actor->index);
    } else {
        (void)fprintf(stdout, "--  ");
    }
}

void sim_trace(struct sim_world *w, const char *what, uint64_t a, uint64_t b)
{
    uint64_t hash = mix(w->hash, w->now_ns);
    for (const char *p = what; *p != '\0'; p++) hash = mix(hash, (uint8_t)*p);
    w->hash = mix(mix(hash, a), b);
    w->events++;
    if (w->trace) {
        print_head(w);
        (void)fprintf(stdout, "%-22s %llu %llu\n", what, (unsigned long long)a,
                      (unsigned long long)b);
    }
}

void sim_violate(struct sim_world *w, const char *format, ...)
{
    if (w->violation[0] != '\0') return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->violation, sizeof w->violation, format, args);
    va_end(args);
    sim_trace(w, "VIOLATION", 0, 0);
    if (w->trace) (void)fprintf(stdout, "              %s\n", w->violation);
}

bool sim_parse_payload(const struct sim_world *w, struct gb_bytes payload, uint32_t *index)
{
    uint64_t value = 0;
    size_t i = 1;
    if (payload.size < 3 || payload.size > 12 || payload.data[0] != 'm') return false;
    for (; i < payload.size - 1; i++) {
        if (payload.data[i] < '0' || payload.data[i] > '9') return false;
        value = value * 10 + (uint64_t)(payload.data[i] - '0');
    }
    if (payload.data[i] != ';' || value >= w->published) return false;
    *index = (uint32_t)value;
    return true;
}

/* --- what happens by itself --- */

static uint64_t next_publish_ns(struct sim_world *w)
{
    uint64_t spacing_ns = (uint64_t)w->cfg.publish_until_ns / w->cfg.messages;
    return w->now_ns + sim_below(w, 2 * spacing_ns + 1);
}

static void publish_due(struct gb_timer *t)
{
    struct sim_world *w = GB_CONTAINER_OF(t, struct sim_world, publish);
    const struct sim_cfg *c = &w->cfg;
    struct sim_message *m = &w->messages[w->published];
    m->qos = (uint8_t)(sim_below(w, 8) == 0 ? 0 : 1 + sim_below(w, 2));
    m->key = (uint8_t)(c->keys == 0 || sim_below(w, 4) == 0 ? 0 : 1 + sim_below(w, c->keys));
    m->anonymous = m->key == 0 && sim_below(w, 6) == 0;
    if (!c->v5) {
        m->key = 0;
        m->anonymous = true;
    }
    m->poison = sim_below(w, 1000) < c->poison;
    if (c->v5 && c->instances == 0 && sim_below(w, 10) == 0)
        m->expires_at_ms = sim_wall_ms(w) + 1000 + (int64_t)sim_below(w, 60000);
    sim_broker_publish(w->broker, w->published++);
    if (w->published < c->messages) gb_timer_start(t, next_publish_ns(w));
}

static void trouble_due(struct gb_timer *t)
{
    struct sim_world *w = GB_CONTAINER_OF(t, struct sim_world, trouble);
    const struct sim_cfg *c = &w->cfg;
    bool refilter_due = c->refilter && !w->refiltered && w->published > c->messages / 2;
    if (refilter_due && w->bridge != NULL && !w->bridge->dead) sim_bridge_stop(w->bridge);
    if (w->now_ns >= (uint64_t)c->faults_until_ns && w->published == c->messages && !refilter_due) {
        sim_trace(w, "healed", 0, 0);
        w->healed = true;
        if (w->bridge != NULL) w->bridge->steps_to_crash = 0;
        return;
    }
    if (w->bridge != NULL && w->bridge->steps_to_crash == 0 && sim_chance(w, c->crash))
        w->bridge->steps_to_crash = 1 + sim_below(w, 60);
    if (w->bridge != NULL && !w->bridge->dead && sim_chance(w, c->graceful)) {
        sim_trace(w, "stop asked", 0, 0);
        sim_bridge_stop(w->bridge);
    }
    if (sim_chance(w, c->net_stall))
        w->net_stalled_until_ns = w->now_ns + sim_below(w, 20 * (uint64_t)GB_SEC);
    if (sim_chance(w, c->store_full))
        w->store_full_until_ns = w->now_ns + sim_below(w, 15 * (uint64_t)GB_SEC);
    if (sim_chance(w, c->sink_down))
        w->sink_down_until_ns = w->now_ns + sim_below(w, 30 * (uint64_t)GB_SEC);
    if (sim_chance(w, c->broker_goodbye + c->broker_garbage)) sim_broker_trouble(w->broker);
    if (sim_chance(w, c->broker_amnesia)) sim_broker_forget(w->broker);
    gb_timer_start(t, w->now_ns + 200 * (uint64_t)GB_MS + sim_below(w, 4 * (uint64_t)GB_SEC));
}

static void restart_due(struct gb_timer *t)
{
    struct sim_world *w = GB_CONTAINER_OF(t, struct sim_world, restart);
    w->starts++;
    if (w->cfg.refilter && w->published > w->cfg.messages / 2) w->refiltered = true;
    sim_trace(w, "process starts", w->starts, 0);
    w->bridge = sim_bridge_new(w, &w->host);
}

void sim_world_bridge_died(struct sim_world *w, const char *why)
{
    struct sim_bridge *b = w->bridge;
    sim_trace(w, why, w->starts, 0);
    if (b->stopped) {
        w->graceful_stops++;
    } else {
        w->crashes++;
    }
    sim_bridge_check_conservation(b);
    w->allowed_drops += sim_bridge_drops(b);
    w->bridge = NULL;
    sim_bridge_free(b);
    gb_timer_start(&w->restart, w->now_ns + sim_delay_ns(w, 5 * GB_SEC));
}

/* --- the run --- */

uint64_t sim_host_world_ns(const struct sim_host *h, uint64_t mono_ns)
{
    if (mono_ns == 0 || mono_ns == UINT64_MAX) return mono_ns;
    int64_t world_ns = (int64_t)mono_ns - h->mono_ahead_ns;
    return world_ns < 1 ? 1 : (uint64_t)world_ns;
}

uint64_t sim_host_mono_ns(const struct sim_host *h)
{
    return (uint64_t)((int64_t)h->world->now_ns + h->mono_ahead_ns);
}

int64_t sim_host_wall_ms(const struct sim_host *h)
{
    return sim_wall_ms(h->world) + h->wall_ahead_ms;
}

void sim_world_build(struct sim_world *w, void (*change)(struct sim_cfg *c))
{
    w->hash = w->seed;
    w->host.world = w;
    struct gb_err err = gb_reactor_new(w->seed, &w->reactor);
    GB_ASSERT(!gb_failed(err));
    gb_list_init(&w->dead_conns);
    w->now_ns = (uint64_t)GB_SEC;
    gb_reactor_set_now(w->reactor, w->now_ns, sim_wall_ms(w));
    sim_cfg_draw(w);
    if (w->cluster != NULL) sim_cluster_draw(w);
    if (change != NULL) change(&w->cfg);
    w->messages = calloc(w->cfg.messages, sizeof *w->messages);
    GB_ASSERT(w->messages != NULL);
    err = gb_timer_init(&w->publish, w->reactor, publish_due);
    if (!gb_failed(err)) err = gb_timer_init(&w->trouble, w->reactor, trouble_due);
    if (!gb_failed(err)) err = gb_timer_init(&w->restart, w->reactor, restart_due);
    GB_ASSERT(!gb_failed(err));
    w->broker = sim_broker_new(w);
    w->store = sim_store_new(w);
    w->dlq = sim_dlq_new(w);
    if (w->cfg.instances == 0) {
        gb_timer_start(&w->restart, w->now_ns);
        gb_timer_start(&w->trouble, w->now_ns + (uint64_t)GB_SEC);
    }
    gb_timer_start(&w->publish, next_publish_ns(w) + (uint64_t)GB_SEC);
}

void sim_world_tear_down(struct sim_world *w)
{
    if (w->bridge != NULL) sim_bridge_free(w->bridge);
    w->bridge = NULL;
    w->healed = true;
    /* What is still on its way to the broker arrives. */
    gb_timer_deinit(&w->publish);
    gb_timer_deinit(&w->trouble);
    gb_timer_deinit(&w->restart);
    uint64_t next_ns;
    while ((next_ns = gb_reactor_next_ns(w->reactor)) != UINT64_MAX) {
        if (next_ns > w->now_ns) w->now_ns = next_ns;
        gb_reactor_run(w->reactor, w->now_ns, sim_wall_ms(w));
    }
    sim_net_bury(w);
    sim_broker_free(w->broker);
    sim_store_free(w->store);
    sim_dlq_free(w->dlq);
    gb_reactor_free(w->reactor);
    free(w->messages);
    free(w->rows);
}

/* One moment: the world's events, then the process's turn. False: nothing will ever happen
 * again. */
static bool step(struct sim_world *w)
{
    sim_net_bury(w);
    uint64_t next_ns = gb_reactor_next_ns(w->reactor);
    if (w->bridge != NULL) {
        uint64_t own_ns = gb_reactor_next_ns(w->bridge->reactor);
        if (own_ns < next_ns) next_ns = own_ns;
    }
    if (next_ns == UINT64_MAX) return false;
    if (next_ns > w->now_ns) w->now_ns = next_ns;
    if (w->bridge != NULL) gb_reactor_set_now(w->bridge->reactor, w->now_ns, sim_wall_ms(w));
    if (gb_reactor_next_ns(w->reactor) <= w->now_ns) {
        gb_reactor_run(w->reactor, w->now_ns, sim_wall_ms(w));
    } else {
        gb_reactor_set_now(w->reactor, w->now_ns, sim_wall_ms(w));
    }
    if (w->bridge == NULL) return true;
    if (!w->bridge->dead && gb_reactor_next_ns(w->bridge->reactor) <= w->now_ns)
        sim_bridge_run(w->bridge);
    if (w->bridge->dead || w->bridge->ended) {
        sim_world_bridge_died(w, w->bridge->why);
    } else {
        sim_check_bounds(w);
    }
    return true;
}

/* Without the line's own time, which is not the world's: one seed prints one text. */
static void discard_log(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    const struct sim_world *w = arg;
    if (!w->trace) return;
    const char *rest = memchr(line, ',', size);
    size_t skip = rest == NULL ? 0 : (size_t)(rest - line) + 1;
    print_head(w);
    (void)fprintf(stdout, "%s %.*s", level >= GB_LOG_ERROR ? "E" : "w", (int)(size - skip),
                  line + skip);
}

void sim_world_log_to_trace(struct sim_world *w)
{
    gb_log_set_sink(discard_log, w);
    gb_log_set_level(w->trace ? GB_LOG_INFO : GB_LOG_ERROR);
}

static void check_end(struct sim_world *w)
{
    if (w->violation[0] == '\0' && !sim_check_all_done(w)) sim_check_explain(w);
    if (w->bridge != NULL) sim_bridge_check_conservation(w->bridge);
}

void sim_run(uint64_t seed, enum sim_fault fault, bool trace, struct sim_report *report)
{
    sim_run_as(seed, fault, trace, NULL, report);
}

void sim_run_as(uint64_t seed, enum sim_fault fault, bool trace, void (*change)(struct sim_cfg *c),
                struct sim_report *report)
{
    struct sim_world world = {.seed = seed, .fault = fault, .trace = trace};
    struct sim_world *w = &world;
    sim_world_log_to_trace(w);
    sim_world_build(w, change);
    uint64_t steps = 0;
    uint64_t healed_ns = 0;
    while (w->violation[0] == '\0' && step(w)) {
        if (w->healed && healed_ns == 0) healed_ns = w->now_ns;
        if (w->healed && sim_check_all_done(w)) break;
        if (w->healed && w->now_ns > healed_ns + heal_limit_ns) break;
        if (++steps > events_max)
            sim_violate(w, "no end after %llu steps", (unsigned long long)steps);
    }
    check_end(w);
    *report = (struct sim_report){.hash = w->hash,
                                  .events = steps,
                                  .sim_ns = w->now_ns,
                                  .messages = w->published,
                                  .crashes = w->crashes,
                                  .accepted = w->accepted_total};
    memcpy(report->violation, w->violation, sizeof report->violation);
    sim_world_tear_down(w);
    gb_log_set_sink(NULL, NULL);
    gb_log_set_level(GB_LOG_INFO);
}
