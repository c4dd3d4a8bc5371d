#include "contract/outbox_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HUGE_REPLAYS = 300, SHUFFLED = 50, MODEL_STEPS = 6000 };
#define S1 "SESSION#s1"

static struct outbox_backend *backend; /* of this executable; cmocka hands tests no argument */

static int set_up(void **state)
{
    backend->set_up(backend);
    *state = backend;
    return 0;
}

static int set_up_small(void **state)
{
    backend->set_up_small(backend);
    *state = backend;
    return 0;
}

static int tear_down(void **state)
{
    struct outbox_backend *b = *state;
    b->tear_down(b);
    outbox_records_free();
    return 0;
}

static struct gb_outbox_record in_s1(const char *envelope_id)
{
    return outbox_record(
        &(struct outbox_spec){.envelope_id = envelope_id, .binding_id = "b1", .session_id = "s1"});
}

static void store_in_s1(struct outbox_backend *b, const char *envelope_id, const char *key)
{
    assert_int_equal(outbox_store(b, &(struct outbox_spec){.envelope_id = envelope_id,
                                                           .binding_id = "b1",
                                                           .session_id = "s1",
                                                           .key = key}),
                     GB_OK);
}

/* Claims one record and gives its id, which stays readable until the next call. */
static struct gb_bytes claim_one(struct outbox_backend *b, const char *owner, uint64_t version)
{
    static char id[64];
    struct gb_outbox_batch *batch = outbox_claim(b, S1, owner, version, 1, NULL);
    assert_non_null(batch);
    assert_true(batch->records[0].id.size < sizeof id);
    size_t size = batch->records[0].id.size;
    memcpy(id, batch->records[0].id.data, size);
    gb_outbox_batch_free(batch);
    return gb_bytes(id, size);
}

static void check_05_01_persist_is_idempotent(void **state)
{
    struct outbox_backend *b = *state;
    size_t stored = 0;
    struct gb_outbox_record ab[] = {in_s1("A"), in_s1("B")};
    struct gb_outbox_record bc[] = {in_s1("B"), in_s1("C")};
    struct gb_outbox_record abc[] = {in_s1("A"), in_s1("B"), in_s1("C")};
    assert_int_equal(outbox_persist(b, ab, 2, &stored), GB_OK);
    assert_int_equal(stored, 2);
    assert_int_equal(outbox_persist(b, bc, 2, &stored), GB_OK);
    assert_int_equal(stored, 1);
    assert_int_equal(outbox_persist(b, abc, 3, &stored), GB_DUPLICATE_RECORD);
    assert_int_equal(stored, 0);
    assert_int_equal(outbox_persist(b, NULL, 0, &stored), GB_OK);
    outbox_claim_is(b, S1, "o", 1, 10, "A B C");
}

static void check_05_01_ended_record_is_a_duplicate(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    struct gb_bytes id = claim_one(b, "o", 1);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "o", 1), GB_OK);
    b->driver.wall_ms += INT64_C(3599000); /* within the hour */
    struct gb_outbox_record again = in_s1("A");
    assert_int_equal(outbox_persist(b, &again, 1, NULL), GB_DUPLICATE_RECORD);
    outbox_claim_is(b, S1, "o", 1, 10, "");
}

static void check_05_02_one_row_per_identity(void **state)
{
    struct outbox_backend *b = *state;
    size_t stored = 0;
    struct gb_outbox_record twice[] = {in_s1("A"), in_s1("A")};
    assert_int_equal(outbox_persist(b, twice, 2, &stored), GB_OK);
    assert_int_equal(stored, 1);
    struct gb_outbox_record other = outbox_record(
        &(struct outbox_spec){.envelope_id = "A", .binding_id = "b1", .session_id = "s2"});
    assert_int_equal(outbox_persist(b, &other, 1, &stored), GB_OK);
    assert_int_equal(stored, 1);
    outbox_claim_is(b, S1, "o", 1, 10, "A");
    outbox_claim_is(b, "SESSION#s2", "o", 1, 10, "A");
}

static void check_05_03_separators_in_ids(void **state)
{
    struct outbox_backend *b = *state;
    static const char *const pairs[][2] = {
        {"order", "eu#prod"}, {"order#eu", "prod"}, {"order%23eu", "prod"}, {"order", "eu%23prod"}};
    for (size_t i = 0; i < 4; i++) {
        struct outbox_spec spec = {
            .envelope_id = pairs[i][0], .binding_id = pairs[i][1], .session_id = "s1"};
        assert_int_equal(outbox_store(b, &spec), GB_OK);
    }
    assert_int_equal(outbox_stats(b, S1).pending, 4);
    outbox_claim_is(b, S1, "o", 1, 10, "order order#eu order%23eu order");
}

/* Written youngest first: insertion order must not count. */
static void check_05_04_oldest_first(void **state)
{
    struct outbox_backend *b = *state;
    for (int i = SHUFFLED - 1; i >= 0; i--) {
        char name[16];
        (void)snprintf(name, sizeof name, "e%02d", i * 7 % SHUFFLED);
        struct outbox_spec spec = {
            .envelope_id = name, .binding_id = "b1", .session_id = "s1", .created_at_ms = 1000 + i};
        assert_int_equal(outbox_store(b, &spec), GB_OK);
    }
    outbox_claim_is(b, S1, "o", 1, 5, "e00 e07 e14 e21 e28");
    outbox_claim_is(b, S1, "o", 1, 3, "e35 e42 e49");
}

static void check_05_04_same_millisecond_keeps_persist_order(void **state)
{
    struct outbox_backend *b = *state;
    static const char *const names[] = {"z", "a", "m", "b", "y"};
    struct gb_outbox_record first[3];
    for (size_t i = 0; i < 5; i++) {
        struct gb_outbox_record r = outbox_record(&(struct outbox_spec){
            .envelope_id = names[i], .binding_id = "b1", .session_id = "s1", .created_at_ms = 5});
        if (i < 3) {
            first[i] = r;
        } else {
            assert_int_equal(outbox_persist(b, &r, 1, NULL), GB_OK);
        }
        if (i == 2) assert_int_equal(outbox_persist(b, first, 3, NULL), GB_OK);
    }
    outbox_claim_is(b, S1, "o", 1, 10, "z a m b y");
}

static void check_05_05_invalid_token(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    enum gb_code code = GB_OK;
    uint64_t expired = 7;
    assert_null(outbox_claim(b, S1, "", 9, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    assert_null(outbox_claim(b, S1, "o", 0, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_expire(b, S1, "", 9, INT64_MAX, &expired), GB_STALE_FENCING_TOKEN);
    assert_int_equal(expired, 0);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, gb_bytes_c("x"), "", 0),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_stats(b, S1).mark, 0);
    outbox_claim_is(b, S1, "o", 1, 10, "A");
}

static void check_05_06_mark_is_a_high_water_mark(void **state)
{
    struct outbox_backend *b = *state;
    enum gb_code code = GB_OK;
    outbox_claim_is(b, S1, "six", 6, 10, "");
    assert_null(outbox_claim(b, S1, "five", 5, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    outbox_claim_is(b, "SESSION#s2", "six", 6, 0, "");
    assert_null(outbox_claim(b, "SESSION#s2", "five", 5, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_stats(b, S1).mark, 6);
    if (!b->durable) return;
    b->reopen(b);
    assert_int_equal(outbox_stats(b, "SESSION#s2").mark, 6);
    assert_null(outbox_claim(b, S1, "five", 5, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN);
    outbox_claim_is(b, S1, "other", 6, 10, ""); /* equal is accepted */
}

static void check_05_07_takeover_by_version(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    struct gb_bytes id = claim_one(b, "one", 1);
    outbox_claim_is(b, S1, "two", 2, 10, "A");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "one", 1),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, id, "one", 1), GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "one", 2),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, "SESSION#s2", id, "two", 2),
                     GB_STALE_FENCING_TOKEN);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "two", 2), GB_OK);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "two", 2),
                     GB_STALE_FENCING_TOKEN);
    outbox_claim_is(b, S1, "three", 3, 10, "");
}

/* A fenced-off owner whose record nobody took over may still complete it (spec 05 §2.2). */
static void check_05_07_claim_held_below_the_mark(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    store_in_s1(b, "B", NULL);
    struct gb_bytes id = claim_one(b, "one", 1);
    outbox_claim_is(b, S1, "two", 2, 0, "");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "one", 1), GB_OK);
    outbox_claim_is(b, S1, "two", 2, 10, "B");
}

static void check_05_08_release(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 4, 1, NULL);
    int64_t first_ms = batch->records[0].first_attempted_at_ms;
    assert_int_equal(first_ms, b->driver.wall_ms);
    assert_int_equal(batch->records[0].replay_count, 1);
    assert_int_equal(batch->records[0].claim_version, 4);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, batch->records[0].id, "o", 4), GB_OK);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, batch->records[0].id, "o", 4),
                     GB_STALE_FENCING_TOKEN);
    gb_outbox_batch_free(batch);
    b->driver.wall_ms += 1000;
    batch = outbox_claim(b, S1, "o", 4, 1, NULL);
    assert_non_null(batch);
    assert_int_equal(batch->records[0].replay_count, 2);
    assert_int_equal(batch->records[0].first_attempted_at_ms, first_ms);
    gb_outbox_batch_free(batch);
}

static void check_05_09_same_version_reclaim(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    (void)claim_one(b, "o", 1);
    if (b->stale_ms == 0) {
        b->driver.wall_ms += INT64_C(86400000);
        outbox_claim_is(b, S1, "o", 1, 10, "");
        return;
    }
    b->driver.wall_ms += b->stale_ms - 1;
    outbox_claim_is(b, S1, "o", 1, 10, "");
    b->driver.wall_ms += 1; /* inclusive */
    outbox_claim_is(b, S1, "p", 1, 10, "A");
}

static void check_05_10_head_of_line(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", "K");
    store_in_s1(b, "B", "K");
    store_in_s1(b, "C", NULL);
    struct gb_bytes a = claim_one(b, "o", 1);
    outbox_claim_is(b, S1, "o", 1, 10, "C");
    outbox_claim_is(b, S1, "o", 1, 10, "");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, a, "o", 1), GB_OK);
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 1, 10, NULL);
    outbox_batch_is(batch, "A B"); /* both in one claim, in order */
    struct gb_outbox_record *records = batch->records;
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, records[1].id, "o", 1), GB_OK);
    outbox_claim_is(b, S1, "o", 1, 10, "");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, records[0].id, "o", 1), GB_OK);
    gb_outbox_batch_free(batch);
    outbox_claim_is(b, S1, "o", 1, 10, "B");
}

/* A younger claimed record keeps those behind it back, but not the older one in front of it. */
static void check_05_10_gap_in_a_key(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", "K");
    store_in_s1(b, "B", "K");
    store_in_s1(b, "C", "K");
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 1, 2, NULL);
    outbox_batch_is(batch, "A B");
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, batch->records[0].id, "o", 1), GB_OK);
    outbox_claim_is(b, S1, "o", 1, 10, "A");
    outbox_claim_is(b, S1, "o", 2, 2, "A B"); /* the limit cuts after the rule */
    outbox_claim_is(b, S1, "o", 2, 2, "");
    outbox_claim_is(b, S1, "o", 3, 10, "A B C");
    gb_outbox_batch_free(batch);
}

static void check_05_11_replays_never_hide(void **state)
{
    struct outbox_backend *b = *state;
    store_in_s1(b, "A", NULL);
    for (uint32_t i = 1; i <= HUGE_REPLAYS; i++) {
        struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", i, 1, NULL);
        assert_non_null(batch);
        assert_int_equal(batch->records[0].replay_count, i);
        gb_outbox_batch_free(batch);
    }
}

static void check_05_12_expire(void **state)
{
    struct outbox_backend *b = *state;
    static const struct {
        const char *name, *session;
        int64_t expires;
    } rows[] = {{"claimed", "s1", 50}, {"due", "s1", 50},    {"due2", "s1", 99},
                {"cutoff", "s1", 100}, {"later", "s1", 150}, {"never", "s1", 0},
                {"other", "s2", 50}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct outbox_spec spec = {.envelope_id = rows[i].name,
                                   .binding_id = "b1",
                                   .session_id = rows[i].session,
                                   .expires_at_ms = rows[i].expires};
        assert_int_equal(outbox_store(b, &spec), GB_OK);
    }
    uint64_t expired = 9;
    struct gb_bytes id = claim_one(b, "o", 3);
    assert_int_equal(outbox_expire(b, S1, "old", 2, 100, &expired), GB_STALE_FENCING_TOKEN);
    assert_int_equal(expired, 0);
    assert_int_equal(outbox_expire(b, S1, "o", 3, 100, &expired), GB_OK);
    assert_int_equal(expired, 2);
    assert_int_equal(outbox_expire(b, S1, "o", 8, 100, &expired), GB_OK);
    assert_int_equal(expired, 0);
    enum gb_code code = GB_OK;
    assert_null(outbox_claim(b, S1, "o", 7, 10, &code));
    assert_int_equal(code, GB_STALE_FENCING_TOKEN); /* count 0 has raised the mark */
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, id, "o", 3), GB_OK);
    outbox_claim_is(b, S1, "o", 8, 10, "claimed cutoff later never");
    outbox_claim_is(b, "SESSION#s2", "o", 1, 10, "other");
    struct gb_outbox_record again = in_s1("due");
    assert_int_equal(outbox_persist(b, &again, 1, NULL), GB_DUPLICATE_RECORD);
}

/* The head of a key may expire; what follows it is free then. */
static void check_05_12_expired_head_frees_its_key(void **state)
{
    struct outbox_backend *b = *state;
    struct outbox_spec head = {.envelope_id = "A",
                               .binding_id = "b1",
                               .session_id = "s1",
                               .key = "K",
                               .expires_at_ms = 50};
    assert_int_equal(outbox_store(b, &head), GB_OK);
    store_in_s1(b, "B", "K");
    uint64_t expired = 0;
    assert_int_equal(outbox_expire(b, S1, "o", 1, 100, &expired), GB_OK);
    assert_int_equal(expired, 1);
    outbox_claim_is(b, S1, "o", 1, 10, "B");
}

static void check_05_13_counts(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_outbox_stats q = outbox_stats(b, S1);
    assert_int_equal(q.pending + q.claimed + (uint64_t)q.oldest_pending_ms + q.mark, 0);
    for (int i = 0; i < 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "e%d", i);
        struct outbox_spec spec = {.envelope_id = name,
                                   .binding_id = "b1",
                                   .session_id = "s1",
                                   .key = i % 2 == 0 ? "K" : NULL,
                                   .created_at_ms = 100 + i,
                                   .expires_at_ms = i == 9 ? 5 : 0};
        assert_int_equal(outbox_store(b, &spec), GB_OK);
    }
    struct gb_outbox_batch *batch = outbox_claim(b, S1, "o", 2, 4, NULL);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, batch->records[0].id, "o", 2), GB_OK);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_RELEASE, S1, batch->records[3].id, "o", 2), GB_OK);
    gb_outbox_batch_free(batch);
    uint64_t expired = 0;
    assert_int_equal(outbox_expire(b, S1, "o", 2, 10, &expired), GB_OK);
    q = outbox_stats(b, S1);
    assert_int_equal(q.pending, 6);
    assert_int_equal(q.claimed, 2);
    assert_int_equal(q.oldest_pending_ms, 103);
    assert_int_equal(q.mark, 2);
    assert_int_equal(outbox_depth(b, S1, 4), 4);
    assert_int_equal(outbox_depth(b, S1, 100), 6);
    assert_int_equal(outbox_depth(b, "SESSION#none", 100), 0);
}

static void record_round_trips(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_outbox_record r = outbox_record(&(struct outbox_spec){.envelope_id = "env",
                                                                    .binding_id = "bind",
                                                                    .key = "k\xc3\xbc",
                                                                    .created_at_ms = 11,
                                                                    .expires_at_ms = 22});
    r.dispatch_headers = gb_bytes_c("{\"h\":\"v\"}");
    assert_int_equal(gb_envelope_put_text(r.envelope, "name", gb_bytes_c("value")).code, GB_OK);
    assert_int_equal(outbox_persist(b, &r, 1, NULL), GB_OK);
    if (b->durable) b->reopen(b);
    struct gb_outbox_batch *batch = outbox_claim(b, "BINDING#bind", "o", 1, 1, NULL);
    assert_non_null(batch);
    const struct gb_outbox_record *got = &batch->records[0];
    assert_true(gb_bytes_equal(got->id, r.id));
    assert_true(gb_bytes_equal(got->route_id, r.route_id));
    assert_true(gb_bytes_equal(got->binding_id, r.binding_id));
    assert_int_equal(got->session_id.size, 0);
    assert_true(gb_bytes_equal(got->address, r.address));
    assert_true(gb_bytes_equal(got->dispatch_headers, r.dispatch_headers));
    assert_true(gb_bytes_equal(got->ordering_key, r.ordering_key));
    assert_int_equal(got->created_at_ms, 11);
    assert_int_equal(got->expires_at_ms, 22);
    assert_true(got->seq > 0);
    assert_true(gb_bytes_equal(got->envelope->payload, r.envelope->payload));
    assert_true(gb_bytes_equal_c(gb_envelope_text(got->envelope, "name"), "value"));
    gb_outbox_batch_free(batch);
}

static void record_id_of_another_message_is_refused(void **state)
{
    struct outbox_backend *b = *state;
    if (b->ids_unchecked) skip();
    store_in_s1(b, "first", NULL);
    struct outbox_spec one = {
        .envelope_id = "A", .binding_id = "b1", .session_id = "s1", .id = "same"};
    struct outbox_spec two = one;
    two.envelope_id = "B";
    struct gb_outbox_record batch[] = {in_s1("C"), outbox_record(&one), outbox_record(&two)};
    size_t stored = 9;
    assert_int_equal(outbox_persist(b, batch, 3, &stored), GB_INVALID_OUTBOX_RECORD);
    assert_int_equal(stored, 0);
    outbox_claim_is(b, S1, "o", 1, 10, "first"); /* nothing of the batch */
    assert_int_equal(outbox_persist(b, &batch[1], 1, NULL), GB_OK);
    assert_int_equal(outbox_persist(b, &batch[2], 1, NULL), GB_INVALID_OUTBOX_RECORD);
    assert_int_equal(outbox_persist(b, &batch[1], 1, NULL), GB_DUPLICATE_RECORD);
    outbox_claim_is(b, S1, "o", 1, 10, "A");
}

/* Whatever a cancel achieves, each operation completes once and the store stays sound. */
static void cancel_before_during_after(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_outbox_record r[] = {in_s1("A"), in_s1("B"), in_s1("C")};
    struct gb_outbox_persist idle = {.records = r, .count = 1};
    gb_op_cancel(&idle.op); /* before the start: nothing to cancel */
    struct gb_outbox_persist q[3];
    for (size_t i = 0; i < 3; i++) {
        q[i] = (struct gb_outbox_persist){.records = &r[i], .count = 1};
        store_driver_expect(&b->driver);
        b->store->ops->persist(b->store, &q[i], store_driver_done, &b->driver);
    }
    gb_op_cancel(&q[1].op); /* while it waits */
    store_driver_run(&b->driver);
    gb_op_cancel(&q[2].op); /* after it is done */
    assert_int_equal(q[0].op.result.code, GB_OK);
    assert_int_equal(q[2].op.result.code, GB_OK);
    bool cancelled = q[1].op.result.code == GB_CANCELLED;
    assert_true(cancelled || q[1].op.result.code == GB_OK);
    outbox_claim_is(b, S1, "o", 1, 10, cancelled ? "A C" : "A B C");
}

static void full_store_answers_unavailable(void **state)
{
    struct outbox_backend *b = *state;
    size_t count = b->full_at + 1;
    struct gb_outbox_persist *q = calloc(count, sizeof *q);
    struct gb_outbox_record *r = calloc(count, sizeof *r);
    GB_ASSERT(q != NULL && r != NULL);
    for (size_t i = 0; i < count; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "e%zu", i);
        r[i] = in_s1(name);
        q[i] = (struct gb_outbox_persist){.records = &r[i], .count = 1};
        store_driver_expect(&b->driver);
        b->store->ops->persist(b->store, &q[i], store_driver_done, &b->driver);
    }
    store_driver_run(&b->driver);
    for (size_t i = 0; i < count; i++) {
        enum gb_code want = i < b->full_at ? GB_OK : GB_UNAVAILABLE;
        assert_int_equal(q[i].op.result.code, want);
    }
    assert_int_equal(outbox_stats(b, S1).pending, b->full_at);
    /* Room again: a record ended, or the calls have run. */
    struct gb_bytes id = claim_one(b, "o", 1);
    assert_int_equal(outbox_settle(b, GB_OUTBOX_COMPLETE, S1, id, "o", 1), GB_OK);
    assert_int_equal(outbox_persist(b, &r[count - 1], 1, NULL), GB_OK);
    free(q);
    free(r);
}

static void closing_store_refuses(void **state)
{
    struct outbox_backend *b = *state;
    struct gb_outbox_record r = in_s1("A");
    struct gb_outbox_persist before = {.records = &r, .count = 1};
    struct gb_outbox_stats after = {.partition = gb_bytes_c(S1)};
    struct gb_op close_op = {0};
    struct gb_outbox *o = b->store;
    for (int i = 0; i < 3; i++) store_driver_expect(&b->driver);
    o->ops->persist(o, &before, store_driver_done, &b->driver);
    o->ops->close(o, &close_op, store_driver_done, &b->driver);
    o->ops->stats(o, &after, store_driver_done, &b->driver);
    store_driver_run(&b->driver);
    b->store = NULL;
    assert_int_equal(before.op.result.code, GB_OK);
    assert_int_equal(close_op.result.code, GB_OK);
    assert_int_equal(after.op.result.code, GB_UNAVAILABLE);
    b->reopen(b);
    assert_int_equal(outbox_stats(b, S1).pending, b->durable ? 1 : 0);
}

static void random_operations_match_the_model(void **state)
{
    const char *seed = getenv("GB_TEST_SEED");
    struct outbox_backend *b = *state;
    size_t steps = b->model_steps == 0 ? MODEL_STEPS : b->model_steps;
    outbox_model_run(b, seed == NULL ? 20240607 : strtoull(seed, NULL, 0), steps);
}

#define CHECK(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int outbox_contract_run(struct outbox_backend *b)
{
    const struct CMUnitTest tests[] = {
        CHECK(check_05_01_persist_is_idempotent),
        CHECK(check_05_01_ended_record_is_a_duplicate),
        CHECK(check_05_02_one_row_per_identity),
        CHECK(check_05_03_separators_in_ids),
        CHECK(check_05_04_oldest_first),
        CHECK(check_05_04_same_millisecond_keeps_persist_order),
        CHECK(check_05_05_invalid_token),
        CHECK(check_05_06_mark_is_a_high_water_mark),
        CHECK(check_05_07_takeover_by_version),
        CHECK(check_05_07_claim_held_below_the_mark),
        CHECK(check_05_08_release),
        CHECK(check_05_09_same_version_reclaim),
        CHECK(check_05_10_head_of_line),
        CHECK(check_05_10_gap_in_a_key),
        CHECK(check_05_11_replays_never_hide),
        CHECK(check_05_12_expire),
        CHECK(check_05_12_expired_head_frees_its_key),
        CHECK(check_05_13_counts),
        CHECK(record_round_trips),
        CHECK(record_id_of_another_message_is_refused),
        CHECK(cancel_before_during_after),
        cmocka_unit_test_setup_teardown(full_store_answers_unavailable, set_up_small, tear_down),
        CHECK(closing_store_refuses),
        CHECK(random_operations_match_the_model),
    };
    backend = b;
    return cmocka_run_group_tests_name(b->name, tests, NULL, NULL);
}
