#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_lease.h"
#include "adapters/dynamodb/dynamodb_tables.h"
#include "base/duration.h"
#include "contract/dynamodb_driver.h"
#include "contract/dynamodb_rig.h"
#include "contract/lease_contract.h"

static struct dynamodb_rig *rig;
static struct dynamodb_driver driver;
static char table[DYNAMODB_TABLE_SIZE];

/* The clocks of a store: the test moves them. */
struct clocks {
    int64_t wall_ms;
    uint64_t mono_ns;
};
static struct clocks clock_a, clock_b;

static int64_t wall_of(void *arg)
{
    return ((struct clocks *)arg)->wall_ms;
}

static uint64_t mono_of(void *arg)
{
    return ((struct clocks *)arg)->mono_ns;
}

static struct gb_lease *new_store(struct clocks *clocks)
{
    struct gb_lease *store = NULL;
    const struct gb_dynamodb_lease_cfg cfg = {.reactor = driver.reactor,
                                              .client = driver.client,
                                              .table = table,
                                              .wall_ms = wall_of,
                                              .mono_ns = mono_of,
                                              .clock_arg = clocks};
    assert_int_equal(gb_dynamodb_lease_new(&cfg, &store).code, GB_OK);
    return store;
}

static void set_up(struct lease_backend *b)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    dynamodb_rig_clear(rig);
    dynamodb_rig_client(rig, "A", endpoint);
    dynamodb_rig_table(rig, "lease", table);
    dynamodb_driver_open(&driver, &(struct dynamodb_driver_cfg){
                                      .endpoint = endpoint, .attempt_timeout_ns = 1500 * GB_MS});
    b->driver = (struct store_driver){.loop = driver.loop, .reactor = driver.reactor};
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_CREATE_TABLE, table);
    gb_dynamodb_w_table(&call.w, gb_dynamodb_table_of(GB_DYNAMODB_LEASE));
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
    clock_a = (struct clocks){1000000, 1};
    clock_b = (struct clocks){1000000, 1};
    b->store = new_store(&clock_a);
}

static void reopen(struct lease_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    b->store = new_store(&clock_a);
}

static void tear_down(struct lease_backend *b)
{
    STORE_CLOSE(&b->driver, b->store);
    dynamodb_driver_close(&driver);
}

static struct lease_backend a = {
    .name = "leases on DynamoDB",
    .durable = true,
    .set_up = set_up,
    .reopen = reopen,
    .tear_down = tear_down,
};
static struct lease_backend b; /* a second process on the same table */

static int begin(void **state)
{
    (void)state;
    set_up(&a);
    b = a;
    b.store = new_store(&clock_b);
    return 0;
}

static int end(void **state)
{
    (void)state;
    STORE_CLOSE(&b.driver, b.store);
    tear_down(&a);
    return 0;
}

/* --- rows as they stand in the table --- */

static char row_text[4096];

/* The item as JSON, "" without one. */
static const char *row(void)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_GET_ITEM, table);
    gb_dynamodb_object(&call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call.w, "PK", "LEASE#s");
    gb_dynamodb_object_end(&call);
    gb_dynamodb_flag(&call, GB_DYNAMODB_CONSISTENT_READ);
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    size_t size = 0; /* without the blanks that one emulator sends */
    for (size_t i = 0; i < call.answer.item.size && size < sizeof row_text - 1; i++)
        if (call.answer.item.data[i] != ' ') row_text[size++] = (char)call.answer.item.data[i];
    row_text[size] = '\0';
    gb_dynamodb_call_deinit(&call);
    return row_text;
}

/* Attribute `name` as its JSON value, "" when it is absent. */
static const char *attribute(const char *name)
{
    static char value[256];
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(row(), key);
    if (at == NULL) return "";
    at += strlen(key);
    (void)snprintf(value, sizeof value, "%.*s", (int)(strcspn(at, "}") + 1), at);
    return value;
}

static int by_byte(const void *x, const void *y)
{
    return *(const char *)x - *(const char *)y;
}

/* Its bytes in order: an emulator gives the attributes in another one each time. */
static const char *row_bytes(void)
{
    (void)row();
    qsort(row_text, strlen(row_text), 1, by_byte);
    return row_text;
}

/* SET with values as DynamoDB's JSON, behind the store's back. */
static void plant(const char *update, const char *values)
{
    struct gb_dynamodb_call call = {0};
    gb_dynamodb_begin(&call, GB_DYNAMODB_UPDATE_ITEM, table);
    gb_dynamodb_object(&call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call.w, "PK", "LEASE#s");
    gb_dynamodb_object_end(&call);
    gb_dynamodb_text(&call, GB_DYNAMODB_UPDATE, update);
    if (values[0] != '\0') {
        gb_dynamodb_object(&call, GB_DYNAMODB_VALUES);
        gb_json_w_key(&call.w, ":v");
        gb_json_w_raw(&call.w, gb_bytes_c(values));
        gb_dynamodb_object_end(&call);
    }
    if (strchr(update, '#') != NULL) {
        const struct gb_dynamodb_name names[] = {{"#o", "owner"}, {"#v", "version"}, {"#t", "ttl"}};
        size_t first = strstr(update, "#o") != NULL ? 0 : strstr(update, "#v") != NULL ? 1 : 2;
        gb_dynamodb_names(&call, &names[first], 1);
    }
    assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
    gb_dynamodb_call_deinit(&call);
}

static void pass(struct clocks *clocks, int64_t ns)
{
    clocks->mono_ns += (uint64_t)ns;
}

#define TTL (6 * GB_SEC)

/* --- the checks --- */

static void check_06_2_what_is_written(void **state)
{
    (void)state;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    assert_string_equal(attribute("PK"), "{\"S\":\"LEASE#s\"}");
    assert_string_equal(attribute("owner"), "{\"S\":\"a#1\"}");
    assert_string_equal(attribute("version"), "{\"N\":\"1\"}");
    assert_string_equal(attribute("acquired_at"), "{\"N\":\"1000000\"}");
    assert_string_equal(attribute("renewed_at"), "{\"N\":\"1000000\"}");
    assert_string_equal(attribute("expires_at"), "{\"N\":\"1006000\"}");
    assert_null(strstr(row(), "takeover_observation"));
    assert_null(strstr(row(), "\"ttl\""));
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    assert_non_null(strstr(row(), "takeover_observation_generation"));
    plant("SET #t = :v", "{\"N\":\"5\"}");
    clock_a.wall_ms += 2000;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
    assert_string_equal(attribute("version"), "{\"N\":\"1\"}");
    assert_string_equal(attribute("acquired_at"), "{\"N\":\"1000000\"}");
    assert_string_equal(attribute("renewed_at"), "{\"N\":\"1002000\"}");
    assert_string_equal(attribute("expires_at"), "{\"N\":\"1008000\"}");
    assert_null(strstr(row(), "takeover_observation"));
    assert_null(strstr(row(), "\"ttl\""));
}

static void check_06_3_release_keeps_the_row(void **state)
{
    (void)state;
    uint64_t version = 0;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    plant("SET #t = :v", "{\"N\":\"5\"}");
    assert_int_equal(lease_release(&a, "s", "a#1", 1), GB_OK);
    assert_string_equal(attribute("owner"), "{\"S\":\"\"}");
    assert_string_equal(attribute("expires_at"), "{\"N\":\"0\"}");
    assert_string_equal(attribute("renewed_at"), "{\"N\":\"1000000\"}");
    assert_null(strstr(row(), "takeover_observation"));
    assert_null(strstr(row(), "\"ttl\""));
    assert_null(strstr(row(), "endpoints"));
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, &version, NULL), GB_OK);
    assert_int_equal(version, 2);
}

static void check_06_4_a_silent_owner(void **state)
{
    (void)state;
    uint64_t version = 0;
    struct gb_lease_holder seen = {0};
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    pass(&clock_b, 5 * GB_SEC);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, &seen), GB_ALREADY_EXISTS);
    assert_int_equal(seen.observed_ns, 0);
    assert_int_equal(seen.required_ns, TTL);
    pass(&clock_b, 5 * GB_SEC);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, &seen), GB_ALREADY_EXISTS);
    assert_int_equal(seen.observed_ns, 5 * GB_SEC);
    pass(&clock_b, 5 * GB_SEC);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, &version, &seen), GB_OK);
    assert_int_equal(version, 2);
    assert_string_equal(seen.owner, "a#1");
    assert_null(strstr(row(), "takeover_observation"));
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_STALE_FENCING_TOKEN);
    gb_lease_holder_deinit(&seen);
}

static void check_06_5_wall_clocks_are_not_compared(void **state)
{
    (void)state;
    static const int64_t off_ms[] = {3600000, -3600000};
    for (size_t i = 0; i < 2; i++) {
        uint64_t version = 0;
        clock_a.wall_ms = 10000000;
        assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, &version, NULL), GB_OK);
        clock_b.wall_ms = clock_a.wall_ms + off_ms[i];
        assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
        pass(&clock_b, TTL - 1);
        assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
        pass(&clock_b, 1);
        assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_OK);
        assert_int_equal(lease_release(&b, "s", "b#1", version + 1), GB_OK);
    }
}

static void check_06_7_a_replacement_inherits(void **state)
{
    (void)state;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    pass(&clock_b, 4 * GB_SEC);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    STORE_CLOSE(&b.driver, b.store); /* killed */
    clock_b.mono_ns = 77;
    b.store = new_store(&clock_b);
    assert_int_equal(lease_acquire(&b, "s", "b#2", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    pass(&clock_b, 2 * GB_SEC - 1);
    assert_int_equal(lease_acquire(&b, "s", "b#2", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    pass(&clock_b, 1);
    assert_int_equal(lease_acquire(&b, "s", "b#2", TTL, NULL, NULL), GB_OK);
}

/* b's next acquire, with its write of evidence held before the table. */
static void acquire_held_up(struct gb_lease_acquire *q)
{
    dynamodb_rig_rule(rig, "\"effect\": \"pass\", \"action\": \"UpdateItem\", \"hold\": "
                           "\"request\", \"contains\": \":gen\"");
    *q = (struct gb_lease_acquire){
        .lease_id = gb_bytes_c("s"), .owner = gb_bytes_c("b#1"), .ttl_ns = TTL};
    store_driver_expect(&b.driver);
    b.store->ops->acquire(b.store, q, store_driver_done, &b.driver);
    while (dynamodb_rig_held(rig, "") == 0) {
        struct gb_lease_current look = {.lease_id = gb_bytes_c("none")};
        store_driver_expect(&a.driver);
        a.store->ops->current(a.store, &look, store_driver_done, &a.driver);
        store_driver_run(&a.driver);
    }
}

/* Lets it go; how the acquire ended. */
static enum gb_code let_go(struct gb_lease_acquire *q)
{
    dynamodb_rig_release(rig, "");
    store_driver_run(&b.driver);
    dynamodb_rig_clear(rig);
    gb_lease_holder_deinit(&q->seen);
    return q->op.result.code;
}

/* Each write of evidence takes 2 s: they never count, neither for it nor for the next interval. */
static void check_06_8_slow_evidence_writes(void **state)
{
    (void)state;
    struct gb_lease_acquire q;
    struct gb_lease_holder seen = {0};
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    for (int64_t counted = 0; counted < 3; counted++) {
        acquire_held_up(&q);
        pass(&clock_b, 2 * GB_SEC);
        assert_int_equal(let_go(&q), GB_ALREADY_EXISTS);
        pass(&clock_b, 2 * GB_SEC - 1);
    }
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, &seen), GB_ALREADY_EXISTS);
    assert_int_equal(seen.observed_ns, 3 * (2 * GB_SEC - 1));
    pass(&clock_b, 3);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, &seen), GB_OK);
    gb_lease_holder_deinit(&seen);
}

/* 06 check 9: the renewal lands between the standby's read and its takeover. */
static void check_06_9_a_renewal_wins(void **state)
{
    (void)state;
    struct gb_lease_acquire q;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    pass(&clock_b, TTL);
    acquire_held_up(&q);
    clock_a.wall_ms += 1;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
    assert_int_equal(let_go(&q), GB_ALREADY_EXISTS);
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
    pass(&clock_b, TTL - 1); /* what was seen of the older row does not count */
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
}

/* A renewal's first copy is held up, the second is answered; the first arrives after the next
 * renewal, and the row is as it was. Neither observer takes the time between for unchanged. */
static void a_renewal_that_arrives_again(void **state)
{
    (void)state;
    struct clocks clock_c = {1000000, 1};
    struct lease_backend c = b;
    c.store = new_store(&clock_c);
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    dynamodb_rig_rule(rig, "\"effect\": \"pass\", \"action\": \"UpdateItem\", \"hold\": "
                           "\"request\"");
    clock_a.wall_ms = 1001000;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
    assert_int_equal(dynamodb_rig_held(rig, ""), 1);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    clock_a.wall_ms = 1005000;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
    assert_string_equal(attribute("renewed_at"), "{\"N\":\"1005000\"}");
    dynamodb_rig_release(rig, "");
    assert_string_equal(attribute("renewed_at"), "{\"N\":\"1001000\"}");
    assert_int_equal(lease_acquire(&c, "s", "c#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    pass(&clock_b, TTL);
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
    assert_string_equal(attribute("takeover_observation_elapsed_ns"), "{\"N\":\"0\"}");
    STORE_CLOSE(&c.driver, c.store);
}

/* 06 check 10, 05 check 27: each planted row, its verdict, and not a byte changed. */
static void check_06_10_corrupt_rows_stay(void **state)
{
    (void)state;
    static const struct {
        const char *update, *values;
    } rows[] = {
        {"SET takeover_observation_generation = :v", "{\"N\":\"1\"}"},
        {"SET takeover_observation_fingerprint = :v", "{\"S\":\"x\"}"},
        {"SET takeover_observation_elapsed_ns = :v", "{\"S\":\"1\"}"},
        {"SET renewed_at = :v", "{\"N\":\"0\"}"},
        {"SET renewed_at = :v", "{\"S\":\"5\"}"},
        {"SET renewed_at = :v", "{\"N\":\"9000000\"}"},
        {"SET expires_at = :v", "{\"N\":\"1.5\"}"},
        {"SET expires_at = :v", "{\"N\":\"9223372036854775807\"}"},
        {"SET #v = :v", "{\"N\":\"0\"}"},
        {"SET #v = :v", "{\"N\":\"18446744073709551615\"}"},
        {"SET #v = :v", "{\"N\":\"18446744073709551616\"}"},
        {"SET #o = :v", "{\"N\":\"5\"}"},
        {"SET #o = :v", "{\"S\":\"\"}"}, /* released, but it expires */
        {"REMOVE renewed_at", ""},
        {"REMOVE expires_at", ""},
        {"REMOVE acquired_at", ""},
        {"REMOVE #v", ""},
        {"REMOVE #o", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char before[4096];
        assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
        plant(rows[i].update, rows[i].values);
        (void)snprintf(before, sizeof before, "%s", row_bytes());
        for (unsigned poll = 0; poll < 3; poll++) {
            pass(&clock_b, 2 * TTL);
            enum gb_code code = lease_acquire(&b, "s", "b#1", TTL, NULL, NULL);
            if (code != GB_INVALID_CONFIG) fail_msg("row %zu: %s", i, gb_code_name(code));
            assert_non_null(strstr(lease_message(), "lease s: corrupt row"));
        }
        assert_int_equal(lease_current(&b, "s", NULL), GB_INVALID_CONFIG);
        assert_string_equal(row_bytes(), before);
        struct gb_dynamodb_call call = {0};
        gb_dynamodb_begin(&call, GB_DYNAMODB_DELETE_ITEM, table);
        gb_dynamodb_object(&call, GB_DYNAMODB_KEY);
        gb_dynamodb_w_s_c(&call.w, "PK", "LEASE#s");
        gb_dynamodb_object_end(&call);
        assert_int_equal(dynamodb_driver_run(&driver, &call), GB_OK);
        gb_dynamodb_call_deinit(&call);
    }
}

/* The request that is applied and never answered is recognised as the own one, whichever it is. */
static void lost_answers_are_recognised(void **state)
{
    (void)state;
    static const char *const effects[] = {"cut", "half", "silent", "internal", "throttle", "drop"};
    uint64_t version = 0;
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        char create[96], update[96];
        print_message("effect: %s\n", effects[i]);
        (void)snprintf(create, sizeof create, "\"effect\": \"%s\", \"action\": \"PutItem\"",
                       effects[i]);
        (void)snprintf(update, sizeof update, "\"effect\": \"%s\", \"action\": \"UpdateItem\"",
                       effects[i]);
        char id[8];
        (void)snprintf(id, sizeof id, "s%zu", i);
        dynamodb_rig_rule(rig, create);
        assert_int_equal(lease_acquire(&a, id, "a#1", TTL, &version, NULL), GB_OK);
        assert_int_equal(version, 1);
        dynamodb_rig_clear(rig);
        dynamodb_rig_rule(rig, update);
        assert_int_equal(lease_renew(&a, id, "a#1", 1, TTL), GB_OK);
        dynamodb_rig_clear(rig);
        dynamodb_rig_rule(rig, update);
        assert_int_equal(lease_release(&a, id, "a#1", 1), GB_OK);
        dynamodb_rig_clear(rig);
        dynamodb_rig_rule(rig, update);
        assert_int_equal(lease_acquire(&b, id, "b#1", TTL, &version, NULL), GB_OK);
        assert_int_equal(version, 2);
        dynamodb_rig_clear(rig);
        assert_int_equal(lease_renew(&b, id, "b#1", 2, TTL), GB_OK);
    }
}

/* A lost evidence write costs the interval, never adds one (06 §6.1). */
static void lost_evidence_starts_over(void **state)
{
    (void)state;
    static const char *const effects[] = {"cut", "internal", "throttle"};
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        char id[8], rule[128];
        struct gb_lease_holder seen = {0};
        (void)snprintf(id, sizeof id, "e%zu", i);
        (void)snprintf(rule, sizeof rule,
                       "\"effect\": \"%s\", \"action\": \"UpdateItem\", \"times\": 0", effects[i]);
        assert_int_equal(lease_acquire(&a, id, "a#1", TTL, NULL, NULL), GB_OK);
        assert_int_equal(lease_acquire(&b, id, "b#1", TTL, NULL, NULL), GB_ALREADY_EXISTS);
        pass(&clock_b, 4 * GB_SEC);
        dynamodb_rig_rule(rig, rule);
        assert_int_not_equal(lease_acquire(&b, id, "b#1", TTL, NULL, NULL), GB_OK);
        dynamodb_rig_clear(rig);
        pass(&clock_b, 4 * GB_SEC);
        assert_int_equal(lease_acquire(&b, id, "b#1", TTL, NULL, &seen), GB_ALREADY_EXISTS);
        assert_true(seen.observed_ns <= 4 * GB_SEC);
        gb_lease_holder_deinit(&seen);
    }
}

static void failed_reads_are_no_absence(void **state)
{
    (void)state;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    dynamodb_rig_rule(rig, "\"effect\": \"denied\", \"action\": \"GetItem\", \"times\": 0");
    assert_int_equal(lease_acquire(&b, "s", "b#1", TTL, NULL, NULL), GB_NOT_AUTHORIZED);
    assert_int_equal(lease_current(&a, "s", NULL), GB_NOT_AUTHORIZED);
    /* 06 §6.2: refused, and the reason can't be read */
    assert_int_equal(lease_renew(&a, "s", "a#1", 2, TTL), GB_STALE_FENCING_TOKEN);
    dynamodb_rig_clear(rig);
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
}

/* The wall-clock clause of renew (06 §6): a row that has run out is not revived. */
static void an_expired_row_is_not_renewed(void **state)
{
    (void)state;
    assert_int_equal(lease_acquire(&a, "s", "a#1", TTL, NULL, NULL), GB_OK);
    clock_a.wall_ms += 6001;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_STALE_FENCING_TOKEN);
    clock_a.wall_ms -= 1;
    assert_int_equal(lease_renew(&a, "s", "a#1", 1, TTL), GB_OK);
}

int main(void)
{
    rig = dynamodb_rig_new();
    if (rig == NULL) return DYNAMODB_RIG_SKIP;
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest own[] = {
        TEST(check_06_2_what_is_written),        TEST(check_06_3_release_keeps_the_row),
        TEST(check_06_4_a_silent_owner),         TEST(check_06_5_wall_clocks_are_not_compared),
        TEST(check_06_7_a_replacement_inherits), TEST(check_06_8_slow_evidence_writes),
        TEST(check_06_9_a_renewal_wins),         TEST(a_renewal_that_arrives_again),
        TEST(check_06_10_corrupt_rows_stay),     TEST(lost_answers_are_recognised),
        TEST(lost_evidence_starts_over),         TEST(failed_reads_are_no_absence),
        TEST(an_expired_row_is_not_renewed),
    };
    int failed = lease_contract_run(&a);
    failed += cmocka_run_group_tests_name("DynamoDB rows", own, NULL, NULL);
    dynamodb_rig_free(rig);
    return failed;
}
