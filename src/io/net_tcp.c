#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/duration.h"
#include "io/net_layers.h"

/* One outgoing TCP stream: look-up, one address after the other, bytes, end. */

enum tcp_state {
    STREAM_RESOLVING = 0,
    STREAM_CONNECTING,
    STREAM_RETRYING, /* the socket of a failed attempt closes, the next address follows */
    STREAM_OPEN,
    STREAM_FLUSHING,  /* the user has closed: what is pending leaves, then FIN */
    STREAM_LINGERING, /* FIN is out, waiting for the peer's */
    STREAM_CLOSING,   /* libuv closes the socket, `closed` follows */
    STREAM_STATES,
};
#define BIT(state) (1u << (state))
static const uint8_t exits[STREAM_STATES] = {
    [STREAM_RESOLVING] = BIT(STREAM_CONNECTING) | BIT(STREAM_CLOSING),
    [STREAM_CONNECTING] = BIT(STREAM_RETRYING) | BIT(STREAM_OPEN) | BIT(STREAM_CLOSING),
    [STREAM_RETRYING] = BIT(STREAM_CONNECTING) | BIT(STREAM_CLOSING),
    [STREAM_OPEN] = BIT(STREAM_FLUSHING) | BIT(STREAM_CLOSING),
    [STREAM_FLUSHING] = BIT(STREAM_LINGERING) | BIT(STREAM_CLOSING),
    [STREAM_LINGERING] = BIT(STREAM_CLOSING),
};

enum { HOST_MAX = 255, KEEPALIVE_S = 60 };
/* A close with unread bytes makes the kernel send RST, and the peer may then lose what was sent
 * last: an MQTT DISCONNECT, say, so that it publishes the will. So we wait for its FIN, but not
 * long: a peer that has read the goodbye closes at once. */
#define LINGER_MAX_NS ((uint64_t)(500 * GB_MS))

struct tcp;
/* Can't be called back while it runs, and the name server may take long: a stream that ends leaves
 * it behind. */
struct lookup {
    uv_getaddrinfo_t request;
    struct gb_loop *loop;
    struct tcp *tcp; /* NULL = left behind */
};
struct chunk { /* what the kernel did not take at once */
    uv_write_t request;
    struct gb_str bytes;
};
struct tcp {
    struct gb_stream stream;
    struct gb_net_uv *net;
    const struct gb_stream_events *events;
    void *arg;
    enum tcp_state state;
    struct gb_err reason; /* of the end */
    uv_tcp_t uv;
    uv_connect_t connect;
    uv_shutdown_t shutdown;
    struct lookup *lookup;
    struct addrinfo *addresses; /* all, to be freed */
    struct addrinfo *address;   /* the one that is tried */
    struct gb_timer timer;      /* the look-up, an attempt, the flush or the linger */
    uint64_t deadline_ns;       /* of the dial (0 = none), then of the flush */
    size_t read_max;
    uint16_t port;
    char host[HOST_MAX + 1];
};

static void set_state(struct tcp *t, enum tcp_state next)
{
    GB_ASSERT((exits[t->state] & BIT(next)) != 0);
    t->state = next;
}

static struct tcp *of(const struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct tcp, stream);
}

static struct gb_err lost(const struct tcp *t, const char *doing, int rc)
{
    return gb_err(GB_CONNECTION_LOST, "%s:%u: %s: %s", t->host, t->port, doing, uv_strerror(rc));
}

/* --- the end --- */

static void destroy(struct tcp *t)
{
    gb_timer_deinit(&t->timer);
    uv_freeaddrinfo(t->addresses); /* also for NULL */
    free(t);
}

static void init_socket(struct tcp *t);
static void try_address(struct tcp *t);

static void on_uv_closed(uv_handle_t *handle)
{
    struct tcp *t = handle->data;
    gb_loop_refresh_clock(t->net->loop);
    if (t->state == STREAM_RETRYING) {
        init_socket(t);
        try_address(t);
        return;
    }
    t->net->streams--;
    t->events->closed(t->arg, t->reason);
    destroy(t);
}

/* Also from inside a call of the user: libuv calls back later. */
static void end(struct tcp *t, struct gb_err reason)
{
    if (t->state == STREAM_CLOSING) return;
    bool closes_already = t->state == STREAM_RETRYING;
    bool by_user = t->state == STREAM_FLUSHING || t->state == STREAM_LINGERING;
    t->reason = by_user ? (struct gb_err){.code = GB_CANCELLED} : reason;
    set_state(t, STREAM_CLOSING);
    gb_timer_stop(&t->timer);
    if (t->lookup != NULL) {
        t->lookup->tcp = NULL;
        (void)uv_cancel((uv_req_t *)&t->lookup->request); /* fails when it runs already */
        t->lookup = NULL;
    }
    if (!closes_already) uv_close((uv_handle_t *)&t->uv, on_uv_closed);
}

/* --- reading and writing --- */

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct tcp *t = handle->data;
    *buf = uv_buf_init(t->net->received, (unsigned)t->read_max);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct tcp *t = stream->data;
    if (size == 0) return; /* nothing there after all */
    gb_loop_refresh_clock(t->net->loop);
    if (size == UV_EOF) {
        end(t, gb_ok());
    } else if (size < 0) {
        end(t, lost(t, "read", (int)size));
    } else if (t->state == STREAM_OPEN) {
        t->events->data(t->arg, gb_bytes(buf->base, (size_t)size));
    } /* else the user has closed and wants no more */
}

static void on_written(uv_write_t *request, int status)
{
    struct chunk *c = GB_CONTAINER_OF(request, struct chunk, request);
    struct tcp *t = request->handle->data;
    gb_str_deinit(&c->bytes);
    free(c);
    gb_loop_refresh_clock(t->net->loop);
    if (status < 0) {
        end(t, lost(t, "write", status));
    } else if (t->state == STREAM_OPEN &&
               uv_stream_get_write_queue_size((uv_stream_t *)&t->uv) == 0) {
        t->events->drained(t->arg);
    }
}

/* Takes the memory of `take`, of which `skip` bytes are with the kernel. */
static void queue_rest(struct tcp *t, struct gb_str *take, size_t skip)
{
    struct chunk *c = calloc(1, sizeof *c);
    if (c == NULL) {
        end(t, gb_err_no_memory("a write to the network"));
        return;
    }
    c->bytes = *take;
    *take = (struct gb_str){.size_max = take->size_max};
    uv_buf_t buf = uv_buf_init(c->bytes.data + skip, (unsigned)(c->bytes.size - skip));
    int rc = uv_write(&c->request, (uv_stream_t *)&t->uv, &buf, 1, on_written);
    if (rc == 0) return;
    gb_str_deinit(&c->bytes);
    free(c);
    end(t, lost(t, "write", rc));
}

static void tcp_write(struct gb_stream *s, struct gb_str *take)
{
    struct tcp *t = of(s);
    GB_ASSERT(t->state >= STREAM_OPEN && take->size <= UINT32_MAX); /* uv counts in 32 bits */
    if (t->state == STREAM_OPEN && take->size > 0) {
        size_t done = 0;
        uv_buf_t buf = uv_buf_init(take->data, (unsigned)take->size);
        int rc = uv_try_write((uv_stream_t *)&t->uv, &buf, 1); /* EAGAIN while some is queued */
        if (rc >= 0) done = (size_t)rc;
        if (rc < 0 && rc != UV_EAGAIN) {
            end(t, lost(t, "write", rc));
        } else if (done < take->size) {
            queue_rest(t, take, done);
        }
    }
    gb_str_clear(take);
}

static size_t tcp_pending(const struct gb_stream *s)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&of(s)->uv);
}

/* --- close --- */

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct tcp *t = request->handle->data;
    if (t->state != STREAM_FLUSHING) return;
    gb_loop_refresh_clock(t->net->loop);
    if (status < 0) {
        end(t, gb_ok()); /* the reason is the user's close all the same */
        return;
    }
    set_state(t, STREAM_LINGERING);
    uint64_t limit_ns = gb_reactor_now_ns(t->net->reactor) + LINGER_MAX_NS;
    if (limit_ns < t->deadline_ns) gb_timer_start(&t->timer, limit_ns);
}

static void tcp_close(struct gb_stream *s, uint64_t deadline_ns)
{
    struct tcp *t = of(s);
    if (deadline_ns == 0 || t->state < STREAM_OPEN) {
        end(t, (struct gb_err){.code = GB_CANCELLED});
        return;
    }
    if (t->state != STREAM_OPEN) return;
    set_state(t, STREAM_FLUSHING);
    t->deadline_ns = deadline_ns;
    gb_timer_start(&t->timer, deadline_ns);
    /* uv sends what is queued first. */
    if (uv_shutdown(&t->shutdown, (uv_stream_t *)&t->uv, on_shutdown) != 0) end(t, gb_ok());
}

/* --- dial --- */

static void on_connected(uv_connect_t *request, int status);

/* The addresses that are left share the time that is left, so that one that never answers does not
 * keep the next from being tried. */
static void start_attempt_timer(struct tcp *t)
{
    if (t->deadline_ns == 0) return;
    uint64_t now_ns = gb_reactor_now_ns(t->net->reactor);
    uint64_t left_ns = t->deadline_ns > now_ns ? t->deadline_ns - now_ns : 0;
    uint64_t count = 1;
    for (const struct addrinfo *a = t->address->ai_next; a != NULL; a = a->ai_next) count++;
    gb_timer_start(&t->timer, now_ns + left_ns / count);
}

static void attempt_failed(struct tcp *t, struct gb_err reason)
{
    t->address = t->address->ai_next;
    if (t->address == NULL) {
        end(t, reason);
        return;
    }
    /* A socket that failed to connect can't be used again. */
    set_state(t, STREAM_RETRYING);
    uv_close((uv_handle_t *)&t->uv, on_uv_closed);
}

static void init_socket(struct tcp *t)
{
    int rc = uv_tcp_init(gb_loop_uv(t->net->loop), &t->uv);
    GB_ASSERT(rc == 0); /* it makes no descriptor yet */
    t->uv.data = t;
}

static void try_address(struct tcp *t)
{
    set_state(t, STREAM_CONNECTING);
    start_attempt_timer(t);
    int rc = uv_tcp_connect(&t->connect, &t->uv, t->address->ai_addr, on_connected);
    if (rc != 0) attempt_failed(t, lost(t, "connect", rc));
}

static void on_connected(uv_connect_t *request, int status)
{
    struct tcp *t = request->handle->data;
    if (t->state != STREAM_CONNECTING) return; /* given up meanwhile */
    gb_loop_refresh_clock(t->net->loop);
    if (status < 0) {
        attempt_failed(t, lost(t, "connect", status));
        return;
    }
    (void)uv_tcp_nodelay(&t->uv, 1); /* both only tune; the stream works without */
    (void)uv_tcp_keepalive(&t->uv, 1, KEEPALIVE_S);
    set_state(t, STREAM_OPEN);
    gb_timer_stop(&t->timer);
    int rc = uv_read_start((uv_stream_t *)&t->uv, on_allocate, on_read);
    if (rc != 0) {
        end(t, lost(t, "read", rc));
        return;
    }
    t->events->connected(t->arg);
}

static void on_timer(struct gb_timer *timer)
{
    struct tcp *t = GB_CONTAINER_OF(timer, struct tcp, timer);
    if (t->state == STREAM_CONNECTING) {
        attempt_failed(
            t, gb_err(GB_TIMEOUT, "%s:%u: connect: no answer by the deadline", t->host, t->port));
    } else if (t->state == STREAM_RESOLVING) {
        end(t, gb_err(GB_TIMEOUT, "%s:%u: look-up: no answer by the deadline", t->host, t->port));
    } else if (t->state != STREAM_RETRYING) {
        end(t, gb_ok());
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct lookup *l = GB_CONTAINER_OF(request, struct lookup, request);
    struct tcp *t = l->tcp;
    gb_loop_refresh_clock(l->loop);
    free(l);
    if (t == NULL) {
        uv_freeaddrinfo(addresses);
        return;
    }
    t->lookup = NULL;
    t->addresses = addresses;
    t->address = addresses;
    if (status == 0 && addresses == NULL) status = UV_EAI_NODATA;
    if (status < 0) {
        end(t, lost(t, "look-up", status));
    } else {
        try_address(t);
    }
}

static struct gb_err start_lookup(struct tcp *t)
{
    struct lookup *l = calloc(1, sizeof *l);
    if (l == NULL) return gb_err_no_memory("a network stream");
    l->loop = t->net->loop;
    l->tcp = t;
    char port[8];
    (void)snprintf(port, sizeof port, "%u", t->port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int rc =
        uv_getaddrinfo(gb_loop_uv(t->net->loop), &l->request, on_resolved, t->host, port, &hints);
    if (rc != 0) {
        free(l);
        return gb_err(GB_CONNECTION_LOST, "%s:%u: look-up: %s", t->host, t->port, uv_strerror(rc));
    }
    t->lookup = l;
    return gb_ok();
}

static const struct gb_stream_ops ops = {
    .write = tcp_write, .pending = tcp_pending, .close = tcp_close};

struct gb_err gb_net_tcp_dial(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                              const struct gb_stream_events *events, void *arg,
                              struct gb_stream **out)
{
    size_t host_size = strlen(cfg->host);
    if (host_size == 0 || host_size > HOST_MAX) {
        return gb_err(GB_INVALID_CONFIG, "a host name has 1 to %d bytes, this one has %zu",
                      HOST_MAX, host_size);
    }
    struct tcp *t = calloc(1, sizeof *t);
    if (t == NULL) return gb_err_no_memory("a network stream");
    t->stream.ops = &ops;
    t->net = n;
    t->events = events;
    t->arg = arg;
    t->port = cfg->port;
    t->deadline_ns = cfg->deadline_ns;
    t->read_max = cfg->read_chunk_max == 0 || cfg->read_chunk_max > GB_NET_CHUNK_MAX
                      ? GB_NET_CHUNK_MAX
                      : cfg->read_chunk_max;
    memcpy(t->host, cfg->host, host_size);
    struct gb_err err = gb_timer_init(&t->timer, n->reactor, on_timer);
    if (!gb_failed(err)) err = start_lookup(t);
    if (gb_failed(err)) {
        destroy(t);
        return err;
    }
    n->streams++;
    init_socket(t);
    if (cfg->deadline_ns != 0) gb_timer_start(&t->timer, cfg->deadline_ns);
    *out = &t->stream;
    return err;
}
