#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "contract/outbox_dynamodb.h"

/* Records that are stored claimed and in no index (docs/decisions/0623): what they cost, that none
 * is lost whoever dies when, and that each rule of spec 05 §2 holds for them. A process that dies
 * is a store that nobody asks any more. */

enum { KB = 1024, BIG = 60 * KB, MANY = 40 };
#define ATTEMPT_NS (2 * GB_SEC)
enum { LONG = 12 };
#define CLAIM_NS (3 * GB_SEC)
#define S1 "SESSION#s1"
#define MINUTE_MS INT64_C(60000)

static struct fixture {
    struct dynamodb_rig *rig;
    struct outbox_dynamodb dynamodb[2];
    struct outbox_backend backend[2];
    bool two;
    struct gb_dynamodb_call call;
} f;

static struct outbox_backend *const first = &f.backend[0];
static struct outbox_backend *const second = &f.backend[1];

static int set_up_with(size_t direct_max)
{
    f.dynamodb[0] = (struct outbox_dynamodb){.rig = f.rig,
                                             .direct = true,
                                             .direct_max = direct_max,
                                             .through_proxy = true,
                                             .attempt_timeout_ns = ATTEMPT_NS};
    *first = (struct outbox_backend){.ctx = &f.dynamodb[0]};
    outbox_dynamodb_set_up(first, 0);
    f.two = false;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_with(0);
}

static int set_up_small(void **state)
{
    (void)state;
    return set_up_with(3);
}

static void open_second(void)
{
    *second = (struct outbox_backend){.ctx = &f.dynamodb[1]};
    outbox_dynamodb_share(second, first);
    f.two = true;
}

static int tear_down(void **state)
{
    (void)state;
    dynamodb_rig_clear(f.rig);
    gb_dynamodb_call_deinit(&f.call);
    f.call = (struct gb_dynamodb_call){0};
    if (f.two) STORE_CLOSE(&second->driver, second->store);
    outbox_dynamodb_tear_down(first);
    outbox_records_free();
    return 0;
}

static void pass(int64_t ms)
{
    first->driver.wall_ms += ms;
    if (f.two) second->driver.wall_ms += ms;
}

static struct outbox_spec spec_of(const char *envelope_id, const char *key)
{
    return (struct outbox_spec){
        .envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1", .key = key};
}

static void store(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = spec_of(envelope_id, NULL);
    assert_int_equal(outbox_store(b, &spec), GB_OK);
    pass(1);
}

static void store_keyed(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = spec_of(envelope_id, "K");
    assert_int_equal(outbox_store(b, &spec), GB_OK);
    pass(1);
}

/* A claim that leaves the partition empty and `owner` its holder. */
static void own(struct outbox_backend *b, const char *owner, uint64_t version)
{
    outbox_claim_is(b, S1, owner, version, 10, "");
}

/* --- what the table holds --- */

static struct gb_bytes row(const char *envelope_id)
{
    char sort_key[64];
    (void)snprintf(sort_key, sizeof sort_key, "OUTBOX#%s#b1", envelope_id);
    struct gb_bytes item = outbox_dynamodb_get(&f.dynamodb[0], &f.call, S1, sort_key);
    assert_true(item.size > 0);
    return item;
}

static bool has(const char *envelope_id, const char *what)
{
    struct gb_bytes item = row(envelope_id);
    for (size_t i = 0; i + strlen(what) <= item.size; i++) {
        if (memcmp(item.data + i, what, strlen(what)) == 0) return true;
    }
    return false;
}

/* Either in all of the usual layout, or in none of it. */
static bool is_direct(const char *envelope_id)
{
    bool direct = has(envelope_id, "\"rid\"");
    assert_int_equal(!direct, has(envelope_id, "\"claim_sort\""));
    assert_int_equal(!direct, has(envelope_id, "\"record_id\""));
    assert_int_equal(!direct, has(envelope_id, "\"envelope_json\""));
    assert_int_equal(direct, has(envelope_id, "\"env\""));
    assert_int_equal(direct, has(envelope_id, "\"body\""));
    return direct;
}

static struct gb_dynamodb_usage usage(void)
{
    return gb_dynamodb_usage_sum(f.dynamodb[0].client.client, NULL, GB_DYNAMODB_ACTIONS);
}

static enum gb_code settle(struct outbox_backend *b, enum gb_outbox_settle_kind kind,
                           const struct gb_outbox_batch *batch, size_t i, const char *owner,
                           uint64_t version)
{
    return outbox_settle(b, kind, S1, batch->records[i].id, owner, version);
}

/* --- the way of a record --- */

static void a_kilobyte_costs_four_write_units(void **state)
{
    static char payload[KB + 1];
    (void)state;
    memset(payload, '\x80', KB); /* no text: its base64 would not fit */
    struct outbox_spec spec = spec_of("3f2b8a1c-5d0e-4c57-9d1e-7a6b5c4d3e2f", NULL);
    spec.payload = payload;
    store(first, "first");
    outbox_claim_is(first, S1, "instance-1#0123456789abcdef", 1, 10, "first");
    own(first, "instance-1#0123456789abcdef", 1);
    struct gb_dynamodb_usage before = usage();
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_true(is_direct(spec.envelope_id));
    uint64_t calls = usage().calls;
    struct gb_outbox_batch *batch =
        outbox_claim(first, S1, "instance-1#0123456789abcdef", 1, 10, NULL);
    outbox_batch_is(batch, spec.envelope_id);
    assert_int_equal(usage().calls, calls); /* without a request */
    assert_true(gb_bytes_equal_c(batch->records[0].envelope->payload, payload));
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "instance-1#0123456789abcdef", 1),
                     GB_OK);
    uint64_t spent = usage().write_units - before.write_units;
    if (dynamodb_rig_is(f.rig, "dynoxide")) assert_int_equal(spent, 4000); /* moto can't count */
    assert_true(has(spec.envelope_id, "\"completed\""));
    assert_false(has(spec.envelope_id, "\"body\"")); /* what ended keeps no message */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "instance-1#0123456789abcdef", 1),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_store(first, &spec), GB_DUPLICATE_RECORD);
    gb_outbox_batch_free(batch);
}

static void only_a_swept_and_empty_partition_goes_this_way(void **state)
{
    (void)state;
    store(first, "A");
    assert_false(is_direct("A")); /* no claim yet */
    outbox_claim_is(first, S1, "o", 1, 1, "A");
    store(first, "B");
    assert_false(is_direct("B")); /* there may have been more than the one */
    outbox_claim_is(first, S1, "o", 1, 10, "B");
    store(first, "C");
    assert_true(is_direct("C"));
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    store(first, "D");
    assert_false(is_direct("D"));
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "o", 2); /* but the mark is 1 */
    store(first, "E");
    assert_false(is_direct("E"));
    outbox_claim_is(first, S1, "o", 2, 10, "A B C D E");
}

static void a_big_record_goes_the_ordinary_way(void **state)
{
    static char payload[BIG + 1];
    (void)state;
    own(first, "o", 1);
    memset(payload, '\x01', BIG); /* six bytes each, escaped */
    struct outbox_spec spec = spec_of("A", NULL);
    spec.payload = payload;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_false(is_direct("A"));
    outbox_claim_is(first, S1, "o", 1, 10, "A");
}

/* Three rows fill a page. */
static void store_long_partition(void)
{
    static char payload[BIG + 1];
    memset(payload, '\x01', BIG);
    for (size_t i = 0; i < LONG; i++) {
        char id[2] = {(char)('a' + i), '\0'};
        struct outbox_spec spec = spec_of(id, NULL);
        spec.payload = payload;
        assert_int_equal(outbox_store(first, &spec), GB_OK);
        pass(1);
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
    dynamodb_rig_rule(f.rig, rule);
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
    dynamodb_rig_rule(f.rig, all);
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
    store(first, id);
    return is_direct(id);
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
    for (int i = 0; dynamodb_rig_held(f.rig, "A") == 0; i++) {
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
    assert_int_equal(dynamodb_rig_held(f.rig, "A"), 1); /* that claim did not wait */
    dynamodb_rig_release(f.rig, "A");
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
    uint64_t arrived = dynamodb_rig_arrived(f.rig);
    outbox_dynamodb_reopen(first, 0);
    assert_int_equal(dynamodb_rig_arrived(f.rig), arrived); /* not asked again */
    dynamodb_rig_clear(f.rig);
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
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "o", 2);
    bool direct = false;
    for (int i = 0; i < 100 && !direct; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "Y%d", i);
        gb_outbox_batch_free(outbox_claim(first, S1, "o", 2, 100, NULL));
        store(first, id);
        direct = is_direct(id);
    }
    assert_true(direct); /* its own is through */
}

static void a_long_partition_is_swept_more_rarely(void **state)
{
    (void)state;
    store_long_partition();
    claim_all();
    goes_directly_soon();
    dynamodb_rig_rule(f.rig, "\"effect\": \"cut\", \"times\": 0");
    struct outbox_spec spec = spec_of("U", NULL);
    assert_int_not_equal(outbox_store(first, &spec), GB_OK);
    dynamodb_rig_clear(f.rig);
    assert_true(is_direct("U")); /* nobody knows; a sweep is due when a claim of it is stale */
    pass(2 * MINUTE_MS);
    for (int i = 0; i < 10; i++) own_all();
    assert_true(is_direct("U")); /* but the last one read several pages */
    pass(8 * MINUTE_MS);
    for (int i = 0; i < 100 && is_direct("U"); i++) own_all();
    assert_false(is_direct("U"));
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

static void released_records_come_again(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    store(first, "B");
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 1, NULL);
    outbox_batch_is(batch, "A");
    int64_t first_ms = batch->records[0].first_attempted_at_ms;
    assert_int_equal(first_ms, first->driver.wall_ms);
    pass(10);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "p", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    gb_outbox_batch_free(batch);
    assert_int_equal(outbox_stats(first, S1).pending, 2);
    assert_true(is_direct("A"));
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 2);
    assert_int_equal(batch->records[0].first_attempted_at_ms, first_ms);
    assert_int_equal(batch->records[1].replay_count, 1);
    /* Without authority it becomes a row that anybody sees. */
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    assert_false(is_direct("A"));
    assert_true(has("A", "\"pending\""));
    open_second();
    gb_outbox_batch_free(batch);
    batch = outbox_claim(second, S1, "two", 2, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 3);
    assert_int_equal(batch->records[0].first_attempted_at_ms, first_ms);
    gb_outbox_batch_free(batch);
}

static void counts_include_what_no_index_shows(void **state)
{
    (void)state;
    own(first, "o", 1);
    int64_t oldest_ms = first->driver.wall_ms;
    store(first, "A");
    store(first, "B");
    store(first, "C");
    struct gb_outbox_stats stats = outbox_stats(first, S1);
    assert_int_equal(stats.pending, 3);
    assert_int_equal(stats.oldest_pending_ms, oldest_ms);
    outbox_claim_is(first, S1, "o", 1, 1, "A");
    stats = outbox_stats(first, S1);
    assert_int_equal(stats.pending, 2);
    assert_int_equal(stats.claimed, 1);
    assert_int_equal(stats.oldest_pending_ms, oldest_ms + 1);
    assert_int_equal(outbox_depth(first, S1, 1), 1);
}

static void expiry_reaches_what_is_queued(void **state)
{
    (void)state;
    own(first, "o", 1);
    struct outbox_spec spec = spec_of("due", NULL);
    spec.expires_at_ms = 50;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    spec.envelope_id = "held";
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    spec.envelope_id = "later";
    spec.expires_at_ms = 100;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_true(is_direct("due"));
    uint64_t expired = 0;
    outbox_claim_is(first, S1, "o", 1, 1, "due");
    assert_int_equal(outbox_expire(first, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 1); /* "held": what is claimed does not expire */
    assert_true(has("held", "\"expired\""));
    outbox_claim_is(first, S1, "o", 1, 10, "later");
}

/* --- limits --- */

static void a_full_queue_goes_on_through_the_indexes(void **state)
{
    (void)state;
    own(first, "o", 1);
    static const char *const names[] = {"A", "B", "C", "D", "E"};
    for (size_t i = 0; i < 5; i++) {
        store(first, names[i]);
        assert_int_equal(is_direct(names[i]), i < 3);
    }
    outbox_claim_is(first, S1, "o", 1, 2, "A B"); /* older than all that is indexed */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "C D E");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, i, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    store(first, "F"); /* A and B are held still, that leaves room for one */
    store(first, "G");
    assert_true(is_direct("F"));
    assert_false(is_direct("G"));
    outbox_claim_is(first, S1, "o", 1, 10, "F G");
}

static void records_of_a_lost_partition_make_room(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    store(first, "B");
    store(first, "C");
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    outbox_claim_is(first, "SESSION#s2", "o", 7, 10, "");
    struct outbox_spec other = spec_of("X", NULL);
    other.session_id = "s2";
    assert_int_equal(outbox_store(first, &other), GB_OK);
    uint64_t calls = usage().calls;
    outbox_claim_is(first, "SESSION#s2", "o", 7, 10, "X");
    assert_int_equal(usage().calls, calls);
    outbox_claim_is(first, S1, "o", 2, 10, "A B C");
}

/* --- takeover --- */

static void a_successor_finds_every_record(void **state)
{
    struct gb_outbox_batch *held = NULL;
    char want[MANY * 8] = "";
    (void)state;
    own(first, "o", 1);
    for (size_t i = 0; i < MANY; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "e%02zu", i);
        store(first, name);
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s%s", i == 0 ? "" : " ",
                       name);
    }
    held = outbox_claim(first, S1, "o", 1, 5, NULL);
    assert_int_equal(held->count, 5);
    open_second();
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "two", 2, 100, NULL);
    outbox_batch_is(batch, want);
    assert_int_equal(batch->records[0].replay_count, 2); /* perhaps tried: counted as if */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, held, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, held, 1, "o", 1), GB_STALE_FENCING_TOKEN);
    for (size_t i = 0; i < batch->count; i++)
        assert_int_equal(settle(second, GB_OUTBOX_COMPLETE, batch, i, "two", 2), GB_OK);
    gb_outbox_batch_free(batch);
    gb_outbox_batch_free(held);
    own(second, "two", 2);
    assert_int_equal(outbox_stats(second, S1).claimed, 0);
}

/* A fenced-off owner may end what nobody has taken over (spec 05 §2.2). */
static void a_fenced_owner_ends_what_is_left_to_it(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    store(first, "B");
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 10, NULL);
    open_second();
    outbox_claim_is(second, S1, "two", 2, 1, "A");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, held, 1, "o", 1), GB_OK);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, held, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    outbox_claim_is(second, S1, "two", 2, 10, "");
    gb_outbox_batch_free(held);
}

/* Whoever has lost the partition hands out nothing more, although its memory is full. */
static void without_authority_the_table_decides(void **state)
{
    enum gb_code code = GB_OK;
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    open_second();
    outbox_claim_is(second, S1, "two", 2, 10, "A");
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(S1), .token = {gb_bytes_c("o"), 1}, .limit = 10};
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    store_driver_expect(&first->driver);
    f.dynamodb[0].inner->ops->claim(f.dynamodb[0].inner, &q, store_driver_done, &first->driver);
    store_driver_run(&first->driver);
    code = q.op.result.code;
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    assert_null(q.batch);
}

/* One that is wrong about its authority learns it within a second. */
static void a_confident_owner_is_fenced_as_well(void **state)
{
    enum gb_code code = GB_OK;
    (void)state;
    own(first, "o", 1);
    open_second();
    own(second, "two", 2);
    store(first, "A");
    assert_true(is_direct("A"));
    pass(1000);
    assert_null(outbox_claim(first, S1, "o", 1, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    store(first, "B");
    assert_false(is_direct("B"));
    outbox_claim_is(second, S1, "two", 2, 10, "B");
    pass(15 * MINUTE_MS);
    outbox_claim_is(second, S1, "two", 2, 10, "A B"); /* the usual sweep; B's claim is stale */
}

/* --- a crash, then the same version again (spec 05 §2.6) --- */

static void crash_before_the_hand_out(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    open_second();
    outbox_claim_is(second, S1, "p", 1, 10, "");
    pass(OUTBOX_STALE_MS);
    outbox_claim_is(second, S1, "p", 1, 10, "A");
}

static void crash_after_the_hand_out(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    store(first, "B");
    outbox_claim_is(first, S1, "o", 1, 1, "A");
    open_second();
    outbox_claim_is(second, S1, "p", 1, 10, "");
    assert_false(is_direct("A"));
    assert_true(has("A", "\"claimed\""));
    pass(OUTBOX_STALE_MS + 1);
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "p", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 2);
    gb_outbox_batch_free(batch);
}

static void own_stale_hand_outs_come_again(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    pass(10);
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 10, NULL);
    pass(OUTBOX_STALE_MS); /* of the put: more; of the hand-out: not yet */
    outbox_claim_is(first, S1, "o", 1, 10, "");
    pass(1);
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    assert_int_equal(batch->records[0].replay_count, 2);
    assert_int_equal(batch->records[0].first_attempted_at_ms,
                     held->records[0].first_attempted_at_ms);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    gb_outbox_batch_free(held);
}

static void what_waits_long_is_not_stale(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    pass(20 * MINUTE_MS); /* a sweep comes by */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    assert_int_equal(batch->records[0].replay_count, 1);
    assert_true(is_direct("A"));
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
}

/* A clean end leaves rows of the usual layout, tried as often as they were. */
static void close_brings_all_into_the_indexes(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    store(first, "B");
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 1, NULL);
    outbox_dynamodb_reopen(first, 0);
    assert_false(is_direct("A"));
    assert_false(is_direct("B"));
    struct gb_outbox_stats stats = outbox_stats(first, S1);
    assert_int_equal(stats.pending, 1);
    assert_int_equal(stats.claimed, 1);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, held, 0, "o", 1), GB_OK);
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 2);
    assert_int_equal(batch->records[1].replay_count, 1);
    gb_outbox_batch_free(batch);
    gb_outbox_batch_free(held);
}

/* --- authority lost between the put and its answer --- */

static enum gb_code store_and_lose(const char *envelope_id, const char *rule)
{
    struct outbox_spec spec = spec_of(envelope_id, NULL);
    struct gb_outbox_record record = outbox_record(&spec);
    struct gb_outbox_persist q = {.records = &record, .count = 1};
    store_driver_expect(&first->driver);
    first->store->ops->persist(first->store, &q, store_driver_done, &first->driver);
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    if (rule != NULL) dynamodb_rig_rule(f.rig, rule);
    store_driver_run(&first->driver);
    assert_int_equal(q.stored, q.op.result.code == GB_OK);
    return q.op.result.code;
}

static void authority_lost_during_a_put(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A"); /* the block of numbers is there: the next put goes out at once */
    assert_int_equal(store_and_lose("B", NULL), GB_OK);
    assert_true(is_direct("A"));
    assert_false(is_direct("B"));
    assert_true(has("B", "\"pending\""));
    open_second();
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "two", 2, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[1].replay_count, 1); /* nobody had it before */
    gb_outbox_batch_free(batch);
}

static void authority_lost_and_no_way_to_the_indexes(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    enum gb_code code =
        store_and_lose("B", "\"effect\": \"internal\", \"action\": \"UpdateItem\", \"times\": 0");
    assert_int_equal(code, GB_UNAVAILABLE); /* so the source keeps it */
    assert_true(is_direct("B"));
    dynamodb_rig_clear(f.rig);
    struct outbox_spec again = spec_of("B", NULL);
    open_second(); /* it comes again, elsewhere */
    assert_int_equal(outbox_store(second, &again), GB_DUPLICATE_RECORD);
    assert_false(is_direct("B"));
    outbox_claim_is(second, S1, "two", 2, 10, "A B");
}

/* --- puts whose answer got lost --- */

static void a_put_without_answer_is_recognised(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    dynamodb_rig_rule(f.rig, "\"effect\": \"cut\", \"action\": \"PutItem\"");
    store(first, "B"); /* the second attempt finds the first */
    assert_true(is_direct("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "A B");
}

static void a_put_that_stays_unknown_is_found(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    outbox_claim_is(first, S1, "o", 1, 10, "A");
    dynamodb_rig_rule(f.rig, "\"effect\": \"cut\", \"action\": \"PutItem\"");
    dynamodb_rig_rule(f.rig, "\"effect\": \"internal\", \"action\": \"PutItem\", \"times\": 0");
    dynamodb_rig_rule(f.rig, "\"effect\": \"internal\", \"action\": \"GetItem\", \"times\": 0");
    struct outbox_spec lost = spec_of("B", NULL);
    assert_int_equal(outbox_store(first, &lost), GB_UNAVAILABLE);
    dynamodb_rig_clear(f.rig);
    assert_true(is_direct("B"));
    outbox_claim_is(first, S1, "o", 1, 10, ""); /* nobody knows of it, */
    pass(OUTBOX_STALE_MS + 1);
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B"); /* but a sweep is due, and A's claim is stale as well */
    gb_outbox_batch_free(batch);
}

static void the_same_message_twice_at_once(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    struct outbox_spec spec = spec_of("B", NULL);
    struct gb_outbox_record twice[2] = {outbox_record(&spec), outbox_record(&spec)};
    size_t stored = 0;
    assert_int_equal(outbox_persist(first, twice, 2, &stored), GB_OK);
    assert_int_equal(stored, 1);
    assert_true(is_direct("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "A B");
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(outbox_persist(first, twice, 2, &stored), GB_DUPLICATE_RECORD);
    assert_true(is_direct("B"));
}

/* --- two processes on one partition --- */

static void duplicate_of_a_stray(void **state)
{
    (void)state;
    own(first, "o", 1);
    store(first, "A");
    open_second();
    struct outbox_spec again = spec_of("A", NULL);
    assert_int_equal(outbox_store(second, &again), GB_DUPLICATE_RECORD);
    assert_false(is_direct("A"));
    assert_true(has("A", "\"claimed\"")); /* its owner may be at work on it */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(second, S1, "two", 2, 10, "");
}

static void records_of_others_are_seen_soon(void **state)
{
    (void)state;
    own(first, "o", 1);
    pass(1000);
    own(first, "o", 1); /* looked just now */
    open_second();
    store(second, "A");
    store(first, "B");
    assert_true(is_direct("B"));
    outbox_claim_is(first, S1, "o", 1, 1, "B");
    store(first, "C");
    pass(1000);
    outbox_claim_is(first, S1, "o", 1, 10, "A C");
    assert_true(has("C", "\"claimed\""));
}

/* --- ordering keys --- */

static void keys_wait_for_a_late_sweep(void **state)
{
    (void)state;
    own(first, "o", 1);
    store_keyed(first, "A");
    assert_false(is_direct("A")); /* a former owner's put may still be under way */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    pass(MINUTE_MS / 2);
    own(first, "o", 1);
    store_keyed(first, "B");
    pass(MINUTE_MS / 2 + 1);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "B");
    store_keyed(first, "C");
    assert_true(is_direct("C")); /* that claim saw all, and what it took is known to be held: */
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "B C");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 1, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    pass(MINUTE_MS);
    own(first, "o", 1);
    store_keyed(first, "D");
    assert_true(is_direct("D"));
    outbox_claim_is(first, S1, "o", 1, 10, "D");
}

static void own_keyed(void)
{
    own(first, "o", 1);
    pass(20 * MINUTE_MS);
    own(first, "o", 1);
}

static void head_of_line_in_memory(void **state)
{
    (void)state;
    own_keyed();
    store_keyed(first, "A");
    store_keyed(first, "B");
    store(first, "C");
    assert_true(is_direct("A"));
    assert_true(is_direct("B"));
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 1, NULL);
    outbox_batch_is(batch, "A");
    outbox_claim_is(first, S1, "o", 1, 10, "C");
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 1, "o", 1), GB_OK);
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(first, S1, "o", 1, 10, "B");
}

/* A held record of the key in front, whatever way the younger one went. */
static void head_of_line_across_both_ways(void **state)
{
    (void)state;
    own_keyed();
    store_keyed(first, "A");
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    outbox_dynamodb_hold(&f.dynamodb[0], S1, "", 0);
    store_keyed(first, "B");
    assert_false(is_direct("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "");
    store_keyed(first, "C");
    assert_false(is_direct("C")); /* B is in the indexes */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(first, S1, "o", 1, 10, "B C");
}

static void keys_of_a_binding_stay_in_the_indexes(void **state)
{
    (void)state;
    struct outbox_spec spec = {.envelope_id = "A", .binding_id = "b1", .key = "K"};
    outbox_claim_is(first, "BINDING#b1", "o", 1, 10, "");
    pass(20 * MINUTE_MS);
    outbox_claim_is(first, "BINDING#b1", "o", 1, 10, "");
    assert_int_equal(outbox_store(first, &spec), GB_OK); /* other processes bring some, too */
    struct gb_bytes item =
        outbox_dynamodb_get(&f.dynamodb[0], &f.call, "BINDING#b1", "OUTBOX#A#b1");
    assert_true(item.size > 0);
    assert_int_equal(outbox_stats(first, "BINDING#b1").pending, 1);
    uint64_t calls = usage().calls;
    outbox_claim_is(first, "BINDING#b1", "o", 1, 10, "A");
    assert_true(usage().calls > calls);
}

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define CHECK_SMALL(name) cmocka_unit_test_setup_teardown(name, set_up_small, tear_down)

int main(void)
{
    f.rig = dynamodb_rig_new();
    if (f.rig == NULL) return DYNAMODB_RIG_SKIP;
    gb_log_set_sink(quiet, NULL);
    const struct CMUnitTest tests[] = {
        CHECK(a_kilobyte_costs_four_write_units),
        CHECK(only_a_swept_and_empty_partition_goes_this_way),
        CHECK(a_big_record_goes_the_ordinary_way),
        CHECK(a_long_sweep_goes_on_beside_the_claims),
        CHECK(a_sweep_that_broke_off_goes_on),
        CHECK(a_close_waits_for_no_page),
        CHECK(another_owner_ends_the_sweep),
        CHECK(a_long_partition_is_swept_more_rarely),
        CHECK(a_mark_is_sought_by_several_claims),
        CHECK(released_records_come_again),
        CHECK(counts_include_what_no_index_shows),
        CHECK(expiry_reaches_what_is_queued),
        CHECK_SMALL(a_full_queue_goes_on_through_the_indexes),
        CHECK_SMALL(records_of_a_lost_partition_make_room),
        CHECK(a_successor_finds_every_record),
        CHECK(a_fenced_owner_ends_what_is_left_to_it),
        CHECK(without_authority_the_table_decides),
        CHECK(a_confident_owner_is_fenced_as_well),
        CHECK(crash_before_the_hand_out),
        CHECK(crash_after_the_hand_out),
        CHECK(own_stale_hand_outs_come_again),
        CHECK(what_waits_long_is_not_stale),
        CHECK(close_brings_all_into_the_indexes),
        CHECK(authority_lost_during_a_put),
        CHECK(authority_lost_and_no_way_to_the_indexes),
        CHECK(a_put_without_answer_is_recognised),
        CHECK(a_put_that_stays_unknown_is_found),
        CHECK(the_same_message_twice_at_once),
        CHECK(duplicate_of_a_stray),
        CHECK(records_of_others_are_seen_soon),
        CHECK(keys_wait_for_a_late_sweep),
        CHECK(head_of_line_in_memory),
        CHECK(head_of_line_across_both_ways),
        CHECK(keys_of_a_binding_stay_in_the_indexes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dynamodb_rig_free(f.rig);
    return failed;
}
