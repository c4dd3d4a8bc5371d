#include "base/err.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static const struct code_row {
    enum gb_code code;
    const char *name;
    enum gb_class class_;
    bool transient;
} code_rows[] = {
    /* spec 02 §4.1, one row of each class and both ends of the list */
    {GB_OK, "OK", GB_CLASS_NONE, false},
    {GB_CANCELLED, "CANCELLED", GB_CLASS_NONE, false},
    {GB_TIMEOUT, "TIMEOUT", GB_CLASS_TRANSIENT, true},
    {GB_NO_ROUTE_OWNER, "NO_ROUTE_OWNER", GB_CLASS_TRANSIENT, true},
    {GB_NOT_AUTHORIZED, "NOT_AUTHORIZED", GB_CLASS_PERMANENT, false},
    {GB_OUTBOX_ALREADY_TERMINAL, "OUTBOX_ALREADY_TERMINAL", GB_CLASS_PERMANENT, false},
    {GB_NO_BINDING_MATCH, "NO_BINDING_MATCH", GB_CLASS_REJECTED, false},
    {GB_MESSAGE_EXPIRED, "MESSAGE_EXPIRED", GB_CLASS_EXPIRED, false},
};

static void codes_have_name_and_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof code_rows / sizeof code_rows[0]; i++) {
        const struct code_row *row = &code_rows[i];
        struct gb_err err = gb_err(row->code, "x");
        assert_string_equal(gb_code_name(row->code), row->name);
        assert_int_equal(gb_code_class(row->code), row->class_);
        assert_int_equal(err.class_, row->class_);
        assert_int_equal(gb_err_is_transient(&err), row->transient);
    }
}

static void every_code_parses_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GB_CODE_COUNT; i++) {
        enum gb_code parsed = GB_CODE_COUNT;
        assert_true(gb_code_parse(gb_code_name((enum gb_code)i), &parsed));
        assert_int_equal(parsed, i);
    }
    enum gb_code untouched = GB_THROTTLED;
    assert_false(gb_code_parse("timeout", &untouched));
    assert_false(gb_code_parse("", &untouched));
    assert_int_equal(untouched, GB_THROTTLED);
}

static void classes_have_names(void **state)
{
    (void)state;
    assert_string_equal(gb_class_name(GB_CLASS_NONE), "unknown");
    assert_string_equal(gb_class_name(GB_CLASS_TRANSIENT), "transient");
    assert_string_equal(gb_class_name(GB_CLASS_PERMANENT), "permanent");
    assert_string_equal(gb_class_name(GB_CLASS_REJECTED), "rejected");
    assert_string_equal(gb_class_name(GB_CLASS_EXPIRED), "expired");
}

static void error_without_class_counts_as_transient(void **state)
{
    (void)state;
    struct gb_err err = gb_err(GB_INTERNAL, "x");
    assert_false(gb_err_is_transient(&err));
    err.class_ = GB_CLASS_NONE;
    assert_true(gb_err_is_transient(&err));
}

static void ok_is_no_failure(void **state)
{
    (void)state;
    assert_false(gb_failed(gb_ok()));
    assert_true(gb_failed(gb_err(GB_CANCELLED, "stop")));
    assert_string_equal(gb_err(GB_TIMEOUT, "%s %d", "after", 5).message, "after 5");
}

/* A message is `pad` letters and then `tail` several times. */
static const struct cut_row {
    const char *name;
    size_t pad;
    const char *tail;
    size_t want; /* length of the message */
} cut_rows[] = {
    {"fits exactly", GB_ERR_MESSAGE_MAX - 1, "", GB_ERR_MESSAGE_MAX - 1},
    {"letters are cut anywhere", GB_ERR_MESSAGE_MAX + 9, "", GB_ERR_MESSAGE_MAX - 1},
    {"two bytes whole", GB_ERR_MESSAGE_MAX - 3, "\xC3\xA9\xC3\xA9", GB_ERR_MESSAGE_MAX - 1},
    {"two bytes, one fits", GB_ERR_MESSAGE_MAX - 2, "\xC3\xA9", GB_ERR_MESSAGE_MAX - 2},
    {"three bytes, two fit", GB_ERR_MESSAGE_MAX - 3, "\xE2\x82\xAC", GB_ERR_MESSAGE_MAX - 3},
    {"four bytes, three fit", GB_ERR_MESSAGE_MAX - 4, "\xF0\x9F\x98\x80", GB_ERR_MESSAGE_MAX - 4},
    {"four bytes whole", GB_ERR_MESSAGE_MAX - 5, "\xF0\x9F\x98\x80z", GB_ERR_MESSAGE_MAX - 1},
};

static void long_message_is_cut_on_a_border(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cut_rows / sizeof cut_rows[0]; i++) {
        const struct cut_row *row = &cut_rows[i];
        char text[2 * GB_ERR_MESSAGE_MAX];
        memset(text, 'a', row->pad);
        memcpy(text + row->pad, row->tail, strlen(row->tail) + 1);
        struct gb_err err = gb_err(GB_TIMEOUT, "%s", text);
        if (strlen(err.message) != row->want) fail_msg("%s: %zu", row->name, strlen(err.message));
        assert_memory_equal(err.message, text, row->want);
        assert_true(gb_utf8_valid(gb_bytes_c(err.message)));
    }
}

static void context_goes_in_front(void **state)
{
    (void)state;
    struct gb_err err = gb_err(GB_THROTTLED, "rate exceeded");
    err.class_ = GB_CLASS_PERMANENT;
    err.retry_after_ns = 7;
    struct gb_err in = gb_err_in(err, "queue %s", "orders");
    assert_string_equal(in.message, "queue orders: rate exceeded");
    assert_int_equal(in.code, GB_THROTTLED);
    assert_int_equal(in.class_, GB_CLASS_PERMANENT);
    assert_int_equal(in.retry_after_ns, 7);

    for (int i = 0; i < 100; i++) in = gb_err_in(in, "n\xC3\xA9st %d", i);
    assert_true(strlen(in.message) < GB_ERR_MESSAGE_MAX);
    assert_true(gb_utf8_valid(gb_bytes_c(in.message)));
    assert_memory_equal(in.message, "n\xC3\xA9st 99: n\xC3\xA9st 98: ", 20);
}

static void out_of_memory_is_transient(void **state)
{
    (void)state;
    struct gb_err err = gb_err_no_memory("the route");
    assert_int_equal(err.code, GB_UNAVAILABLE);
    assert_true(gb_err_is_transient(&err));
    assert_non_null(strstr(err.message, "the route"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_name_and_class),
        cmocka_unit_test(every_code_parses_back),
        cmocka_unit_test(classes_have_names),
        cmocka_unit_test(error_without_class_counts_as_transient),
        cmocka_unit_test(ok_is_no_failure),
        cmocka_unit_test(long_message_is_cut_on_a_border),
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(out_of_memory_is_transient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
