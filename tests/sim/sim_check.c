#include "sim/sim_check.h"

#include <stdlib.h>

#include "sim/sim_bridge.h"
#include "sim/sim_broker.h"
#include "sim/sim_store.h"

size_t sim_legs(const struct sim_cfg *c)
{
    return c->shared_outbox && c->fan_out ? 2 : 1;
}

static bool policy_may_drop(const struct sim_cfg *c)
{
    return !c->has_dlq || c->drop_permanent || c->ephemeral;
}

/* direct_hold gives up when the message would expire before the next try (spec 02 §6.2). */
static bool may_be_expired(const struct sim_world *w, const struct sim_message *m)
{
    int64_t ahead_ms = w->cfg.shared_outbox ? 0 : w->cfg.policy.backoff.max_ns / GB_MS + 500;
    return m->expires_at_ms > 0 && sim_wall_ms(w) + ahead_ms >= m->expires_at_ms;
}

/* Its filter was given up. What does not reach the bridge within the replay window is acknowledged
 * and dropped as an orphan by rule (spec 03 §7 item 4, §8.3). */
static bool may_be_orphan(const struct sim_world *w, const struct sim_message *m)
{
    return w->refiltered && m->key >= 2;
}

static uint64_t drops_seen(const struct sim_world *w)
{
    return w->allowed_drops + (w->bridge == NULL ? 0 : sim_bridge_drops(w->bridge));
}

/* What only a drop by policy explains must have been counted as one. `leg` SIM_LEGS_MAX: all that
 * are not safe, by one drop before dispatch. */
static void explain_by_drop(struct sim_world *w, uint32_t message, uint8_t leg, const char *what)
{
    if (policy_may_drop(&w->cfg) && w->used_drops < drops_seen(w)) {
        w->used_drops++;
        /* The leg is done; later questions about it are answered. */
        for (size_t i = 0; i < SIM_LEGS_MAX; i++)
            if (leg == i || leg == SIM_LEGS_MAX) w->messages[message].dead_lettered[i] = true;
        return;
    }
    sim_violate(w, "message %u: %s before it was stored, sent or dead-lettered", message, what);
}

void sim_check_source_ack(struct sim_world *w, uint32_t message)
{
    struct sim_message *m = &w->messages[message];
    sim_trace(w, "source acked", message, m->qos);
    m->acked = true;
    if (may_be_expired(w, m) || may_be_orphan(w, m)) return;
    bool safe = true;
    for (size_t leg = 0; leg < sim_legs(&w->cfg); leg++)
        safe = safe && (m->dead_lettered[leg] || m->accepted[leg] > 0 || m->durable[leg]);
    if (!safe) explain_by_drop(w, message, SIM_LEGS_MAX, "acknowledged");
}

/* The depth limit is advisory (spec 02 §7.1): what is in flight, what a cached answer lets in and a
 * batch that is released may overshoot it. */
static uint64_t recently_durable(const struct sim_world *w)
{
    uint64_t window_ns =
        (uint64_t)(w->cfg.policy.depth_cache_ttl_ns + 4 * w->cfg.store_delay_max_ns);
    uint64_t n = 0;
    for (size_t i = w->row_count; i > 0 && w->rows[i - 1].durable_ns + window_ns > w->now_ns; i--)
        n++;
    return n;
}

static void check_depth(struct sim_world *w)
{
    const struct sim_cfg *c = &w->cfg;
    uint64_t pending = sim_store_pending(w->store);
    uint64_t instances = c->instances == 0 ? 1 : c->instances; /* each with calls of its own */
    uint64_t overshoot = instances * (c->policy.max_in_flight + c->drain.max_batch_size);
    uint64_t limit = (c->policy.max_outbox_depth + overshoot) * sim_legs(c);
    if (pending <= limit) return;
    limit += recently_durable(w);
    if (pending <= limit) return;
    sim_violate(w, "a record was added to %llu pending ones, the limit with its overshoot is %llu",
                (unsigned long long)pending, (unsigned long long)limit);
}

void sim_check_durable(struct sim_world *w, uint32_t message, uint8_t leg, int64_t created_at_ms)
{
    struct sim_message *m = &w->messages[message];
    sim_trace(w, "durable", message, leg);
    m->durable[leg] = true;
    check_depth(w);
    if (w->row_count == w->row_capacity) {
        size_t capacity = w->row_capacity == 0 ? 64 : w->row_capacity * 2;
        struct sim_row *rows = realloc(w->rows, capacity * sizeof *rows);
        GB_ASSERT(rows != NULL);
        w->rows = rows;
        w->row_capacity = capacity;
    }
    w->rows[w->row_count++] = (struct sim_row){
        .message = message,
        .leg = leg,
        .key = m->key,
        .created_at_ms = created_at_ms,
        .durable_turn = ++w->store_turn,
        .durable_ns = w->now_ns,
    };
}

static struct sim_row *find_row(struct sim_world *w, uint32_t message, uint8_t leg)
{
    for (size_t i = 0; i < w->row_count; i++)
        if (w->rows[i].message == message && w->rows[i].leg == leg) return &w->rows[i];
    return NULL;
}

/* What the wire still carries of a process that is gone may arrive after the next one's claim; so
 * with a broker as destination the first claim counts. */
void sim_check_claimed(struct sim_world *w, uint32_t message, uint8_t leg)
{
    struct sim_row *row = find_row(w, message, leg);
    GB_ASSERT(row != NULL);
    if (row->claim_turn == 0 || !w->cfg.to_mqtt) row->claim_turn = ++w->store_turn;
}

static bool comes_before(const struct sim_row *a, const struct sim_row *b)
{
    if (a->created_at_ms != b->created_at_ms) return a->created_at_ms < b->created_at_ms;
    return a < b;
}

/* Claim order is the order of a key at its destination, first arrivals counted (spec 02 §7.3). */
static void check_order(struct sim_world *w, uint32_t message, uint8_t leg)
{
    const struct sim_row *own = find_row(w, message, leg);
    if (own == NULL || own->key == 0) return;
    for (size_t i = 0; i < w->row_count; i++) {
        const struct sim_row *other = &w->rows[i];
        if (other->key != own->key || other->leg != leg || !comes_before(other, own)) continue;
        if (other->durable_turn > own->claim_turn) continue; /* it was not there yet */
        const struct sim_message *m = &w->messages[other->message];
        bool done = m->accepted[leg] > 0 || m->dead_lettered[leg] || may_be_expired(w, m);
        if (!done && !policy_may_drop(&w->cfg)) {
            sim_violate(w, "message %u overtook %u of the same ordering key %u, leg %u", message,
                        other->message, own->key, leg);
        }
    }
}

void sim_check_accepted(struct sim_world *w, uint32_t message, uint8_t leg)
{
    struct sim_message *m = &w->messages[message];
    sim_trace(w, "accepted", message, leg);
    m->accepted[leg]++;
    w->accepted_total++;
    if (w->cfg.shared_outbox && m->accepted[leg] == 1) check_order(w, message, leg);
}

void sim_check_completed(struct sim_world *w, uint32_t message, uint8_t leg)
{
    const struct sim_message *m = &w->messages[message];
    sim_trace(w, "completed", message, leg);
    if (m->accepted[leg] > 0 || m->dead_lettered[leg] || may_be_expired(w, m)) return;
    explain_by_drop(w, message, leg, "completed");
}

void sim_check_dead_lettered(struct sim_world *w, uint32_t message, uint8_t leg, const char *code)
{
    struct sim_message *m = &w->messages[message];
    sim_trace(w, "dead-lettered", message, leg);
    for (size_t i = 0; i < SIM_LEGS_MAX; i++)
        if (leg == SIM_LEGS_MAX || leg == i) m->dead_lettered[i] = true;
    /* The simulated store's failures are transient: no message pays for them (decision 0005). */
    bool held = w->cfg.shared_outbox && leg == SIM_LEGS_MAX && m->qos > 0 && !w->cfg.ephemeral;
    if (held && strcmp(code, "MESSAGE_EXPIRED") != 0 && strcmp(code, "SUBSCRIPTION_REMOVED") != 0)
        sim_violate(w, "message %u was dead-lettered (%s) for a fault of the store", message, code);
}

void sim_check_bounds(struct sim_world *w)
{
    if (w->bridge != NULL) sim_bridge_check_bounds(w->bridge);
}

static bool leg_done(const struct sim_world *w, const struct sim_message *m, size_t leg)
{
    return m->accepted[leg] > 0 || m->dead_lettered[leg] || may_be_expired(w, m);
}

static bool message_done(const struct sim_world *w, const struct sim_message *m)
{
    if (!m->queued || m->qos == 0 || w->cfg.ephemeral) return true;
    if (!m->acked) return false;
    if (may_be_orphan(w, m) && !m->durable[0]) return true;
    for (size_t leg = 0; leg < sim_legs(&w->cfg); leg++)
        if (!leg_done(w, m, leg)) return false;
    return true;
}

uint64_t sim_check_undone(const struct sim_world *w)
{
    uint64_t n = sim_store_open(w->store);
    for (uint32_t i = 0; i < w->published; i++) n += !message_done(w, &w->messages[i]);
    return n;
}

bool sim_check_all_done(const struct sim_world *w)
{
    if (w->published < w->cfg.messages) return false;
    for (uint32_t i = 0; i < w->published; i++)
        if (!message_done(w, &w->messages[i])) return false;
    return sim_store_open(w->store) == 0 && sim_broker_quiet(w->broker);
}

void sim_check_explain(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->published; i++) {
        const struct sim_message *m = &w->messages[i];
        if (message_done(w, m)) continue;
        sim_violate(w,
                    "message %u (QoS %u) is not delivered after the faults stopped: acked %d, "
                    "durable %d, accepted %u, dead-lettered %d",
                    i, m->qos, m->acked, m->durable[0], m->accepted[0], m->dead_lettered[0]);
        return;
    }
    sim_violate(w, "after the faults stopped: %llu records open in the outbox, broker quiet %d",
                (unsigned long long)sim_store_open(w->store), sim_broker_quiet(w->broker));
}
