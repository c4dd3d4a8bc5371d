#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "contract/direct_dynamodb.h"

/* Records that are stored claimed and in no index (docs/decisions/0623): what they cost, that none
 * is lost whoever dies when, and that each rule of spec 05 §2 holds for them. A process that dies
 * is a store that nobody asks any more. */

enum { KB = 1024, BIG = 60 * KB, MANY = 40 };
#define S1 DIRECT_S1
#define MINUTE_MS INT64_C(60000)

static struct outbox_backend *const first = &direct_bench.backend[0];
static struct outbox_backend *const second = &direct_bench.backend[1];

static void store_keyed(struct outbox_backend *b, const char *envelope_id)
{
    struct outbox_spec spec = direct_spec(envelope_id, "K");
    assert_int_equal(outbox_store(b, &spec), GB_OK);
    direct_pass(1);
}

static struct gb_dynamodb_usage usage(void)
{
    return gb_dynamodb_usage_sum(direct_bench.dynamodb[0].client.client, NULL, GB_DYNAMODB_ACTIONS);
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
    struct outbox_spec spec = direct_spec("3f2b8a1c-5d0e-4c57-9d1e-7a6b5c4d3e2f", NULL);
    spec.payload = payload;
    direct_store(first, "first");
    outbox_claim_is(first, S1, "instance-1#0123456789abcdef", 1, 10, "first");
    direct_own(first, "instance-1#0123456789abcdef", 1);
    struct gb_dynamodb_usage before = usage();
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_true(direct_is(spec.envelope_id));
    uint64_t calls = usage().calls;
    struct gb_outbox_batch *batch =
        outbox_claim(first, S1, "instance-1#0123456789abcdef", 1, 10, NULL);
    outbox_batch_is(batch, spec.envelope_id);
    assert_int_equal(usage().calls, calls); /* without a request */
    assert_true(gb_bytes_equal_c(batch->records[0].envelope->payload, payload));
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "instance-1#0123456789abcdef", 1),
                     GB_OK);
    uint64_t spent = usage().write_units - before.write_units;
    if (dynamodb_rig_is(direct_bench.rig, "dynoxide"))
        assert_int_equal(spent, 4000); /* moto can't count */
    assert_true(direct_has(spec.envelope_id, "\"completed\""));
    assert_false(direct_has(spec.envelope_id, "\"body\"")); /* what ended keeps no message */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "instance-1#0123456789abcdef", 1),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_store(first, &spec), GB_DUPLICATE_RECORD);
    gb_outbox_batch_free(batch);
}

static void only_a_swept_and_empty_partition_goes_this_way(void **state)
{
    (void)state;
    direct_store(first, "A");
    assert_false(direct_is("A")); /* no claim yet */
    outbox_claim_is(first, S1, "o", 1, 1, "A");
    direct_store(first, "B");
    assert_false(direct_is("B")); /* there may have been more than the one */
    outbox_claim_is(first, S1, "o", 1, 10, "B");
    direct_store(first, "C");
    assert_true(direct_is("C"));
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    direct_store(first, "D");
    assert_false(direct_is("D"));
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "o", 2); /* but the mark is 1 */
    direct_store(first, "E");
    assert_false(direct_is("E"));
    outbox_claim_is(first, S1, "o", 2, 10, "A B C D E");
}

static void a_big_record_goes_the_ordinary_way(void **state)
{
    static char payload[BIG + 1];
    (void)state;
    direct_own(first, "o", 1);
    memset(payload, '\x01', BIG); /* six bytes each, escaped */
    struct outbox_spec spec = direct_spec("A", NULL);
    spec.payload = payload;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_false(direct_is("A"));
    outbox_claim_is(first, S1, "o", 1, 10, "A");
}

static void released_records_come_again(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_store(first, "B");
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 1, NULL);
    outbox_batch_is(batch, "A");
    int64_t first_ms = batch->records[0].first_attempted_at_ms;
    assert_int_equal(first_ms, first->driver.wall_ms);
    direct_pass(10);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "p", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    gb_outbox_batch_free(batch);
    assert_int_equal(outbox_stats(first, S1).pending, 2);
    assert_true(direct_is("A"));
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 2);
    assert_int_equal(batch->records[0].first_attempted_at_ms, first_ms);
    assert_int_equal(batch->records[1].replay_count, 1);
    /* Without authority it becomes a row that anybody sees. */
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    assert_false(direct_is("A"));
    assert_true(direct_has("A", "\"pending\""));
    direct_open_second();
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
    direct_own(first, "o", 1);
    int64_t oldest_ms = first->driver.wall_ms;
    direct_store(first, "A");
    direct_store(first, "B");
    direct_store(first, "C");
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
    direct_own(first, "o", 1);
    struct outbox_spec spec = direct_spec("due", NULL);
    spec.expires_at_ms = 50;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    spec.envelope_id = "held";
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    spec.envelope_id = "later";
    spec.expires_at_ms = 100;
    assert_int_equal(outbox_store(first, &spec), GB_OK);
    assert_true(direct_is("due"));
    uint64_t expired = 0;
    outbox_claim_is(first, S1, "o", 1, 1, "due");
    assert_int_equal(outbox_expire(first, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 1); /* "held": what is claimed does not expire */
    assert_true(direct_has("held", "\"expired\""));
    outbox_claim_is(first, S1, "o", 1, 10, "later");
}

/* --- limits --- */

static void a_full_queue_goes_on_through_the_indexes(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    static const char *const names[] = {"A", "B", "C", "D", "E"};
    for (size_t i = 0; i < 5; i++) {
        direct_store(first, names[i]);
        assert_int_equal(direct_is(names[i]), i < 3);
    }
    outbox_claim_is(first, S1, "o", 1, 2, "A B"); /* older than all that is indexed */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "C D E");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, i, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    direct_store(first, "F"); /* A and B are held still, that leaves room for one */
    direct_store(first, "G");
    assert_true(direct_is("F"));
    assert_false(direct_is("G"));
    outbox_claim_is(first, S1, "o", 1, 10, "F G");
}

static void records_of_a_lost_partition_make_room(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_store(first, "B");
    direct_store(first, "C");
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    outbox_claim_is(first, "SESSION#s2", "o", 7, 10, "");
    struct outbox_spec other = direct_spec("X", NULL);
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
    direct_own(first, "o", 1);
    for (size_t i = 0; i < MANY; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "e%02zu", i);
        direct_store(first, name);
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s%s", i == 0 ? "" : " ",
                       name);
    }
    held = outbox_claim(first, S1, "o", 1, 5, NULL);
    assert_int_equal(held->count, 5);
    direct_open_second();
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "two", 2, 100, NULL);
    outbox_batch_is(batch, want);
    assert_int_equal(batch->records[0].replay_count, 2); /* perhaps tried: counted as if */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, held, 0, "o", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, held, 1, "o", 1), GB_STALE_FENCING_TOKEN);
    for (size_t i = 0; i < batch->count; i++)
        assert_int_equal(settle(second, GB_OUTBOX_COMPLETE, batch, i, "two", 2), GB_OK);
    gb_outbox_batch_free(batch);
    gb_outbox_batch_free(held);
    direct_own(second, "two", 2);
    assert_int_equal(outbox_stats(second, S1).claimed, 0);
}

/* A fenced-off owner may end what nobody has taken over (spec 05 §2.2). */
static void a_fenced_owner_ends_what_is_left_to_it(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_store(first, "B");
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 10, NULL);
    direct_open_second();
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
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_open_second();
    outbox_claim_is(second, S1, "two", 2, 10, "A");
    struct gb_outbox_claim q = {
        .partition = gb_bytes_c(S1), .token = {gb_bytes_c("o"), 1}, .limit = 10};
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    store_driver_expect(&first->driver);
    direct_bench.dynamodb[0].inner->ops->claim(direct_bench.dynamodb[0].inner, &q,
                                               store_driver_done, &first->driver);
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
    direct_own(first, "o", 1);
    direct_open_second();
    direct_own(second, "two", 2);
    direct_store(first, "A");
    assert_true(direct_is("A"));
    direct_pass(1000);
    assert_null(outbox_claim(first, S1, "o", 1, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    direct_store(first, "B");
    assert_false(direct_is("B"));
    outbox_claim_is(second, S1, "two", 2, 10, "B");
    direct_pass(15 * MINUTE_MS);
    outbox_claim_is(second, S1, "two", 2, 10, "A B"); /* the usual sweep; B's claim is stale */
}

/* --- a crash, then the same version again (spec 05 §2.6) --- */

static void crash_before_the_hand_out(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_open_second();
    outbox_claim_is(second, S1, "p", 1, 10, "");
    direct_pass(OUTBOX_STALE_MS);
    outbox_claim_is(second, S1, "p", 1, 10, "A");
}

static void crash_after_the_hand_out(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_store(first, "B");
    outbox_claim_is(first, S1, "o", 1, 1, "A");
    direct_open_second();
    outbox_claim_is(second, S1, "p", 1, 10, "");
    assert_false(direct_is("A"));
    assert_true(direct_has("A", "\"claimed\""));
    direct_pass(OUTBOX_STALE_MS + 1);
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "p", 1, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[0].replay_count, 2);
    gb_outbox_batch_free(batch);
}

static void own_stale_hand_outs_come_again(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_pass(10);
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 10, NULL);
    direct_pass(OUTBOX_STALE_MS); /* of the put: more; of the hand-out: not yet */
    outbox_claim_is(first, S1, "o", 1, 10, "");
    direct_pass(1);
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
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_pass(20 * MINUTE_MS); /* a sweep comes by */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    assert_int_equal(batch->records[0].replay_count, 1);
    assert_true(direct_is("A"));
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
}

/* A clean end leaves rows of the usual layout, tried as often as they were. */
static void close_brings_all_into_the_indexes(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_store(first, "B");
    struct gb_outbox_batch *held = outbox_claim(first, S1, "o", 1, 1, NULL);
    outbox_dynamodb_reopen(first, 0);
    assert_false(direct_is("A"));
    assert_false(direct_is("B"));
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
    struct outbox_spec spec = direct_spec(envelope_id, NULL);
    struct gb_outbox_record record = outbox_record(&spec);
    struct gb_outbox_persist q = {.records = &record, .count = 1};
    store_driver_expect(&first->driver);
    first->store->ops->persist(first->store, &q, store_driver_done, &first->driver);
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    if (rule != NULL) dynamodb_rig_rule(direct_bench.rig, rule);
    store_driver_run(&first->driver);
    assert_int_equal(q.stored, q.op.result.code == GB_OK);
    return q.op.result.code;
}

static void authority_lost_during_a_put(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A"); /* the block of numbers is there: the next put goes out at once */
    assert_int_equal(store_and_lose("B", NULL), GB_OK);
    assert_true(direct_is("A"));
    assert_false(direct_is("B"));
    assert_true(direct_has("B", "\"pending\""));
    direct_open_second();
    struct gb_outbox_batch *batch = outbox_claim(second, S1, "two", 2, 10, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(batch->records[1].replay_count, 1); /* nobody had it before */
    gb_outbox_batch_free(batch);
}

static void authority_lost_and_no_way_to_the_indexes(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    enum gb_code code =
        store_and_lose("B", "\"effect\": \"internal\", \"action\": \"UpdateItem\", \"times\": 0");
    assert_int_equal(code, GB_UNAVAILABLE); /* so the source keeps it */
    assert_true(direct_is("B"));
    dynamodb_rig_clear(direct_bench.rig);
    struct outbox_spec again = direct_spec("B", NULL);
    direct_open_second(); /* it comes again, elsewhere */
    assert_int_equal(outbox_store(second, &again), GB_DUPLICATE_RECORD);
    assert_false(direct_is("B"));
    outbox_claim_is(second, S1, "two", 2, 10, "A B");
}

/* --- puts whose answer got lost --- */

static void a_put_without_answer_is_recognised(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    dynamodb_rig_rule(direct_bench.rig, "\"effect\": \"cut\", \"action\": \"PutItem\"");
    direct_store(first, "B"); /* the second attempt finds the first */
    assert_true(direct_is("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "A B");
}

static void a_put_that_stays_unknown_is_found(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    outbox_claim_is(first, S1, "o", 1, 10, "A");
    dynamodb_rig_rule(direct_bench.rig, "\"effect\": \"cut\", \"action\": \"PutItem\"");
    dynamodb_rig_rule(direct_bench.rig,
                      "\"effect\": \"internal\", \"action\": \"PutItem\", \"times\": 0");
    dynamodb_rig_rule(direct_bench.rig,
                      "\"effect\": \"internal\", \"action\": \"GetItem\", \"times\": 0");
    struct outbox_spec lost = direct_spec("B", NULL);
    assert_int_equal(outbox_store(first, &lost), GB_UNAVAILABLE);
    dynamodb_rig_clear(direct_bench.rig);
    assert_true(direct_is("B"));
    outbox_claim_is(first, S1, "o", 1, 10, ""); /* nobody knows of it, */
    direct_pass(OUTBOX_STALE_MS + 1);
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B"); /* but a sweep is due, and A's claim is stale as well */
    gb_outbox_batch_free(batch);
}

static void the_same_message_twice_at_once(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    struct outbox_spec spec = direct_spec("B", NULL);
    struct gb_outbox_record twice[2] = {outbox_record(&spec), outbox_record(&spec)};
    size_t stored = 0;
    assert_int_equal(outbox_persist(first, twice, 2, &stored), GB_OK);
    assert_int_equal(stored, 1);
    assert_true(direct_is("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "A B");
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(outbox_persist(first, twice, 2, &stored), GB_DUPLICATE_RECORD);
    assert_true(direct_is("B"));
}

/* --- two processes on one partition --- */

static void duplicate_of_a_stray(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_store(first, "A");
    direct_open_second();
    struct outbox_spec again = direct_spec("A", NULL);
    assert_int_equal(outbox_store(second, &again), GB_DUPLICATE_RECORD);
    assert_false(direct_is("A"));
    assert_true(direct_has("A", "\"claimed\"")); /* its owner may be at work on it */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(second, S1, "two", 2, 10, "");
}

static void records_of_others_are_seen_soon(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    direct_pass(1000);
    direct_own(first, "o", 1); /* looked just now */
    direct_open_second();
    direct_store(second, "A");
    direct_store(first, "B");
    assert_true(direct_is("B"));
    outbox_claim_is(first, S1, "o", 1, 1, "B");
    direct_store(first, "C");
    direct_pass(1000);
    outbox_claim_is(first, S1, "o", 1, 10, "A C");
    assert_true(direct_has("C", "\"claimed\""));
}

/* --- ordering keys --- */

static void keys_wait_for_a_late_sweep(void **state)
{
    (void)state;
    direct_own(first, "o", 1);
    store_keyed(first, "A");
    assert_false(direct_is("A")); /* a former owner's put may still be under way */
    struct gb_outbox_batch *batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A");
    direct_pass(MINUTE_MS / 2);
    direct_own(first, "o", 1);
    store_keyed(first, "B");
    direct_pass(MINUTE_MS / 2 + 1);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "B");
    store_keyed(first, "C");
    assert_true(direct_is("C")); /* that claim saw all, and what it took is known to be held: */
    outbox_claim_is(first, S1, "o", 1, 10, "");
    assert_int_equal(settle(first, GB_OUTBOX_RELEASE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    batch = outbox_claim(first, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "B C");
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 1, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    direct_pass(MINUTE_MS);
    direct_own(first, "o", 1);
    store_keyed(first, "D");
    assert_true(direct_is("D"));
    outbox_claim_is(first, S1, "o", 1, 10, "D");
}

static void own_keyed(void)
{
    direct_own(first, "o", 1);
    direct_pass(20 * MINUTE_MS);
    direct_own(first, "o", 1);
}

static void head_of_line_in_memory(void **state)
{
    (void)state;
    own_keyed();
    store_keyed(first, "A");
    store_keyed(first, "B");
    direct_store(first, "C");
    assert_true(direct_is("A"));
    assert_true(direct_is("B"));
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
    outbox_dynamodb_hold(&direct_bench.dynamodb[0], S1, "", 0);
    store_keyed(first, "B");
    assert_false(direct_is("B"));
    outbox_claim_is(first, S1, "o", 1, 10, "");
    store_keyed(first, "C");
    assert_false(direct_is("C")); /* B is in the indexes */
    assert_int_equal(settle(first, GB_OUTBOX_COMPLETE, batch, 0, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(first, S1, "o", 1, 10, "B C");
}

static void keys_of_a_binding_stay_in_the_indexes(void **state)
{
    (void)state;
    struct outbox_spec spec = {.envelope_id = "A", .binding_id = "b1", .key = "K"};
    outbox_claim_is(first, "BINDING#b1", "o", 1, 10, "");
    direct_pass(20 * MINUTE_MS);
    outbox_claim_is(first, "BINDING#b1", "o", 1, 10, "");
    assert_int_equal(outbox_store(first, &spec), GB_OK); /* other processes bring some, too */
    struct gb_bytes item = outbox_dynamodb_get(&direct_bench.dynamodb[0], &direct_bench.call,
                                               "BINDING#b1", "OUTBOX#A#b1");
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

#define CHECK(name) cmocka_unit_test_setup_teardown(name, direct_set_up, direct_tear_down)
#define CHECK_SMALL(name)                                                                          \
    cmocka_unit_test_setup_teardown(name, direct_set_up_small, direct_tear_down)

int main(void)
{
    direct_bench.rig = dynamodb_rig_new();
    if (direct_bench.rig == NULL) return DYNAMODB_RIG_SKIP;
    gb_log_set_sink(quiet, NULL);
    const struct CMUnitTest tests[] = {
        CHECK(a_kilobyte_costs_four_write_units),
        CHECK(only_a_swept_and_empty_partition_goes_this_way),
        CHECK(a_big_record_goes_the_ordinary_way),
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
    dynamodb_rig_free(direct_bench.rig);
    return failed;
}
