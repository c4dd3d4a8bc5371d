#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "support/mqtt_rig.h"

/* Publishing: QoS 0/1/2, the broker's limits, reconnects, deadlines (spec 03 §11, checks 32 and
 *             35). */

struct sent {
    struct gb_send send;
    struct gb_envelope *envelope;
    unsigned done;
    struct gb_err result;
};

static void on_done(struct gb_op *op, void *arg)
{
    struct sent *s = arg;
    s->done++;
    s->result = op->result;
}

static void init(struct mqtt_rig *r)
{
    mqtt_rig_init(r);
    r->cfg.mode = GB_MQTT_PERSISTENT;
    r->cfg.topic_count = 0;
    r->cfg.keep_alive_s = 0;
    mqtt_rig_seed(r, NULL);
}

static struct gb_sender *add_sender(struct mqtt_rig *r, uint8_t qos)
{
    const struct gb_mqtt_sender_cfg cfg = {.id = "x",
                                           .qos = qos,
                                           .timeout_ns = 20 * INT64_C(1000000000),
                                           .throttle_retry_after_ns = 500000000};
    struct gb_sender *sender = NULL;
    assert_int_equal(gb_mqtt_session_add_sender(r->session, &cfg, &sender).code, GB_OK);
    return sender;
}

/* Builds the session with a sender of that QoS and brings it up. */
static struct gb_sender *up(struct mqtt_rig *r, uint8_t qos)
{
    mqtt_rig_build(r);
    struct gb_sender *sender = add_sender(r, qos);
    r->session->ops->start(r->session);
    mqtt_rig_run(r, 0);
    mqtt_rig_accept(r, false, NULL);
    return sender;
}

static void send_payload(struct mqtt_rig *r, struct gb_sender *sender, struct sent *s,
                         const char *payload)
{
    memset(s, 0, sizeof *s);
    assert_int_equal(gb_envelope_new(64, &s->envelope).code, GB_OK);
    assert_int_equal(gb_envelope_set_id(s->envelope, gb_bytes_c("id-1")).code, GB_OK);
    assert_int_equal(gb_envelope_set_payload(s->envelope, gb_bytes_c(payload)).code, GB_OK);
    s->send.envelope = s->envelope;
    s->send.address = gb_bytes_c("out/x");
    s->send.op.deadline_ns = r->now_ns + UINT64_C(30000000000);
    sender->ops->send(sender, &s->send, on_done, s);
    assert_int_equal(s->done, 0); /* never from inside the call */
    mqtt_rig_run(r, 0);
}

static void free_sent(struct sent *s)
{
    assert_int_equal(s->done, 1);
    gb_envelope_unref(s->envelope);
}

static void answer(struct mqtt_rig *r, enum gb_mqtt_packet_type type, uint16_t id, uint8_t reason)
{
    struct gb_str bytes = {0};
    gb_mqtt_encode_ack(&bytes, GB_MQTT_V5, type, id, reason);
    mqtt_rig_feed(r, &bytes);
}

static void qos0_is_done_when_written(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 0);
    struct sent s;
    send_payload(&r, sender, &s, "x");
    assert_int_equal(s.done, 1);
    assert_int_equal(s.result.code, GB_OK);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_PUBLISH);
    assert_int_equal(p.publish.qos, 0);
    assert_true(gb_bytes_equal_c(p.publish.topic, "out/x"));
    free_sent(&s);
    mqtt_rig_close(&r);
}

static void check_03_32_puback_reasons(void **state)
{
    (void)state;
    static const struct {
        uint8_t reason;
        enum gb_code want;
        int64_t retry_after_ns;
    } rows[] = {
        {0x00, GB_OK, 0},
        {0x10, GB_OK, 0},
        {0x97, GB_THROTTLED, 500000000},
        {0x87, GB_FORBIDDEN, 0},
        {0x90, GB_INVALID_TOPIC, 0},
        {0x80, GB_UNAVAILABLE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mqtt_rig r;
        init(&r);
        struct gb_sender *sender = up(&r, 1);
        struct sent s;
        send_payload(&r, sender, &s, "x");
        uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
        assert_int_equal(s.done, 0);
        answer(&r, GB_MQTT_PUBACK, id, rows[i].reason);
        assert_int_equal(s.done, 1);
        assert_int_equal(s.result.code, rows[i].want);
        assert_int_equal(s.result.retry_after_ns, rows[i].retry_after_ns);
        free_sent(&s);
        mqtt_rig_close(&r);
    }
}

static void qos2_is_done_at_pubcomp(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 2);
    struct sent s;
    send_payload(&r, sender, &s, "x");
    uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    answer(&r, GB_MQTT_PUBREC, id, 0);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBREL).ack.packet_id, id);
    assert_int_equal(s.done, 0);
    answer(&r, GB_MQTT_PUBCOMP, id, 0);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.result.code, GB_OK);
    free_sent(&s);
    mqtt_rig_close(&r);
}

static void pubrec_of_an_unknown_id_gets_0x92(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    up(&r, 2);
    answer(&r, GB_MQTT_PUBREC, 77, 0);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_PUBREL);
    assert_int_equal(p.ack.packet_id, 77);
    assert_int_equal(p.ack.reason, GB_MQTT_PACKET_ID_NOT_FOUND);
    mqtt_rig_close(&r);
}

/* The broker's Receive Maximum is 2: the third publish waits, in order. */
static void receive_maximum_of_the_broker(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    mqtt_rig_build(&r);
    struct gb_sender *sender = add_sender(&r, 1);
    r.session->ops->start(r.session);
    mqtt_rig_run(&r, 0);
    r.stream = gb_fake_net_last(&r.net);
    gb_fake_stream_connect(r.stream);
    mqtt_rig_run(&r, 0);
    mqtt_rig_expect(&r, GB_MQTT_CONNECT);
    struct gb_mqtt_properties props = {.has = GB_MQTT_HAS(GB_MQTT_P_RECEIVE_MAXIMUM),
                                       .receive_maximum = 2};
    struct gb_str bytes = {0};
    gb_mqtt_encode_connack(&bytes, GB_MQTT_V5, false, 0, &props);
    mqtt_rig_feed(&r, &bytes);
    struct sent s[3];
    for (size_t i = 0; i < 3; i++) send_payload(&r, sender, &s[i], "x");
    uint16_t first = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    uint16_t second = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    assert_int_not_equal(first, second);
    mqtt_rig_expect_nothing(&r);
    answer(&r, GB_MQTT_PUBACK, first, 0);
    uint16_t third = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    assert_int_not_equal(third, second); /* never an id in flight */
    answer(&r, GB_MQTT_PUBACK, second, 0);
    answer(&r, GB_MQTT_PUBACK, third, 0);
    for (size_t i = 0; i < 3; i++) free_sent(&s[i]);
    mqtt_rig_close(&r);
}

static void a_timed_out_publish_keeps_its_id(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 1);
    struct sent s, next;
    send_payload(&r, sender, &s, "x");
    uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    mqtt_rig_run(&r, 20001); /* the sender's own time-out is the stricter one */
    assert_int_equal(s.done, 1);
    assert_int_equal(s.result.code, GB_TIMEOUT);
    send_payload(&r, sender, &next, "y");
    assert_int_not_equal(mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id, id);
    answer(&r, GB_MQTT_PUBACK, id, 0); /* late: ends only the old exchange */
    assert_int_equal(next.done, 0);
    free_sent(&s);
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 31000);
    free_sent(&next);
    mqtt_rig_close(&r);
}

static void resumed_session_resends(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 2);
    struct sent published, released;
    send_payload(&r, sender, &released, "r");
    send_payload(&r, sender, &published, "p");
    uint16_t id_released = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    uint16_t id_published = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    answer(&r, GB_MQTT_PUBREC, id_released, 0);
    mqtt_rig_expect(&r, GB_MQTT_PUBREL);
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, true, NULL);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBREL).ack.packet_id, id_released);
    struct gb_mqtt_packet p = mqtt_rig_expect(&r, GB_MQTT_PUBLISH);
    assert_int_equal(p.publish.packet_id, id_published);
    assert_true(p.publish.dup);
    answer(&r, GB_MQTT_PUBCOMP, id_released, 0);
    answer(&r, GB_MQTT_PUBREC, id_published, 0);
    answer(&r, GB_MQTT_PUBCOMP, id_published, 0);
    free_sent(&released);
    free_sent(&published);
    mqtt_rig_close(&r);
}

/* Found by the simulator: a process that crashed leaves QoS 2 ids at the broker, where a new
 * message under one of them would pass for the old one and be lost. */
static void inherited_session_releases_an_id_before_its_first_use(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    mqtt_rig_build(&r);
    struct gb_sender *sender = add_sender(&r, 2);
    r.session->ops->start(r.session);
    mqtt_rig_run(&r, 0);
    mqtt_rig_accept(&r, true, NULL); /* the session is older than this process */
    struct sent s;
    send_payload(&r, sender, &s, "x");
    uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBREL).ack.packet_id;
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id, id);
    answer(&r, GB_MQTT_PUBCOMP, id, 0x92); /* for the release; the publish is not over */
    assert_int_equal(s.done, 0);
    mqtt_rig_cut(&r);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, true, NULL); /* nothing proves that the release arrived */
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBREL).ack.packet_id, id);
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id, id);
    answer(&r, GB_MQTT_PUBREC, id, 0);
    mqtt_rig_expect(&r, GB_MQTT_PUBREL);
    answer(&r, GB_MQTT_PUBCOMP, id, 0);
    free_sent(&s);
    mqtt_rig_close(&r);
}

static void ignore_stop(struct gb_op *op, void *arg)
{
    (void)op;
    *(bool *)arg = true;
}

/* Found by the simulator of a cluster: between two terms of one process another instance owned the
 * session, and left QoS 2 ids there; so may this process's own end have. */
static void a_session_started_again_is_inherited(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 2); /* the broker had no session */
    struct sent first, open, s;
    send_payload(&r, sender, &first, "x");
    uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    answer(&r, GB_MQTT_PUBREC, id, 0);
    mqtt_rig_expect(&r, GB_MQTT_PUBREL);
    answer(&r, GB_MQTT_PUBCOMP, id, 0);
    send_payload(&r, sender, &open, "y");
    mqtt_rig_expect(&r, GB_MQTT_PUBLISH);
    bool stopped = false;
    struct gb_op stop = {.deadline_ns = r.now_ns + 1000000000};
    r.session->ops->stop(r.session, &stop, ignore_stop, &stopped);
    mqtt_rig_run(&r, 1001);
    assert_true(stopped);
    assert_int_equal(open.done, 1);
    r.session->ops->start(r.session);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, true, NULL);
    send_payload(&r, sender, &s, "z");
    id = mqtt_rig_expect(&r, GB_MQTT_PUBREL).ack.packet_id;
    assert_int_equal(mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id, id);
    answer(&r, GB_MQTT_PUBREC, id, 0);
    mqtt_rig_expect(&r, GB_MQTT_PUBREL);
    answer(&r, GB_MQTT_PUBCOMP, id, 0);
    assert_int_equal(s.done, 1);
    free_sent(&first);
    free_sent(&open);
    free_sent(&s);
    mqtt_rig_close(&r);
}

static void lost_session_fails_what_was_open(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 1);
    struct sent open, down;
    send_payload(&r, sender, &open, "x");
    mqtt_rig_cut(&r);
    assert_int_equal(open.done, 0); /* the broker may have it: only the next CONNACK tells */
    assert_false(sender->ops->ready(sender));
    send_payload(&r, sender, &down, "y");
    assert_int_equal(down.result.code, GB_CONNECTION_LOST);
    mqtt_rig_run(&r, 1);
    mqtt_rig_accept(&r, false, NULL);
    assert_int_equal(open.done, 1);
    assert_int_equal(open.result.code, GB_CONNECTION_LOST);
    assert_true(sender->ops->ready(sender));
    free_sent(&open);
    free_sent(&down);
    mqtt_rig_close(&r);
}

static void cancel_before_during_after(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    struct gb_sender *sender = up(&r, 1);
    struct sent s;
    send_payload(&r, sender, &s, "x");
    uint16_t id = mqtt_rig_expect(&r, GB_MQTT_PUBLISH).publish.packet_id;
    gb_op_cancel(&s.send.op);
    mqtt_rig_run(&r, 0);
    assert_int_equal(s.result.code, GB_CANCELLED);
    gb_op_cancel(&s.send.op); /* too late: nothing happens */
    answer(&r, GB_MQTT_PUBACK, id, 0);
    free_sent(&s);
    mqtt_rig_close(&r);
}

static void check_03_32_publish_above_the_brokers_limits(void **state)
{
    (void)state;
    struct mqtt_rig r;
    init(&r);
    mqtt_rig_build(&r);
    struct gb_sender *sender = add_sender(&r, 2);
    r.session->ops->start(r.session);
    mqtt_rig_run(&r, 0);
    r.stream = gb_fake_net_last(&r.net);
    gb_fake_stream_connect(r.stream);
    mqtt_rig_run(&r, 0);
    mqtt_rig_expect(&r, GB_MQTT_CONNECT);
    struct gb_mqtt_properties props = {.has = GB_MQTT_HAS(GB_MQTT_P_MAXIMUM_PACKET_SIZE) |
                                              GB_MQTT_HAS(GB_MQTT_P_MAXIMUM_QOS),
                                       .maximum_packet_size = 100,
                                       .maximum_qos = 1};
    struct gb_str bytes = {0};
    gb_mqtt_encode_connack(&bytes, GB_MQTT_V5, false, 0, &props);
    mqtt_rig_feed(&r, &bytes);
    struct sent s;
    send_payload(&r, sender, &s, "x");
    assert_int_equal(s.result.code, GB_QOS_NOT_SUPPORTED); /* never downgraded */
    free_sent(&s);
    char big[200];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    send_payload(&r, r.sender, &s, big);
    assert_int_equal(s.result.code, GB_PAYLOAD_TOO_LARGE);
    free_sent(&s);
    mqtt_rig_expect_nothing(&r);
    assert_int_equal(mqtt_rig_metric(&r, "MQTTEgressRejected"), 2);
    assert_true(mqtt_rig_health(&r).connected);
    mqtt_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qos0_is_done_when_written),
        cmocka_unit_test(check_03_32_puback_reasons),
        cmocka_unit_test(qos2_is_done_at_pubcomp),
        cmocka_unit_test(pubrec_of_an_unknown_id_gets_0x92),
        cmocka_unit_test(receive_maximum_of_the_broker),
        cmocka_unit_test(a_timed_out_publish_keeps_its_id),
        cmocka_unit_test(resumed_session_resends),
        cmocka_unit_test(inherited_session_releases_an_id_before_its_first_use),
        cmocka_unit_test(a_session_started_again_is_inherited),
        cmocka_unit_test(lost_session_fails_what_was_open),
        cmocka_unit_test(cancel_before_during_after),
        cmocka_unit_test(check_03_32_publish_above_the_brokers_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
