#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "contract/direct_dynamodb.h"

/* Long reads of a partition: the sweep for rows that nobody knows, and the search for a mark
 * (docs/decisions/0623). */

enum { LONG = 12, BIG = 60 * 1024 };
#define CLAIM_NS (3 * GB_SEC)
#define S1 DIRECT_S1
#define MINUTE_MS INT64_C(60000)

static struct outbox_backend *const first = &direct_bench.backend[0];

/* Three rows fill a page. */
static void store_long_partition(void)
{
    static char payload[BIG + 1];
    memset(payload, '\x01', BIG);
    for (size_t i = 0; i < LONG; i++) {
        char id[2] = {(char)('a' + i), '\0'};
        struct outbox_spec spec = direct_spec(id, NULL);
        spec.payload = payload;
        assert_int_equal(outbox_store(first, &spec), GB_OK);
        direct_pass(1);
    }
}

/* A second of a claim's three. */
static void slow_down(const char *contains)
{
    char rule[160];
    (void)snprintf(rule, sizeof rule,
                   "\"effect\": \"pass\", \"action\": \"Query\", \"contains\": \"%s\", "
                   "\"times\": 0, \"delay_ms\": 1000",
                   contains);
    dynamodb_rig_rule(direct_bench.rig, rule);
}

static struct gb_outbox_batch *claim_in_time(enum gb_code *code)
{
    const struct gb_token token = {gb_bytes_c("o"), 1};
    return outbox_claim_within(first, S1, &token, 20, CLAIM_NS, code);
}

/* What the second page of a sweep meets. */
static void second_page(const char *rule)
{
    char all[192];
    (void)snprintf(all, sizeof all,
                   "\"action\": \"Query\", \"contains\": \"attribute_exists(rid)\", \"skip\": 1, "
                   "%s",
                   rule);
    dynamodb_rig_rule(direct_bench.rig, all);
}

static void claim_all(void)
{
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 20, NULL);
    outbox_batch_is(batch, "a b c d e f g h i j k l");
    gb_outbox_batch_free(batch);
}

static void own_all(void)
{
    gb_outbox_batch_free(outbox_claim(first, S1, "o", 1, 100, NULL));
}

/* Whether records go directly, which they do not while rows may be there that nobody knows. */
static bool goes_directly(void)
{
    static unsigned count;
    char id[16];
    own_all();
    (void)snprintf(id, sizeof id, "X%u", count++);
    direct_store(first, id);
    return direct_is(id);
}

static void goes_directly_soon(void)
{
    for (int i = 0; i < 100; i++) {
        if (goes_directly()) return;
    }
    fail_msg("the sweep never ends");
}

static void wait_held(void)
{
    for (int i = 0; dynamodb_rig_held(direct_bench.rig, "A") == 0; i++) {
        assert_true(i < 100);
        (void)outbox_stats(first, S1);
    }
}

static void a_long_sweep_goes_on_beside_the_claims(void **state)
{
    (void)state;
    store_long_partition();
    second_page("\"times\": 1, \"hold\": \"request\"");
    claim_all(); /* by what the indexes show */
    wait_held();
    assert_false(goes_directly()); /* a former owner's row may be behind the first page */
    assert_int_equal(dynamodb_rig_held(direct_bench.rig, "A"), 1); /* that claim did not wait */
    dynamodb_rig_release(direct_bench.rig, "A");
    goes_directly_soon();
}

static void a_sweep_that_broke_off_goes_on(void **state)
{
    (void)state;
    store_long_partition();
    second_page("\"times\": 6, \"effect\": \"internal\"");
    claim_all();
    goes_directly_soon();
}

/* A service that does not answer must not keep a shutdown waiting. */
static void a_close_waits_for_no_page(void **state)
{
    (void)state;
    store_long_partition();
    second_page("\"times\": 0, \"hold\": \"request\"");
    claim_all();
    wait_held();
    uint64_t arrived = dynamodb_rig_arrived(direct_bench.rig);
    outbox_dynamodb_reopen(first, 0);
    assert_int_equal(dynamodb_rig_arrived(direct_bench.rig), arrived); /* not asked again */
    dynamodb_rig_clear(direct_bench.rig);
    goes_directly_soon();
}

static void another_owner_ends_the_sweep(void **state)
{
    (void)state;
    store_long_partition();
    second_page("\"times\": 1, \"hold\": \"request\"");
    claim_all();
    wait_held();
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 2, 20, NULL);
    outbox_batch_is(batch, "a b c d e f g h i j k l"); /* a higher version takes them */
    gb_outbox_batch_free(batch);
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "o", 2);
    bool direct = false;
    for (int i = 0; i < 100 && !direct; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "Y%d", i);
        gb_outbox_batch_free(outbox_claim(first, S1, "o", 2, 100, NULL));
        direct_store(first, id);
        direct = direct_is(id);
    }
    assert_true(direct); /* its own is through */
}

static void a_long_partition_is_swept_more_rarely(void **state)
{
    (void)state;
    store_long_partition();
    claim_all();
    goes_directly_soon();
    dynamodb_rig_rule(direct_bench.rig, "\"effect\": \"cut\", \"times\": 0");
    struct outbox_spec spec = direct_spec("U", NULL);
    assert_int_not_equal(outbox_store(first, &spec), GB_OK);
    dynamodb_rig_clear(direct_bench.rig);
    assert_true(direct_is("U")); /* nobody knows; a sweep is due when a claim of it is stale */
    direct_pass(2 * MINUTE_MS);
    for (int i = 0; i < 10; i++) own_all();
    assert_true(direct_is("U")); /* but the last one read several pages */
    direct_pass(8 * MINUTE_MS);
    for (int i = 0; i < 100 && direct_is("U"); i++) own_all();
    assert_false(direct_is("U"));
}

static void a_mark_is_sought_by_several_claims(void **state)
{
    enum gb_code code = GB_OK;
    (void)state;
    store_long_partition();
    slow_down("ProjectionExpression");
    assert_null(claim_in_time(&code)); /* there is no mark yet */
    assert_int_equal(code, GB_TIMEOUT);
    size_t claimed = 0;
    for (int i = 0; i < 10 && claimed < LONG; i++) {
        struct gb_outbox_batch *batch = claim_in_time(&code);
        claimed += batch == NULL ? 0 : batch->count;
        gb_outbox_batch_free(batch);
    }
    assert_int_equal(claimed, LONG);
}

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, direct_set_up, direct_tear_down)

int main(void)
{
    direct_bench.rig = dynamodb_rig_new();
    if (direct_bench.rig == NULL) return DYNAMODB_RIG_SKIP;
    gb_log_set_sink(quiet, NULL);
    const struct CMUnitTest tests[] = {
        CHECK(a_long_sweep_goes_on_beside_the_claims),
        CHECK(a_sweep_that_broke_off_goes_on),
        CHECK(a_close_waits_for_no_page),
        CHECK(another_owner_ends_the_sweep),
        CHECK(a_long_partition_is_swept_more_rarely),
        CHECK(a_mark_is_sought_by_several_claims),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(direct_bench.rig);
    return failed;
}
