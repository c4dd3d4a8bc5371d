#include "adapters/aws/aws_credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"
#include "support/oom.h"

/* Each allocation of a fetch that assumes a role by a profile fails once (spec 04 A4.5). */

static const char *get_env(void *ctx, const char *name)
{
    (void)ctx;
    if (strcmp(name, "AWS_CONFIG_FILE") == 0) return "/config";
    return strcmp(name, "AWS_REGION") == 0 ? "eu-west-1" : NULL;
}

static struct gb_err read_file(void *ctx, const char *path, struct gb_str *out)
{
    (void)ctx;
    if (strcmp(path, "/config") != 0) return gb_err(GB_NOT_FOUND, "%s", path);
    gb_str_append_c(out, "[default]\nrole_arn = r\nsource_profile = default\n"
                         "aws_access_key_id = A\naws_secret_access_key = s\n");
    return gb_str_check(out, "file");
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

static const char sts[] =
    "<R><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
    "<SessionToken>t</SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></R>";

static enum gb_code fetch(struct gb_reactor *r, struct fake_http *http, unsigned n)
{
    struct gb_aws_credentials *c = NULL;
    struct gb_op op = {.deadline_ns = (uint64_t)GB_MINUTE};
    unsigned done = 0;
    struct gb_aws_credentials_cfg cfg = {
        .reactor = r, .http = &http->http, .env = {get_env, read_file, NULL}, .instance_id = "i"};
    gb_oom_fail_at(n);
    struct gb_err err = gb_aws_credentials_new(&cfg, &c);
    if (!gb_failed(err)) {
        gb_aws_credentials_get(c, &op, count, &done);
        for (uint64_t i = 1; i < 4; i++) gb_reactor_run(r, i * (uint64_t)GB_SEC, 1);
        assert_int_equal(done, 1);
        err = op.result;
    }
    gb_oom_off();
    gb_aws_credentials_unref(c);
    gb_reactor_run(r, (uint64_t)(4 * GB_SEC), 1);
    return err.code;
}

static void fetching(void **state)
{
    unsigned n = 0;
    enum gb_code code;
    (void)state;
    do {
        struct gb_reactor *r = NULL;
        struct fake_http http;
        assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
        fake_http_init(&http, r);
        http.no_notes = true;
        http.standing = (struct fake_http_answer){.status = 200, .body = sts};
        code = fetch(r, &http, ++n);
        assert_true(code == GB_OK || code == GB_UNAVAILABLE || code == GB_TEMPORARY_AUTH_FAILURE);
        fake_http_deinit(&http);
        gb_reactor_free(r);
    } while (code != GB_OK);
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fetching)};
    gb_log_set_sink(quiet, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
