#include "adapters/mqtt/mqtt_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/mqtt_packets.h"

static void assert_hex(struct gb_str *got, const char *hex)
{
    struct gb_str want = {0};
    mqtt_from_hex(&want, hex);
    assert_false(got->failed);
    if (!gb_bytes_equal(gb_str_bytes(got), gb_str_bytes(&want))) {
        assert_memory_equal(got->data, want.data, want.size < got->size ? want.size : got->size);
        fail_msg("%zu bytes, not %zu", got->size, want.size);
    }
    gb_str_deinit(&want);
    gb_str_clear(got);
}

static void small_packets(void **state)
{
    (void)state;
    struct gb_str out = {0};
    gb_mqtt_append_puback(&out, 0x1234);
    assert_hex(&out, "40021234");
    gb_mqtt_encode_ack(&out, GB_MQTT_V5, GB_MQTT_PUBACK, 0x1234, 0);
    assert_hex(&out, "40021234");
    gb_mqtt_encode_ack(&out, GB_MQTT_V5, GB_MQTT_PUBREC, 1, 0x97);
    assert_hex(&out, "5003000197");
    gb_mqtt_encode_ack(&out, GB_MQTT_V5, GB_MQTT_PUBREL, 1, 0x92);
    assert_hex(&out, "6203000192");
    gb_mqtt_encode_ack(&out, GB_MQTT_V311, GB_MQTT_PUBREL, 1, 0x92);
    assert_hex(&out, "62020001");
    gb_mqtt_encode_ack(&out, GB_MQTT_V311, GB_MQTT_PUBCOMP, 65535, 0);
    assert_hex(&out, "7002ffff");
    gb_mqtt_encode_disconnect(&out, GB_MQTT_V5, 0);
    assert_hex(&out, "e000");
    gb_mqtt_encode_disconnect(&out, GB_MQTT_V5, 0x95);
    assert_hex(&out, "e00195");
    gb_mqtt_encode_disconnect(&out, GB_MQTT_V311, 0x95);
    assert_hex(&out, "e000");
    gb_mqtt_encode_pingreq(&out);
    gb_mqtt_encode_pingresp(&out);
    assert_hex(&out, "c000d000");
    gb_str_deinit(&out);
}

static void connect_packets(void **state)
{
    (void)state;
    struct gb_str out = {0};
    struct gb_mqtt_connect c = {.version = GB_MQTT_V311,
                                .clean_start = true,
                                .keep_alive = 30,
                                .client_id = gb_bytes_c("c")};
    gb_mqtt_encode_connect(&out, &c);
    assert_hex(&out, "100d00044d51545404"
                     "02"
                     "001e"
                     "000163");
    c.receive_maximum = 192; /* no property leaves with v3.1.1 */
    gb_mqtt_encode_connect(&out, &c);
    assert_hex(&out, "100d00044d51545404"
                     "02"
                     "001e"
                     "000163");
    c.version = GB_MQTT_V5;
    c.clean_start = false;
    c.session_expiry_interval = 86400;
    c.maximum_packet_size = 393216;
    c.has_username = true;
    c.username = gb_bytes_c("u");
    c.has_password = true;
    c.password = gb_bytes_c("p");
    c.has_will = true;
    c.will_topic = gb_bytes_c("w");
    c.will_payload = gb_bytes_c("x");
    c.will_qos = 1;
    c.will_retain = true;
    gb_mqtt_encode_connect(&out, &c);
    assert_hex(&out, "102800044d51545405"
                     "ec"
                     "001e"
                     "0d"
                     "1100015180"
                     "2100c0"
                     "2700060000"
                     "000163"
                     "00"
                     "000177"
                     "000178"
                     "000175"
                     "000170");
    gb_str_deinit(&out);
}

static void subscription_packets(void **state)
{
    (void)state;
    struct gb_str out = {0};
    const struct gb_mqtt_subscribe_entry entries[] = {
        {.filter = gb_bytes("a", 1), .qos = 1, .no_local = true, .retain_handling = 1},
        {.filter = gb_bytes("b", 1), .qos = 2, .retain_as_published = true},
    };
    const struct gb_bytes filters[] = {gb_bytes("a", 1), gb_bytes("b", 1)};
    gb_mqtt_encode_subscribe(&out, GB_MQTT_V5, 5, entries, 2);
    assert_hex(&out, "820b0005"
                     "00"
                     "00016115"
                     "0001620a");
    gb_mqtt_encode_subscribe(&out, GB_MQTT_V311, 5, entries, 2);
    assert_hex(&out, "820a0005"
                     "00016101"
                     "00016202");
    gb_mqtt_encode_unsubscribe(&out, GB_MQTT_V5, 5, filters, 2);
    assert_hex(&out, "a2090005"
                     "00"
                     "000161"
                     "000162");
    gb_mqtt_encode_unsubscribe(&out, GB_MQTT_V311, 5, filters, 1);
    assert_hex(&out, "a2050005"
                     "000161");
    gb_mqtt_encode_suback(&out, GB_MQTT_V5, 5, gb_bytes("\x01\x87", 2));
    assert_hex(&out, "90050005"
                     "00"
                     "0187");
    gb_mqtt_encode_suback(&out, GB_MQTT_V311, 5, gb_bytes("\x01\x80", 2));
    assert_hex(&out, "90040005"
                     "0180");
    gb_mqtt_encode_unsuback(&out, GB_MQTT_V5, 5, gb_bytes("\x00\x11", 2));
    assert_hex(&out, "b0050005"
                     "00"
                     "0011");
    gb_mqtt_encode_unsuback(&out, GB_MQTT_V311, 5, gb_bytes("\x00\x11", 2));
    assert_hex(&out, "b0020005");
    gb_str_deinit(&out);
}

static void connack_packets(void **state)
{
    (void)state;
    struct gb_str out = {0};
    const struct gb_mqtt_properties p = {
        .has = GB_MQTT_HAS(GB_MQTT_P_RECEIVE_MAXIMUM) | GB_MQTT_HAS(GB_MQTT_P_MAXIMUM_QOS),
        .receive_maximum = 5,
        .maximum_qos = 1,
    };
    gb_mqtt_encode_connack(&out, GB_MQTT_V5, true, 0, &p);
    assert_hex(&out, "20080100"
                     "05"
                     "210005"
                     "2401");
    gb_mqtt_encode_connack(&out, GB_MQTT_V5, false, 0x87, NULL);
    assert_hex(&out, "20030087"
                     "00");
    gb_mqtt_encode_connack(&out, GB_MQTT_V311, false, 0x87, &p);
    assert_hex(&out, "20020005");
    gb_str_deinit(&out);
}

static void publish_packets(void **state)
{
    (void)state;
    struct gb_str out = {0};
    struct gb_str user = {0};
    gb_mqtt_user_append(&user, gb_bytes_c("k"), gb_bytes_c("v"));
    const struct gb_mqtt_publish p = {
        .qos = 1,
        .dup = true,
        .retain = true,
        .packet_id = 7,
        .topic = gb_bytes_c("t"),
        .payload = gb_bytes_c("xy"),
        .properties = {.has = GB_MQTT_HAS(GB_MQTT_P_MESSAGE_EXPIRY),
                       .message_expiry = 60,
                       .raw = gb_str_bytes(&user)},
    };
    gb_mqtt_encode_publish(&out, GB_MQTT_V5, &p);
    assert_hex(&out, "3b14"
                     "000174"
                     "0007"
                     "0c"
                     "020000003c"
                     "2600016b000176"
                     "7879");
    gb_mqtt_encode_publish(&out, GB_MQTT_V311, &p);
    assert_hex(&out, "3b07"
                     "000174"
                     "0007"
                     "7879");
    gb_str_deinit(&user);
    gb_str_deinit(&out);
}

/* The remaining length at each border of its size: the packet that is written is as long as it
 * says. */
static void lengths_at_their_borders(void **state)
{
    (void)state;
    const size_t remaining[] = {3, 127, 128, 16383, 16384, 2097151, 2097152};
    char *payload = calloc(1, 2097152);
    assert_non_null(payload);
    for (size_t i = 0; i < sizeof remaining / sizeof remaining[0]; i++) {
        struct gb_str out = {0};
        struct gb_mqtt_frame frame;
        struct gb_mqtt_packet packet;
        const struct gb_mqtt_publish p = {.topic = gb_bytes_c("t"),
                                          .payload = gb_bytes(payload, remaining[i] - 3)};
        gb_mqtt_encode_publish(&out, GB_MQTT_V311, &p);
        assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&out), out.size, &frame),
                         GB_MQTT_FRAME_OK);
        assert_int_equal(frame.size, out.size);
        assert_int_equal(frame.body.size, remaining[i]);
        assert_int_equal(gb_mqtt_decode(&frame, GB_MQTT_V311, &packet).code, GB_OK);
        assert_int_equal(packet.publish.payload.size, remaining[i] - 3);
        gb_str_deinit(&out);
    }
    free(payload);
}

/* What does not fit its length prefix fails the buffer and leaves no byte. */
static void too_long_fields_fail_the_buffer(void **state)
{
    (void)state;
    char *text = malloc(65536);
    assert_non_null(text);
    memset(text, 'a', 65536);
    const struct gb_bytes fits = gb_bytes(text, 65535);
    const struct gb_bytes too_long = gb_bytes(text, 65536);
    struct gb_str out = {0};
    struct gb_mqtt_connect c = {.version = GB_MQTT_V5, .client_id = fits};
    gb_mqtt_encode_connect(&out, &c);
    assert_false(out.failed);
    gb_str_clear(&out);
    c.client_id = too_long;
    gb_mqtt_encode_connect(&out, &c);
    assert_true(out.failed && out.size == 0);
    gb_str_clear(&out);
    gb_mqtt_encode_unsubscribe(&out, GB_MQTT_V5, 1, &too_long, 1);
    assert_true(out.failed && out.size == 0);
    gb_str_clear(&out);
    struct gb_mqtt_publish p = {.topic = fits,
                                .properties = {.has = GB_MQTT_HAS(GB_MQTT_P_CORRELATION_DATA),
                                               .correlation_data = too_long}};
    gb_mqtt_encode_publish(&out, GB_MQTT_V5, &p);
    assert_true(out.failed && out.size == 0);
    gb_str_clear(&out);
    /* Never read: only the size is looked at. */
    p.payload = gb_bytes(text, GB_MQTT_REMAINING_MAX);
    gb_mqtt_encode_publish(&out, GB_MQTT_V311, &p);
    assert_true(out.failed && out.size == 0);
    gb_str_deinit(&out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_packets),
        cmocka_unit_test(connect_packets),
        cmocka_unit_test(subscription_packets),
        cmocka_unit_test(connack_packets),
        cmocka_unit_test(publish_packets),
        cmocka_unit_test(lengths_at_their_borders),
        cmocka_unit_test(too_long_fields_fail_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
