#include "adapters/dynamodb/dynamodb_outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "support/dynamodb_bench.h"
#include "support/oom.h"

/* The allocation ladder of an outbox store whose partition is held: each call ends once, the store
 * closes, nothing leaks, and without a failure the direct record runs through. */

#define PARTITION "SESSION#s"

static const struct gb_token token = {{(const uint8_t *)"o", 1}, 1};

static struct dynamodb_bench b;
static struct gb_outbox *store;

static bool holds(void *arg, struct gb_bytes partition, struct gb_token *out)
{
    (void)arg;
    (void)partition;
    *out = token;
    return true;
}

static struct gb_err make_store(void)
{
    const struct gb_dynamodb_outbox_cfg cfg = {.reactor = b.r,
                                               .client = b.client,
                                               .table = "t",
                                               .stale_claim_ns = GB_HOUR,
                                               .holds = holds};
    struct gb_err err = gb_dynamodb_outbox_new(&cfg, &store);
    assert_int_equal(store != NULL, !gb_failed(err));
    return err;
}

/* Whatever the call: an empty table with a counter. No record goes there without its envelope. */
static struct fake_http_answer serve(void *arg, const struct gb_http_request *q)
{
    static const char envelope[] = "{\"S\":\"{\\\"id\\\":\\\"e\\\"}\"}";
    (void)arg;
    dynamodb_bench_whole(q);
    bool record = dynamodb_bench_has(q, "\"env\":") ||
                  dynamodb_bench_has(q, "\"envelope_json\":") ||
                  dynamodb_bench_has(q, "\":json\":");
    if (record) assert_true(dynamodb_bench_has(q, envelope));
    return b.http.standing;
}

static void open_bench(void)
{
    store = NULL;
    dynamodb_bench_open(
        &b, "{\"Attributes\":{\"seq_counter\":{\"N\":\"1000\"}},\"Items\":[],\"Count\":0}");
    b.http.serve = serve;
    assert_int_equal(dynamodb_bench_client(&b, 1).code, GB_OK);
}

static void close_bench(void)
{
    if (store != NULL) DYNAMODB_BENCH_CLOSE_STORE(&b, store);
    dynamodb_bench_close(&b);
}

static void constructor(void **state)
{
    (void)state;
    open_bench();
    dynamodb_bench_constructor(make_store);
    close_bench();
}

/* --- the way of a record --- */

static size_t claim(char id[64])
{
    struct gb_outbox_claim q = {.partition = gb_bytes_c(PARTITION), .token = token, .limit = 10};
    store->ops->claim(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
    size_t count = q.batch == NULL ? 0 : q.batch->count;
    if (count > 0) {
        memcpy(id, q.batch->records[0].id.data, q.batch->records[0].id.size);
        id[q.batch->records[0].id.size] = '\0';
    }
    gb_outbox_batch_free(q.batch);
    return count;
}

static void persist(const struct gb_outbox_record *record)
{
    struct gb_outbox_persist q = {.records = record, .count = 1};
    store->ops->persist(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    dynamodb_bench_check(&q.op);
}

static void settle(enum gb_outbox_settle_kind kind, const char *id)
{
    struct gb_outbox_settle q = {
        .kind = kind, .partition = gb_bytes_c(PARTITION), .id = gb_bytes_c(id), .token = token};
    store->ops->settle(store, &q, dynamodb_bench_done, &b);
    dynamodb_bench_run(&b);
    /* An answer that could not be read is looked up, and this table has no records. */
    if (q.op.result.code != GB_STALE_FENCING_TOKEN) dynamodb_bench_check(&q.op);
}

static struct gb_outbox_record record_of(struct gb_envelope *e, const char *id)
{
    return (struct gb_outbox_record){.id = gb_bytes_c(id),
                                     .route_id = gb_bytes_c("r"),
                                     .binding_id = gb_bytes_c("b"),
                                     .session_id = gb_bytes_c("s"),
                                     .address = gb_bytes_c("a"),
                                     .envelope = e};
}

/* True when no allocation failed. */
static bool life_failing_at(const void *arg, unsigned n)
{
    (void)arg;
    struct gb_envelope *e = NULL;
    char id[64] = "";
    open_bench();
    assert_int_equal(make_store().code, GB_OK);
    assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(e, gb_bytes_c("e")).code, GB_OK);
    const struct gb_outbox_record one = record_of(e, "one");
    const struct gb_outbox_record two = record_of(e, "two");
    gb_oom_fail_at(n);
    size_t none = claim(id);
    persist(&one);
    size_t first = claim(id);
    if (first > 0) settle(GB_OUTBOX_RELEASE, id);
    size_t again = claim(id);
    if (again > 0) settle(GB_OUTBOX_COMPLETE, id);
    persist(&two); /* is there when the store closes */
    bool whole = gb_oom_count() < n;
    gb_oom_off();
    assert_int_equal(none, 0);
    if (whole) assert_int_equal(first + again, 2);
    gb_envelope_unref(e);
    close_bench();
    return whole;
}

static void life(void **state)
{
    (void)state;
    assert_true(gb_oom_ladder(life_failing_at, NULL) > 20);
}

/* The same at the end, where what waits in memory goes into the indexes. */
static void end(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 40; n++) {
        struct gb_envelope *e = NULL;
        char id[64] = "";
        open_bench();
        assert_int_equal(make_store().code, GB_OK);
        assert_int_equal(gb_envelope_new(64, &e).code, GB_OK);
        assert_int_equal(gb_envelope_set_id(e, gb_bytes_c("e")).code, GB_OK);
        const struct gb_outbox_record one = record_of(e, "one");
        assert_int_equal(claim(id), 0);
        persist(&one);
        gb_oom_fail_at(n);
        close_bench();
        gb_oom_off();
        gb_envelope_unref(e);
    }
}

int main(void)
{
    dynamodb_bench_quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(life),
        cmocka_unit_test(end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
