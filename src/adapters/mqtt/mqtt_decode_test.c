#include "adapters/mqtt/mqtt_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "support/mqtt_packets.h"
#include "support/mqtt_vectors.h"

/* Splits and decodes one packet; the views stay valid while `in` lives. */
static struct gb_err decode(struct gb_bytes in, bool from_client, enum gb_mqtt_version version,
                            struct gb_mqtt_packet *out)
{
    struct gb_mqtt_frame frame;
    if (gb_mqtt_frame_next(in, in.size, &frame) != GB_MQTT_FRAME_OK || frame.size != in.size) {
        return gb_err(GB_INTERNAL, "the vector is no frame");
    }
    return mqtt_decode_by(from_client, &frame, version, out);
}

static void check_vector(const struct mqtt_vector *v)
{
    struct gb_str in = {0};
    struct gb_mqtt_packet packet;
    memset(&packet, 0, sizeof packet);
    mqtt_from_hex(&in, v->hex);
    struct gb_err err = decode(gb_str_bytes(&in), v->from_client, v->version, &packet);
    if (v->why == NULL) {
        if (gb_failed(err)) fail_msg("%s: %s", v->name, err.message);
        assert_int_equal(packet.type, (uint8_t)in.data[0] >> 4);
        mqtt_check_round_trip(v->from_client, &packet, v->version, gb_str_bytes(&in));
    } else if (err.code != GB_PROTOCOL_ERROR || strstr(err.message, v->why) == NULL) {
        fail_msg("%s: %s \"%s\"", v->name, gb_code_name(err.code), err.message);
    }
    gb_str_deinit(&in);
}

static void vectors_decode_as_they_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < mqtt_vector_count; i++) check_vector(&mqtt_vectors[i]);
}

/* Every cut of every good vector: the fixed header tells the new length, and the decoder reads no
 * byte past it (the copy on the heap has exactly that size). */
static void cut_packets_are_refused_or_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < mqtt_vector_count; i++) {
        struct gb_str in = {0};
        struct gb_mqtt_frame whole;
        mqtt_from_hex(&in, mqtt_vectors[i].hex);
        assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&in), in.size, &whole), GB_MQTT_FRAME_OK);
        for (size_t size = 0; size < whole.body.size; size++) {
            char *copy = malloc(size == 0 ? 1 : size);
            assert_non_null(copy);
            if (size > 0) memcpy(copy, whole.body.data, size);
            struct gb_mqtt_frame cut = whole;
            cut.body = gb_bytes(copy, size);
            struct gb_mqtt_packet packet;
            struct gb_err err =
                mqtt_decode_by(mqtt_vectors[i].from_client, &cut, mqtt_vectors[i].version, &packet);
            assert_true(err.code == GB_OK || err.code == GB_PROTOCOL_ERROR);
            free(copy);
        }
        gb_str_deinit(&in);
    }
}

/* --- fields --- */

static struct gb_mqtt_packet packet_of(const char *name, enum gb_mqtt_version version,
                                       bool from_client, struct gb_str *in)
{
    struct gb_mqtt_packet packet;
    memset(&packet, 0, sizeof packet);
    for (size_t i = 0; i < mqtt_vector_count; i++) {
        const struct mqtt_vector *v = &mqtt_vectors[i];
        if (v->version != version || v->from_client != from_client || strcmp(v->name, name) != 0) {
            continue;
        }
        gb_str_clear(in);
        mqtt_from_hex(in, v->hex);
        assert_int_equal(decode(gb_str_bytes(in), from_client, version, &packet).code, GB_OK);
        return packet;
    }
    fail_msg("no vector %s", name);
    return packet;
}

static void assert_text(struct gb_bytes got, const char *want)
{
    if (!gb_bytes_equal_c(got, want))
        fail_msg("\"%.*s\", not \"%s\"", (int)got.size, got.data, want);
}

static void connack_fields(void **state)
{
    (void)state;
    struct gb_str in = {0};
    struct gb_mqtt_connack c = packet_of("connack", GB_MQTT_V5, false, &in).connack;
    assert_false(c.session_present);
    assert_int_equal(c.receive_maximum, 65535);
    assert_int_equal(c.maximum_qos, 2);
    assert_int_equal(c.maximum_packet_size, 0);
    assert_true(c.retain_available && c.wildcard_available && c.shared_available);
    assert_false(c.has_server_keep_alive);
    c = packet_of("connack all properties", GB_MQTT_V5, false, &in).connack;
    assert_int_equal(c.receive_maximum, 20);
    assert_int_equal(c.maximum_qos, 1);
    assert_int_equal(c.maximum_packet_size, 65536);
    assert_false(c.retain_available);
    assert_true(c.wildcard_available);
    assert_false(c.shared_available);
    assert_true(c.has_server_keep_alive);
    assert_int_equal(c.server_keep_alive, 60);
    assert_int_equal(c.properties.session_expiry, 3600);
    assert_int_equal(c.properties.topic_alias_maximum, 10);
    assert_int_equal(c.properties.subscription_id_available, 1);
    assert_text(c.properties.assigned_client_id, "abc");
    assert_text(c.properties.reason_string, "ok");
    assert_text(c.properties.response_info, "r");
    assert_text(c.properties.server_reference, "s");
    assert_text(c.properties.auth_method, "m");
    assert_text(c.properties.auth_data, "d");
    assert_int_equal(c.properties.user_count, 1);
    assert_true(
        packet_of("connack session present", GB_MQTT_V5, false, &in).connack.session_present);
    c = packet_of("connack 3", GB_MQTT_V311, false, &in).connack;
    assert_int_equal(c.reason, 0x88);
    assert_int_equal(c.maximum_qos, 2);
    assert_true(c.retain_available);
    gb_str_deinit(&in);
}

static void publish_fields(void **state)
{
    (void)state;
    struct gb_str in = {0};
    struct gb_mqtt_publish p = packet_of("publish all properties", GB_MQTT_V5, false, &in).publish;
    assert_text(p.topic, "a");
    assert_text(p.payload, "x");
    assert_int_equal(p.qos, 1);
    assert_int_equal(p.packet_id, 1);
    assert_false(p.dup || p.retain);
    assert_int_equal(p.properties.payload_format, 1);
    assert_int_equal(p.properties.message_expiry, 60);
    assert_int_equal(p.properties.subscription_id, 5);
    assert_text(p.properties.content_type, "text/plain");
    assert_text(p.properties.response_topic, "re/ply");
    assert_int_equal(p.properties.correlation_data.size, 2);
    p = packet_of("publish qos 2 dup retained", GB_MQTT_V311, false, &in).publish;
    assert_true(p.dup && p.retain);
    assert_int_equal(p.qos, 2);
    assert_int_equal(p.payload.size, 2);
    gb_str_deinit(&in);
}

static void connect_fields(void **state)
{
    (void)state;
    struct gb_str in = {0};
    struct gb_mqtt_connect c = packet_of("connect everything", GB_MQTT_V5, true, &in).connect;
    assert_int_equal(c.version, GB_MQTT_V5);
    assert_true(c.clean_start && c.has_will && c.has_username && c.has_password && c.will_retain);
    assert_int_equal(c.will_qos, 1);
    assert_int_equal(c.keep_alive, 60);
    assert_int_equal(c.session_expiry_interval, 86400);
    assert_int_equal(c.receive_maximum, 192);
    assert_int_equal(c.maximum_packet_size, 393216);
    assert_int_equal(c.will_properties.will_delay, 5);
    assert_text(c.client_id, "c");
    assert_text(c.will_topic, "w/t");
    assert_int_equal(c.will_payload.size, 2);
    assert_text(c.username, "u");
    assert_text(c.password, "p");
    /* The packet, not the caller, says which version it is. */
    c = packet_of("connect everything", GB_MQTT_V311, true, &in).connect;
    assert_int_equal(c.version, GB_MQTT_V311);
    struct gb_mqtt_packet packet;
    memset(&packet, 0, sizeof packet);
    assert_int_equal(decode(gb_str_bytes(&in), true, GB_MQTT_V5, &packet).code, GB_OK);
    assert_int_equal(packet.connect.version, GB_MQTT_V311);
    gb_str_deinit(&in);
}

static void subscribe_and_answer_fields(void **state)
{
    (void)state;
    struct gb_str in = {0};
    struct gb_mqtt_subscribe s = packet_of("subscribe options", GB_MQTT_V5, true, &in).subscribe;
    struct gb_mqtt_subscribe_entry e;
    assert_int_equal(s.count, 1);
    assert_int_equal(s.properties.subscription_id, 7);
    assert_true(gb_mqtt_subscribe_next(&s.entries, false, &e));
    assert_text(e.filter, "a");
    assert_int_equal(e.qos, 1);
    assert_true(e.no_local && e.retain_as_published);
    assert_int_equal(e.retain_handling, 2);
    assert_false(gb_mqtt_subscribe_next(&s.entries, false, &e));
    s = packet_of("unsubscribe", GB_MQTT_V5, true, &in).subscribe;
    assert_int_equal(s.count, 2);
    assert_true(gb_mqtt_subscribe_next(&s.entries, true, &e));
    assert_true(gb_mqtt_subscribe_next(&s.entries, true, &e));
    assert_text(e.filter, "$share/g/b");
    struct gb_mqtt_suback a = packet_of("suback", GB_MQTT_V5, false, &in).suback;
    assert_int_equal(a.packet_id, 1);
    assert_true(gb_bytes_equal(a.codes, gb_bytes("\x00\x01\x02\x80\x87\xa2", 6)));
    assert_int_equal(packet_of("unsuback", GB_MQTT_V311, false, &in).suback.codes.size, 0);
    assert_int_equal(packet_of("puback", GB_MQTT_V5, false, &in).ack.reason, 0);
    assert_int_equal(packet_of("puback reason", GB_MQTT_V5, false, &in).ack.reason, 0x10);
    struct gb_mqtt_disconnect d =
        packet_of("disconnect properties", GB_MQTT_V5, false, &in).disconnect;
    assert_int_equal(d.reason, 0x9C);
    assert_text(d.properties.server_reference, "other");
    gb_str_deinit(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_decode_as_they_should),
        cmocka_unit_test(cut_packets_are_refused_or_complete),
        cmocka_unit_test(connack_fields),
        cmocka_unit_test(publish_fields),
        cmocka_unit_test(connect_fields),
        cmocka_unit_test(subscribe_and_answer_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
