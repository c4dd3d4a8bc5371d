#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_subscriptions.h"
#include "adapters/dynamodb/dynamodb_tables.h"
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
    dynamodb_driver_open(&driver, &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                                .attempt_timeout_ns = 500000000});
    b->driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_CREATE_TABLE, table);
    gb_dynamodb_w_table(&call.w, gb_dynamodb_table_of(GB_DYNAMODB_SUBSCRIPTIONS));
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
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

/* Each change once applied, or not at all, whatever became of the answer. */
static void faults_leave_the_set_right(void **state)
{
    (void)state;
    static const char *const effects[] = {"cut",  "half",    "internal", "throttle",
                                          "drop", "corrupt", "silent",   "expired_token"};
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        char rule[96];
        print_message("effect: %s\n", effects[i]);
        (void)snprintf(rule, sizeof rule, "\"effect\": \"%s\", \"action\": \"UpdateItem\"",
                       effects[i]);
        dynamodb_rig_rule(rig, rule);
        assert_int_equal(subscriptions_remember(&dynamodb, "id", (const char *const[]){"a"}, 1),
                         GB_OK);
        dynamodb_rig_rule(rig, "\"effect\": \"cut\", \"action\": \"GetItem\"");
        subscriptions_list_is(&dynamodb, "id", GB_OK, "a");
        dynamodb_rig_rule(rig, rule);
        assert_int_equal(subscriptions_forget(&dynamodb, "id", (const char *const[]){"a"}, 1),
                         GB_OK);
        subscriptions_list_is(&dynamodb, "id", GB_OK, "");
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
        TEST(faults_leave_the_set_right),
        TEST(outage_is_no_missing_baseline),
        TEST(damaged_items_are_named),
        TEST(missing_table_is_told),
    };
    int failed = subscriptions_contract_run(&dynamodb);
    failed += cmocka_run_group_tests_name("DynamoDB items", own, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
