#include "adapters/aws/aws_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"
#include "support/oom.h"

/* Allocation ladders of the client and of one call. */

enum { LADDER_MAX = 200 };

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
    return gb_err(GB_NOT_FOUND, "%s", path);
}

static void count(struct gb_op *op, void *arg)
{
    (void)op;
    (*(unsigned *)arg)++;
}

struct bench {
    struct gb_reactor *r;
    struct fake_http http;
    struct gb_aws_credentials *credentials;
    struct gb_aws_client *client;
};

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(gb_reactor_new(1, &b->r).code, GB_OK);
    gb_reactor_run(b->r, 1, 1);
    fake_http_init(&b->http, b->r);
    b->http.no_notes = true;
    b->http.standing = (struct fake_http_answer){.status = 200, .body = "{}"};
    const struct gb_aws_credentials_cfg cfg = {.reactor = b->r,
                                               .http = &b->http.http,
                                               .env = {no_env, no_file, NULL},
                                               .access_key_id = "A",
                                               .secret_access_key = "s"};
    assert_int_equal(gb_aws_credentials_new(&cfg, &b->credentials).code, GB_OK);
}

static struct gb_err make(struct bench *b)
{
    const struct gb_aws_client_cfg cfg = {.reactor = b->r,
                                          .http = &b->http.http,
                                          .credentials = b->credentials,
                                          .service = "sqs",
                                          .target_prefix = "AmazonSQS",
                                          .content_type = "application/x-amz-json-1.0",
                                          .region = "eu-west-1",
                                          .endpoint = "http://localhost:9324",
                                          .attempt_timeout_ns = GB_SEC,
                                          .attempts_max = 1,
                                          .classify = gb_aws_classify_default};
    return gb_aws_client_new(&cfg, &b->client);
}

static void close_bench(struct bench *b)
{
    gb_aws_client_free(b->client);
    gb_aws_credentials_unref(b->credentials);
    gb_reactor_run(b->r, 100 * (uint64_t)GB_SEC, 1);
    fake_http_deinit(&b->http);
    gb_reactor_free(b->r);
}

static void constructor(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b);
    unsigned n = 0;
    struct gb_err err;
    do {
        assert_true(++n < LADDER_MAX);
        gb_oom_fail_at(n);
        err = make(&b);
        gb_oom_off();
        assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
        assert_int_equal(b.client != NULL, err.code == GB_OK);
    } while (gb_failed(err));
    assert_true(n > 5);
    close_bench(&b);
}

static enum gb_code call_failing_at(unsigned n)
{
    struct bench b;
    unsigned done = 0;
    open_bench(&b);
    assert_int_equal(make(&b).code, GB_OK);
    struct gb_aws_call call = {.op = {.deadline_ns = 50 * (uint64_t)GB_SEC}, .action = "Send"};
    gb_str_append_c(&call.body, "{}");
    gb_oom_fail_at(n);
    gb_aws_call_start(b.client, &call, count, &done);
    for (uint64_t i = 1; i < 60; i++) gb_reactor_run(b.r, i * (uint64_t)GB_SEC, 1);
    gb_oom_off();
    assert_int_equal(done, 1);
    enum gb_code code = call.op.result.code;
    gb_aws_call_deinit(&call);
    close_bench(&b);
    return code;
}

static void call(void **state)
{
    (void)state;
    unsigned n = 0;
    enum gb_code code;
    do {
        assert_true(++n < LADDER_MAX);
        code = call_failing_at(n);
        /* Keys that can't be copied count as keys that are not there yet. */
        assert_true(code == GB_OK || code == GB_UNAVAILABLE || code == GB_TEMPORARY_AUTH_FAILURE);
    } while (code != GB_OK);
    assert_true(n > 3);
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
        cmocka_unit_test(call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
