#include "support/dynamodb_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/json_read.h"
#include "base/log.h"
#include "support/oom.h"

enum { TURNS_MAX = 100 };

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

void dynamodb_bench_open(struct dynamodb_bench *b, const char *body)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(gb_reactor_new(1, &b->r).code, GB_OK);
    b->now_ns = 1;
    gb_reactor_run(b->r, b->now_ns, 1000);
    fake_http_init(&b->http, b->r);
    b->http.no_notes = true;
    b->http.standing = dynamodb_bench_body(body);
    const struct gb_aws_credentials_cfg cfg = {.reactor = b->r,
                                               .http = &b->http.http,
                                               .env = {env, no_file, NULL},
                                               .access_key_id = "A",
                                               .secret_access_key = "s"};
    assert_int_equal(gb_aws_credentials_new(&cfg, &b->credentials).code, GB_OK);
}

struct gb_err dynamodb_bench_client(struct dynamodb_bench *b, uint32_t attempts_max)
{
    const struct gb_dynamodb_client_cfg cfg = {.reactor = b->r,
                                               .http = &b->http.http,
                                               .credentials = b->credentials,
                                               .env = {env, no_file, NULL},
                                               .attempts_max = attempts_max};
    return gb_dynamodb_client_new(&cfg, &b->client);
}

void dynamodb_bench_done(struct gb_op *op, void *bench)
{
    (void)op;
    ((struct dynamodb_bench *)bench)->done++;
}

void dynamodb_bench_run(struct dynamodb_bench *b)
{
    unsigned done = b->done;
    for (int i = 0; i < TURNS_MAX && b->done == done; i++) {
        b->now_ns += (uint64_t)GB_SEC;
        gb_reactor_run(b->r, b->now_ns, 1000);
    }
    assert_int_equal(b->done, done + 1);
}

static bool constructor_failing_at(const void *arg, unsigned n)
{
    struct gb_err (*const *make)(void) = arg;
    gb_oom_fail_at(n);
    struct gb_err err = (*make)();
    gb_oom_off();
    assert_true(err.code == GB_OK || err.code == GB_UNAVAILABLE);
    return !gb_failed(err);
}

void dynamodb_bench_constructor(struct gb_err (*make)(void))
{
    assert_true(gb_oom_ladder(constructor_failing_at, &make) > 2);
}

void dynamodb_bench_close(struct dynamodb_bench *b)
{
    gb_dynamodb_client_free(b->client);
    gb_aws_credentials_unref(b->credentials);
    gb_reactor_run(b->r, b->now_ns + 100 * (uint64_t)GB_SEC, 1);
    fake_http_deinit(&b->http);
    gb_reactor_free(b->r);
}

static void drop_line(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

void dynamodb_bench_quiet(void)
{
    gb_log_set_sink(drop_line, NULL);
}

void dynamodb_bench_check(const struct gb_op *op)
{
    enum gb_code code = op->result.code;
    /* Keys that can't be copied count as keys that are not there yet. */
    if (code != GB_OK && code != GB_UNAVAILABLE && code != GB_TEMPORARY_AUTH_FAILURE)
        fail_msg("%s: %s", gb_code_name(code), op->result.message);
}

/* --- requests --- */

void dynamodb_bench_whole(const struct gb_http_request *q)
{
    struct gb_json_reader r;
    gb_json_init(&r, gb_str_bytes(&q->body));
    bool whole = !q->body.failed && gb_json_next(&r) == GB_JSON_OBJECT_BEGIN && gb_json_skip(&r) &&
                 gb_json_next(&r) == GB_JSON_END;
    if (!whole) fail_msg("a request is no JSON document: %.*s", (int)q->body.size, q->body.data);
}

bool dynamodb_bench_is(const struct gb_http_request *q, const char *action)
{
    for (size_t i = 0; i < q->header_count; i++) {
        if (strcmp(q->headers[i].name, "X-Amz-Target") != 0) continue;
        const char *dot = strchr(q->headers[i].value, '.');
        return dot != NULL && strcmp(dot + 1, action) == 0;
    }
    return false;
}

bool dynamodb_bench_has(const struct gb_http_request *q, const char *text)
{
    return memmem(q->body.data, q->body.size, text, strlen(text)) != NULL;
}

bool dynamodb_bench_text(const struct gb_http_request *q, const char *before, char *out,
                         size_t size)
{
    const char *at = memmem(q->body.data, q->body.size, before, strlen(before));
    if (at == NULL) return false;
    at += strlen(before);
    size_t left = q->body.size - (size_t)(at - q->body.data);
    const char *quote = memchr(at, '"', left);
    assert_true(quote != NULL && (size_t)(quote - at) < size);
    memcpy(out, at, (size_t)(quote - at));
    out[quote - at] = '\0';
    return true;
}

uint64_t dynamodb_bench_number(const struct gb_http_request *q, const char *before)
{
    char digits[32];
    return dynamodb_bench_text(q, before, digits, sizeof digits) ? strtoull(digits, NULL, 10) : 0;
}

struct fake_http_answer dynamodb_bench_body(const char *body)
{
    return (struct fake_http_answer){.status = 200, .body = body};
}

struct fake_http_answer dynamodb_bench_refusal(char *room, size_t size, const char *item)
{
    int used = snprintf(room, size,
                        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
                        "ConditionalCheckFailedException\",\"message\":\"no\"%s%s}",
                        item[0] == '\0' ? "" : ",\"Item\":", item);
    assert_in_range(used, 1, size - 1);
    return (struct fake_http_answer){.status = 400, .body = room};
}

struct fake_http_answer dynamodb_bench_cut(void)
{
    return (struct fake_http_answer){.fail = GB_CONNECTION_LOST};
}
