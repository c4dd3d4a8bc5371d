#include "sim/sim_broker.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/mqtt/mqtt_packet.h"
#include "base/assert.h"
#include "domain/mqtt_topic.h"
#include "sim/sim_bridge.h"
#include "sim/sim_check.h"

enum {
    SUBSCRIPTIONS_MAX = 4,
    WINDOW_MAX = 64,
    PACKET_MAX = 1 << 20,
    PIDS = 65536,
    ANSWERS_MAX = 2048
};

enum flight_state { SENT = 0, RECEIVED /* PUBREC came, PUBREL went */ };
struct flight { /* a PUBLISH to the bridge */
    uint32_t message;
    uint16_t pid;
    uint8_t qos;
    enum flight_state state;
    bool on_this_connection;
};
struct answer { /* to a PUBLISH of the bridge, after a delay */
    struct gb_timer timer;
    struct sim_broker *broker;
    struct sim_conn *conn;
    enum gb_mqtt_packet_type type;
    uint16_t pid;
    uint8_t reason;
    bool used;
};
enum pid_state { PID_FREE = 0, PID_BUSY /* until the answer */, PID_QOS2_TAKEN };

struct sim_broker {
    struct sim_world *world;
    enum gb_mqtt_version version;
    struct sim_conn *conn; /* the client's; NULL: offline */
    bool exists, clean;
    const char *subscriptions[SUBSCRIPTIONS_MAX]; /* static texts */
    size_t subscription_count;
    uint32_t receive_maximum;
    uint32_t *queue; /* message indices */
    size_t queue_head, queue_tail;
    struct flight flights[WINDOW_MAX];
    size_t flight_count;
    uint16_t next_pid;
    uint8_t pids[PIDS]; /* pid_state of the bridge's publishes */
    uint32_t pid_max;   /* the highest one seen */
    struct answer *answers;
    uint64_t answered_ns; /* when the last one is due: they keep their order */
};

static void pump(struct sim_broker *b);
static void answer_due(struct gb_timer *t);

struct sim_broker *sim_broker_new(struct sim_world *w)
{
    struct sim_broker *b = calloc(1, sizeof *b);
    GB_ASSERT(b != NULL);
    b->world = w;
    b->version = w->cfg.v5 ? GB_MQTT_V5 : GB_MQTT_V311;
    b->queue = calloc(w->cfg.messages, sizeof *b->queue);
    b->answers = calloc(ANSWERS_MAX, sizeof *b->answers);
    GB_ASSERT(b->queue != NULL && b->answers != NULL);
    return b;
}

static void drop_answers(struct sim_broker *b)
{
    for (size_t i = 0; i < ANSWERS_MAX && b->answers[i].broker != NULL; i++) {
        if (b->answers[i].used) gb_timer_deinit(&b->answers[i].timer);
        b->answers[i].used = false;
    }
}

void sim_broker_free(struct sim_broker *b)
{
    drop_answers(b);
    free(b->answers);
    free(b->queue);
    free(b);
}

bool sim_broker_quiet(const struct sim_broker *b)
{
    return b->world->cfg.ephemeral || (b->queue_head == b->queue_tail && b->flight_count == 0);
}

static void send_bytes(struct sim_broker *b, struct gb_str *out)
{
    GB_ASSERT(!out->failed);
    if (b->conn == NULL) {
        gb_str_deinit(out);
    } else {
        sim_conn_send(b->conn, out);
    }
}

/* --- to the bridge --- */

static void topic_of(const struct sim_message *m, char out[static 16])
{
    (void)snprintf(out, 16, "in/%u", m->key);
}

static bool is_subscribed(const struct sim_broker *b, const struct sim_message *m)
{
    char topic[16];
    topic_of(m, topic);
    for (size_t i = 0; i < b->subscription_count; i++)
        if (gb_mqtt_filter_matches(gb_bytes_c(b->subscriptions[i]), gb_bytes_c(topic))) return true;
    return false;
}

static void send_publish(struct sim_broker *b, const struct flight *f, bool dup)
{
    struct sim_world *w = b->world;
    const struct sim_message *m = &w->messages[f->message];
    char payload[24], id[24], key[8], topic[16];
    (void)snprintf(payload, sizeof payload, "m%u;", f->message);
    (void)snprintf(id, sizeof id, "id-%u", f->message);
    (void)snprintf(key, sizeof key, "k%u", m->key);
    topic_of(m, topic);
    struct gb_str user = {0};
    if (!m->anonymous) gb_mqtt_user_append(&user, gb_bytes_c("mqtt.message-id"), gb_bytes_c(id));
    if (m->key > 0)
        gb_mqtt_user_append(&user, gb_bytes_c("x-bridge.ordering-key"), gb_bytes_c(key));
    struct gb_mqtt_publish p = {.dup = dup,
                                .qos = f->qos,
                                .packet_id = f->pid,
                                .topic = gb_bytes_c(topic),
                                .payload = gb_bytes_c(payload),
                                .properties = {.raw = gb_str_bytes(&user)}};
    if (m->expires_at_ms > 0) {
        int64_t left_s = (m->expires_at_ms - sim_wall_ms(w) + 999) / 1000; /* never too early */
        p.properties.message_expiry = left_s < 1 ? 1 : (uint32_t)left_s;
        p.properties.has = GB_MQTT_HAS(GB_MQTT_P_MESSAGE_EXPIRY);
    }
    struct gb_str out = {0};
    gb_mqtt_encode_publish(&out, b->version, &p);
    gb_str_deinit(&user);
    sim_trace(w, dup ? "publish again" : "publish", f->message, f->pid);
    send_bytes(b, &out);
}

static bool pid_in_use(const struct sim_broker *b, uint16_t pid)
{
    for (size_t i = 0; i < b->flight_count; i++)
        if (b->flights[i].pid == pid) return true;
    return false;
}

static void pump(struct sim_broker *b)
{
    while (b->conn != NULL && b->conn->connected && b->queue_head < b->queue_tail) {
        uint32_t message = b->queue[b->queue_head];
        struct flight f = {.message = message, .qos = b->world->messages[message].qos};
        if (f.qos > 0) {
            if (b->flight_count >= b->receive_maximum || b->flight_count == WINDOW_MAX) return;
            do b->next_pid++;
            while (b->next_pid == 0 || pid_in_use(b, b->next_pid));
            f.pid = b->next_pid;
            f.on_this_connection = true;
            b->flights[b->flight_count++] = f;
        }
        b->queue_head++;
        send_publish(b, &f, false);
    }
}

void sim_broker_publish(struct sim_broker *b, uint32_t message)
{
    struct sim_message *m = &b->world->messages[message];
    bool offline_qos0 = m->qos == 0 && b->conn == NULL;
    if (!b->exists || !is_subscribed(b, m) || offline_qos0) return;
    m->queued = true;
    b->queue[b->queue_tail++] = message;
    pump(b);
}

static void end_flight(struct sim_broker *b, size_t i)
{
    b->flight_count--;
    memmove(&b->flights[i], &b->flights[i + 1], (b->flight_count - i) * sizeof b->flights[0]);
    pump(b);
}

/* PUBACKs leave in receive order, and PUBRECs (MQTT 5.0 §4.6, spec 03 §5.1): it must be the oldest
 * of its QoS that was sent on this connection. A PUBREC may pass a PUBACK: that of an identifier
 * whose PUBREC was lost with the last connection comes at once. */
static void handle_ack(struct sim_broker *b, uint16_t pid, uint8_t qos)
{
    sim_trace(b->world, qos == 1 ? "puback" : "pubrec", pid, 0);
    size_t i = 0;
    while (i < b->flight_count && !(b->flights[i].on_this_connection &&
                                    b->flights[i].state == SENT && b->flights[i].qos == qos))
        i++;
    if (i == b->flight_count || b->flights[i].pid != pid) {
        for (size_t k = 0; k < b->flight_count; k++) /* PUBREC again for a resent PUBLISH */
            if (b->flights[k].pid == pid && b->flights[k].state == RECEIVED) return;
        sim_violate(b->world, "packet id %u acknowledged out of order", pid);
        return;
    }
    sim_check_source_ack(b->world, b->flights[i].message);
    if (qos == 1) {
        end_flight(b, i);
        return;
    }
    b->flights[i].state = RECEIVED;
    struct gb_str out = {0};
    gb_mqtt_encode_ack(&out, b->version, GB_MQTT_PUBREL, pid, 0);
    send_bytes(b, &out);
}

static void handle_pubcomp(struct sim_broker *b, uint16_t pid)
{
    for (size_t i = 0; i < b->flight_count; i++) {
        if (b->flights[i].pid != pid || b->flights[i].state != RECEIVED) continue;
        end_flight(b, i);
        return;
    }
}

/* --- sessions --- */

static void forget_session(struct sim_broker *b)
{
    b->exists = false;
    b->subscription_count = 0;
    b->queue_head = b->queue_tail = 0;
    b->flight_count = 0;
    memset(b->pids, 0, b->pid_max + 1);
}

void sim_broker_forget(struct sim_broker *b)
{
    sim_trace(b->world, "broker forgets", b->flight_count, b->queue_tail - b->queue_head);
    for (uint32_t i = 0; i < b->world->published; i++)
        if (!b->world->messages[i].acked) b->world->messages[i].queued = false;
    if (b->conn != NULL) sim_conn_cut(b->conn);
    forget_session(b);
}

static void resend(struct sim_broker *b)
{
    for (size_t i = 0; i < b->flight_count; i++) {
        struct flight *f = &b->flights[i];
        if (f->state == RECEIVED) {
            struct gb_str out = {0};
            gb_mqtt_encode_ack(&out, b->version, GB_MQTT_PUBREL, f->pid, 0);
            send_bytes(b, &out);
            continue;
        }
        f->on_this_connection = true;
        send_publish(b, f, true);
    }
    if (b->world->fault != SIM_FAULT_DROP_ON_RECONNECT) return;
    while (b->flight_count > 0 && b->flights[0].state == SENT && b->flights[0].qos == 1)
        handle_ack(b, b->flights[0].pid, 1);
}

static void handle_connect(struct sim_broker *b, struct sim_conn *c,
                           const struct gb_mqtt_connect *p)
{
    struct sim_world *w = b->world;
    struct gb_str out = {0};
    if (sim_chance(w, w->cfg.broker_refuse)) {
        gb_mqtt_encode_connack(&out, b->version, false, 0x88, NULL);
        sim_conn_send(c, &out);
        sim_conn_close(c);
        return;
    }
    bool kicks = b->conn != NULL && b->conn != c && w->fault != SIM_FAULT_OLD_CONNECTION_STAYS;
    if (kicks) sim_conn_cut(b->conn); /* the older connection of the id */
    if (p->clean_start) forget_session(b);
    bool present = b->exists;
    b->conn = c;
    c->connected = true;
    b->exists = true;
    b->clean = p->clean_start;
    b->receive_maximum = b->version == GB_MQTT_V5 && p->receive_maximum > 0
                             ? p->receive_maximum
                             : w->cfg.receive_maximum;
    for (size_t i = 0; i < b->flight_count; i++) b->flights[i].on_this_connection = false;
    gb_mqtt_encode_connack(&out, b->version, present, 0, NULL);
    sim_trace(w, "connected", present, w->cluster != NULL ? c->host->index : w->starts);
    sim_conn_send(c, &out);
    resend(b);
    pump(b);
}

static size_t find_subscription(const struct sim_broker *b, struct gb_bytes filter)
{
    size_t i = 0;
    while (i < b->subscription_count && !gb_bytes_equal_c(filter, b->subscriptions[i])) i++;
    return i;
}

static void handle_subscribe(struct sim_broker *b, const struct gb_mqtt_subscribe *p)
{
    uint8_t codes[8];
    size_t count = 0;
    struct gb_bytes entries = p->entries;
    struct gb_mqtt_subscribe_entry e;
    while (gb_mqtt_subscribe_next(&entries, false, &e) && count < sizeof codes) {
        bool refuse = sim_chance(b->world, b->world->cfg.broker_refuse);
        codes[count++] = refuse ? 0x80 : e.qos;
        if (refuse) continue;
        size_t i = find_subscription(b, e.filter);
        if (i == b->subscription_count) {
            GB_ASSERT(i < SUBSCRIPTIONS_MAX);
            char *name = gb_bytes_dup(e.filter);
            GB_ASSERT(name != NULL);
            b->subscriptions[b->subscription_count++] = sim_bridge_filter(name);
            free(name);
        }
        sim_trace(b->world, "subscribed", i, e.qos);
    }
    struct gb_str out = {0};
    gb_mqtt_encode_suback(&out, b->version, p->packet_id, gb_bytes(codes, count));
    send_bytes(b, &out);
    pump(b);
}

static void handle_unsubscribe(struct sim_broker *b, const struct gb_mqtt_subscribe *p)
{
    uint8_t codes[8];
    size_t count = 0;
    struct gb_bytes entries = p->entries;
    struct gb_mqtt_subscribe_entry e;
    while (gb_mqtt_subscribe_next(&entries, true, &e) && count < sizeof codes) {
        size_t i = find_subscription(b, e.filter);
        bool refuse = sim_chance(b->world, b->world->cfg.broker_refuse);
        codes[count++] = refuse ? 0x80 : i == b->subscription_count ? 0x11 : 0x00;
        if (refuse && b->version == GB_MQTT_V5) continue;
        sim_trace(b->world, "unsubscribed", i, 0);
        if (i < b->subscription_count)
            b->subscriptions[i] = b->subscriptions[--b->subscription_count];
    }
    struct gb_str out = {0};
    gb_mqtt_encode_unsuback(&out, b->version, p->packet_id, gb_bytes(codes, count));
    send_bytes(b, &out);
}

/* --- from the bridge --- */

static void answer(struct sim_broker *b, enum gb_mqtt_packet_type type, uint16_t pid,
                   uint8_t reason)
{
    struct answer *a = b->answers;
    while (a->used && a < b->answers + ANSWERS_MAX - 1) a++;
    GB_ASSERT(!a->used);
    *a = (struct answer){.broker = b, .conn = b->conn, .type = type, .pid = pid, .reason = reason};
    a->used = true;
    GB_ASSERT(!gb_failed(gb_timer_init(&a->timer, b->world->reactor, answer_due)));
    uint64_t due_ns = b->world->now_ns + sim_delay_ns(b->world, b->world->cfg.sink_delay_max_ns);
    if (due_ns > b->answered_ns) b->answered_ns = due_ns;
    gb_timer_start(&a->timer, b->answered_ns);
}

static void answer_due(struct gb_timer *t)
{
    struct answer *a = GB_CONTAINER_OF(t, struct answer, timer);
    struct sim_broker *b = a->broker;
    gb_timer_deinit(t);
    a->used = false;
    if (b->conn != a->conn || b->conn == NULL) return;
    sim_trace(b->world, "broker answers", a->type, a->pid);
    bool ends = a->type == GB_MQTT_PUBACK || a->reason >= 0x80;
    if (ends) b->pids[a->pid] = PID_FREE;
    struct gb_str out = {0};
    gb_mqtt_encode_ack(&out, b->version, a->type, a->pid, a->reason);
    send_bytes(b, &out);
}

static void handle_publish(struct sim_broker *b, const struct gb_mqtt_publish *p)
{
    struct sim_world *w = b->world;
    uint32_t message;
    if (!sim_parse_payload(w, p->payload, &message)) {
        sim_violate(w, "the bridge published a payload that no message has");
        return;
    }
    uint8_t leg = sim_bridge_leg(p->topic);
    sim_trace(w, p->dup ? "bridge publishes again" : "bridge publishes", message, p->packet_id);
    uint8_t *state = &b->pids[p->packet_id];
    if (p->packet_id > b->pid_max) b->pid_max = p->packet_id;
    if (p->qos > 0 && *state != PID_FREE && !p->dup) {
        sim_violate(w, "packet id %u is used again while it is in flight", p->packet_id);
        return;
    }
    if (*state == PID_QOS2_TAKEN && p->qos == 2) {
        answer(b, GB_MQTT_PUBREC, p->packet_id, 0);
        return;
    }
    uint8_t reason = 0;
    if (w->messages[message].poison) {
        reason = b->version == GB_MQTT_V5 ? 0x87 : 0;
    } else if (b->version == GB_MQTT_V5 && sim_chance(w, w->cfg.sink_transient)) {
        reason = 0x97;
    }
    if (reason == 0) sim_check_accepted(w, message, leg);
    if (p->qos == 0) return;
    *state = p->qos == 2 && reason == 0 ? PID_QOS2_TAKEN : PID_BUSY;
    answer(b, p->qos == 1 ? GB_MQTT_PUBACK : GB_MQTT_PUBREC, p->packet_id, reason);
}

static void handle_pubrel(struct sim_broker *b, uint16_t pid)
{
    sim_trace(b->world, "bridge releases", pid, b->pids[pid]);
    b->pids[pid] = PID_FREE;
    answer(b, GB_MQTT_PUBCOMP, pid, 0);
}

static void handle_packet(struct sim_broker *b, struct sim_conn *c, const struct gb_mqtt_packet *p)
{
    struct gb_str out = {0};
    switch (p->type) {
    case GB_MQTT_CONNECT:
        handle_connect(b, c, &p->connect);
        break;
    case GB_MQTT_PUBLISH:
        handle_publish(b, &p->publish);
        break;
    case GB_MQTT_PUBACK:
        handle_ack(b, p->ack.packet_id, 1);
        break;
    case GB_MQTT_PUBREC:
        handle_ack(b, p->ack.packet_id, 2);
        break;
    case GB_MQTT_PUBREL:
        handle_pubrel(b, p->ack.packet_id);
        break;
    case GB_MQTT_PUBCOMP:
        handle_pubcomp(b, p->ack.packet_id);
        break;
    case GB_MQTT_SUBSCRIBE:
        handle_subscribe(b, &p->subscribe);
        break;
    case GB_MQTT_UNSUBSCRIBE:
        handle_unsubscribe(b, &p->subscribe);
        break;
    case GB_MQTT_PINGREQ:
        gb_mqtt_encode_pingresp(&out);
        send_bytes(b, &out);
        break;
    case GB_MQTT_DISCONNECT:
        if (p->disconnect.reason >= 0x80 && !b->world->cfg.broker_garbage) {
            sim_violate(b->world, "the bridge refused what the broker sent: 0x%02x",
                        p->disconnect.reason);
        }
        sim_conn_close(c);
        break;
    case GB_MQTT_CONNACK:
    case GB_MQTT_SUBACK:
    case GB_MQTT_UNSUBACK:
    case GB_MQTT_PINGRESP:
    case GB_MQTT_AUTH:
        sim_violate(b->world, "the bridge sent a packet of type %d", p->type);
        break;
    }
}

void sim_broker_accept(struct sim_broker *b, struct sim_conn *c)
{
    (void)b, (void)c; /* it counts from its CONNECT on */
}

void sim_broker_data(struct sim_broker *b, struct sim_conn *c, struct gb_bytes bytes)
{
    gb_str_append(&c->rx, bytes);
    size_t used = 0;
    struct gb_mqtt_frame f;
    while (c->at_broker) {
        enum gb_mqtt_frame_result r =
            gb_mqtt_frame_next(gb_bytes(c->rx.data + used, c->rx.size - used), PACKET_MAX, &f);
        if (r == GB_MQTT_FRAME_NEED_MORE) break;
        struct gb_mqtt_packet p = {.type = GB_MQTT_CONNECT};
        struct gb_err err = r == GB_MQTT_FRAME_OK ? gb_mqtt_decode_client(&f, b->version, &p)
                                                  : gb_err(GB_PROTOCOL_ERROR, "bad frame");
        if (gb_failed(err) || c->connected == (p.type == GB_MQTT_CONNECT)) {
            sim_violate(b->world, "the bridge sent a bad packet: %s", err.message);
            return;
        }
        used += f.size;
        handle_packet(b, c, &p);
    }
    memmove(c->rx.data, c->rx.data + used, c->rx.size - used);
    c->rx.size -= used;
}

void sim_broker_lost(struct sim_broker *b, struct sim_conn *c)
{
    if (b->conn != c) return;
    b->conn = NULL;
    drop_answers(b);
    b->answered_ns = 0;
    for (size_t i = 0; i <= b->pid_max; i++) /* these are not remembered */
        if (b->pids[i] == PID_BUSY) b->pids[i] = PID_FREE;
    if (b->clean || b->world->cfg.ephemeral) forget_session(b);
}

void sim_broker_trouble(struct sim_broker *b)
{
    struct sim_world *w = b->world;
    if (b->conn == NULL) return;
    struct sim_conn *c = b->conn;
    struct gb_str out = {0};
    if (sim_chance(w, w->cfg.broker_garbage)) {
        static const uint8_t garbage[] = {0x36, 0x02, 0xff, 0xff};
        gb_str_append(&out, gb_bytes(garbage, sizeof garbage));
        sim_conn_send(c, &out);
    } else if (sim_chance(w, w->cfg.broker_goodbye)) {
        if (b->version == GB_MQTT_V5)
            gb_mqtt_encode_disconnect(&out, b->version, sim_below(w, 2) == 0 ? 0x8e : 0x8b);
        sim_conn_send(c, &out);
        sim_conn_close(c);
    } else {
        sim_conn_cut(c);
    }
}
