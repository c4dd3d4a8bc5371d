#include "adapters/sqs/sqs_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "domain/reserved.h"
#include "support/fake_http.h"

enum { SENDS = 40 };
#define SECRET "wJalrXUtnFEMI-SECRET"
#define URL "https://sqs.eu-west-1.amazonaws.com/123456789/telemetry-events"

struct bench {
    struct gb_reactor *r;
    uint64_t now_ns;
    struct fake_http http;
    struct gb_metrics *metrics;
    struct gb_aws_credentials *credentials;
    struct gb_sender *sender;
    struct gb_envelope *envelopes[SENDS];
    struct gb_send sends[SENDS];
    unsigned done[SENDS];
    size_t count;
    struct gb_op close;
    bool closed;
    char log[65536];
    size_t log_size;
};

static const char *no_env(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return NULL;
}

static struct gb_err no_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    (void)out;
    return gb_err(GB_NOT_FOUND, "%s: no such file", path);
}

static struct gb_sqs_sender_cfg defaults(struct bench *b)
{
    return (struct gb_sqs_sender_cfg){
        .id = "out",
        .queue_url = URL,
        .region = "eu-west-1",
        .batch_size = 10,
        .timeout_ns = 30 * GB_SEC,
        .max_message_bytes = 1048576,
        .reactor = b->r,
        .http = &b->http.http,
        .metrics = b->metrics,
        .credentials = b->credentials,
        .env = {.get = no_env, .read_file = no_file},
    };
}

static void turn(struct bench *b)
{
    gb_reactor_run(b->r, b->now_ns, (int64_t)(b->now_ns / 1000000) + INT64_C(1796119200000));
}

static void pass(struct bench *b, int64_t ns)
{
    b->now_ns += (uint64_t)ns;
    turn(b);
}

static void ignore(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
}

static void open_bench(struct bench *b)
{
    *b = (struct bench){.now_ns = 1000000000};
    assert_int_equal(gb_reactor_new(7, &b->r).code, GB_OK);
    turn(b);
    fake_http_init(&b->http, b->r);
    assert_int_equal(gb_metrics_new(&b->metrics).code, GB_OK);
    struct gb_aws_credentials_cfg cfg = {.reactor = b->r,
                                         .http = &b->http.http,
                                         .env = {.get = no_env, .read_file = no_file},
                                         .access_key_id = "AKIDEXAMPLE",
                                         .secret_access_key = SECRET};
    assert_int_equal(gb_aws_credentials_new(&cfg, &b->credentials).code, GB_OK);
    struct gb_op wait = {0}; /* so that no first request waits for them while others pass */
    gb_aws_credentials_get(b->credentials, &wait, ignore, NULL);
    turn(b);
    assert_int_equal(wait.result.code, GB_OK);
}

static void make(struct bench *b, const struct gb_sqs_sender_cfg *cfg)
{
    assert_int_equal(gb_sqs_sender_new(cfg, &b->sender).code, GB_OK);
}

static void start(struct bench *b)
{
    open_bench(b);
    struct gb_sqs_sender_cfg cfg = defaults(b);
    make(b, &cfg);
}

static void on_closed(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct bench *)arg)->closed = true;
}

static void finish(struct bench *b)
{
    if (b->sender != NULL && !b->closed) {
        b->close.deadline_ns = b->now_ns + (uint64_t)GB_SEC;
        b->sender->ops->close(b->sender, &b->close, on_closed, b);
        turn(b);
        pass(b, 2 * GB_SEC);
        assert_true(b->closed);
    }
    for (size_t i = 0; i < b->count; i++) {
        assert_int_equal(b->done[i], 1);
        gb_envelope_unref(b->envelopes[i]);
    }
    gb_aws_credentials_unref(b->credentials);
    turn(b);
    gb_metrics_free(b->metrics);
    fake_http_deinit(&b->http);
    gb_reactor_free(b->r);
}

static void on_done(struct gb_op *op, void *arg)
{
    struct bench *b = arg;
    struct gb_send *send = GB_CONTAINER_OF(op, struct gb_send, op);
    b->done[send - b->sends]++;
}

/* Makes send `count` without starting it. */
static struct gb_envelope *add(struct bench *b, struct gb_bytes payload)
{
    char id[24];
    size_t i = b->count++;
    assert_true(i < SENDS);
    assert_int_equal(gb_envelope_new(payload.size, &b->envelopes[i]).code, GB_OK);
    (void)snprintf(id, sizeof id, "id-%zu", i);
    assert_int_equal(gb_envelope_set_id(b->envelopes[i], gb_bytes_c(id)).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(b->envelopes[i], payload).code, GB_OK);
    b->sends[i] = (struct gb_send){.envelope = b->envelopes[i], .batch = true};
    b->sends[i].op.deadline_ns = b->now_ns + (uint64_t)(60 * GB_SEC);
    return b->envelopes[i];
}

static void put_text(struct gb_envelope *e, const char *name, const char *text)
{
    assert_int_equal(gb_envelope_put_text(e, name, gb_bytes_c(text)).code, GB_OK);
}

static void go(struct bench *b, size_t i)
{
    b->sender->ops->send(b->sender, &b->sends[i], on_done, b);
}

static void send_many(struct bench *b, size_t count, bool batch)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = b->count;
        (void)add(b, gb_bytes_c("hello"));
        b->sends[at].batch = batch;
        go(b, at);
    }
    turn(b);
}

static enum gb_code code(const struct bench *b, size_t i)
{
    assert_int_equal(b->done[i], 1);
    return b->sends[i].op.result.code;
}

static struct fake_http_answer ok_batch(void)
{
    return (struct fake_http_answer){
        .status = 200,
        .body = "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"},{\"Id\":\"2\"},{\"Id\":\"3\"},"
                "{\"Id\":\"4\"},{\"Id\":\"5\"},{\"Id\":\"6\"},{\"Id\":\"7\"},{\"Id\":\"8\"},"
                "{\"Id\":\"9\"}],\"Failed\":[]}"};
}

static struct fake_http_answer ok_single(void)
{
    return (struct fake_http_answer){.status = 200, .body = "{\"MessageId\":\"m\"}"};
}

static struct fake_http_answer error(int status, const char *body)
{
    return (struct fake_http_answer){.status = status, .body = body};
}

static bool target_is(const struct bench *b, size_t i, const char *action)
{
    char value[64];
    (void)snprintf(value, sizeof value, "AmazonSQS.%s", action);
    return fake_http_header_is(&b->http, i, "X-Amz-Target", value);
}

static size_t occurrences(const struct bench *b, size_t i, const char *text)
{
    size_t count = 0;
    const char *at = b->http.notes[i].body.data;
    while ((at = strstr(at, text)) != NULL) {
        count++;
        at += strlen(text);
    }
    return count;
}

/* --- acceptance checks of spec 04 --- */

static void check_04_01_address(void **state)
{
    static const struct {
        const char *address;
        enum gb_code want;
    } rows[] = {{"telemetry-events", GB_OK},
                {"", GB_OK},
                {"sqs:queue", GB_OK},
                {URL, GB_OK},
                {"other-queue", GB_INVALID_TOPIC}};
    struct bench b;
    (void)state;
    start(&b);
    b.http.standing = ok_single();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)add(&b, gb_bytes_c("x"));
        b.sends[i].batch = false;
        b.sends[i].address = gb_bytes_c(rows[i].address);
        go(&b, i);
        turn(&b);
        assert_int_equal(code(&b, i), rows[i].want);
    }
    assert_int_equal(b.http.count, 4); /* no call for the wrong one */
    finish(&b);
}

static void check_04_02_ten_and_eleven(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    fake_http_add(&b.http, ok_batch());
    send_many(&b, 10, true);
    assert_int_equal(b.http.count, 1);
    assert_true(target_is(&b, 0, "SendMessageBatch"));
    assert_int_equal(occurrences(&b, 0, "\"MessageBody\":\"hello\""), 10);
    fake_http_add(&b.http, ok_batch());
    fake_http_add(&b.http, ok_single());
    send_many(&b, 11, true);
    assert_int_equal(b.http.count, 3);
    assert_true(target_is(&b, 1, "SendMessageBatch"));
    assert_true(target_is(&b, 2, "SendMessage"));
    for (size_t i = 0; i < 21; i++) assert_int_equal(code(&b, i), GB_OK);
    finish(&b);
}

static void check_04_03_byte_limits(void **state)
{
    static char payload[300 * 1024];
    struct bench b;
    (void)state;
    memset(payload, 'a', sizeof payload);
    start(&b);
    b.http.standing = ok_batch();
    for (size_t i = 0; i < 5; i++) {
        (void)add(&b, gb_bytes(payload, sizeof payload));
        go(&b, i);
    }
    turn(&b);
    assert_int_equal(b.http.count, 2);
    assert_int_equal(occurrences(&b, 0, "\"Id\":"), 3);
    assert_int_equal(occurrences(&b, 1, "\"Id\":"), 2);
    for (size_t i = 0; i < 5; i++) assert_int_equal(code(&b, i), GB_OK);
    finish(&b);
}

static void check_04_04_entry_results(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    fake_http_add(&b.http,
                  (struct fake_http_answer){
                      .status = 200,
                      .body = "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"},{\"Id\":\"2\"},"
                              "{\"Id\":\"4\"},{\"Id\":\"5\"},{\"Id\":\"6\"},{\"Id\":\"7\"},"
                              "{\"Id\":\"8\"}],\"Failed\":[{\"Id\":\"3\",\"Code\":"
                              "\"InvalidParameterValue\",\"SenderFault\":true}]}"});
    send_many(&b, 10, true);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(code(&b, i), i == 3 ? GB_INVALID_PAYLOAD : GB_OK);
    assert_int_equal(code(&b, 9), GB_UNAVAILABLE); /* in neither list */
    assert_true(gb_err_is_transient(&b.sends[9].op.result));
    finish(&b);
}

static void check_04_07_endpoint_override(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.endpoint = "http://127.0.0.1:4566";
    make(&b, &cfg);
    b.http.standing = ok_single();
    send_many(&b, 1, false);
    assert_string_equal(b.http.notes[0].url, "http://127.0.0.1:4566/");
    assert_true(fake_http_body_has(&b.http, 0, "\"QueueUrl\":\"" URL "\""));
    assert_true(fake_http_headers_have(&b.http, 0,
                                       "SignedHeaders=content-type;host;x-amz-date;"
                                       "x-amz-target, "));
    finish(&b);
}

static void check_04_08_fifo_options(void **state)
{
    struct bench b;
    struct gb_sender *made = NULL;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.queue_url = URL ".fifo";
    assert_int_equal(gb_sqs_sender_new(&cfg, &made).code, GB_INVALID_CONFIG);
    cfg.fifo = true;
    cfg.delay_seconds = 5;
    assert_int_equal(gb_sqs_sender_new(&cfg, &made).code, GB_INVALID_CONFIG);
    cfg.delay_seconds = 0;
    make(&b, &cfg);
    send_many(&b, 1, false); /* no ordering key */
    assert_int_equal(code(&b, 0), GB_INVALID_PAYLOAD);
    assert_int_equal(b.http.count, 0);
    finish(&b);
}

static void check_04_09_same_dedup_id(void **state)
{
    struct bench b;
    char md5[GB_MD5_HEX];
    char want[96];
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.message_group_id = "g";
    make(&b, &cfg);
    b.http.standing = ok_single();
    (void)add(&b, gb_bytes_c("payload"));
    b.sends[0].batch = false;
    assert_int_equal(gb_envelope_set_subject(b.envelopes[0], gb_bytes_c("subject")).code, GB_OK);
    go(&b, 0);
    turn(&b);
    b.done[0] = 0;
    go(&b, 0);
    turn(&b);
    gb_md5_hex(gb_bytes_c("payloadsubjectid-0"), md5);
    (void)snprintf(want, sizeof want, "\"MessageGroupId\":\"g\",\"MessageDeduplicationId\":\"%s\"",
                   md5);
    assert_true(fake_http_body_has(&b.http, 0, want));
    assert_true(fake_http_body_has(&b.http, 1, want));
    finish(&b);
}

static void check_04_10_attribute_ranks(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    b.http.standing = ok_single();
    struct gb_envelope *e = add(&b, gb_bytes_c("x"));
    assert_int_equal(gb_envelope_set_subject(e, gb_bytes_c("s")).code, GB_OK);
    put_text(e, GB_H_CORRELATION_ID, "c");
    for (char c = '9'; c >= '1'; c--) put_text(e, (char[]){'h', c, '\0'}, "v");
    put_text(e, "traceparent", "t");
    put_text(e, GB_H_IDEMPOTENCY_KEY, "k");
    go(&b, 0);
    turn(&b);
    static const char *const in[] = {"\"Subject\":{", "\"traceparent\":{",
                                     "\"x-bridge.idempotency-key\":{", "\"h1\":{", "\"h7\":{"};
    static const char *const out[] = {"\"h8\"", "\"h9\"", "correlation-id"};
    for (size_t i = 0; i < 5; i++) assert_true(fake_http_body_has(&b.http, 0, in[i]));
    for (size_t i = 0; i < 3; i++) assert_false(fake_http_body_has(&b.http, 0, out[i]));
    assert_int_equal(occurrences(&b, 0, "\"DataType\""), 10);
    assert_int_equal(gb_metrics_sum(b.metrics, "SQSDroppedAttributes"), 3);
    finish(&b);
}

static void check_04_11_internal_headers_stay(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    b.http.standing = ok_single();
    struct gb_envelope *e = add(&b, gb_bytes_c("x"));
    put_text(e, GB_H_ROUTE_ID, "r");
    put_text(e, GB_H_SOURCE_ID, "s");
    put_text(e, "X-Bridge.Content-Type", "s");
    put_text(e, GB_H_DEDUP_ID, "d");
    put_text(e, "sqs.SenderId", "s");
    assert_int_equal(gb_envelope_put_number(e, GB_H_SQS_RECEIVE_COUNT, GB_VALUE_INT, 3).code,
                     GB_OK);
    put_text(e, "Subject", "s");
    put_text(e, "AWS.x", "s");
    put_text(e, "a..b", "s");
    go(&b, 0);
    turn(&b);
    assert_false(fake_http_body_has(&b.http, 0, "MessageAttributes"));
    assert_int_equal(gb_metrics_sum(b.metrics, "SQSDroppedAttributes"), 0);
    finish(&b);
}

static void check_04_12_refused_before_the_call(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.max_message_bytes = 1024;
    cfg.payload_encoding = GB_ENCODING_TEXT;
    make(&b, &cfg);
    char payload[1025];
    memset(payload, 'a', sizeof payload);
    (void)add(&b, gb_bytes(payload, sizeof payload));
    (void)add(&b, gb_bytes("a\0b", 3));
    (void)add(&b, gb_bytes(NULL, 0));
    for (size_t i = 0; i < 3; i++) go(&b, i);
    turn(&b);
    assert_int_equal(code(&b, 0), GB_PAYLOAD_TOO_LARGE);
    assert_int_equal(code(&b, 1), GB_INVALID_PAYLOAD);
    assert_int_equal(code(&b, 2), GB_INVALID_PAYLOAD);
    assert_int_equal(b.http.count, 0);
    finish(&b);
}

static void check_04_20_auth_grace(void **state)
{
    struct bench b;
    static const char denied[] = "{\"__type\":\"com.amazonaws.sqs#AccessDeniedException\"}";
    (void)state;
    start(&b);
    b.http.standing = error(400, denied);
    send_many(&b, 1, false);
    assert_int_equal(code(&b, 0), GB_TEMPORARY_AUTH_FAILURE);
    pass(&b, 60 * GB_SEC);
    b.http.standing = error(400, "{\"__type\":\"RequestThrottled\"}");
    send_many(&b, 1, false);
    for (int i = 0; i < 5; i++) pass(&b, GB_SEC);
    assert_int_equal(code(&b, 1), GB_THROTTLED);
    pass(&b, 55 * GB_SEC);
    b.http.standing = error(400, denied);
    send_many(&b, 1, false);
    assert_int_equal(code(&b, 2), GB_TEMPORARY_AUTH_FAILURE); /* 120 s: the edge is inside */
    pass(&b, GB_SEC);
    send_many(&b, 1, false);
    assert_int_equal(code(&b, 3), GB_NOT_AUTHORIZED);
    b.http.standing = ok_single(); /* a success closes the window */
    send_many(&b, 1, false);
    b.http.standing = error(400, denied);
    send_many(&b, 1, false);
    assert_int_equal(code(&b, 5), GB_TEMPORARY_AUTH_FAILURE);
    finish(&b);
}

static void collect_log(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    struct bench *b = arg;
    (void)level;
    size_t room = sizeof b->log - 1 - b->log_size;
    if (size > room) size = room;
    memcpy(b->log + b->log_size, line, size);
    b->log_size += size;
}

static void check_04_40_no_secret_in_log(void **state)
{
    static struct bench b;
    static const char *const bad[] = {SECRET, "Signature=", "AKIDEXAMPLE", "hello"};
    (void)state;
    gb_log_set_level(GB_LOG_DEBUG);
    start(&b);
    gb_log_set_sink(collect_log, &b);
    fake_http_add(&b.http, error(500, "{}"));
    fake_http_add(&b.http, (struct fake_http_answer){.fail = GB_CONNECTION_LOST});
    fake_http_add(&b.http, error(400, "{\"__type\":\"SignatureDoesNotMatch\",\"message\":\"The "
                                      "Canonical String was Signature=" SECRET "\"}"));
    send_many(&b, 1, false);
    for (int i = 0; i < 5; i++) pass(&b, GB_SEC);
    gb_log_set_sink(NULL, NULL);
    gb_log_set_level(GB_LOG_INFO);
    assert_int_equal(code(&b, 0), GB_TEMPORARY_AUTH_FAILURE);
    assert_true(b.log_size > 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(strstr(b.log, bad[i]));
        assert_null(strstr(b.sends[0].op.result.message, bad[i]));
    }
    finish(&b);
}

static void check_04_41_payload_encoding(void **state)
{
    static const struct {
        const char *name;
        const char *payload;
        size_t size;
        enum gb_payload_encoding encoding;
        const char *body;
        bool marked;
    } rows[] = {
        {"binary", "\x00\xff", 2, GB_ENCODING_AUTO, "\"MessageBody\":\"AP8=\"", true},
        {"empty", "", 0, GB_ENCODING_AUTO, "\"MessageBody\":\"=\"", true},
        {"text", "hello", 5, GB_ENCODING_AUTO, "\"MessageBody\":\"hello\"", false},
        {"forced", "hello", 5, GB_ENCODING_BASE64, "\"MessageBody\":\"aGVsbG8=\"", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        open_bench(&b);
        struct gb_sqs_sender_cfg cfg = defaults(&b);
        cfg.payload_encoding = rows[i].encoding;
        make(&b, &cfg);
        b.http.standing = ok_single();
        (void)add(&b, gb_bytes(rows[i].payload, rows[i].size));
        go(&b, 0);
        turn(&b);
        assert_int_equal(code(&b, 0), GB_OK);
        if (!fake_http_body_has(&b.http, 0, rows[i].body)) fail_msg("%s", rows[i].name);
        assert_int_equal(fake_http_body_has(&b.http, 0,
                                            "\"x-bridge.payload-encoding\":{\"DataType\":"
                                            "\"String\",\"StringValue\":\"base64\"}"),
                         rows[i].marked);
        finish(&b);
    }
}

/* --- batching --- */

static void too_long_is_halved_in_order(void **state)
{
    struct bench b;
    static const char too_long[] = "{\"__type\":\"com.amazonaws.sqs#BatchRequestTooLong\"}";
    (void)state;
    start(&b);
    fake_http_add(&b.http, error(400, too_long)); /* 4 */
    fake_http_add(&b.http, ok_batch());           /* 0, 1 */
    fake_http_add(&b.http, error(400, too_long)); /* 2, 3 */
    fake_http_add(&b.http, error(400, too_long)); /* 2 alone */
    fake_http_add(&b.http, ok_single());          /* 3 alone */
    for (size_t i = 0; i < 4; i++) {
        (void)add(&b, gb_bytes_c((char[]){'p', (char)('0' + i), '\0'}));
        go(&b, i);
    }
    turn(&b);
    assert_int_equal(b.http.count, 5);
    assert_true(fake_http_body_has(&b.http, 1, "p0") && fake_http_body_has(&b.http, 1, "p1"));
    assert_false(fake_http_body_has(&b.http, 1, "p2"));
    assert_false(fake_http_body_has(&b.http, 2, "p1")); /* accepted: not sent again */
    assert_true(target_is(&b, 3, "SendMessage"));
    assert_int_equal(code(&b, 0), GB_OK);
    assert_int_equal(code(&b, 1), GB_OK);
    assert_int_equal(code(&b, 2), GB_PAYLOAD_TOO_LARGE);
    assert_int_equal(code(&b, 3), GB_OK);
    finish(&b);
}

static void fifo_has_one_of_a_group_under_way(void **state)
{
    static const char *const groups[] = {"a", "a", "b", "a"};
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.fifo = true;
    make(&b, &cfg);
    for (size_t i = 0; i < 4; i++) {
        put_text(add(&b, gb_bytes_c((char[]){'p', (char)('0' + i), '\0'})), GB_H_ORDERING_KEY,
                 groups[i]);
        go(&b, i);
    }
    turn(&b);
    assert_int_equal(b.http.count, 1); /* p0 and p2; nothing else while they are under way */
    assert_true(fake_http_body_has(&b.http, 0, "p0") && fake_http_body_has(&b.http, 0, "p2"));
    assert_false(fake_http_body_has(&b.http, 0, "p1"));
    fake_http_answer(&b.http, 0, ok_batch());
    turn(&b);
    assert_int_equal(b.http.count, 2);
    assert_true(fake_http_body_has(&b.http, 1, "p1"));
    fake_http_answer(&b.http, 1, ok_single());
    turn(&b);
    assert_true(fake_http_body_has(&b.http, 2, "p3"));
    fake_http_answer(&b.http, 2, ok_single());
    turn(&b);
    finish(&b);
}

static void wrong_md5_is_transient(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    fake_http_add(&b.http,
                  (struct fake_http_answer){.status = 200,
                                            .body = "{\"MessageId\":\"m\",\"MD5OfMessageBody\":"
                                                    "\"5d41402abc4b2a76b9719d911017c592\"}"});
    fake_http_add(&b.http,
                  (struct fake_http_answer){.status = 200,
                                            .body = "{\"MessageId\":\"m\",\"MD5OfMessageBody\":"
                                                    "\"00000000000000000000000000000000\"}"});
    fake_http_add(&b.http, (struct fake_http_answer){.status = 200, .body = "<html>"});
    for (int i = 0; i < 3; i++) send_many(&b, 1, false);
    assert_int_equal(code(&b, 0), GB_OK);
    assert_int_equal(code(&b, 1), GB_UNAVAILABLE);
    assert_int_equal(code(&b, 2), GB_UNAVAILABLE);
    finish(&b);
}

static void direct_sends_go_singly(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    b.http.standing = ok_single();
    send_many(&b, 3, false);
    assert_int_equal(b.http.count, 3);
    finish(&b);
}

static void lingering(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.linger_ns = 100 * GB_MS;
    cfg.batch_size = 3;
    make(&b, &cfg);
    send_many(&b, 1, false);
    assert_int_equal(b.http.count, 1); /* nothing in flight: at once */
    send_many(&b, 1, false);
    assert_int_equal(b.http.count, 1);
    send_many(&b, 2, false);
    assert_int_equal(b.http.count, 2); /* full */
    assert_int_equal(occurrences(&b, 1, "\"Id\":"), 3);
    send_many(&b, 1, false);
    fake_http_answer(&b.http, 0, ok_single());
    turn(&b);
    assert_int_equal(b.http.count, 3); /* one in flight completed */
    send_many(&b, 2, false);
    assert_int_equal(b.http.count, 3);
    pass(&b, 100 * GB_MS);
    assert_int_equal(b.http.count, 4); /* waited long enough */
    fake_http_answer(&b.http, 1, ok_batch());
    fake_http_answer(&b.http, 2, ok_single());
    fake_http_answer(&b.http, 3, ok_batch());
    turn(&b);
    finish(&b);
}

static void requests_are_limited(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.requests_max = 2;
    make(&b, &cfg);
    send_many(&b, 5, false);
    assert_int_equal(b.http.count, 2);
    fake_http_answer(&b.http, 1, ok_single());
    turn(&b);
    assert_int_equal(b.http.count, 3);
    b.sends[4].op.deadline_ns = b.now_ns + (uint64_t)GB_SEC; /* noticed with the earliest */
    b.http.standing = ok_single();
    fake_http_answer(&b.http, 0, ok_single());
    fake_http_answer(&b.http, 2, ok_single());
    turn(&b);
    for (size_t i = 0; i < 5; i++) assert_int_equal(code(&b, i), GB_OK);
    finish(&b);
}

static void waiting_sends_time_out(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.requests_max = 1;
    make(&b, &cfg);
    (void)add(&b, gb_bytes_c("a"));
    (void)add(&b, gb_bytes_c("b"));
    b.sends[0].batch = b.sends[1].batch = false;
    b.sends[1].op.deadline_ns = b.now_ns + (uint64_t)GB_SEC;
    go(&b, 0);
    go(&b, 1);
    turn(&b);
    pass(&b, GB_SEC);
    assert_int_equal(code(&b, 1), GB_TIMEOUT);
    assert_int_equal(b.done[0], 0);
    fake_http_answer(&b.http, 0, ok_single());
    turn(&b);
    finish(&b);
}

static void cancel_before_during_after(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    for (size_t i = 0; i < 3; i++) (void)add(&b, gb_bytes_c("x"));
    for (size_t i = 0; i < 3; i++) go(&b, i);
    gb_op_cancel(&b.sends[0].op); /* before it is in a request */
    turn(&b);
    assert_int_equal(code(&b, 0), GB_CANCELLED);
    assert_int_equal(occurrences(&b, 0, "\"Id\":"), 2);
    gb_op_cancel(&b.sends[1].op); /* in flight with another one */
    turn(&b);
    assert_int_equal(code(&b, 1), GB_CANCELLED);
    assert_int_equal(b.http.cancels, 0);
    fake_http_answer(&b.http, 0, ok_batch());
    turn(&b);
    assert_int_equal(code(&b, 2), GB_OK);
    gb_op_cancel(&b.sends[2].op); /* after: nothing happens */
    send_many(&b, 1, false);
    gb_op_cancel(&b.sends[3].op); /* the only one: its request ends, too */
    turn(&b);
    assert_int_equal(b.http.cancels, 1);
    finish(&b);
}

static void close_waits_then_cancels(void **state)
{
    struct bench b;
    (void)state;
    start(&b);
    send_many(&b, 2, false);
    b.close.deadline_ns = b.now_ns + (uint64_t)GB_SEC;
    b.sender->ops->close(b.sender, &b.close, on_closed, &b);
    (void)add(&b, gb_bytes_c("late"));
    go(&b, 2);
    turn(&b);
    assert_int_equal(code(&b, 2), GB_UNAVAILABLE);
    fake_http_answer(&b.http, 0, ok_single());
    turn(&b);
    assert_int_equal(code(&b, 0), GB_OK);
    assert_false(b.closed);
    pass(&b, GB_SEC);
    assert_int_equal(code(&b, 1), GB_CANCELLED);
    assert_true(b.closed);
    finish(&b);
}

static void queue_name_is_resolved_once(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.queue_url = NULL;
    cfg.queue_name = "telemetry-events";
    make(&b, &cfg);
    fake_http_add(&b.http, error(400, "{\"__type\":\"QueueDoesNotExist\"}"));
    send_many(&b, 2, false);
    assert_true(target_is(&b, 0, "GetQueueUrl"));
    assert_int_equal(code(&b, 0), GB_NOT_FOUND);
    assert_int_equal(code(&b, 1), GB_NOT_FOUND);
    fake_http_add(&b.http,
                  (struct fake_http_answer){.status = 200, .body = "{\"QueueUrl\":\"" URL "\"}"});
    b.http.standing = ok_single();
    (void)add(&b, gb_bytes_c("x"));
    b.sends[2].address = gb_bytes_c("https://elsewhere/1/telemetry-events");
    go(&b, 2);
    send_many(&b, 2, false);
    assert_int_equal(code(&b, 2), GB_INVALID_TOPIC); /* another URL than the resolved one */
    assert_int_equal(code(&b, 3), GB_OK);
    assert_int_equal(code(&b, 4), GB_OK);
    assert_int_equal(b.http.count, 4); /* two look-ups, two sends */
    finish(&b);
}

static void no_region_is_told_at_first_use(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    struct gb_sqs_sender_cfg cfg = defaults(&b);
    cfg.region = NULL;
    cfg.queue_url = "http://127.0.0.1:4566/1/q";
    make(&b, &cfg);
    send_many(&b, 1, false);
    assert_int_equal(code(&b, 0), GB_INVALID_CONFIG);
    finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_04_01_address),
        cmocka_unit_test(check_04_02_ten_and_eleven),
        cmocka_unit_test(check_04_03_byte_limits),
        cmocka_unit_test(check_04_04_entry_results),
        cmocka_unit_test(check_04_07_endpoint_override),
        cmocka_unit_test(check_04_08_fifo_options),
        cmocka_unit_test(check_04_09_same_dedup_id),
        cmocka_unit_test(check_04_10_attribute_ranks),
        cmocka_unit_test(check_04_11_internal_headers_stay),
        cmocka_unit_test(check_04_12_refused_before_the_call),
        cmocka_unit_test(check_04_20_auth_grace),
        cmocka_unit_test(check_04_40_no_secret_in_log),
        cmocka_unit_test(check_04_41_payload_encoding),
        cmocka_unit_test(too_long_is_halved_in_order),
        cmocka_unit_test(fifo_has_one_of_a_group_under_way),
        cmocka_unit_test(wrong_md5_is_transient),
        cmocka_unit_test(direct_sends_go_singly),
        cmocka_unit_test(lingering),
        cmocka_unit_test(requests_are_limited),
        cmocka_unit_test(waiting_sends_time_out),
        cmocka_unit_test(cancel_before_during_after),
        cmocka_unit_test(close_waits_then_cancels),
        cmocka_unit_test(queue_name_is_resolved_once),
        cmocka_unit_test(no_region_is_told_at_first_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
