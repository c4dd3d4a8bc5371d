/* The load source of `make bench`: plays the MQTT broker itself (mosquitto would stop at some
 * 30,000 messages/s and hide the bridge), or publishes into a real one.
 *
 *   source [--port P] [--topic T] [--window N] [--counter FILE --backlog N]
 *                                      broker on 127.0.0.1:P (0 = any)
 *   source --publish-to P [...]        publisher to the broker on 127.0.0.1:P
 *
 * Orders on stdin, one JSON line each on stdout:
 *   run RATE SECONDS    QoS 1 messages for SECONDS at RATE/s, or with RATE 0 as fast as the
 *                       acknowledgements free the window (the peer's Receive Maximum, at most
 *                       --window); then waits until all are acknowledged. With --counter, where
 *                       the sink counts, at most --backlog messages are sent and not arrived
 *   quit                also the end of stdin
 * Before that: {"listening":P}, {"subscribed":..} for each SUBSCRIBE, {"connected":..} as
 * publisher. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/mqtt/mqtt_packet.h"
#include "bench_counter.h"
#include "bench_payload.h"
#include "bench_process.h"
#include "bench_stream.h"

enum {
    IDS_MAX = 65535,
    PACKET_MAX = 65536,
    BURST = 512,
    DRAIN_LIMIT_S = 30,
    SECONDS_MAX = 3600,
    BACKLOG_POLL_NS = 100000
};

struct run {
    bool active, sending;
    uint64_t rate, begin_ns, end_ns, first_sequence;
    uint64_t sent, acked, refused, last_ack_ns;
};
struct source {
    int listener; /* < 0: publisher */
    struct gb_bench_stream *peer;
    enum gb_mqtt_version version;
    bool ready; /* subscribed, or connected as publisher */
    struct gb_str frame;
    size_t id_at, payload_at;
    struct gb_bytes topic;
    uint32_t window_option;
    /* Free packet ids, a ring of `window` entries. */
    uint16_t ids[IDS_MAX];
    bool in_use[IDS_MAX + 1];
    uint32_t window, free_first, free_count;
    uint64_t sequence;
    const _Atomic uint64_t *counter; /* NULL: no limit */
    uint64_t backlog_max;
    struct run run;
};

static void set_window(struct source *s, uint32_t receive_maximum)
{
    s->window = receive_maximum < s->window_option ? receive_maximum : s->window_option;
    s->free_first = 0;
    s->free_count = s->window;
    for (uint32_t i = 0; i < s->window; i++) s->ids[i] = (uint16_t)(i + 1);
    memset(s->in_use, 0, sizeof s->in_use);
}

/* One PUBLISH is encoded once; id, sequence and time are written over in it. */
static void make_frame(struct source *s)
{
    uint8_t payload[GB_BENCH_PAYLOAD_SIZE];
    gb_bench_payload_init(payload);
    struct gb_mqtt_publish p = {
        .qos = 1, .packet_id = 1, .topic = s->topic, .payload = gb_bytes(payload, sizeof payload)};
    gb_str_clear(&s->frame);
    gb_mqtt_encode_publish(&s->frame, s->version, &p);
    if (s->frame.failed) gb_bench_die("the PUBLISH can't be encoded; is the topic too long?");
    s->payload_at = s->frame.size - GB_BENCH_PAYLOAD_SIZE;
    /* Only the length of the (empty) properties stands between id and payload. */
    s->id_at = s->payload_at - (s->version == GB_MQTT_V5 ? 3 : 2);
}

static void publish(struct source *s, uint64_t due_ns)
{
    uint16_t id = s->ids[s->free_first];
    s->free_first = s->free_first + 1 == s->window ? 0 : s->free_first + 1;
    s->free_count--;
    s->in_use[id] = true;
    uint8_t *frame = (uint8_t *)s->frame.data;
    gb_put_u16(frame + s->id_at, id);
    gb_bench_payload_stamp(frame + s->payload_at, s->sequence++, due_ns);
    gb_str_append(&s->peer->out, gb_str_bytes(&s->frame));
    s->run.sent++;
}

static void acknowledged(struct source *s, uint16_t id, uint8_t reason)
{
    if (!s->in_use[id]) gb_bench_die("PUBACK for packet id %u, which is not in flight", id);
    s->in_use[id] = false;
    uint32_t at = s->free_first + s->free_count;
    s->ids[at >= s->window ? at - s->window : at] = id;
    s->free_count++;
    s->run.acked++;
    if (reason >= 0x80) s->run.refused++;
}

/* --- what the peer sends --- */

static void take_connect(struct source *s, const struct gb_mqtt_connect *c)
{
    s->version = c->version;
    set_window(s, c->receive_maximum == 0 ? IDS_MAX : c->receive_maximum);
    make_frame(s);
    gb_mqtt_encode_connack(&s->peer->out, s->version, false, 0, NULL);
}

static void take_subscribe(struct source *s, struct gb_mqtt_subscribe *p, bool unsubscribe)
{
    uint8_t codes[64];
    size_t count = 0;
    struct gb_mqtt_subscribe_entry entry;
    while (count < sizeof codes && gb_mqtt_subscribe_next(&p->entries, unsubscribe, &entry))
        codes[count++] = unsubscribe ? 0 : entry.qos;
    if (unsubscribe) {
        gb_mqtt_encode_unsuback(&s->peer->out, s->version, p->packet_id, gb_bytes(codes, count));
        return;
    }
    gb_mqtt_encode_suback(&s->peer->out, s->version, p->packet_id, gb_bytes(codes, count));
    s->ready = true;
    gb_bench_say("{\"subscribed\":%zu,\"window\":%" PRIu32 "}", count, s->window);
}

static bool take_from_client(struct source *s, const struct gb_mqtt_frame *frame)
{
    struct gb_mqtt_packet p;
    struct gb_err err = gb_mqtt_decode_client(frame, s->version, &p);
    if (gb_failed(err)) gb_bench_die("from the client: %s", err.message);
    if (p.type == GB_MQTT_CONNECT) {
        take_connect(s, &p.connect);
    } else if (p.type == GB_MQTT_SUBSCRIBE || p.type == GB_MQTT_UNSUBSCRIBE) {
        take_subscribe(s, &p.subscribe, p.type == GB_MQTT_UNSUBSCRIBE);
    } else if (p.type == GB_MQTT_PUBACK) {
        acknowledged(s, p.ack.packet_id, p.ack.reason);
    } else if (p.type == GB_MQTT_PINGREQ) {
        gb_mqtt_encode_pingresp(&s->peer->out);
    } else if (p.type == GB_MQTT_DISCONNECT) {
        return false;
    } else {
        gb_bench_die("the client sent a packet of type %d", (int)p.type);
    }
    return true;
}

static bool take_from_broker(struct source *s, const struct gb_mqtt_frame *frame)
{
    struct gb_mqtt_packet p;
    struct gb_err err = gb_mqtt_decode(frame, s->version, &p);
    if (gb_failed(err)) gb_bench_die("from the broker: %s", err.message);
    if (p.type == GB_MQTT_CONNACK && p.connack.reason == 0) {
        set_window(s, p.connack.receive_maximum);
        make_frame(s);
        s->ready = true;
        gb_bench_say("{\"connected\":true,\"window\":%" PRIu32 "}", s->window);
    } else if (p.type == GB_MQTT_PUBACK) {
        acknowledged(s, p.ack.packet_id, p.ack.reason);
    } else if (p.type != GB_MQTT_PINGRESP) {
        gb_bench_die("the broker sent a packet of type %d", (int)p.type);
    }
    return true;
}

/* False: the peer said goodbye. The short PUBACK, which is nearly all there is, is read in
 *        place. */
static bool take_packets(struct source *s)
{
    for (;;) {
        struct gb_bytes input = gb_bench_input(s->peer);
        if (s->ready && input.size >= 4 && input.data[0] == GB_MQTT_PUBACK << 4 &&
            input.data[1] == 2) {
            acknowledged(s, (uint16_t)(input.data[2] << 8 | input.data[3]), 0);
            gb_bench_consume(s->peer, 4);
            continue;
        }
        struct gb_mqtt_frame frame;
        enum gb_mqtt_frame_result result = gb_mqtt_frame_next(input, PACKET_MAX, &frame);
        if (result == GB_MQTT_FRAME_NEED_MORE) return true;
        if (result != GB_MQTT_FRAME_OK) gb_bench_die("the peer sent a malformed packet");
        bool stays = s->listener < 0 ? take_from_broker(s, &frame) : take_from_client(s, &frame);
        if (!stays) return false;
        gb_bench_consume(s->peer, frame.size);
    }
}

/* --- the run --- */

static void begin_run(struct source *s, const char *order)
{
    static const char word[] = "run ";
    bool known = strncmp(order, word, sizeof word - 1) == 0;
    char *end = NULL;
    uint64_t rate = known ? strtoull(order + sizeof word - 1, &end, 10) : 0;
    double seconds = known ? strtod(end, &end) : 0;
    if (!known || *end != '\0' || !(seconds > 0 && seconds <= SECONDS_MAX))
        gb_bench_die("unknown order: %s", order);
    if (!s->ready || s->run.active) gb_bench_die("not ready for: %s", order);
    uint64_t now_ns = gb_bench_now_ns();
    s->run = (struct run){.active = true,
                          .sending = true,
                          .rate = rate,
                          .begin_ns = now_ns,
                          .end_ns = now_ns + (uint64_t)(seconds * 1e9),
                          .first_sequence = s->sequence};
}

static uint64_t due_ns_of(const struct run *r, uint64_t index)
{
    return r->begin_ns + index * 1000000000U / r->rate;
}

/* How many more may be under way to the sink. */
static uint64_t backlog_room(const struct source *s)
{
    if (s->counter == NULL) return UINT64_MAX;
    uint64_t under_way = s->sequence - atomic_load_explicit(s->counter, memory_order_relaxed);
    return under_way < s->backlog_max ? s->backlog_max - under_way : 0;
}

/* Paced messages carry the time at which they were due: a full window makes them late, not
 * absent. */
static void send_due(struct source *s, uint64_t now_ns)
{
    struct run *r = &s->run;
    if (now_ns >= r->end_ns) r->sending = false;
    uint64_t room = backlog_room(s);
    if (room > BURST) room = BURST;
    for (; r->sending && s->free_count > 0 && room > 0; room--) {
        uint64_t due_ns = r->rate == 0 ? now_ns : due_ns_of(r, r->sent);
        if (due_ns > now_ns) break;
        publish(s, due_ns);
    }
}

static void end_run(struct source *s, uint64_t now_ns)
{
    struct run *r = &s->run;
    if (r->sending || !r->active) return;
    if (r->acked < r->sent && now_ns < r->end_ns + DRAIN_LIMIT_S * UINT64_C(1000000000)) return;
    if (r->acked < r->sent) {
        gb_bench_die("%" PRIu64 " of %" PRIu64 " messages were not acknowledged %d s after the run",
                     r->sent - r->acked, r->sent, DRAIN_LIMIT_S);
    }
    r->active = false;
    double seconds = (double)(r->last_ack_ns - r->begin_ns) / 1e9;
    gb_bench_say("{\"sent\":%" PRIu64 ",\"acked\":%" PRIu64 ",\"refused\":%" PRIu64
                 ",\"begin_ns\":%" PRIu64 ",\"last_ack_ns\":%" PRIu64
                 ",\"seconds\":%.6f,\"acked_per_s\":%.0f,\"first_sequence\":%" PRIu64 "}",
                 r->sent, r->acked, r->refused, r->begin_ns, r->last_ack_ns, seconds,
                 (double)r->acked / seconds, r->first_sequence);
}

/* --- the loop --- */

static void peer_is_gone(struct source *s)
{
    if (s->run.active || s->listener < 0) gb_bench_die("the peer closed the connection");
    gb_bench_stream_close(s->peer);
    s->peer = NULL;
    s->ready = false;
}

static void accept_peer(struct source *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (s->peer != NULL) { /* one client at a time; a reconnect replaces the old connection */
        peer_is_gone(s);
    }
    s->peer = gb_bench_stream_new(fd);
    s->version = GB_MQTT_V5;
}

static void read_peer(struct source *s)
{
    uint64_t acked = s->run.acked;
    bool stays = gb_bench_fill(s->peer);
    stays = take_packets(s) && stays;
    if (s->run.acked > acked) s->run.last_ack_ns = gb_bench_now_ns();
    if (!stays) peer_is_gone(s);
}

static uint64_t wait_ns(const struct source *s, uint64_t now_ns)
{
    const struct run *r = &s->run;
    if (!r->active || !r->sending) return UINT64_C(100000000);
    uint64_t until_ns = r->end_ns;
    if (s->free_count > 0) {
        uint64_t due_ns = r->rate == 0 ? now_ns : due_ns_of(r, r->sent);
        if (backlog_room(s) == 0) due_ns = now_ns + BACKLOG_POLL_NS;
        if (due_ns < until_ns) until_ns = due_ns;
    }
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* False: the orders have ended. */
static bool take_orders(struct source *s, struct gb_bench_orders *orders)
{
    char order[GB_BENCH_ORDER_MAX];
    enum gb_bench_order_result result = gb_bench_next_order(orders, order);
    if (result == GB_BENCH_ORDERS_END) return false;
    if (result == GB_BENCH_ORDER && strcmp(order, "quit") == 0) return false;
    if (result == GB_BENCH_ORDER) begin_run(s, order);
    return true;
}

static void turn(struct source *s, struct pollfd ready[3])
{
    short writing = s->peer != NULL && gb_bench_unsent(s->peer) ? POLLOUT : 0;
    ready[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    ready[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
    ready[2] = (struct pollfd){.fd = s->peer == NULL ? -1 : s->peer->fd,
                               .events = (short)(POLLIN | writing)};
    uint64_t wait = writing != 0 ? UINT64_C(100000000) : wait_ns(s, gb_bench_now_ns());
    struct timespec timeout = {.tv_nsec = wait < 999999999 ? (long)wait : 999999999};
    if (ppoll(ready, 3, &timeout, NULL) < 0 && errno != EINTR)
        gb_bench_die("poll: %s", strerror(errno));
    if (s->peer != NULL && (ready[2].revents & ~POLLOUT) != 0) read_peer(s);
    if (ready[1].revents != 0) accept_peer(s);
    uint64_t now_ns = gb_bench_now_ns();
    if (s->peer != NULL) {
        /* What the socket did not take yet must go first: `out` stays bounded by the window. */
        if (s->run.active && !gb_bench_unsent(s->peer)) send_due(s, now_ns);
        if (!gb_bench_flush(s->peer)) peer_is_gone(s);
    }
    end_run(s, now_ns);
}

static void connect_as_publisher(struct source *s, uint16_t port)
{
    s->listener = -1;
    s->peer = gb_bench_stream_new(gb_bench_connect(port));
    struct gb_mqtt_connect c = {.version = GB_MQTT_V5,
                                .clean_start = true,
                                .keep_alive = 0,
                                .client_id = gb_bytes_c("bench-source")};
    gb_mqtt_encode_connect(&s->peer->out, &c);
    if (!gb_bench_flush(s->peer)) gb_bench_die("the broker closed the connection");
    if (fcntl(s->peer->fd, F_SETFL, O_NONBLOCK) != 0) gb_bench_die("O_NONBLOCK");
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--port",   "--publish-to", "--topic",
                                        "--window", "--counter",    "--backlog"};
    gb_bench_check_options(argc, argv, names, sizeof names / sizeof names[0]);
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL) gb_bench_die("out of memory");
    s->version = GB_MQTT_V5;
    s->topic = gb_bytes_c(gb_bench_option(argc, argv, "--topic", "bench/sensor-17"));
    s->window_option = (uint32_t)gb_bench_option_u64(argc, argv, "--window", IDS_MAX);
    if (s->window_option < 1 || s->window_option > IDS_MAX)
        gb_bench_die("--window: 1 to %d", IDS_MAX);
    const char *counter = gb_bench_option(argc, argv, "--counter", NULL);
    s->backlog_max = gb_bench_option_u64(argc, argv, "--backlog", 1);
    if (counter != NULL) s->counter = gb_bench_counter_open(counter);
    uint16_t port = (uint16_t)gb_bench_option_u64(argc, argv, "--publish-to", 0);
    if (port != 0) {
        connect_as_publisher(s, port);
    } else {
        port = (uint16_t)gb_bench_option_u64(argc, argv, "--port", 0);
        s->listener = gb_bench_listen(&port);
        gb_bench_say("{\"listening\":%u}", port);
    }
    /* The default slack of 50 us would be a part of every latency. */
    if (prctl(PR_SET_TIMERSLACK, 1000UL) != 0) gb_bench_die("PR_SET_TIMERSLACK");

    struct gb_bench_orders orders = {0};
    struct pollfd ready[3] = {{.revents = POLLIN}};
    do {
        if (ready[0].revents != 0 && !take_orders(s, &orders)) break;
        turn(s, ready);
    } while (true);
    gb_bench_stream_close(s->peer);
    gb_str_deinit(&s->frame);
    free(s);
    return 0;
}
