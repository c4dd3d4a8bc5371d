#include "domain/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void braces_are_checked(void **state)
{
    (void)state;
    static const struct check_row {
        const char *name;
        const char *address;
        const char *says; /* NULL: accepted */
    } rows[] = {
        {"empty", "", NULL},
        {"plain", "factory/events", NULL},
        {"one", "factory/{factory_id}/events", NULL},
        {"only one", "{a}", NULL},
        {"side by side", "{a}{b}", NULL},
        {"not closed", "a/{b", "byte 2 is not closed"},
        {"not opened", "a/b}", "byte 3 closes no"},
        {"closed twice", "{a}}", "byte 3 closes no"},
        {"nested", "{a{b}}", "byte 0 holds another"},
        {"opened twice", "{{a}", "byte 0 holds another"},
        {"second not closed", "{a}{b", "byte 3 is not closed"},
        {"empty braces", "a/{}/b", "byte 2 names no header"},
        {"the wrong way round", "}a{", "byte 0 closes no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_err err = gb_address_check(gb_bytes_c(rows[i].address));
        bool as_wanted = rows[i].says == NULL ? !gb_failed(err)
                                              : err.code == GB_INVALID_CONFIG &&
                                                    strstr(err.message, rows[i].says) != NULL;
        if (!as_wanted) fail_msg("%s: %s", rows[i].name, err.message);
    }
    assert_false(gb_failed(gb_address_check(gb_bytes(NULL, 0))));
}

static void placeholders_are_seen(void **state)
{
    (void)state;
    assert_true(gb_address_has_placeholders(gb_bytes_c("a/{b}")));
    assert_false(gb_address_has_placeholders(gb_bytes_c("a/b")));
    assert_false(gb_address_has_placeholders(gb_bytes(NULL, 0)));
}

static struct gb_envelope *new_envelope(void)
{
    struct gb_envelope *e = NULL;
    assert_false(gb_failed(gb_envelope_new(0, &e)));
    static const char *const texts[][2] = {
        {"factory_id", "A"}, {"braces", "{factory_id}"},     {"empty", ""},
        {"Case", "upper"},   {"x-bridge.tenant-id", "acme"}, {"a b", "space"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(gb_failed(gb_envelope_put_text(e, texts[i][0], gb_bytes_c(texts[i][1]))));
    }
    assert_false(gb_failed(gb_envelope_put_number(e, "number", GB_VALUE_INT, 7)));
    struct gb_value bytes = {.kind = GB_VALUE_BYTES, .text = gb_bytes_c("raw")};
    assert_false(gb_failed(gb_envelope_put(e, gb_bytes_c("bytes"), bytes)));
    return e;
}

/* Spec 02 check 24. */
static void templates_take_text_headers(void **state)
{
    (void)state;
    static const struct expand_row {
        const char *address;
        const char *want; /* NULL: ADDRESS_TEMPLATE */
    } rows[] = {
        {"factory/{factory_id}/events", "factory/A/events"},
        {"{factory_id}", "A"},
        {"{factory_id}{factory_id}/", "AA/"},
        {"no braces", "no braces"},
        {"{braces}", "{factory_id}"}, /* inserted text is not expanded */
        {"{x-bridge.tenant-id}", "acme"},
        {"{a b}", "space"},
        {"{missing}", NULL},
        {"a/{empty}/b", NULL},
        {"{case}", NULL}, /* exactly that name */
        {"{factory_id }", NULL},
        {"{number}", NULL},
        {"{bytes}", NULL},
        {"", NULL},
        {"a/{factory_id", NULL},
        {"a/{}", NULL},
    };
    struct gb_envelope *e = new_envelope();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str out = {0};
        struct gb_err err = gb_address_expand(gb_bytes_c(rows[i].address), e, &out);
        if (rows[i].want == NULL) {
            if (err.code != GB_ADDRESS_TEMPLATE) fail_msg("%s: accepted", rows[i].address);
            assert_int_equal(err.class_, GB_CLASS_PERMANENT);
        } else {
            if (gb_failed(err)) fail_msg("%s: %s", rows[i].address, err.message);
            assert_string_equal(out.data, rows[i].want);
        }
        gb_str_deinit(&out);
    }
    gb_envelope_unref(e);
}

static void the_message_names_the_header(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope();
    struct gb_str out = {0};
    struct gb_err err = gb_address_expand(gb_bytes_c("a/{line_id}"), e, &out);
    assert_non_null(strstr(err.message, "line_id"));
    gb_str_deinit(&out);
    gb_envelope_unref(e);
}

static void expansion_appends(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope();
    struct gb_str out = {0};
    gb_str_append_c(&out, "before ");
    assert_false(gb_failed(gb_address_expand(gb_bytes_c("{factory_id}"), e, &out)));
    assert_string_equal(out.data, "before A");
    assert_int_equal(gb_address_expand(gb_bytes_c(""), e, &out).code, GB_ADDRESS_TEMPLATE);
    gb_str_deinit(&out);
    gb_envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_are_checked),
        cmocka_unit_test(placeholders_are_seen),
        cmocka_unit_test(templates_take_text_headers),
        cmocka_unit_test(the_message_names_the_header),
        cmocka_unit_test(expansion_appends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
