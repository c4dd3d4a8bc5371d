#include "adapters/aws/aws_credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/log.h"
#include "support/fake_http.h"

#define WALL_MS INT64_C(1796119200000) /* 2026-12-01T10:00:00Z */
enum { PAIRS = 12 };

struct pair {
    const char *name, *value;
};
struct bench {
    struct gb_reactor *r;
    uint64_t now_ns;
    struct fake_http http;
    struct pair env[PAIRS];
    struct pair files[PAIRS];
    struct gb_aws_credentials *c;
    struct gb_op op;
    unsigned done;
    char log[65536];
    size_t log_size;
};

static const char *find(const struct pair *pairs, const char *name)
{
    for (size_t i = 0; i < PAIRS && pairs[i].name != NULL; i++) {
        if (strcmp(pairs[i].name, name) == 0) return pairs[i].value;
    }
    return NULL;
}

static const char *get_env(void *ctx, const char *name)
{
    return find(((struct bench *)ctx)->env, name);
}

static struct gb_err read_file(void *ctx, const char *path, struct gb_str *out)
{
    const char *text = find(((struct bench *)ctx)->files, path);
    if (text == NULL) return gb_err(GB_NOT_FOUND, "%s: no such file", path);
    gb_str_append_c(out, text);
    return gb_str_check(out, "file");
}

static void set(struct pair *pairs, const char *name, const char *value)
{
    size_t i = 0;
    while (pairs[i].name != NULL && strcmp(pairs[i].name, name) != 0) i++;
    assert_true(i < PAIRS);
    pairs[i] = (struct pair){name, value};
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

static void open_bench(struct bench *b)
{
    *b = (struct bench){0};
    assert_int_equal(gb_reactor_new(3, &b->r).code, GB_OK);
    turn(b);
    fake_http_init(&b->http, b->r);
    set(b->env, "AWS_REGION", "eu-west-1");
}

static void make(struct bench *b, const char *profile)
{
    struct gb_aws_credentials_cfg cfg = {
        .reactor = b->r,
        .http = &b->http.http,
        .env = {.get = get_env, .read_file = read_file, .ctx = b},
        .profile = profile,
        .instance_id = "node 1",
    };
    assert_int_equal(gb_aws_credentials_new(&cfg, &b->c).code, GB_OK);
}

static void close_bench(struct bench *b)
{
    gb_aws_credentials_unref(b->c);
    turn(b);
    fake_http_deinit(&b->http);
    gb_reactor_free(b->r);
}

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct bench *)arg)->done++;
}

static enum gb_code get(struct bench *b)
{
    b->done = 0;
    b->op.deadline_ns = b->now_ns + (uint64_t)(30 * GB_SEC);
    gb_aws_credentials_get(b->c, &b->op, on_done, b);
    for (int i = 0; i < 100 && b->done == 0; i++) pass(b, 100 * GB_MS);
    assert_int_equal(b->done, 1);
    return b->op.result.code;
}

static bool key_is(struct bench *b, const char *id, const char *token)
{
    struct gb_sigv4_credentials c;
    if (!gb_aws_credentials_current(b->c, &c)) return false;
    const char *have = c.session_token == NULL ? "" : c.session_token;
    return strcmp(c.access_key_id, id) == 0 && strcmp(have, token) == 0;
}

#define DOCUMENT(id, token, expiration)                                                            \
    "{\"Code\":\"Success\",\"AccessKeyId\":\"" id                                                  \
    "\",\"SecretAccessKey\":\"s\",\"Token\":\"" token "\",\"Expiration\":\"" expiration "\"}"
#define STS(action, id)                                                                            \
    "<" action "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" action             \
    "Result><Credentials><AccessKeyId>" id                                                         \
    "</AccessKeyId><SecretAccessKey>a&amp;b</SecretAccessKey>"                                     \
    "<SessionToken>T</SessionToken><Expiration>2026-12-01T11:00:00Z</Expiration></"                \
    "Credentials></" action "Result></" action "Response>"

static struct fake_http_answer answer(int status, const char *body)
{
    return (struct fake_http_answer){.status = status, .body = body};
}

static void set_container(struct bench *b)
{
    set(b->env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/creds");
}

static void set_keys(struct bench *b)
{
    set(b->env, "AWS_ACCESS_KEY_ID", "ENVKEY");
    set(b->env, "AWS_SECRET_ACCESS_KEY", "s");
}

static void check_04_39_environment_beats_container(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_keys(&b);
    set_container(&b);
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "ENVKEY", ""));
    assert_int_equal(b.http.count, 0);
    close_bench(&b);
}

static void check_04_39_profile_beats_both(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_keys(&b);
    set_container(&b);
    set(b.env, "HOME", "/home/u");
    set(b.files, "/home/u/.aws/credentials",
        "[other]\naws_access_key_id=OTHER\n[p]\naws_access_key_id = PKEY\naws_secret_access_key = "
        "s\n");
    make(&b, "p");
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "PKEY", ""));
    close_bench(&b);
}

static void check_04_39_container_uri_hosts(void **state)
{
    static const struct {
        const char *uri;
        bool allowed;
    } rows[] = {{"http://example.com", false},     {"http://127.0.0.1.example.com/", false},
                {"http://169.254.170.24/", false}, {"ftp://127.0.0.1/", false},
                {"https://example.com/c", true},   {"http://127.0.0.1:8080/c", true},
                {"http://localhost/c", true},      {"http://169.254.170.23/c", true},
                {"http://[fd00:ec2::23]/c", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        open_bench(&b);
        set(b.env, "AWS_CONTAINER_CREDENTIALS_FULL_URI", rows[i].uri);
        set(b.env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token");
        set(b.files, "/token", "Bearer t\n");
        b.http.standing = answer(200, DOCUMENT("C", "t", "2026-12-01T16:00:00Z"));
        make(&b, NULL);
        enum gb_code want = rows[i].allowed ? GB_OK : GB_INVALID_CONFIG;
        if (get(&b) != want) fail_msg("%s: %s", rows[i].uri, b.op.result.message);
        assert_int_equal(b.http.count, rows[i].allowed ? 1 : 0);
        if (rows[i].allowed)
            assert_true(fake_http_header_is(&b.http, 0, "Authorization", "Bearer t"));
        close_bench(&b);
    }
}

static void check_04_39_metadata_needs_a_token(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    fake_http_add(&b.http, answer(200, "TOKEN"));
    fake_http_add(&b.http, answer(200, "role\n"));
    fake_http_add(&b.http, answer(200, DOCUMENT("I", "t", "2026-12-01T16:00:00Z")));
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "I", "t"));
    assert_string_equal(b.http.notes[0].method, "PUT");
    assert_string_equal(b.http.notes[0].url, "http://169.254.169.254/latest/api/token");
    assert_true(fake_http_header_is(&b.http, 1, "X-aws-ec2-metadata-token", "TOKEN"));
    assert_string_equal(b.http.notes[2].url,
                        "http://169.254.169.254/latest/meta-data/iam/security-credentials/role");
    assert_true(fake_http_header_is(&b.http, 2, "X-aws-ec2-metadata-token", "TOKEN"));
    close_bench(&b);
    open_bench(&b);
    b.http.standing = answer(403, ""); /* no token: nothing else is asked */
    make(&b, NULL);
    assert_int_equal(get(&b), GB_NOT_AUTHORIZED);
    assert_int_equal(b.http.count, 1);
    close_bench(&b);
}

static void check_04_39_renewed_before_expiry(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_container(&b);
    fake_http_add(&b.http, answer(200, DOCUMENT("C1", "t", "2026-12-01T11:00:00Z")));
    fake_http_add(&b.http, answer(200, DOCUMENT("C2", "t", "2026-12-01T12:00:00Z")));
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    assert_string_equal(b.http.notes[0].url, "http://169.254.170.2/v2/creds");
    pass(&b, 54 * GB_MINUTE - GB_SEC); /* 5 min and up to 60 s before expiry */
    assert_int_equal(b.http.count, 1);
    pass(&b, GB_MINUTE + GB_SEC);
    assert_int_equal(b.http.count, 2);
    assert_true(key_is(&b, "C2", "t"));
    close_bench(&b);
}

static void old_set_serves_until_expiry(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_container(&b);
    fake_http_add(&b.http, answer(200, DOCUMENT("C1", "t", "2026-12-01T11:00:00Z")));
    b.http.standing = answer(404, "");
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    for (int i = 0; i < 59; i++) pass(&b, GB_MINUTE);
    assert_true(key_is(&b, "C1", "t"));
    size_t tries = b.http.count;
    assert_true(tries > 2);
    pass(&b, GB_MINUTE);
    assert_false(key_is(&b, "C1", "t"));
    assert_int_equal(get(&b), GB_TEMPORARY_AUTH_FAILURE);
    b.http.standing = answer(200, DOCUMENT("C2", "t", "2026-12-01T18:00:00Z"));
    pass(&b, GB_MINUTE);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "C2", "t"));
    close_bench(&b);
}

static void one_refresh_for_all(void **state)
{
    struct bench b;
    struct gb_op second = {0};
    struct gb_op late = {0};
    (void)state;
    open_bench(&b);
    set_container(&b);
    make(&b, NULL);
    late.deadline_ns = b.now_ns + (uint64_t)GB_SEC;
    gb_aws_credentials_get(b.c, &b.op, on_done, &b);
    gb_aws_credentials_get(b.c, &second, on_done, &b);
    gb_aws_credentials_get(b.c, &late, on_done, &b);
    turn(&b);
    assert_int_equal(b.http.count, 1);
    pass(&b, GB_SEC);
    assert_int_equal(late.result.code, GB_TIMEOUT);
    gb_op_cancel(&second);
    turn(&b);
    assert_int_equal(second.result.code, GB_CANCELLED);
    fake_http_answer(&b.http, 0, answer(200, DOCUMENT("C", "t", "2026-12-01T18:00:00Z")));
    turn(&b);
    assert_int_equal(b.op.result.code, GB_OK);
    assert_int_equal(b.done, 3);
    close_bench(&b);
}

static void freed_while_a_request_is_out(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_container(&b);
    make(&b, NULL);
    gb_aws_credentials_get(b.c, &b.op, on_done, &b);
    turn(&b);
    close_bench(&b);
    assert_int_equal(b.op.result.code, GB_CANCELLED);
}

static void web_identity(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set(b.env, "AWS_WEB_IDENTITY_TOKEN_FILE", "/jwt");
    set(b.env, "AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
    set(b.files, "/jwt", "a.b+c\n");
    b.http.standing = answer(200, STS("AssumeRoleWithWebIdentity", "W"));
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "W", "T"));
    assert_string_equal(b.http.notes[0].url, "https://sts.eu-west-1.amazonaws.com/");
    assert_string_equal(b.http.notes[0].body.data,
                        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn="
                        "arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=gobridge-node-1&"
                        "WebIdentityToken=a.b%2Bc");
    assert_false(fake_http_headers_have(&b.http, 0, "Authorization"));
    close_bench(&b);
}

static void role_by_source_profile(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set(b.env, "AWS_CONFIG_FILE", "/config");
    set(b.env, "AWS_SHARED_CREDENTIALS_FILE", "/credentials");
    set(b.files, "/config",
        "[profile top]\nrole_arn = arn:top\nsource_profile = mid\nexternal_id = x\n"
        "[profile mid]\nrole_arn = arn:mid\nsource_profile = base\nrole_session_name = me\n");
    set(b.files, "/credentials", "[base]\naws_access_key_id = B\naws_secret_access_key = s\n");
    fake_http_add(&b.http, answer(200, STS("AssumeRole", "M")));
    fake_http_add(&b.http, answer(200, STS("AssumeRole", "R")));
    make(&b, "top");
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "R", "T"));
    assert_true(fake_http_headers_have(&b.http, 0, "Credential=B/20261201/eu-west-1/sts/"));
    assert_true(fake_http_body_has(&b.http, 0, "RoleArn=arn%3Amid&RoleSessionName=me"));
    assert_true(fake_http_headers_have(&b.http, 1, "Credential=M/"));
    assert_true(fake_http_header_is(&b.http, 1, "X-Amz-Security-Token", "T"));
    assert_true(fake_http_body_has(&b.http, 1, "&ExternalId=x"));
    close_bench(&b);
}

static void role_by_credential_source(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set_container(&b);
    set(b.env, "AWS_CONFIG_FILE", "/config");
    set(b.files, "/config", "[default]\nrole_arn = arn:r\ncredential_source = EcsContainer\n");
    fake_http_add(&b.http, answer(200, DOCUMENT("C", "ct", "2026-12-01T18:00:00Z")));
    fake_http_add(&b.http, answer(200, STS("AssumeRole", "R")));
    make(&b, NULL);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "R", "T"));
    assert_true(fake_http_header_is(&b.http, 1, "X-Amz-Security-Token", "ct"));
    close_bench(&b);
}

static void profiles_that_cannot_work(void **state)
{
    static const char *const configs[] = {
        "[profile p]\ncredential_process = /bin/x\n",
        "[profile p]\nsso_session = s\n",
        "[profile p]\nregion = r\n",
        "[profile p]\nrole_arn = a\n",
        "[profile p]\nrole_arn=a\nsource_profile=q\n[profile q]\nrole_arn=b\nsource_profile=p",
        "[profile p]\nrole_arn = a\nsource_profile = missing\n",
        "[profile p]\naws_access_key_id = A\n",
        "[profile p]\nrole_arn = a\ncredential_source = Moon\n",
        "[profile q]\n",
        "[profile p\n",
        "[profile p]\nnonsense\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        struct bench b;
        open_bench(&b);
        set(b.env, "AWS_CONFIG_FILE", "/config");
        set(b.files, "/config", configs[i]);
        make(&b, "p");
        if (get(&b) != GB_INVALID_CONFIG) fail_msg("%s", configs[i]);
        assert_int_equal(b.http.count, 0);
        close_bench(&b);
    }
}

static void sts_refusal_is_told(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set(b.env, "AWS_WEB_IDENTITY_TOKEN_FILE", "/jwt");
    set(b.env, "AWS_ROLE_ARN", "arn");
    set(b.files, "/jwt", "j");
    b.http.standing =
        answer(403, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>"
                    "<Message>no &#x27;</Message></Error></ErrorResponse>");
    make(&b, NULL);
    assert_int_equal(get(&b), GB_TEMPORARY_AUTH_FAILURE);
    assert_non_null(strstr(b.op.result.message, "AccessDenied"));
    size_t count = b.http.count;
    assert_int_equal(get(&b), GB_TEMPORARY_AUTH_FAILURE); /* within a second: not asked again */
    assert_int_equal(b.http.count, count);
    close_bench(&b);
}

static void none_lists_what_was_tried(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b);
    set(b.env, "AWS_EC2_METADATA_DISABLED", "TRUE");
    make(&b, NULL);
    assert_int_equal(get(&b), GB_NOT_AUTHORIZED);
    assert_non_null(strstr(b.op.result.message, "environment, web identity, shared files, "
                                                "container, instance metadata"));
    assert_int_equal(b.http.count, 0);
    close_bench(&b);
}

static void fixed_keys(void **state)
{
    struct bench b;
    struct gb_aws_credentials *made = NULL;
    (void)state;
    open_bench(&b);
    set_keys(&b);
    struct gb_aws_credentials_cfg cfg = {.reactor = b.r,
                                         .http = &b.http.http,
                                         .env = {get_env, read_file, &b},
                                         .access_key_id = "ASIAX",
                                         .secret_access_key = "s"};
    assert_int_equal(gb_aws_credentials_new(&cfg, &made).code, GB_NOT_AUTHORIZED);
    cfg.access_key_id = "AKIAX";
    assert_int_equal(gb_aws_credentials_new(&cfg, &b.c).code, GB_OK);
    assert_int_equal(get(&b), GB_OK);
    assert_true(key_is(&b, "AKIAX", ""));
    close_bench(&b);
}

static void collect_log(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    struct bench *b = arg;
    (void)level;
    if (size > sizeof b->log - 1 - b->log_size) size = sizeof b->log - 1 - b->log_size;
    memcpy(b->log + b->log_size, line, size);
    b->log_size += size;
}

static void check_04_40_no_secret_in_log(void **state)
{
    static struct bench b;
    static const char *const bad[] = {"SECRETKEY", "SECRETTOKEN", "SECRETJWT"};
    (void)state;
    open_bench(&b);
    gb_log_set_level(GB_LOG_DEBUG);
    gb_log_set_sink(collect_log, &b);
    set(b.env, "AWS_WEB_IDENTITY_TOKEN_FILE", "/jwt");
    set(b.env, "AWS_ROLE_ARN", "arn");
    set(b.files, "/jwt", "SECRETJWT");
    fake_http_add(&b.http, answer(200, "<a>SECRETKEY<b>SECRETTOKEN</a>"));
    make(&b, NULL);
    assert_int_equal(get(&b), GB_TEMPORARY_AUTH_FAILURE);
    pass(&b, 2 * GB_SEC);
    fake_http_add(&b.http, answer(200, STS("AssumeRoleWithWebIdentity", "SECRETKEY")));
    assert_int_equal(get(&b), GB_OK);
    gb_log_set_sink(NULL, NULL);
    gb_log_set_level(GB_LOG_INFO);
    assert_true(b.log_size > 0);
    for (size_t i = 0; i < 3; i++) assert_null(strstr(b.log, bad[i]));
    close_bench(&b);
}

static void region_and_endpoint(void **state)
{
    struct bench b;
    struct gb_str out = {0};
    (void)state;
    open_bench(&b);
    struct gb_aws_env env = {get_env, read_file, &b};
    b.env[0] = (struct pair){"AWS_CONFIG_FILE", "/config"};
    set(b.files, "/config", "[default]\nregion = cn-north-1 # comment\ns3 =\n  region = no\n");
    assert_int_equal(gb_aws_region(&env, NULL, NULL, &out).code, GB_OK);
    assert_string_equal(out.data, "cn-north-1");
    gb_str_clear(&out);
    assert_int_equal(gb_aws_endpoint(&env, NULL, "sqs", "cn-north-1", &out).code, GB_OK);
    assert_string_equal(out.data, "https://sqs.cn-north-1.amazonaws.com.cn");
    gb_str_clear(&out);
    set(b.env, "AWS_ENDPOINT_URL", "http://all");
    assert_int_equal(gb_aws_endpoint(&env, NULL, "sqs", "r", &out).code, GB_OK);
    assert_string_equal(out.data, "http://all");
    gb_str_clear(&out);
    set(b.env, "AWS_ENDPOINT_URL_SQS", "http://own");
    assert_int_equal(gb_aws_endpoint(&env, NULL, "sqs", "r", &out).code, GB_OK);
    assert_string_equal(out.data, "http://own");
    gb_str_clear(&out);
    set(b.env, "AWS_REGION", "e/vil");
    assert_int_equal(gb_aws_region(&env, NULL, NULL, &out).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_aws_region(&env, "eu-west-1", NULL, &out).code, GB_OK);
    assert_string_equal(out.data, "eu-west-1");
    gb_str_deinit(&out);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_04_39_environment_beats_container),
        cmocka_unit_test(check_04_39_profile_beats_both),
        cmocka_unit_test(check_04_39_container_uri_hosts),
        cmocka_unit_test(check_04_39_metadata_needs_a_token),
        cmocka_unit_test(check_04_39_renewed_before_expiry),
        cmocka_unit_test(old_set_serves_until_expiry),
        cmocka_unit_test(one_refresh_for_all),
        cmocka_unit_test(freed_while_a_request_is_out),
        cmocka_unit_test(web_identity),
        cmocka_unit_test(role_by_source_profile),
        cmocka_unit_test(role_by_credential_source),
        cmocka_unit_test(profiles_that_cannot_work),
        cmocka_unit_test(sts_refusal_is_told),
        cmocka_unit_test(none_lists_what_was_tried),
        cmocka_unit_test(fixed_keys),
        cmocka_unit_test(check_04_40_no_secret_in_log),
        cmocka_unit_test(region_and_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
