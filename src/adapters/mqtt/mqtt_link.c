#include "adapters/mqtt/mqtt_link.h"

#include <string.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "base/log.h"

enum { TX_BYTES_MAX = 64 * 1024 * 1024 };
enum {
    REASON_NORMAL = 0x00,
    REASON_MALFORMED = 0x81,
    REASON_TOO_LARGE = 0x95,
    REASON_TAKEOVER = 0x8e
};
/* A best-effort DISCONNECT gets this long to leave (spec 03 §7 item 3). */
static const uint64_t disconnect_flush_ns = 1000000000ull;

#define GB_BIT(state) (1u << (state))
static const uint8_t exits[GB_MQTT_LINK_STATES] = {
    [GB_MQTT_LINK_IDLE] = GB_BIT(GB_MQTT_LINK_DIALING),
    [GB_MQTT_LINK_DIALING] =
        GB_BIT(GB_MQTT_LINK_CONNECTING) | GB_BIT(GB_MQTT_LINK_CLOSING) | GB_BIT(GB_MQTT_LINK_IDLE),
    [GB_MQTT_LINK_CONNECTING] =
        GB_BIT(GB_MQTT_LINK_UP) | GB_BIT(GB_MQTT_LINK_CLOSING) | GB_BIT(GB_MQTT_LINK_IDLE),
    [GB_MQTT_LINK_UP] = GB_BIT(GB_MQTT_LINK_CLOSING) | GB_BIT(GB_MQTT_LINK_IDLE),
    [GB_MQTT_LINK_CLOSING] = GB_BIT(GB_MQTT_LINK_IDLE),
};

static void set_state(struct gb_mqtt_link *l, enum gb_mqtt_link_state next)
{
    GB_ASSERT((exits[l->state] & GB_BIT(next)) != 0);
    l->state = next;
}

static uint64_t now_of(const struct gb_mqtt_link *l)
{
    return gb_reactor_now_ns(l->cfg.reactor);
}

static void timer_fired(struct gb_timer *t);
static void end(struct gb_mqtt_link *l);
static void flush_now(struct gb_task *t);

/* One packet that is not complete, and two reads of the socket behind it. */
static size_t rx_bytes_max(const struct gb_mqtt_link_cfg *cfg)
{
    return (size_t)cfg->packet_bytes_max + (size_t)2 * 65536;
}

struct gb_err gb_mqtt_link_init(struct gb_mqtt_link *l, const struct gb_mqtt_link_cfg *cfg)
{
    memset(l, 0, sizeof *l);
    l->cfg = *cfg;
    l->tx.size_max = TX_BYTES_MAX;
    l->rx.size_max = rx_bytes_max(cfg);
    l->flush.run = flush_now;
    return gb_timer_init(&l->timer, cfg->reactor, timer_fired);
}

void gb_mqtt_link_deinit(struct gb_mqtt_link *l)
{
    GB_ASSERT(l->state == GB_MQTT_LINK_IDLE);
    gb_task_cancel(&l->flush);
    gb_timer_deinit(&l->timer);
    gb_str_deinit(&l->tx);
    gb_str_deinit(&l->rx);
}

void gb_mqtt_link_flush(struct gb_mqtt_link *l)
{
    gb_reactor_flush(l->cfg.reactor, &l->flush);
}

static void write_tx(struct gb_mqtt_link *l)
{
    if (l->tx.size == 0 || l->stream == NULL) return;
    l->last_tx_ns = now_of(l);
    l->stream->ops->write(l->stream, &l->tx);
}

/* An owner whose lease has run out, perhaps while it was suspended, says nothing more but goodbye:
 * its acknowledgements and messages would be those of another one's session. */
static bool may_write(const struct gb_mqtt_link *l)
{
    const struct gb_authority *a = &l->cfg.session->authority;
    struct gb_token token;
    return a->current == NULL || a->current(a->ctx, &token);
}

static void flush_now(struct gb_task *t)
{
    struct gb_mqtt_link *l = GB_CONTAINER_OF(t, struct gb_mqtt_link, flush);
    if (l->state != GB_MQTT_LINK_UP && l->state != GB_MQTT_LINK_CONNECTING) return;
    if (!may_write(l)) {
        gb_str_clear(&l->tx);
        return;
    }
    if (l->tx.failed || l->stream->ops->pending(l->stream) + l->tx.size > TX_BYTES_MAX) {
        gb_mqtt_link_close(l, REASON_NORMAL, GB_MQTT_DOWN_LOST,
                           gb_err(GB_CONNECTION_LOST,
                                  "the broker does not read: %d MiB wait for it",
                                  TX_BYTES_MAX >> 20));
        return;
    }
    write_tx(l);
    if (l->state == GB_MQTT_LINK_UP) l->cfg.events->written(l->cfg.arg);
}

static uint64_t next_keep_alive_ns(const struct gb_mqtt_link *l)
{
    if (l->ping_sent_ns > 0) return l->ping_sent_ns + l->keep_alive_ns;
    uint64_t quiet_since = l->last_tx_ns < l->last_rx_ns ? l->last_tx_ns : l->last_rx_ns;
    return quiet_since + l->keep_alive_ns;
}

/* The one timer: the attempt's deadline until UP, then keep-alive. */
static void start_timer(struct gb_mqtt_link *l)
{
    if (l->state == GB_MQTT_LINK_UP) {
        if (l->keep_alive_ns > 0) gb_timer_start(&l->timer, next_keep_alive_ns(l));
    } else {
        gb_timer_start(&l->timer, l->attempt_deadline_ns);
    }
}

/* Blocked routes never delay pings (spec 03 §4.1): this depends on the socket alone. */
static void keep_alive(struct gb_mqtt_link *l)
{
    if (now_of(l) < next_keep_alive_ns(l)) {
        start_timer(l);
    } else if (l->ping_sent_ns > 0) {
        gb_mqtt_link_close(
            l, REASON_NORMAL, GB_MQTT_DOWN_LOST,
            gb_err(GB_CONNECTION_LOST, "no PINGRESP within the keep-alive interval"));
    } else {
        l->ping_sent_ns = now_of(l);
        gb_mqtt_encode_pingreq(&l->tx);
        gb_mqtt_link_flush(l);
        start_timer(l);
    }
}

static void timer_fired(struct gb_timer *t)
{
    struct gb_mqtt_link *l = GB_CONTAINER_OF(t, struct gb_mqtt_link, timer);
    if (l->state == GB_MQTT_LINK_UP) {
        keep_alive(l);
    } else if (l->stream == NULL) {
        end(l); /* fail_to_dial */
    } else if (l->state == GB_MQTT_LINK_DIALING || l->state == GB_MQTT_LINK_CONNECTING) {
        gb_mqtt_link_close(l, REASON_NORMAL, GB_MQTT_DOWN_LOST,
                           gb_err(GB_TIMEOUT, "no CONNACK within the connect time-out"));
    }
}

static void end(struct gb_mqtt_link *l)
{
    gb_timer_stop(&l->timer);
    gb_task_cancel(&l->flush);
    l->stream = NULL;
    gb_str_clear(&l->tx);
    gb_str_deinit(&l->rx);
    l->rx.size_max = rx_bytes_max(&l->cfg);
    set_state(l, GB_MQTT_LINK_IDLE);
    l->cfg.events->down(l->cfg.arg, l->down_cause, l->down_reason);
}

void gb_mqtt_link_close(struct gb_mqtt_link *l, uint8_t disconnect_reason,
                        enum gb_mqtt_down_cause cause, struct gb_err reason)
{
    if (l->state == GB_MQTT_LINK_IDLE || l->state == GB_MQTT_LINK_CLOSING) return;
    bool up = l->state == GB_MQTT_LINK_UP;
    bool v5 = l->cfg.session->version == GB_MQTT_V5;
    /* v3.1.1 has no DISCONNECT with a reason: after a reject the close alone lets the broker
     * publish the will. */
    bool say_goodbye = up && cause != GB_MQTT_DOWN_LOST && (v5 || cause == GB_MQTT_DOWN_CLOSED);
    l->down_cause = cause;
    l->down_reason = reason;
    if (l->stream == NULL) return; /* the dial failed at once: its timer brings `down` */
    if (!may_write(l)) gb_str_clear(&l->tx);
    if (say_goodbye) {
        gb_mqtt_encode_disconnect(&l->tx, l->cfg.session->version, disconnect_reason);
        write_tx(l);
    }
    gb_timer_stop(&l->timer);
    gb_task_cancel(&l->flush);
    set_state(l, GB_MQTT_LINK_CLOSING);
    l->stream->ops->close(l->stream, say_goodbye ? now_of(l) + disconnect_flush_ns : 0);
}

static void reject(struct gb_mqtt_link *l, uint8_t reason, struct gb_err err)
{
    gb_mqtt_link_close(l, reason, GB_MQTT_DOWN_REJECTED, err);
}

static void handle_connack(struct gb_mqtt_link *l, const struct gb_mqtt_connack *ack)
{
    if (ack->reason != 0) {
        gb_mqtt_link_close(l, REASON_NORMAL, GB_MQTT_DOWN_REFUSED,
                           gb_mqtt_reason_connack(ack->reason));
        return;
    }
    uint16_t keep_alive_s = l->cfg.session->keep_alive_s;
    if (ack->has_server_keep_alive) keep_alive_s = ack->server_keep_alive;
    l->keep_alive_ns = keep_alive_s * UINT64_C(1000000000);
    gb_timer_stop(&l->timer);
    set_state(l, GB_MQTT_LINK_UP);
    start_timer(l);
    l->cfg.events->up(l->cfg.arg, ack);
}

static void handle_packet(struct gb_mqtt_link *l, const struct gb_mqtt_packet *p)
{
    if (l->state == GB_MQTT_LINK_CONNECTING) {
        if (p->type == GB_MQTT_CONNACK) {
            handle_connack(l, &p->connack);
        } else {
            reject(l, REASON_MALFORMED,
                   gb_err(GB_PROTOCOL_ERROR, "the broker sent packet type %d before CONNACK",
                          (int)p->type));
        }
    } else if (p->type == GB_MQTT_PINGRESP) {
        l->ping_sent_ns = 0;
    } else if (p->type == GB_MQTT_DISCONNECT) {
        struct gb_err err = gb_mqtt_reason_connack(p->disconnect.reason);
        if (!gb_failed(err)) err = gb_err(GB_CONNECTION_LOST, "the broker ended the connection");
        gb_mqtt_link_close(l, REASON_NORMAL,
                           p->disconnect.reason == REASON_TAKEOVER ? GB_MQTT_DOWN_TAKEOVER
                                                                   : GB_MQTT_DOWN_LOST,
                           err);
    } else if (p->type == GB_MQTT_CONNACK) {
        reject(l, REASON_MALFORMED, gb_err(GB_PROTOCOL_ERROR, "the broker sent a second CONNACK"));
    } else {
        l->cfg.events->packet(l->cfg.arg, p);
    }
}

/* v3.1.1 can't advertise a packet size: a PUBLISH above it is poison whose body is skipped as it
 * streams in (spec 03 §13); everything else that large is refused. */
static bool skip_oversized(struct gb_mqtt_link *l, struct gb_bytes rest,
                           const struct gb_mqtt_frame *frame)
{
    struct gb_mqtt_publish p;
    enum gb_mqtt_frame_result r = l->cfg.session->version == GB_MQTT_V311
                                      ? gb_mqtt_decode_oversized(rest, frame, &p)
                                      : GB_MQTT_FRAME_TOO_LARGE;
    if (r == GB_MQTT_FRAME_NEED_MORE) return false;
    if (r != GB_MQTT_FRAME_OK) {
        reject(l, REASON_TOO_LARGE,
               gb_err(GB_PROTOCOL_ERROR, "the broker sent a packet above the advertised %u bytes",
                      l->cfg.packet_bytes_max));
        return false;
    }
    l->skip_bytes = frame->size;
    l->cfg.events->oversized(l->cfg.arg, p.qos, p.packet_id);
    return true;
}

static bool decode_frame(struct gb_mqtt_link *l, enum gb_mqtt_frame_result r,
                         const struct gb_mqtt_frame *frame, struct gb_mqtt_packet *out)
{
    if (r != GB_MQTT_FRAME_OK) {
        reject(l, REASON_MALFORMED,
               gb_err(GB_PROTOCOL_ERROR, "the broker sent a malformed packet"));
        return false;
    }
    struct gb_err err = gb_mqtt_decode(frame, l->cfg.session->version, out);
    if (gb_failed(err)) reject(l, REASON_MALFORMED, err);
    return !gb_failed(err);
}

/* Parses what is complete; answers how many bytes were used. */
static size_t parse(struct gb_mqtt_link *l, struct gb_bytes in)
{
    size_t used = 0;
    while (l->state == GB_MQTT_LINK_CONNECTING || l->state == GB_MQTT_LINK_UP) {
        struct gb_bytes rest = gb_bytes(in.data + used, in.size - used);
        if (l->skip_bytes > 0) {
            size_t n = l->skip_bytes < rest.size ? (size_t)l->skip_bytes : rest.size;
            l->skip_bytes -= n;
            used += n;
            if (l->skip_bytes > 0) break;
            continue;
        }
        struct gb_mqtt_frame frame;
        struct gb_mqtt_packet packet;
        enum gb_mqtt_frame_result r = gb_mqtt_frame_next(rest, l->cfg.packet_bytes_max, &frame);
        if (r == GB_MQTT_FRAME_NEED_MORE) break;
        if (r == GB_MQTT_FRAME_TOO_LARGE) {
            if (!skip_oversized(l, rest, &frame)) break;
            continue;
        }
        if (!decode_frame(l, r, &frame, &packet)) break;
        used += frame.size;
        handle_packet(l, &packet);
    }
    return used;
}

static void on_data(void *arg, struct gb_bytes bytes)
{
    struct gb_mqtt_link *l = arg;
    l->last_rx_ns = now_of(l);
    if (l->rx.size == 0) {
        size_t used = parse(l, bytes);
        bytes = gb_bytes(bytes.data + used, bytes.size - used);
        if (l->state != GB_MQTT_LINK_CLOSING) gb_str_append(&l->rx, bytes);
    } else {
        gb_str_append(&l->rx, bytes);
        size_t used = l->rx.failed ? 0 : parse(l, gb_str_bytes(&l->rx));
        memmove(l->rx.data, l->rx.data + used, l->rx.size - used);
        l->rx.size -= used;
    }
    if (l->rx.failed) {
        gb_mqtt_link_close(l, REASON_NORMAL, GB_MQTT_DOWN_LOST,
                           gb_err_no_memory("MQTT receive buffer"));
    }
}

static void on_connected(void *arg)
{
    struct gb_mqtt_link *l = arg;
    if (l->state != GB_MQTT_LINK_DIALING) return;
    set_state(l, GB_MQTT_LINK_CONNECTING);
    const struct gb_mqtt_session_cfg *s = l->cfg.session;
    const struct gb_mqtt_connect connect = {
        .version = s->version,
        .clean_start = l->clean_start,
        .keep_alive = s->keep_alive_s,
        .client_id = gb_bytes_c(s->client_id),
        .has_username = s->username != NULL,
        .username = gb_bytes_c(s->username),
        .has_password = s->password != NULL,
        .password = gb_bytes_c(s->password),
        .has_will = s->will.topic != NULL,
        .will_topic = gb_bytes_c(s->will.topic),
        .will_payload = gb_bytes_c(s->will.payload),
        .will_qos = s->will.qos,
        .will_retain = s->will.retain,
        .session_expiry_interval = s->session_expiry_interval_s,
        .receive_maximum = s->receive_maximum,
        .maximum_packet_size = l->cfg.packet_bytes_max,
    };
    gb_mqtt_encode_connect(&l->tx, &connect);
    gb_mqtt_link_flush(l);
}

static void on_drained(void *arg)
{
    (void)arg;
}

static void on_closed(void *arg, struct gb_err reason)
{
    struct gb_mqtt_link *l = arg;
    if (l->state != GB_MQTT_LINK_CLOSING) {
        l->down_cause = GB_MQTT_DOWN_LOST;
        l->down_reason = gb_failed(reason)
                             ? reason
                             : gb_err(GB_CONNECTION_LOST, "the broker closed the connection");
    }
    end(l);
}

static const struct gb_stream_events stream_events = {
    .connected = on_connected, .data = on_data, .drained = on_drained, .closed = on_closed};

/* A dial that could not even start: `down` still comes from the timer, not from inside the call. */
static void fail_to_dial(struct gb_mqtt_link *l, struct gb_err err)
{
    l->down_cause = GB_MQTT_DOWN_LOST;
    l->down_reason = err;
    l->attempt_deadline_ns = now_of(l);
    start_timer(l);
}

void gb_mqtt_link_open(struct gb_mqtt_link *l, const struct gb_mqtt_endpoint *endpoint,
                       bool clean_start, uint64_t deadline_ns)
{
    set_state(l, GB_MQTT_LINK_DIALING);
    l->clean_start = clean_start;
    l->attempt_deadline_ns = deadline_ns;
    l->ping_sent_ns = 0;
    l->skip_bytes = 0;
    l->last_tx_ns = now_of(l);
    l->last_rx_ns = now_of(l);
    const bool ws = endpoint->scheme == GB_MQTT_WS || endpoint->scheme == GB_MQTT_WSS;
    const struct gb_stream_cfg cfg = {
        .host = endpoint->host,
        .port = endpoint->port,
        .tls = gb_mqtt_scheme_is_tls(endpoint->scheme),
        .tls_cfg = &l->cfg.session->tls,
        .ws_path = ws ? endpoint->path : NULL,
        .deadline_ns = deadline_ns,
    };
    struct gb_err err = l->cfg.net->ops->dial(l->cfg.net, &cfg, &stream_events, l, &l->stream);
    if (gb_failed(err)) {
        fail_to_dial(l, err);
    } else {
        start_timer(l);
    }
}
