#include "adapters/mqtt/mqtt_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/mqtt_packets.h"
#include "support/mqtt_vectors.h"
#include "support/oom.h"

/* Each packet that can be encoded, into an empty buffer whose allocation fails: `failed` is set and
 * no byte is there; then the same buffer takes it. */
static void a_failed_buffer_takes_no_byte(void **state)
{
    (void)state;
    unsigned encoded = 0;
    for (size_t i = 0; i < mqtt_vector_count; i++) {
        const struct mqtt_vector *v = &mqtt_vectors[i];
        struct gb_str in = {0};
        struct gb_str out = {0};
        struct gb_mqtt_frame frame;
        struct gb_mqtt_packet packet;
        mqtt_from_hex(&in, v->hex);
        assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&in), in.size, &frame), GB_MQTT_FRAME_OK);
        struct gb_err err = mqtt_decode_by(v->from_client, &frame, v->version, &packet);
        if (!gb_failed(err) && packet.type != GB_MQTT_AUTH) {
            gb_oom_fail_at(1);
            (void)mqtt_reencode(&packet, v->version, &out);
            gb_oom_off();
            if (!out.failed || out.size != 0) fail_msg("%s: %zu bytes", v->name, out.size);
            gb_str_clear(&out);
            (void)mqtt_reencode(&packet, v->version, &out);
            if (out.failed || out.size == 0) fail_msg("%s: no bytes", v->name);
            encoded++;
        }
        gb_str_deinit(&out);
        gb_str_deinit(&in);
    }
    assert_true(encoded > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_buffer_takes_no_byte)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
