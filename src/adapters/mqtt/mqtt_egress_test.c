#include "adapters/mqtt/mqtt_egress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_ingress.h"

#define NOW_MS INT64_C(1764547200000)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gb_mqtt_egress plain = {
    .v5 = true, .qos = 1, .maximum_qos = 2, .retain_available = true, .now_ms = NOW_MS};

struct fixture {
    struct gb_envelope *envelope;
    struct gb_mqtt_egress egress;
    struct gb_str out;
    uint32_t dropped;
    struct gb_mqtt_publish p; /* decoded again, as a server sees it */
};

static void setup(struct fixture *x)
{
    memset(x, 0, sizeof *x);
    x->egress = plain;
    assert_int_equal(gb_envelope_new(1000, &x->envelope).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(x->envelope, gb_bytes_c("m-1")).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(x->envelope, gb_bytes_c("{}")).code, GB_OK);
}

static void teardown(struct fixture *x)
{
    gb_envelope_unref(x->envelope);
    gb_str_deinit(&x->out);
}

static void text(struct fixture *x, const char *name, const char *value)
{
    assert_int_equal(gb_envelope_put_text(x->envelope, name, gb_bytes_c(value)).code, GB_OK);
}

static struct gb_err encode(struct fixture *x, const char *address)
{
    uint16_t id = x->egress.qos > 0 ? 7 : 0;
    return gb_mqtt_egress_encode(&x->egress, x->envelope, gb_bytes_c(address), id, &x->out,
                                 &x->dropped);
}

static void encode_and_decode(struct fixture *x, const char *address)
{
    struct gb_mqtt_frame frame;
    struct gb_mqtt_packet packet;
    struct gb_err err = encode(x, address);
    if (gb_failed(err)) fail_msg("%s", err.message);
    assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&x->out), x->out.size, &frame),
                     GB_MQTT_FRAME_OK);
    assert_int_equal(frame.size, x->out.size);
    err = gb_mqtt_decode_client(&frame, x->egress.v5 ? GB_MQTT_V5 : GB_MQTT_V311, &packet);
    if (gb_failed(err)) fail_msg("%s", err.message);
    assert_int_equal(packet.type, GB_MQTT_PUBLISH);
    x->p = packet.publish;
}

static void assert_text(struct gb_bytes got, const char *want)
{
    if (!gb_bytes_equal_c(got, want)) {
        fail_msg("\"%.*s\", not \"%s\"", (int)got.size, (const char *)got.data, want);
    }
}

/* How often a user property of this name and value is there. */
static unsigned user_count(const struct fixture *x, const char *name, const char *value)
{
    struct gb_mqtt_user_iterator it;
    struct gb_mqtt_user_property user;
    unsigned count = 0;
    gb_mqtt_user_begin(&it, &x->p.properties);
    while (gb_mqtt_user_next(&it, &user)) {
        bool same = value == NULL || gb_bytes_equal_c(user.value, value);
        if (same && gb_bytes_equal_c(user.name, name)) count++;
    }
    return count;
}

static void everything_finds_its_place(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    assert_int_equal(gb_envelope_set_subject(x.envelope, gb_bytes_c("order.created")).code, GB_OK);
    x.envelope->expires_at_ms = NOW_MS + 61999;
    text(&x, "mqtt.message-id", "other");
    text(&x, "mqtt.topic", "from/here");
    text(&x, "gobridge.subject", "other");
    text(&x, "mqtt.response-topic", "re/ply");
    text(&x, GB_H_CONTENT_TYPE, "text/plain");
    text(&x, GB_H_CORRELATION_ID, "corr");
    text(&x, GB_H_ROUTE_ID, "r");
    text(&x, GB_H_SOURCE_ID, "s");
    text(&x, GB_H_IDEMPOTENCY_KEY, "k");
    text(&x, "traceparent", "00-1-2-01");
    text(&x, "city", "Malmö");
    x.egress.retain = true;
    encode_and_decode(&x, "plant/1");
    assert_text(x.p.topic, "plant/1");
    assert_text(x.p.payload, "{}");
    assert_int_equal(x.p.qos, 1);
    assert_int_equal(x.p.packet_id, 7);
    assert_true(x.p.retain && !x.p.dup);
    const struct gb_mqtt_properties *p = &x.p.properties;
    assert_int_equal(p->message_expiry, 61);
    assert_text(p->content_type, "text/plain");
    assert_text(p->response_topic, "re/ply");
    assert_text(p->correlation_data, "corr");
    assert_int_equal(p->user_count, 5);
    assert_int_equal(user_count(&x, "mqtt.message-id", "m-1"), 1);
    assert_int_equal(user_count(&x, "gobridge.subject", "order.created"), 1);
    assert_int_equal(user_count(&x, GB_H_IDEMPOTENCY_KEY, "k"), 1);
    assert_int_equal(user_count(&x, "traceparent", "00-1-2-01"), 1);
    assert_int_equal(user_count(&x, "city", "Malmö"), 1);
    assert_int_equal(x.dropped, 0);
    teardown(&x);
}

static void nothing_but_the_id_is_needed(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    x.egress.qos = 0;
    x.egress.default_topic = "fall/back";
    encode_and_decode(&x, "");
    assert_text(x.p.topic, "fall/back");
    assert_int_equal(x.p.packet_id, 0);
    assert_int_equal(x.p.properties.has, 0);
    assert_int_equal(x.p.properties.user_count, 1);
    teardown(&x);
}

static void binary_correlation_beats_the_text(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    text(&x, GB_H_CORRELATION_ID, "fresh");
    text(&x, GB_H_CORRELATION_DATA, "AAH_");
    encode_and_decode(&x, "t");
    assert_int_equal(x.p.properties.correlation_data.size, 3);
    assert_memory_equal(x.p.properties.correlation_data.data, "\0\x01\xff", 3);
    /* What found no place in Correlation Data goes on as the bridge's own property. */
    assert_int_equal(user_count(&x, GB_H_CORRELATION_ID, "fresh"), 1);
    assert_int_equal(user_count(&x, GB_H_CORRELATION_DATA, NULL), 0);
    teardown(&x);
}

static void headers_that_are_not_text_are_counted(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    assert_int_equal(gb_envelope_put_number(x.envelope, "mqtt.qos", GB_VALUE_INT, 1).code, GB_OK);
    assert_int_equal(gb_envelope_put_number(x.envelope, "mqtt.retained", GB_VALUE_BOOL, 1).code,
                     GB_OK);
    assert_int_equal(
        gb_envelope_put_number(x.envelope, "sqs.SentTimestamp", GB_VALUE_TIME, NOW_MS).code, GB_OK);
    assert_int_equal(gb_envelope_put_number(x.envelope, "n", GB_VALUE_INT, 1).code, GB_OK);
    assert_int_equal(
        gb_envelope_put_number(x.envelope, GB_H_SQS_RECEIVE_COUNT, GB_VALUE_INT, 2).code, GB_OK);
    const struct gb_value bytes = {.kind = GB_VALUE_BYTES, .text = gb_bytes("\0", 1)};
    assert_int_equal(gb_envelope_put(x.envelope, gb_bytes_c("b"), bytes).code, GB_OK);
    encode_and_decode(&x, "t");
    /* mqtt.* and the redelivery counter have no place in a PUBLISH anyway. */
    assert_int_equal(x.dropped, 3);
    assert_int_equal(x.p.properties.user_count, 1);
    teardown(&x);
}

static const struct expiry_row {
    const char *name;
    int64_t left_ms;
    uint32_t want;
} expiry_rows[] = {
    {"floor", 1999, 1},
    {"at least 1", 1, 1},
    {"just expired", 0, 1},
    {"long expired", -90000, 1},
    {"a minute", 60000, 60},
    {"the largest", INT64_C(4294967295999), UINT32_MAX},
    {"above", INT64_C(9000000000000), UINT32_MAX},
};

static void expiry_in_whole_seconds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(expiry_rows); i++) {
        struct fixture x;
        setup(&x);
        x.envelope->expires_at_ms = NOW_MS + expiry_rows[i].left_ms;
        encode_and_decode(&x, "t");
        if (x.p.properties.message_expiry != expiry_rows[i].want) {
            fail_msg("%s: %u", expiry_rows[i].name, x.p.properties.message_expiry);
        }
        teardown(&x);
    }
}

static void v311_has_no_properties(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    text(&x, "k", "bad \xff"); /* dropped before it is checked (spec 03 §13) */
    assert_int_equal(gb_envelope_put_number(x.envelope, "n", GB_VALUE_INT, 1).code, GB_OK);
    x.egress.v5 = false;
    encode_and_decode(&x, "t");
    assert_int_equal(x.out.size, 2 + 3 + 2 + 2);
    assert_int_equal(x.dropped, 0);
    teardown(&x);
}

/* --- local refusals --- */

static char long_text[65537];

static void set_retain(struct fixture *x)
{
    x->egress.retain = true;
    x->egress.retain_available = false;
}
static void set_qos(struct fixture *x)
{
    x->egress.qos = 2;
    x->egress.maximum_qos = 1;
}
static void bad_value(struct fixture *x)
{
    text(x, "k", "a\xff");
}
static void bad_name(struct fixture *x)
{
    text(x, "k\xff", "v");
}
static void nul_value(struct fixture *x)
{
    const struct gb_value v = {.kind = GB_VALUE_TEXT, .text = gb_bytes("a\0b", 3)};
    assert_int_equal(gb_envelope_put(x->envelope, gb_bytes_c("k"), v).code, GB_OK);
}
static void bad_subject(struct fixture *x)
{
    assert_int_equal(gb_envelope_set_subject(x->envelope, gb_bytes_c("\xed\xa0\x80")).code, GB_OK);
}
static void bad_content_type(struct fixture *x)
{
    text(x, GB_H_CONTENT_TYPE, "\xff");
}
static void bad_correlation_data(struct fixture *x)
{
    text(x, GB_H_CORRELATION_DATA, "A=");
}
static void long_value(struct fixture *x)
{
    text(x, "k", long_text);
}
static void long_correlation(struct fixture *x)
{
    text(x, GB_H_CORRELATION_ID, long_text);
}
static void long_id(struct fixture *x)
{
    assert_int_equal(gb_envelope_set_id(x->envelope, gb_bytes_c(long_text)).code, GB_OK);
}
static void small_peer(struct fixture *x)
{
    x->egress.maximum_packet_size = 20;
}
static void small_peer_v311(struct fixture *x)
{
    x->egress.v5 = false;
    x->egress.maximum_packet_size = 8; /* the packet has 9 bytes */
}
static void nothing(struct fixture *x)
{
    (void)x;
}

static const struct refusal_row {
    const char *name;
    void (*change)(struct fixture *x);
    const char *address;
    enum gb_code want;
} refusal_rows[] = {
    {"no topic at all", nothing, "", GB_INVALID_TOPIC},
    {"wildcard", nothing, "a/#", GB_INVALID_TOPIC},
    {"shared", nothing, "$share/g/a", GB_INVALID_TOPIC},
    {"topic not UTF-8", nothing, "a\xff", GB_INVALID_TOPIC},
    {"topic too long", nothing, long_text, GB_INVALID_TOPIC},
    {"qos above the broker's", set_qos, "t", GB_QOS_NOT_SUPPORTED},
    {"retain not available", set_retain, "t", GB_PROTOCOL_ERROR},
    {"value not UTF-8", bad_value, "t", GB_INVALID_PAYLOAD},
    {"name not UTF-8", bad_name, "t", GB_INVALID_PAYLOAD},
    {"value with U+0000", nul_value, "t", GB_INVALID_PAYLOAD},
    {"subject not UTF-8", bad_subject, "t", GB_INVALID_PAYLOAD},
    {"content type not UTF-8", bad_content_type, "t", GB_INVALID_PAYLOAD},
    {"correlation data not base64url", bad_correlation_data, "t", GB_INVALID_PAYLOAD},
    {"value too long", long_value, "t", GB_PAYLOAD_TOO_LARGE},
    {"correlation too long", long_correlation, "t", GB_PAYLOAD_TOO_LARGE},
    {"id too long", long_id, "t", GB_PAYLOAD_TOO_LARGE},
    {"packet too large", small_peer, "t", GB_PAYLOAD_TOO_LARGE},
    {"packet too large, v3.1.1", small_peer_v311, "t", GB_PAYLOAD_TOO_LARGE},
};

/* Spec 03 §6.2 and check 32: refused before a byte is written, and not retried. */
static void local_refusals(void **state)
{
    (void)state;
    memset(long_text, 'a', sizeof long_text - 1);
    for (size_t i = 0; i < COUNT(refusal_rows); i++) {
        const struct refusal_row *row = &refusal_rows[i];
        struct fixture x;
        setup(&x);
        row->change(&x);
        x.dropped = 99;
        gb_str_append_c(&x.out, "before");
        struct gb_err err = encode(&x, row->address);
        if (err.code != row->want) {
            fail_msg("%s: %s %s", row->name, gb_code_name(err.code), err.message);
        }
        assert_false(gb_err_is_transient(&err));
        assert_false(x.out.failed);
        assert_string_equal(x.out.data, "before");
        assert_int_equal(x.dropped, 99);
        teardown(&x);
    }
}

static void the_limits_themselves_pass(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[65535] = '\0';
    text(&x, "k", long_text);
    encode_and_decode(&x, long_text);
    size_t size = x.out.size;
    gb_str_clear(&x.out);
    x.egress.maximum_packet_size = (uint32_t)size;
    encode_and_decode(&x, long_text);
    gb_str_clear(&x.out);
    x.egress.maximum_packet_size = (uint32_t)size - 1;
    assert_int_equal(encode(&x, long_text).code, GB_PAYLOAD_TOO_LARGE);
    long_text[65535] = 'a';
    teardown(&x);
}

/* Spec 03 check 30 and 02 check 12: id, subject, binary correlation with NUL, content type,
 * response topic and expiry survive bridge -> broker -> bridge. */
static void bridge_to_broker_to_bridge(void **state)
{
    (void)state;
    struct fixture x;
    struct gb_reactor *r = NULL;
    struct gb_mqtt_ingress_result got;
    const struct gb_mqtt_ingress in = {.version = GB_MQTT_V5, .max_payload_bytes = 1000};
    assert_int_equal(gb_reactor_new(1, &r).code, GB_OK);
    gb_reactor_set_now(r, 1, NOW_MS);
    setup(&x);
    assert_int_equal(gb_envelope_set_subject(x.envelope, gb_bytes_c("order.created")).code, GB_OK);
    x.envelope->expires_at_ms = NOW_MS + 60000;
    text(&x, GB_H_CORRELATION_DATA, "AAH_");
    text(&x, GB_H_CONTENT_TYPE, "application/json");
    text(&x, "mqtt.response-topic", "re/ply");
    text(&x, "city", "Malmö");
    encode_and_decode(&x, "plant/1");
    assert_int_equal(gb_mqtt_ingress_classify(&in, &x.p, NULL), GB_MQTT_POISON_NONE);
    assert_int_equal(gb_mqtt_ingress_build(&in, &x.p, r, &got).code, GB_OK);
    assert_text(got.envelope->id, "m-1");
    assert_text(got.envelope->subject, "order.created");
    assert_text(got.envelope->payload, "{}");
    assert_int_equal(got.envelope->expires_at_ms, NOW_MS + 60000);
    assert_text(gb_envelope_text(got.envelope, "mqtt.topic"), "plant/1");
    assert_text(gb_envelope_text(got.envelope, GB_H_CORRELATION_DATA), "AAH_");
    assert_text(gb_envelope_text(got.envelope, GB_H_CONTENT_TYPE), "application/json");
    assert_text(gb_envelope_text(got.envelope, "mqtt.response-topic"), "re/ply");
    assert_text(gb_envelope_text(got.envelope, "city"), "Malmö");
    assert_int_equal(got.derived, GB_DERIVED_CORRELATION_DATA | GB_DERIVED_CONTENT_TYPE);
    assert_int_equal(got.header_dropped, 0);
    /* And once more: the second hop writes the same bytes. */
    struct fixture y = {.envelope = got.envelope, .egress = plain};
    encode_and_decode(&y, "plant/1");
    assert_true(gb_bytes_equal(y.p.properties.correlation_data, gb_bytes("\0\x01\xff", 3)));
    assert_int_equal(user_count(&y, "mqtt.message-id", "m-1"), 1);
    assert_int_equal(y.out.size, x.out.size);
    assert_int_equal(y.dropped, 0); /* mqtt.qos and mqtt.retained are not text, and not counted */
    teardown(&y);
    teardown(&x);
    gb_reactor_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_finds_its_place),
        cmocka_unit_test(nothing_but_the_id_is_needed),
        cmocka_unit_test(binary_correlation_beats_the_text),
        cmocka_unit_test(headers_that_are_not_text_are_counted),
        cmocka_unit_test(expiry_in_whole_seconds),
        cmocka_unit_test(v311_has_no_properties),
        cmocka_unit_test(local_refusals),
        cmocka_unit_test(the_limits_themselves_pass),
        cmocka_unit_test(bridge_to_broker_to_bridge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
