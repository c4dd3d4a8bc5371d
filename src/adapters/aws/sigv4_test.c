#include "adapters/aws/sigv4.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID "AKIDEXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define AT INT64_C(1440938160000) /* 20150830T123600Z */

/* The published suite (aws-sig-v4-test-suite) and the IAM example of the documentation. Headers:
 * name, value pairs. */
static const struct vector_row {
    const char *name, *method, *path, *query;
    const char *headers[10];
    const char *body;
    const char *service;
    const char *signed_names, *signature;
} rows[] = {
    {"get-vanilla",
     "GET",
     "/",
     "",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-dot-slash",
     "GET",
     "/./",
     "",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-relative",
     "GET",
     "/example/..",
     "",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"empty path",
     "GET",
     "",
     "",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     "Param2=value2&Param1=value1",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-header-key-duplicate",
     "GET",
     "/",
     "",
     {"Host", "example.amazonaws.com", "My-Header1", "value2", "My-Header1", "value2", "My-Header1",
      "value1", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;my-header1;x-amz-date",
     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-header-value-trim",
     "GET",
     "/",
     "",
     {"Host", "example.amazonaws.com", "My-Header1", " value1", "My-Header2", " \"a   b   c\"",
      "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;my-header1;my-header2;x-amz-date",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"post-vanilla",
     "POST",
     "/",
     "",
     {"Host", "example.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "service",
     "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     "",
     {"Content-Type", "application/x-www-form-urlencoded", "Host", "example.amazonaws.com",
      "X-Amz-Date", "20150830T123600Z"},
     "Param1=value1",
     "service",
     "content-type;host;x-amz-date",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    {"iam-list-users",
     "GET",
     "/",
     "Action=ListUsers&Version=2010-05-08",
     {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8", "Host",
      "iam.amazonaws.com", "X-Amz-Date", "20150830T123600Z"},
     "",
     "iam",
     "content-type;host;x-amz-date",
     "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
};

static size_t headers_of(const struct vector_row *row, struct gb_sigv4_header *out)
{
    size_t count = 0;
    for (; count < 5 && row->headers[2 * count] != NULL; count++) {
        out[count] = (struct gb_sigv4_header){gb_bytes_c(row->headers[2 * count]),
                                              gb_bytes_c(row->headers[2 * count + 1])};
    }
    return count;
}

static void check_04_06_published_vectors(void **state)
{
    const struct gb_sigv4_credentials c = {ID, SECRET, NULL};
    struct gb_sigv4_key key = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct vector_row *row = &rows[i];
        struct gb_sigv4_header headers[5];
        struct gb_sigv4_request q = {.method = row->method,
                                     .path = gb_bytes_c(row->path),
                                     .query = gb_bytes_c(row->query),
                                     .headers = headers,
                                     .header_count = headers_of(row, headers),
                                     .body = gb_bytes_c(row->body),
                                     .time_ms = AT,
                                     .region = "us-east-1",
                                     .service = row->service};
        struct gb_str got = {0};
        char want[512];
        (void)snprintf(want, sizeof want,
                       "AWS4-HMAC-SHA256 Credential=" ID
                       "/20150830/us-east-1/%s/aws4_request, SignedHeaders=%s, Signature=%s",
                       row->service, row->signed_names, row->signature);
        assert_int_equal(gb_sigv4_sign(&q, &c, &key, &got).code, GB_OK);
        if (strcmp(got.data, want) != 0) fail_msg("%s: %s, not %s", row->name, got.data, want);
        gb_str_deinit(&got);
    }
}

static void sign_into(struct gb_str *out, const char *secret, const char *region, int64_t at,
                      struct gb_sigv4_key *key)
{
    const struct gb_sigv4_credentials c = {ID, secret, NULL};
    struct gb_sigv4_header host = {gb_bytes_c("host"), gb_bytes_c("h")};
    struct gb_sigv4_request q = {.method = "GET",
                                 .path = gb_bytes_c("/"),
                                 .headers = &host,
                                 .header_count = 1,
                                 .time_ms = at,
                                 .region = region,
                                 .service = "sqs"};
    assert_int_equal(gb_sigv4_sign(&q, &c, key, out).code, GB_OK);
}

/* A cached key gives what a fresh one gives, whatever changed since. */
static void cached_key_follows_changes(void **state)
{
    static const struct {
        const char *secret, *region;
        int64_t at;
    } steps[] = {{"s1", "eu-west-1", AT},
                 {"s1", "eu-west-1", AT + 1000},
                 {"s2", "eu-west-1", AT},
                 {"s2", "us-east-1", AT},
                 {"s2", "us-east-1", AT + INT64_C(86400000)},
                 {"s1", "eu-west-1", AT}};
    struct gb_sigv4_key cached = {0};
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct gb_sigv4_key fresh = {0};
        struct gb_str a = {0};
        struct gb_str b = {0};
        sign_into(&a, steps[i].secret, steps[i].region, steps[i].at, &cached);
        sign_into(&b, steps[i].secret, steps[i].region, steps[i].at, &fresh);
        assert_string_equal(a.data, b.data);
        gb_str_deinit(&a);
        gb_str_deinit(&b);
    }
}

static void too_many_headers_are_refused(void **state)
{
    static struct gb_sigv4_header headers[GB_SIGV4_HEADERS_MAX + 1];
    const struct gb_sigv4_credentials c = {ID, SECRET, NULL};
    struct gb_sigv4_request q = {.method = "GET",
                                 .headers = headers,
                                 .header_count = GB_SIGV4_HEADERS_MAX + 1,
                                 .region = "r",
                                 .service = "s"};
    struct gb_sigv4_key key = {0};
    struct gb_str out = {0};
    (void)state;
    assert_int_equal(gb_sigv4_sign(&q, &c, &key, &out).code, GB_NOT_SUPPORTED);
    assert_int_equal(out.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_04_06_published_vectors),
        cmocka_unit_test(cached_key_follows_changes),
        cmocka_unit_test(too_many_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
