#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "base/log.h"
#include "support/mqtt_rig.h"

/* The session against a scripted broker: connection, settlement, flow control (checks of spec
 * 03). */

static void check_03_04_clean_start_and_expiry(void **state)
{
    (void)state;
    static const struct {
        enum gb_mqtt_mode mode;
        bool clean_start;
        uint32_t expiry_s; /* resolved: the document's 0 has become 86400 */
        bool want_clean;
        uint32_t want_expiry;
    } rows[] = {{GB_MQTT_EPHEMERAL, false, 86400, true, 0},
                {GB_MQTT_EPHEMERAL, true, 500, true, 0},
                {GB_MQTT_PERSISTENT, false, 86400, false, 86400},
                {GB_MQTT_PERSISTENT, false, 500, false, 500},
                {GB_MQTT_PERSISTENT, true, 86400, true, 86400},
                {GB_MQTT_EXCLUSIVE, false, 86400, false, 86400},
                {GB_MQTT_EXCLUSIVE, true, 500, false, 500}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        r.cfg.mode = rows[i].mode;
        r.cfg.clean_start = rows[i].clean_start;
        r.cfg.session_expiry_interval_s = rows[i].expiry_s;
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
    assert_int_equal(mqtt_rig_metric_of(&r, "MQTTReceiverEmitRejected", "recovering"), 1);
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

/* Found by the simulator: what is handed back on the new connection, before the recycle has
 * converged, needs a recycle of its own. */
static void handed_back_while_a_recycle_converges(void **state)
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
    mqtt_rig_expect(&r, GB_MQTT_DISCONNECT);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_publish(&r, "a/b", 1, 7, "x"); /* refused again, before the SUBACK */
    mqtt_rig_grant(&r);
    assert_false(mqtt_rig_health(&r).ready);
    mqtt_rig_run(&r, 29000);
    assert_int_equal(r.net.dialled, 2);
    mqtt_rig_run(&r, 1500);
    assert_int_equal(r.net.dialled, 3);
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
    assert_int_equal(mqtt_rig_metric_of(&r, "MQTTReceiverEmitRejected", "lost"), 1);
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

struct log_lines {
    unsigned errors;
    char last[1024]; /* of level error */
};

static void collect_errors(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    struct log_lines *log = arg;
    if (level != GB_LOG_ERROR) return;
    log->errors++;
    (void)snprintf(log->last, sizeof log->last, "%.*s", (int)size, line);
}

static void check_03_25_takeover_penalty(void **state)
{
    (void)state;
    struct log_lines log = {0};
    gb_log_set_sink(collect_errors, &log);
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
        assert_int_equal(log.errors, i); /* from the second one on */
        mqtt_rig_accept(&r, false, NULL);
        mqtt_rig_grant(&r);
    }
    gb_log_set_sink(NULL, NULL);
    assert_non_null(strstr(log.last, "client_id"));
    assert_non_null(strstr(log.last, "client-1"));
    assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionTakeover"), 9);
    mqtt_rig_close(&r);
}

/* docs/decisions/0305: brokers that do not tell, with either version. */
static void short_connections_are_penalised(void **state)
{
    (void)state;
    static const uint64_t wants_s[] = {0, 1, 2, 4, 8, 8};
    static const enum gb_mqtt_version versions[] = {GB_MQTT_V5, GB_MQTT_V311};
    for (size_t v = 0; v < 2; v++) {
        struct log_lines log = {0};
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        r.cfg.version = versions[v];
        r.cfg.reconnect_delay_ns = INT64_C(1000000000);
        r.cfg.reconnect_max_delay_ns = 8 * INT64_C(1000000000);
        gb_log_set_sink(collect_errors, &log);
        mqtt_rig_online(&r);
        for (size_t i = 0; i < sizeof wants_s / sizeof wants_s[0]; i++) {
            if (versions[v] == GB_MQTT_V311 && i == 5) break; /* 16 s: its cap is fixed */
            size_t dialled = r.net.dialled;
            mqtt_rig_cut(&r);
            if (wants_s[i] > 0) {
                mqtt_rig_run(&r, wants_s[i] * 1000 - 1);
                assert_int_equal(r.net.dialled, dialled);
                mqtt_rig_run(&r, 1);
            }
            assert_int_equal(r.net.dialled, dialled + 1);
            assert_int_equal(log.errors, i);
            mqtt_rig_accept(&r, false, NULL);
            mqtt_rig_grant(&r);
        }
        gb_log_set_sink(NULL, NULL);
        assert_non_null(strstr(log.last, "client-1"));
        assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionTakeover"), 0);
        mqtt_rig_close(&r);
    }
}

/* Spec 03 §4.4: a connection of 30 s ends the streak. */
static void a_stable_connection_ends_the_takeover_streak(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.keep_alive_s = 0;
    mqtt_rig_online(&r);
    for (size_t i = 0; i < 3; i++) {
        mqtt_rig_run(&r, 30000);
        struct gb_str bytes = {0};
        gb_mqtt_encode_disconnect(&bytes, GB_MQTT_V5, GB_MQTT_SESSION_TAKEN_OVER);
        mqtt_rig_feed(&r, &bytes);
        assert_int_equal(r.net.dialled, i + 2); /* at once */
        mqtt_rig_accept(&r, false, NULL);
        mqtt_rig_grant(&r);
    }
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

/* One PUBLISH with `count` user properties k0=v .. and one more pair. */
static void publish_with_properties(struct mqtt_rig *r, uint16_t id, unsigned count,
                                    const char *name, struct gb_bytes value)
{
    struct gb_str user = {0};
    for (unsigned i = 0; i < count; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "k%u", i);
        gb_mqtt_user_append(&user, gb_bytes_c(key), gb_bytes_c("v"));
    }
    gb_mqtt_user_append(&user, gb_bytes_c(name), value);
    const struct gb_mqtt_publish p = {.qos = 1,
                                      .packet_id = id,
                                      .topic = gb_bytes_c("a/b"),
                                      .payload = gb_bytes_c("x"),
                                      .properties = {.raw = gb_str_bytes(&user)}};
    struct gb_str bytes = {0};
    gb_mqtt_encode_publish(&bytes, GB_MQTT_V5, &p);
    gb_str_deinit(&user);
    mqtt_rig_feed(r, &bytes);
}

static void check_03_27_too_many_user_properties(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    publish_with_properties(&r, 1, 128, "one", gb_bytes_c("more"));
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 1);
    assert_int_equal(r.delivered, 0);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressPoisonDropped"), 1);
    publish_with_properties(&r, 2, 127, "one", gb_bytes_c("more"));
    assert_int_equal(r.delivered, 1); /* 128 are taken */
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_close(&r);
}

static void check_03_29_dropped_value_is_counted(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    mqtt_rig_online(&r);
    char value[257];
    memset(value, 'v', sizeof value);
    publish_with_properties(&r, 1, 1, "long", gb_bytes(value, 256));
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressHeaderDropped"), 0);
    publish_with_properties(&r, 2, 1, "long", gb_bytes(value, 257));
    assert_int_equal(mqtt_rig_metric(&r, "MQTTIngressHeaderDropped"), 1);
    assert_int_equal(r.delivered, 2);
    assert_int_equal(gb_envelope_text(r.deliveries[0]->envelope, "long").size, 256);
    assert_null(gb_envelope_get(r.deliveries[1]->envelope, "long"));
    assert_true(gb_bytes_equal_c(gb_envelope_text(r.deliveries[1]->envelope, "k0"), "v"));
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
        assert_false(mqtt_rig_health(&r).ready);
        mqtt_rig_run(&r, i < 2 ? 9000 : 2900); /* 29.9 s in all */
    }
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_NONE);
    mqtt_rig_run(&r, 200);
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    assert_true(mqtt_rig_health(&r).ready);
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
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTSessionResumeLost"), 1);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_UNAVAILABLE);
    mqtt_rig_grant(&r);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_OK); /* latched until converged */
    mqtt_rig_publish(&r, "a/b", 1, 1, "x");
    assert_int_equal(r.delivered, 1);
    mqtt_rig_close(&r);
}

/* Spec 03 §4.3: a resumed session, and the first connection of a new client, lost nothing. */
static void nothing_was_lost(void **state)
{
    (void)state;
    static const struct {
        const char *name, *history;
        bool session_present;
    } rows[] = {{"resumed", "a/#", true}, {"new client", NULL, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mqtt_rig r;
        mqtt_rig_init(&r);
        r.cfg.mode = GB_MQTT_PERSISTENT;
        mqtt_rig_seed(&r, rows[i].history);
        mqtt_rig_start(&r);
        mqtt_rig_accept(&r, rows[i].session_present, NULL);
        mqtt_rig_grant(&r);
        if (mqtt_rig_metric(&r, "MQTTSessionResumeLost") != 0) fail_msg("%s", rows[i].name);
        mqtt_rig_close(&r);
    }
}

/* Spec 03 check 35: a copy has the id of the first, and a settled one is acknowledged. */
static void check_03_35_v311_redelivery_keeps_the_id(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.version = GB_MQTT_V311;
    r.cfg.mode = GB_MQTT_PERSISTENT;
    r.cfg.content_hash_id = true;
    mqtt_rig_seed(&r, "a/#");
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "a/b", 1, 7, "x");
    assert_int_equal(r.delivered, 1);
    char first[128];
    struct gb_bytes id = r.deliveries[0]->envelope->id;
    (void)snprintf(first, sizeof first, "%.*s", (int)id.size, (const char *)id.data);
    assert_int_equal(strncmp(first, "mqtt-sha256:", 12), 0);
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 1000);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_publish(&r, "a/b", 1, 8, "x"); /* under another packet id */
    mqtt_rig_publish(&r, "a/b", 1, 9, "y");
    assert_int_equal(r.delivered, 3);
    assert_true(gb_bytes_equal_c(r.deliveries[1]->envelope->id, first));
    assert_false(gb_bytes_equal_c(r.deliveries[2]->envelope->id, first));
    mqtt_rig_ack(&r, 1);
    mqtt_rig_ack(&r, 2);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 8);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 9);
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
        cmocka_unit_test(handed_back_while_a_recycle_converges),
        cmocka_unit_test(check_03_14_emit_refused_ephemeral),
        cmocka_unit_test(retry_waits_for_what_the_route_holds),
        cmocka_unit_test(unsettled_work_at_the_recycle_deadline_is_terminal),
        cmocka_unit_test(messages_beyond_the_window_are_taken),
        cmocka_unit_test(excess_is_fetched_by_a_new_connection),
        cmocka_unit_test(repeated_identifier_beyond_the_window_is_excess),
        cmocka_unit_test(excess_of_an_ephemeral_session_is_dropped),
        cmocka_unit_test(check_03_25_takeover_penalty),
        cmocka_unit_test(short_connections_are_penalised),
        cmocka_unit_test(a_stable_connection_ends_the_takeover_streak),
        cmocka_unit_test(check_03_27_poison_is_acknowledged_in_order),
        cmocka_unit_test(check_03_27_too_many_user_properties),
        cmocka_unit_test(check_03_28_oversized_packet),
        cmocka_unit_test(check_03_29_dropped_value_is_counted),
        cmocka_unit_test(check_03_33_resume_lost),
        cmocka_unit_test(nothing_was_lost),
        cmocka_unit_test(check_03_35_v311_redelivery_keeps_the_id),
        cmocka_unit_test(check_03_35_v311_oversized_is_skipped_as_it_streams),
        cmocka_unit_test(every_split_of_the_stream_gives_the_same),
        cmocka_unit_test(qos0_is_dropped_when_the_queue_is_full),
        cmocka_unit_test(stop_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
