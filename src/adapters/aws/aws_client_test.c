#include "adapters/aws/aws_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "support/fake_http.h"

/* 2026-12-01T10:00:00Z at the reactor's start. */
#define WALL_MS INT64_C(1796119200000)

struct bench {
    struct gb_reactor *r;
    uint64_t now_ns;
    struct fake_http http;
    struct gb_aws_credentials *credentials;
    struct gb_aws_client *client;
    struct gb_aws_call call;
    unsigned done;
    const char *token; /* AWS_SESSION_TOKEN */
};

static const char *env(void *ctx, const char *name)
{
    const struct bench *b = ctx;
    if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0) return "AKIDEXAMPLE";
    if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0) return "secret";
    return strcmp(name, "AWS_SESSION_TOKEN") == 0 ? b->token : NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s", path);
}

static void turn(struct bench *b)
{
    gb_reactor_run(b->r, b->now_ns, WALL_MS + (int64_t)(b->now_ns / 1000000));
}

static void pass(struct bench *b, int64_t ns)
{
    b->now_ns += (uint64_t)ns;
    turn(b);
}

static void open_capped(struct bench *b, uint64_t seed, const char *endpoint, int64_t cap_ns)
{
    *b = (struct bench){.now_ns = 1, .token = NULL};
    assert_int_equal(gb_reactor_new(seed, &b->r).code, GB_OK);
    turn(b);
    fake_http_init(&b->http, b->r);
    struct gb_aws_credentials_cfg cfg = {.reactor = b->r,
                                         .http = &b->http.http,
                                         .env = {.get = env, .read_file = no_file, .ctx = b}};
    assert_int_equal(gb_aws_credentials_new(&cfg, &b->credentials).code, GB_OK);
    struct gb_aws_client_cfg client = {.reactor = b->r,
                                       .http = &b->http.http,
                                       .credentials = b->credentials,
                                       .service = "dynamodb",
                                       .target_prefix = "DynamoDB_20120810",
                                       .content_type = "application/x-amz-json-1.0",
                                       .region = "eu-west-1",
                                       .endpoint = endpoint,
                                       .attempt_timeout_ns = 5 * GB_SEC,
                                       .backoff_cap_ns = cap_ns,
                                       .classify = gb_aws_classify_default};
    assert_int_equal(gb_aws_client_new(&client, &b->client).code, GB_OK);
}

static void open_seeded(struct bench *b, uint64_t seed, const char *endpoint)
{
    open_capped(b, seed, endpoint, 0);
}

static void open_bench(struct bench *b)
{
    open_seeded(b, 7, "https://dynamodb.eu-west-1.amazonaws.com");
}

static void close_bench(struct bench *b)
{
    gb_aws_call_deinit(&b->call);
    gb_aws_client_free(b->client);
    gb_aws_credentials_unref(b->credentials);
    fake_http_deinit(&b->http);
    turn(b);
    gb_reactor_free(b->r);
}

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct bench *)arg)->done++;
}

static void call(struct bench *b)
{
    b->done = 0;
    b->call.action = "GetItem";
    gb_str_clear(&b->call.body);
    gb_str_append_c(&b->call.body, "{\"a\":1}");
    b->call.op.deadline_ns = b->now_ns + (uint64_t)(60 * GB_SEC);
    gb_aws_call_start(b->client, &b->call, on_done, b);
    turn(b);
}

/* Until the call is done, or 100 s passed. */
static void wait_done(struct bench *b)
{
    for (int i = 0; i < 1000 && b->done == 0; i++) pass(b, 100 * GB_MS);
    assert_int_equal(b->done, 1);
}

static struct fake_http_answer answer(int status, const char *body)
{
    return (struct fake_http_answer){.status = status, .body = body};
}

static void retries_and_classes(void **state)
{
    static const struct {
        const char *name;
        struct fake_http_answer first;
        size_t requests; /* all answers are like the first */
        enum gb_code want;
    } rows[] = {
        {"ok", {.status = 200, .body = "{}"}, 1, GB_OK},
        {"500", {.status = 500, .body = "{\"__type\":\"InternalServerError\"}"}, 3, GB_UNAVAILABLE},
        {"503 without body", {.status = 503}, 3, GB_UNAVAILABLE},
        {"429", {.status = 429}, 3, GB_THROTTLED},
        {"throttled",
         {.status = 400, .body = "{\"__type\":\"x#ThrottlingException\"}"},
         3,
         GB_THROTTLED},
        {"capacity",
         {.status = 400, .body = "{\"__type\":\"x#ProvisionedThroughputExceededException\"}"},
         3,
         GB_THROTTLED},
        {"lost", {.fail = GB_CONNECTION_LOST}, 3, GB_CONNECTION_LOST},
        {"attempt timeout", {.fail = GB_TIMEOUT}, 3, GB_TIMEOUT},
        {"answer too large", {.fail = GB_PAYLOAD_TOO_LARGE}, 3, GB_UNAVAILABLE},
        {"validation",
         {.status = 400, .body = "{\"__type\":\"x#ValidationException\"}"},
         1,
         GB_INVALID_PAYLOAD},
        {"item size",
         {.status = 400,
          .body = "{\"__type\":\"ValidationException\",\"message\":\"Item size has exceeded\"}"},
         1,
         GB_PAYLOAD_TOO_LARGE},
        {"missing table",
         {.status = 400, .body = "{\"__type\":\"ResourceNotFoundException\"}"},
         1,
         GB_NOT_FOUND},
        {"denied",
         {.status = 400, .body = "{\"__type\":\"AccessDeniedException:http://x\"}"},
         1,
         GB_NOT_AUTHORIZED},
        {"bare 403", {.status = 403, .body = "<html>"}, 1, GB_NOT_AUTHORIZED},
        {"redirect", {.status = 301}, 1, GB_UNAVAILABLE},
        {"bad checksum",
         {.status = 200, .body = "{}", .headers = "x-amz-crc32: 1\n"},
         3,
         GB_CONNECTION_LOST},
        {"good checksum",
         {.status = 200, .body = "{}", .headers = "x-amz-crc32: 2745614147\n"},
         1,
         GB_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        open_bench(&b);
        b.http.standing = rows[i].first;
        call(&b);
        wait_done(&b);
        if (b.call.op.result.code != rows[i].want || b.http.count != rows[i].requests) {
            fail_msg("%s: %s after %zu requests", rows[i].name, gb_code_name(b.call.op.result.code),
                     b.http.count);
        }
        assert_int_equal(b.call.attempts, rows[i].requests);
        assert_string_equal(b.call.body.data, "{\"a\":1}"); /* the caller's again */
        close_bench(&b);
    }
}

/* Whether the service may have done what was asked, and that `send_once` then asks no more. */
static void uncertain_ends(void **state)
{
    static const struct {
        const char *name;
        struct fake_http_answer first; /* then {} */
        bool maybe_done;
        size_t requests, requests_once;
    } rows[] = {
        {"done", {.status = 200, .body = "{}"}, false, 1, 1},
        {"sent twice", {.status = 200, .body = "{}", .resent = true}, true, 1, 1},
        {"not sent", {.fail = GB_CONNECTION_LOST, .unsent = true}, false, 2, 2},
        {"lost", {.fail = GB_CONNECTION_LOST}, true, 2, 1},
        {"timeout", {.fail = GB_TIMEOUT}, true, 2, 1},
        {"500", {.status = 500, .body = "{\"__type\":\"InternalServerError\"}"}, true, 2, 1},
        {"throttled", {.status = 400, .body = "{\"__type\":\"ThrottlingException\"}"}, false, 2, 2},
        {"503 slow down", {.status = 503, .body = "{\"__type\":\"SlowDown\"}"}, false, 2, 2},
        {"damaged", {.status = 200, .body = "{}", .headers = "x-amz-crc32: 1\n"}, true, 2, 1},
        {"damaged error", {.status = 400, .headers = "x-amz-crc32: 1\n"}, true, 2, 1},
        {"refused", {.status = 400, .body = "{\"__type\":\"ValidationException\"}"}, false, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        bool once = i % 2 == 1;
        size_t requests = once ? rows[i / 2].requests_once : rows[i / 2].requests;
        bool maybe_done = rows[i / 2].maybe_done && !(once && rows[i / 2].first.resent);
        open_bench(&b);
        fake_http_add(&b.http, rows[i / 2].first);
        b.http.standing = answer(200, "{}");
        b.call.send_once = once;
        call(&b);
        wait_done(&b);
        if (b.call.maybe_done != maybe_done || b.http.count != requests) {
            fail_msg("%s: %d after %zu requests", rows[i / 2].name, b.call.maybe_done,
                     b.http.count);
        }
        close_bench(&b);
    }
}

static void body_of_an_error_is_kept(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    fake_http_add(&b.http, answer(500, "{\"first\":1}"));
    b.http.standing = answer(400, "{\"__type\":\"ValidationException\"}");
    call(&b);
    wait_done(&b);
    assert_string_equal(b.call.answer.data, "{\"__type\":\"ValidationException\"}");
    b.http.standing = (struct fake_http_answer){.fail = GB_CONNECTION_LOST};
    call(&b);
    wait_done(&b);
    assert_int_equal(b.call.answer.size, 0);
    close_bench(&b);
}

/* Full jitter: each wait lies in 0..min(cap, base * 2^(n-1)), and over many seeds fills that range.
 */
static void jitter_stays_in_bounds(void **state)
{
    static const struct {
        int status;
        int64_t cap_ns; /* 0: 20 s */
        uint64_t spans_ns[2];
    } rows[] = {{500, 0, {100 * GB_MS, 200 * GB_MS}},
                {429, 0, {500 * GB_MS, GB_SEC}},
                {429, 600 * GB_MS, {500 * GB_MS, 600 * GB_MS}},
                {429, 20 * GB_MS, {20 * GB_MS, 20 * GB_MS}}};
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        uint64_t longest[2] = {0, 0};
        for (uint64_t seed = 1; seed <= 100; seed++) {
            struct bench b;
            open_capped(&b, seed, "http://h", rows[row].cap_ns);
            b.http.standing = answer(rows[row].status, "{}");
            call(&b);
            while (b.done == 0) pass(&b, GB_MS);
            for (size_t i = 0; i < 2; i++) {
                uint64_t waited = b.http.notes[i + 1].at_ns - b.http.notes[i].at_ns;
                assert_true(waited <= rows[row].spans_ns[i] + (uint64_t)GB_MS);
                if (waited > longest[i]) longest[i] = waited;
            }
            close_bench(&b);
        }
        for (size_t i = 0; i < 2; i++) assert_true(longest[i] > rows[row].spans_ns[i] * 8 / 10);
    }
}

static void deadline_covers_all_attempts(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.call.action = "GetItem";
    b.call.op.deadline_ns = b.now_ns + (uint64_t)(8 * GB_SEC);
    gb_aws_call_start(b.client, &b.call, on_done, &b);
    turn(&b);
    assert_int_equal(b.http.notes[0].deadline_ns, b.now_ns + (uint64_t)(5 * GB_SEC));
    pass(&b, 5 * GB_SEC);
    fake_http_answer(&b.http, 0, (struct fake_http_answer){.fail = GB_TIMEOUT});
    turn(&b);
    pass(&b, 100 * GB_MS);
    assert_int_equal(b.http.count, 2);
    assert_int_equal(b.http.notes[1].deadline_ns, b.call.op.deadline_ns);
    pass(&b, 3 * GB_SEC);
    fake_http_answer(&b.http, 1, (struct fake_http_answer){.fail = GB_TIMEOUT});
    turn(&b);
    assert_int_equal(b.done, 1); /* no third attempt */
    assert_int_equal(b.call.op.result.code, GB_TIMEOUT);
    close_bench(&b);
}

static void check_04_06_token_and_port_are_signed(void **state)
{
    struct bench b;
    (void)state;
    open_seeded(&b, 7, "http://LocalHost:4566");
    b.token = "TOKEN";
    b.http.standing = answer(200, "{}");
    call(&b);
    assert_string_equal(b.http.notes[0].url, "http://localhost:4566/");
    assert_true(fake_http_header_is(&b.http, 0, "X-Amz-Security-Token", "TOKEN"));
    assert_true(fake_http_headers_have(
        &b.http, 0,
        "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,"));
    /* The signature is that of a request to localhost:4566, so the port was signed. */
    struct gb_sigv4_header headers[] = {
        {gb_bytes_c("content-type"), gb_bytes_c("application/x-amz-json-1.0")},
        {gb_bytes_c("host"), gb_bytes_c("localhost:4566")},
        {gb_bytes_c("x-amz-date"), gb_bytes_c("20261201T100000Z")},
        {gb_bytes_c("x-amz-target"), gb_bytes_c("DynamoDB_20120810.GetItem")},
        {gb_bytes_c("x-amz-security-token"), gb_bytes_c("TOKEN")}};
    struct gb_sigv4_request q = {.method = "POST",
                                 .path = gb_bytes_c("/"),
                                 .headers = headers,
                                 .header_count = 5,
                                 .body = gb_bytes_c("{\"a\":1}"),
                                 .time_ms = WALL_MS,
                                 .region = "eu-west-1",
                                 .service = "dynamodb"};
    struct gb_sigv4_credentials c = {"AKIDEXAMPLE", "secret", "TOKEN"};
    struct gb_sigv4_key key = {0};
    struct gb_str want = {0};
    assert_int_equal(gb_sigv4_sign(&q, &c, &key, &want).code, GB_OK);
    assert_true(fake_http_header_is(&b.http, 0, "Authorization", want.data));
    gb_str_deinit(&want);
    close_bench(&b);
}

static void clock_is_corrected_once(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.http.standing = (struct fake_http_answer){
        .status = 403,
        .body = "{\"__type\":\"x#InvalidSignatureException\",\"message\":\"Signature expired\"}",
        .headers = "date: Tue, 01 Dec 2026 10:10:00 GMT\n"};
    call(&b);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.http.count, 2);
    assert_true(fake_http_header_is(&b.http, 0, "X-Amz-Date", "20261201T100000Z"));
    assert_true(fake_http_header_is(&b.http, 1, "X-Amz-Date", "20261201T101000Z"));
    assert_int_equal(b.call.op.result.code, GB_NOT_AUTHORIZED);
    b.http.standing = answer(200, "{}");
    call(&b); /* the offset stays */
    assert_true(fake_http_header_is(&b.http, 2, "X-Amz-Date", "20261201T101000Z"));
    close_bench(&b);
}

/* A service whose clock jumps about is not followed for ever. */
static void second_skew_is_final(void **state)
{
    static const char refused[] = "{\"__type\":\"RequestTimeTooSkewed\"}";
    struct bench b;
    (void)state;
    open_bench(&b);
    fake_http_add(&b.http,
                  (struct fake_http_answer){.status = 403,
                                            .body = refused,
                                            .headers = "date: Tue, 01 Dec 2026 10:10:00 GMT\n"});
    b.http.standing = (struct fake_http_answer){
        .status = 403, .body = refused, .headers = "date: Tue, 01 Dec 2026 10:30:00 GMT\n"};
    call(&b);
    assert_int_equal(b.http.count, 2);
    assert_int_equal(b.call.op.result.code, GB_NOT_AUTHORIZED);
    close_bench(&b);
}

static void small_skew_is_no_skew(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.http.standing = (struct fake_http_answer){.status = 403,
                                                .body = "{\"__type\":\"SignatureDoesNotMatch\"}",
                                                .headers = "date: Tue, 01 Dec 2026 10:03:59 GMT\n"};
    call(&b);
    assert_int_equal(b.http.count, 1);
    close_bench(&b);
}

static void expired_token_refreshes_once(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.token = "OLD";
    b.http.standing = answer(400, "{\"__type\":\"x#ExpiredTokenException\"}");
    call(&b);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.http.count, 2);
    assert_int_equal(b.call.op.result.code, GB_TEMPORARY_AUTH_FAILURE);
    b.token = "NEW";
    fake_http_add(&b.http, answer(400, "{\"__type\":\"x#ExpiredTokenException\"}"));
    b.http.standing = answer(200, "{}");
    call(&b);
    assert_true(fake_http_header_is(&b.http, 2, "X-Amz-Security-Token", "OLD"));
    assert_true(fake_http_header_is(&b.http, 3, "X-Amz-Security-Token", "NEW"));
    assert_int_equal(b.call.op.result.code, GB_OK);
    close_bench(&b);
}

static void cancel_at_each_stage(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    b.call.action = "GetItem";
    b.call.op.deadline_ns = b.now_ns + (uint64_t)GB_MINUTE;
    gb_aws_call_start(b.client, &b.call, on_done, &b);
    gb_op_cancel(&b.call.op); /* before the credentials are there */
    turn(&b);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.call.op.result.code, GB_CANCELLED);
    assert_int_equal(b.http.count, 0);
    call(&b);
    gb_op_cancel(&b.call.op); /* while the request is out */
    turn(&b);
    assert_int_equal(b.call.op.result.code, GB_CANCELLED);
    b.http.standing = answer(500, "{}");
    call(&b);
    assert_int_equal(b.done, 0);
    gb_op_cancel(&b.call.op); /* while a retry waits */
    turn(&b);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.call.op.result.code, GB_CANCELLED);
    b.http.standing = answer(200, "{}");
    call(&b);
    gb_op_cancel(&b.call.op); /* after */
    turn(&b);
    assert_int_equal(b.done, 1);
    assert_int_equal(b.call.op.result.code, GB_OK);
    close_bench(&b);
}

static void error_parsing(void **state)
{
    static const struct {
        const char *name, *body, *type, *query;
        const char *code, *legacy;
        bool sender;
    } rows[] = {
        {"new form", "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\",\"message\":\"m\"}", "",
         "AWS.SimpleQueueService.NonExistentQueue;Sender", "QueueDoesNotExist",
         "AWS.SimpleQueueService.NonExistentQueue", true},
        {"cut at the colon", "{\"__type\":\"A:http://b#c\"}", "", "", "c", "", false},
        {"colon after", "{\"__type\":\"a#B:http://c\"}", "", "", "B", "", false},
        {"header", "", "Thing:http://x", "", "Thing", "", false},
        {"legacy only", "{}", "", "Old.Code;Receiver", "", "Old.Code", false},
        {"status", "<xml/>", "", "", "HTTP 418", "", false},
        {"not a string", "{\"__type\":[1],\"message\":{}}", "", "", "HTTP 418", "", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_aws_error e;
        gb_aws_error_parse(418, gb_bytes_c(rows[i].body), gb_bytes_c(rows[i].type),
                           gb_bytes_c(rows[i].query), &e);
        if (strcmp(e.code, rows[i].code) != 0 || strcmp(e.legacy_code, rows[i].legacy) != 0)
            fail_msg("%s: \"%s\" \"%s\"", rows[i].name, e.code, e.legacy_code);
        assert_int_equal(e.sender_fault, rows[i].sender);
    }
}

static void bad_endpoints_are_refused(void **state)
{
    static const char *const bad[] = {
        "",           "ftp://h",     "http://", "https://h:0",  "http://h:99999",
        "http://u@h", "http://h/?q", "h:80",    "http://h:80x/"};
    struct bench b;
    (void)state;
    open_bench(&b);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gb_aws_client *made = NULL;
        struct gb_aws_client_cfg cfg = {.reactor = b.r,
                                        .http = &b.http.http,
                                        .credentials = b.credentials,
                                        .service = "sqs",
                                        .target_prefix = "p",
                                        .content_type = "c",
                                        .region = "r",
                                        .endpoint = bad[i],
                                        .classify = gb_aws_classify_default};
        assert_int_equal(gb_aws_client_new(&cfg, &made).code, GB_INVALID_CONFIG);
    }
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_and_classes),
        cmocka_unit_test(uncertain_ends),
        cmocka_unit_test(body_of_an_error_is_kept),
        cmocka_unit_test(jitter_stays_in_bounds),
        cmocka_unit_test(deadline_covers_all_attempts),
        cmocka_unit_test(check_04_06_token_and_port_are_signed),
        cmocka_unit_test(clock_is_corrected_once),
        cmocka_unit_test(second_skew_is_final),
        cmocka_unit_test(small_skew_is_no_skew),
        cmocka_unit_test(expired_token_refreshes_once),
        cmocka_unit_test(cancel_at_each_stage),
        cmocka_unit_test(error_parsing),
        cmocka_unit_test(bad_endpoints_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
