#include "io/tls_material.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/assert.h"
#include "base/digest.h"
#include "io/file.h"
#include "io/net_uv.h"

enum { PEM_BYTES_MAX = 1024 * 1024 };

/* A PEM text, or a file's content. `from` says where it came from, for messages. */
struct pem {
    struct gb_str text;
    const char *key;
    const char *file; /* NULL: inline */
};

static struct gb_err bad(const struct pem *p, const char *what)
{
    ERR_clear_error();
    if (p->file != NULL) return gb_err(GB_INVALID_CONFIG, "%s: %s: %s", p->key, p->file, what);
    return gb_err(GB_INVALID_CONFIG, "%s: %s", p->key, what);
}

static struct gb_err load(struct pem *p, const char *inline_key, const char *text,
                          const char *file_key, const char *file)
{
    p->key = text != NULL ? inline_key : file_key;
    p->file = text != NULL ? NULL : file;
    if (text != NULL) {
        gb_str_append_c(&p->text, text);
        return gb_str_check(&p->text, "PEM");
    }
    struct gb_err err = gb_file_read(file, PEM_BYTES_MAX, &p->text);
    return gb_failed(err) ? gb_err(GB_INVALID_CONFIG, "%s: %s", file_key, err.message) : err;
}

static void unload(struct pem *p)
{
    if (p->text.data != NULL) gb_wipe(p->text.data, p->text.size);
    gb_str_deinit(&p->text);
}

static BIO *bio_of(const struct pem *p)
{
    return BIO_new_mem_buf(p->text.data, (int)p->text.size);
}

/* Encrypted keys would ask on the terminal: the empty callback refuses them. */
static int no_passphrase(char *buffer, int size, int write, void *arg)
{
    (void)buffer;
    (void)size;
    (void)write;
    (void)arg;
    return -1;
}

/* Hands each certificate of the text to `add`, which takes a reference of its own. A damaged one is
 * an error: a bundle that is trusted in half is found out too late. */
static struct gb_err read_certs(const struct pem *p,
                                bool (*add)(SSL_CTX *ctx, X509 *cert, bool first), SSL_CTX *ctx)
{
    BIO *bio = bio_of(p);
    if (bio == NULL) return gb_err_no_memory("TLS material");
    struct gb_err err = gb_ok();
    size_t count = 0;
    X509 *cert = NULL;
    ERR_clear_error();
    while (!gb_failed(err) && (cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        if (!add(ctx, cert, count == 0)) err = bad(p, "a certificate can't be used");
        X509_free(cert);
        count++;
    }
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (!gb_failed(err) && !at_end) err = bad(p, "a PEM certificate is damaged");
    if (!gb_failed(err) && count == 0) err = bad(p, "holds no PEM certificate");
    ERR_clear_error();
    BIO_free(bio);
    return err;
}

static bool add_ca(SSL_CTX *ctx, X509 *cert, bool first)
{
    (void)first;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert) == 1;
}

/* The certificate itself, then those that lead to the authority. */
static bool add_own(SSL_CTX *ctx, X509 *cert, bool first)
{
    if (first) return SSL_CTX_use_certificate(ctx, cert) == 1;
    return SSL_CTX_add1_chain_cert(ctx, cert) == 1;
}

static struct gb_err use_ca(SSL_CTX *ctx, const struct gb_tls_cfg *cfg)
{
    if (cfg == NULL || (cfg->ca_pem == NULL && cfg->ca_file == NULL)) {
        if (SSL_CTX_set_default_verify_paths(ctx) != 1)
            return gb_err(GB_INVALID_CONFIG, "the system's certificate store can't be used");
        return gb_ok();
    }
    struct pem p = {0};
    struct gb_err err = load(&p, "tls.ca_cert_pem", cfg->ca_pem, "tls.ca_cert_file", cfg->ca_file);
    if (!gb_failed(err)) err = read_certs(&p, add_ca, ctx);
    unload(&p);
    return err;
}

static struct gb_err use_key(SSL_CTX *ctx, const struct pem *p)
{
    BIO *bio = bio_of(p);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    bool loaded = key != NULL;
    bool fits =
        loaded && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    ERR_clear_error();
    if (!loaded) return bad(p, "is not an unencrypted PEM private key");
    return fits ? gb_ok() : bad(p, "the private key does not belong to the certificate");
}

static struct gb_err use_pair(SSL_CTX *ctx, const struct gb_tls_cfg *cfg)
{
    if (cfg == NULL) return gb_ok();
    bool pem_pair = cfg->cert_pem != NULL && cfg->key_pem != NULL;
    const char *cert_pem = pem_pair ? cfg->cert_pem : NULL;
    const char *key_pem = pem_pair ? cfg->key_pem : NULL;
    if (!pem_pair && (cfg->cert_pem != NULL || cfg->key_pem != NULL)) {
        return gb_err(GB_INVALID_CONFIG,
                      "tls.cert_pem and tls.key_pem come together or not at all");
    }
    if (!pem_pair && (cfg->cert_file != NULL) != (cfg->key_file != NULL)) {
        return gb_err(GB_INVALID_CONFIG,
                      "tls.cert_file and tls.key_file come together or not at all");
    }
    if (!pem_pair && cfg->cert_file == NULL) return gb_ok();
    struct pem cert = {0}, key = {0};
    struct gb_err err = load(&cert, "tls.cert_pem", cert_pem, "tls.cert_file", cfg->cert_file);
    if (!gb_failed(err)) err = load(&key, "tls.key_pem", key_pem, "tls.key_file", cfg->key_file);
    if (!gb_failed(err)) err = read_certs(&cert, add_own, ctx);
    if (!gb_failed(err)) err = use_key(ctx, &key);
    unload(&cert);
    unload(&key);
    return err;
}

struct gb_err gb_tls_context_new(const struct gb_tls_cfg *cfg, SSL_CTX **out)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL) return gb_err_no_memory("TLS context");
    long rc = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    GB_ASSERT(rc == 1); /* it refuses unknown versions only */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
    bool verify = cfg == NULL || !cfg->insecure_skip_verify;
    SSL_CTX_set_verify(ctx, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    struct gb_err err = use_ca(ctx, cfg);
    if (!gb_failed(err)) err = use_pair(ctx, cfg);
    if (gb_failed(err)) {
        SSL_CTX_free(ctx);
        return err;
    }
    *out = ctx;
    return gb_ok();
}

struct gb_err gb_tls_check(const struct gb_tls_cfg *cfg)
{
    SSL_CTX *ctx = NULL;
    struct gb_err err = gb_tls_context_new(cfg, &ctx);
    SSL_CTX_free(ctx);
    return err;
}
