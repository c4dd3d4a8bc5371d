#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "contract/lease_dynamodb.h"
#include "contract/orders.h"

/* Two processes and one lease, each with one operation: all orders of their individual requests.
 * Never two holders at one version, the version never falls, what has lost its lease moves nothing,
 * and nobody takes over from an owner that has renewed meanwhile (spec 06 §6, §6.1). */

enum { ATTEMPT_NS = 2000 * GB_MS, ID_SIZE = 16 };
#define TTL (6 * GB_SEC)

static struct dynamodb_rig *rig;
static char table[DYNAMODB_TABLE_SIZE];
static char id[ID_SIZE];
static unsigned cases;

enum operation { ACQUIRE, RENEW, RELEASE };
struct owner {
    struct lease_process p;
    const char *token;
    uint64_t held; /* the version that it renews or releases */
    enum operation op;
    union {
        struct gb_lease_acquire acquire;
        struct gb_lease_renew renew;
        struct gb_lease_release release;
    } q;
    struct gb_op *running;
};
static struct owner a = {.token = "a#1"};
static struct owner b = {.token = "b#1"};
static struct lease_process third; /* who held it before */
static uint64_t version;           /* of the row at the start */

/* --- what the two find --- */

enum start { ABSENT, RELEASED, HELD_BY_A, HELD_BY_THIRD, HELD_BY_B_AFTER_A };
static const struct pair {
    const char *name;
    enum start start;
    enum operation of_a;
    bool a_ready, b_ready; /* has seen the row unchanged for its duration */
    enum operation of_b;
} pairs[] = {
    {"acquire, acquire: no row", ABSENT, ACQUIRE, false, false, ACQUIRE},
    {"acquire, acquire: released", RELEASED, ACQUIRE, false, false, ACQUIRE},
    {"renew, observe", HELD_BY_A, RENEW, false, false, ACQUIRE},
    {"renew, take over", HELD_BY_A, RENEW, false, true, ACQUIRE},
    {"release, observe", HELD_BY_A, RELEASE, false, false, ACQUIRE},
    {"release, take over", HELD_BY_A, RELEASE, false, true, ACQUIRE},
    {"acquire again, observe", HELD_BY_A, ACQUIRE, false, false, ACQUIRE},
    {"acquire again, take over", HELD_BY_A, ACQUIRE, false, true, ACQUIRE},
    {"observe, observe", HELD_BY_THIRD, ACQUIRE, false, false, ACQUIRE},
    {"observe, take over", HELD_BY_THIRD, ACQUIRE, false, true, ACQUIRE},
    {"take over, take over", HELD_BY_THIRD, ACQUIRE, true, true, ACQUIRE},
    {"renew of a former owner, renew", HELD_BY_B_AFTER_A, RENEW, false, false, RENEW},
    {"renew of a former owner, release", HELD_BY_B_AFTER_A, RENEW, false, false, RELEASE},
    {"release of a former owner, renew", HELD_BY_B_AFTER_A, RELEASE, false, false, RENEW},
    {"release of a former owner, release", HELD_BY_B_AFTER_A, RELEASE, false, false, RELEASE},
};

static enum gb_code acquire(struct lease_process *p, const char *owner)
{
    return lease_acquire(&p->b, id, owner, TTL, &version, NULL);
}

static void observe(struct owner *o, bool ready)
{
    uint64_t none = version;
    assert_int_equal(acquire(&o->p, o->token), GB_ALREADY_EXISTS);
    version = none;
    o->p.mono_ns += (uint64_t)(ready ? TTL : GB_SEC);
}

static void prepare(void *arg)
{
    const struct pair *pair = arg;
    (void)snprintf(id, sizeof id, "s%u", cases++);
    version = 0;
    a.held = b.held = 0;
    if (pair->start == ABSENT) return;
    a.held = 1;
    if (pair->start == HELD_BY_B_AFTER_A) {
        assert_int_equal(acquire(&a.p, a.token), GB_OK);
        assert_int_equal(lease_release(&a.p.b, id, a.token, 1), GB_OK);
        assert_int_equal(acquire(&b.p, b.token), GB_OK);
        b.held = version;
        return;
    }
    struct lease_process *holder = pair->start == HELD_BY_A ? &a.p : &third;
    assert_int_equal(acquire(holder, pair->start == HELD_BY_A ? a.token : "c#1"), GB_OK);
    if (pair->start == RELEASED) {
        assert_int_equal(lease_release(&third.b, id, "c#1", 1), GB_OK);
        return;
    }
    a.p.wall_ms += 10; /* a renewal changes the row */
    if (pair->start == HELD_BY_THIRD) observe(&a, pair->a_ready);
    observe(&b, pair->b_ready);
}

static void start(struct owner *o)
{
    struct gb_lease *store = o->p.b.store;
    struct gb_bytes lease = gb_bytes_c(id);
    struct gb_token token = {gb_bytes_c(o->token), o->held};
    memset(&o->q, 0, sizeof o->q);
    store_driver_expect(&o->p.b.driver);
    if (o->op == ACQUIRE) {
        o->q.acquire = (struct gb_lease_acquire){
            .lease_id = lease, .owner = gb_bytes_c(o->token), .ttl_ns = TTL};
        o->running = &o->q.acquire.op;
        store->ops->acquire(store, &o->q.acquire, store_driver_done, &o->p.b.driver);
    } else if (o->op == RENEW) {
        o->q.renew = (struct gb_lease_renew){.lease_id = lease, .token = token, .ttl_ns = TTL};
        o->running = &o->q.renew.op;
        store->ops->renew(store, &o->q.renew, store_driver_done, &o->p.b.driver);
    } else {
        o->q.release = (struct gb_lease_release){.lease_id = lease, .token = token};
        o->running = &o->q.release.op;
        store->ops->release(store, &o->q.release, store_driver_done, &o->p.b.driver);
    }
}

static void start_both(void *arg)
{
    (void)arg;
    start(&a);
    start(&b);
}

/* --- what must hold afterwards --- */

static bool succeeded(const struct owner *o)
{
    return o->running->result.code == GB_OK;
}

static void violation(const struct pair *pair, const char *schedule, const char *what)
{
    fail_msg("%s, order %s: %s (%s, %s)", pair->name, schedule, what,
             gb_code_name(a.running->result.code), gb_code_name(b.running->result.code));
}

/* The version `o` believes to hold; 0: none. */
static uint64_t believes(const struct owner *o)
{
    if (!succeeded(o) || o->op == RELEASE) return 0;
    return o->op == ACQUIRE ? o->q.acquire.version : o->held;
}

/* Whoever's belief is not the row's learns it at its next renewal. */
static bool may_renew(struct owner *o)
{
    return believes(o) > 0 && lease_renew(&o->p.b, id, o->token, believes(o), TTL) == GB_OK;
}

static void check_former(const struct pair *pair, const char *schedule, const char *owner,
                         uint64_t stored)
{
    if (succeeded(&a) || stored != b.held)
        violation(pair, schedule, "a former owner moves the row");
    if (!succeeded(&b)) violation(pair, schedule, "the owner can't");
    if (strcmp(owner, b.op == RELEASE ? "" : b.token) != 0)
        violation(pair, schedule, "the row is another's");
}

static void check(void *arg, const char *schedule)
{
    const struct pair *pair = arg;
    uint64_t stored = 0;
    char owner[ID_SIZE];
    (void)snprintf(owner, sizeof owner, "%s", lease_process_owner(&third, id, &stored));
    if (pair->start == HELD_BY_B_AFTER_A) {
        check_former(pair, schedule, owner, stored);
        return;
    }
    if (stored < version) violation(pair, schedule, "the version fell");
    if (pair->start == ABSENT && stored == 0) violation(pair, schedule, "nobody has it");
    if (believes(&a) > 0 && believes(&a) == believes(&b))
        violation(pair, schedule, "two holders at one version");
    if (a.op == RENEW && succeeded(&a) && succeeded(&b))
        violation(pair, schedule, "taken over from an owner that has renewed");
    if (pair->start == HELD_BY_A && a.op == ACQUIRE && succeeded(&a) && succeeded(&b) &&
        believes(&b) > believes(&a))
        violation(pair, schedule, "taken over from an owner that has come again");
    if (!pair->b_ready && pair->start >= HELD_BY_A && a.op != RELEASE && succeeded(&b))
        violation(pair, schedule, "taken over too early");
    const struct owner *last = believes(&a) > believes(&b) ? &a : &b;
    if (believes(last) > 0 && strcmp(owner, last->token) != 0)
        violation(pair, schedule, "the last owner has lost its row");
    bool of_a = may_renew(&a);
    bool of_b = may_renew(&b);
    if (of_a && of_b) violation(pair, schedule, "two may renew");
    if (of_a != (believes(&a) > 0 && strcmp(owner, a.token) == 0 && believes(&a) == stored))
        violation(pair, schedule, "the row and a's renewal differ");
    if (of_b != (believes(&b) > 0 && strcmp(owner, b.token) == 0 && believes(&b) == stored))
        violation(pair, schedule, "the row and b's renewal differ");
    if (a.op == ACQUIRE) gb_lease_holder_deinit(&a.q.acquire.seen);
    if (b.op == ACQUIRE) gb_lease_holder_deinit(&b.q.acquire.seen);
}

/* --- all orders --- */

static void every_order_of_every_pair(void **state)
{
    unsigned total = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct pair pair = pairs[i];
        a.op = pair.of_a;
        b.op = pair.of_b;
        struct orders orders = {
            .rig = rig,
            .sides = {{"A", a.p.driver.loop, &a.p.b.driver.waiting},
                      {"B", b.p.driver.loop, &b.p.b.driver.waiting}},
            .prepare = prepare,
            .start = start_both,
            .check = check,
            .arg = &pair,
        };
        unsigned runs = orders_run(&orders);
        print_message("%s: %u orders, 0 violations\n", pair.name, runs);
        assert_true(runs > 1);
        total += runs;
    }
    print_message("%u orders\n", total);
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
    dynamodb_rig_table(rig, "lease", table);
    lease_process_open(&a.p, rig, "A", table, ATTEMPT_NS);
    lease_process_open(&b.p, rig, "B", table, ATTEMPT_NS);
    lease_process_open(&third, rig, "C", table, ATTEMPT_NS);
    lease_process_create_table(&third);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_order_of_every_pair)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lease_process_close(&third);
    lease_process_close(&b.p);
    lease_process_close(&a.p);
    dynamodb_rig_free(rig);
    return failed;
}
