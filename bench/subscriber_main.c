/* The bare subscriber of `make bench`: what it costs to take QoS 1 messages at all. It only
 * acknowledges, with one write for each message, as packaged clients do.
 *
 *   subscriber --port P [--receive-maximum N] [--topic FILTER]
 *
 * Orders on stdin, one JSON line each on stdout: `report`, `reset`, `quit` (also the end of
 * stdin). */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "adapters/mqtt/mqtt_packet.h"
#include "bench_arrivals.h"
#include "bench_process.h"
#include "bench_stream.h"

enum { PACKET_MAX = 65536, ORDER_POLL_US = 20000 };

static void flush(struct gb_bench_stream *s)
{
    if (!gb_bench_flush(s)) gb_bench_die("the broker closed the connection");
}

static void subscribe(struct gb_bench_stream *s, const char *filter)
{
    struct gb_mqtt_subscribe_entry entry = {.filter = gb_bytes_c(filter), .qos = 1};
    gb_mqtt_encode_subscribe(&s->out, GB_MQTT_V5, 1, &entry, 1);
    flush(s);
}

static void take_packet(struct gb_bench_stream *s, const struct gb_mqtt_frame *frame,
                        struct gb_bench_arrivals *arrivals, const char *filter)
{
    struct gb_mqtt_packet p;
    struct gb_err err = gb_mqtt_decode(frame, GB_MQTT_V5, &p);
    if (gb_failed(err)) gb_bench_die("from the broker: %s", err.message);
    if (p.type == GB_MQTT_PUBLISH) {
        gb_mqtt_append_puback(&s->out, p.publish.packet_id);
        flush(s);
        gb_bench_arrivals_add(arrivals, p.publish.payload, gb_bench_now_ns());
    } else if (p.type == GB_MQTT_CONNACK && p.connack.reason == 0) {
        subscribe(s, filter);
    } else if (p.type == GB_MQTT_SUBACK && p.suback.codes.size == 1 &&
               p.suback.codes.data[0] == 1) {
        gb_bench_say("{\"subscribed\":1}");
    } else {
        gb_bench_die("the broker refused, or sent what was not expected: type %d", (int)p.type);
    }
}

/* False: end. */
static bool obey(struct gb_bench_orders *orders, struct gb_bench_arrivals *arrivals)
{
    char order[GB_BENCH_ORDER_MAX];
    enum gb_bench_order_result result = gb_bench_next_order(orders, order);
    if (result == GB_BENCH_NO_ORDER) return true;
    if (result == GB_BENCH_ORDERS_END || strcmp(order, "quit") == 0) return false;
    if (strcmp(order, "report") == 0) {
        gb_bench_arrivals_say(arrivals);
    } else if (strcmp(order, "reset") == 0) {
        gb_bench_arrivals_reset(arrivals);
        gb_bench_say("{\"reset\":true}");
    } else {
        gb_bench_die("unknown order: %s", order);
    }
    return true;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--port", "--receive-maximum", "--topic"};
    gb_bench_check_options(argc, argv, names, sizeof names / sizeof names[0]);
    const char *filter = gb_bench_option(argc, argv, "--topic", "bench/#");
    int fd = gb_bench_connect((uint16_t)gb_bench_option_u64(argc, argv, "--port", 1883));
    /* Orders come while the source is silent: no poll() is spent on them in between. */
    struct timeval wait = {.tv_usec = ORDER_POLL_US};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0)
        gb_bench_die("SO_RCVTIMEO");
    struct gb_bench_stream *s = gb_bench_stream_new(fd);
    struct gb_bench_arrivals *arrivals = calloc(1, sizeof *arrivals);
    if (arrivals == NULL) gb_bench_die("out of memory");
    struct gb_mqtt_connect c = {
        .version = GB_MQTT_V5,
        .clean_start = true,
        .client_id = gb_bytes_c("bench-subscriber"),
        .receive_maximum = (uint16_t)gb_bench_option_u64(argc, argv, "--receive-maximum", 1000)};
    gb_mqtt_encode_connect(&s->out, &c);
    flush(s);

    struct gb_bench_orders orders = {0};
    for (bool going = true; going;) {
        struct gb_mqtt_frame frame;
        enum gb_mqtt_frame_result result =
            gb_mqtt_frame_next(gb_bench_input(s), PACKET_MAX, &frame);
        if (result == GB_MQTT_FRAME_OK) {
            take_packet(s, &frame, arrivals, filter);
            gb_bench_consume(s, frame.size);
            continue;
        }
        if (result != GB_MQTT_FRAME_NEED_MORE) gb_bench_die("the broker sent a malformed packet");
        size_t before = gb_bench_input(s).size;
        if (!gb_bench_fill(s)) gb_bench_die("the broker closed the connection");
        if (gb_bench_input(s).size == before) going = obey(&orders, arrivals);
    }
    gb_bench_stream_close(s);
    free(arrivals->seen);
    free(arrivals);
    return 0;
}
