#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_dlq.h"
#include "base/duration.h"
#include "contract/dlq_contract.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"

enum { SMALL = 8 };

static struct dynamodb_rig *rig;
static struct dynamodb_driver driver;
static char table[DYNAMODB_TABLE_SIZE];

static void open_store(struct dlq_backend *b, struct gb_dynamodb_dlq_cfg cfg)
{
    cfg.reactor = driver.reactor;
    cfg.client = driver.client;
    cfg.table = table;
    assert_int_equal(gb_dynamodb_dlq_new(&cfg, &b->store).code, GB_OK);
}

static void open_all(struct dlq_backend *b, struct gb_dynamodb_dlq_cfg cfg)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_clear(rig);
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_rig_table(rig, "dlq", table);
    dynamodb_driver_open(&driver,
                         &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                       .attempt_timeout_ns = INT64_C(10000000000)});
    b->driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    dynamodb_driver_create_table(&driver, GB_DYNAMODB_DLQ, table);
    open_store(b, cfg);
}

static void set_up(struct dlq_backend *b)
{
    open_all(b, (struct gb_dynamodb_dlq_cfg){.queue_max = 0});
}

static void set_up_small(struct dlq_backend *b)
{
    open_all(b, (struct gb_dynamodb_dlq_cfg){.queue_max = SMALL});
}

static void reopen_as(struct dlq_backend *b, struct gb_dynamodb_dlq_cfg cfg)
{
    if (b->store != NULL) STORE_CLOSE(&b->driver, b->store);
    open_store(b, cfg);
}

static void reopen(struct dlq_backend *b)
{
    reopen_as(b, (struct gb_dynamodb_dlq_cfg){.queue_max = 0});
}

static void tear_down(struct dlq_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    dynamodb_driver_close(&driver);
}

static struct dlq_backend dynamodb = {
    .name = "DLQ on DynamoDB",
    .durable = true,
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

/* The item as JSON, until the next request of the call. */
static struct gb_bytes item_of(struct gb_dynamodb_call *call, const char *key)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, table);
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call->w, "PK", key);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    assert_int_equal(dynamodb_driver_run(&driver, call), GB_OK);
    return call->answer.item;
}

static bool holds(struct gb_bytes item, const char *text)
{
    return memmem(item.data, item.size, text, strlen(text)) != NULL;
}

static void check_05_28_empty_keys_and_ttl(void **state)
{
    (void)state;
    struct gb_dynamodb_call call = {0};
    assert_int_equal(dlq_store(&dynamodb, "a", "", "", 1700000000999), GB_OK);
    struct gb_bytes item = item_of(&call, "DLQ#a");
    assert_true(item.size > 0);
    static const char *const absent[] = {"\"route_id\"", "\"category\"", "\"redrive_mode\"",
                                         "\"extra_info\"", "\"ttl\""};
    for (size_t i = 0; i < 5; i++) assert_false(holds(item, absent[i]));
    enum gb_code code = GB_OK;
    struct gb_dlq_entry *got = dlq_get(&dynamodb, "a", &code);
    assert_int_equal(code, GB_OK);
    assert_string_equal(got->route_id, "");
    assert_string_equal(got->category, "");
    gb_dlq_entry_free(got);
    dlq_list_is(&dynamodb, &(struct gb_dlq_filter){0}, "a");
    reopen_as(&dynamodb, (struct gb_dynamodb_dlq_cfg){.retention_ns = (int64_t)30 * 24 * GB_HOUR});
    assert_int_equal(dlq_store(&dynamodb, "b", "r", "permanent", 1700000000999), GB_OK);
    item = item_of(&call, "DLQ#b");
    assert_true(holds(item, "\"route_id\""));
    assert_true(holds(item, "\"ttl\"") && holds(item, "\"1702592000\""));
    gb_dynamodb_call_deinit(&call);
}

static void failures_are_told(void **state)
{
    (void)state;
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"PutItem\"");
    assert_int_equal(dlq_store(&dynamodb, "a", "r", "permanent", 5), GB_NOT_AUTHORIZED);
    dynamodb_rig_rule(rig, "\"effect\": \"throttle\", \"action\": \"PutItem\", \"times\": 3");
    assert_int_equal(dlq_store(&dynamodb, "a", "r", "permanent", 5), GB_THROTTLED);
    assert_int_equal(dlq_count(&dynamodb), 0);
    struct gb_dlq_delete q = {.filter = {.route_id = "r"}};
    assert_int_equal(dlq_store(&dynamodb, "a", "r", "permanent", 5), GB_OK);
    assert_int_equal(dlq_store(&dynamodb, "b", "r", "permanent", 6), GB_OK);
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"DeleteItem\", \"skip\": 1");
    store_driver_expect(&dynamodb.driver);
    dynamodb.store->ops->remove(dynamodb.store, &q, store_driver_done, &dynamodb.driver);
    store_driver_run(&dynamodb.driver);
    assert_int_equal(q.op.result.code, GB_NOT_AUTHORIZED);
    assert_int_equal(q.deleted, 1); /* that is done and counted */
    dlq_list_is(&dynamodb, &(struct gb_dlq_filter){0}, "b");
}

/* What the index still shows is not counted twice. */
static void counts_are_exact_behind_a_lagging_index(void **state)
{
    (void)state;
    assert_int_equal(dlq_store(&dynamodb, "b", "r", "permanent", 5), GB_OK);
    dynamodb_rig_rule(
        rig, "\"effect\": \"answer\", \"action\": \"Query\", \"status\": 200, \"body\": "
             "\"{\\\"Count\\\":2,\\\"ScannedCount\\\":2,\\\"Items\\\":[{\\\"PK\\\":{\\\"S\\\":"
             "\\\"DLQ#a\\\"},\\\"failed_at\\\":{\\\"N\\\":\\\"4\\\"}},{\\\"PK\\\":{\\\"S\\\":"
             "\\\"DLQ#b\\\"},\\\"failed_at\\\":{\\\"N\\\":\\\"5\\\"}}]}\"");
    assert_int_equal(dlq_delete_matches(&dynamodb, &(struct gb_dlq_filter){.route_id = "r"}), 1);
}

static void put(const char *key, const char *envelope, const char *failed_at)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_PUT_ITEM, table);
    gb_dynamodb_object(&call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&call.w, "PK", key);
    if (envelope != NULL) gb_dynamodb_w_s_c(&call.w, "envelope_json", envelope);
    gb_dynamodb_w_n(&call.w, "failed_at", gb_bytes_c(failed_at));
    gb_dynamodb_w_s_c(&call.w, "route_id", "r");
    gb_dynamodb_object_end(&call);
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}

static void unreadable_rows_are_left_out(void **state)
{
    (void)state;
    put("DLQ#bad", "{", "5");
    put("DLQ#none", NULL, "5");
    put("other", "{\"id\":\"e\"}", "5");
    put("DLQ#half", "{\"id\":\"e\"}", "5.5");
    assert_int_equal(dlq_store(&dynamodb, "good", "r", "permanent", 6), GB_OK);
    enum gb_code code = GB_OK;
    assert_null(dlq_get(&dynamodb, "bad", &code));
    assert_int_equal(code, GB_INVALID_OUTBOX_RECORD);
    dlq_list_is(&dynamodb, &(struct gb_dlq_filter){0}, "good");
    dlq_list_is(&dynamodb, &(struct gb_dlq_filter){.route_id = "r"}, "good");
    char long_id[80];
    memset(long_id, 'x', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    assert_null(dlq_get(&dynamodb, long_id, &code));
    assert_int_equal(code, GB_NOT_FOUND);
    const char *const ids[] = {"", long_id, "bad"};
    assert_int_equal(dlq_delete(&dynamodb, ids, 3), 1);
}

/* Rows of 30 KB: a page of one megabyte holds some 34 of them. */
static void fill_pages(int count)
{
    static char reason[30001];
    memset(reason, 'x', sizeof reason - 1);
    for (int i = 0; i < count; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "p%03d", i);
        struct gb_dlq_entry *e = dlq_entry(id, "", "", 1 + i);
        assert_int_equal(gb_dlq_set(&e->reason, gb_bytes_c(reason)).code, GB_OK);
        assert_int_equal(dlq_write(&dynamodb, e), GB_OK);
        gb_dlq_entry_free(e);
    }
}

static void scans_are_bounded(void **state)
{
    (void)state;
    enum { ROWS = 100 };
    fill_pages(ROWS);
    const struct gb_dlq_filter none = {.limit = 0};
    assert_int_equal(dlq_list_count(&dynamodb, &none), ROWS);
    dlq_list_is(&dynamodb, &(struct gb_dlq_filter){.limit = 3}, "p000 p001 p002");
    reopen_as(&dynamodb, (struct gb_dynamodb_dlq_cfg){.max_scan_pages = 1});
    size_t seen = dlq_list_count(&dynamodb, &none);
    assert_true(seen > 0 && seen < ROWS);
    assert_true(dlq_count(&dynamodb) < ROWS);
    /* The rows that stay don't keep the next calls from what lies behind them. */
    uint64_t deleted = 0;
    const struct gb_dlq_filter young = {.since_ms = 51};
    for (int i = 0; i < 20 && deleted < 50; i++) deleted += dlq_delete_matches(&dynamodb, &young);
    assert_int_equal(deleted, 50);
    reopen_as(&dynamodb, (struct gb_dynamodb_dlq_cfg){.max_scan_pages = -1});
    assert_int_equal(dlq_count(&dynamodb), 50);
    assert_int_equal(dlq_delete_matches(&dynamodb, &none), 50);
}

static void missing_table_is_no_missing_entry(void **state)
{
    (void)state;
    STORE_CLOSE(&dynamodb.driver, dynamodb.store);
    dynamodb_rig_table(rig, "absent", table);
    open_store(&dynamodb, (struct gb_dynamodb_dlq_cfg){.queue_max = 0});
    enum gb_code code = GB_OK;
    assert_null(dlq_get(&dynamodb, "a", &code));
    assert_int_equal(code, GB_UNAVAILABLE);
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest own[] = {
        TEST(check_05_28_empty_keys_and_ttl),
        TEST(failures_are_told),
        TEST(counts_are_exact_behind_a_lagging_index),
        TEST(unreadable_rows_are_left_out),
        TEST(scans_are_bounded),
        TEST(missing_table_is_no_missing_entry),
    };
    int failed = dlq_contract_run(&dynamodb);
    failed += cmocka_run_group_tests_name("DynamoDB DLQ", own, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
