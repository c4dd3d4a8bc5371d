#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "contract/outbox_dynamodb.h"

/* Two processes, faults, deaths and takeovers at random (docs/decisions/0623): what a persist has
 * acknowledged is completed in the end, and no record is handed out while an older one of its key
 * that was acknowledged before is not over. GB_TEST_SEED, GB_TEST_STEPS. */

enum { STEPS = 300, RECORDS_MAX = 1500, PROCESSES = 2, CALLS_MAX = 6, KEYS = 3, ROUNDS_MAX = 400 };
#define ATTEMPT_NS (10 * GB_SEC) /* nothing here waits for an answer that never comes */
#define S1 "SESSION#s1"

struct message {
    struct gb_outbox_record record;
    char name[16];
    int key;          /* 0: none */
    uint64_t started; /* the step of its persist */
    uint64_t acked;   /* 0: not yet */
    bool done, maybe_done;
    uint64_t batch; /* of its last hand-out */
    int holder;     /* the process that has it in hand; -1: none */
};
struct process {
    struct outbox_dynamodb dynamodb;
    struct outbox_backend backend;
    char client[16];
    uint64_t version; /* what it holds; 0: nothing */
};
static struct world {
    struct dynamodb_rig *rig;
    struct outbox_dynamodb dynamodb; /* owns the table */
    struct outbox_backend backend;
    struct process processes[PROCESSES];
    struct message messages[RECORDS_MAX];
    size_t count;
    uint64_t random, step, version, lives, handed, faults, direct, batches;
    int64_t wall_ms;
} w;

static const char *const keys[KEYS] = {"", "red", "green"};
static const char *const owners[PROCESSES] = {"left", "right"};

static unsigned below(unsigned bound)
{
    w.random ^= w.random << 13;
    w.random ^= w.random >> 7;
    w.random ^= w.random << 17;
    return (unsigned)(w.random % bound);
}

static void pass(int64_t ms)
{
    w.wall_ms += ms;
    for (size_t i = 0; i < PROCESSES; i++) w.processes[i].backend.driver.wall_ms = w.wall_ms;
}

/* --- processes --- */

static void birth(size_t i)
{
    struct process *p = &w.processes[i];
    (void)snprintf(p->client, sizeof p->client, "%s-%llu", owners[i],
                   (unsigned long long)++w.lives);
    p->backend = (struct outbox_backend){.ctx = &p->dynamodb};
    w.backend.driver.wall_ms = w.wall_ms;
    outbox_dynamodb_join(&p->backend, &w.backend, p->client);
    p->version = 0;
}

static void death(size_t i)
{
    outbox_dynamodb_crash(&w.processes[i].backend, w.processes[i].client);
    for (size_t m = 0; m < w.count; m++) {
        if (w.messages[m].holder == (int)i) w.messages[m].holder = -1;
    }
}

/* As a lease does: the former owner's authority ends before the next one's begins. */
static void give_up(size_t i)
{
    w.processes[i].version = 0;
    outbox_dynamodb_hold(&w.processes[i].dynamodb, S1, "", 0);
}

static size_t holder(void)
{
    for (size_t i = 0; i < PROCESSES; i++) {
        if (w.processes[i].version > 0) return i;
    }
    return PROCESSES;
}

static void take(size_t i)
{
    if (holder() != PROCESSES) give_up(holder());
    w.processes[i].version = ++w.version;
    outbox_dynamodb_hold(&w.processes[i].dynamodb, S1, owners[i], w.version);
}

/* --- operations --- */

static void some_fault(void)
{
    static const char *const effects[] = {"cut", "internal", "drop", "half", "throttle"};
    static const char *const actions[] = {"PutItem", "UpdateItem", "Query", "GetItem",
                                          "TransactWriteItems"};
    char rule[160];
    (void)snprintf(rule, sizeof rule,
                   "\"effect\": \"%s\", \"action\": \"%s\", \"skip\": %u, \"times\": %u",
                   effects[below(5)], actions[below(5)], below(3), 1 + below(5));
    dynamodb_rig_rule(w.rig, rule);
    w.faults++;
}

static struct message *new_message(bool keyed)
{
    struct message *m = &w.messages[w.count];
    *m = (struct message){.key = keyed ? (int)below(KEYS) : 0, .holder = -1};
    (void)snprintf(m->name, sizeof m->name, "e%zu", w.count++);
    m->record = outbox_record(&(struct outbox_spec){
        .envelope_id = m->name, .binding_id = "b", .session_id = "s1", .key = keys[m->key]});
    return m;
}

/* What has not been acknowledged comes again from its source: under a new record id. */
static struct message *again(void)
{
    for (size_t i = 0; i < w.count; i++) {
        struct message *m = &w.messages[i];
        if (m->acked != 0 || m->started == w.step || below(2) == 0) continue;
        m->record = outbox_record(&(struct outbox_spec){
            .envelope_id = m->name, .binding_id = "b", .session_id = "s1", .key = keys[m->key]});
        return m;
    }
    return NULL;
}

static void do_persist(size_t i, bool loses)
{
    struct process *p = &w.processes[i];
    struct outbox_backend *b = &p->backend;
    struct gb_outbox_persist calls[CALLS_MAX];
    struct message *messages[CALLS_MAX];
    size_t count = 1 + below(CALLS_MAX);
    bool held = p->version > 0;
    memset(calls, 0, sizeof calls);
    for (size_t k = 0; k < count; k++) {
        struct message *m = below(3) == 0 ? again() : NULL;
        if (m == NULL && w.count < RECORDS_MAX) m = new_message(held);
        if (m == NULL) m = &w.messages[w.count - 1];
        if (m->acked != 0 || m->started == w.step || (m->key != 0 && !held)) {
            count = k;
            break;
        }
        m->started = w.step;
        messages[k] = m;
        calls[k].records = &m->record;
        calls[k].count = 1;
        store_driver_expect(&b->driver);
        b->store->ops->persist(b->store, &calls[k], store_driver_done, &b->driver);
    }
    if (loses && held) give_up(i);
    store_driver_run(&b->driver);
    for (size_t k = 0; k < count; k++) {
        enum gb_code code = calls[k].op.result.code;
        if (code == GB_OK || code == GB_DUPLICATE_RECORD) messages[k]->acked = w.step;
    }
}

static struct message *message_of(const struct gb_outbox_record *r)
{
    for (size_t i = 0; i < w.count; i++) {
        if (gb_bytes_equal_c(r->envelope->id, w.messages[i].name)) return &w.messages[i];
    }
    fail_msg("a record that nobody has sent");
    return NULL;
}

static void check_order(const struct message *m)
{
    for (size_t i = 0; i < w.count && m->key != 0; i++) {
        const struct message *other = &w.messages[i];
        bool before = other->key == m->key && other->acked != 0 && other->acked < m->started;
        if (before && !other->done && !other->maybe_done && other->batch != w.batches)
            fail_msg("step %llu: %s passes %s", (unsigned long long)w.step, m->name, other->name);
    }
}

static size_t do_claim(size_t i, uint32_t limit)
{
    struct process *p = &w.processes[i];
    enum gb_code code = GB_OK;
    struct gb_outbox_batch *batch =
        outbox_claim(&p->backend, S1, owners[i], p->version, limit, &code);
    size_t count = batch == NULL ? 0 : batch->count;
    w.batches++;
    for (size_t k = 0; k < count; k++) {
        const struct gb_outbox_record *r = &batch->records[k];
        struct message *m = message_of(r);
        check_order(m);
        m->record.id = gb_bytes_c(""); /* of whichever try it is: */
        struct outbox_spec spec = {.envelope_id = m->name, .binding_id = "b", .session_id = "s1"};
        char id[40];
        (void)snprintf(id, sizeof id, "%.*s", (int)r->id.size, (const char *)r->id.data);
        spec.id = id;
        spec.key = keys[m->key];
        m->record = outbox_record(&spec);
        m->holder = (int)i;
        m->batch = w.batches;
        w.handed++;
    }
    gb_outbox_batch_free(batch);
    return count;
}

static void settle(struct message *m, size_t i, enum gb_outbox_settle_kind kind)
{
    struct process *p = &w.processes[i];
    enum gb_code code = outbox_settle(&p->backend, kind, S1, m->record.id, owners[i], p->version);
    if (kind == GB_OUTBOX_COMPLETE) m->done = m->done || code == GB_OK;
    if (kind == GB_OUTBOX_COMPLETE && code != GB_STALE_FENCING_TOKEN) m->maybe_done = true;
    m->holder = -1;
}

/* One in `leaves` stays in hand; 1: none. */
static void do_settle(size_t i, unsigned leaves)
{
    for (size_t m = 0; m < w.count; m++) {
        if (w.messages[m].holder != (int)i || (leaves > 1 && below(leaves) == 0)) continue;
        settle(&w.messages[m], i, below(20) == 0 ? GB_OUTBOX_RELEASE : GB_OUTBOX_COMPLETE);
    }
}

static void do_step(void)
{
    size_t at = holder();
    unsigned kind = below(100);
    w.step++;
    pass(1 + below(400));
    bool faulty = below(100) < 12;
    if (faulty) some_fault();
    if (at == PROCESSES || kind == 99) {
        take(below(PROCESSES));
    } else if (kind < 38) {
        do_persist(at, below(20) == 0);
    } else if (kind < 40) {
        do_persist(1 - at, false);
    } else if (kind < 70) {
        if (below(4) != 0) do_settle(at, 1);
        (void)do_claim(at, 1 + below(30));
    } else if (kind < 90) {
        do_settle(at, 3);
    } else if (kind < 92) {
        size_t dies = below(PROCESSES);
        death(dies);
        birth(dies);
    } else {
        pass(below(3) == 0 ? 36000 : 3000);
    }
    if (faulty) dynamodb_rig_clear(w.rig);
}

/* --- the end --- */

static void drain(void)
{
    unsigned quiet = 0;
    death(0);
    birth(0);
    take(0);
    for (size_t round = 0; round < ROUNDS_MAX && quiet < 3; round++) {
        w.step++;
        size_t count = do_claim(0, 50);
        for (size_t m = 0; m < w.count; m++) {
            if (w.messages[m].holder == 0) settle(&w.messages[m], 0, GB_OUTBOX_COMPLETE);
        }
        quiet = count == 0 ? quiet + 1 : 0;
        pass(36000);
    }
}

static void check_rows(void)
{
    struct gb_outbox_stats stats = outbox_stats(&w.processes[0].backend, S1);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(stats.claimed, 0);
    for (size_t i = 0; i < w.count; i++) {
        const struct message *m = &w.messages[i];
        char sort_key[64];
        struct gb_dynamodb_call call = {0};
        (void)snprintf(sort_key, sizeof sort_key, "OUTBOX#%s#b", m->name);
        struct gb_bytes item = outbox_dynamodb_get(&w.processes[0].dynamodb, &call, S1, sort_key);
        struct gb_str text = {0};
        gb_str_append(&text, item);
        gb_str_append_char(&text, ' ');
        bool completed = text.data != NULL && strstr(text.data, "completed\"") != NULL;
        w.direct += text.data != NULL && strstr(text.data, "\"rid\"") != NULL;
        if (m->acked != 0 && !completed) fail_msg("%s was acknowledged: %s", m->name, text.data);
        if (item.size > 0 && !completed) fail_msg("%s is left: %s", m->name, text.data);
        gb_str_deinit(&text);
        gb_dynamodb_call_deinit(&call);
    }
}

static void nothing_is_lost(void **state)
{
    const char *seed = getenv("GB_TEST_SEED");
    const char *steps = getenv("GB_TEST_STEPS");
    uint64_t count = steps == NULL ? STEPS : strtoull(steps, NULL, 0);
    uint64_t acked = 0;
    (void)state;
    w.random = (seed == NULL ? 1 : strtoull(seed, NULL, 0)) * 2 + 1;
    w.dynamodb = (struct outbox_dynamodb){.rig = w.rig,
                                          .direct = true,
                                          .direct_max = 20 + below(100),
                                          .keyed_after_ns = 500000000,
                                          .attempt_timeout_ns = ATTEMPT_NS};
    w.backend = (struct outbox_backend){.ctx = &w.dynamodb};
    outbox_dynamodb_set_up(&w.backend, 0);
    w.wall_ms = w.backend.driver.wall_ms;
    for (size_t i = 0; i < PROCESSES; i++) birth(i);
    while (w.step < count) do_step();
    drain();
    check_rows();
    for (size_t i = 0; i < w.count; i++) acked += w.messages[i].acked != 0;
    print_message("seed %s: %zu messages, %llu acknowledged, %llu hand-outs, %llu faults, %llu "
                  "lives, %llu never in an index\n",
                  seed == NULL ? "1" : seed, w.count, (unsigned long long)acked,
                  (unsigned long long)w.handed, (unsigned long long)w.faults,
                  (unsigned long long)w.lives, (unsigned long long)w.direct);
    assert_true(acked > count / 4 && w.direct > 0);
    for (size_t i = 0; i < PROCESSES; i++) death(i);
    outbox_dynamodb_tear_down(&w.backend);
    outbox_records_free();
}

static void quiet_log(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

int main(void)
{
    w.rig = dynamodb_rig_new();
    if (w.rig == NULL) return DYNAMODB_RIG_SKIP;
    gb_log_set_sink(quiet_log, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(w.rig);
    return failed;
}
