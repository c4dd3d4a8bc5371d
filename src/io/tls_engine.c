#include "io/tls_engine.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

struct gb_tls {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    char host[256];
};

static bool is_address(const char *host)
{
    unsigned char buffer[16];
    return inet_pton(AF_INET, host, buffer) == 1 || inet_pton(AF_INET6, host, buffer) == 1;
}

/* The name to verify; server name indication for names only. */
static bool set_host(struct gb_tls *t)
{
    if (is_address(t->host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), t->host) == 1;
    SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(t->ssl, t->host) == 1 && SSL_set_tlsext_host_name(t->ssl, t->host) == 1;
}

struct gb_err gb_tls_new(const struct gb_tls_cfg *cfg, const char *host, struct gb_tls **out)
{
    struct gb_tls *t = calloc(1, sizeof *t);
    if (t == NULL) return gb_err_no_memory("TLS connection");
    struct gb_err err = gb_tls_context_new(cfg, &t->ctx);
    if (gb_failed(err)) goto fail;
    err = gb_err_no_memory("TLS connection");
    if (strlen(host) >= sizeof t->host) goto fail;
    memcpy(t->host, host, strlen(host) + 1);
    t->ssl = SSL_new(t->ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (t->ssl == NULL || t->in == NULL || t->out == NULL) {
        BIO_free(t->in);
        BIO_free(t->out);
        goto fail;
    }
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    if (!set_host(t)) goto fail;
    *out = t;
    return gb_ok();
fail:
    gb_tls_free(t);
    return err;
}

void gb_tls_free(struct gb_tls *t)
{
    if (t == NULL) return;
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    free(t);
}

struct gb_err gb_tls_feed(struct gb_tls *t, struct gb_bytes raw)
{
    while (raw.size > 0) {
        int n = BIO_write(t->in, raw.data, raw.size > INT_MAX ? INT_MAX : (int)raw.size);
        if (n <= 0) return gb_err_no_memory("TLS input");
        raw = gb_bytes(raw.data + n, raw.size - (size_t)n);
    }
    return gb_ok();
}

void gb_tls_flush(struct gb_tls *t, struct gb_str *raw)
{
    size_t size = BIO_ctrl_pending(t->out);
    if (size == 0) return;
    char *room = gb_str_reserve(raw, size);
    if (room == NULL) return;
    int n = BIO_read(t->out, room, (int)size);
    if (n > 0) raw->size += (size_t)n;
}

static struct gb_err failure(struct gb_tls *t, const char *doing)
{
    long verify = SSL_get_verify_result(t->ssl);
    unsigned long code = ERR_get_error();
    const char *reason =
        code == 0 ? "the peer ended the connection" : ERR_reason_error_string(code);
    ERR_clear_error();
    if (verify != X509_V_OK)
        return gb_err(GB_CONNECTION_LOST, "certificate verify failed: %s for host %s",
                      X509_verify_cert_error_string(verify), t->host);
    return gb_err(GB_CONNECTION_LOST, "TLS %s with %s failed: %s", doing, t->host,
                  reason == NULL ? "unknown cause" : reason);
}

static bool wants_more(struct gb_tls *t, int result)
{
    int e = SSL_get_error(t->ssl, result);
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
}

struct gb_err gb_tls_handshake(struct gb_tls *t, struct gb_str *raw, bool *established)
{
    ERR_clear_error();
    int r = SSL_do_handshake(t->ssl);
    bool more = r != 1 && wants_more(t, r);
    gb_tls_flush(t, raw);
    *established = r == 1;
    return r == 1 || more ? gb_ok() : failure(t, "handshake");
}

struct gb_err gb_tls_read(struct gb_tls *t, char *buffer, size_t size, size_t *got, bool *ended)
{
    ERR_clear_error();
    *got = 0;
    *ended = false;
    int r = SSL_read(t->ssl, buffer, size > INT_MAX ? INT_MAX : (int)size);
    if (r > 0) {
        *got = (size_t)r;
        return gb_ok();
    }
    if (wants_more(t, r)) return gb_ok();
    if (SSL_get_error(t->ssl, r) == SSL_ERROR_ZERO_RETURN) {
        *ended = true;
        return gb_ok();
    }
    return failure(t, "read");
}

struct gb_err gb_tls_write(struct gb_tls *t, struct gb_bytes plain, struct gb_str *raw)
{
    ERR_clear_error();
    while (plain.size > 0) {
        int r = SSL_write(t->ssl, plain.data, plain.size > INT_MAX ? INT_MAX : (int)plain.size);
        if (r <= 0) return failure(t, "write"); /* a memory BIO never blocks */
        plain = gb_bytes(plain.data + r, plain.size - (size_t)r);
    }
    gb_tls_flush(t, raw);
    return gb_str_check(raw, "TLS output");
}

void gb_tls_goodbye(struct gb_tls *t, struct gb_str *raw)
{
    ERR_clear_error();
    SSL_shutdown(t->ssl);
    ERR_clear_error();
    gb_tls_flush(t, raw);
}
