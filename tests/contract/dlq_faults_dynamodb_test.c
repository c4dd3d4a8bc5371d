#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_dlq.h"
#include "base/duration.h"
#include "contract/dlq_contract.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"

/* Each request of each DLQ operation, in turn, throttled, refused by a fault of the service,
 * damaged, applied and never answered, cut in the answer, or sent with an expired token: the
 * operation ends as if nothing had been, what it wrote or removed itself is recognised, and the
 * table is right (spec 05 §3, 04 A5, A6). */

enum { REQUESTS_MAX = 12, BIG_ROWS = 4, BIG = 350 * 1024 }; /* three of these fill a page */
#define PATIENT_NS (10 * GB_SEC)

static struct dynamodb_rig *rig;
static struct dynamodb_driver driver;
static char table[DYNAMODB_TABLE_SIZE];
static struct dlq_backend dlq = {.name = "DLQ under faults"};

enum { LASTING = 2 }; /* of the effects */

/* --- the table: four large rows that stay, and three small ones, restored after each case --- */

static const struct small_row {
    const char *id, *route, *category;
    int64_t failed_at_ms;
} small_rows[] = {
    {"s0", "r", "permanent", 5}, {"s1", "r", "permanent", 6}, {"t", "other", "permanent", 7}};
enum { SMALL_ROWS = sizeof small_rows / sizeof small_rows[0] };

#define BIG_IDS "b0 b1 b2 b3"
#define SMALL_IDS "s0 s1 t"

static void restore(void)
{
    for (size_t i = 0; i < SMALL_ROWS; i++) {
        const struct small_row *r = &small_rows[i];
        enum gb_code code = dlq_store(&dlq, r->id, r->route, r->category, r->failed_at_ms);
        assert_true(code == GB_OK || code == GB_DUPLICATE_RECORD);
    }
}

static void fill(void)
{
    char *reason = malloc(BIG);
    assert_non_null(reason);
    memset(reason, 'x', BIG);
    for (int i = 0; i < BIG_ROWS; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "b%d", i);
        struct gb_dlq_entry *e = dlq_entry(id, "r", "transient", 1 + i);
        assert_int_equal(gb_dlq_set(&e->reason, gb_bytes(reason, BIG)).code, GB_OK);
        assert_int_equal(dlq_write(&dlq, e), GB_OK);
        gb_dlq_entry_free(e);
    }
    free(reason);
    restore();
}

/* --- operations: how each ends when nothing goes wrong, and what is in the table then --- */

struct ending {
    enum gb_code code;
    uint64_t count; /* listed, counted, removed */
};

static struct ending write_new(void)
{
    return (struct ending){dlq_store(&dlq, "new", "r", "permanent", 5), 0};
}

/* Another's row behind a lost answer is a duplicate. */
static struct ending write_again(void)
{
    return (struct ending){dlq_store(&dlq, "s0", "r", "permanent", 50), 0};
}

static struct ending get(const char *id)
{
    struct ending e = {GB_OK, 0};
    struct gb_dlq_entry *entry = dlq_get(&dlq, id, &e.code);
    if (entry != NULL) assert_string_equal(entry->id, id);
    gb_dlq_entry_free(entry);
    return e;
}

static struct ending get_there(void)
{
    return get("s0");
}

static struct ending get_absent(void)
{
    return get("absent");
}

static struct ending list(struct gb_dlq_filter filter)
{
    struct gb_dlq_list q = {.filter = filter};
    store_driver_expect(&dlq.driver);
    dlq.store->ops->list(dlq.store, &q, store_driver_done, &dlq.driver);
    store_driver_run(&dlq.driver);
    for (size_t i = 0; i < q.count; i++) {
        if (i > 0) assert_true(q.entries[i - 1]->failed_at_ms < q.entries[i]->failed_at_ms);
        assert_int_equal(q.entries[i]->reason[0] == 'x', q.entries[i]->failed_at_ms <= BIG_ROWS);
    }
    for (size_t i = 0; i < q.count; i++) gb_dlq_entry_free(q.entries[i]);
    free(q.entries);
    return (struct ending){q.op.result.code, q.count};
}

static struct ending list_route(void)
{
    return list((struct gb_dlq_filter){.route_id = "r", .category = "permanent"});
}

static struct ending list_category(void)
{
    return list((struct gb_dlq_filter){.category = "transient"});
}

static struct ending list_all(void)
{
    return list((struct gb_dlq_filter){.limit = 0});
}

static struct ending count(void)
{
    struct gb_dlq_count q = {.count = 0};
    store_driver_expect(&dlq.driver);
    dlq.store->ops->count(dlq.store, &q, store_driver_done, &dlq.driver);
    store_driver_run(&dlq.driver);
    return (struct ending){q.op.result.code, q.op.result.code == GB_OK ? q.count : 0};
}

static struct ending run_removal(struct gb_dlq_delete *q)
{
    store_driver_expect(&dlq.driver);
    dlq.store->ops->remove(dlq.store, q, store_driver_done, &dlq.driver);
    store_driver_run(&dlq.driver);
    return (struct ending){q->op.result.code, q->deleted};
}

enum { ABSENT_ID = 1 };
static struct ending remove_ids(void)
{
    static const char *const ids[] = {"s0", "absent", "t"};
    struct gb_dlq_delete q = {.ids = ids, .id_count = 3};
    return run_removal(&q);
}

static struct ending remove_route(void)
{
    struct gb_dlq_delete q = {.filter = {.route_id = "r", .category = "permanent"}};
    return run_removal(&q);
}

static struct ending remove_oldest(void)
{
    struct gb_dlq_delete q = {.filter = {.route_id = "r", .category = "permanent", .limit = 1}};
    return run_removal(&q);
}

static struct ending purge(void)
{
    struct gb_dlq_delete q = {.filter = {.since_ms = 5}};
    return run_removal(&q);
}

static const struct operation {
    const char *name;
    struct ending (*perform)(void);
    enum gb_code code;
    uint64_t count;
    unsigned requests; /* at least: pages and writes */
    bool removes;
    const char *rest; /* of the small rows, afterwards */
} operations[] = {
    {"write", write_new, GB_OK, 0, 1, false, "new " SMALL_IDS},
    {"write of what is there", write_again, GB_DUPLICATE_RECORD, 0, 1, false, SMALL_IDS},
    {"get", get_there, GB_OK, 0, 1, false, SMALL_IDS},
    {"get of what is not there", get_absent, GB_NOT_FOUND, 0, 1, false, SMALL_IDS},
    {"list by route", list_route, GB_OK, 2, 2, false, SMALL_IDS},
    {"list by category", list_category, GB_OK, 4, 2, false, SMALL_IDS},
    {"list", list_all, GB_OK, 7, 2, false, SMALL_IDS},
    {"count", count, GB_OK, 7, 2, false, SMALL_IDS},
    {"remove by id", remove_ids, GB_OK, 2, 3, true, "s1"},
    {"remove by route", remove_route, GB_OK, 2, 4, true, "t"},
    {"remove the oldest", remove_oldest, GB_OK, 1, 4, true, "s1 t"},
    {"purge", purge, GB_OK, 3, 5, true, ""},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* --- set up --- */

static void open_as(int64_t attempt_timeout_ns)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_driver_open(&driver,
                         &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                       .attempt_timeout_ns = attempt_timeout_ns});
    dlq.driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    const struct gb_dynamodb_dlq_cfg cfg = {
        .reactor = driver.reactor, .client = driver.client, .table = table};
    assert_int_equal(gb_dynamodb_dlq_new(&cfg, &dlq.store).code, GB_OK);
}

static void close_all(void)
{
    STORE_CLOSE(&dlq.driver, dlq.store);
    dynamodb_driver_close(&driver);
}

static int set_up(void **state)
{
    (void)state;
    dynamodb_rig_clear(rig);
    dynamodb_rig_table(rig, "dlq", table);
    open_as(PATIENT_NS);
    dynamodb_driver_create_table(&driver, GB_DYNAMODB_DLQ, table);
    fill();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_all();
    return 0;
}

static void reopen_for(const char *effect)
{
    close_all();
    open_as(dynamodb_rig_attempt_ns(effect));
}

/* --- the faults --- */

static void check_table(const struct operation *o, const char *what)
{
    static const char *const new_row[] = {"new"};
    print_message("%s\n", what);
    dlq_list_is(&dlq, &(struct gb_dlq_filter){.before_ms = 5}, BIG_IDS);
    dlq_list_is(&dlq, &(struct gb_dlq_filter){.since_ms = 5}, o->rest);
    if (o->perform == write_new) assert_int_equal(dlq_delete(&dlq, new_row, 1), 1);
    if (o->removes) restore();
}

/* A delete whose answer got lost and that finds no row when it is repeated is taken for the one
 * that removed it: the service keeps no memory of a row that was never there. */
static bool counts_absent_id(const struct operation *o, const char *effect, unsigned request)
{
    bool answered = strcmp(effect, "throttle") == 0 || strcmp(effect, "expired_token") == 0;
    return o->perform == remove_ids && request == ABSENT_ID && !answered;
}

/* False: the operation has no such request. */
static bool fault_at(const struct operation *o, const char *effect, unsigned request)
{
    char what[96], rule[96];
    (void)snprintf(what, sizeof what, "%s, request %u, %s", o->name, request, effect);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u", effect, request);
    dynamodb_rig_rule(rig, rule);
    uint64_t arrived = dynamodb_rig_arrived(rig);
    struct ending e = o->perform();
    bool hit = dynamodb_rig_arrived(rig) - arrived > request;
    dynamodb_rig_clear(rig);
    uint64_t want = o->count + counts_absent_id(o, effect, request);
    if (e.code != o->code || e.count != want)
        fail_msg("%s: %s, %llu", what, gb_code_name(e.code), (unsigned long long)e.count);
    check_table(o, what);
    return hit;
}

static void each_request_fails_once(void **state)
{
    unsigned hits = 0;
    (void)state;
    for (size_t i = 0; i < dynamodb_rig_effect_count(rig); i++) {
        reopen_for(dynamodb_rig_effects[i]);
        for (size_t o = 0; o < OPERATIONS; o++) {
            unsigned request = 0;
            while (fault_at(&operations[o], dynamodb_rig_effects[i], request))
                assert_true(++request < REQUESTS_MAX);
            if (request < operations[o].requests)
                fail_msg("%s has %u requests", operations[o].name, request);
            hits += request;
        }
    }
    print_message("%u faults\n", hits);
}

/* A fault that stays ends the call with an error that says "try again", nothing is listed or
 * counted that was not seen, and the next try does the rest. */
static void stays(const struct operation *o, const char *effect, unsigned request)
{
    char what[96], rule[96];
    (void)snprintf(what, sizeof what, "%s, from request %u, %s for good", o->name, request, effect);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u, \"times\": 0", effect,
                   request);
    dynamodb_rig_rule(rig, rule);
    struct ending e = o->perform();
    dynamodb_rig_clear(rig);
    struct gb_err err = gb_err(e.code, "x");
    if (e.code == GB_OK || !gb_err_is_transient(&err))
        fail_msg("%s: %s", what, gb_code_name(e.code));
    assert_true(e.count <= (o->removes ? o->count : 0));
    struct ending rest = o->perform();
    bool well =
        rest.code == o->code || (o->perform == write_new && rest.code == GB_DUPLICATE_RECORD);
    /* one delete may have been applied without a word of it; the oldest is another one then */
    bool counted = !o->removes || o->perform == remove_oldest ||
                   (e.count + rest.count <= o->count && e.count + rest.count + 1 >= o->count);
    if (!well || !counted) {
        fail_msg("%s, then: %s, %llu and %llu", what, gb_code_name(rest.code),
                 (unsigned long long)e.count, (unsigned long long)rest.count);
    }
    if (o->perform == remove_oldest) {
        restore();
    } else {
        check_table(o, what);
    }
}

static void faults_that_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < LASTING; i++) {
        reopen_for(dynamodb_rig_effects[i]);
        for (size_t o = 0; o < OPERATIONS; o++) {
            for (unsigned r = 0; r < operations[o].requests; r++)
                stays(&operations[o], dynamodb_rig_effects[i], r);
        }
    }
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_request_fails_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults_that_stay, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
