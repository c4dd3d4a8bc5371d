#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "domain/mqtt_topic.h"
#include "support/mqtt_rig.h"

/* Managed subscriptions: history, reconcile, replay window (checks of spec 03 §8). */

static void init_durable(struct mqtt_rig *r)
{
    mqtt_rig_init(r);
    r->cfg.mode = GB_MQTT_PERSISTENT;
    r->cfg.keep_alive_s = 0;
    r->cfg.dlq = &r->dlq.dlq;
}

static bool in_history(const struct mqtt_rig *r, const char *filter)
{
    for (size_t i = 0; i < r->history.count; i++)
        if (strcmp(r->history.filters[i], filter) == 0) return true;
    return false;
}

static struct gb_bytes only_filter(struct gb_mqtt_packet *p, bool unsubscribe)
{
    struct gb_mqtt_subscribe_entry e;
    assert_int_equal(p->subscribe.count, 1);
    assert_true(gb_mqtt_subscribe_next(&p->subscribe.entries, unsubscribe, &e));
    return e.filter;
}

static void unsuback(struct mqtt_rig *r, uint16_t id, const char *codes, size_t count)
{
    struct gb_str bytes = {0};
    gb_mqtt_encode_unsuback(&bytes, r->version, id, gb_bytes(codes, count));
    mqtt_rig_feed(r, &bytes);
}

static void check_03_06_no_history_no_connect(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_start(&r);
    mqtt_rig_run(&r, 120000);
    assert_int_equal(r.net.dialled, 0);
    struct gb_session_health h = mqtt_rig_health(&r);
    assert_int_equal(h.last_error.code, GB_NOT_FOUND);
    assert_non_null(strstr(h.last_error.message, "-seed-managed-subscriptions s1"));
    assert_true(r.history.lists > 3);
    mqtt_rig_seed(&r, NULL);
    mqtt_rig_run(&r, 31000);
    assert_int_equal(r.net.dialled, 1);
    mqtt_rig_close(&r);
}

static void check_03_06_store_outage(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, NULL);
    r.history.fail = GB_UNAVAILABLE;
    mqtt_rig_start(&r);
    mqtt_rig_run(&r, 20000);
    assert_int_equal(r.net.dialled, 0);
    r.history.fail = GB_OK;
    mqtt_rig_run(&r, 31000);
    assert_int_equal(r.net.dialled, 1);
    mqtt_rig_close(&r);
}

static void filters_are_remembered_before_they_are_subscribed(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, NULL);
    mqtt_rig_start(&r);
    r.history.fail = GB_UNAVAILABLE;
    mqtt_rig_accept(&r, false, NULL);
    mqtt_rig_expect_nothing(&r); /* the store refused: no SUBSCRIBE */
    assert_false(in_history(&r, "a/#"));
    r.history.fail = GB_OK;
    mqtt_rig_run(&r, 1100);
    assert_true(in_history(&r, "a/#"));
    mqtt_rig_grant(&r);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

/* a/# -> b/#: SUBSCRIBE, UNSUBSCRIBE, reconnect, grace, forget. */
static void check_03_15_changed_filter(void **state)
{
    (void)state;
    static const char *const olds[] = {"old/#", "$share/g/old/#"};
    for (size_t i = 0; i < 2; i++) {
        struct mqtt_rig r;
        init_durable(&r);
        mqtt_rig_seed(&r, olds[i]);
        mqtt_rig_start(&r);
        mqtt_rig_accept(&r, true, NULL);
        mqtt_rig_grant(&r);
        struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_UNSUBSCRIBE);
        assert_true(gb_bytes_equal_c(only_filter(&p, true), olds[i])); /* exactly as stored */
        unsuback(&r, p.subscribe.packet_id, "\0", 1);
        mqtt_rig_expect(&r, GB_MQTT_DISCONNECT);
        assert_int_equal(r.net.dialled, 2);
        assert_true(in_history(&r, olds[i]));
        mqtt_rig_accept(&r, true, NULL);
        mqtt_rig_grant(&r);
        mqtt_rig_run(&r, 29000);
        assert_true(in_history(&r, olds[i]));
        assert_false(mqtt_rig_health(&r).ready);
        mqtt_rig_run(&r, 1100);
        assert_false(in_history(&r, olds[i]));
        assert_true(in_history(&r, "a/#"));
        assert_true(mqtt_rig_health(&r).ready);
        mqtt_rig_close(&r);
    }
}

static void check_03_16_crash_between_remember_and_subscribe(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, "a/#"); /* remembered by the process that died, never subscribed */
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    assert_int_equal(r.history.remembers, 0);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void nothing_removed_by_the_broker_needs_no_recycle(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, "old/#");
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_UNSUBSCRIBE);
    unsuback(&r, p.subscribe.packet_id, "\x11", 1);
    mqtt_rig_run(&r, 30100);
    assert_int_equal(r.net.dialled, 1);
    assert_false(in_history(&r, "old/#"));
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void check_03_17_unsuback_refused(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, "old/#");
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_grant(&r);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_UNSUBSCRIBE);
    unsuback(&r, p.subscribe.packet_id, "\x80", 1);
    assert_true(in_history(&r, "old/#"));
    assert_false(mqtt_rig_health(&r).ready);
    mqtt_rig_run(&r, 1100);
    p = mqtt_rig_expect(&r, GB_MQTT_UNSUBSCRIBE); /* asked again */
    assert_int_equal(mqtt_rig_metric(&r, "ReconcileFailures"), 1);
    unsuback(&r, p.subscribe.packet_id, "\x11", 1);
    mqtt_rig_run(&r, 30100);
    assert_false(in_history(&r, "old/#"));
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    mqtt_rig_close(&r);
}

/* Brings a session to the point where `old/#` was removed and one message of it is pinned. */
static void pin_replay(struct mqtt_rig *r)
{
    mqtt_rig_seed(r, "old/#");
    mqtt_rig_start(r);
    mqtt_rig_accept(r, true, NULL);
    mqtt_rig_publish(r, "old/x", 1, 9, "pinned");
    mqtt_rig_grant(r);
    struct gb_mqtt_packet p = mqtt_rig_expect(r, GB_MQTT_UNSUBSCRIBE);
    unsuback(r, p.subscribe.packet_id, "\x11", 1);
    mqtt_rig_run(r, 29000);
    mqtt_rig_expect_nothing(r); /* not acknowledged in the window */
    assert_int_equal(r->delivered, 0);
}

static void check_03_18_replay_goes_to_the_dlq(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    pin_replay(&r);
    fake_script_add(&r.dlq.script, FAKE_HOLD, GB_OK);
    mqtt_rig_run(&r, 1100);
    assert_int_equal(r.dlq.writes, 1);
    mqtt_rig_expect_nothing(&r); /* not before the store has answered */
    assert_false(mqtt_rig_health(&r).ready);
    fake_dlq_answer(&r.dlq, GB_UNAVAILABLE); /* and the next try is kept */
    mqtt_rig_run(&r, 2000);
    assert_int_equal(r.dlq.count, 1);
    const struct gb_dlq_entry *e = r.dlq.entries[0];
    assert_string_equal(e->error_code, "SUBSCRIPTION_REMOVED");
    assert_string_equal(e->category, "permanent");
    assert_string_equal(e->reason, "subscription removed");
    assert_string_equal(e->address, "old/#");
    assert_string_equal(e->redrive_mode, "auto");
    assert_string_equal(e->session_id, "s1");
    assert_string_equal(e->source_id, "s1");
    assert_string_equal(e->route_id, "route-1");
    assert_true(gb_bytes_equal_c(e->envelope->payload, "pinned"));
    assert_non_null(strstr(e->extra_info, "\"session_id\":\"s1\""));
    assert_non_null(strstr(e->extra_info, "\"subscription\":\"old/#\""));
    struct gb_mqtt_endpoint endpoint;
    char identity[GB_MQTT_IDENTITY_SIZE];
    assert_int_equal(gb_mqtt_endpoint_parse(gb_bytes_c(r.urls[0]), &endpoint).code, GB_OK);
    gb_mqtt_storage_identity(&endpoint, gb_bytes_c(r.cfg.client_id), identity);
    assert_non_null(strstr(e->extra_info, identity));
    assert_int_equal(mqtt_rig_metric_of(&r, "DLQEntries", "subscription_removed"), 1);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 9);
    mqtt_rig_run(&r, 1100); /* nothing more comes */
    assert_false(in_history(&r, "old/#"));
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

/* A queue longer than the window arrives as its head is acknowledged: none of it is an orphan. */
static void replays_beyond_the_window_reach_the_dlq(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    pin_replay(&r);
    mqtt_rig_run(&r, 1100);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 9);
    for (uint16_t id = 10; id < 15; id++) {
        mqtt_rig_publish(&r, "old/x", 1, id, "queued");
        mqtt_rig_run(&r, 900);
        if (id % 2 == 0) continue;
        mqtt_rig_run(&r, 200);
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id - 1);
        assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, id);
    }
    mqtt_rig_run(&r, 2100);
    assert_int_equal(r.dlq.writes, 6);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTRouterUnmatchedDropped"), 0);
    assert_false(in_history(&r, "old/#"));
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void check_03_18_replay_with_the_dlq_down(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    fake_script_add(&r.dlq.script, FAKE_FAIL, GB_UNAVAILABLE);
    pin_replay(&r);
    mqtt_rig_run(&r, 1100);
    mqtt_rig_expect_nothing(&r); /* not acknowledged */
    assert_true(in_history(&r, "old/#"));
    assert_int_equal(r.terminals, 0);
    assert_false(mqtt_rig_health(&r).ready);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_UNAVAILABLE); /* transient */
    mqtt_rig_run(&r, 2000);                                                /* retried */
    assert_int_equal(r.dlq.count, 1);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 9);
    mqtt_rig_close(&r);
}

static void check_03_18_replay_without_dlq_is_terminal(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    r.cfg.dlq = NULL;
    pin_replay(&r);
    mqtt_rig_run(&r, 1100);
    assert_int_equal(r.terminals, 1);
    assert_non_null(strstr(r.terminal.message, "migration requires the old configuration"));
    assert_true(in_history(&r, "old/#"));
    mqtt_rig_close(&r);
}

static void replays_that_a_wanted_filter_covers_flow(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    mqtt_rig_seed(&r, "a/old/#");
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_publish(&r, "a/old/x", 1, 9, "live");
    assert_int_equal(r.delivered, 1);
    mqtt_rig_close(&r);
}

static void check_03_23_one_filter_refused(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    r.topics[1] = (struct gb_mqtt_topic){.filter = "secret/#", .qos = 1};
    r.cfg.topic_count = 2;
    mqtt_rig_seed(&r, NULL);
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
    mqtt_rig_suback(&r, p.subscribe.packet_id, "\x01\x87", 2);
    assert_false(mqtt_rig_health(&r).ready);
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_DEGRADED);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_FORBIDDEN);
    assert_true(in_history(&r, "a/#") && in_history(&r, "secret/#"));
    mqtt_rig_run(&r, 1100);
    p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE); /* only the refused one is asked again */
    assert_true(gb_bytes_equal_c(only_filter(&p, false), "secret/#"));
    mqtt_rig_suback(&r, p.subscribe.packet_id, "\x01", 1);
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    mqtt_rig_close(&r);
}

static void short_suback_is_a_protocol_error(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.topics[1] = (struct gb_mqtt_topic){.filter = "b/#", .qos = 1};
    r.cfg.topic_count = 2;
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
    mqtt_rig_suback(&r, p.subscribe.packet_id, "\x01", 1);
    assert_int_equal(mqtt_rig_health(&r).last_error.code, GB_PROTOCOL_ERROR);
    assert_false(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void count_errors(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)line;
    (void)size;
    if (level == GB_LOG_ERROR) ++*(unsigned *)arg;
}

static void check_03_24_lower_grant(void **state)
{
    (void)state;
    unsigned errors = 0;
    gb_log_set_sink(count_errors, &errors);
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.keep_alive_s = 0;
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    for (int question = 0; question < 3; question++) {
        struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
        struct gb_mqtt_subscribe_entry e;
        assert_true(gb_mqtt_subscribe_next(&p.subscribe.entries, false, &e));
        assert_int_equal(e.retain_handling, question > 0); /* retained ones came already */
        mqtt_rig_suback(&r, p.subscribe.packet_id, "\0", 1);
        if (question == 2) break;
        assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_DEGRADED);
        mqtt_rig_run(&r, 4900);
        mqtt_rig_expect_nothing(&r);
        mqtt_rig_run(&r, 200);
    }
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTQoSDowngraded"), 1);
    assert_true(mqtt_rig_gauge(&r, "MQTTQoSDowngradedActive") == 1);
    mqtt_rig_run(&r, 60000);
    mqtt_rig_expect_nothing(&r); /* recheck is off */
    gb_log_set_sink(NULL, NULL);
    assert_int_equal(errors, 1);
    mqtt_rig_close(&r);
}

static void lower_grant_is_rechecked(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.keep_alive_s = 0;
    r.topics[0].qos_recheck_interval_ns = 60 * INT64_C(1000000000);
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    for (int question = 0; question < 3; question++) {
        struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
        mqtt_rig_suback(&r, p.subscribe.packet_id, "\0", 1);
        mqtt_rig_run(&r, 5100);
    }
    mqtt_rig_run(&r, 56000);
    mqtt_rig_grant(&r); /* now the broker grants it */
    assert_int_equal(mqtt_rig_health(&r).service_level, GB_LEVEL_FULL);
    mqtt_rig_run(&r, 120000);
    mqtt_rig_expect_nothing(&r);
    mqtt_rig_close(&r);
}

static void many_filters_go_eight_a_packet(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    struct gb_mqtt_topic topics[20];
    static char names[20][8];
    for (size_t i = 0; i < 20; i++) {
        names[i][0] = (char)('a' + i);
        names[i][1] = '\0';
        topics[i] = (struct gb_mqtt_topic){.filter = names[i], .qos = 1};
    }
    r.cfg.topics = topics;
    r.cfg.topic_count = 20;
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    struct gb_mqtt_packet p[3];
    for (size_t i = 0; i < 3; i++) p[i] = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
    assert_int_equal(p[0].subscribe.count, 8);
    assert_int_equal(p[2].subscribe.count, 4);
    assert_false(mqtt_rig_health(&r).ready);
    for (size_t i = 0; i < 3; i++)
        mqtt_rig_suback(&r, p[i].subscribe.packet_id, "\1\1\1\1\1\1\1\1", p[i].subscribe.count);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void check_03_31_no_local_never_on_shared(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.no_local = true;
    r.topics[0].filter = "x/#";
    r.topics[1] = (struct gb_mqtt_topic){.filter = "$share/g/y/#", .qos = 1};
    r.cfg.topic_count = 2;
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
    struct gb_mqtt_subscribe_entry e;
    assert_true(gb_mqtt_subscribe_next(&p.subscribe.entries, false, &e));
    assert_true(e.no_local);
    assert_true(gb_mqtt_subscribe_next(&p.subscribe.entries, false, &e));
    assert_false(e.no_local);
    mqtt_rig_close(&r);
}

static void orphans_are_acknowledged_after_the_grace(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.keep_alive_s = 0;
    mqtt_rig_online(&r);
    mqtt_rig_publish(&r, "stray/x", 1, 4, "x");
    mqtt_rig_run(&r, 29000);
    mqtt_rig_expect_nothing(&r);
    assert_false(mqtt_rig_health(&r).ready); /* buffered for a handler */
    mqtt_rig_run(&r, 1100);
    /* ephemeral: that exact topic, once */
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_UNSUBSCRIBE);
    assert_true(gb_bytes_equal_c(only_filter(&p, true), "stray/x"));
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 4);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTRouterUnmatchedDropped"), 1);
    mqtt_rig_publish(&r, "stray/x", 1, 5, "x");
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBACK).ack.packet_id, 5);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void v311_resumed_session_is_not_subscribed_again(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init_durable(&r);
    r.cfg.version = GB_MQTT_V311;
    mqtt_rig_seed(&r, NULL);
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    mqtt_rig_grant(&r);
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 40000);
    mqtt_rig_accept(&r, true, NULL);
    mqtt_rig_expect_nothing(&r);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

static void late_suback_of_an_old_phase_is_ignored(void **state)
{
    (void)state;
    struct mqtt_rig r;
    mqtt_rig_init(&r);
    r.cfg.keep_alive_s = 0;
    mqtt_rig_start(&r);
    mqtt_rig_accept(&r, false, NULL);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_SUBSCRIBE);
    mqtt_rig_run(&r, 31100); /* the phase timed out, a new question was sent */
    mqtt_rig_suback(&r, p.subscribe.packet_id, "\1", 1);
    assert_false(mqtt_rig_health(&r).ready);
    mqtt_rig_grant(&r);
    assert_true(mqtt_rig_health(&r).ready);
    mqtt_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_03_06_no_history_no_connect),
        cmocka_unit_test(check_03_06_store_outage),
        cmocka_unit_test(filters_are_remembered_before_they_are_subscribed),
        cmocka_unit_test(check_03_15_changed_filter),
        cmocka_unit_test(check_03_16_crash_between_remember_and_subscribe),
        cmocka_unit_test(nothing_removed_by_the_broker_needs_no_recycle),
        cmocka_unit_test(check_03_17_unsuback_refused),
        cmocka_unit_test(check_03_18_replay_goes_to_the_dlq),
        cmocka_unit_test(replays_beyond_the_window_reach_the_dlq),
        cmocka_unit_test(check_03_18_replay_with_the_dlq_down),
        cmocka_unit_test(check_03_18_replay_without_dlq_is_terminal),
        cmocka_unit_test(replays_that_a_wanted_filter_covers_flow),
        cmocka_unit_test(check_03_23_one_filter_refused),
        cmocka_unit_test(short_suback_is_a_protocol_error),
        cmocka_unit_test(check_03_24_lower_grant),
        cmocka_unit_test(lower_grant_is_rechecked),
        cmocka_unit_test(many_filters_go_eight_a_packet),
        cmocka_unit_test(check_03_31_no_local_never_on_shared),
        cmocka_unit_test(orphans_are_acknowledged_after_the_grace),
        cmocka_unit_test(v311_resumed_session_is_not_subscribed_again),
        cmocka_unit_test(late_suback_of_an_old_phase_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
