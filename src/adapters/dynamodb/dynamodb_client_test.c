#include "adapters/dynamodb/dynamodb_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"

enum { CALLS = 8 };

struct bench {
    struct gb_reactor *r;
    uint64_t now_ns;
    struct fake_http http;
    struct gb_aws_credentials *credentials;
    struct gb_dynamodb_client *client;
    struct gb_dynamodb_call calls[CALLS];
    unsigned done[CALLS];
    unsigned order[CALLS], finished; /* which call was the n-th to finish */
    struct gb_op close_op;
    unsigned closed;
    const char *region;
};

static const char *env(void *ctx, const char *name)
{
    const struct bench *b = ctx;
    if (strcmp(name, "AWS_REGION") == 0) return b->region;
    if (strcmp(name, "AWS_ENDPOINT_URL_DYNAMODB") == 0) return "http://localhost:8000";
    return NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

static void turn(struct bench *b)
{
    gb_reactor_run(b->r, b->now_ns, INT64_C(1796119200000) + (int64_t)(b->now_ns / 1000000));
}

static void pass(struct bench *b, int64_t ns)
{
    b->now_ns += (uint64_t)ns;
    turn(b);
}

static void open_with(struct bench *b, uint32_t calls_max, uint32_t waiting_max)
{
    *b = (struct bench){.now_ns = 1, .region = "eu-west-1"};
    assert_int_equal(gb_reactor_new(7, &b->r).code, GB_OK);
    turn(b);
    fake_http_init(&b->http, b->r);
    const struct gb_aws_env env_of_bench = {.get = env, .read_file = no_file, .ctx = b};
    const struct gb_aws_credentials_cfg credentials = {.reactor = b->r,
                                                       .http = &b->http.http,
                                                       .env = env_of_bench,
                                                       .access_key_id = "AKIDEXAMPLE",
                                                       .secret_access_key = "secret"};
    assert_int_equal(gb_aws_credentials_new(&credentials, &b->credentials).code, GB_OK);
    const struct gb_dynamodb_client_cfg cfg = {.reactor = b->r,
                                               .http = &b->http.http,
                                               .credentials = b->credentials,
                                               .env = env_of_bench,
                                               .calls_max = calls_max,
                                               .waiting_max = waiting_max};
    assert_int_equal(gb_dynamodb_client_new(&cfg, &b->client).code, GB_OK);
}

static void open_bench(struct bench *b)
{
    open_with(b, 0, 0);
}

static void close_bench(struct bench *b)
{
    for (size_t i = 0; i < CALLS; i++) gb_dynamodb_call_deinit(&b->calls[i]);
    gb_dynamodb_client_free(b->client);
    gb_aws_credentials_unref(b->credentials);
    fake_http_deinit(&b->http);
    turn(b);
    gb_reactor_free(b->r);
}

static void on_done(struct gb_op *op, void *arg)
{
    struct bench *b = arg;
    const struct gb_dynamodb_call *call = GB_CONTAINER_OF(op, struct gb_dynamodb_call, op);
    unsigned i = (unsigned)(call - b->calls);
    b->done[i]++;
    if (b->finished < CALLS) b->order[b->finished++] = i;
}

static void start_in(struct bench *b, size_t i, int64_t timeout_ns)
{
    b->done[i] = 0;
    b->calls[i].op.deadline_ns = b->now_ns + (uint64_t)timeout_ns;
    gb_dynamodb_start(b->client, &b->calls[i], on_done, b);
    assert_int_equal(b->done[i], 0); /* never from inside the call */
}

static void start(struct bench *b, size_t i)
{
    start_in(b, i, 60 * GB_SEC);
    turn(b);
}

static struct gb_dynamodb_call *run(struct bench *b)
{
    start(b, 0);
    for (int i = 0; i < 1000 && b->done[0] == 0; i++) pass(b, 100 * GB_MS);
    assert_int_equal(b->done[0], 1);
    return &b->calls[0];
}

static struct fake_http_answer answer(int status, const char *body)
{
    return (struct fake_http_answer){.status = status, .body = body};
}

static void write_key(struct gb_dynamodb_call *call)
{
    gb_dynamodb_object(call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call->w, "PK", "a");
    gb_dynamodb_object_end(call);
}

static void begin_get(struct bench *b, size_t i)
{
    gb_dynamodb_begin(&b->calls[i], GB_DYNAMODB_GET_ITEM, "t");
    write_key(&b->calls[i]);
}

/* --- requests --- */

static void make_get(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_GET_ITEM, "t");
    write_key(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_CONSISTENT_READ);
    gb_dynamodb_text(call, GB_DYNAMODB_PROJECTION, "a,b");
}

static void make_put(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_dynamodb_object(call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s_c(&call->w, "PK", "a");
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "attribute_not_exists(PK)");
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
}

static void make_update(struct gb_dynamodb_call *call)
{
    static const struct gb_dynamodb_name names[] = {{"#s", "status"}, {"#o", "owner"}};
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_ITEM, "t");
    write_key(call);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, "SET #s = :s");
    gb_dynamodb_names(call, names, 2);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_u64(&call->w, ":s", 5);
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_RETURN_VALUES, "UPDATED_NEW");
}

static void make_delete(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_DELETE_ITEM, "t");
    write_key(call);
}

static void make_query(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_QUERY, "t");
    gb_dynamodb_text(call, GB_DYNAMODB_INDEX, "ClaimIndex");
    gb_dynamodb_text(call, GB_DYNAMODB_KEY_CONDITION, "PK = :p");
    gb_dynamodb_text(call, GB_DYNAMODB_FILTER, "x = :x");
    gb_dynamodb_limit(call, 10);
    gb_dynamodb_flag(call, GB_DYNAMODB_DESCENDING);
    gb_dynamodb_start_key(call, gb_bytes_c("{\"PK\":{\"S\":\"z\"}}"));
}

static void make_scan(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_SCAN, "t");
    gb_dynamodb_flag(call, GB_DYNAMODB_COUNT_ONLY);
    gb_dynamodb_start_key(call, gb_bytes(NULL, 0));
}

static void make_transaction(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
    gb_dynamodb_token(call, "token-1");
    gb_dynamodb_action(call, GB_DYNAMODB_CONDITION_CHECK, "t");
    write_key(call);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "v < :v");
    gb_dynamodb_action_end(call);
    gb_dynamodb_action(call, GB_DYNAMODB_DELETE_ITEM, "u");
    write_key(call);
    gb_dynamodb_action_end(call);
}

static void make_describe(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_DESCRIBE_TABLE, "t");
}

static void make_ttl(struct gb_dynamodb_call *call)
{
    gb_dynamodb_begin(call, GB_DYNAMODB_UPDATE_TIME_TO_LIVE, "t");
    gb_dynamodb_ttl(call, "ttl");
}

#define CAPACITY ",\"ReturnConsumedCapacity\":\"INDEXES\"}"
#define KEY "\"Key\":{\"PK\":{\"S\":\"a\"}}"

static void requests(void **state)
{
    static const struct {
        void (*make)(struct gb_dynamodb_call *call);
        const char *target, *body, *answer;
    } rows[] = {
        {make_get, "GetItem",
         "{\"TableName\":\"t\"," KEY
         ",\"ConsistentRead\":true,\"ProjectionExpression\":\"a,b\"" CAPACITY,
         "{}"},
        {make_put, "PutItem",
         "{\"TableName\":\"t\",\"Item\":{\"PK\":{\"S\":\"a\"}},\"ConditionExpression\":"
         "\"attribute_not_exists(PK)\",\"ReturnValuesOnConditionCheckFailure\":"
         "\"ALL_OLD\"" CAPACITY,
         "{}"},
        {make_update, "UpdateItem",
         "{\"TableName\":\"t\"," KEY
         ",\"UpdateExpression\":\"SET #s = :s\",\"ExpressionAttributeNames\":{\"#s\":\"status\","
         "\"#o\":\"owner\"},\"ExpressionAttributeValues\":{\":s\":{\"N\":\"5\"}},"
         "\"ReturnValues\":\"UPDATED_NEW\"" CAPACITY,
         "{}"},
        {make_delete, "DeleteItem", "{\"TableName\":\"t\"," KEY CAPACITY, "{}"},
        {make_query, "Query",
         "{\"TableName\":\"t\",\"IndexName\":\"ClaimIndex\",\"KeyConditionExpression\":\"PK = "
         ":p\",\"FilterExpression\":\"x = :x\",\"Limit\":10,\"ScanIndexForward\":false,"
         "\"ExclusiveStartKey\":{\"PK\":{\"S\":\"z\"}}" CAPACITY,
         "{\"Items\":[]}"},
        {make_scan, "Scan", "{\"TableName\":\"t\",\"Select\":\"COUNT\"" CAPACITY, "{\"Count\":0}"},
        {make_transaction, "TransactWriteItems",
         "{\"TransactItems\":[{\"ConditionCheck\":{\"TableName\":\"t\"," KEY
         ",\"ConditionExpression\":\"v < :v\"}},{\"Delete\":{\"TableName\":\"u\"," KEY
         "}}],\"ClientRequestToken\":\"token-1\"" CAPACITY,
         "{}"},
        {make_describe, "DescribeTable", "{\"TableName\":\"t\"}", "{\"Table\":{}}"},
        {make_ttl, "UpdateTimeToLive",
         "{\"TableName\":\"t\",\"TimeToLiveSpecification\":{\"AttributeName\":\"ttl\","
         "\"Enabled\":true}}",
         "{}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        char target[64];
        open_bench(&b);
        rows[i].make(&b.calls[0]);
        b.http.standing = answer(200, rows[i].answer);
        const struct gb_dynamodb_call *call = run(&b);
        assert_int_equal(call->op.result.code, GB_OK);
        assert_int_equal(call->outcome, GB_DYNAMODB_APPLIED);
        struct gb_bytes body = gb_str_bytes(&b.http.notes[0].body);
        if (!gb_bytes_equal_c(body, rows[i].body))
            fail_msg("%s: %.*s", rows[i].target, (int)body.size, (const char *)body.data);
        (void)snprintf(target, sizeof target, "DynamoDB_20120810.%s", rows[i].target);
        assert_true(fake_http_header_is(&b.http, 0, "X-Amz-Target", target));
        assert_true(fake_http_header_is(&b.http, 0, "Content-Type", "application/x-amz-json-1.0"));
        assert_true(fake_http_headers_have(&b.http, 0, "/eu-west-1/dynamodb/aws4_request"));
        assert_string_equal(b.http.notes[0].url, "http://localhost:8000/");
        close_bench(&b);
    }
}

/* --- ends --- */

#define FAILED "{\"__type\":\"x#ConditionalCheckFailedException\",\"Item\":{\"v\":{\"N\":\"2\"}}}"
#define CANCELLED(reasons)                                                                         \
    "{\"__type\":\"x#TransactionCanceledException\",\"CancellationReasons\":[" reasons "]}"

static const struct end_row {
    const char *name;
    void (*make)(struct gb_dynamodb_call *call);
    bool repeatable;
    struct fake_http_answer first, rest;
    size_t requests;
    enum gb_code code;
    enum gb_dynamodb_error error;
    enum gb_dynamodb_outcome outcome;
} end_rows[] = {
    {"read again",
     make_get,
     false,
     {.fail = GB_TIMEOUT},
     {.status = 200, .body = "{}"},
     2,
     GB_OK,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_APPLIED},
    {"write once",
     make_put,
     false,
     {.fail = GB_TIMEOUT},
     {.status = 200, .body = "{}"},
     1,
     GB_TIMEOUT,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"write cut",
     make_update,
     false,
     {.fail = GB_CONNECTION_LOST},
     {.status = 200, .body = "{}"},
     1,
     GB_CONNECTION_LOST,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"write never left",
     make_put,
     false,
     {.fail = GB_CONNECTION_LOST, .unsent = true},
     {.status = 200, .body = "{}"},
     2,
     GB_OK,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_APPLIED},
    {"write never leaves",
     make_put,
     false,
     {.fail = GB_CONNECTION_LOST, .unsent = true},
     {.fail = GB_CONNECTION_LOST, .unsent = true},
     3,
     GB_CONNECTION_LOST,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_NOT_APPLIED},
    {"write throttled",
     make_put,
     false,
     {.status = 400, .body = "{\"__type\":\"ProvisionedThroughputExceededException\"}"},
     {.status = 200, .body = "{}"},
     2,
     GB_OK,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_APPLIED},
    {"write meets a transaction",
     make_put,
     false,
     {.status = 400, .body = "{\"__type\":\"TransactionConflictException\"}"},
     {.status = 200, .body = "{}"},
     2,
     GB_OK,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_APPLIED},
    {"write and 500",
     make_put,
     false,
     {.status = 500, .body = "{\"__type\":\"InternalServerError\"}"},
     {.status = 200, .body = "{}"},
     1,
     GB_UNAVAILABLE,
     GB_DYNAMODB_SERVER_FAULT,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"lost to another",
     make_put,
     false,
     {.status = 400, .body = FAILED},
     {0},
     1,
     GB_VERSION_MISMATCH,
     GB_DYNAMODB_CONDITION_FAILED,
     GB_DYNAMODB_NOT_APPLIED},
    {"perhaps lost to itself",
     make_put,
     true,
     {.fail = GB_TIMEOUT},
     {.status = 400, .body = FAILED},
     2,
     GB_VERSION_MISMATCH,
     GB_DYNAMODB_CONDITION_FAILED,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"perhaps lost to itself in one attempt",
     make_put,
     true,
     {.status = 400, .body = FAILED, .resent = true},
     {0},
     1,
     GB_VERSION_MISMATCH,
     GB_DYNAMODB_CONDITION_FAILED,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"never resent unasked",
     make_put,
     false,
     {.status = 400, .body = FAILED, .resent = true},
     {0},
     1,
     GB_VERSION_MISMATCH,
     GB_DYNAMODB_CONDITION_FAILED,
     GB_DYNAMODB_NOT_APPLIED},
    {"damaged",
     make_put,
     false,
     {.status = 200, .body = "{}", .headers = "x-amz-crc32: 1\n"},
     {.status = 200, .body = "{}"},
     1,
     GB_CONNECTION_LOST,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"garbage",
     make_put,
     false,
     {.status = 200, .body = "{\"Attributes\":"},
     {0},
     1,
     GB_UNAVAILABLE,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"transaction again",
     make_transaction,
     false,
     {.fail = GB_TIMEOUT},
     {.status = 200, .body = "{}"},
     2,
     GB_OK,
     GB_DYNAMODB_NO_ERROR,
     GB_DYNAMODB_APPLIED},
    {"transaction still runs",
     make_transaction,
     false,
     {.fail = GB_TIMEOUT},
     {.status = 400, .body = "{\"__type\":\"TransactionInProgressException\"}"},
     3,
     GB_UNAVAILABLE,
     GB_DYNAMODB_IN_PROGRESS,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"transaction of an earlier call runs",
     make_transaction,
     false,
     {.status = 400, .body = "{\"__type\":\"TransactionInProgressException\"}"},
     {.status = 400, .body = "{\"__type\":\"TransactionInProgressException\"}"},
     3,
     GB_UNAVAILABLE,
     GB_DYNAMODB_IN_PROGRESS,
     GB_DYNAMODB_OUTCOME_UNKNOWN},
    {"cancelled by a condition",
     make_transaction,
     false,
     {.status = 400,
      .body = CANCELLED("{\"Code\":\"TransactionConflict\"},{\"Code\":"
                        "\"ConditionalCheckFailed\"}")},
     {0},
     1,
     GB_VERSION_MISMATCH,
     GB_DYNAMODB_CANCELLED,
     GB_DYNAMODB_NOT_APPLIED},
    {"cancelled by a conflict",
     make_transaction,
     false,
     {.status = 400, .body = CANCELLED("{\"Code\":\"None\"},{\"Code\":\"TransactionConflict\"}")},
     {0},
     1,
     GB_UNAVAILABLE,
     GB_DYNAMODB_CANCELLED,
     GB_DYNAMODB_NOT_APPLIED},
    {"cancelled by throttling",
     make_transaction,
     false,
     {.status = 400, .body = CANCELLED("{\"Code\":\"ThrottlingError\"}")},
     {0},
     1,
     GB_THROTTLED,
     GB_DYNAMODB_CANCELLED,
     GB_DYNAMODB_NOT_APPLIED},
    {"cancelled without reasons",
     make_transaction,
     false,
     {.status = 400, .body = "{\"__type\":\"TransactionCanceledException\"}"},
     {0},
     1,
     GB_UNAVAILABLE,
     GB_DYNAMODB_CANCELLED,
     GB_DYNAMODB_NOT_APPLIED},
    {"no table",
     make_query,
     false,
     {.status = 400, .body = "{\"__type\":\"ResourceNotFoundException\"}"},
     {0},
     1,
     GB_NOT_FOUND,
     GB_DYNAMODB_NO_TABLE,
     GB_DYNAMODB_NOT_APPLIED},
    {"token expired twice",
     make_put,
     false,
     {.status = 400, .body = "{\"__type\":\"ExpiredTokenException\"}"},
     {.status = 400, .body = "{\"__type\":\"ExpiredTokenException\"}"},
     2,
     GB_TEMPORARY_AUTH_FAILURE,
     GB_DYNAMODB_TOKEN_EXPIRED,
     GB_DYNAMODB_NOT_APPLIED},
};

static void ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof end_rows / sizeof end_rows[0]; i++) {
        const struct end_row *row = &end_rows[i];
        struct bench b;
        open_bench(&b);
        row->make(&b.calls[0]);
        b.calls[0].repeatable = row->repeatable;
        fake_http_add(&b.http, row->first);
        b.http.standing = row->rest;
        const struct gb_dynamodb_call *call = run(&b);
        if (call->op.result.code != row->code || call->error != row->error ||
            call->outcome != row->outcome || b.http.count != row->requests) {
            fail_msg("%s: %s, %s, outcome %d after %zu requests", row->name,
                     call->op.result.message, gb_dynamodb_error_name(call->error), call->outcome,
                     b.http.count);
        }
        if (row->error == GB_DYNAMODB_CONDITION_FAILED)
            assert_true(gb_bytes_equal_c(call->answer.item, "{\"v\":{\"N\":\"2\"}}"));
        if (row->code != GB_OK) assert_non_null(strstr(call->op.result.message, "table \"t\": "));
        close_bench(&b);
    }
}

static void cancelled_transaction_names_the_action(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    make_transaction(&b.calls[0]);
    fake_http_add(&b.http, answer(400, CANCELLED("{\"Code\":\"None\"},{\"Code\":"
                                                 "\"ProvisionedThroughputExceeded\"}")));
    assert_string_equal(run(&b)->op.result.message,
                        "table \"t\": TransactWriteItems: transaction cancelled, action 1: "
                        "throughput_exceeded");
    struct gb_dynamodb_reason r[2];
    assert_int_equal(gb_dynamodb_reasons_read(b.calls[0].answer.reasons, r, 2), 2);
    assert_int_equal(r[1].error, GB_DYNAMODB_THROUGHPUT_EXCEEDED);
    close_bench(&b);
}

/* --- tokens and pages --- */

static void token_stays_for_a_repetition(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    for (int i = 0; i < 2; i++) {
        gb_dynamodb_begin(&b.calls[0], GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
        gb_dynamodb_action(&b.calls[0], GB_DYNAMODB_PUT_ITEM, "t");
        gb_dynamodb_action_end(&b.calls[0]);
        b.http.standing = answer(500, "{}");
        assert_int_equal(run(&b)->op.result.code, GB_UNAVAILABLE);
        b.http.standing = answer(200, "{}");
        assert_int_equal(run(&b)->op.result.code, GB_OK);
    }
    assert_int_equal(b.http.count, 8);
    struct gb_bytes first = gb_str_bytes(&b.http.notes[0].body);
    for (size_t i = 1; i < 8; i++) {
        bool same = gb_bytes_equal(first, gb_str_bytes(&b.http.notes[i].body));
        assert_int_equal(same, i < 4); /* then it is another transaction */
    }
    close_bench(&b);
}

static void next_page_begins_from_the_last(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_dynamodb_call *call = &b.calls[0];
    gb_dynamodb_begin(call, GB_DYNAMODB_SCAN, "t");
    fake_http_add(&b.http,
                  answer(200, "{\"Items\":[{}],\"LastEvaluatedKey\":{\"PK\":{\"S\":\"k\"}}}"));
    b.http.standing = answer(200, "{\"Items\":[]}");
    run(&b);
    assert_true(call->answer.last_key.size > 0);
    gb_dynamodb_begin(call, GB_DYNAMODB_SCAN, "t");
    gb_dynamodb_start_key(call, call->answer.last_key);
    run(&b);
    assert_true(fake_http_body_has(&b.http, 1, "\"ExclusiveStartKey\":{\"PK\":{\"S\":\"k\"}}"));
    assert_int_equal(call->answer.last_key.size, 0);
    close_bench(&b);
}

/* --- what is not sent --- */

static void put_of(struct gb_dynamodb_call *call, size_t filler)
{
    struct gb_str text = {0};
    for (size_t i = 0; i < filler; i++) gb_str_append_char(&text, 'x');
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, "t");
    gb_dynamodb_object(call, GB_DYNAMODB_ITEM);
    gb_dynamodb_w_s(&call->w, "PK", gb_str_bytes(&text));
    gb_dynamodb_object_end(call);
    gb_str_deinit(&text);
}

static void large_items_are_not_sent(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.http.standing = answer(200, "{}");
    put_of(&b.calls[0], GB_DYNAMODB_ITEM_BYTES_MAX - 2);
    assert_int_equal(run(&b)->op.result.code, GB_OK);
    put_of(&b.calls[0], GB_DYNAMODB_ITEM_BYTES_MAX - 1);
    const struct gb_dynamodb_call *call = run(&b);
    assert_int_equal(call->op.result.code, GB_PAYLOAD_TOO_LARGE);
    assert_string_equal(call->op.result.message, "table \"t\": PutItem: an item of 409601 bytes; "
                                                 "DynamoDB takes at most 409600");
    assert_int_equal(call->outcome, GB_DYNAMODB_NOT_APPLIED);
    assert_int_equal(b.http.count, 1);
    close_bench(&b);
}

static void large_transactions_are_not_sent(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.http.standing = answer(200, "{}");
    for (size_t n = GB_DYNAMODB_TRANSACTION_MAX; n <= GB_DYNAMODB_TRANSACTION_MAX + 1; n++) {
        gb_dynamodb_begin(&b.calls[0], GB_DYNAMODB_TRANSACT_WRITE_ITEMS, NULL);
        for (size_t i = 0; i < n; i++) {
            gb_dynamodb_action(&b.calls[0], GB_DYNAMODB_PUT_ITEM, "t");
            gb_dynamodb_action_end(&b.calls[0]);
        }
        bool fits = n == GB_DYNAMODB_TRANSACTION_MAX;
        assert_int_equal(run(&b)->op.result.code, fits ? GB_OK : GB_INVALID_PAYLOAD);
    }
    assert_int_equal(b.http.count, 1);
    close_bench(&b);
}

static void region_is_needed(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.region = NULL;
    struct gb_dynamodb_client *client = NULL;
    const struct gb_dynamodb_client_cfg cfg = {
        .reactor = b.r,
        .http = &b.http.http,
        .credentials = b.credentials,
        .env = {.get = env, .read_file = no_file, .ctx = &b},
    };
    struct gb_err err = gb_dynamodb_client_new(&cfg, &client);
    assert_int_equal(err.code, GB_INVALID_CONFIG);
    assert_null(client);
    close_bench(&b);
}

/* --- many calls --- */

static void calls_wait_in_order(void **state)
{
    struct bench b;
    (void)state;
    open_with(&b, 2, 3); /* the standing answer holds */
    for (size_t i = 0; i < 6; i++) {
        begin_get(&b, i);
        start(&b, i);
    }
    assert_int_equal(b.http.count, 2);
    assert_int_equal(b.done[5], 1); /* 2 run, 3 wait */
    assert_int_equal(b.calls[5].op.result.code, GB_UNAVAILABLE);
    assert_string_equal(b.calls[5].op.result.message,
                        "table \"t\": GetItem: 3 calls to DynamoDB wait already");
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(b.done[i], 0);
        fake_http_answer(&b.http, i, answer(200, "{}"));
        turn(&b);
        assert_int_equal(b.done[i], 1);
        assert_int_equal(b.http.count, i + 3 < 5 ? i + 3 : 5);
    }
    for (unsigned i = 0; i < 5; i++) assert_int_equal(b.order[i + 1], i);
    close_bench(&b);
}

static void waiting_calls_have_their_deadlines(void **state)
{
    struct bench b;
    (void)state;
    open_with(&b, 1, 8);
    for (size_t i = 0; i < 4; i++) begin_get(&b, i);
    start_in(&b, 0, 100 * GB_SEC);
    start_in(&b, 1, 30 * GB_SEC);
    start_in(&b, 2, 10 * GB_SEC);
    start_in(&b, 3, 20 * GB_SEC);
    turn(&b);
    pass(&b, 10 * GB_SEC - 1);
    assert_int_equal(b.done[2], 0);
    pass(&b, 1);
    assert_int_equal(b.done[2], 1);
    assert_int_equal(b.calls[2].op.result.code, GB_TIMEOUT);
    assert_int_equal(b.calls[2].outcome, GB_DYNAMODB_NOT_APPLIED);
    pass(&b, 10 * GB_SEC);
    assert_int_equal(b.done[3], 1);
    assert_int_equal(b.done[1], 0);
    fake_http_answer(&b.http, 0, answer(200, "{}"));
    turn(&b);
    assert_int_equal(b.http.count, 2);
    fake_http_answer(&b.http, 1, answer(200, "{}"));
    turn(&b);
    assert_int_equal(b.calls[1].op.result.code, GB_OK);
    close_bench(&b);
}

static void cancelled_calls(void **state)
{
    struct bench b;
    (void)state;
    open_with(&b, 1, 8);
    make_put(&b.calls[0]);
    make_put(&b.calls[1]);
    start(&b, 0);
    start(&b, 1);
    gb_op_cancel(&b.calls[1].op); /* it waits */
    turn(&b);
    assert_int_equal(b.done[1], 1);
    assert_int_equal(b.calls[1].op.result.code, GB_CANCELLED);
    assert_int_equal(b.calls[1].outcome, GB_DYNAMODB_NOT_APPLIED);
    gb_op_cancel(&b.calls[0].op); /* it is under way */
    turn(&b);
    assert_int_equal(b.done[0], 1);
    assert_int_equal(b.calls[0].op.result.code, GB_CANCELLED);
    assert_string_equal(b.calls[0].op.result.message, "");
    assert_int_equal(b.calls[0].outcome, GB_DYNAMODB_OUTCOME_UNKNOWN);
    gb_op_cancel(&b.calls[0].op); /* it is done */
    assert_int_equal(b.http.count, 1);

    b.http.standing = answer(200, "{}");
    make_put(&b.calls[0]);
    start_in(&b, 0, GB_SEC);
    gb_op_cancel(&b.calls[0].op); /* the answer was there first */
    turn(&b);
    assert_int_equal(b.calls[0].op.result.code, GB_OK);
    close_bench(&b);
}

static void on_closed(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct bench *)arg)->closed++;
}

static void close_ends_all_calls(void **state)
{
    (void)state;
    for (size_t running = 0; running < 3; running++) {
        struct bench b;
        open_with(&b, 2, 8);
        for (size_t i = 0; i < 2 * running; i++) {
            begin_get(&b, i);
            start(&b, i);
        }
        gb_dynamodb_client_close(b.client, &b.close_op, on_closed, &b);
        assert_int_equal(b.closed, 0);
        if (running > 0) {
            begin_get(&b, 7);
            start_in(&b, 7, GB_SEC); /* refused while it closes */
        }
        turn(&b);
        b.client = NULL;
        assert_int_equal(b.closed, 1);
        for (size_t i = 0; i < 2 * running; i++) {
            assert_int_equal(b.done[i], 1);
            assert_int_equal(b.calls[i].op.result.code, GB_CANCELLED);
        }
        if (running > 0) assert_int_equal(b.calls[7].op.result.code, GB_UNAVAILABLE);
        close_bench(&b);
    }
}

/* --- consumed capacity --- */

static void print(void *arg, const struct gb_dynamodb_usage *u)
{
    gb_str_appendf(arg, "%s %s/%s c%llu f%llu a%llu r%llu w%llu\n",
                   gb_dynamodb_action_name(u->action), u->table, u->index,
                   (unsigned long long)u->calls, (unsigned long long)u->failures,
                   (unsigned long long)u->attempts, (unsigned long long)u->read_units,
                   (unsigned long long)u->write_units);
}

static void usage_is_counted(void **state)
{
    struct bench b;
    struct gb_str text = {0};
    (void)state;
    open_bench(&b);
    const char *put = "{\"ConsumedCapacity\":{\"TableName\":\"t\",\"CapacityUnits\":3,\"Table\":"
                      "{\"CapacityUnits\":1},\"GlobalSecondaryIndexes\":{\"I\":"
                      "{\"CapacityUnits\":2}}}}";
    fake_http_add(&b.http, answer(200, put));
    fake_http_add(&b.http, answer(400, "{\"__type\":\"ThrottlingException\"}"));
    fake_http_add(&b.http, answer(200, put));
    fake_http_add(&b.http, answer(400, FAILED));
    for (int i = 0; i < 3; i++) {
        make_put(&b.calls[0]);
        run(&b);
    }
    fake_http_add(&b.http, answer(200, "{\"ConsumedCapacity\":{\"TableName\":\"t\","
                                       "\"CapacityUnits\":0.5}}"));
    begin_get(&b, 0);
    run(&b);
    gb_dynamodb_usage_visit(b.client, print, &text);
    assert_string_equal(text.data, "PutItem t/ c3 f1 a4 r0 w2000\nPutItem t/I c0 f0 a0 r0 w4000\n"
                                   "GetItem t/ c1 f0 a1 r500 w0\n");
    struct gb_dynamodb_usage sum = gb_dynamodb_usage_sum(b.client, NULL, GB_DYNAMODB_ACTIONS);
    assert_true(sum.calls == 4 && sum.write_units == 6000 && sum.read_units == 500);
    sum = gb_dynamodb_usage_sum(b.client, "t", GB_DYNAMODB_PUT_ITEM);
    assert_true(sum.calls == 3 && sum.failures == 1 && sum.write_units == 6000);
    sum = gb_dynamodb_usage_sum(b.client, "u", GB_DYNAMODB_ACTIONS);
    assert_int_equal(sum.calls, 0);
    assert_int_equal(gb_dynamodb_usage_lost(b.client), 0);
    gb_str_deinit(&text);
    close_bench(&b);
}

static void usage_is_bounded(void **state)
{
    struct bench b;
    struct gb_str body = {0};
    (void)state;
    open_bench(&b);
    gb_str_append_c(&body, "{\"ConsumedCapacity\":[");
    for (int i = 0; i < GB_DYNAMODB_USAGE_MAX + 5; i++) {
        gb_str_appendf(&body, "%s{\"TableName\":\"t%d\",\"CapacityUnits\":1}", i == 0 ? "" : ",",
                       i);
    }
    gb_str_append_c(&body, "]}");
    b.http.standing = answer(200, body.data);
    begin_get(&b, 0);
    run(&b);
    assert_int_equal(gb_dynamodb_usage_lost(b.client), 6); /* the call itself is a series */
    struct gb_dynamodb_usage sum = gb_dynamodb_usage_sum(b.client, NULL, GB_DYNAMODB_ACTIONS);
    assert_int_equal(sum.read_units, (GB_DYNAMODB_USAGE_MAX - 1) * 1000);
    gb_str_deinit(&body);
    close_bench(&b);
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
        cmocka_unit_test(requests),
        cmocka_unit_test(ends),
        cmocka_unit_test(cancelled_transaction_names_the_action),
        cmocka_unit_test(token_stays_for_a_repetition),
        cmocka_unit_test(next_page_begins_from_the_last),
        cmocka_unit_test(large_items_are_not_sent),
        cmocka_unit_test(large_transactions_are_not_sent),
        cmocka_unit_test(region_is_needed),
        cmocka_unit_test(calls_wait_in_order),
        cmocka_unit_test(waiting_calls_have_their_deadlines),
        cmocka_unit_test(cancelled_calls),
        cmocka_unit_test(close_ends_all_calls),
        cmocka_unit_test(usage_is_counted),
        cmocka_unit_test(usage_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
