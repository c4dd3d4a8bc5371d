#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "io/net_layers.h"
#include "io/tls_material.h"

/* TLS as a layer: OpenSSL between two memory BIOs, `in` from the stream below and `out` to it. */

enum tls_state {
    TLS_CONNECTING = 0, /* the stream below is */
    TLS_HANDSHAKE,
    TLS_OPEN,
    TLS_CLOSING, /* the stream below closes */
    TLS_STATES,
};
#define BIT(state) (1u << (state))
static const uint8_t exits[TLS_STATES] = {
    [TLS_CONNECTING] = BIT(TLS_HANDSHAKE) | BIT(TLS_CLOSING),
    [TLS_HANDSHAKE] = BIT(TLS_OPEN) | BIT(TLS_CLOSING),
    [TLS_OPEN] = BIT(TLS_CLOSING),
};

struct tls {
    struct gb_net_layer layer;
    struct gb_net_uv *net;
    enum tls_state state;
    struct gb_err reason; /* of the end, when it is ours */
    bool ended;           /* `reason` counts */
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    struct gb_str sending;
    struct gb_timer deadline; /* of the handshake */
    uint64_t deadline_ns;
    size_t read_max;
    bool verifies;
    uint16_t port;
    char *host;
};

static void set_state(struct tls *t, enum tls_state next)
{
    GB_ASSERT((exits[t->state] & BIT(next)) != 0);
    t->state = next;
}

static struct tls *of(const struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct tls, layer.stream);
}

static void destroy(struct gb_net_layer *layer)
{
    struct tls *t = GB_CONTAINER_OF(layer, struct tls, layer);
    gb_timer_deinit(&t->deadline);
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    gb_str_deinit(&t->sending);
    free(t->host);
    free(t);
}

/* Ends the stream for a reason of this layer. */
static void end(struct tls *t, struct gb_err reason)
{
    if (t->state == TLS_CLOSING) return;
    set_state(t, TLS_CLOSING);
    gb_timer_stop(&t->deadline);
    t->reason = reason;
    t->ended = true;
    t->layer.lower->ops->close(t->layer.lower, 0);
}

/* Which check failed, from OpenSSL's queue of errors. */
static struct gb_err failure(struct tls *t, const char *doing)
{
    unsigned long code = ERR_get_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    ERR_clear_error();
    long verify = SSL_get_verify_result(t->ssl);
    if (t->verifies && verify != X509_V_OK) {
        return gb_err(GB_CONNECTION_LOST, "%s:%u: certificate verify failed: %s for host %s",
                      t->host, t->port, X509_verify_cert_error_string(verify), t->host);
    }
    return gb_err(GB_CONNECTION_LOST, "%s:%u: TLS %s: %s", t->host, t->port, doing,
                  reason == NULL ? "failed" : reason);
}

/* Sends what OpenSSL has produced: records, alerts, key updates. */
static void send_output(struct tls *t)
{
    size_t size = BIO_ctrl_pending(t->out);
    if (size == 0) return;
    char *room = gb_str_reserve(&t->sending, size);
    size_t got = 0;
    if (room == NULL || BIO_read_ex(t->out, room, size, &got) != 1) {
        end(t, gb_err_no_memory("a TLS record"));
        return;
    }
    t->sending.size += got;
    t->layer.lower->ops->write(t->layer.lower, &t->sending);
}

/* --- events of the stream below --- */

static void step_handshake(struct tls *t)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(t->ssl);
    bool waits = rc != 1 && SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_READ;
    struct gb_err err = rc == 1 || waits ? gb_ok() : failure(t, "handshake");
    send_output(t); /* also the alert that tells the peer of a failure */
    if (gb_failed(err)) {
        end(t, err);
        return;
    }
    if (rc != 1 || t->state != TLS_HANDSHAKE) return;
    set_state(t, TLS_OPEN);
    gb_timer_stop(&t->deadline);
    t->layer.events->connected(t->layer.arg);
}

static void read_records(struct tls *t)
{
    while (t->state == TLS_OPEN) {
        size_t got = 0;
        ERR_clear_error();
        int rc = SSL_read_ex(t->ssl, t->net->decrypted, t->read_max, &got);
        if (rc == 1) {
            t->layer.events->data(t->layer.arg, gb_bytes(t->net->decrypted, got));
            continue;
        }
        switch (SSL_get_error(t->ssl, rc)) {
        case SSL_ERROR_WANT_READ:
            send_output(t); /* the answer to a key update */
            return;
        case SSL_ERROR_ZERO_RETURN:
            end(t, gb_ok()); /* close_notify: the orderly end */
            return;
        default:
            end(t, failure(t, "read"));
            return;
        }
    }
}

static void on_data(void *arg, struct gb_bytes bytes)
{
    struct tls *t = arg;
    if (t->state == TLS_CLOSING) return;
    size_t taken = 0;
    if (BIO_write_ex(t->in, bytes.data, bytes.size, &taken) != 1 || taken != bytes.size) {
        end(t, gb_err_no_memory("TLS input"));
        return;
    }
    if (t->state == TLS_HANDSHAKE) step_handshake(t);
    read_records(t);
}

static void on_connected(void *arg)
{
    struct tls *t = arg;
    if (t->state != TLS_CONNECTING) return;
    set_state(t, TLS_HANDSHAKE);
    if (t->deadline_ns != 0) gb_timer_start(&t->deadline, t->deadline_ns);
    step_handshake(t);
}

static void on_drained(void *arg)
{
    struct tls *t = arg;
    if (t->state == TLS_OPEN) t->layer.events->drained(t->layer.arg);
}

static void on_closed(void *arg, struct gb_err reason)
{
    struct tls *t = arg;
    if (t->ended) {
        reason = t->reason;
    } else if (t->state == TLS_CLOSING) {
        reason = (struct gb_err){.code = GB_CANCELLED}; /* even if the goodbye failed */
    } else if (reason.code == GB_OK) {
        reason = gb_err(GB_CONNECTION_LOST,
                        t->state == TLS_OPEN ? "%s:%u: TLS session cut (no close_notify)"
                                             : "%s:%u: TLS handshake: the peer has closed",
                        t->host, t->port);
    }
    t->layer.events->closed(t->layer.arg, reason);
    destroy(&t->layer);
}

static void on_deadline(struct gb_timer *timer)
{
    struct tls *t = GB_CONTAINER_OF(timer, struct tls, deadline);
    end(t, gb_err(GB_TIMEOUT, "%s:%u: TLS handshake: no answer by the deadline", t->host, t->port));
}

static const struct gb_stream_events own_events = {
    .connected = on_connected, .data = on_data, .drained = on_drained, .closed = on_closed};

/* --- calls of the user --- */

static void tls_write(struct gb_stream *s, struct gb_str *take)
{
    struct tls *t = of(s);
    GB_ASSERT(t->state >= TLS_OPEN);
    if (t->state == TLS_OPEN && take->size > 0) {
        size_t written = 0;
        ERR_clear_error();
        /* Into memory: it takes all or fails. */
        if (SSL_write_ex(t->ssl, take->data, take->size, &written) == 1) {
            send_output(t);
        } else {
            end(t, failure(t, "write"));
        }
    }
    gb_str_clear(take);
}

static size_t tls_pending(const struct gb_stream *s)
{
    const struct gb_stream *lower = of(s)->layer.lower;
    return lower->ops->pending(lower);
}

static void tls_close(struct gb_stream *s, uint64_t deadline_ns)
{
    struct tls *t = of(s);
    if (t->state == TLS_OPEN && deadline_ns != 0) {
        (void)SSL_shutdown(t->ssl); /* writes close_notify; the peer's is not waited for */
        ERR_clear_error();
        send_output(t);
    }
    if (t->state != TLS_CLOSING) set_state(t, TLS_CLOSING);
    gb_timer_stop(&t->deadline);
    t->layer.lower->ops->close(t->layer.lower, deadline_ns);
}

static const struct gb_stream_ops ops = {
    .write = tls_write, .pending = tls_pending, .close = tls_close};

/* --- construction --- */

static bool is_address(const char *host)
{
    unsigned char buffer[16];
    return inet_pton(AF_INET, host, buffer) == 1 || inet_pton(AF_INET6, host, buffer) == 1;
}

/* What to verify (spec 03 §4.2); server name indication is for names only (RFC 6066 §3). */
static bool set_host(SSL *ssl, const char *host)
{
    if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static bool join_openssl(struct tls *t)
{
    t->ssl = SSL_new(t->ctx);
    if (t->ssl == NULL) return false;
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (t->in == NULL || t->out == NULL) {
        BIO_free(t->in);
        BIO_free(t->out);
        return false;
    }
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    return set_host(t->ssl, t->host);
}

struct gb_err gb_net_tls_new(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                             struct gb_net_layer **out)
{
    struct tls *t = calloc(1, sizeof *t);
    if (t == NULL) return gb_err_no_memory("a TLS stream");
    t->layer.stream.ops = &ops;
    t->layer.own_events = &own_events;
    t->layer.destroy = destroy;
    t->net = n;
    t->port = cfg->port;
    t->deadline_ns = cfg->deadline_ns;
    t->verifies = cfg->tls_cfg == NULL || !cfg->tls_cfg->insecure_skip_verify;
    t->read_max = cfg->read_chunk_max == 0 || cfg->read_chunk_max > GB_NET_CHUNK_MAX
                      ? GB_NET_CHUNK_MAX
                      : cfg->read_chunk_max;
    t->host = gb_strdup(cfg->host);
    struct gb_err err = t->host == NULL ? gb_err_no_memory("a TLS stream") : gb_ok();
    if (!gb_failed(err)) err = gb_timer_init(&t->deadline, n->reactor, on_deadline);
    if (!gb_failed(err)) err = gb_tls_context_new(cfg->tls_cfg, &t->ctx);
    if (!gb_failed(err) && !join_openssl(t)) {
        ERR_clear_error();
        err = gb_err(GB_UNAVAILABLE, "TLS with %.200s can't be set up", cfg->host);
    }
    if (gb_failed(err)) {
        destroy(&t->layer);
        return err;
    }
    *out = &t->layer;
    return err;
}
