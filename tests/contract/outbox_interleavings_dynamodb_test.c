#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "contract/orders.h"
#include "contract/outbox_dynamodb.h"

/* Two owners of one partition, version 5 and version 6, each with one operation: all orders of
 * their individual requests, which a proxy holds and lets go one at a time. No record is lost, none
 * is claimed twice at one version, the mark only rises, and an overtaken owner moves nothing. */

enum operation { PERSIST, CLAIM, COMPLETE, RELEASE, EXPIRE, OPERATIONS };
static const char *const names[] = {"persist", "claim", "complete", "release", "expire"};

struct owner {
    struct outbox_dynamodb dynamodb;
    struct outbox_backend b;
    const char *client, *token;
    uint64_t version;
    enum operation op;
    struct gb_outbox_batch *held; /* claimed before: of the complete or release */
    struct gb_outbox_record record;
    union {
        struct gb_outbox_persist persist;
        struct gb_outbox_claim claim;
        struct gb_outbox_settle settle;
        struct gb_outbox_expire expire;
    } q;
    struct gb_op *running;
};
static struct owner five = {.client = "A", .token = "five#1", .version = 5};
static struct owner six = {.client = "B", .token = "six#1", .version = 6};
static char session[16], partition[32];
static unsigned cases;

static struct dynamodb_rig *rig(void)
{
    return five.dynamodb.rig;
}

/* --- a situation: five has claimed R1 and left R2 pending; both are known to all --- */

static void store(struct owner *o, const char *envelope, int64_t expires_ms)
{
    assert_int_equal(outbox_store(&o->b, &(struct outbox_spec){.envelope_id = envelope,
                                                               .binding_id = "b1",
                                                               .session_id = session,
                                                               .expires_at_ms = expires_ms}),
                     GB_OK);
}

static void prepare(void *arg)
{
    (void)arg;
    (void)snprintf(session, sizeof session, "s%u", cases++);
    (void)snprintf(partition, sizeof partition, "SESSION#%s", session);
    memset(five.dynamodb.held, 0, sizeof five.dynamodb.held);
    memset(six.dynamodb.held, 0, sizeof six.dynamodb.held);
    enum gb_code code = GB_OK;
    store(&five, "R1", 0);
    five.held = outbox_claim(&five.b, partition, five.token, 5, 1, &code);
    assert_int_equal(code, GB_OK);
    store(&five, "R2", 5000);
    if (six.op == COMPLETE || six.op == RELEASE) { /* six has taken R1 over */
        gb_outbox_batch_free(six.held);
        six.held = outbox_claim(&six.b, partition, six.token, 6, 1, &code);
        assert_int_equal(code, GB_OK);
        assert_int_equal(six.held->count, 1);
    }
}

static void start(struct owner *o)
{
    struct gb_outbox *store = o->b.store;
    struct gb_bytes p = gb_bytes_c(partition);
    struct gb_token token = {gb_bytes_c(o->token), o->version};
    memset(&o->q, 0, sizeof o->q);
    store_driver_expect(&o->b.driver);
    switch (o->op) {
    case PERSIST:
        o->record = outbox_record(
            &(struct outbox_spec){.envelope_id = "N", .binding_id = "b1", .session_id = session});
        o->q.persist.records = &o->record;
        o->q.persist.count = 1;
        o->running = &o->q.persist.op;
        store->ops->persist(store, &o->q.persist, store_driver_done, &o->b.driver);
        break;
    case CLAIM:
        o->q.claim = (struct gb_outbox_claim){.partition = p, .token = token, .limit = 10};
        o->running = &o->q.claim.op;
        store->ops->claim(store, &o->q.claim, store_driver_done, &o->b.driver);
        break;
    case COMPLETE:
    case RELEASE:
        o->q.settle = (struct gb_outbox_settle){.kind = o->op == COMPLETE ? GB_OUTBOX_COMPLETE
                                                                          : GB_OUTBOX_RELEASE,
                                                .partition = p,
                                                .id = o->held->records[0].id,
                                                .token = token};
        o->running = &o->q.settle.op;
        store->ops->settle(store, &o->q.settle, store_driver_done, &o->b.driver);
        break;
    case EXPIRE:
        o->q.expire = (struct gb_outbox_expire){.partition = p, .token = token, .cutoff_ms = 10000};
        o->running = &o->q.expire.op;
        store->ops->expire(store, &o->q.expire, store_driver_done, &o->b.driver);
        break;
    case OPERATIONS:
        break;
    }
}

/* --- what must hold afterwards --- */

struct row {
    bool there;
    char status[16], owner[32];
    uint64_t version;
};

static struct row row_of(const char *envelope)
{
    struct gb_dynamodb_call call = {0};
    struct gb_str scratch = {0};
    struct row r = {.there = false};
    char key[48];
    (void)snprintf(key, sizeof key, "OUTBOX#%s#b1", envelope);
    struct gb_bytes item = outbox_dynamodb_get(&six.dynamodb, &call, partition, key);
    if (item.size > 0) {
        const struct gb_dynamodb_source from = {"t", "GetItem"};
        struct gb_bytes status = {0};
        struct gb_bytes owner = {0};
        struct gb_dynamodb_field fields[] = {
            {"status", GB_DYNAMODB_FIELD_S, true, &status, false},
            {"claimed_by", GB_DYNAMODB_FIELD_S, false, &owner, false},
            {"claim_version", GB_DYNAMODB_FIELD_U64, true, &r.version, false}};
        assert_int_equal(gb_dynamodb_item_read(&from, item, &scratch, fields, 3).code, GB_OK);
        r.there = true;
        (void)snprintf(r.status, sizeof r.status, "%.*s", (int)status.size,
                       (const char *)status.data);
        (void)snprintf(r.owner, sizeof r.owner, "%.*s", (int)owner.size, (const char *)owner.data);
    }
    gb_str_deinit(&scratch);
    gb_dynamodb_call_deinit(&call);
    return r;
}

static bool claimed(const struct owner *o, const char *envelope)
{
    if (o->op != CLAIM || o->q.claim.batch == NULL) return false;
    for (size_t i = 0; i < o->q.claim.batch->count; i++) {
        if (gb_bytes_equal_c(o->q.claim.batch->records[i].envelope->id, envelope)) return true;
    }
    return false;
}

static bool succeeded(const struct owner *o)
{
    enum gb_code code = o->running->result.code;
    return code == GB_OK || code == GB_DUPLICATE_RECORD;
}

static void violation(const char *schedule, const char *what)
{
    fail_msg("%s of five, %s of six, order %s: %s (%s, %s)", names[five.op], names[six.op],
             schedule, what, gb_code_name(five.running->result.code),
             gb_code_name(six.running->result.code));
}

static void check(const char *schedule)
{
    static const char *const all[] = {"R1", "R2", "N"};
    struct row rows[3];
    uint64_t mark = outbox_stats(&six.b, partition).mark;
    if (mark < 5) violation(schedule, "the mark fell");
    if (succeeded(&six) && (six.op == CLAIM || six.op == EXPIRE) && mark != 6)
        violation(schedule, "the mark was not raised");
    for (size_t i = 0; i < 3; i++) {
        rows[i] = row_of(all[i]);
        bool stored = i < 2 || (five.op == PERSIST && succeeded(&five)) ||
                      (six.op == PERSIST && succeeded(&six));
        if (stored && !rows[i].there) violation(schedule, "a record is lost");
        if (rows[i].version > mark) violation(schedule, "a claim above the mark");
        bool by_six = claimed(&six, all[i]);
        bool shown = strcmp(rows[i].status, "claimed") == 0 && rows[i].version == 6;
        if (by_six && !shown) violation(schedule, "what six claimed is not its own");
        if (claimed(&five, all[i]) && !by_six && strcmp(rows[i].owner, "five#1") != 0 &&
            strcmp(rows[i].status, "claimed") == 0 && rows[i].version == 5)
            violation(schedule, "what five claimed is somebody else's");
    }
    /* An end that a stale owner was granted must be one that it still had when it was. */
    if (five.op == COMPLETE && succeeded(&five) && strcmp(rows[0].status, "completed") != 0)
        violation(schedule, "five completed what is not completed");
    if (six.op == COMPLETE && succeeded(&six) && strcmp(rows[0].status, "completed") != 0)
        violation(schedule, "six completed what is not completed");
    if (five.op == COMPLETE && succeeded(&five) && claimed(&six, "R1"))
        violation(schedule, "completed, and claimed again");
    uint64_t expired = (five.op == EXPIRE ? five.q.expire.expired : 0) +
                       (six.op == EXPIRE ? six.q.expire.expired : 0);
    if (expired > 1) violation(schedule, "one record expired twice");
    if ((expired == 1) != (strcmp(rows[1].status, "expired") == 0))
        violation(schedule, "the count of expired ones is wrong");
}

/* Whoever comes next gets all that has no end yet: nothing hides from it. */
static void check_successor(const char *schedule)
{
    size_t open = 0;
    static const char *const all[] = {"R1", "R2", "N"};
    for (size_t i = 0; i < 3; i++) {
        struct row r = row_of(all[i]);
        open += r.there && strcmp(r.status, "completed") != 0 && strcmp(r.status, "expired") != 0;
    }
    enum gb_code code = GB_OK;
    struct gb_outbox_batch *batch = outbox_claim(&six.b, partition, "seven#1", 7, 10, &code);
    size_t got = batch == NULL ? 0 : batch->count;
    if (code != GB_OK || got != open) violation(schedule, "a successor does not find all");
    gb_outbox_batch_free(batch);
}

/* --- all orders --- */

static void start_both(void *arg)
{
    (void)arg;
    start(&five);
    start(&six);
}

static void check_all(void *arg, const char *schedule)
{
    (void)arg;
    check(schedule);
    check_successor(schedule);
    if (five.op == CLAIM) gb_outbox_batch_free(five.q.claim.batch);
    if (six.op == CLAIM) gb_outbox_batch_free(six.q.claim.batch);
    gb_outbox_batch_free(five.held);
    gb_outbox_batch_free(six.held);
    five.held = six.held = NULL;
    outbox_records_free();
}

static struct orders_side side_of(const struct owner *o)
{
    return (struct orders_side){o->client, o->dynamodb.client.loop, &o->b.driver.waiting};
}

static void open_owners(bool direct)
{
    dynamodb_rig_clear(rig());
    five.b.ctx = &five.dynamodb;
    six.b.ctx = &six.dynamodb;
    five.dynamodb.through_proxy = true;
    five.dynamodb.direct = direct;
    outbox_dynamodb_set_up(&five.b, 0);
    outbox_dynamodb_join(&six.b, &five.b, six.client);
}

static void close_owners(void)
{
    STORE_CLOSE(&six.b.driver, six.b.store);
    dynamodb_driver_close(&six.dynamodb.client);
    outbox_dynamodb_tear_down(&five.b);
}

static void each_pair(bool direct)
{
    unsigned total = 0;
    open_owners(direct);
    for (int a = 0; a < OPERATIONS; a++) {
        for (int b = 0; b < OPERATIONS; b++) {
            five.op = (enum operation)a;
            six.op = (enum operation)b;
            struct orders orders = {.rig = rig(),
                                    .sides = {side_of(&five), side_of(&six)},
                                    .prepare = prepare,
                                    .start = start_both,
                                    .check = check_all};
            unsigned runs = orders_run(&orders);
            print_message("%s of five, %s of six%s: %u orders, 0 violations\n", names[a], names[b],
                          direct ? ", direct" : "", runs);
            total += runs;
        }
    }
    print_message("%u orders%s\n", total, direct ? ", direct" : "");
    close_owners();
}

static void every_order_of_every_pair(void **state)
{
    (void)state;
    each_pair(false);
}

static void every_order_of_every_pair_direct(void **state)
{
    (void)state;
    if (!dynamodb_rig_is(rig(), "dynoxide")) skip(); /* slow there, and no different */
    each_pair(true);
}

int main(void)
{
    five.dynamodb.rig = dynamodb_rig_new();
    if (five.dynamodb.rig == NULL) return DYNAMODB_RIG_SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_every_pair),
        cmocka_unit_test(every_order_of_every_pair_direct),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(five.dynamodb.rig);
    return failed;
}
