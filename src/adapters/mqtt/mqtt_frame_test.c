#include "adapters/mqtt/mqtt_packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/mqtt_packets.h"
#include "support/mqtt_vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct frame_row {
    const char *name;
    const char *hex;
    size_t packet_bytes_max;
    enum gb_mqtt_frame_result want;
    size_t size; /* with OK and TOO_LARGE */
} rows[] = {
    {"nothing", "", 100, GB_MQTT_FRAME_NEED_MORE, 0},
    {"first byte only", "30", 100, GB_MQTT_FRAME_NEED_MORE, 0},
    {"length cut", "3080", 100, GB_MQTT_FRAME_NEED_MORE, 0},
    {"body cut", "300201", 100, GB_MQTT_FRAME_NEED_MORE, 0},
    {"whole", "d000", 100, GB_MQTT_FRAME_OK, 2},
    {"the first of two", "d000d000", 100, GB_MQTT_FRAME_OK, 2},
    {"exactly the limit", "3002ffff", 4, GB_MQTT_FRAME_OK, 4},
    {"one above the limit, body not there", "3003", 4, GB_MQTT_FRAME_TOO_LARGE, 5},
    {"largest length", "30ffffff7f", 1000, GB_MQTT_FRAME_TOO_LARGE, 268435460},
    {"length of five bytes", "30ffffffff01", 1000, GB_MQTT_FRAME_MALFORMED, 0},
    {"length of five bytes, cut", "30ffffffff", 1000, GB_MQTT_FRAME_MALFORMED, 0},
    {"length padded", "308000", 1000, GB_MQTT_FRAME_MALFORMED, 0},
    {"length padded twice", "30828000", 1000, GB_MQTT_FRAME_MALFORMED, 0},
    {"type 0", "00", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"publish qos 3", "36", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"publish dup with qos 0", "38", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"publish dup retain with qos 0", "39", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"publish dup with qos 1", "3a02", 100, GB_MQTT_FRAME_NEED_MORE, 0},
    {"connect flags", "11", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"connack flags", "22", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"puback flags", "42", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pubrec flags", "52", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pubrel flags 0", "60", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pubrel flags 3", "63", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pubcomp flags", "72", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"subscribe flags", "80", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"suback flags", "92", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"unsubscribe flags", "a0", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"unsuback flags", "b2", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pingreq flags", "c1", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"pingresp flags", "d8", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"disconnect flags", "e1", 100, GB_MQTT_FRAME_MALFORMED, 0},
    {"auth flags", "f1", 100, GB_MQTT_FRAME_MALFORMED, 0},
};

static void the_fixed_header_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct frame_row *row = &rows[i];
        struct gb_str in = {0};
        struct gb_mqtt_frame frame = {0};
        mqtt_from_hex(&in, row->hex);
        enum gb_mqtt_frame_result got =
            gb_mqtt_frame_next(gb_str_bytes(&in), row->packet_bytes_max, &frame);
        bool sized = got == GB_MQTT_FRAME_OK || got == GB_MQTT_FRAME_TOO_LARGE;
        if (got != row->want || (sized && frame.size != row->size)) {
            fail_msg("%s: result %d, size %zu", row->name, (int)got, frame.size);
        }
        if (got == GB_MQTT_FRAME_OK) {
            assert_int_equal(frame.size, frame.header_size + frame.body.size);
        }
        gb_str_deinit(&in);
    }
}

/* All good vectors in a row, handed over in pieces of `step` bytes: the same packets come out. */
static void check_fragments(struct gb_bytes stream, size_t step, size_t packets)
{
    size_t end = 0;
    size_t used = 0;
    size_t seen = 0;
    while (used < stream.size) {
        struct gb_mqtt_frame frame;
        struct gb_bytes rest = gb_bytes(stream.data + used, end - used);
        enum gb_mqtt_frame_result got = gb_mqtt_frame_next(rest, 1000, &frame);
        if (got == GB_MQTT_FRAME_NEED_MORE) {
            assert_true(end < stream.size);
            end = stream.size - end < step ? stream.size : end + step;
            continue;
        }
        assert_int_equal(got, GB_MQTT_FRAME_OK);
        assert_int_equal(frame.type, rest.data[0] >> 4);
        used += frame.size;
        seen++;
    }
    assert_int_equal(used, stream.size);
    assert_int_equal(seen, packets);
}

static void fragments_give_the_same_packets(void **state)
{
    (void)state;
    struct gb_str stream = {0};
    size_t packets = 0;
    for (size_t i = 0; i < mqtt_vector_count; i++) {
        if (mqtt_vectors[i].why != NULL) continue;
        mqtt_from_hex(&stream, mqtt_vectors[i].hex);
        packets++;
    }
    const size_t steps[] = {1, 2, 3, 7, stream.size};
    for (size_t i = 0; i < COUNT(steps); i++) {
        check_fragments(gb_str_bytes(&stream), steps[i], packets);
    }
    gb_str_deinit(&stream);
}

static const struct oversized_row {
    const char *name;
    const char *hex; /* the first bytes of a packet that says it has 1000 */
    enum gb_mqtt_frame_result want;
    uint8_t qos;
    uint16_t packet_id;
    size_t payload;
} oversized_rows[] = {
    {"qos 0",
     "30e807"
     "0001"
     "74"
     "aabb",
     GB_MQTT_FRAME_OK, 0, 0, 2},
    {"qos 1",
     "32e807"
     "0001"
     "74"
     "0007"
     "aa",
     GB_MQTT_FRAME_OK, 1, 7, 1},
    {"qos 2, no payload yet",
     "34e807"
     "0001"
     "74"
     "0007",
     GB_MQTT_FRAME_OK, 2, 7, 0},
    {"topic length not there",
     "34e807"
     "00",
     GB_MQTT_FRAME_NEED_MORE, 0, 0, 0},
    {"topic not there",
     "34e807"
     "0001",
     GB_MQTT_FRAME_NEED_MORE, 0, 0, 0},
    {"id not there",
     "34e807"
     "0001"
     "74"
     "00",
     GB_MQTT_FRAME_NEED_MORE, 0, 0, 0},
    {"id 0",
     "34e807"
     "0001"
     "74"
     "0000",
     GB_MQTT_FRAME_MALFORMED, 0, 0, 0},
    {"topic longer than the packet",
     "34e807"
     "ffff",
     GB_MQTT_FRAME_MALFORMED, 0, 0, 0},
    {"topic with a wildcard",
     "30e807"
     "0001"
     "23",
     GB_MQTT_FRAME_MALFORMED, 0, 0, 0},
    {"no publish",
     "90e807"
     "0001"
     "00",
     GB_MQTT_FRAME_MALFORMED, 0, 0, 0},
};

static void an_oversized_publish_shows_its_head(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(oversized_rows); i++) {
        const struct oversized_row *row = &oversized_rows[i];
        struct gb_str in = {0};
        struct gb_mqtt_frame frame;
        struct gb_mqtt_publish p = {0};
        mqtt_from_hex(&in, row->hex);
        assert_int_equal(gb_mqtt_frame_next(gb_str_bytes(&in), 500, &frame),
                         GB_MQTT_FRAME_TOO_LARGE);
        enum gb_mqtt_frame_result got = gb_mqtt_decode_oversized(gb_str_bytes(&in), &frame, &p);
        if (got != row->want || p.qos != row->qos || p.packet_id != row->packet_id ||
            p.payload.size != row->payload) {
            fail_msg("%s: result %d, qos %d, id %d, payload %zu", row->name, (int)got, p.qos,
                     p.packet_id, p.payload.size);
        }
        gb_str_deinit(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fixed_header_decides),
        cmocka_unit_test(fragments_give_the_same_packets),
        cmocka_unit_test(an_oversized_publish_shows_its_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
