#include "domain/envelope_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "domain/address.h"
#include "domain/reserved.h"
#include "support/oom.h"

/* Every step of the message path, each with the allocations it needs: a failed one is
 * GB_UNAVAILABLE, leaks nothing and leaves the envelope as it was. */

static const char json[] =
    "{\"id\":\"a\\n\",\"payload_b64\":\"AP8=\",\"headers\":{"
    "\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\",\"e\":\"5\",\"f\":\"6\","
    "\"g\":\"7\",\"h\":\"8\",\"i\":\"9\",\"j\":\"10\",\"k\":\"11\","
    "\"l\":\"12\",\"m\":{\"bytes\":\"AP8=\"}}}";

static struct gb_envelope *must_decode(const char *text)
{
    struct gb_envelope *e = NULL;
    gb_oom_off();
    assert_false(gb_failed(gb_envelope_decode(gb_bytes_c(text), &e)));
    return e;
}

/* The steps below build their input first, then fail the n-th allocation from there. */
static struct gb_err fill(unsigned n)
{
    static char big[2000];
    struct gb_envelope *e = NULL;
    gb_oom_fail_at(n);
    struct gb_err err = gb_envelope_new(0, &e);
    if (gb_failed(err)) return err;
    err = gb_envelope_set_id(e, gb_bytes_c("id"));
    assert_int_equal(e->id.size, gb_failed(err) ? 0 : 2);
    if (!gb_failed(err)) err = gb_envelope_set_payload(e, gb_bytes(big, sizeof big));
    if (!gb_failed(err)) err = gb_envelope_set_subject(e, gb_bytes(big, sizeof big));
    for (char c = 'a'; c < 'z' && !gb_failed(err); c++) {
        size_t before = e->header_count;
        struct gb_value value = {.kind = GB_VALUE_TEXT, .text = gb_bytes(big, 100)};
        err = gb_envelope_put(e, gb_bytes(&c, 1), value);
        assert_int_equal(e->header_count, before + (gb_failed(err) ? 0 : 1));
    }
    gb_envelope_unref(e);
    return err;
}

static struct gb_err copy(unsigned n)
{
    struct gb_envelope *e = must_decode(json);
    struct gb_envelope *twin = NULL;
    gb_oom_fail_at(n);
    struct gb_err err = gb_envelope_copy(e, &twin);
    gb_envelope_unref(twin);
    gb_envelope_unref(e);
    return err;
}

static struct gb_err encode(unsigned n)
{
    struct gb_envelope *e = must_decode(json);
    struct gb_str out = {0};
    gb_oom_fail_at(n);
    gb_envelope_encode(&out, e);
    struct gb_err err = gb_str_check(&out, "stored message");
    gb_str_deinit(&out);
    gb_envelope_unref(e);
    return err;
}

static struct gb_err decode(unsigned n)
{
    struct gb_envelope *e = NULL;
    gb_oom_fail_at(n);
    struct gb_err err = gb_envelope_decode(gb_bytes_c(json), &e);
    assert_int_equal(e == NULL, gb_failed(err));
    gb_envelope_unref(e);
    return err;
}

static struct gb_err decode_headers(unsigned n)
{
    struct gb_envelope *e = must_decode("{\"id\":\"a\"}");
    struct gb_str list = {0};
    gb_str_append_c(&list, "{\"a\\n\":\"");
    for (int i = 0; i < 1000; i++) gb_str_append_c(&list, "long ");
    gb_str_append_c(&list, "\"}");
    assert_false(list.failed);
    gb_oom_fail_at(n);
    struct gb_err err = gb_headers_decode_into(gb_str_bytes(&list), e);
    assert_int_equal(e->header_count, gb_failed(err) ? 0 : 1);
    gb_str_deinit(&list);
    gb_envelope_unref(e);
    return err;
}

static struct gb_err sanitise(unsigned n)
{
    struct gb_envelope *e = must_decode(json);
    struct gb_reactor *r = NULL;
    assert_false(gb_failed(gb_reactor_new(1, &r)));
    char instance[600];
    memset(instance, 'i', sizeof instance - 1);
    instance[sizeof instance - 1] = '\0';
    struct gb_sanitise s = {
        .route_id = "route",
        .instance_id = instance,
        .causation_id = instance,
        .binding_override = instance,
    };
    gb_oom_fail_at(n);
    struct gb_err err = gb_sanitise_ingress(e, &s, r);
    gb_envelope_unref(e);
    gb_reactor_free(r);
    return err;
}

static struct gb_err expand(unsigned n)
{
    struct gb_envelope *e = must_decode(json);
    struct gb_str out = {0};
    gb_oom_fail_at(n);
    struct gb_err err = gb_address_expand(gb_bytes_c("x/{a}/y"), e, &out);
    gb_str_deinit(&out);
    gb_envelope_unref(e);
    return err;
}

static const struct step_row {
    const char *name;
    struct gb_err (*run)(unsigned n);
    unsigned failures; /* allocations that can fail; 0: two or more */
} step_rows[] = {
    {"fill", fill, 0},
    {"copy", copy, 1},
    {"encode", encode, 0},
    {"decode", decode, 0}, /* the block, and the second header array beyond 12 */
    {"decode headers", decode_headers, 1},
    {"sanitise", sanitise, 0},
    {"expand", expand, 1},
};

/* Fails the first allocation, then the second, until the step succeeds; answers how many failed. */
static unsigned climb(const struct step_row *row)
{
    for (unsigned n = 1; n < 50; n++) {
        struct gb_err err = row->run(n);
        gb_oom_off();
        if (!gb_failed(err)) return n - 1;
        if (err.code == GB_UNAVAILABLE) continue;
        fail_msg("%s: %s: %s", row->name, gb_code_name(err.code), err.message);
    }
    fail_msg("%s: it never succeeds", row->name);
    return 0;
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof step_rows / sizeof step_rows[0]; i++) {
        const struct step_row *row = &step_rows[i];
        unsigned failures = climb(row);
        if (row->failures == 0 ? failures < 2 : failures != row->failures) {
            fail_msg("%s: %u failures", row->name, failures);
        }
    }
}

/* The usual message costs one allocation on arrival and one when it is read back. */
static void the_usual_message_is_one_allocation(void **state)
{
    (void)state;
    struct gb_envelope *e = NULL;
    gb_oom_off();
    assert_false(gb_failed(gb_envelope_new(400, &e)));
    assert_false(gb_failed(gb_envelope_set_id(e, gb_bytes_c("an-id"))));
    assert_false(gb_failed(gb_envelope_set_payload(e, gb_bytes_c("a payload"))));
    assert_false(gb_failed(gb_envelope_put_text(e, "mqtt.topic", gb_bytes_c("a/b"))));
    struct gb_reactor *r = NULL;
    unsigned before = gb_oom_count();
    assert_int_equal(before, 1);
    assert_false(gb_failed(gb_reactor_new(1, &r)));
    before = gb_oom_count();
    struct gb_sanitise s = {.route_id = "route", .instance_id = "instance"};
    assert_false(gb_failed(gb_sanitise_ingress(e, &s, r)));
    assert_int_equal(gb_oom_count(), before);
    struct gb_str out = {0};
    gb_envelope_encode(&out, e);
    assert_false(out.failed);
    struct gb_envelope *back = NULL;
    before = gb_oom_count();
    assert_false(gb_failed(gb_envelope_decode(gb_str_bytes(&out), &back)));
    assert_int_equal(gb_oom_count(), before + 1);
    gb_envelope_unref(back);
    gb_envelope_unref(e);
    gb_str_deinit(&out);
    gb_reactor_free(r);
}

static void a_large_payload_does_not_waste_the_block(void **state)
{
    (void)state;
    static char big[2000];
    struct gb_envelope *e = NULL;
    gb_oom_off();
    assert_false(gb_failed(gb_envelope_new(1000, &e)));
    assert_false(gb_failed(gb_envelope_set_payload(e, gb_bytes(big, sizeof big))));
    assert_int_equal(gb_oom_count(), 2);
    assert_false(gb_failed(gb_envelope_set_subject(e, gb_bytes(big, 600))));
    assert_int_equal(gb_oom_count(), 2);
    gb_envelope_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_an_error),
        cmocka_unit_test(the_usual_message_is_one_allocation),
        cmocka_unit_test(a_large_payload_does_not_waste_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
