#include "adapters/mqtt/mqtt_properties.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_packet.h"

/* A decoded PUBLISH with these encoded properties; `in` keeps the bytes. */
static struct gb_mqtt_properties decode_publish(struct gb_bytes raw, struct gb_str *in)
{
    struct gb_str body = {0};
    struct gb_mqtt_frame frame;
    struct gb_mqtt_packet packet;
    uint8_t length[4];
    size_t length_size = 0;
    for (size_t left = raw.size; left > 0 || length_size == 0; left >>= 7) {
        length[length_size++] = (uint8_t)((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
    }
    gb_str_append(&body, gb_bytes("\0\1t", 3));
    gb_str_append(&body, gb_bytes(length, length_size));
    gb_str_append(&body, raw);
    gb_str_append_char(in, 0x30);
    for (size_t left = body.size, first = 1; left > 0 || first; left >>= 7, first = 0) {
        gb_str_append_char(in, (char)((left & 0x7F) | (left > 0x7F ? 0x80 : 0)));
    }
    gb_str_append(in, gb_str_bytes(&body));
    gb_str_deinit(&body);
    assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(in), in->size, &frame), GB_MQTT_FRAME_OK);
    assert_int_equal(gb_mqtt_decode(&frame, GB_MQTT_V5, &packet).code, GB_OK);
    return packet.publish.properties;
}

static void user_properties_come_in_order(void **state)
{
    (void)state;
    struct gb_str raw = {0};
    struct gb_str in = {0};
    struct gb_mqtt_user_iterator it;
    struct gb_mqtt_user_property user;
    gb_str_append(&raw, gb_bytes("\x01\x01", 2)); /* payload format, then pairs, then expiry */
    gb_mqtt_user_append(&raw, gb_bytes_c("a"), gb_bytes_c("1"));
    gb_mqtt_user_append(&raw, gb_bytes_c(""), gb_bytes_c(""));
    gb_str_append(&raw, gb_bytes("\x02\0\0\0\x05", 5));
    gb_mqtt_user_append(&raw, gb_bytes_c("a"), gb_bytes_c("2"));
    struct gb_mqtt_properties p = decode_publish(gb_str_bytes(&raw), &in);
    assert_int_equal(p.user_count, 3);
    assert_int_equal(p.message_expiry, 5);
    gb_mqtt_user_begin(&it, &p);
    assert_true(gb_mqtt_user_next(&it, &user));
    assert_true(gb_bytes_equal_c(user.name, "a") && gb_bytes_equal_c(user.value, "1"));
    assert_true(gb_mqtt_user_next(&it, &user));
    assert_int_equal(user.name.size + user.value.size, 0);
    assert_true(gb_mqtt_user_next(&it, &user));
    assert_true(gb_bytes_equal_c(user.name, "a") && gb_bytes_equal_c(user.value, "2"));
    assert_false(gb_mqtt_user_next(&it, &user));
    gb_str_deinit(&raw);
    gb_str_deinit(&in);
}

static void none_without_user_properties(void **state)
{
    (void)state;
    struct gb_str in = {0};
    struct gb_mqtt_user_iterator it;
    struct gb_mqtt_user_property user;
    struct gb_mqtt_properties p = decode_publish(gb_bytes("\x01\x01", 2), &in);
    gb_mqtt_user_begin(&it, &p);
    assert_false(gb_mqtt_user_next(&it, &user));
    gb_str_deinit(&in);
}

static const struct count_row {
    const char *name;
    unsigned sent;
    unsigned seen;
} count_rows[] = {
    {"the limit", 128, 128}, {"one more", 129, 129}, {"two more", 130, 129}, {"many", 5000, 129}};

static void iteration_stops_after_the_129th(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof count_rows / sizeof count_rows[0]; i++) {
        struct gb_str raw = {0};
        struct gb_str in = {0};
        struct gb_mqtt_user_iterator it;
        struct gb_mqtt_user_property user;
        for (unsigned k = 0; k < count_rows[i].sent; k++) {
            gb_mqtt_user_append(&raw, gb_bytes_c("key"), gb_bytes_c("value"));
        }
        struct gb_mqtt_properties p = decode_publish(gb_str_bytes(&raw), &in);
        unsigned seen = 0;
        gb_mqtt_user_begin(&it, &p);
        while (gb_mqtt_user_next(&it, &user)) seen++;
        if (p.user_count != count_rows[i].sent || seen != count_rows[i].seen) {
            fail_msg("%s: %u, %u seen", count_rows[i].name, p.user_count, seen);
        }
        gb_str_deinit(&raw);
        gb_str_deinit(&in);
    }
}

static void a_pair_that_is_too_long_fails(void **state)
{
    (void)state;
    struct gb_str out = {0};
    char *text = calloc(1, 65536);
    assert_non_null(text);
    gb_mqtt_user_append(&out, gb_bytes(text, 65535), gb_bytes(text, 65535));
    assert_int_equal(out.size, 5 + 2 * 65535);
    gb_mqtt_user_append(&out, gb_bytes_c("k"), gb_bytes(text, 65536));
    assert_true(out.failed);
    assert_int_equal(out.size, 5 + 2 * 65535);
    gb_str_deinit(&out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_properties_come_in_order),
        cmocka_unit_test(none_without_user_properties),
        cmocka_unit_test(iteration_stops_after_the_129th),
        cmocka_unit_test(a_pair_that_is_too_long_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
