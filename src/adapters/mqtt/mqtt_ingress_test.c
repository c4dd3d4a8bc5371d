#include "adapters/mqtt/mqtt_ingress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1764547200000)

static const char long_256[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

struct fixture { /* a PUBLISH under construction and what became of it */
    struct gb_reactor *reactor;
    struct gb_str raw; /* user properties */
    struct gb_str wire;
    struct gb_mqtt_publish p;
    struct gb_mqtt_ingress in;
    struct gb_mqtt_ingress_result result;
};

static void setup(struct fixture *x)
{
    memset(x, 0, sizeof *x);
    assert_int_equal(gb_reactor_new(1, &x->reactor).code, GB_OK);
    gb_reactor_set_now(x->reactor, 1, NOW_MS);
    x->p.topic = gb_bytes_c("plant/1");
    x->p.payload = gb_bytes_c("{}");
    x->in.version = GB_MQTT_V5;
    x->in.max_payload_bytes = 262144;
}

static void user(struct fixture *x, const char *name, const char *value)
{
    gb_mqtt_user_append(&x->raw, gb_bytes_c(name), gb_bytes_c(value));
}

static void correlation(struct fixture *x, const void *data, size_t size)
{
    x->p.properties.has |= GB_MQTT_HAS(GB_MQTT_P_CORRELATION_DATA);
    x->p.properties.correlation_data = gb_bytes(data, size);
}

/* The PUBLISH goes over the wire first, so that the views and sizes are those of a decoded
 * packet. */
static void build(struct fixture *x)
{
    struct gb_mqtt_frame frame;
    struct gb_mqtt_packet packet;
    x->p.properties.raw = gb_str_bytes(&x->raw);
    gb_mqtt_encode_publish(&x->wire, x->in.version, &x->p);
    assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&x->wire), x->wire.size, &frame),
                     GB_MQTT_FRAME_OK);
    assert_int_equal(gb_mqtt_decode(&frame, x->in.version, &packet).code, GB_OK);
    assert_int_equal(gb_mqtt_ingress_build(&x->in, &packet.publish, x->reactor, &x->result).code,
                     GB_OK);
    /* One allocation: nothing went beyond the hint. */
    assert_null(x->result.envelope->chunks);
}

static void teardown(struct fixture *x)
{
    gb_envelope_unref(x->result.envelope);
    gb_str_deinit(&x->raw);
    gb_str_deinit(&x->wire);
    gb_reactor_free(x->reactor);
}

static void assert_text(struct gb_bytes got, const char *want)
{
    if (!gb_bytes_equal_c(got, want)) {
        fail_msg("\"%.*s\", not \"%s\"", (int)got.size, (const char *)got.data, want);
    }
}

static void assert_header(const struct fixture *x, const char *name, const char *want)
{
    const struct gb_value *v = gb_envelope_get(x->result.envelope, name);
    if (want == NULL) {
        if (v != NULL) fail_msg("header %s is there", name);
        return;
    }
    if (v == NULL || v->kind != GB_VALUE_TEXT || !gb_bytes_equal_c(v->text, want)) {
        fail_msg("header %s is not \"%s\"", name, want);
    }
}

static void number_is(const struct fixture *x, const char *name, enum gb_value_kind kind,
                      int64_t want)
{
    const struct gb_value *v = gb_envelope_get(x->result.envelope, name);
    assert_non_null(v);
    assert_int_equal(v->kind, kind);
    assert_int_equal(v->number, want);
}

static void topic_retain_and_qos(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    x.p.retain = true;
    x.p.qos = 2;
    x.p.packet_id = 9;
    build(&x);
    assert_header(&x, "mqtt.topic", "plant/1");
    number_is(&x, "mqtt.retained", GB_VALUE_BOOL, 1);
    number_is(&x, "mqtt.qos", GB_VALUE_INT, 2);
    assert_text(x.result.envelope->payload, "{}");
    assert_int_equal(x.result.envelope->subject.size, 0); /* never the topic */
    assert_int_equal(x.result.envelope->created_at_ms, NOW_MS);
    assert_int_equal(x.result.envelope->expires_at_ms, 0);
    teardown(&x);
}

/* Spec 03 check 38. */
static void without_an_id_one_is_minted(void **state)
{
    (void)state;
    struct fixture x;
    struct fixture y;
    setup(&x);
    build(&x);
    struct gb_bytes id = x.result.envelope->id;
    assert_int_equal(id.size, 36);
    assert_int_equal(id.data[14], '4');
    assert_true(gb_bytes_equal(gb_envelope_text(x.result.envelope, "mqtt.message-id"), id));
    assert_header(&x, GB_H_GENERATED_ID, "true");
    assert_int_equal(x.result.derived, GB_DERIVED_GENERATED_ID);
    setup(&y);
    gb_reactor_free(y.reactor);
    y.reactor = x.reactor;
    build(&y); /* the same publish again: another id (spec 03 §6.1) */
    assert_false(gb_bytes_equal(y.result.envelope->id, id));
    gb_envelope_unref(y.result.envelope);
    gb_str_deinit(&y.wire);
    teardown(&x);
}

static void the_pipeline_finds_room(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    user(&x, "k", "v");
    build(&x);
    const struct gb_sanitise s = {
        .route_id = "plant-to-queue", .instance_id = "bridge-1", .derived = x.result.derived};
    assert_int_equal(gb_sanitise_ingress(x.result.envelope, &s, x.reactor).code, GB_OK);
    assert_non_null(gb_envelope_get(x.result.envelope, GB_H_CORRELATION_ID));
    assert_null(x.result.envelope->chunks);
    teardown(&x);
}

static void a_message_id_beats_the_correlation(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    user(&x, "mqtt.message-id", "first");
    user(&x, "mqtt.message-id", "m-1");
    correlation(&x, "corr", 4);
    build(&x);
    assert_text(x.result.envelope->id, "m-1");
    assert_header(&x, "mqtt.message-id", "m-1");
    assert_header(&x, GB_H_CORRELATION_ID, "corr");
    assert_header(&x, GB_H_GENERATED_ID, NULL);
    assert_int_equal(x.result.derived, GB_DERIVED_CORRELATION_ID);
    teardown(&x);
}

static const struct correlation_row {
    const char *name;
    const char *data;
    size_t size;
    const char *id; /* NULL: minted */
    const char *text, *binary;
    unsigned derived;
    uint32_t dropped;
} correlation_rows[] = {
    {"text", "order-7", 7, "order-7", "order-7", NULL, GB_DERIVED_CORRELATION_ID, 0},
    {"text of 256 bytes", long_256, 256, long_256, long_256, NULL, GB_DERIVED_CORRELATION_ID, 0},
    {"with a NUL", "\0\x01\xff", 3, "mqtt-bin:AAH_", NULL, "AAH_", GB_DERIVED_CORRELATION_DATA, 0},
    {"with a line feed", "a\n", 2, "mqtt-bin:YQo", NULL, "YQo", GB_DERIVED_CORRELATION_DATA, 0},
    {"empty", "", 0, NULL, NULL, NULL, GB_DERIVED_GENERATED_ID, 0},
};

static void correlation_data_by_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof correlation_rows / sizeof correlation_rows[0]; i++) {
        const struct correlation_row *row = &correlation_rows[i];
        struct fixture x;
        setup(&x);
        correlation(&x, row->data, row->size);
        build(&x);
        if (x.result.derived != row->derived)
            fail_msg("%s: derived %x", row->name, x.result.derived);
        if (row->id != NULL) assert_text(x.result.envelope->id, row->id);
        assert_header(&x, GB_H_CORRELATION_ID, row->text);
        assert_header(&x, GB_H_CORRELATION_DATA, row->binary);
        assert_int_equal(x.result.header_dropped, row->dropped);
        teardown(&x);
    }
}

static void large_binary_correlation(void **state)
{
    (void)state;
    struct fixture x;
    uint8_t data[257];
    memset(data, 0xFE, sizeof data);
    setup(&x);
    correlation(&x, data, 256);
    build(&x);
    assert_int_equal(x.result.envelope->id.size, 9 + 342);
    teardown(&x);
    setup(&x);
    correlation(&x, data, 257);
    build(&x);
    assert_int_equal(x.result.header_dropped, 1);
    assert_int_equal(x.result.derived, GB_DERIVED_GENERATED_ID);
    teardown(&x);
}

static void typed_properties(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    user(&x, "gobridge.subject", "order.created");
    user(&x, "mqtt.response-topic", "forged");
    user(&x, "x-bridge.content-type", "forged");
    struct gb_mqtt_properties *p = &x.p.properties;
    p->has = GB_MQTT_HAS(GB_MQTT_P_CONTENT_TYPE) | GB_MQTT_HAS(GB_MQTT_P_RESPONSE_TOPIC) |
             GB_MQTT_HAS(GB_MQTT_P_MESSAGE_EXPIRY);
    p->content_type = gb_bytes_c("text/plain");
    p->response_topic = gb_bytes_c("re/ply");
    p->message_expiry = 60;
    build(&x);
    assert_text(x.result.envelope->subject, "order.created");
    assert_header(&x, "gobridge.subject", NULL);
    assert_header(&x, "mqtt.response-topic", "re/ply");
    assert_header(&x, GB_H_CONTENT_TYPE, "text/plain");
    assert_int_equal(x.result.envelope->expires_at_ms, NOW_MS + 60000);
    assert_int_equal(x.result.derived, GB_DERIVED_CONTENT_TYPE | GB_DERIVED_GENERATED_ID);
    assert_int_equal(x.result.header_dropped, 0);
    teardown(&x);
}

static void the_largest_expiry_does_not_overflow(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    x.p.properties.has = GB_MQTT_HAS(GB_MQTT_P_MESSAGE_EXPIRY);
    x.p.properties.message_expiry = UINT32_MAX;
    build(&x);
    assert_int_equal(x.result.envelope->expires_at_ms, NOW_MS + INT64_C(4294967295000));
    teardown(&x);
}

static void unsafe_typed_properties_are_counted(void **state)
{
    (void)state;
    struct fixture x;
    char long_257[258];
    memset(long_257, 'a', 257);
    setup(&x);
    x.p.properties.has =
        GB_MQTT_HAS(GB_MQTT_P_CONTENT_TYPE) | GB_MQTT_HAS(GB_MQTT_P_RESPONSE_TOPIC);
    x.p.properties.content_type = gb_bytes(long_257, 257);
    x.p.properties.response_topic = gb_bytes("a\xff", 2);
    build(&x);
    assert_header(&x, GB_H_CONTENT_TYPE, NULL);
    assert_header(&x, "mqtt.response-topic", NULL);
    assert_int_equal(x.result.header_dropped, 2);
    assert_int_equal(x.result.derived, GB_DERIVED_GENERATED_ID);
    teardown(&x);
}

/* Spec 03 check 29 and the rows of §6.1. */
static const struct user_row {
    const char *name;
    const char *key;
    const char *value;
    bool kept;
    uint32_t dropped;
} user_rows[] = {
    {"ordinary", "colour", "blue", true, 0},
    {"empty value", "colour", "", true, 0},
    {"not ASCII", "city", "Malmö", true, 0},
    {"bridge to bridge", "x-bridge.idempotency-key", "k", true, 0}, /* the pipeline decides */
    {"bridge to bridge, correlation id", "x-bridge.correlation-id", "k", true, 0},
    {"trace", "traceparent", "00-0-0-00", true, 0},
    {"value of 256 bytes", "k", long_256, true, 0},
    {"key of 256 bytes", long_256, "v", true, 0},
    {"another reserved name", "x-bridge.other", "v", true, 0},
    {"forged topic", "mqtt.topic", "evil", false, 0},
    {"forged retained", "mqtt.retained", "true", false, 0},
    {"forged qos", "mqtt.qos", "2", false, 0},
    {"forged mark", "mqtt.generated-id", "true", false, 0},
    {"internal-only", "x-bridge.route-id", "r", false, 0},
    {"internal-only in capitals", "X-Bridge.Route-ID", "r", false, 0},
    {"forged generated id", "x-bridge.generated-id", "true", false, 0},
    {"forged correlation data", "x-bridge.correlation-data", "AA", false, 0},
    {"control character in the value", "k", "a\tb", false, 1},
    {"C1 control character", "k", "a\xc2\x85", false, 1},
    {"control character in the key", "k\x01", "v", false, 1},
    {"bad UTF-8 in the value", "k", "a\xff", false, 1},
    {"bad UTF-8 in the key", "\xc0\x80", "v", false, 1},
    {"no key", "", "v", false, 1},
};

static void user_properties_by_name_and_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof user_rows / sizeof user_rows[0]; i++) {
        const struct user_row *row = &user_rows[i];
        struct fixture x;
        setup(&x);
        user(&x, "mqtt.message-id", "m");
        user(&x, row->key, row->value);
        build(&x);
        const struct gb_value *v = gb_envelope_get(x.result.envelope, row->key);
        bool kept = v != NULL && v->kind == GB_VALUE_TEXT && gb_bytes_equal_c(v->text, row->value);
        if (kept != row->kept || x.result.header_dropped != row->dropped) {
            fail_msg("%s: kept %d, dropped %u", row->name, kept, x.result.header_dropped);
        }
        assert_int_equal(x.result.derived, 0);
        assert_header(&x, "mqtt.topic", "plant/1");
        teardown(&x);
    }
}

static void values_above_256_bytes_are_counted(void **state)
{
    (void)state;
    struct fixture x;
    char long_257[258];
    memset(long_257, 'a', 257);
    long_257[257] = '\0';
    setup(&x);
    user(&x, "value", long_257);
    user(&x, long_257, "value");
    user(&x, "gobridge.subject", long_257);
    user(&x, "mqtt.message-id", long_257);
    user(&x, "mqtt.topic", long_257); /* dropped for its name: not counted */
    build(&x);
    assert_int_equal(x.result.header_dropped, 4);
    assert_int_equal(x.result.envelope->subject.size, 0);
    assert_int_equal(x.result.derived, GB_DERIVED_GENERATED_ID);
    teardown(&x);
}

static void the_last_duplicate_wins(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    user(&x, "k", "1");
    user(&x, "gobridge.subject", "one");
    user(&x, "k", "2");
    user(&x, "gobridge.subject", "two");
    build(&x);
    assert_header(&x, "k", "2");
    assert_text(x.result.envelope->subject, "two");
    teardown(&x);
}

static void many_headers_stay_one_allocation(void **state)
{
    (void)state;
    for (unsigned count = 0; count <= GB_MQTT_USER_PROPERTIES_MAX; count++) {
        struct fixture x;
        setup(&x);
        for (unsigned i = 0; i < count; i++) {
            const char name[] = {'k', (char)('a' + i % 26), (char)('a' + i / 26), '\0'};
            user(&x, name, "v");
        }
        build(&x);
        assert_int_equal(x.result.envelope->header_count, 5 + count);
        teardown(&x);
    }
}

/* Spec 03 check 35: the vector of §13. */
static void content_hash_of_v311(void **state)
{
    (void)state;
    struct fixture x;
    setup(&x);
    x.in.version = GB_MQTT_V311;
    x.in.content_hash = true;
    x.in.client_id = gb_bytes_c("c");
    x.in.urls = gb_bytes_c("tcp://broker:1883");
    x.p.topic = gb_bytes_c("t");
    x.p.payload = gb_bytes_c("p");
    x.p.dup = true;
    x.p.qos = 1;
    x.p.packet_id = 4;
    build(&x);
    assert_text(x.result.envelope->id, "mqtt-sha256:J9sTAITCmYSboGvwPskEehxc2_vzajBMr1WEj0MBI1k");
    assert_int_equal(x.result.envelope->header_count, 3);
    assert_int_equal(x.result.derived, 0);
    teardown(&x);
    setup(&x);
    x.in.version = GB_MQTT_V311;
    build(&x);
    assert_int_equal(x.result.envelope->id.size, 36);
    assert_int_equal(x.result.derived, GB_DERIVED_GENERATED_ID);
    teardown(&x);
}

/* Spec 03 check 27 and §6.3. */
static const struct poison_row {
    const char *name;
    size_t payload;
    uint32_t user_count;
    size_t topic, raw;
    enum gb_mqtt_poison want;
    bool truncated;
} poison_rows[] = {
    {"all at their limits", 1000, 128, 72, 131000, GB_MQTT_POISON_NONE, false},
    {"payload", 1001, 0, 1, 0, GB_MQTT_POISON_PAYLOAD, false},
    {"129 user properties", 0, 129, 1, 900, GB_MQTT_POISON_USER_PROPERTIES, false},
    {"130 user properties", 0, 130, 1, 900, GB_MQTT_POISON_USER_PROPERTIES, true},
    {"metadata", 0, 0, 73, 131000, GB_MQTT_POISON_METADATA, false},
    {"payload comes first", 1001, 130, 73, 131000, GB_MQTT_POISON_PAYLOAD, true},
    {"user properties before metadata", 0, 129, 73, 131000, GB_MQTT_POISON_USER_PROPERTIES, false},
};

static void poison_by_class(void **state)
{
    (void)state;
    char *bytes = calloc(1, 131072);
    assert_non_null(bytes);
    const struct gb_mqtt_ingress in = {.version = GB_MQTT_V5, .max_payload_bytes = 1000};
    for (size_t i = 0; i < sizeof poison_rows / sizeof poison_rows[0]; i++) {
        const struct poison_row *row = &poison_rows[i];
        const struct gb_mqtt_publish p = {
            .topic = gb_bytes(bytes, row->topic),
            .payload = gb_bytes(bytes, row->payload),
            .properties = {.raw = gb_bytes(bytes, row->raw), .user_count = row->user_count},
        };
        bool truncated = !row->truncated;
        enum gb_mqtt_poison got = gb_mqtt_ingress_classify(&in, &p, &truncated);
        if (got != row->want || truncated != row->truncated) {
            fail_msg("%s: %s", row->name, gb_mqtt_poison_name(got));
        }
        assert_int_equal(gb_mqtt_ingress_classify(&in, &p, NULL), got);
    }
    free(bytes);
    assert_string_equal(gb_mqtt_poison_name(GB_MQTT_POISON_PAYLOAD), "payload");
    assert_string_equal(gb_mqtt_poison_name(GB_MQTT_POISON_USER_PROPERTIES), "user_properties");
    assert_string_equal(gb_mqtt_poison_name(GB_MQTT_POISON_METADATA), "metadata");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_retain_and_qos),
        cmocka_unit_test(without_an_id_one_is_minted),
        cmocka_unit_test(the_pipeline_finds_room),
        cmocka_unit_test(a_message_id_beats_the_correlation),
        cmocka_unit_test(correlation_data_by_kind),
        cmocka_unit_test(large_binary_correlation),
        cmocka_unit_test(typed_properties),
        cmocka_unit_test(the_largest_expiry_does_not_overflow),
        cmocka_unit_test(unsafe_typed_properties_are_counted),
        cmocka_unit_test(user_properties_by_name_and_text),
        cmocka_unit_test(values_above_256_bytes_are_counted),
        cmocka_unit_test(the_last_duplicate_wins),
        cmocka_unit_test(many_headers_stay_one_allocation),
        cmocka_unit_test(content_hash_of_v311),
        cmocka_unit_test(poison_by_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
