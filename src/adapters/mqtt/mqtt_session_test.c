#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "support/mqtt_rig.h"

/* The session against a scripted broker: connection, settlement, flow control (checks of spec
 * 03). */

static void check_03_04_clean_start_and_expiry(void **state)
{
    (void)state;
    static const struct {
        enum gb_mqtt_mode mode;
        bool want_clean;
        uint32_t want_expiry;
    } rows[] = {{GB_MQTT_EPHEMERAL, true, 0}, {GB_MQTT_PERSISTENT, false, 86400}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        r.cfg.mode = rows[i].mode;
        mqtt_rig_seed(&r, NULL);
        mqtt_rig_start(&r);
        struct gb_mqtt_connect connect;
        mqtt_rig_accept(&r, false, &connect);
        assert_int_equal(connect.clean_start, rows[i].want_clean);
        assert_int_equal(connect.session_expiry_interval, rows[i].want_expiry);
        assert_int_equal(connect.receive_maximum, 16);
        assert_int_equal(connect.maximum_packet_size, 1000 + 131072);
        mqtt_rig_close(&r);
    }
}

static void check_03_08_no_puback_before_settlement(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    mqtt_rig_run(&r, 5000);
    assert_int_equal(r.delivered, 1);
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_ack(&r, 0);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_PUBACK);
    assert_int_equal(p.ack.packet_id, 7);
    mqtt_rig_expect_nothing(&r);
    assert_int_equal(r.settled[0].result.code, GB_OK);
    mqtt_rig_close(&r);
}

static void check_03_09_qos2_withholds_pubrec(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.topics[0].qos = 2;
    r.cfg.mode = GB_MQTT_PERSISTENT;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 2, 7, "x");
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_ack(&r, 0);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBREC).ack.packet_id, 7);
    /* The broker resends before PUBREL, also on a resumed connection: PUBREC again, no second
     * delivery. */
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    mqtt_rig_publish(&r, "a/b", 2, 7, "x");
    assert_int_equal(r.delivered, 1);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBREC).ack.packet_id, 7);
    struct gb_str bytes = {0};
    gb_mqtt_encode_ack(&bytes, GB_MQTT_V5, GB_MQTT_PUBREL, 7, 0);
    mqtt_rig_feed(&r, &bytes);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_PUBCOMP);
    assert_int_equal(p.ack.reason, 0);
    gb_mqtt_encode_ack(&bytes, GB_MQTT_V5, GB_MQTT_PUBREL, 7, 0);
    mqtt_rig_feed(&r, &bytes);
    p = mqtt_rig_expect(&r, GB_MQTT_PUBCOMP);
    assert_int_equal(p.ack.reason, GB_MQTT_PACKET_ID_NOT_FOUND);
    mqtt_rig_publish(&r, "a/b", 2, 7, "y");
    assert_int_equal(r.delivered, 2);
    mqtt_rig_close(&r);
}

static void check_03_10_settle_out_of_order(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 3; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    mqtt_rig_ack(&r, 2);
    mqtt_rig_ack(&r, 1);
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_ack(&r, 0);
    for (uint16_t id = 1; id <= 3; id++)
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
    mqtt_rig_close(&r);
}

static void acknowledgements_of_one_turn_are_one_write(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 8; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    size_t writes = r.stream->writes;
    for (size_t i = 0; i < 8; i++) {
        struct gb_delivery *d = r.deliveries[i];
        r.deliveries[i] = NULL;
        d->ops->ack(d, NULL, NULL);
    }
    mqtt_rig_run(&r, 0);
    assert_int_equal(r.stream->writes, writes + 1);
    for (uint16_t id = 1; id <= 8; id++)
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
    mqtt_rig_close(&r);
}

static void check_03_11_full_route_keeps_pings(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.receive_maximum = 5;
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 5; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    assert_int_equal(r.delivered, 5);
    struct gb_session_health h = mqtt_rig_health(&r);
    assert_int_equal(h.unsettled_count, 5);
    assert_true(h.receive_window_utilization > 0.999);
    for (int interval = 0; interval < 3; interval++) {
        mqtt_rig_run(&r, 10000);
        mqtt_rig_expect(&r, GB_MQTT_PINGREQ);
        struct gb_str pong = {0};
        gb_mqtt_encode_pingresp(&pong);
        mqtt_rig_feed(&r, &pong);
    }
    assert_true(mqtt_rig_health(&r).connected);
    assert_true(mqtt_rig_health(&r).oldest_unsettled_age_ms >= 30000);
    mqtt_rig_close(&r);
}

static void no_pingresp_is_a_lost_connection(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    mqtt_rig_run(&r, 10000);
    mqtt_rig_expect(&r, GB_MQTT_PINGREQ);
    mqtt_rig_run(&r, 9999);
    assert_true(mqtt_rig_health(&r).connected);
    mqtt_rig_run(&r, 2);
    assert_false(mqtt_rig_health(&r).connected);
    /* the first attempt after an established connection has no delay */
    assert_int_equal(r.net.dialled, 2);
    mqtt_rig_close(&r);
}

static void check_03_12_backoff(void **state)
{
    (void)state;
    static const uint64_t wants_s[] = {10, 20, 40, 80, 120, 120};
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_start(&r);
    for (size_t i = 0; i < sizeof wants_s / sizeof wants_s[0]; i++) {
        assert_int_equal(r.net.dialled, i + 1);
        gb_fake_stream_cut(gb_fake_net_last(&r.net), gb_err(GB_CONNECTION_LOST, "refused"));
        mqtt_rig_run(&r, wants_s[i] * 500 - 1);
        assert_int_equal(r.net.dialled, i + 1); /* not before d/2 */
        mqtt_rig_run(&r, wants_s[i] * 500 + 1);
        assert_int_equal(r.net.dialled, i + 2); /* by d */
    }
    assert_int_equal(mqtt_rig_metric(&r, "MQTTConnectFailures"), 6);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_CONNECTION_LOST);
    mqtt_rig_close(&r);
}

static void check_03_13_ack_after_reconnect(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, false, NULL);
    mqtt_rig_grant(&r);
    mqtt_rig_ack(&r, 0);
    mqtt_rig_expect_nothing(&r);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTAckAfterReconnect"), 1);
    assert_int_equal(r.settled[0].result.code, GB_CONNECTION_LOST);
    mqtt_rig_close(&r);
}

static void check_03_14_emit_refused(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    r.cfg.keep_alive_s = 0;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    r.emit = GB_EMIT_REFUSED;
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    mqtt_rig_expect(&r, GB_MQTT_DISCONNECT); /* never a PUBACK */
    assert_int_equal(r.net.dialled, 2);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionRecoveryRecycle"), 1);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    /* redelivered, refused again: the next recycle is 30 s away */
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    mqtt_rig_run(&r, 29000);
    assert_int_equal(r.net.dialled, 2);
    assert_false(mqtt_rig_health(&r).ready);
    r.emit = GB_EMIT_TAKEN;
    mqtt_rig_run(&r, 1500);
    assert_int_equal(r.net.dialled, 3);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    assert_int_equal(r.delivered, 1);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void check_03_14_emit_refused_ephemeral(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    r.emit = GB_EMIT_REFUSED;
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 7);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTReceiverEmitRejected"), 1);
    assert_int_equal(r.net.dialled, 1);
    mqtt_rig_close(&r);
}

static void retry_waits_for_what_the_route_holds(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 1, "x");
    mqtt_rig_publish(&r, "a/b", 1, 2, "y");
    assert_true(r.deliveries[0]->can_retry);
    mqtt_rig_retry(&r, 0);
    mqtt_rig_run(&r, 1000);
    assert_int_equal(r.net.dialled, 1); /* drains first */
    assert_false(mqtt_rig_health(&r).ready);
    mqtt_rig_ack(&r, 1);
    /* 1 is not acknowledged, so 2 is not either */
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_DISCONNECT);
    assert_int_equal(p.disconnect.reason, 0);
    assert_int_equal(r.net.dialled, 2);
    mqtt_rig_close(&r);
}

static void unsettled_work_at_the_recycle_deadline_is_terminal(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    r.cfg.keep_alive_s = 0;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 1, "x");
    mqtt_rig_publish(&r, "a/b", 1, 2, "y");
    mqtt_rig_retry(&r, 0);
    mqtt_rig_run(&r, 239000);
    assert_int_equal(r.terminals, 0);
    mqtt_rig_run(&r, 2000);
    assert_int_equal(r.terminals, 1);
    assert_true(mqtt_rig_health(&r).terminal);
    mqtt_rig_close(&r);
}

/* docs/decisions/0304: brokers that ignore the receive maximum are put up with. */
static void messages_beyond_the_window_are_taken(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.receive_maximum = 2;
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 5; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    assert_int_equal(r.delivered, 5);
    for (size_t i = 5; i > 0; i--) mqtt_rig_ack(&r, i - 1);
    for (uint16_t id = 1; id <= 5; id++)
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressRejected"), 0);
    mqtt_rig_close(&r);
}

/* What does not fit in memory stays with the broker, with all that follows it: a new connection
 * fetches it as soon as the old one owes nothing. */
static void excess_is_fetched_by_a_new_connection(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    r.cfg.receive_maximum = 2;
    r.cfg.excess_bytes_max = 1600; /* three of these messages */
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 4; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    assert_int_equal(r.delivered, 3);
    mqtt_rig_ack(&r, 0);
    mqtt_rig_publish(&r, "a/b", 1, 5, "x"); /* there would be room, but 4 must not be overtaken */
    assert_int_equal(r.delivered, 3);
    mqtt_rig_ack(&r, 1);
    assert_int_equal(r.net.dialled, 1);
    mqtt_rig_ack(&r, 2);
    for (uint16_t id = 1; id <= 3; id++)
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_DISCONNECT).disconnect.reason, 0);
    mqtt_rig_run(&r, 1);
    assert_int_equal(r.net.dialled, 2);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_publish(&r, "a/b", 1, 4, "x");
    mqtt_rig_publish(&r, "a/b", 1, 5, "x");
    assert_int_equal(r.delivered, 5);
    mqtt_rig_close(&r);
}

/* An identifier that is still open means another message once the broker has wrapped around. */
static void repeated_identifier_beyond_the_window_is_excess(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    r.cfg.receive_maximum = 2;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    for (uint16_t id = 1; id <= 3; id++) mqtt_rig_publish(&r, "a/b", 1, id, "x");
    mqtt_rig_publish(&r, "a/b", 1, 1, "another");
    assert_int_equal(r.delivered, 3);
    for (size_t i = 0; i < 3; i++) mqtt_rig_ack(&r, i);
    mqtt_rig_run(&r, 1);
    assert_int_equal(r.net.dialled, 2);
    mqtt_rig_close(&r);
}

/* An ephemeral session would lose everything with its connection: it drops what does not fit, in
 * order. */
static void excess_of_an_ephemeral_session_is_dropped(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.receive_maximum = 1;
    r.cfg.excess_bytes_max = 600; /* one message */
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 1, "x");
    mqtt_rig_publish(&r, "a/b", 1, 2, "x");
    assert_int_equal(r.delivered, 1);
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_ack(&r, 0);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 1);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 2);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTRouterOverflowDropped"), 1);
    mqtt_rig_publish(&r, "a/b", 1, 3, "x");
    assert_int_equal(r.delivered, 2);
    mqtt_rig_close(&r);
}

static void check_03_25_takeover_penalty(void **state)
{
    (void)state;
    static const uint64_t wants_s[] = {0, 1, 2, 4, 8, 16, 32, 64, 64};
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    for (size_t i = 0; i < sizeof wants_s / sizeof wants_s[0]; i++) {
        struct gb_str bytes = {0};
        gb_mqtt_encode_disconnect(&bytes, GB_MQTT_V5, GB_MQTT_SESSION_TAKEN_OVER);
        size_t dialled = r.net.dialled;
        mqtt_rig_feed(&r, &bytes);
        if (wants_s[i] > 0) {
            mqtt_rig_run(&r, wants_s[i] * 1000 - 1);
            assert_int_equal(r.net.dialled, dialled);
            mqtt_rig_run(&r, 1);
        }
        assert_int_equal(r.net.dialled, dialled + 1);
        mqtt_rig_accept(&r, false, NULL);
        mqtt_rig_grant(&r);
    }
    assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionTakeover"), 9);
    mqtt_rig_close(&r);
}

static void check_03_27_poison_is_acknowledged_in_order(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    char big[1002];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    mqtt_rig_publish(&r, "a/b", 1, 1, "first");
    mqtt_rig_publish(&r, "a/b", 1, 2, big);
    mqtt_rig_publish(&r, "a/b", 1, 3, "next");
    mqtt_rig_expect_nothing(&r); /* behind the first one */
    assert_int_equal(r.delivered, 2);
    assert_string_equal(r.payloads[1], "next");
    mqtt_rig_ack(&r, 0);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 1);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 2);
    mqtt_rig_expect_nothing(&r);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressPoisonDropped"), 1);
    mqtt_rig_close(&r);
}

static void check_03_28_oversized_packet(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    struct gb_str bytes = {0};
    /* PUBLISH of 268 MB: the header is enough */
    gb_str_append(&bytes, gb_bytes("\x32\xff\xff\xff\x7f", 5));
    mqtt_rig_feed(&r, &bytes);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_DISCONNECT);
    assert_int_equal(p.disconnect.reason, GB_MQTT_PACKET_TOO_LARGE);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressRejected"), 1);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, false, NULL);
    mqtt_rig_grant(&r);
    mqtt_rig_run(&r, 9000);
    /* not ready until 30 s have passed */
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_NONE);
    for (int i = 0; i < 3; i++) {
        struct gb_str pong = {0};
        gb_mqtt_encode_pingresp(&pong);
        mqtt_rig_feed(&r, &pong);
        mqtt_rig_run(&r, 9000);
    }
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    assert_int_equal(r.terminals, 0);
    mqtt_rig_close(&r);
}

static void check_03_33_resume_lost(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.mode = GB_MQTT_PERSISTENT;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionResumeLost"), 1);
    mqtt_rig_publish(&r, "a/b", 1, 1, "x");
    assert_int_equal(r.delivered, 1);
    mqtt_rig_close(&r);
}

static void check_03_35_v311_oversized_is_skipped_as_it_streams(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.version = GB_MQTT_V311;
    mqtt_rig_online(&r);
    enum { BODY = 200000 };
    static char body[BODY + 1];
    memset(body, 'x', BODY);
    struct gb_str bytes = {0};
    const struct gb_mqtt_publish big = {
        .qos = 1, .packet_id = 5, .topic = gb_bytes_c("a/b"), .payload = gb_bytes(body, BODY)};
    gb_mqtt_encode_publish(&bytes, GB_MQTT_V311, &big);
    const struct gb_mqtt_publish small = {
        .qos = 1, .packet_id = 6, .topic = gb_bytes_c("a/b"), .payload = gb_bytes_c("small")};
    gb_mqtt_encode_publish(&bytes, GB_MQTT_V311, &small);
    for (size_t at = 0; at < bytes.size; at += 4093) {
        size_t n = bytes.size - at < 4093 ? bytes.size - at : 4093;
        gb_fake_stream_feed(r.stream, gb_bytes(bytes.data + at, n));
        mqtt_rig_run(&r, 0);
    }
    gb_str_deinit(&bytes);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 5);
    assert_int_equal(r.delivered, 1);
    assert_string_equal(r.payloads[0], "small");
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressPoisonDropped"), 1);
    mqtt_rig_ack(&r, 0);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 6);
    mqtt_rig_close(&r);
}

static void every_split_of_the_stream_gives_the_same(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 9; step++) {
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        mqtt_rig_online(&r);
        struct gb_str bytes = {0};
        for (uint16_t id = 1; id <= 6; id++) {
            const struct gb_mqtt_publish p = {.qos = 1,
                                              .packet_id = id,
                                              .topic = gb_bytes_c("a/b"),
                                              .payload = gb_bytes_c("0123456789")};
            gb_mqtt_encode_publish(&bytes, GB_MQTT_V5, &p);
        }
        for (size_t at = 0; at < bytes.size; at += step) {
            size_t n = bytes.size - at < step ? bytes.size - at : step;
            gb_fake_stream_feed(r.stream, gb_bytes(bytes.data + at, n));
            mqtt_rig_run(&r, 0);
        }
        gb_str_deinit(&bytes);
        assert_int_equal(r.delivered, 6);
        for (size_t i = 0; i < 6; i++) mqtt_rig_ack(&r, i);
        for (uint16_t id = 1; id <= 6; id++)
            assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
        mqtt_rig_close(&r);
    }
}

static void qos0_is_dropped_when_the_queue_is_full(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.receive_maximum = 4;
    mqtt_rig_online(&r);
    r.emit = GB_EMIT_FULL;
    for (int i = 0; i < 7; i++) mqtt_rig_publish(&r, "a/b", 0, 0, "x");
    assert_int_equal(mqtt_rig_metric(&r, "MQTTRouterDropped"), 3);
    r.emit = GB_EMIT_TAKEN;
    struct gb_receiver *receiver = gb_mqtt_session_receiver(r.session);
    receiver->ops->resume(receiver);
    mqtt_rig_run(&r, 0);
    assert_int_equal(r.delivered, 4);
    mqtt_rig_close(&r);
}

static void stop_in_every_state(void **state)
{
    (void)state;
    for (int point = 0; point < 6; point++) {
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        r.cfg.mode = GB_MQTT_PERSISTENT;
        if (point > 0) mqtt_rig_seed(&r, "a/#");
        r.history.hold = point == 1; /* 0: no baseline, 1: the store does not answer */
        mqtt_rig_start(&r);
        if (point == 3) mqtt_rig_run(&r, 31000); /* 2: dialling, 3: back-off */
        if (point >= 4) mqtt_rig_accept(&r, true, NULL);
        if (point == 5) {
            mqtt_rig_grant(&r);
            mqtt_rig_publish(&r, "a/b", 1, 1, "x");
        }
        mqtt_rig_close(&r); /* asserts that everything ended */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_03_04_clean_start_and_expiry),
        cmocka_unit_test(check_03_08_no_puback_before_settlement),
        cmocka_unit_test(check_03_09_qos2_withholds_pubrec),
        cmocka_unit_test(check_03_10_settle_out_of_order),
        cmocka_unit_test(acknowledgements_of_one_turn_are_one_write),
        cmocka_unit_test(check_03_11_full_route_keeps_pings),
        cmocka_unit_test(no_pingresp_is_a_lost_connection),
        cmocka_unit_test(check_03_12_backoff),
        cmocka_unit_test(check_03_13_ack_after_reconnect),
        cmocka_unit_test(check_03_14_emit_refused),
        cmocka_unit_test(check_03_14_emit_refused_ephemeral),
        cmocka_unit_test(retry_waits_for_what_the_route_holds),
        cmocka_unit_test(unsettled_work_at_the_recycle_deadline_is_terminal),
        cmocka_unit_test(messages_beyond_the_window_are_taken),
        cmocka_unit_test(excess_is_fetched_by_a_new_connection),
        cmocka_unit_test(repeated_identifier_beyond_the_window_is_excess),
        cmocka_unit_test(excess_of_an_ephemeral_session_is_dropped),
        cmocka_unit_test(check_03_25_takeover_penalty),
        cmocka_unit_test(check_03_27_poison_is_acknowledged_in_order),
        cmocka_unit_test(check_03_28_oversized_packet),
        cmocka_unit_test(check_03_33_resume_lost),
        cmocka_unit_test(check_03_35_v311_oversized_is_skipped_as_it_streams),
        cmocka_unit_test(every_split_of_the_stream_gives_the_same),
        cmocka_unit_test(qos0_is_dropped_when_the_queue_is_full),
        cmocka_unit_test(stop_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
