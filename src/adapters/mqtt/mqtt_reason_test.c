#include "adapters/mqtt/mqtt_reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Spec 03 §12: each table once more, as ranges of bytes, with the default for everything else. */
static const struct reason_row {
    const char *name;
    struct gb_err (*map)(uint8_t reason);
    enum gb_code code;
    const char *reasons;
} rows[] = {
    {"connack", gb_mqtt_reason_connack, GB_PROTOCOL_ERROR, "\x81\x82\x83\x84\x9a\x9e\xa1\xa2"},
    {"connack", gb_mqtt_reason_connack, GB_INVALID_PAYLOAD, "\x85\x99"},
    {"connack", gb_mqtt_reason_connack, GB_NOT_AUTHORIZED, "\x86\x87\x8a\x8c"},
    {"connack", gb_mqtt_reason_connack, GB_UNAVAILABLE, "\x88\x8b\x9c\x9d\x80\x91\x92\x98\xa0\xff"},
    {"connack", gb_mqtt_reason_connack, GB_BROKER_BUSY, "\x89"},
    {"connack", gb_mqtt_reason_connack, GB_TIMEOUT, "\x8d"},
    {"connack", gb_mqtt_reason_connack, GB_CONNECTION_LOST, "\x8e"},
    {"connack", gb_mqtt_reason_connack, GB_INVALID_TOPIC, "\x8f\x90\x94"},
    {"connack", gb_mqtt_reason_connack, GB_THROTTLED, "\x93\x96\x97\x9f"},
    {"connack", gb_mqtt_reason_connack, GB_PAYLOAD_TOO_LARGE, "\x95"},
    {"connack", gb_mqtt_reason_connack, GB_QOS_NOT_SUPPORTED, "\x9b"},
    {"puback", gb_mqtt_reason_puback, GB_PROTOCOL_ERROR, "\x83\x91"},
    {"puback", gb_mqtt_reason_puback, GB_FORBIDDEN, "\x87"},
    {"puback", gb_mqtt_reason_puback, GB_INVALID_TOPIC, "\x90"},
    {"puback", gb_mqtt_reason_puback, GB_THROTTLED, "\x97"},
    {"puback", gb_mqtt_reason_puback, GB_INVALID_PAYLOAD, "\x99"},
    {"puback", gb_mqtt_reason_puback, GB_UNAVAILABLE, "\x80\x92\x95\x9b\xff"},
    {"puback", gb_mqtt_reason_puback, GB_OK, "\x10"},
    {"suback", gb_mqtt_reason_suback, GB_PROTOCOL_ERROR, "\x83\x91\x9e\xa1\xa2"},
    {"suback", gb_mqtt_reason_suback, GB_FORBIDDEN, "\x87"},
    {"suback", gb_mqtt_reason_suback, GB_INVALID_TOPIC, "\x8f"},
    {"suback", gb_mqtt_reason_suback, GB_THROTTLED, "\x97"},
    {"suback", gb_mqtt_reason_suback, GB_UNAVAILABLE, "\x80\x90\x99\xff"},
    {"suback", gb_mqtt_reason_suback, GB_OK, "\x01\x02\x11"},
};

static void check_row(const struct reason_row *row)
{
    for (const char *c = row->reasons; *c != '\0'; c++) {
        struct gb_err err = row->map((uint8_t)*c);
        if (err.code == row->code) continue;
        fail_msg("%s %02x: %s", row->name, (uint8_t)*c, gb_code_name(err.code));
    }
    assert_int_equal(row->map(0).code, GB_OK);
}

static void codes_follow_the_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) check_row(&rows[i]);
}

static void messages_name_the_reason(void **state)
{
    (void)state;
    assert_non_null(strstr(gb_mqtt_reason_puback(0x97).message, "0x97, quota exceeded"));
    assert_non_null(strstr(gb_mqtt_reason_connack(0xF7).message, "0xF7, unknown reason"));
    assert_string_equal(gb_mqtt_reason_name(0x8E), "session taken over");
    assert_string_equal(gb_mqtt_reason_name(0xA2), "wildcard subscriptions not supported");
}

static void v311_codes_become_reasons(void **state)
{
    (void)state;
    static const uint8_t want[] = {0x00, 0x84, 0x85, 0x88, 0x86, 0x87}; /* spec 03 §13 */
    for (unsigned code = 0; code < COUNT(want); code++) {
        uint8_t reason = 0xFF;
        assert_true(gb_mqtt_reason_from_v311((uint8_t)code, &reason));
        assert_int_equal(reason, want[code]);
        assert_int_equal(gb_mqtt_reason_to_v311(reason), code);
    }
    uint8_t untouched = 0x55;
    assert_false(gb_mqtt_reason_from_v311(6, &untouched));
    assert_false(gb_mqtt_reason_from_v311(255, &untouched));
    assert_int_equal(untouched, 0x55);
    assert_int_equal(gb_mqtt_reason_to_v311(0x97), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_follow_the_tables),
        cmocka_unit_test(messages_name_the_reason),
        cmocka_unit_test(v311_codes_become_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
