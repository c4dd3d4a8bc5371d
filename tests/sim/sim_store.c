#include "sim/sim_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/memory/memory_outbox.h"
#include "base/assert.h"
#include "base/map.h"
#include "sim/sim_bridge.h"
#include "sim/sim_call.h"
#include "sim/sim_check.h"

enum { FILTERS_MAX = 8, STALE_S = 30 };
struct open_claim { /* for the stale rule of spec 05 §2.6, which the memory outbox lacks */
    char id[40], owner[40], partition[40];
    uint64_t version, at_ns;
};
struct sim_store {
    struct sim_world *world;
    struct gb_reactor *reactor; /* the inner store answers at once here */
    struct gb_outbox *inner;
    struct gb_map rows;               /* record id -> leg and message, packed */
    const char *filters[FILTERS_MAX]; /* the subscription history; static texts */
    size_t filter_count;
    uint64_t pending, claimed;
    struct open_claim *claims;
    size_t claim_count, claim_capacity;
};

static void nothing(struct gb_op *op, void *arg)
{
    (void)op, (void)arg;
}

/* Runs what the inner store deferred. */
static void turn(struct sim_store *s)
{
    gb_reactor_run(s->reactor, s->world->now_ns, sim_wall_ms(s->world));
}

struct sim_store *sim_store_new(struct sim_world *w)
{
    struct sim_store *s = calloc(1, sizeof *s);
    GB_ASSERT(s != NULL);
    s->world = w;
    struct gb_err err = gb_reactor_new(w->seed, &s->reactor);
    if (!gb_failed(err))
        err = gb_memory_outbox_new(s->reactor, &(struct gb_memory_outbox_cfg){0}, &s->inner);
    GB_ASSERT(!gb_failed(err));
    turn(s);
    return s;
}

void sim_store_free(struct sim_store *s)
{
    struct gb_op op = {0};
    s->inner->ops->close(s->inner, &op, nothing, NULL);
    turn(s);
    gb_map_deinit(&s->rows);
    free(s->claims);
    gb_reactor_free(s->reactor);
    free(s);
}

uint64_t sim_store_pending(const struct sim_store *s)
{
    return s->pending;
}

uint64_t sim_store_open(const struct sim_store *s)
{
    return s->pending + s->claimed;
}

void sim_store_count(struct sim_store *s)
{
    s->pending = s->claimed = 0;
    for (size_t i = 0; i < sim_bridge_partitions(&s->world->cfg); i++) {
        struct gb_outbox_stats q = {.partition = gb_bytes_c(sim_bridge_partition(i))};
        s->inner->ops->stats(s->inner, &q, nothing, NULL);
        turn(s);
        s->pending += q.pending;
        s->claimed += q.claimed;
    }
}

/* --- plans --- */

static struct sim_call plan(struct sim_bridge *b, void *request, sim_apply_fn *apply)
{
    struct sim_world *w = b->world;
    const struct sim_cfg *c = &w->cfg;
    struct sim_call call = {.target = w->store, .request = request, .apply = apply};
    if (!w->healed && w->now_ns < b->host->store_cut_ns) {
        call.plan = b->host->store_hears ? SIM_PLAN_LATE : SIM_PLAN_SILENT;
    } else if (sim_chance(w, c->store_fail)) {
        call.plan = SIM_PLAN_FAIL;
    } else if (sim_chance(w, c->store_lost_answer)) {
        call.plan = SIM_PLAN_LOST_ANSWER;
    } else if (sim_chance(w, c->store_silent)) {
        call.plan = sim_below(w, 2) == 0 ? SIM_PLAN_SILENT : SIM_PLAN_LATE;
    }
    return call;
}

static struct sim_bridge *bridge_of(struct gb_outbox *o)
{
    return GB_CONTAINER_OF(o, struct sim_outbox_port, outbox)->bridge;
}

static void start(struct gb_outbox *o, struct gb_op *op, gb_done_fn *done, void *arg,
                  const struct sim_call *call)
{
    struct sim_bridge *b = bridge_of(o);
    sim_call_start(b, op, done, arg, call, b->world->cfg.store_delay_max_ns);
}

/* --- persist --- */

static void *pack(uint32_t message, uint8_t leg)
{
    return (void *)(((uintptr_t)message << 8 | leg) + 1);
}

static void unpack(const void *value, uint32_t *message, uint8_t *leg)
{
    uintptr_t packed = (uintptr_t)value - 1;
    *message = (uint32_t)(packed >> 8);
    *leg = (uint8_t)packed;
}

static void note_durable(struct sim_store *s, const struct gb_outbox_record *r)
{
    uint32_t message;
    GB_ASSERT(sim_parse_payload(s->world, r->envelope->payload, &message));
    uint8_t leg = sim_bridge_leg(r->binding_id);
    GB_ASSERT(!gb_failed(gb_map_put(&s->rows, r->id, pack(message, leg))));
    sim_check_durable(s->world, message, leg, r->created_at_ms);
}

static void apply_persist(struct sim_call *c)
{
    struct sim_store *s = c->target;
    struct gb_outbox_persist *q = c->request;
    bool full = s->world->now_ns < s->world->store_full_until_ns && !s->world->healed;
    if (full) {
        c->answer = gb_err(GB_UNAVAILABLE, "the disk is full");
        return;
    }
    if (s->world->fault == SIM_FAULT_STORE_LIES && sim_below(s->world, 4) == 0) return;
    for (size_t i = 0; i < q->count; i++) { /* one by one, to learn which are new */
        struct gb_outbox_persist one = {.records = &q->records[i], .count = 1};
        s->inner->ops->persist(s->inner, &one, nothing, NULL);
        turn(s);
        q->stored += one.stored;
        if (one.op.result.code == GB_OK) {
            note_durable(s, &q->records[i]);
        } else if (one.op.result.code != GB_DUPLICATE_RECORD) {
            c->answer = one.op.result;
        }
    }
    if (c->answer.code == GB_OK && q->stored == 0)
        c->answer = gb_err(GB_DUPLICATE_RECORD, "all known");
    sim_store_count(s);
}

static void persist(struct gb_outbox *o, struct gb_outbox_persist *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_persist);
    q->stored = 0;
    start(o, &q->op, done, arg, &call);
}

/* --- tokens --- */

static uint64_t *mark_of(struct sim_store *s, struct gb_bytes partition)
{
    return &s->world->mark[sim_bridge_leg(partition)];
}

/* The store let `version` through: no later owner was there before (spec 06 §8). */
static void check_token(struct sim_store *s, struct gb_bytes partition, uint64_t version,
                        const char *what)
{
    uint64_t *mark = mark_of(s, partition);
    if (version < *mark) {
        sim_violate(s->world, "%s under version %llu, after one under %llu", what,
                    (unsigned long long)version, (unsigned long long)*mark);
    }
    if (version > *mark) *mark = version;
}

/* Planted: the fence does not hold an old token off. */
static struct gb_token pass(struct sim_store *s, struct gb_bytes partition, struct gb_token token)
{
    if (*mark_of(s, partition) > token.version) token.version = *mark_of(s, partition);
    return token;
}

/* --- claim --- */

static void copy_text(char *to, size_t size, struct gb_bytes from)
{
    (void)snprintf(to, size, "%.*s", (int)from.size, (const char *)from.data);
}

static void note_claims(struct sim_store *s, const struct gb_outbox_claim *q)
{
    for (size_t i = 0; q->batch != NULL && i < q->batch->count; i++) {
        if (s->claim_count == s->claim_capacity) {
            s->claim_capacity = s->claim_capacity == 0 ? 64 : s->claim_capacity * 2;
            s->claims = realloc(s->claims, s->claim_capacity * sizeof *s->claims);
            GB_ASSERT(s->claims != NULL);
        }
        struct open_claim *c = &s->claims[s->claim_count++];
        *c = (struct open_claim){.version = q->token.version, .at_ns = s->world->now_ns};
        copy_text(c->id, sizeof c->id, q->batch->records[i].id);
        copy_text(c->owner, sizeof c->owner, q->token.owner);
        copy_text(c->partition, sizeof c->partition, q->partition);
    }
}

static void forget_claim(struct sim_store *s, struct gb_bytes id)
{
    for (size_t i = 0; i < s->claim_count; i++)
        if (gb_bytes_equal_c(id, s->claims[i].id)) s->claims[i--] = s->claims[--s->claim_count];
}

static void release_stale(struct sim_store *s)
{
    for (size_t i = 0; i < s->claim_count; i++) {
        struct open_claim c = s->claims[i];
        if (s->world->now_ns < c.at_ns + STALE_S * (uint64_t)GB_SEC) continue;
        struct gb_outbox_settle q = {
            .kind = GB_OUTBOX_RELEASE,
            .partition = gb_bytes_c(c.partition),
            .id = gb_bytes_c(c.id),
            .token = {.owner = gb_bytes_c(c.owner), .version = c.version},
        };
        s->inner->ops->settle(s->inner, &q, nothing, NULL);
        turn(s);
        s->claims[i--] = s->claims[--s->claim_count];
    }
}

static void lose_keys(struct gb_outbox_batch *batch)
{
    for (size_t i = 0; batch != NULL && i < batch->count; i++)
        batch->records[i].ordering_key = gb_bytes(NULL, 0);
}

static void apply_claim(struct sim_call *c)
{
    struct sim_store *s = c->target;
    const struct gb_outbox_claim *q = c->request;
    struct gb_outbox_claim inner = {
        .partition = q->partition, .token = q->token, .limit = q->limit};
    release_stale(s);
    if (s->world->fault == SIM_FAULT_CLAIM_STALE) inner.token = pass(s, q->partition, q->token);
    s->inner->ops->claim(s->inner, &inner, nothing, NULL);
    turn(s);
    note_claims(s, &inner);
    c->answer = inner.op.result;
    if (c->answer.code == GB_OK) check_token(s, q->partition, q->token.version, "a claim");
    c->result = inner.batch;
    for (size_t i = 0; inner.batch != NULL && i < inner.batch->count; i++) {
        uint32_t message;
        uint8_t leg;
        unpack(gb_map_get(&s->rows, inner.batch->records[i].id), &message, &leg);
        sim_check_claimed(s->world, message, leg);
    }
    if (s->world->fault == SIM_FAULT_LOSE_ORDER) lose_keys(inner.batch);
    sim_trace(s->world, "claimed", inner.batch == NULL ? 0 : inner.batch->count, q->token.version);
    ((struct gb_outbox_claim *)c->request)->batch = inner.batch;
    sim_store_count(s);
}

static void discard_claim(struct sim_call *c)
{
    gb_outbox_batch_free(c->result);
    ((struct gb_outbox_claim *)c->request)->batch = NULL;
}

static void claim(struct gb_outbox *o, struct gb_outbox_claim *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_claim);
    call.discard = discard_claim;
    q->batch = NULL;
    start(o, &q->op, done, arg, &call);
}

/* --- settle --- */

/* Only who claimed it last may settle a record (spec 06 §8). */
static void check_claim_held(struct sim_store *s, const struct gb_outbox_settle *q)
{
    for (size_t i = 0; i < s->claim_count; i++) {
        const struct open_claim *c = &s->claims[i];
        if (!gb_bytes_equal_c(q->id, c->id) || c->version <= q->token.version) continue;
        sim_violate(s->world, "a record was settled under version %llu, claimed under %llu",
                    (unsigned long long)q->token.version, (unsigned long long)c->version);
    }
}

/* Planted: whoever completes, the claim passes for its own. */
static struct gb_token pass_claim(struct sim_store *s, struct gb_bytes id, struct gb_token token)
{
    for (size_t i = s->claim_count; i > 0; i--) {
        const struct open_claim *c = &s->claims[i - 1];
        if (!gb_bytes_equal_c(id, c->id) || c->version < token.version) continue;
        return (struct gb_token){.owner = gb_bytes_c(c->owner), .version = c->version};
    }
    return token;
}

static void apply_settle(struct sim_call *c)
{
    struct sim_store *s = c->target;
    const struct gb_outbox_settle *q = c->request;
    struct gb_outbox_settle inner = {
        .kind = q->kind, .partition = q->partition, .id = q->id, .token = q->token};
    if (s->world->fault == SIM_FAULT_STALE_TOKEN && q->kind == GB_OUTBOX_COMPLETE)
        inner.token.version--;
    if (s->world->fault == SIM_FAULT_COMPLETE_STALE) inner.token = pass_claim(s, q->id, q->token);
    if (s->world->fault == SIM_FAULT_ENDLESS_DUPLICATES) inner.kind = GB_OUTBOX_RELEASE;
    s->inner->ops->settle(s->inner, &inner, nothing, NULL);
    turn(s);
    c->answer = inner.op.result;
    sim_trace(s->world, "settled", q->kind, (uint64_t)c->answer.code);
    if (c->answer.code == GB_OK) check_claim_held(s, q);
    if (c->answer.code == GB_OK) forget_claim(s, q->id);
    if (c->answer.code == GB_OK && inner.kind == GB_OUTBOX_COMPLETE) {
        uint32_t message;
        uint8_t leg;
        unpack(gb_map_get(&s->rows, q->id), &message, &leg);
        sim_check_completed(s->world, message, leg);
    }
    sim_store_count(s);
}

static void settle(struct gb_outbox *o, struct gb_outbox_settle *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_settle);
    start(o, &q->op, done, arg, &call);
}

/* --- expire, depth, stats --- */

static void apply_expire(struct sim_call *c)
{
    struct sim_store *s = c->target;
    struct gb_outbox_expire *q = c->request;
    struct gb_outbox_expire inner = {
        .partition = q->partition, .token = q->token, .cutoff_ms = q->cutoff_ms};
    s->inner->ops->expire(s->inner, &inner, nothing, NULL);
    turn(s);
    c->answer = inner.op.result;
    q->expired = inner.expired;
    if (inner.expired > 0 && !s->world->cfg.drop_expired && s->world->cfg.has_dlq) {
        sim_violate(s->world, "a sweep expired %llu records under on_expired: dlq",
                    (unsigned long long)inner.expired);
    }
    sim_store_count(s);
}

static void expire(struct gb_outbox *o, struct gb_outbox_expire *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_expire);
    q->expired = 0;
    start(o, &q->op, done, arg, &call);
}

static void apply_depth(struct sim_call *c)
{
    struct sim_store *s = c->target;
    struct gb_outbox_depth *q = c->request;
    struct gb_outbox_depth inner = {.partition = q->partition, .limit = q->limit};
    s->inner->ops->depth(s->inner, &inner, nothing, NULL);
    turn(s);
    c->answer = inner.op.result;
    q->pending = s->world->fault == SIM_FAULT_UNBOUNDED ? 0 : inner.pending;
}

static void depth(struct gb_outbox *o, struct gb_outbox_depth *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_depth);
    start(o, &q->op, done, arg, &call);
}

static void apply_stats(struct sim_call *c)
{
    struct sim_store *s = c->target;
    struct gb_outbox_stats *q = c->request;
    struct gb_outbox_stats inner = {.partition = q->partition};
    s->inner->ops->stats(s->inner, &inner, nothing, NULL);
    turn(s);
    c->answer = inner.op.result;
    q->pending = inner.pending;
    q->claimed = inner.claimed;
    q->oldest_pending_ms = inner.oldest_pending_ms;
    q->mark = inner.mark;
}

static void stats(struct gb_outbox *o, struct gb_outbox_stats *q, gb_done_fn *done, void *arg)
{
    struct sim_call call = plan(bridge_of(o), q, apply_stats);
    start(o, &q->op, done, arg, &call);
}

void sim_store_port(struct sim_outbox_port *p, struct sim_bridge *b)
{
    static const struct gb_outbox_ops ops = {persist, claim, settle, expire, depth, stats, NULL};
    *p = (struct sim_outbox_port){.outbox = {.ops = &ops}, .bridge = b};
}

/* --- subscriptions: seeded empty, as `gobridge -seed-managed-subscriptions` does --- */

static void apply_list(struct sim_call *c)
{
    struct sim_store *s = c->target;
    struct gb_subscriptions_list *q = c->request;
    q->filters.filters = calloc(FILTERS_MAX, sizeof *q->filters.filters);
    GB_ASSERT(q->filters.filters != NULL);
    for (size_t i = 0; i < s->filter_count; i++) q->filters.filters[i] = gb_strdup(s->filters[i]);
    q->filters.count = s->filter_count;
}

static void discard_list(struct sim_call *c)
{
    gb_filter_list_free(&((struct gb_subscriptions_list *)c->request)->filters);
}

static void list(struct gb_subscriptions *p, struct gb_subscriptions_list *q, gb_done_fn *done,
                 void *arg)
{
    struct sim_bridge *b = GB_CONTAINER_OF(p, struct sim_subscriptions_port, subscriptions)->bridge;
    struct sim_call call = plan(b, q, apply_list);
    call.discard = discard_list;
    q->filters = (struct gb_filter_list){0};
    sim_call_start(b, &q->op, done, arg, &call, b->world->cfg.store_delay_max_ns);
}

static size_t find_filter(const struct sim_store *s, const char *filter)
{
    size_t i = 0;
    while (i < s->filter_count && strcmp(s->filters[i], filter) != 0) i++;
    return i;
}

static void apply_remember(struct sim_call *c)
{
    struct sim_store *s = c->target;
    const struct gb_subscriptions_change *q = c->request;
    for (size_t i = 0; i < q->count; i++) {
        if (find_filter(s, q->filters[i]) < s->filter_count) continue;
        GB_ASSERT(s->filter_count < FILTERS_MAX);
        s->filters[s->filter_count++] = sim_bridge_filter(q->filters[i]);
    }
}

static void apply_forget(struct sim_call *c)
{
    struct sim_store *s = c->target;
    const struct gb_subscriptions_change *q = c->request;
    for (size_t i = 0; i < q->count; i++) {
        size_t at = find_filter(s, q->filters[i]);
        if (at < s->filter_count) s->filters[at] = s->filters[--s->filter_count];
    }
}

static void change(struct gb_subscriptions *p, struct gb_subscriptions_change *q, gb_done_fn *done,
                   void *arg, sim_apply_fn *apply)
{
    struct sim_bridge *b = GB_CONTAINER_OF(p, struct sim_subscriptions_port, subscriptions)->bridge;
    struct sim_call call = plan(b, q, apply);
    sim_call_start(b, &q->op, done, arg, &call, b->world->cfg.store_delay_max_ns);
}

static void remember(struct gb_subscriptions *p, struct gb_subscriptions_change *q,
                     gb_done_fn *done, void *arg)
{
    change(p, q, done, arg, apply_remember);
}

static void forget(struct gb_subscriptions *p, struct gb_subscriptions_change *q, gb_done_fn *done,
                   void *arg)
{
    change(p, q, done, arg, apply_forget);
}

void sim_subscriptions_port(struct sim_subscriptions_port *p, struct sim_bridge *b)
{
    static const struct gb_subscriptions_ops ops = {list, remember, forget, NULL};
    *p = (struct sim_subscriptions_port){.subscriptions = {.ops = &ops}, .bridge = b};
}
