#include "adapters/dynamodb/dynamodb_outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"
#include "support/oom.h"

/* The allocation ladder of an outbox store whose partition is held: each call ends once, the store
 * closes, nothing leaks, and without a failure the direct record runs through. */

enum { LADDER_MAX = 1000 };
#define PARTITION "SESSION#s"

static const struct gb_token token = {{(const uint8_t *)"o", 1}, 1};

static struct bench {
    struct gb_reactor *r;
    struct fake_http http;
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client;
    struct gb_outbox *store;
    uint64_t now_ns;
    unsigned done;
} b;

static const char *env(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "AWS_REGION") == 0 ? "eu-west-1" : NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

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
    return gb_dynamodb_outbox_new(&cfg, &b.store);
}

static void open_bench(void)
{
    memset(&b, 0, sizeof b);
    assert_int_equal(gb_reactor_new(1, &b.r).code, GB_OK);
    b.now_ns = 1;
    gb_reactor_run(b.r, b.now_ns, 1000);
    fake_http_init(&b.http, b.r);
    b.http.no_notes = true;
    b.http.standing = (struct fake_http_answer){
        .status = 200, /* whatever the call: an empty table with a counter */
        .body = "{\"Attributes\":{\"seq_counter\":{\"N\":\"1000\"}},\"Items\":[],\"Count\":0}"};
    const struct gb_aws_credentials_cfg credentials = {.reactor = b.r,
                                                       .http = &b.http.http,
                                                       .env = {env, no_file, NULL},
                                                       .access_key_id = "A",
                                                       .secret_access_key = "s"};
    assert_int_equal(gb_aws_credentials_new(&credentials, &b.credentials).code, GB_OK);
    const struct gb_dynamodb_client_cfg client = {.reactor = b.r,
                                                  .http = &b.http.http,
                                                  .credentials = b.credentials,
                                                  .env = {env, no_file, NULL},
                                                  .attempts_max = 1};
    assert_int_equal(gb_dynamodb_client_new(&client, &b.client).code, GB_OK);
}

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
    b.done++;
}

/* Until what was started is over. */
static void run(void)
{
    unsigned done = b.done;
    for (int i = 0; i < 100 && b.done == done; i++) {
        b.now_ns += (uint64_t)GB_SEC;
        gb_reactor_run(b.r, b.now_ns, 1000);
    }
    assert_int_equal(b.done, done + 1);
}

static void close_bench(void)
{
    struct gb_op op = {0};
    if (b.store != NULL) {
        b.store->ops->close(b.store, &op, on_done, NULL);
        run();
        assert_int_equal(op.result.code, GB_OK);
    }
    gb_dynamodb_client_free(b.client);
    gb_aws_credentials_unref(b.credentials);
    gb_reactor_run(b.r, b.now_ns + 100 * (uint64_t)GB_SEC, 1);
    fake_http_deinit(&b.http);
    gb_reactor_free(b.r);
}

static void constructor(void **state)
{
    (void)state;
    unsigned n = 0;
    struct gb_err err;
    open_bench();
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        err = make_store();
        gb_oom_off();
        assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
        assert_int_equal(b.store != NULL, err.code == GB_OK);
    } while (gb_failed(err));
    assert_true(n > 2);
    close_bench();
}

/* --- the way of a record --- */

static void check(const struct gb_op *op)
{
    enum gb_code code = op->result.code;
    if (code != GB_OK && code != GB_UNAVAILABLE && code != GB_TEMPORARY_AUTH_FAILURE)
        fail_msg("%d: %s", (int)code, op->result.message);
}

static size_t claim(char id[64])
{
    struct gb_outbox_claim q = {.partition = gb_bytes_c(PARTITION), .token = token, .limit = 10};
    b.store->ops->claim(b.store, &q, on_done, NULL);
    run();
    check(&q.op);
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
    b.store->ops->persist(b.store, &q, on_done, NULL);
    run();
    check(&q.op);
}

static void settle(enum gb_outbox_settle_kind kind, const char *id)
{
    struct gb_outbox_settle q = {
        .kind = kind, .partition = gb_bytes_c(PARTITION), .id = gb_bytes_c(id), .token = token};
    b.store->ops->settle(b.store, &q, on_done, NULL);
    run();
    /* An answer that could not be read is looked up, and this table has no records. */
    if (q.op.result.code != GB_STALE_FENCING_TOKEN) check(&q.op);
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
static bool life_failing_at(unsigned n)
{
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
    unsigned n = 0;
    (void)state;
    do {
        assert_true(++n < LADDER_MAX);
    } while (!life_failing_at(n));
    assert_true(n > 20);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructor),
        cmocka_unit_test(life),
        cmocka_unit_test(end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
