#include "domain/credential_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static void uris(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        bool ok;
        enum gb_credential_scheme scheme;
        const char *path;
    } rows[] = {
        {"file://a", true, GB_CREDENTIAL_FILE, "a"},
        {"file://plant/broker", true, GB_CREDENTIAL_FILE, "plant/broker"},
        {"pms://app/broker..x", true, GB_CREDENTIAL_PMS, "app/broker..x"},
        {"file://", false, 0, NULL},
        {"file:///a", false, 0, NULL},
        {"file://a//b", false, 0, NULL},
        {"file://a/../b", false, 0, NULL},
        {"file://./b", false, 0, NULL},
        {"pms://a/", false, 0, NULL},
        {"vault://a", false, 0, NULL},
        {"", false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum gb_credential_scheme scheme;
        struct gb_bytes path;
        struct gb_err err = gb_credential_uri_parse(rows[i].uri, &scheme, &path);
        assert_int_equal(err.code, rows[i].ok ? GB_OK : GB_INVALID_CONFIG);
        if (!rows[i].ok) continue;
        assert_int_equal(scheme, rows[i].scheme);
        assert_true(gb_bytes_equal_c(path, rows[i].path));
    }
}

static void same(const char *got, const char *want)
{
    if (want == NULL) {
        assert_null(got);
    } else {
        assert_non_null(got);
        assert_string_equal(got, want);
    }
}

struct row {
    const char *text;
    const char *username, *password, *cert, *key, *ca;
    bool insecure;
};
static void accepted(struct gb_err (*read)(struct gb_bytes, struct gb_credential_set *),
                     const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct gb_credential_set c = {0};
        struct gb_err err = read(gb_bytes_c(rows[i].text), &c);
        if (gb_failed(err)) fail_msg("row %zu: %s", i, err.message);
        same(c.username, rows[i].username);
        same(c.password, rows[i].password);
        same(c.cert_pem, rows[i].cert);
        same(c.key_pem, rows[i].key);
        same(c.ca_pem, rows[i].ca);
        assert_int_equal(c.insecure_skip_verify, rows[i].insecure);
        gb_credential_set_deinit(&c);
    }
}

#define FILE(parts) "{\"version\":3,\"credentials\":{" parts "},\"updatedAt\":\"x\"}"

static void files(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {FILE("\"Password\":{\"Username\":\"u\",\"Password\":\"p\\\"\"}"), "u", "p\"", NULL, NULL,
         NULL, false},
        {FILE("\"TLS\":{\"CertPEM\":\"c\",\"KeyPEM\":\"k\",\"CAPEMs\":[\"a\",\"b\"],"
              "\"InsecureSkipVerify\":true},\"Password\":null"),
         NULL, NULL, "c", "k", "a\nb", true},
        {FILE("\"TLS\":{\"CAPEMs\":[\"a\"]},\"Password\":{\"Username\":\"u\",\"Other\":[1,{}]}"),
         "u", NULL, NULL, NULL, "a", false},
    };
    accepted(gb_credential_set_read_file, rows, sizeof rows / sizeof rows[0]);
}

static void parameters(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"u:p:q", "u", "p:q", NULL, NULL, NULL, false},
        {"u:", "u", "", NULL, NULL, NULL, false},
        {" \n{\"user\":\"u\",\"password\":\"p\"}", "u", "p", NULL, NULL, NULL, false},
        {"{\"cert\":\"c\",\"privateKey\":\"k\",\"ca\":\"a\"}", NULL, NULL, "c", "k", "a", false},
        {"{\"certificate\":\"c\",\"key\":\"k\",\"caPems\":[\"a\",\"b\",\"d\"]}", NULL, NULL, "c",
         "k", "a\nb\nd", false},
        {"{\"type\":\"password\",\"username\":\"u\",\"password\":\"p\",\"certPem\":\"c\","
         "\"keyPem\":\"k\"}",
         "u", "p", NULL, NULL, NULL, false},
        {"{\"username\":\"u\",\"password\":\"p\",\"certPem\":\"c\",\"keyPem\":\"k\","
         "\"type\":\"tls\"}",
         NULL, NULL, "c", "k", NULL, false},
        {"{\"username\":\"u\",\"password\":\"p\",\"certPem\":\"c\",\"keyPem\":\"k\"}", "u", "p",
         "c", "k", NULL, false},
    };
    accepted(gb_credential_set_read_parameter, rows, sizeof rows / sizeof rows[0]);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct gb_err (*read)(struct gb_bytes, struct gb_credential_set *);
        const char *text, *says;
    } rows[] = {
        {gb_credential_set_read_file, "", "no JSON object"},
        {gb_credential_set_read_file, "[]", "no JSON object"},
        {gb_credential_set_read_file, "{}", "neither"},
        {gb_credential_set_read_file, "{\"credentials\":null}", "neither"},
        {gb_credential_set_read_file, "{\"credentials\":{}} x", "behind"},
        {gb_credential_set_read_file, "{\"credentials\":{}", "well-formed"},
        {gb_credential_set_read_file, FILE("\"Password\":{\"Password\":\"s3cret\"}"),
         "without a username"},
        {gb_credential_set_read_file, FILE("\"Password\":\"s3cret\""), "\"Password\" is not an"},
        {gb_credential_set_read_file, FILE("\"Password\":{\"Username\":\"a\",\"Username\":\"b\"}"),
         "twice"},
        {gb_credential_set_read_file, FILE("\"TLS\":{\"CertPEM\":\"c\"}"), "come together"},
        {gb_credential_set_read_file, FILE("\"TLS\":{\"CAPEMs\":[1]}"), "list of texts"},
        {gb_credential_set_read_file, FILE("\"TLS\":{\"InsecureSkipVerify\":\"s3cret\"}"),
         "true or false"},
        {gb_credential_set_read_file, FILE("\"Password\":{\"Username\":\"a\\u0000b\"}"), "NUL"},
        {gb_credential_set_read_parameter, "s3cret", "neither JSON nor"},
        {gb_credential_set_read_parameter, ":s3cret", "empty username"},
        {gb_credential_set_read_parameter, "", "neither JSON nor"},
        {gb_credential_set_read_parameter, "{\"type\":5,\"username\":\"u\"}", "\"type\""},
        {gb_credential_set_read_parameter,
         "{\"type\":\"s3cret\",\"username\":\"u\",\"cert\":\"c\",\"key\":\"k\"}", "none of"},
        {gb_credential_set_read_parameter, "{\"password\":\"s3cret\"}", "without a username"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_credential_set c = {0};
        struct gb_err err = rows[i].read(gb_bytes_c(rows[i].text), &c);
        assert_int_equal(err.code, GB_INVALID_PAYLOAD);
        if (strstr(err.message, rows[i].says) == NULL) fail_msg("row %zu: %s", i, err.message);
        assert_null(strstr(err.message, "s3cret"));
        assert_null(c.username);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris),
        cmocka_unit_test(files),
        cmocka_unit_test(parameters),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
