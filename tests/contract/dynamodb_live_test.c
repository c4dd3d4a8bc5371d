#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_table.h"
#include "base/duration.h"
#include "base/log.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"

/* Every operation of the client against an emulator (docs/emulators.md says what each gets right),
 * directly and through the fault proxy. */

enum { CALLS = 200 };

static struct fixture {
    struct dynamodb_rig *rig;
    struct dynamodb_driver driver;
    struct gb_dynamodb_call call;
    struct gb_str scratch;
    char table[DYNAMODB_TABLE_SIZE];
} f;

static const struct gb_dynamodb_table shape = {
    .hash = {"PK", GB_DYNAMODB_S},
    .range = {"SK", GB_DYNAMODB_S},
    .indexes =
        {{"ClaimIndex", {"PK", GB_DYNAMODB_S}, {"claim_sort", GB_DYNAMODB_S}, GB_DYNAMODB_ALL},
         {"ExpiryIndex",
          {"has_expiry", GB_DYNAMODB_S},
          {"expires_at", GB_DYNAMODB_N},
          GB_DYNAMODB_KEYS_ONLY}},
    .index_count = 2,
};

/* --- small steps --- */

static void expect(enum gb_code code)
{
    enum gb_code found = dynamodb_driver_run(&f.driver, &f.call);
    if (found != code) {
        fail_msg("%s instead of %s: %s", gb_code_name(found), gb_code_name(code),
                 f.call.op.result.message);
    }
}

static void write_key(struct gb_dynamodb_call *call, enum gb_dynamodb_object object,
                      const char *key)
{
    gb_dynamodb_object(call, object);
    gb_dynamodb_w_s_c(&call->w, "PK", "p");
    gb_dynamodb_w_s_c(&call->w, "SK", key);
    if (object == GB_DYNAMODB_KEY) gb_dynamodb_object_end(call);
}

static void begin_put(struct gb_dynamodb_call *call, const char *key, const char *value)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, f.table);
    write_key(call, GB_DYNAMODB_ITEM, key);
    gb_dynamodb_w_s_c(&call->w, "value", value);
    gb_dynamodb_object_end(call);
}

static void begin_get(struct gb_dynamodb_call *call, const char *key)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, f.table);
    write_key(call, GB_DYNAMODB_KEY, key);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
}

static struct gb_bytes read_text(struct gb_bytes item, const char *name)
{
    const struct gb_dynamodb_source from = {f.table, "test"};
    struct gb_bytes text = {0};
    struct gb_dynamodb_field field = {name, GB_DYNAMODB_FIELD_S, true, &text, false};
    gb_str_clear(&f.scratch);
    struct gb_err err = gb_dynamodb_item_read(&from, item, &f.scratch, &field, 1);
    if (gb_failed(err)) fail_msg("%s", err.message);
    return text;
}

static uint64_t read_number(struct gb_bytes item, const char *name)
{
    const struct gb_dynamodb_source from = {f.table, "test"};
    uint64_t number = 0;
    struct gb_dynamodb_field field = {name, GB_DYNAMODB_FIELD_U64, true, &number, false};
    gb_str_clear(&f.scratch);
    struct gb_err err = gb_dynamodb_item_read(&from, item, &f.scratch, &field, 1);
    if (gb_failed(err)) fail_msg("%s", err.message);
    return number;
}

static void assert_stored(const char *key, const char *value)
{
    begin_get(&f.call, key);
    expect(GB_OK);
    if (value == NULL) {
        assert_int_equal(f.call.answer.item.size, 0);
        return;
    }
    assert_true(gb_bytes_equal_c(read_text(f.call.answer.item, "value"), value));
}

/* --- fixture --- */

static void begin_create(void)
{
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_CREATE_TABLE, f.table);
    gb_dynamodb_w_table(&f.call.w, &shape);
}

static void open_driver(const char *endpoint)
{
    const struct dynamodb_driver_cfg cfg = {.endpoint = endpoint, .attempt_timeout_ns = 5 * GB_SEC};
    f.call = (struct gb_dynamodb_call){0};
    f.scratch = (struct gb_str){0};
    dynamodb_driver_open(&f.driver, &cfg);
    dynamodb_rig_table(f.rig, "live", f.table);
    begin_create();
    expect(GB_OK);
}

static int set_up(void **state)
{
    (void)state;
    open_driver(dynamodb_rig_endpoint(f.rig));
    return 0;
}

static int set_up_proxy(void **state)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    (void)state;
    dynamodb_rig_client(f.rig, "A", endpoint);
    open_driver(endpoint);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dynamodb_rig_clear(f.rig);
    gb_dynamodb_call_deinit(&f.call);
    gb_str_deinit(&f.scratch);
    dynamodb_driver_close(&f.driver);
    return 0;
}

/* --- tables --- */

static void tables(void **state)
{
    struct gb_dynamodb_table found;
    (void)state;
    expect(GB_ALREADY_EXISTS); /* the same request once more */
    assert_int_equal(f.call.error, GB_DYNAMODB_TABLE_IN_USE);
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_DESCRIBE_TABLE, f.table);
    expect(GB_OK);
    assert_int_equal(gb_dynamodb_table_read(f.call.answer.table, &f.scratch, &found).code, GB_OK);
    assert_string_equal(found.status, "ACTIVE");
    assert_string_equal(found.hash.name, "PK");
    assert_string_equal(found.range.name, "SK");
    assert_int_equal(found.index_count, 2);
    assert_int_equal(found.attribute_count, 5);
    for (size_t i = 0; i < 2; i++) {
        bool claim = strcmp(found.indexes[i].name, "ClaimIndex") == 0;
        assert_int_equal(found.indexes[i].projection,
                         claim ? GB_DYNAMODB_ALL : GB_DYNAMODB_KEYS_ONLY);
        assert_string_equal(found.indexes[i].range.name, claim ? "claim_sort" : "expires_at");
        assert_int_equal(found.indexes[i].range.type, claim ? GB_DYNAMODB_S : GB_DYNAMODB_N);
    }
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_DESCRIBE_TABLE, "no-such-table");
    expect(GB_NOT_FOUND);
    assert_int_equal(f.call.error, GB_DYNAMODB_NO_TABLE);

    gb_dynamodb_begin(&f.call, GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE, f.table);
    expect(GB_OK);
    assert_true(gb_bytes_equal_c(f.call.answer.ttl_status, "DISABLED"));
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_UPDATE_TIME_TO_LIVE, f.table);
    gb_dynamodb_ttl(&f.call, "ttl");
    expect(GB_OK);
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_DESCRIBE_TIME_TO_LIVE, f.table);
    expect(GB_OK);
    assert_true(gb_bytes_equal_c(f.call.answer.ttl_status, "ENABLED"));
    assert_true(gb_bytes_equal_c(f.call.answer.ttl_attribute, "ttl"));
}

/* --- items --- */

static void items_with_conditions(void **state)
{
    (void)state;
    assert_stored("k", NULL);
    begin_put(&f.call, "k", "first");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
    expect(GB_OK);
    begin_put(&f.call, "k", "second");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
    gb_dynamodb_flag(&f.call, GB_DYNAMODB_RETURN_ON_FAILURE);
    expect(GB_VERSION_MISMATCH);
    assert_int_equal(f.call.error, GB_DYNAMODB_CONDITION_FAILED);
    assert_int_equal(f.call.outcome, GB_DYNAMODB_NOT_APPLIED);
    assert_true(gb_bytes_equal_c(read_text(f.call.answer.item, "value"), "first"));
    assert_stored("k", "first");

    static const struct gb_dynamodb_name name = {"#n", "status"};
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_UPDATE_ITEM, f.table);
    write_key(&f.call, GB_DYNAMODB_KEY, "k");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_UPDATE, "SET #n = :v ADD seq_counter :one");
    gb_dynamodb_names(&f.call, &name, 1);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&f.call.w, ":v", "x");
    gb_dynamodb_w_u64(&f.call.w, ":one", UINT64_MAX);
    gb_dynamodb_object_end(&f.call);
    gb_dynamodb_text(&f.call, GB_DYNAMODB_RETURN_VALUES, "UPDATED_NEW");
    expect(GB_OK);
    assert_true(read_number(f.call.answer.attributes, "seq_counter") == UINT64_MAX);

    gb_dynamodb_begin(&f.call, GB_DYNAMODB_DELETE_ITEM, f.table);
    write_key(&f.call, GB_DYNAMODB_KEY, "k");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_RETURN_VALUES, "ALL_OLD");
    expect(GB_OK);
    assert_true(gb_bytes_equal_c(read_text(f.call.answer.attributes, "status"), "x"));
    expect(GB_OK); /* again: nothing there */
    assert_int_equal(f.call.answer.attributes.size, 0);
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_PUT_ITEM, f.table);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_ITEM);
    gb_dynamodb_object_end(&f.call);
    expect(GB_INVALID_PAYLOAD);
    assert_int_equal(f.call.error, GB_DYNAMODB_INVALID);
}

static void every_type_comes_back(void **state)
{
    const struct gb_bytes set[] = {gb_bytes_c("a"), gb_bytes_c("b\"\n")};
    uint8_t bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    (void)state;
    struct gb_json_writer *w = &f.call.w;
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_PUT_ITEM, f.table);
    write_key(&f.call, GB_DYNAMODB_ITEM, "types");
    gb_dynamodb_w_s(w, "s", gb_bytes("a\0\"\\\n\xf0\x9f\x98\x80", 9));
    gb_dynamodb_w_i64(w, "i", INT64_MIN);
    gb_dynamodb_w_u64(w, "u", UINT64_MAX);
    gb_dynamodb_w_n(w, "n", gb_bytes_c("-1234567890.1234567890123456789012345678"));
    gb_dynamodb_w_b(w, "b", gb_bytes(bytes, sizeof bytes));
    gb_dynamodb_w_bool(w, "t", true);
    gb_dynamodb_w_null(w, "x");
    gb_dynamodb_w_ss(w, "ss", set, 2);
    gb_dynamodb_w_map(w, "m");
    gb_dynamodb_w_list(w, "l");
    gb_dynamodb_w_bool(w, NULL, false);
    gb_dynamodb_w_list_end(w);
    gb_dynamodb_w_map_end(w);
    gb_dynamodb_object_end(&f.call);
    expect(GB_OK);
    begin_get(&f.call, "types");
    expect(GB_OK);
    struct {
        struct gb_bytes s, n, b, ss, m;
        int64_t i;
        uint64_t u;
        bool t;
    } v = {.t = false};
    struct gb_dynamodb_field fields[] = {
        {"s", GB_DYNAMODB_FIELD_S, true, &v.s, false},
        {"i", GB_DYNAMODB_FIELD_I64, true, &v.i, false},
        {"u", GB_DYNAMODB_FIELD_U64, true, &v.u, false},
        {"n", GB_DYNAMODB_FIELD_N, true, &v.n, false},
        {"b", GB_DYNAMODB_FIELD_B, true, &v.b, false},
        {"t", GB_DYNAMODB_FIELD_BOOL, true, &v.t, false},
        {"ss", GB_DYNAMODB_FIELD_SS, true, &v.ss, false},
        {"m", GB_DYNAMODB_FIELD_M, true, &v.m, false},
    };
    const struct gb_dynamodb_source from = {f.table, "GetItem"};
    struct gb_err err = gb_dynamodb_item_read(&from, f.call.answer.item, &f.scratch, fields,
                                              sizeof fields / sizeof fields[0]);
    assert_string_equal(err.message, "");
    assert_true(gb_bytes_equal(v.s, gb_bytes("a\0\"\\\n\xf0\x9f\x98\x80", 9)));
    assert_true(v.i == INT64_MIN && v.u == UINT64_MAX && v.t);
    assert_true(gb_bytes_equal_c(v.n, "-1234567890.1234567890123456789012345678"));
    assert_true(gb_bytes_equal(v.b, gb_bytes(bytes, sizeof bytes)));
    struct gb_dynamodb_cursor c;
    struct gb_dynamodb_value value;
    unsigned members = 0;
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_SS, v.ss, &f.scratch);
    while (gb_dynamodb_next(&c, &value))
        members += gb_bytes_equal(value.text, set[0]) || gb_bytes_equal(value.text, set[1]) ? 1 : 9;
    assert_int_equal(members, 2);
    gb_dynamodb_cursor_init(&c, GB_DYNAMODB_M, v.m, &f.scratch);
    assert_true(gb_dynamodb_next(&c, &value) && value.type == GB_DYNAMODB_L);
}

static void put_of_size(size_t bytes)
{
    struct gb_str text = {0};
    for (size_t i = 0; i < bytes - 5 - 6 - 5; i++) gb_str_append_char(&text, 'x');
    gb_str_append_c(&text, "");
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_PUT_ITEM, f.table);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&f.call.w, "PK", "big");  /* 5 bytes */
    gb_dynamodb_w_s_c(&f.call.w, "SK", "item"); /* 6 */
    gb_dynamodb_w_s(&f.call.w, "value", gb_str_bytes(&text));
    gb_dynamodb_object_end(&f.call);
    gb_str_deinit(&text);
}

/* Our count of an item's bytes is the service's: the limit agrees to the byte. */
static void largest_item(void **state)
{
    (void)state;
    if (!dynamodb_rig_is(f.rig, "dynoxide")) skip();
    put_of_size(GB_DYNAMODB_ITEM_BYTES_MAX);
    expect(GB_OK);
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_UPDATE_ITEM, f.table);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&f.call.w, "PK", "big");
    gb_dynamodb_w_s_c(&f.call.w, "SK", "item");
    gb_dynamodb_object_end(&f.call);
    gb_dynamodb_text(&f.call, GB_DYNAMODB_UPDATE, "SET a = :a");
    gb_dynamodb_object(&f.call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_bool(&f.call.w, ":a", true);
    gb_dynamodb_object_end(&f.call);
    expect(GB_PAYLOAD_TOO_LARGE);
    assert_int_equal(f.call.error, GB_DYNAMODB_ITEM_TOO_LARGE);
    put_of_size(GB_DYNAMODB_ITEM_BYTES_MAX + 1);
    expect(GB_PAYLOAD_TOO_LARGE);
    assert_int_equal(f.call.attempts, 0); /* not even sent */
}

/* --- pages --- */

static void put_claimable(struct gb_dynamodb_call *call, unsigned i)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%019u", i);
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, f.table);
    write_key(call, GB_DYNAMODB_ITEM, text);
    gb_dynamodb_w_s_c(&call->w, "claim_sort", text);
    gb_dynamodb_w_u64(&call->w, "n", i);
    gb_dynamodb_w_s_c(&call->w, "status", i % 2 == 0 ? "pending" : "completed");
    gb_dynamodb_object_end(call);
}

static void begin_claim(bool count)
{
    static const struct gb_dynamodb_name name = {"#s", "status"};
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_QUERY, f.table);
    gb_dynamodb_text(&f.call, GB_DYNAMODB_INDEX, "ClaimIndex");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_KEY_CONDITION, "PK = :p");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_FILTER, "#s = :s");
    gb_dynamodb_names(&f.call, &name, 1);
    gb_dynamodb_object(&f.call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&f.call.w, ":p", "p");
    gb_dynamodb_w_s_c(&f.call.w, ":s", "pending");
    gb_dynamodb_object_end(&f.call);
    if (count) gb_dynamodb_flag(&f.call, GB_DYNAMODB_COUNT_ONLY);
}

/* Independent calls, more of them than may be under way; then the index and the table by pages. */
static void many_calls_and_pages(void **state)
{
    (void)state;
    struct gb_dynamodb_call *calls = calloc(CALLS, sizeof *calls);
    for (unsigned i = 0; i < CALLS; i++) {
        put_claimable(&calls[i], i);
        dynamodb_driver_start(&f.driver, &calls[i]);
    }
    dynamodb_driver_wait(&f.driver);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].op.result.code, GB_OK);
        gb_dynamodb_call_deinit(&calls[i]);
    }
    free(calls);
    unsigned next = 0;
    unsigned pages = 0;
    do {
        begin_claim(false);
        gb_dynamodb_limit(&f.call, 30);
        gb_dynamodb_start_key(&f.call, f.call.answer.last_key);
        expect(GB_OK);
        struct gb_dynamodb_items items;
        struct gb_bytes item;
        gb_dynamodb_items_init(&items, f.call.answer.items);
        for (; gb_dynamodb_items_next(&items, &item); next += 2)
            assert_int_equal(read_number(item, "n"), next);
        pages++;
    } while (f.call.answer.last_key.size > 0 && pages < 100);
    assert_int_equal(next, CALLS);
    assert_int_equal(pages, (CALLS + 29) / 30);
    begin_claim(true);
    expect(GB_OK);
    assert_int_equal(f.call.answer.count, CALLS / 2);
    assert_int_equal(f.call.answer.scanned, CALLS);
    uint64_t scanned = 0;
    do {
        gb_dynamodb_begin(&f.call, GB_DYNAMODB_SCAN, f.table);
        gb_dynamodb_limit(&f.call, 77);
        gb_dynamodb_start_key(&f.call, f.call.answer.last_key);
        expect(GB_OK);
        scanned += f.call.answer.count;
    } while (f.call.answer.last_key.size > 0 && scanned <= CALLS);
    assert_int_equal(scanned, CALLS);
    struct gb_dynamodb_usage sum =
        gb_dynamodb_usage_sum(f.driver.client, f.table, GB_DYNAMODB_PUT_ITEM);
    assert_int_equal(sum.calls, CALLS);
    if (dynamodb_rig_is(f.rig, "dynoxide")) /* the item and its entry in ClaimIndex */
        assert_int_equal(sum.write_units, CALLS * 2 * 1000);
}

/* --- transactions --- */

static void write_transaction(const char *token, const char *value)
{
    gb_dynamodb_begin(&f.call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    if (token != NULL) gb_dynamodb_token(&f.call, token);
    gb_dynamodb_action(&f.call, GB_DYNAMODB_CONDITION_CHECK, f.table);
    write_key(&f.call, GB_DYNAMODB_KEY, "fence");
    gb_dynamodb_text(&f.call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
    gb_dynamodb_action_end(&f.call);
    gb_dynamodb_action(&f.call, GB_DYNAMODB_PUT_ITEM, f.table);
    write_key(&f.call, GB_DYNAMODB_ITEM, "record");
    gb_dynamodb_w_s_c(&f.call.w, "value", value);
    gb_dynamodb_object_end(&f.call);
    gb_dynamodb_text(&f.call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
    gb_dynamodb_flag(&f.call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dynamodb_action_end(&f.call);
}

static void transactions(void **state)
{
    struct gb_dynamodb_reason r[2];
    (void)state;
    write_transaction(NULL, "first");
    expect(GB_OK);
    assert_stored("record", "first");
    write_transaction(NULL, "second");
    expect(GB_VERSION_MISMATCH);
    assert_int_equal(f.call.error, GB_DYNAMODB_CANCELLED);
    assert_int_equal(f.call.outcome, GB_DYNAMODB_NOT_APPLIED);
    assert_int_equal(gb_dynamodb_reasons_read(f.call.answer.reasons, r, 2), 2);
    assert_int_equal(r[0].error, GB_DYNAMODB_NO_ERROR);
    assert_int_equal(r[1].error, GB_DYNAMODB_CONDITION_FAILED);
    assert_true(gb_bytes_equal_c(read_text(r[1].item, "value"), "first"));
    assert_stored("record", "first");
}

static void tokens(void **state)
{
    (void)state;
    if (!dynamodb_rig_is(f.rig, "dynoxide")) skip();
    write_transaction("the-token", "mine");
    expect(GB_OK);
    expect(GB_OK); /* once more: known by its token */
    write_transaction("the-token", "mine");
    expect(GB_OK); /* written anew */
    write_transaction("the-token", "other");
    expect(GB_INTERNAL);
    assert_int_equal(f.call.error, GB_DYNAMODB_OTHER_PARAMETERS);
    assert_stored("record", "mine");
}

/* --- faults on the way to a real table --- */

static void faults(void **state)
{
    static const struct {
        const char *rule;
        bool repeatable;
        enum gb_code code;
        enum gb_dynamodb_outcome outcome;
        bool stored;
    } rows[] = {
        {"\"effect\": \"throughput\"", false, GB_OK, GB_DYNAMODB_APPLIED, true},
        {"\"effect\": \"expired_token\"", false, GB_OK, GB_DYNAMODB_APPLIED, true},
        {"\"effect\": \"denied\"", false, GB_NOT_AUTHORIZED, GB_DYNAMODB_NOT_APPLIED, false},
        {"\"effect\": \"internal\"", false, GB_UNAVAILABLE, GB_DYNAMODB_OUTCOME_UNKNOWN, false},
        {"\"effect\": \"internal\", \"apply\": true", true, GB_VERSION_MISMATCH,
         GB_DYNAMODB_OUTCOME_UNKNOWN, true},
        {"\"effect\": \"cut\"", false, GB_CONNECTION_LOST, GB_DYNAMODB_OUTCOME_UNKNOWN, true},
        {"\"effect\": \"cut\"", true, GB_VERSION_MISMATCH, GB_DYNAMODB_OUTCOME_UNKNOWN, true},
        {"\"effect\": \"half\"", true, GB_VERSION_MISMATCH, GB_DYNAMODB_OUTCOME_UNKNOWN, true},
        {"\"effect\": \"corrupt\"", true, GB_VERSION_MISMATCH, GB_DYNAMODB_OUTCOME_UNKNOWN, true},
        {"\"effect\": \"drop\"", true, GB_OK, GB_DYNAMODB_APPLIED, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char rule[160];
        char key[16];
        (void)snprintf(rule, sizeof rule, "%s, \"action\": \"PutItem\"", rows[i].rule);
        (void)snprintf(key, sizeof key, "fault-%zu", i);
        dynamodb_rig_rule(f.rig, rule);
        begin_put(&f.call, key, "mine");
        gb_dynamodb_text(&f.call, GB_DYNAMODB_CONDITION, "attribute_not_exists(SK)");
        gb_dynamodb_flag(&f.call, GB_DYNAMODB_RETURN_ON_FAILURE);
        f.call.repeatable = rows[i].repeatable;
        (void)dynamodb_driver_run(&f.driver, &f.call);
        if (f.call.op.result.code != rows[i].code || f.call.outcome != rows[i].outcome)
            fail_msg("%s: %s, outcome %d", rule, f.call.op.result.message, f.call.outcome);
        if (rows[i].code == GB_VERSION_MISMATCH)
            assert_true(gb_bytes_equal_c(read_text(f.call.answer.item, "value"), "mine"));
        assert_stored(key, rows[i].stored ? "mine" : NULL);
        dynamodb_rig_clear(f.rig);
    }
}

static void transaction_that_was_cut_is_its_own(void **state)
{
    (void)state;
    if (!dynamodb_rig_is(f.rig, "dynoxide")) skip();
    dynamodb_rig_rule(f.rig, "\"effect\": \"cut\", \"action\": \"TransactWriteItems\"");
    write_transaction(NULL, "mine");
    expect(GB_OK);
    assert_true(f.call.attempts == 2 || dynamodb_rig_arrived(f.rig) > 1);
    assert_stored("record", "mine");
}

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

int main(void)
{
    gb_log_set_sink(quiet, NULL);
    f.rig = dynamodb_rig_new();
    if (f.rig == NULL) return DYNAMODB_RIG_SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(items_with_conditions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_type_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(largest_item, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_calls_and_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(transactions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults, set_up_proxy, tear_down),
        cmocka_unit_test_setup_teardown(transaction_that_was_cut_is_its_own, set_up_proxy,
                                        tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(f.rig);
    return failed;
}
