#include <stdlib.h>

#include <openssl/rand.h>

#include "base/duration.h"
#include "io/net_layers.h"
#include "io/ws_codec.h"

/* WebSocket as a layer: upgrade, then each write is one binary frame. */

enum ws_state {
    WS_CONNECTING = 0, /* the stream below is */
    WS_UPGRADING,
    WS_OPEN,
    WS_CLOSING, /* the stream below closes */
    WS_STATES,
};
#define BIT(state) (1u << (state))
static const uint8_t exits[WS_STATES] = {
    [WS_CONNECTING] = BIT(WS_UPGRADING) | BIT(WS_CLOSING),
    [WS_UPGRADING] = BIT(WS_OPEN) | BIT(WS_CLOSING),
    [WS_OPEN] = BIT(WS_CLOSING),
};

/* A peer that pings without reading gets no pongs beyond this (RFC 6455 §5.5.3 allows it). */
enum { PONG_PENDING_MAX = 65536 };
enum { CLOSE_NORMAL = 1000, CLOSE_PROTOCOL_ERROR = 1002 };
#define GOODBYE_NS ((uint64_t)GB_SEC)

struct ws {
    struct gb_net_layer layer;
    struct gb_net_uv *net;
    enum ws_state state;
    struct gb_err reason; /* of the end, when it is ours */
    bool ended;           /* `reason` counts */
    struct gb_str request;
    char accept[GB_WS_ACCEPT_SIZE];
    struct gb_str head; /* of the answer, until complete */
    struct gb_ws_decoder decoder;
    struct gb_str sending;
    struct gb_timer deadline; /* of the upgrade */
    uint64_t deadline_ns;
    uint16_t port;
    char *host;
};

static void set_state(struct ws *w, enum ws_state next)
{
    GB_ASSERT((exits[w->state] & BIT(next)) != 0);
    w->state = next;
}

static struct ws *of(const struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct ws, layer.stream);
}

static void destroy(struct gb_net_layer *layer)
{
    struct ws *w = GB_CONTAINER_OF(layer, struct ws, layer);
    gb_timer_deinit(&w->deadline);
    gb_str_deinit(&w->request);
    gb_str_deinit(&w->head);
    gb_str_deinit(&w->sending);
    free(w->host);
    free(w);
}

static void close_lower(struct ws *w, uint64_t deadline_ns)
{
    if (w->state != WS_CLOSING) set_state(w, WS_CLOSING);
    gb_timer_stop(&w->deadline);
    w->layer.lower->ops->close(w->layer.lower, deadline_ns);
}

/* Ends the stream for a reason of this layer; what was sent until now still leaves. */
static void end(struct ws *w, struct gb_err reason, uint64_t flush_ns)
{
    if (w->state == WS_CLOSING) return;
    w->reason = reason;
    w->ended = true;
    close_lower(w, flush_ns == 0 ? 0 : gb_reactor_now_ns(w->net->reactor) + flush_ns);
}

static void send_frame(struct ws *w, enum gb_ws_opcode opcode, struct gb_bytes payload)
{
    uint8_t mask[4];
    if (RAND_bytes(mask, sizeof mask) != 1) { /* RFC 6455 §10.3: not to be foreseen */
        end(w,
            gb_err(GB_UNAVAILABLE, "%s:%u: no random bytes for a WebSocket mask", w->host, w->port),
            0);
        return;
    }
    gb_ws_encode(&w->sending, opcode, mask, payload);
    struct gb_err err = gb_str_check(&w->sending, "a WebSocket frame");
    if (gb_failed(err)) {
        end(w, err, 0);
        return;
    }
    w->layer.lower->ops->write(w->layer.lower, &w->sending);
}

static void send_close(struct ws *w, uint16_t code)
{
    uint8_t payload[2];
    gb_put_u16(payload, code);
    send_frame(w, GB_WS_CLOSE, gb_bytes(payload, sizeof payload));
}

/* --- events of the stream below --- */

static void handle_control(struct ws *w, enum gb_ws_event event, struct gb_bytes payload)
{
    const struct gb_stream *lower = w->layer.lower;
    if (event == GB_WS_GOT_PING && lower->ops->pending(lower) <= PONG_PENDING_MAX) {
        send_frame(w, GB_WS_PONG, payload);
    }
    if (event == GB_WS_GOT_CLOSE) {
        send_frame(w, GB_WS_CLOSE, gb_bytes(payload.data, payload.size < 2 ? 0 : 2));
        end(w, gb_ok(), GOODBYE_NS);
    }
}

static void read_frames(struct ws *w, struct gb_bytes input)
{
    while (w->state == WS_OPEN) {
        enum gb_ws_event event = GB_WS_NEED_MORE;
        struct gb_bytes payload;
        struct gb_err err = gb_ws_decode(&w->decoder, &input, &event, &payload);
        if (gb_failed(err)) {
            send_close(w, CLOSE_PROTOCOL_ERROR);
            end(w, gb_err_in(err, "%s:%u", w->host, w->port), GOODBYE_NS);
            return;
        }
        if (event == GB_WS_NEED_MORE) return;
        if (event == GB_WS_DATA) {
            w->layer.events->data(w->layer.arg, payload);
        } else {
            handle_control(w, event, payload);
        }
    }
}

/* Collects the head of the answer; what follows it are frames. */
static void read_answer(struct ws *w, struct gb_bytes input)
{
    size_t size_before = w->head.size;
    size_t room = GB_WS_HEAD_MAX - size_before;
    gb_str_append(&w->head, gb_bytes(input.data, input.size < room ? input.size : room));
    struct gb_err err = gb_str_check(&w->head, "a WebSocket answer");
    size_t size = gb_failed(err) ? 0 : gb_ws_head_size(gb_str_bytes(&w->head));
    if (!gb_failed(err) && size == 0) {
        if (w->head.size < GB_WS_HEAD_MAX) return;
        err = gb_err(GB_CONNECTION_LOST, "WebSocket upgrade: the answer's head is above %d bytes",
                     GB_WS_HEAD_MAX);
    }
    if (!gb_failed(err)) err = gb_ws_check_answer(gb_bytes(w->head.data, size), w->accept);
    if (gb_failed(err)) {
        end(w, gb_err_in(err, "%s:%u", w->host, w->port), 0);
        return;
    }
    gb_str_deinit(&w->head);
    gb_timer_stop(&w->deadline);
    set_state(w, WS_OPEN);
    w->layer.events->connected(w->layer.arg);
    size_t used = size - size_before;
    read_frames(w, gb_bytes(input.data + used, input.size - used));
}

static void on_connected(void *arg)
{
    struct ws *w = arg;
    if (w->state != WS_CONNECTING) return;
    set_state(w, WS_UPGRADING);
    if (w->deadline_ns != 0) gb_timer_start(&w->deadline, w->deadline_ns);
    w->layer.lower->ops->write(w->layer.lower, &w->request);
}

static void on_data(void *arg, struct gb_bytes bytes)
{
    struct ws *w = arg;
    if (w->state == WS_UPGRADING) {
        read_answer(w, bytes);
    } else {
        read_frames(w, bytes);
    }
}

static void on_drained(void *arg)
{
    struct ws *w = arg;
    if (w->state == WS_OPEN) w->layer.events->drained(w->layer.arg);
}

static void on_closed(void *arg, struct gb_err reason)
{
    struct ws *w = arg;
    if (w->ended) {
        reason = w->reason;
    } else if (w->state == WS_CLOSING) {
        reason = (struct gb_err){.code = GB_CANCELLED}; /* even if the goodbye failed */
    } else if (reason.code == GB_OK) {
        reason = gb_err(GB_CONNECTION_LOST,
                        w->state == WS_OPEN ? "%s:%u: WebSocket cut (no close frame)"
                                            : "%s:%u: WebSocket upgrade: the peer has closed",
                        w->host, w->port);
    }
    w->layer.events->closed(w->layer.arg, reason);
    destroy(&w->layer);
}

static void on_deadline(struct gb_timer *timer)
{
    struct ws *w = GB_CONTAINER_OF(timer, struct ws, deadline);
    end(w,
        gb_err(GB_TIMEOUT, "%s:%u: WebSocket upgrade: no answer by the deadline", w->host, w->port),
        0);
}

static const struct gb_stream_events own_events = {
    .connected = on_connected, .data = on_data, .drained = on_drained, .closed = on_closed};

/* --- calls of the user --- */

static void ws_write(struct gb_stream *s, struct gb_str *take)
{
    struct ws *w = of(s);
    GB_ASSERT(w->state >= WS_OPEN);
    if (w->state == WS_OPEN && take->size > 0) send_frame(w, GB_WS_BINARY, gb_str_bytes(take));
    gb_str_clear(take);
}

static size_t ws_pending(const struct gb_stream *s)
{
    const struct gb_stream *lower = of(s)->layer.lower;
    return lower->ops->pending(lower);
}

static void ws_close(struct gb_stream *s, uint64_t deadline_ns)
{
    struct ws *w = of(s);
    if (w->state == WS_OPEN && deadline_ns != 0) send_close(w, CLOSE_NORMAL);
    close_lower(w, deadline_ns);
}

static const struct gb_stream_ops ops = {
    .write = ws_write, .pending = ws_pending, .close = ws_close};

/* --- construction --- */

static struct gb_err make_request(struct ws *w, const struct gb_stream_cfg *cfg)
{
    uint8_t nonce[16];
    char key[GB_WS_KEY_SIZE];
    if (RAND_bytes(nonce, sizeof nonce) != 1) {
        return gb_err(GB_UNAVAILABLE, "no random bytes for a WebSocket key");
    }
    gb_ws_key(nonce, key);
    gb_ws_accept(key, w->accept);
    struct gb_ws_target target = {cfg->host, cfg->port, cfg->tls, cfg->ws_path};
    gb_ws_request(&w->request, &target, key);
    return gb_str_check(&w->request, "a WebSocket request");
}

struct gb_err gb_net_ws_new(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                            struct gb_net_layer **out)
{
    if (!gb_ws_path_valid(cfg->ws_path)) {
        return gb_err(GB_INVALID_CONFIG, "a WebSocket path starts with / and has no white space, "
                                         "control characters or #");
    }
    struct ws *w = calloc(1, sizeof *w);
    if (w == NULL) return gb_err_no_memory("a WebSocket stream");
    w->layer.stream.ops = &ops;
    w->layer.own_events = &own_events;
    w->layer.destroy = destroy;
    w->net = n;
    w->port = cfg->port;
    w->deadline_ns = cfg->deadline_ns;
    w->host = gb_strdup(cfg->host);
    struct gb_err err = w->host == NULL ? gb_err_no_memory("a WebSocket stream") : gb_ok();
    if (!gb_failed(err)) err = gb_timer_init(&w->deadline, n->reactor, on_deadline);
    if (!gb_failed(err)) err = make_request(w, cfg);
    if (gb_failed(err)) {
        destroy(&w->layer);
        return err;
    }
    *out = &w->layer;
    return err;
}
