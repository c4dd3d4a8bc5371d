#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blueprint/blueprint.h"

/* Rules M3 and M6 on what a credentials_uri leads to (03 check 26). */

static struct gb_blueprint *load(const char *url, const char *more)
{
    struct gb_str text = {0};
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    gb_str_appendf(&text,
                   "bridge: {id: a}\nsessions: [{id: s, transport: mqtt, session_mode: ephemeral, "
                   "options: {session: {broker_url: \"%s\", client_id: c%s}}}]\n",
                   url, more);
    struct gb_err err =
        gb_blueprint_load(gb_str_bytes(&text), "doc", GB_BLUEPRINT_YAML, &findings, &b);
    gb_findings_deinit(&findings);
    gb_str_deinit(&text);
    assert_int_equal(err.code, GB_OK);
    return b;
}

static char *text_of(size_t size)
{
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    return text;
}

static void plain_text_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url, *more, *username, *password;
        bool refused;
    } rows[] = {
        {"tcp://m", "", "u", "p", true},
        {"tcp://m", "", "u", NULL, true},
        {"tcp://m", "", NULL, "p", true},
        {"tcp://m", "", NULL, NULL, false},
        {"ws://m/mqtt", "", "u", "p", true},
        {"tls://m", "", "u", "p", false},
        {"wss://m/mqtt", "", "u", "p", false},
        {"tcp://m", ", allow_plaintext_credentials: true", "u", "p", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_blueprint *b = load(rows[i].url, rows[i].more);
        struct gb_err err =
            gb_blueprint_check_credentials(&b->sessions[0], rows[i].username, rows[i].password);
        assert_int_equal(err.code, rows[i].refused ? GB_INVALID_CONFIG : GB_OK);
        if (rows[i].refused) {
            assert_non_null(strstr(err.message, "in plain text to \""));
            assert_non_null(strstr(err.message, "allow_plaintext_credentials: true [M3]"));
        }
        gb_blueprint_free(b);
    }
}

static void length_is_bounded(void **state)
{
    (void)state;
    struct gb_blueprint *b = load("tls://m", "");
    const struct gb_bp_session *s = &b->sessions[0];
    char *fits = text_of(65535);
    char *longer = text_of(65536);
    assert_int_equal(gb_blueprint_check_credentials(s, fits, fits).code, GB_OK);
    assert_int_equal(gb_blueprint_check_credentials(s, longer, NULL).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_blueprint_check_credentials(s, "u", longer).code, GB_INVALID_CONFIG);
    assert_int_equal(gb_blueprint_check_credentials(s, NULL, longer).code, GB_INVALID_CONFIG);
    struct gb_err err = gb_blueprint_check_credentials(s, longer, "p");
    assert_non_null(strstr(err.message, "65535 bytes [M6]"));
    free(fits);
    free(longer);
    gb_blueprint_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_refused),
        cmocka_unit_test(length_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
