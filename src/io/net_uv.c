#include "io/net_uv.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "io/tls_engine.h"
#include "io/ws_engine.h"

/* Outgoing streams: TCP on libuv, with TLS and WebSocket as filters on top (spec 03 §4.2). */

enum { READ_CHUNK = 65536, PLAIN_CHUNK = 32768 };

enum stream_state {
    STREAM_RESOLVING = 0,
    STREAM_CONNECTING,
    STREAM_HANDSHAKE, /* TLS */
    STREAM_UPGRADE,   /* WebSocket */
    STREAM_OPEN,
    STREAM_FLUSHING, /* the user closed; pending bytes leave until the deadline */
    STREAM_CLOSING,  /* waits for libuv */
    STREAM_STATES,
};
#define GB_BIT(state) (1u << (state))
static const uint8_t exits[STREAM_STATES] = {
    [STREAM_RESOLVING] = GB_BIT(STREAM_CONNECTING) | GB_BIT(STREAM_CLOSING),
    [STREAM_CONNECTING] = GB_BIT(STREAM_HANDSHAKE) | GB_BIT(STREAM_UPGRADE) | GB_BIT(STREAM_OPEN) |
                          GB_BIT(STREAM_CLOSING),
    [STREAM_HANDSHAKE] = GB_BIT(STREAM_UPGRADE) | GB_BIT(STREAM_OPEN) | GB_BIT(STREAM_CLOSING),
    [STREAM_UPGRADE] = GB_BIT(STREAM_OPEN) | GB_BIT(STREAM_CLOSING),
    [STREAM_OPEN] = GB_BIT(STREAM_FLUSHING) | GB_BIT(STREAM_CLOSING),
    [STREAM_FLUSHING] = GB_BIT(STREAM_CLOSING),
};

struct net {
    struct gb_net base;
    struct gb_loop *loop;
    size_t streams;
};
struct write { /* bytes that the kernel did not take at once */
    uv_write_t request;
    struct gb_str bytes;
    struct stream *stream;
};
struct stream {
    struct gb_stream base;
    struct net *net;
    const struct gb_stream_events *events;
    void *arg;
    enum stream_state state;
    uv_tcp_t tcp;
    uv_getaddrinfo_t resolver;
    uv_connect_t connect;
    struct addrinfo *addresses, *address;
    struct gb_timer deadline;
    struct gb_task fail; /* an error found inside a user's call ends the stream from the loop */
    struct gb_err reason;
    struct gb_tls *tls;
    struct gb_ws *ws;
    char *read_buffer;
    size_t read_size;
    size_t pending;
    char host[256];
    uint16_t port;
    bool resolving, tcp_open, tcp_closed;
};

static void set_state(struct stream *s, enum stream_state next)
{
    GB_ASSERT((exits[s->state] & GB_BIT(next)) != 0);
    s->state = next;
}

static struct stream *of(struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct stream, base);
}

static void free_stream(struct stream *s)
{
    gb_task_cancel(&s->fail);
    gb_timer_deinit(&s->deadline);
    gb_tls_free(s->tls);
    gb_ws_free(s->ws);
    if (s->addresses != NULL) uv_freeaddrinfo(s->addresses);
    free(s->read_buffer);
    free(s);
}

/* The last event. The socket is closed and the look-up has answered: nothing can call back any more. */
static void maybe_ended(struct stream *s)
{
    if (s->state != STREAM_CLOSING || s->resolving || (s->tcp_open && !s->tcp_closed)) return;
    s->net->streams--;
    s->events->closed(s->arg, s->reason);
    free_stream(s);
}

static void tcp_closed(uv_handle_t *h)
{
    struct stream *s = h->data;
    gb_loop_refresh_clock(s->net->loop);
    s->tcp_closed = true;
    maybe_ended(s);
}

static void end_later(struct gb_task *t)
{
    maybe_ended(GB_CONTAINER_OF(t, struct stream, fail));
}

static void end(struct stream *s, struct gb_err reason)
{
    if (s->state == STREAM_CLOSING) return;
    if (s->state != STREAM_FLUSHING) s->reason = reason;
    set_state(s, STREAM_CLOSING);
    gb_timer_stop(&s->deadline);
    gb_task_cancel(&s->fail);
    if (s->resolving)
        uv_cancel((uv_req_t *)&s->resolver); /* may be too late: its callback still comes */
    if (s->tcp_open) {
        uv_close((uv_handle_t *)&s->tcp, tcp_closed);
    } else if (!s->resolving) {
        s->fail.run = end_later;
        gb_reactor_defer(gb_loop_reactor(s->net->loop), &s->fail);
    }
}

static struct gb_err lost(const struct stream *s, const char *doing, int code)
{
    return gb_err(code == UV_ETIMEDOUT ? GB_TIMEOUT : GB_CONNECTION_LOST, "%s %s:%u: %s", doing,
                  s->host, s->port, uv_strerror(code));
}

static void fail_now(struct gb_task *t)
{
    struct stream *s = GB_CONTAINER_OF(t, struct stream, fail);
    end(s, s->reason);
}

/* For errors found inside a call of the user. */
static void fail_later(struct stream *s, struct gb_err reason)
{
    if (s->state == STREAM_CLOSING) return;
    s->reason = reason;
    s->fail.run = fail_now;
    gb_reactor_defer(gb_loop_reactor(s->net->loop), &s->fail);
}

static void deadline_passed(struct gb_timer *t)
{
    struct stream *s = GB_CONTAINER_OF(t, struct stream, deadline);
    end(s, gb_err(GB_TIMEOUT, "%s:%u: no connection before the deadline", s->host, s->port));
}

/* --- writing ---------------------------------------------------------------------------------- */

static void after_write(struct stream *s)
{
    if (s->pending > 0) return;
    if (s->state == STREAM_OPEN)
        s->events->drained(s->arg);
    else if (s->state == STREAM_FLUSHING)
        end(s, s->reason);
}

static void write_done(uv_write_t *request, int status)
{
    struct write *w = request->data;
    struct stream *s = w->stream;
    gb_loop_refresh_clock(s->net->loop);
    s->pending -= w->bytes.size;
    gb_str_deinit(&w->bytes);
    free(w);
    if (s->state == STREAM_CLOSING) return;
    if (status < 0)
        end(s, lost(s, "writing to", status));
    else
        after_write(s);
}

/* Takes the memory of `bytes`. What the kernel takes at once costs no allocation. */
static void write_raw(struct stream *s, struct gb_str *bytes)
{
    size_t done = 0;
    if (s->pending == 0 && bytes->size > 0) {
        uv_buf_t buf = uv_buf_init(bytes->data, (unsigned)bytes->size);
        int n = uv_try_write((uv_stream_t *)&s->tcp, &buf, 1);
        if (n > 0) done = (size_t)n;
        if (n < 0 && n != UV_EAGAIN) {
            fail_later(s, lost(s, "writing to", n));
            gb_str_clear(bytes);
            return;
        }
    }
    if (done == bytes->size) {
        gb_str_clear(bytes); /* the caller's buffer keeps its memory */
        return;
    }
    struct write *w = calloc(1, sizeof *w);
    if (w == NULL) {
        fail_later(s, gb_err_no_memory("stream write"));
        gb_str_clear(bytes);
        return;
    }
    if (done > 0) {
        memmove(bytes->data, bytes->data + done, bytes->size - done);
        bytes->size -= done;
    }
    size_t size_max = bytes->size_max;
    w->bytes = *bytes;
    *bytes = (struct gb_str){.size_max = size_max};
    w->stream = s;
    w->request.data = w;
    s->pending += w->bytes.size;
    uv_buf_t buf = uv_buf_init(w->bytes.data, (unsigned)w->bytes.size);
    int r = uv_write(&w->request, (uv_stream_t *)&s->tcp, &buf, 1, write_done);
    if (r == 0) return;
    s->pending -= w->bytes.size;
    gb_str_deinit(&w->bytes);
    free(w);
    fail_later(s, lost(s, "writing to", r));
}

static void write_below_ws(struct stream *s, struct gb_str *bytes)
{
    if (s->tls == NULL) {
        write_raw(s, bytes);
        return;
    }
    struct gb_str raw = {0};
    struct gb_err err = gb_tls_write(s->tls, gb_str_bytes(bytes), &raw);
    gb_str_clear(bytes);
    if (gb_failed(err))
        fail_later(s, err);
    else
        write_raw(s, &raw);
    gb_str_deinit(&raw);
}

static void stream_write(struct gb_stream *base, struct gb_str *take)
{
    struct stream *s = of(base);
    if (s->state != STREAM_OPEN) {
        gb_str_clear(take);
        return;
    }
    if (s->ws == NULL) {
        write_below_ws(s, take);
        return;
    }
    struct gb_str framed = {0};
    gb_ws_frame(s->ws, gb_str_bytes(take), gb_loop_reactor(s->net->loop), &framed);
    gb_str_clear(take);
    struct gb_err err = gb_str_check(&framed, "WebSocket frame");
    if (gb_failed(err))
        fail_later(s, err);
    else
        write_below_ws(s, &framed);
    gb_str_deinit(&framed);
}

static size_t stream_pending(const struct gb_stream *base)
{
    return GB_CONTAINER_OF(base, struct stream, base)->pending;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void opened(struct stream *s)
{
    set_state(s, STREAM_OPEN);
    gb_timer_stop(&s->deadline);
    s->events->connected(s->arg);
}

static void start_upgrade(struct stream *s)
{
    if (s->ws == NULL) {
        opened(s);
        return;
    }
    set_state(s, STREAM_UPGRADE);
    struct gb_str request = {0};
    gb_ws_request(s->ws, &request);
    write_below_ws(s, &request);
    gb_str_deinit(&request);
}

static void ws_payload(void *arg, struct gb_bytes payload)
{
    struct stream *s = arg;
    if (s->state == STREAM_OPEN) s->events->data(s->arg, payload);
}

/* Bytes above TLS. */
static void on_plain(struct stream *s, struct gb_bytes bytes)
{
    if (s->ws == NULL) {
        if (s->state == STREAM_OPEN) s->events->data(s->arg, bytes);
        return;
    }
    struct gb_str answer = {0};
    bool open = false;
    struct gb_err err = gb_ws_feed(s->ws, bytes, &answer, &open);
    if (!gb_failed(err) && open && s->state == STREAM_UPGRADE) opened(s);
    if (!gb_failed(err))
        err = gb_ws_deliver(s->ws, ws_payload, s, gb_loop_reactor(s->net->loop), &answer);
    if (answer.size > 0 && s->state != STREAM_CLOSING) write_below_ws(s, &answer);
    gb_str_deinit(&answer);
    if (err.code == GB_CANCELLED)
        end(s, gb_ok()); /* the peer's close frame */
    else if (gb_failed(err))
        end(s, gb_err_in(err, "%s:%u", s->host, s->port));
}

static void read_tls(struct stream *s)
{
    char plain[PLAIN_CHUNK];
    while (s->state != STREAM_CLOSING && s->state != STREAM_FLUSHING) {
        size_t got = 0;
        bool ended = false;
        struct gb_err err = gb_tls_read(s->tls, plain, sizeof plain, &got, &ended);
        if (gb_failed(err)) end(s, err);
        if (ended) end(s, gb_ok());
        if (got == 0) break;
        on_plain(s, gb_bytes(plain, got));
    }
}

static void step_handshake(struct stream *s)
{
    struct gb_str raw = {0};
    bool established = false;
    struct gb_err err = gb_tls_handshake(s->tls, &raw, &established);
    if (raw.size > 0) write_raw(s, &raw);
    gb_str_deinit(&raw);
    if (gb_failed(err))
        end(s, err);
    else if (established)
        start_upgrade(s);
}

static void on_raw(struct stream *s, struct gb_bytes bytes)
{
    if (s->tls == NULL) {
        on_plain(s, bytes);
        return;
    }
    struct gb_err err = gb_tls_feed(s->tls, bytes);
    if (gb_failed(err)) {
        end(s, err);
        return;
    }
    if (s->state == STREAM_HANDSHAKE) step_handshake(s);
    if (s->state == STREAM_OPEN || s->state == STREAM_UPGRADE) read_tls(s);
    struct gb_str raw = {0};
    if (s->state != STREAM_CLOSING) gb_tls_flush(s->tls, &raw);
    if (raw.size > 0) write_raw(s, &raw);
    gb_str_deinit(&raw);
}

static void allocate(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct stream *s = h->data;
    *buf = uv_buf_init(s->read_buffer, (unsigned)s->read_size);
}

static void read_done(uv_stream_t *h, ssize_t n, const uv_buf_t *buf)
{
    struct stream *s = h->data;
    gb_loop_refresh_clock(s->net->loop);
    if (s->state == STREAM_CLOSING || s->state == STREAM_FLUSHING || n == 0) return;
    if (n > 0)
        on_raw(s, gb_bytes(buf->base, (size_t)n));
    else if (n == UV_EOF)
        end(s, s->state == STREAM_OPEN ? gb_ok() : lost(s, "connecting to", UV_ECONNRESET));
    else
        end(s, lost(s, "reading from", (int)n));
}

/* --- dialling --------------------------------------------------------------------------------- */

static void try_next_address(struct stream *s, int last_error);

static void connected(uv_connect_t *request, int status)
{
    struct stream *s = request->data;
    gb_loop_refresh_clock(s->net->loop);
    if (s->state == STREAM_CLOSING) return;
    if (status < 0) {
        s->address = s->address->ai_next;
        try_next_address(s, status);
        return;
    }
    uv_tcp_nodelay(&s->tcp, 1);
    int r = uv_read_start((uv_stream_t *)&s->tcp, allocate, read_done);
    if (r < 0) {
        end(s, lost(s, "reading from", r));
    } else if (s->tls != NULL) {
        set_state(s, STREAM_HANDSHAKE);
        step_handshake(s);
    } else {
        start_upgrade(s);
    }
}

static void reopen_done(uv_handle_t *h)
{
    struct stream *s = h->data;
    gb_loop_refresh_clock(s->net->loop);
    s->tcp_open = false;
    if (s->state == STREAM_CLOSING)
        maybe_ended(s);
    else
        try_next_address(s, 0);
}

/* A failed socket can't be connected again: it is closed, then the next address gets a fresh one. */
static void try_next_address(struct stream *s, int last_error)
{
    if (s->address == NULL) {
        end(s, lost(s, "connecting to", last_error == 0 ? UV_EHOSTUNREACH : last_error));
        return;
    }
    if (s->tcp_open) {
        uv_close((uv_handle_t *)&s->tcp, reopen_done);
        return;
    }
    int r = uv_tcp_init(gb_loop_uv(s->net->loop), &s->tcp);
    if (r == 0) {
        s->tcp_open = true;
        s->tcp.data = s;
        s->connect.data = s;
        r = uv_tcp_connect(&s->connect, &s->tcp, s->address->ai_addr, connected);
    }
    if (r != 0) end(s, lost(s, "connecting to", r));
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct stream *s = request->data;
    gb_loop_refresh_clock(s->net->loop);
    s->resolving = false;
    s->addresses = addresses;
    if (s->state == STREAM_CLOSING) {
        maybe_ended(s);
    } else if (status < 0) {
        end(s, lost(s, "looking up", status));
    } else {
        set_state(s, STREAM_CONNECTING);
        s->address = addresses;
        try_next_address(s, 0);
    }
}

static void stream_close(struct gb_stream *base, uint64_t deadline_ns)
{
    struct stream *s = of(base);
    if (s->state == STREAM_CLOSING || s->state == STREAM_FLUSHING) return;
    if (s->state == STREAM_OPEN && deadline_ns > 0 && s->tls != NULL) {
        struct gb_str raw = {0};
        gb_tls_goodbye(s->tls, &raw);
        if (raw.size > 0) write_raw(s, &raw);
        gb_str_deinit(&raw);
    }
    if (s->state == STREAM_OPEN && deadline_ns > 0 && s->pending > 0) {
        s->reason = (struct gb_err){.code = GB_CANCELLED};
        set_state(s, STREAM_FLUSHING);
        gb_timer_start(&s->deadline, deadline_ns);
        return;
    }
    end(s, (struct gb_err){.code = GB_CANCELLED});
}

static const struct gb_stream_ops stream_ops = {
    .write = stream_write, .pending = stream_pending, .close = stream_close};

static struct gb_err build(struct stream *s, const struct gb_stream_cfg *cfg)
{
    struct gb_reactor *r = gb_loop_reactor(s->net->loop);
    snprintf(s->host, sizeof s->host, "%s", cfg->host);
    s->port = cfg->port;
    s->read_size = cfg->read_chunk_max == 0 ? READ_CHUNK : cfg->read_chunk_max;
    s->read_buffer = malloc(s->read_size);
    if (s->read_buffer == NULL) return gb_err_no_memory("stream");
    struct gb_err err = gb_timer_init(&s->deadline, r, deadline_passed);
    if (!gb_failed(err) && cfg->tls) err = gb_tls_new(cfg->tls_cfg, cfg->host, &s->tls);
    if (!gb_failed(err) && cfg->ws_path != NULL)
        err = gb_ws_new(cfg->host, cfg->port, cfg->ws_path, r, &s->ws);
    return err;
}

static struct gb_err net_dial(struct gb_net *base, const struct gb_stream_cfg *cfg,
                              const struct gb_stream_events *events, void *arg,
                              struct gb_stream **out)
{
    struct net *n = GB_CONTAINER_OF(base, struct net, base);
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("stream");
    s->base.ops = &stream_ops;
    s->net = n;
    s->events = events;
    s->arg = arg;
    struct gb_err err = build(s, cfg);
    char port[8];
    snprintf(port, sizeof port, "%u", cfg->port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    s->resolver.data = s;
    if (!gb_failed(err)) {
        int r =
            uv_getaddrinfo(gb_loop_uv(n->loop), &s->resolver, resolved, cfg->host, port, &hints);
        if (r != 0) err = lost(s, "looking up", r);
    }
    if (gb_failed(err)) {
        free_stream(s);
        return err;
    }
    s->resolving = true;
    n->streams++;
    gb_timer_start(&s->deadline, cfg->deadline_ns);
    *out = &s->base;
    return gb_ok();
}

static const struct gb_net_ops net_ops = {.dial = net_dial};

struct gb_err gb_net_uv_new(struct gb_loop *l, struct gb_net **out)
{
    struct net *n = calloc(1, sizeof *n);
    if (n == NULL) return gb_err_no_memory("network");
    n->base.ops = &net_ops;
    n->loop = l;
    *out = &n->base;
    return gb_ok();
}

void gb_net_uv_free(struct gb_net *base)
{
    struct net *n = GB_CONTAINER_OF(base, struct net, base);
    GB_ASSERT(n->streams == 0);
    free(n);
}
