#include "domain/envelope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void ok(struct gb_err err)
{
    if (gb_failed(err)) fail_msg("%s: %s", gb_code_name(err.code), err.message);
}

static struct gb_envelope *new_envelope(size_t size_hint)
{
    struct gb_envelope *e = NULL;
    ok(gb_envelope_new(size_hint, &e));
    ok(gb_envelope_set_id(e, gb_bytes_c("id-1")));
    return e;
}

static void assert_text(struct gb_bytes got, const char *want)
{
    if (!gb_bytes_equal_c(got, want)) {
        fail_msg("got \"%.*s\", want \"%s\"", (int)got.size, (const char *)got.data, want);
    }
}

static void a_new_envelope_is_empty(void **state)
{
    (void)state;
    struct gb_envelope *e = NULL;
    ok(gb_envelope_new(0, &e));
    assert_int_equal(e->id.size + e->subject.size + e->payload.size, 0);
    assert_int_equal(e->header_count, 0);
    assert_int_equal(e->created_at_ms, 0);
    assert_int_equal(e->expires_at_ms, 0);
    gb_envelope_unref(e);
    gb_envelope_unref(NULL);
}

static void an_impossible_size_is_refused(void **state)
{
    (void)state;
    struct gb_envelope *e = NULL;
    assert_int_equal(gb_envelope_new(SIZE_MAX, &e).code, GB_UNAVAILABLE);
    assert_null(e);
    e = new_envelope(0);
    assert_null(gb_envelope_reserve_payload(e, SIZE_MAX));
    assert_null(gb_envelope_alloc(e, SIZE_MAX));
    assert_int_equal(e->payload.size, 0);
    gb_envelope_unref(e);
}

/* Whatever the hint said, what is put in comes out and nothing moves under an earlier view. */
static void values_are_copied_for_any_hint(void **state)
{
    (void)state;
    static const size_t hints[] = {0, 1, 7, 100, 511, 4096};
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        char text[] = "a text of the caller";
        char big[3000];
        memset(big, 'b', sizeof big);
        struct gb_envelope *e = new_envelope(hints[i]);
        struct gb_bytes id = e->id;
        ok(gb_envelope_set_subject(e, gb_bytes_c(text)));
        ok(gb_envelope_put_text(e, "name", gb_bytes_c(text)));
        ok(gb_envelope_set_payload(e, gb_bytes(big, sizeof big)));
        ok(gb_envelope_put_text(e, "after", gb_bytes_c(text)));
        memset(text, '?', sizeof text - 1);
        big[0] = '?';
        assert_text(e->subject, "a text of the caller");
        assert_text(gb_envelope_text(e, "name"), "a text of the caller");
        assert_text(gb_envelope_text(e, "after"), "a text of the caller");
        assert_int_equal(e->payload.size, sizeof big);
        assert_int_equal(e->payload.data[0], 'b');
        assert_ptr_equal(id.data, e->id.data);
        gb_envelope_unref(e);
    }
}

static void a_reserved_payload_is_the_payload(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    uint8_t *p = gb_envelope_reserve_payload(e, 5);
    assert_non_null(p);
    memset(p, '5', 5);
    assert_text(e->payload, "55555");
    assert_non_null(gb_envelope_reserve_payload(e, 0));
    assert_int_equal(e->payload.size, 0);
    gb_envelope_unref(e);
}

static void every_kind_keeps_its_value(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(200);
    static const struct gb_value values[] = {
        {.kind = GB_VALUE_TEXT, .text = {(const uint8_t *)"t", 1}},
        {.kind = GB_VALUE_INT, .number = INT64_MIN},
        {.kind = GB_VALUE_DECIMAL, .text = {(const uint8_t *)"1.50", 4}},
        {.kind = GB_VALUE_BOOL, .number = 1},
        {.kind = GB_VALUE_TIME, .number = INT64_MAX},
        {.kind = GB_VALUE_BYTES, .text = {(const uint8_t *)"\0\xFF", 2}},
    };
    enum { KINDS = sizeof values / sizeof values[0] };
    for (size_t i = 0; i < KINDS; i++) {
        ok(gb_envelope_put(e, gb_bytes(&"abcdef"[i], 1), values[i]));
    }
    for (size_t i = 0; i < KINDS; i++) {
        const struct gb_value *v = gb_envelope_find(e, gb_bytes(&"abcdef"[i], 1));
        assert_non_null(v);
        assert_int_equal(v->kind, values[i].kind);
        assert_int_equal(v->number, values[i].number);
        assert_true(gb_bytes_equal(v->text, values[i].text));
    }
    assert_text(gb_envelope_text(e, "a"), "t");
    assert_int_equal(gb_envelope_text(e, "c").size, 0); /* decimals and bytes are no text */
    assert_int_equal(gb_envelope_text(e, "f").size, 0);
    gb_envelope_unref(e);
}

static void put_replaces_in_place(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    ok(gb_envelope_put_text(e, "one", gb_bytes_c("1")));
    ok(gb_envelope_put_text(e, "two", gb_bytes_c("2")));
    ok(gb_envelope_put_number(e, "one", GB_VALUE_INT, 7));
    assert_int_equal(e->header_count, 2);
    assert_text(e->headers[0].name, "one");
    assert_int_equal(e->headers[0].value.number, 7);
    assert_int_equal(e->headers[0].value.text.size, 0);
    struct gb_bytes own = gb_envelope_text(e, "two");
    ok(gb_envelope_put_text(e, "one", own)); /* a view of its own memory */
    assert_text(gb_envelope_text(e, "one"), "2");
    static const struct gb_value view = {.kind = GB_VALUE_TEXT, .text = {(const uint8_t *)"v", 1}};
    ok(gb_envelope_put_view(e, gb_bytes_c("two"), view));
    ok(gb_envelope_put_view(e, gb_bytes_c("three"), view));
    assert_int_equal(e->header_count, 3);
    assert_text(gb_envelope_text(e, "two"), "v");
    assert_ptr_equal(gb_envelope_text(e, "three").data, view.text.data);
    gb_envelope_unref(e);
}

static void names_are_exact(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    ok(gb_envelope_put_text(e, "Name", gb_bytes_c("upper")));
    ok(gb_envelope_put_text(e, "name", gb_bytes_c("lower")));
    ok(gb_envelope_put_text(e, "", gb_bytes_c("none")));
    assert_int_equal(e->header_count, 3);
    assert_text(gb_envelope_text(e, "Name"), "upper");
    assert_text(gb_envelope_text(e, "name"), "lower");
    assert_text(gb_envelope_text(e, ""), "none");
    assert_null(gb_envelope_get(e, "NAME"));
    assert_null(gb_envelope_get(e, "nam"));
    gb_envelope_unref(e);
}

static void removal_keeps_the_order(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    ok(gb_envelope_put_text(e, "a", gb_bytes_c("1")));
    ok(gb_envelope_put_text(e, "b", gb_bytes_c("2")));
    ok(gb_envelope_put_text(e, "c", gb_bytes_c("3")));
    gb_envelope_remove(e, gb_bytes_c("none"));
    assert_int_equal(e->header_count, 3);
    gb_envelope_remove(e, gb_bytes_c("a"));
    assert_int_equal(e->header_count, 2);
    assert_text(e->headers[0].name, "b");
    assert_text(e->headers[1].name, "c");
    gb_envelope_remove_at(e, 1);
    gb_envelope_remove_at(e, 0);
    assert_int_equal(e->header_count, 0);
    gb_envelope_unref(e);
}

static void put_numbered(struct gb_envelope *e, int i, struct gb_err *err)
{
    char name[16];
    (void)snprintf(name, sizeof name, "h%d", i);
    *err = gb_envelope_put_number(e, name, GB_VALUE_INT, i);
}

static void headers_stop_at_their_limit(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    struct gb_err err;
    for (int i = 0; i < GB_ENVELOPE_HEADERS_MAX; i++) {
        put_numbered(e, i, &err);
        ok(err);
    }
    put_numbered(e, GB_ENVELOPE_HEADERS_MAX, &err);
    assert_int_equal(err.code, GB_PAYLOAD_TOO_LARGE);
    assert_int_equal(gb_envelope_put_view(e, gb_bytes_c("v"), (struct gb_value){0}).code,
                     GB_PAYLOAD_TOO_LARGE);
    put_numbered(e, 5, &err); /* replacing needs no room */
    ok(err);
    assert_int_equal(e->header_count, GB_ENVELOPE_HEADERS_MAX);
    for (size_t i = 0; i < e->header_count; i++) {
        assert_int_equal(e->headers[i].value.number, i);
    }
    gb_envelope_unref(e);
}

static void references_share_one_envelope(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    assert_ptr_equal(gb_envelope_ref(e), e);
    gb_envelope_unref(e);
    ok(gb_envelope_set_subject(e, gb_bytes_c("sole holder again")));
    gb_envelope_unref(e);
}

static void a_shared_envelope_may_not_change(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    (void)gb_envelope_ref(e);
    struct gb_envelope *copy = NULL;
    ok(gb_envelope_copy(e, &copy));
    ok(gb_envelope_set_subject(copy, gb_bytes_c("changed")));
    assert_int_equal(e->subject.size, 0);
    gb_envelope_unref(copy);
    gb_envelope_unref(e);
    gb_envelope_unref(e);
}

static void a_copy_is_deep_and_equal(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 12, 13, 100};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        struct gb_envelope *e = new_envelope(0);
        struct gb_err err;
        ok(gb_envelope_set_subject(e, gb_bytes_c("subject")));
        ok(gb_envelope_set_payload(e, gb_bytes("\0pay\xFF", 5)));
        for (int i = 0; i < counts[k]; i++) {
            put_numbered(e, i, &err);
            ok(err);
        }
        ok(gb_envelope_put_text(e, "text", gb_bytes_c("value")));
        e->created_at_ms = 11;
        e->expires_at_ms = 22;
        struct gb_envelope *copy = NULL;
        ok(gb_envelope_copy(e, &copy));
        assert_int_equal(gb_envelope_size(copy), gb_envelope_size(e));
        gb_envelope_unref(e);
        assert_text(copy->id, "id-1");
        assert_text(copy->subject, "subject");
        assert_true(gb_bytes_equal(copy->payload, gb_bytes("\0pay\xFF", 5)));
        assert_int_equal(copy->header_count, counts[k] + 1);
        assert_text(gb_envelope_text(copy, "text"), "value");
        assert_int_equal(copy->created_at_ms, 11);
        assert_int_equal(copy->expires_at_ms, 22);
        for (int i = 0; i < 20; i++) { /* it grows like any other */
            put_numbered(copy, 1000 + i, &err);
            ok(err);
        }
        assert_text(gb_envelope_text(copy, "text"), "value");
        gb_envelope_unref(copy);
    }
}

static void expiry_includes_its_moment(void **state)
{
    (void)state;
    static const struct expiry_row {
        const char *name;
        int64_t expires_at_ms;
        int64_t now_ms;
        bool expired;
    } rows[] = {
        {"never", 0, INT64_MAX, false},
        {"before", 1000, 999, false},
        {"equal", 1000, 1000, true},
        {"after", 1000, 1001, true},
    };
    struct gb_envelope *e = new_envelope(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        e->expires_at_ms = rows[i].expires_at_ms;
        if (gb_envelope_expired(e, rows[i].now_ms) != rows[i].expired) fail_msg("%s", rows[i].name);
    }
    gb_envelope_unref(e);
}

static void the_size_counts_all_texts(void **state)
{
    (void)state;
    struct gb_envelope *e = new_envelope(0);
    size_t before = gb_envelope_size(e);
    ok(gb_envelope_set_payload(e, gb_bytes("12345678", 8)));
    assert_int_equal(gb_envelope_size(e), before + 8);
    ok(gb_envelope_put_text(e, "name", gb_bytes_c("val")));
    assert_int_equal(gb_envelope_size(e), before + 8 + 4 + 3 + sizeof(struct gb_header));
    gb_envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_envelope_is_empty),
        cmocka_unit_test(an_impossible_size_is_refused),
        cmocka_unit_test(values_are_copied_for_any_hint),
        cmocka_unit_test(a_reserved_payload_is_the_payload),
        cmocka_unit_test(every_kind_keeps_its_value),
        cmocka_unit_test(put_replaces_in_place),
        cmocka_unit_test(names_are_exact),
        cmocka_unit_test(removal_keeps_the_order),
        cmocka_unit_test(headers_stop_at_their_limit),
        cmocka_unit_test(references_share_one_envelope),
        cmocka_unit_test(a_shared_envelope_may_not_change),
        cmocka_unit_test(a_copy_is_deep_and_equal),
        cmocka_unit_test(expiry_includes_its_moment),
        cmocka_unit_test(the_size_counts_all_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
