#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_subscriptions.h"
#include "base/duration.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"
#include "contract/subscriptions_contract.h"

enum { SMALL = 8 };

static struct dynamodb_rig *rig;
static struct dynamodb_driver driver;
static char table[DYNAMODB_TABLE_SIZE];

static void open_store(struct subscriptions_backend *b, size_t queue_max)
{
    const struct gb_dynamodb_subscriptions_cfg cfg = {
        .reactor = driver.reactor, .client = driver.client, .table = table, .queue_max = queue_max};
    assert_int_equal(gb_dynamodb_subscriptions_new(&cfg, &b->store).code, GB_OK);
}

static void open_all(struct subscriptions_backend *b, size_t queue_max)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_clear(rig);
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_rig_table(rig, "subscriptions", table);
    dynamodb_driver_open(&driver,
                         &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                       .attempt_timeout_ns = INT64_C(10000000000)});
    b->driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    dynamodb_driver_create_table(&driver, GB_DYNAMODB_SUBSCRIPTIONS, table);
    open_store(b, queue_max);
}

static void set_up(struct subscriptions_backend *b)
{
    open_all(b, 0);
}

static void set_up_small(struct subscriptions_backend *b)
{
    open_all(b, SMALL);
}

static void reopen(struct subscriptions_backend *b)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_store(b, 0);
}

static void tear_down(struct subscriptions_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    dynamodb_driver_close(&driver);
}

static struct subscriptions_backend dynamodb = {
    .name = "managed subscriptions on DynamoDB",
    .full_at = SMALL,
    .set_up = set_up,
    .set_up_small = set_up_small,
    .reopen = reopen,
    .tear_down = tear_down,
};

/* --- what only this backend has --- */

static int begin(void **state)
{
    (void)state;
    set_up(&dynamodb);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tear_down(&dynamodb);
    return 0;
}

static void reopen_for(const char *effect)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    tear_down(&dynamodb);
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_driver_open(
        &driver, &(struct dynamodb_driver_cfg){
                     .endpoint = endpoint, .attempt_timeout_ns = dynamodb_rig_attempt_ns(effect)});
    dynamodb.driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    open_store(&dynamodb, 0);
}

enum { LASTING = 2 }; /* of the effects */

static const char *const two[] = {"b", "a"};

static enum gb_code seed(const char *id)
{
    return subscriptions_remember(&dynamodb, id, NULL, 0);
}

static enum gb_code remember(const char *id)
{
    return subscriptions_remember(&dynamodb, id, two, 2);
}

static enum gb_code forget(const char *id)
{
    return subscriptions_forget(&dynamodb, id, two, 2);
}

static enum gb_code list(const char *id)
{
    struct gb_subscriptions_list q = {.identity = id};
    store_driver_expect(&dynamodb.driver);
    dynamodb.store->ops->list(dynamodb.store, &q, store_driver_done, &dynamodb.driver);
    store_driver_run(&dynamodb.driver);
    if (q.op.result.code != GB_OK) assert_int_equal(q.filters.count, 0);
    gb_filter_list_free(&q.filters);
    return q.op.result.code;
}

static const struct operation {
    const char *name;
    enum gb_code (*perform)(const char *id);
    bool baseline; /* before, with filters a, b and c */
    enum gb_code code;
    const char *filters; /* afterwards */
} operations[] = {
    {"seed", seed, false, GB_OK, ""},
    {"seed of what is there", seed, true, GB_OK, "a b c"},
    {"remember", remember, false, GB_OK, "a b"},
    {"remember again", remember, true, GB_OK, "a b c"},
    {"forget", forget, true, GB_OK, "c"},
    {"forget without baseline", forget, false, GB_NOT_FOUND, ""},
    {"list", list, true, GB_OK, "a b c"},
    {"list without baseline", list, false, GB_NOT_FOUND, ""},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0], REQUESTS_MAX = 4 };

static void prepare(const struct operation *o, char id[16])
{
    static unsigned cases;
    (void)snprintf(id, 16, "id%u", cases++);
    if (!o->baseline) return;
    assert_int_equal(subscriptions_remember(&dynamodb, id, (const char *const[]){"a", "b", "c"}, 3),
                     GB_OK);
}

/* Each request of each operation, in turn, meets the fault. False: there is no such request. */
static bool fault_at(const struct operation *o, const char *effect, unsigned request)
{
    char rule[96], id[16];
    prepare(o, id);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"skip\": %u", effect, request);
    dynamodb_rig_rule(rig, rule);
    uint64_t arrived = dynamodb_rig_arrived(rig);
    enum gb_code code = o->perform(id);
    bool hit = dynamodb_rig_arrived(rig) - arrived > request;
    dynamodb_rig_clear(rig);
    if (code != o->code)
        fail_msg("%s, request %u, %s: %s", o->name, request, effect, gb_code_name(code));
    subscriptions_list_is(&dynamodb, id, o->code, o->filters);
    return hit;
}

/* A change is applied once, and a read is answered, whatever became of the first answer. */
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
            assert_true(request > 0);
            hits += request;
        }
    }
    print_message("%u faults\n", hits);
}

/* A fault that stays says "try again", never "no baseline"; the set is as it was, or as it shall
 * be, and the next try ends well. */
static void stays(const struct operation *o, const char *effect)
{
    char rule[96], id[16];
    prepare(o, id);
    (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"times\": 0", effect);
    dynamodb_rig_rule(rig, rule);
    struct gb_err err = gb_err(o->perform(id), "x");
    dynamodb_rig_clear(rig);
    if (!gb_err_is_transient(&err)) fail_msg("%s, %s: %s", o->name, effect, gb_code_name(err.code));
    assert_int_equal(o->perform(id), o->code);
    subscriptions_list_is(&dynamodb, id, o->code, o->filters);
}

static void faults_that_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < LASTING; i++) {
        reopen_for(dynamodb_rig_effects[i]);
        for (size_t o = 0; o < OPERATIONS; o++) stays(&operations[o], dynamodb_rig_effects[i]);
    }
}

/* A failed read is not an unknown history. */
static void outage_is_no_missing_baseline(void **state)
{
    (void)state;
    assert_int_equal(subscriptions_remember(&dynamodb, "id", NULL, 0), GB_OK);
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"times\": 0");
    subscriptions_list_is(&dynamodb, "id", GB_NOT_AUTHORIZED, "");
    assert_int_equal(subscriptions_forget(&dynamodb, "id", (const char *const[]){"a"}, 1),
                     GB_NOT_AUTHORIZED);
}

static void put(const char *baseline, const char *filter)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_PUT_ITEM, table);
    gb_dynamodb_object(&call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&call.w, "storage_identity", "id");
    if (strcmp(baseline, "text") == 0) gb_dynamodb_w_s_c(&call.w, "baseline", "true");
    if (strcmp(baseline, "false") == 0) gb_dynamodb_w_bool(&call.w, "baseline", false);
    if (strcmp(baseline, "true") == 0) gb_dynamodb_w_bool(&call.w, "baseline", true);
    gb_dynamodb_w_ss(&call.w, "filters", &(struct gb_bytes){.data = NULL}, 0);
    if (filter != NULL) {
        const struct gb_bytes text = gb_bytes_c(filter);
        gb_dynamodb_w_ss(&call.w, "filters", &text, 1);
    }
    gb_dynamodb_object_end(&call);
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}

static void damaged_items_are_named(void **state)
{
    (void)state;
    put("none", "a");
    subscriptions_list_is(&dynamodb, "id", GB_NOT_FOUND, "");
    assert_int_equal(subscriptions_forget(&dynamodb, "id", (const char *const[]){"a"}, 1),
                     GB_NOT_FOUND);
    put("text", NULL);
    subscriptions_list_is(&dynamodb, "id", GB_INVALID_CONFIG, "");
    put("false", NULL);
    subscriptions_list_is(&dynamodb, "id", GB_INVALID_CONFIG, "");
    put("true", "a/#/b");
    subscriptions_list_is(&dynamodb, "id", GB_INVALID_CONFIG, "");
    put("true", "a/#");
    subscriptions_list_is(&dynamodb, "id", GB_OK, "a/#");
}

static void missing_table_is_told(void **state)
{
    (void)state;
    STORE_CLOSE(&dynamodb.driver, dynamodb.store);
    dynamodb_rig_table(rig, "absent", table);
    open_store(&dynamodb, 0);
    struct gb_subscriptions_change q = {.identity = "id"};
    store_driver_expect(&dynamodb.driver);
    dynamodb.store->ops->remember(dynamodb.store, &q, store_driver_done, &dynamodb.driver);
    store_driver_run(&dynamodb.driver);
    assert_int_equal(q.op.result.code, GB_UNAVAILABLE);
    assert_non_null(strstr(q.op.result.message, table));
    subscriptions_list_is(&dynamodb, "id", GB_UNAVAILABLE, ""); /* not: no baseline */
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest own[] = {
        TEST(each_request_fails_once),       TEST(faults_that_stay),
        TEST(outage_is_no_missing_baseline), TEST(damaged_items_are_named),
        TEST(missing_table_is_told),
    };
    int failed = subscriptions_contract_run(&dynamodb);
    failed += cmocka_run_group_tests_name("DynamoDB items", own, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
