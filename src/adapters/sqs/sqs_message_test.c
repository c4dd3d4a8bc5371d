#include "adapters/sqs/sqs_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct bench {
    struct gb_envelope *e;
    struct gb_str json, scratch;
    struct gb_sqs_message m;
    struct gb_sqs_digests digests;
    struct gb_sqs_rules rules;
};

static void open_bench(struct bench *b, const char *payload)
{
    *b = (struct bench){.rules = {.bytes_max = 1048576}};
    assert_int_equal(gb_envelope_new(64, &b->e).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(b->e, gb_bytes_c("id")).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(b->e, gb_bytes_c(payload)).code, GB_OK);
}

static void close_bench(struct bench *b)
{
    gb_envelope_unref(b->e);
    gb_str_deinit(&b->json);
    gb_str_deinit(&b->scratch);
}

static enum gb_code plan(struct bench *b)
{
    return gb_sqs_message_plan(b->e, &b->rules, &b->scratch, &b->m).code;
}

static void put(struct bench *b, const char *name, struct gb_value value)
{
    assert_int_equal(gb_envelope_put(b->e, gb_bytes_c(name), value).code, GB_OK);
}

static struct gb_value text(const char *value)
{
    return (struct gb_value){.kind = GB_VALUE_TEXT, .text = gb_bytes_c(value)};
}

/* Digests of attributes and body by another implementation (moto's). */
static void types_and_digests(void **state)
{
    struct bench b;
    struct gb_json_writer w;
    (void)state;
    open_bench(&b, "hello");
    assert_int_equal(gb_envelope_set_subject(b.e, gb_bytes_c("s")).code, GB_OK);
    put(&b, "b", (struct gb_value){.kind = GB_VALUE_BYTES, .text = gb_bytes("\x00\xff", 2)});
    put(&b, "n", (struct gb_value){.kind = GB_VALUE_DECIMAL, .text = gb_bytes_c("-1.50")});
    put(&b, "t", (struct gb_value){.kind = GB_VALUE_TIME, .number = INT64_C(1796119200000)});
    put(&b, "ok", (struct gb_value){.kind = GB_VALUE_BOOL, .number = 1});
    put(&b, "i", (struct gb_value){.kind = GB_VALUE_INT, .number = 42});
    assert_int_equal(plan(&b), GB_OK);
    gb_json_w_init(&w, &b.json);
    gb_json_w_object(&w);
    gb_sqs_message_write(&b.m, &b.rules, &w, &b.scratch, &b.digests);
    gb_json_w_object_end(&w);
    assert_string_equal(
        b.json.data,
        "{\"MessageBody\":\"hello\",\"MessageAttributes\":{"
        "\"Subject\":{\"DataType\":\"String\",\"StringValue\":\"s\"},"
        "\"b\":{\"DataType\":\"Binary\",\"BinaryValue\":\"AP8=\"},"
        "\"i\":{\"DataType\":\"Number\",\"StringValue\":\"42\"},"
        "\"n\":{\"DataType\":\"Number\",\"StringValue\":\"-1.50\"},"
        "\"ok\":{\"DataType\":\"String\",\"StringValue\":\"true\"},"
        "\"t\":{\"DataType\":\"String\",\"StringValue\":\"2026-12-01T10:00:00.000Z\"}}}");
    assert_string_equal(b.digests.body, "5d41402abc4b2a76b9719d911017c592");
    assert_string_equal(b.digests.attributes, "ee1add9e1227e86bf3df2c8b821d365a");
    close_bench(&b);
}

static void empty_and_illegal_values_are_counted(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "x");
    put(&b, "empty", text(""));
    put(&b, "control", text("a\x01"));
    put(&b, "no bytes", text("illegal names are not counted"));
    put(&b, "none", (struct gb_value){.kind = GB_VALUE_BYTES});
    assert_int_equal(plan(&b), GB_OK);
    assert_int_equal(b.m.attribute_count, 0);
    assert_int_equal(b.m.dropped, 3);
    close_bench(&b);
}

/* A too large attribute is skipped, a later smaller one goes; body, mark and subject are what must
 * fit. */
static void sizes_are_those_of_sqs(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "12345");
    put(&b, "a", text("0123456789")); /* 1 + 6 + 10 */
    put(&b, "b", text("0"));          /* 1 + 6 + 1 */
    b.rules.bytes_max = 5 + 8;
    assert_int_equal(plan(&b), GB_OK);
    assert_int_equal(b.m.size, 13);
    assert_int_equal(b.m.attribute_count, 1);
    assert_int_equal(b.m.dropped, 1);
    b.rules.bytes_max = 5 + 8 + 17;
    assert_int_equal(plan(&b), GB_OK);
    assert_int_equal(b.m.size, 30);
    assert_int_equal(gb_envelope_set_subject(b.e, gb_bytes_c("s")).code, GB_OK);
    b.rules.bytes_max = 5 + 14; /* Subject: 7 + 6 + 1 */
    assert_int_equal(plan(&b), GB_OK);
    b.rules.bytes_max--;
    assert_int_equal(plan(&b), GB_PAYLOAD_TOO_LARGE);
    b.rules.bytes_max = 8 + 37 + 14; /* base64 of five bytes, the mark, Subject */
    b.rules.encoding = GB_ENCODING_BASE64;
    assert_int_equal(plan(&b), GB_OK);
    assert_int_equal(b.m.size, 8 + 37 + 14);
    b.rules.bytes_max--;
    assert_int_equal(plan(&b), GB_PAYLOAD_TOO_LARGE);
    close_bench(&b);
}

static void fifo_ids(void **state)
{
    static const struct {
        const char *name;
        const char *ordering, *dedup, *group;
        enum gb_code want;
        const char *want_group;
    } rows[] = {
        {"ordering key wins", "k", "d", "g", GB_OK, "k"},
        {"default group", NULL, "d", "g", GB_OK, "g"},
        {"none", NULL, "d", NULL, GB_INVALID_PAYLOAD, ""},
        {"illegal group", "a b", "d", "g", GB_INVALID_PAYLOAD, ""},
        {"illegal dedup id", "k", "ü", "g", GB_INVALID_PAYLOAD, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench b;
        open_bench(&b, "x");
        b.rules.fifo = true;
        b.rules.group = rows[i].group;
        if (rows[i].ordering != NULL) put(&b, "x-bridge.ordering-key", text(rows[i].ordering));
        put(&b, "x-bridge.dedup-id", text(rows[i].dedup));
        if (plan(&b) != rows[i].want) fail_msg("%s", rows[i].name);
        if (rows[i].want == GB_OK) {
            assert_true(gb_bytes_equal_c(b.m.group, rows[i].want_group));
            assert_true(gb_bytes_equal_c(b.m.dedup, rows[i].dedup));
            assert_int_equal(b.m.attribute_count, 0);
        }
        close_bench(&b);
    }
}

static void many_headers(void **state)
{
    struct bench b;
    char name[16];
    (void)state;
    open_bench(&b, "x");
    for (int i = GB_ENVELOPE_HEADERS_MAX - 1; i >= 0; i--) {
        (void)snprintf(name, sizeof name, "h%04d", i);
        put(&b, name, text("v"));
    }
    assert_int_equal(plan(&b), GB_OK);
    assert_int_equal(b.m.attribute_count, 10);
    assert_true(gb_bytes_equal_c(b.m.attributes[9].name, "h0009"));
    assert_int_equal(b.m.dropped, GB_ENVELOPE_HEADERS_MAX - 10);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_digests),
        cmocka_unit_test(empty_and_illegal_values_are_counted),
        cmocka_unit_test(sizes_are_those_of_sqs),
        cmocka_unit_test(fifo_ids),
        cmocka_unit_test(many_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
