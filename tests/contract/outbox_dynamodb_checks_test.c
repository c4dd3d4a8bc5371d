#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "contract/outbox_dynamodb.h"

/* Checks 16-21, 24 and 25 of spec 05: what only the DynamoDB backend has, with requests ordered,
 * refused and answered by the proxy. */

#define S1 "SESSION#s1"
#define KEY_OF(name) "OUTBOX#" name "#b1"
enum { WAIT_TURNS = 4000, GRACE_S = 3600, MONTH_S = 30 * 86400 };

static struct outbox_dynamodb dynamodb;
static struct outbox_backend backend = {.ctx = &dynamodb};
static unsigned warnings;

/* The store's own; the client tells of each refused request, too. */
static void count_warnings(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    char text[256];
    (void)arg;
    (void)snprintf(text, sizeof text, "%.*s", (int)size, line);
    if (level == GB_LOG_WARN && strstr(text, "aws call failed") == NULL) warnings++;
}

static int set_up(void **state)
{
    warnings = 0;
    dynamodb_rig_clear(dynamodb.rig);
    outbox_dynamodb_set_up(&backend, 0);
    *state = &backend;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dynamodb_rig_clear(dynamodb.rig);
    outbox_dynamodb_tear_down(&backend);
    outbox_records_free();
    return 0;
}

/* --- helpers --- */

static void store_one(const char *envelope_id, const char *key, int64_t expires_at_ms)
{
    assert_int_equal(outbox_store(&backend, &(struct outbox_spec){.envelope_id = envelope_id,
                                                                  .binding_id = "b1",
                                                                  .session_id = "s1",
                                                                  .key = key,
                                                                  .expires_at_ms = expires_at_ms}),
                     GB_OK);
}

/* Many in one call: e000, e001, ... */
static void store_many(size_t count, int64_t expires_at_ms, const char *payload)
{
    struct gb_outbox_record *r = calloc(count, sizeof *r);
    assert_non_null(r);
    for (size_t i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "e%03zu", i);
        r[i] = outbox_record(&(struct outbox_spec){.envelope_id = name,
                                                   .binding_id = "b1",
                                                   .session_id = "s1",
                                                   .payload = payload,
                                                   .expires_at_ms = expires_at_ms});
    }
    size_t stored = 0;
    assert_int_equal(outbox_persist(&backend, r, count, &stored), GB_OK);
    assert_int_equal(stored, count);
    free(r);
}

/* A second store over the same table, as another process would have it. */
static struct gb_outbox *other_store(void)
{
    struct gb_outbox *o = NULL;
    const struct gb_dynamodb_outbox_cfg cfg = {.reactor = dynamodb.client.reactor,
                                               .client = dynamodb.client.client,
                                               .table = dynamodb.table,
                                               .wall_ms = store_driver_wall_ms,
                                               .clock_arg = &backend.driver};
    assert_int_equal(gb_dynamodb_outbox_new(&cfg, &o).code, GB_OK);
    return o;
}

static void tick(struct gb_timer *timer)
{
    (void)timer;
    gb_loop_stop(dynamodb.client.loop);
}

static void run_until_held(size_t count)
{
    struct gb_timer timer;
    assert_int_equal(gb_timer_init(&timer, dynamodb.client.reactor, tick).code, GB_OK);
    for (int i = 0; dynamodb_rig_held(dynamodb.rig, "A") != count; i++) {
        assert_in_range(i, 0, WAIT_TURNS);
        gb_timer_start(&timer, gb_reactor_now_ns(dynamodb.client.reactor) + (uint64_t)(5 * GB_MS));
        gb_loop_run(dynamodb.client.loop);
    }
    gb_timer_deinit(&timer);
}

/* --- 16 --- */

static void check_05_16_fence_raised_after_the_read(void **state)
{
    struct outbox_backend *b = *state;
    store_one("A", NULL, 0);
    store_one("B", NULL, 0);
    outbox_claim_is(b, S1, "five", 5, 1, "A"); /* knows the mark from now on */
    struct outbox_backend six = *b;
    six.store = other_store();
    outbox_claim_is(&six, S1, "six", 6, 0, "");
    enum gb_code code = GB_OK;
    assert_null(outbox_claim(b, S1, "five", 5, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    outbox_claim_is(&six, S1, "six", 6, 10, "A B");
    STORE_CLOSE(&six.driver, six.store);
}

static void check_05_16_fence_raised_within_a_claim(void **state)
{
    struct outbox_backend *b = *state;
    store_many(30, 0, NULL);
    dynamodb_rig_rule(dynamodb.rig, "\"effect\": \"pass\", \"hold\": \"request\", \"action\": "
                                    "\"TransactWriteItems\", \"skip\": 1");
    struct gb_outbox_claim five = {
        .partition = gb_bytes_c(S1), .token = {gb_bytes_c("five"), 5}, .limit = 30};
    store_driver_expect(&b->driver);
    b->store->ops->claim(b->store, &five, store_driver_done, &b->driver);
    run_until_held(1);
    struct outbox_backend six = *b;
    six.driver.waiting = 0;
    six.store = other_store();
    outbox_claim_is(&six, S1, "six", 6, 0, "");
    dynamodb_rig_release(dynamodb.rig, "A");
    store_driver_run(&b->driver);
    assert_int_equal(five.op.result.code, GB_STALE_FENCING_TOKEN);
    assert_null(five.batch);
    struct gb_outbox_batch *batch = outbox_claim(&six, S1, "six", 6, 100, NULL);
    assert_int_equal(batch->count, 30); /* nothing lost, nothing with two owners */
    gb_outbox_batch_free(batch);
    STORE_CLOSE(&six.driver, six.store);
}

/* --- 17 --- */

static bool has(struct gb_bytes item, const char *name)
{
    const struct gb_dynamodb_source from = {"t", "GetItem"};
    struct gb_str scratch = {0};
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value v;
    bool found = false;
    (void)from;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, item, &scratch);
    while (gb_dynamodb_next(&c, &v)) found = found || gb_bytes_equal_c(v.name, name);
    gb_str_deinit(&scratch);
    return found;
}

static int64_t number(struct gb_bytes item, const char *name)
{
    const struct gb_dynamodb_source from = {"t", "GetItem"};
    struct gb_str scratch = {0};
    int64_t value = 0;
    struct gb_dynamodb_field field = {name, GB_DYNAMODB_FIELD_I64, true, &value, false};
    assert_int_equal(gb_dynamodb_item_read(&from, item, &scratch, &field, 1).code, GB_OK);
    gb_str_deinit(&scratch);
    return value;
}

static void check_05_17_attributes(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_dynamodb_call get = {0};
    int64_t now_s = b->driver.wall_ms / 1000;
    store_one("A", NULL, INT64_MAX / 2);
    struct gb_bytes item = outbox_dynamodb_get(&dynamodb, &get, S1, KEY_OF("A"));
    assert_true(has(item, "claim_sort") && has(item, "has_expiry") && !has(item, "ttl"));
    assert_true(!has(item, "first_attempted_at") && !has(item, "ordering_key"));
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 3, 1, NULL);
    item = outbox_dynamodb_get(&dynamodb, &get, S1, KEY_OF("A"));
    assert_true(has(item, "claim_sort") && has(item, "claimed_by") && !has(item, "ttl"));
    struct gb_bytes id = batch->records[0].id;
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, id, "o", 3), GB_OK);
    item = outbox_dynamodb_get(&dynamodb, &get, S1, KEY_OF("A"));
    assert_true(!has(item, "claimed_by") && !has(item, "claimed_at"));
    assert_int_equal(number(item, "claim_version"), 3);
    outbox_claim_is(b, S1, "o", 3, 1, "A");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "o", 3), GB_OK);
    item = outbox_dynamodb_get(&dynamodb, &get, S1, KEY_OF("A"));
    assert_int_equal(number(item, "ttl"), now_s + GRACE_S);
    assert_int_equal(number(item, "completed_at"), b->driver.wall_ms);
    assert_true(!has(item, "claim_sort") && !has(item, "has_expiry"));
    item = outbox_dynamodb_get(&dynamodb, &get, S1, "FENCE");
    assert_true(number(item, "ttl") >= now_s + MONTH_S);
    assert_int_equal(number(item, "max_claim_version"), 3);
    assert_true(!has(item, "claim_sort") && !has(item, "has_expiry") && !has(item, "record_id"));
    gb_outbox_batch_free(batch);
    store_one("B", NULL, 50);
    uint64_t expired = 0;
    assert_int_equal(outbox_expire(b, S1, "o", 3, 1000, &expired), GB_OK);
    item = outbox_dynamodb_get(&dynamodb, &get, S1, KEY_OF("B"));
    assert_int_equal(number(item, "ttl"), 1 + GRACE_S);
    assert_true(!has(item, "claim_sort") && !has(item, "has_expiry"));
    gb_dynamodb_call_deinit(&get);
}

/* --- 18 --- */

static void check_05_18_throttled_claims(void **state)
{
    struct outbox_backend *b = *state;
    enum gb_code code = GB_OK;
    store_many(30, 0, NULL);
    dynamodb_rig_rule(dynamodb.rig, "\"effect\": \"throttle\", \"action\": \"TransactWriteItems\", "
                                    "\"skip\": 1, \"times\": 0");
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 1, 30, NULL);
    assert_int_equal(batch->count, 25); /* the first transaction's */
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "DynamoDBOutboxClaimTruncated"), 1);
    gb_outbox_batch_free(batch);
    assert_null(outbox_claim(b, S1, "o", 1, 30, &code));
    assert_int_equal(code, GB_THROTTLED);
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "DynamoDBOutboxClaimTruncated"), 1);
    dynamodb_rig_clear(dynamodb.rig);
    batch = outbox_claim(b, S1, "o", 1, 30, NULL);
    assert_int_equal(batch->count, 5);
    gb_outbox_batch_free(batch);
}

static void conflicts_are_counted_and_pass(void **state)
{
    struct outbox_backend *b = *state;
    store_many(3, 0, NULL);
    outbox_claim_is(b, S1, "o", 1, 0, "");
    dynamodb_rig_rule(
        dynamodb.rig,
        "\"effect\": \"answer\", \"action\": \"TransactWriteItems\", \"body\": {\"__type\": "
        "\"com.amazonaws.dynamodb.v20120810#TransactionCanceledException\", \"message\": \"x\", "
        "\"CancellationReasons\": [{\"Code\": \"TransactionConflict\"}, {\"Code\": \"None\"}, "
        "{\"Code\": \"None\"}, {\"Code\": \"None\"}]}");
    outbox_claim_is(b, S1, "o", 1, 10, "e000 e001 e002"); /* the fence row was busy: again */
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "OutboxClaimConflicts"), 1);
    outbox_claim_is(b, S1, "o", 2, 0, "");
    dynamodb_rig_rule(
        dynamodb.rig,
        "\"effect\": \"answer\", \"action\": \"TransactWriteItems\", \"body\": {\"__type\": "
        "\"com.amazonaws.dynamodb.v20120810#TransactionCanceledException\", \"message\": \"x\", "
        "\"CancellationReasons\": [{\"Code\": \"None\"}, {\"Code\": \"TransactionConflict\"}, "
        "{\"Code\": \"ConditionalCheckFailed\"}, {\"Code\": \"None\"}]}");
    outbox_claim_is(b, S1, "o", 2, 10, "e002"); /* two races lost */
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "OutboxClaimConflicts"), 2);
}

/* --- 19 --- */

static void check_05_19_sort_key_taken(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_dynamodb_call put = {0};
    gb_dynamodb_begin(&put, GB_DYNAMODB_PUT_ITEM, dynamodb.table);
    gb_dynamodb_object(&put, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&put.w, "PK", S1);
    gb_dynamodb_w_s_c(&put.w, "SK", KEY_OF("A"));
    gb_dynamodb_w_s_c(&put.w, "envelope_id", "other");
    gb_dynamodb_w_s_c(&put.w, "binding_id", "b1");
    gb_dynamodb_object_end(&put);
    assert_int_equal(outbox_dynamodb_run(&dynamodb, &put), GB_OK);
    gb_dynamodb_call_deinit(&put);
    struct outbox_spec spec = {.envelope_id = "A", .binding_id = "b1", .session_id = "s1"};
    assert_int_equal(outbox_store(b, &spec), GB_UNAVAILABLE);
    store_one("B", NULL, 0);
}

/* --- 20 --- */

static void check_05_20_silent_id_index(void **state)
{
    struct outbox_backend *b = *state;
    store_one("A", NULL, 0);
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 1, 1, NULL);
    outbox_dynamodb_reopen(b, 0); /* forgets the keys */
    dynamodb_rig_rule(dynamodb.rig,
                      "\"effect\": \"answer\", \"contains\": \"RecordIDIndex\", \"status\": 200, "
                      "\"times\": 0, \"body\": {\"Items\": [], \"Count\": 0, \"ScannedCount\": 0}");
    uint64_t before = dynamodb_rig_arrived(dynamodb.rig);
    struct gb_bytes id = batch->records[0].id;
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "o", 1), GB_TIMEOUT);
    assert_int_equal(dynamodb_rig_arrived(dynamodb.rig) - before, 5);
    assert_int_equal(outbox_stats(b, S1).claimed, 1);
    dynamodb_rig_clear(dynamodb.rig);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
}

/* --- 21 --- */

static void check_05_21_keyed_partition(void **state)
{
    struct outbox_backend *b = *state;
    store_one("A", NULL, 0);
    store_one("B", "K", 0);
    dynamodb_rig_clear(dynamodb.rig);
    outbox_claim_is(b, S1, "o", 1, 10, "A B");
    store_one("C", "K", 0);
    outbox_claim_is(b, S1, "o", 1, 10, ""); /* behind B */
    assert_int_equal(warnings, 1);
    const char *seen = dynamodb_rig_ask(dynamodb.rig, "{\"do\": \"requests\", \"since\": 0}");
    assert_non_null(strstr(seen, "begins_with(SK, :prefix)"));
    const char *at = seen;
    for (int scans = 0; scans < 2; scans++) {
        at = strstr(at, "#status = :pending OR #status = :claimed\\\"");
        assert_non_null(at);
        const char *end = strstr(at, "\"answer\"");
        const char *strong = strstr(at, "ConsistentRead\\\":true");
        assert_true(strong != NULL && strong < end);
        at = end;
    }
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "DynamoDBOutboxClaimScanPages"), 0);
}

static void check_05_21_many_pages(void **state)
{
    enum { LARGE = 360 * 1024, COUNT = 27 };
    struct outbox_backend *b = *state;
    if (!dynamodb_rig_is(dynamodb.rig, "dynoxide")) skip();
    char *payload = malloc(LARGE + 1);
    assert_non_null(payload);
    memset(payload, 'x', LARGE);
    payload[LARGE] = '\0';
    store_many(COUNT, 0, payload);
    free(payload);
    store_one("K", "key", 0);
    outbox_claim_is(b, S1, "o", 1, 2, "e000 e001");
    assert_int_equal(gb_metrics_sum(dynamodb.metrics, "DynamoDBOutboxClaimScanPages"), 0);
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 1, 100, NULL);
    assert_non_null(batch); /* what fits, the oldest of them */
    assert_true(gb_metrics_sum(dynamodb.metrics, "DynamoDBOutboxClaimScanPages") > 8);
    assert_int_equal(batch->count, COUNT - 2 + 1);
    gb_outbox_batch_free(batch);
}

static void index_that_is_gone_is_scanned_around(void **state)
{
    struct outbox_backend *b = *state;
    store_one("A", NULL, 0);
    dynamodb_rig_rule(dynamodb.rig,
                      "\"effect\": \"answer\", \"contains\": \"ClaimIndex\", \"times\": 0");
    outbox_claim_is(b, S1, "o", 1, 10, "A");
    outbox_claim_is(b, S1, "o", 2, 10, "A");
    assert_int_equal(warnings, 1);
}

/* --- 24 --- */

static void lose_mark(void)
{
    struct gb_dynamodb_call update = {0};
    gb_dynamodb_begin(&update, GB_DYNAMODB_UPDATE_ITEM, dynamodb.table);
    gb_dynamodb_object(&update, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&update.w, "PK", S1);
    gb_dynamodb_w_s_c(&update.w, "SK", "FENCE");
    gb_dynamodb_object_end(&update);
    gb_dynamodb_text(&update, GB_DYNAMODB_UPDATE, "REMOVE max_claim_version");
    assert_int_equal(outbox_dynamodb_run(&dynamodb, &update), GB_OK);
    gb_dynamodb_call_deinit(&update);
}

static void check_05_24_mark_is_seeded_from_rows(void **state)
{
    struct outbox_backend *b = *state;
    enum gb_code code = GB_OK;
    store_many(3, 0, NULL);
    outbox_claim_is(b, S1, "nine", 9, 1, "e000");
    lose_mark();
    outbox_dynamodb_reopen(b, 0);
    assert_int_equal(outbox_stats(b, S1).mark, 9);
    assert_null(outbox_claim(b, S1, "eight", 8, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    outbox_dynamodb_reopen(b, 0);
    assert_null(outbox_claim(b, S1, "eight", 8, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    outbox_claim_is(b, S1, "nine", 9, 10, "e001 e002");
}

/* --- 25 --- */

static bool first_sweep_page_resumes(void)
{
    const char *seen = dynamodb_rig_ask(dynamodb.rig, "{\"do\": \"requests\", \"since\": 0}");
    const char *query = strstr(seen, "ExpiryIndex");
    assert_non_null(query);
    const char *end = strstr(query, "\"answer\"");
    const char *start = strstr(query, "ExclusiveStartKey");
    assert_non_null(end);
    return start != NULL && start < end;
}

#define SWEEPS "\"effect\": \"throttle\", \"contains\": \"ExpiryIndex\", \"times\": 0"

static void check_05_25_sweep_resumes(void **state)
{
    struct outbox_backend *b = *state;
    uint64_t expired = 0;
    store_many(250, 50, NULL);
    outbox_claim_is(b, S1, "o", 1, 0, "");
    dynamodb_rig_rule(dynamodb.rig, SWEEPS ", \"skip\": 1");
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_THROTTLED);
    assert_int_equal(expired, 100); /* with the error */
    dynamodb_rig_clear(dynamodb.rig);
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 150);
    assert_true(first_sweep_page_resumes());
    dynamodb_rig_clear(dynamodb.rig);
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 0);
    assert_false(first_sweep_page_resumes()); /* the pass was complete */
}

static void check_05_25_failed_resume_restarts(void **state)
{
    struct outbox_backend *b = *state;
    uint64_t expired = 0;
    store_many(250, 50, NULL);
    outbox_claim_is(b, S1, "o", 1, 0, "");
    dynamodb_rig_rule(dynamodb.rig, SWEEPS ", \"skip\": 1");
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_THROTTLED);
    dynamodb_rig_clear(dynamodb.rig);
    dynamodb_rig_rule(dynamodb.rig, SWEEPS);
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_THROTTLED);
    assert_int_equal(expired, 0);
    assert_true(first_sweep_page_resumes());
    dynamodb_rig_clear(dynamodb.rig);
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 150);
    assert_false(first_sweep_page_resumes());
}

/* --- rows that can't be read (docs/decisions/0203) --- */

static void damage(const char *sort_key)
{
    struct gb_dynamodb_call update = {0};
    gb_dynamodb_begin(&update, GB_DYNAMODB_UPDATE_ITEM, dynamodb.table);
    gb_dynamodb_object(&update, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&update.w, "PK", S1);
    gb_dynamodb_w_s_c(&update.w, "SK", sort_key);
    gb_dynamodb_object_end(&update);
    gb_dynamodb_text(&update, GB_DYNAMODB_UPDATE, "SET envelope_json = :bad");
    gb_dynamodb_object(&update, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&update.w, ":bad", "{");
    gb_dynamodb_object_end(&update);
    assert_int_equal(outbox_dynamodb_run(&dynamodb, &update), GB_OK);
    gb_dynamodb_call_deinit(&update);
}

static void damaged_row_is_skipped_and_holds_its_key(void **state)
{
    struct outbox_backend *b = *state;
    enum gb_code code = GB_OK;
    store_one("A", "K", 0);
    store_one("B", "K", 0);
    store_one("C", NULL, 0);
    damage(KEY_OF("A"));
    outbox_claim_is(b, S1, "o", 1, 10, "C");
    assert_null(outbox_claim(b, S1, "o", 1, 10, &code));
    assert_int_equal(code, GB_INVALID_OUTBOX_RECORD);
    assert_int_equal(outbox_stats(b, S1).pending, 2);
}

static void too_large_is_not_sent(void **state)
{
    enum { LARGE = 401 * 1024 };
    char *payload = malloc(LARGE + 1);
    assert_non_null(payload);
    memset(payload, 'x', LARGE);
    payload[LARGE] = '\0';
    struct outbox_spec spec = {
        .envelope_id = "A", .binding_id = "b1", .session_id = "s1", .payload = payload};
    assert_int_equal(outbox_store(*state, &spec), GB_PAYLOAD_TOO_LARGE);
    free(payload);
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(check_05_16_fence_raised_after_the_read),
        CHECK(check_05_16_fence_raised_within_a_claim),
        CHECK(check_05_17_attributes),
        CHECK(check_05_18_throttled_claims),
        CHECK(conflicts_are_counted_and_pass),
        CHECK(check_05_19_sort_key_taken),
        CHECK(check_05_20_silent_id_index),
        CHECK(check_05_21_keyed_partition),
        CHECK(check_05_21_many_pages),
        CHECK(index_that_is_gone_is_scanned_around),
        CHECK(check_05_24_mark_is_seeded_from_rows),
        CHECK(check_05_25_sweep_resumes),
        CHECK(check_05_25_failed_resume_restarts),
        CHECK(damaged_row_is_skipped_and_holds_its_key),
        CHECK(too_large_is_not_sent),
    };
    gb_log_set_sink(count_warnings, NULL);
    dynamodb.rig = dynamodb_rig_new();
    dynamodb.through_proxy = true;
    if (dynamodb.rig == NULL) return DYNAMODB_RIG_SKIP;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(dynamodb.rig);
    return failed;
}
