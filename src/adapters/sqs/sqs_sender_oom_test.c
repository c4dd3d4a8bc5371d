#include "adapters/sqs/sqs_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"
#include "support/oom.h"

/* Each allocation of making a sender, and of its first sends, fails once; the result is a value
 * each time. */

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

static void quiet(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg;
    (void)level;
    (void)line;
    (void)size;
}

static void count(struct gb_op *op, void *arg)
{
    (void)op;
    (*(unsigned *)arg)++;
}

struct bench {
    struct gb_reactor *r;
    uint64_t now_ns;
    struct fake_http http;
    struct gb_metrics *metrics;
    struct gb_aws_credentials *credentials;
    struct gb_sender *sender;
    struct gb_envelope *e;
};

static void turn(struct bench *b, int64_t ns)
{
    b->now_ns += (uint64_t)ns;
    gb_reactor_run(b->r, b->now_ns, 1);
}

static void open_bench(struct bench *b)
{
    *b = (struct bench){.now_ns = 1};
    assert_int_equal(gb_reactor_new(1, &b->r).code, GB_OK);
    turn(b, 0);
    fake_http_init(&b->http, b->r);
    b->http.no_notes = true;
    b->http.standing = (struct fake_http_answer){
        .status = 200, .body = "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"}]}"};
    assert_int_equal(gb_metrics_new(&b->metrics).code, GB_OK);
    assert_int_equal(gb_envelope_new(64, &b->e).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(b->e, gb_bytes_c("x")).code, GB_OK);
}

static struct gb_err make(struct bench *b)
{
    struct gb_aws_credentials_cfg keys = {.reactor = b->r,
                                          .http = &b->http.http,
                                          .env = {no_env, no_file, NULL},
                                          .access_key_id = "A",
                                          .secret_access_key = "s"};
    struct gb_err err = gb_aws_credentials_new(&keys, &b->credentials);
    if (gb_failed(err)) return err;
    struct gb_sqs_sender_cfg cfg = {.id = "out",
                                    .queue_url = "http://h/1/q",
                                    .region = "r",
                                    .batch_size = 10,
                                    .timeout_ns = GB_SEC,
                                    .requests_max = 2,
                                    .reactor = b->r,
                                    .http = &b->http.http,
                                    .metrics = b->metrics,
                                    .credentials = b->credentials,
                                    .env = {no_env, no_file, NULL}};
    return gb_sqs_sender_new(&cfg, &b->sender);
}

static void close_bench(struct bench *b)
{
    unsigned closed = 0;
    struct gb_op op = {0};
    if (b->sender != NULL) {
        b->sender->ops->close(b->sender, &op, count, &closed);
        turn(b, 0);
        assert_int_equal(closed, 1);
    }
    gb_aws_credentials_unref(b->credentials);
    turn(b, 0);
    gb_envelope_unref(b->e);
    gb_metrics_free(b->metrics);
    fake_http_deinit(&b->http);
    gb_reactor_free(b->r);
}

static void making(void **state)
{
    unsigned n = 0;
    enum gb_code code;
    (void)state;
    do {
        struct bench b;
        open_bench(&b);
        gb_oom_fail_at(++n);
        code = make(&b).code;
        gb_oom_off();
        assert_true(code == GB_OK || code == GB_UNAVAILABLE);
        close_bench(&b);
    } while (code != GB_OK);
    assert_true(n > 5);
}

static void sending(void **state)
{
    unsigned n = 0;
    bool all_good;
    (void)state;
    do {
        struct bench b;
        struct gb_send sends[2] = {0};
        unsigned done = 0;
        open_bench(&b);
        assert_int_equal(make(&b).code, GB_OK);
        gb_oom_fail_at(++n);
        for (size_t i = 0; i < 2; i++) {
            sends[i].envelope = b.e;
            sends[i].batch = true;
            sends[i].op.deadline_ns = b.now_ns + (uint64_t)GB_MINUTE;
            b.sender->ops->send(b.sender, &sends[i], count, &done);
        }
        for (int i = 0; i < 5; i++) turn(&b, GB_SEC);
        unsigned used = gb_oom_count();
        gb_oom_off();
        assert_int_equal(done, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_true(sends[i].op.result.code == GB_OK ||
                        gb_err_is_transient(&sends[i].op.result));
        }
        all_good = used < n;
        close_bench(&b);
    } while (!all_good);
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(making), cmocka_unit_test(sending)};
    gb_log_set_sink(quiet, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
