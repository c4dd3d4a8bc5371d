#include "contract/io_peer.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/assert.h"
#include "base/str.h"

enum { CONNECTIONS_MAX = 256, BACKLOG = 64 };

struct gb_peer_conn {
    struct gb_peer *peer;
    pthread_t thread;
    int fd;
    SSL *ssl;
};
struct gb_peer {
    struct gb_peer_cfg cfg;
    SSL_CTX *ctx;
    int listener;
    int stop_pipe[2]; /* readable = the test is over */
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards count and the descriptors of the connections */
    int count;
    struct gb_peer_conn conns[CONNECTIONS_MAX];
};

/* --- one connection --- */

size_t gb_peer_read(struct gb_peer_conn *c, void *data, size_t size_max)
{
    size_t got = 0;
    if (c->ssl != NULL) return SSL_read_ex(c->ssl, data, size_max, &got) == 1 ? got : 0;
    ssize_t n = recv(c->fd, data, size_max, 0);
    return n > 0 ? (size_t)n : 0;
}

bool gb_peer_read_all(struct gb_peer_conn *c, void *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t n = gb_peer_read(c, (char *)data + at, size - at);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

bool gb_peer_write(struct gb_peer_conn *c, const void *data, size_t size)
{
    size_t done = 0;
    if (c->ssl != NULL) return SSL_write_ex(c->ssl, data, size, &done) == 1;
    while (done < size) {
        ssize_t n = send(c->fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

bool gb_peer_wait(struct gb_peer_conn *c, int ms)
{
    struct pollfd p = {.fd = c->peer->stop_pipe[0], .events = POLLIN};
    return poll(&p, 1, ms) == 0;
}

static void close_conn(struct gb_peer_conn *c)
{
    pthread_mutex_lock(&c->peer->lock);
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&c->peer->lock);
}

void gb_peer_reset(struct gb_peer_conn *c)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close_conn(c);
}

void gb_peer_close_notify(struct gb_peer_conn *c)
{
    if (c->ssl != NULL) (void)SSL_shutdown(c->ssl);
}

bool gb_peer_got_close_notify(const struct gb_peer_conn *c)
{
    return c->ssl == NULL || (SSL_get_shutdown(c->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

static void *run_conn(void *arg)
{
    struct gb_peer_conn *c = arg;
    bool ready = true;
    if (c->peer->ctx != NULL) {
        c->ssl = SSL_new(c->peer->ctx);
        GB_ASSERT(c->ssl != NULL && SSL_set_fd(c->ssl, c->fd) == 1);
        ready = SSL_accept(c->ssl) == 1;
    }
    if (ready) c->peer->cfg.handle(c, c->peer->cfg.arg);
    close_conn(c);
    SSL_free(c->ssl);
    return NULL;
}

/* --- the listener --- */

static void *run_listener(void *arg)
{
    struct gb_peer *p = arg;
    for (;;) {
        struct pollfd fds[2] = {{.fd = p->listener, .events = POLLIN},
                                {.fd = p->stop_pipe[0], .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) continue;
        if (fds[1].revents != 0) return NULL;
        int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        pthread_mutex_lock(&p->lock);
        GB_ASSERT(p->count < CONNECTIONS_MAX);
        struct gb_peer_conn *c = &p->conns[p->count++];
        c->peer = p;
        c->fd = fd;
        int rc = pthread_create(&c->thread, NULL, run_conn, c);
        GB_ASSERT(rc == 0);
        pthread_mutex_unlock(&p->lock);
    }
}

static SSL_CTX *server_ctx(const struct gb_peer_cfg *cfg)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    BIO *bio = BIO_new_mem_buf(cfg->tls->cert_pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new_mem_buf(cfg->tls->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    GB_ASSERT(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    if (cfg->client_ca != NULL) {
        bio = BIO_new_mem_buf(cfg->client_ca->cert_pem, -1);
        X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        GB_ASSERT(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) == 1);
        X509_free(ca);
        BIO_free(bio);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return ctx;
}

struct gb_peer *gb_peer_start(const struct gb_peer_cfg *cfg)
{
    struct gb_peer *p = calloc(1, sizeof *p);
    GB_ASSERT(p != NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    p->cfg = *cfg;
    if (cfg->tls != NULL) p->ctx = server_ctx(cfg);
    GB_ASSERT(pthread_mutex_init(&p->lock, NULL) == 0);
    GB_ASSERT(pipe(p->stop_pipe) == 0);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (cfg->receive_buffer != 0) {
        GB_ASSERT(setsockopt(p->listener, SOL_SOCKET, SO_RCVBUF, &cfg->receive_buffer,
                             sizeof cfg->receive_buffer) == 0);
    }
    GB_ASSERT(bind(p->listener, (struct sockaddr *)&a, sizeof a) == 0);
    GB_ASSERT(listen(p->listener, BACKLOG) == 0);
    socklen_t size = sizeof a;
    GB_ASSERT(getsockname(p->listener, (struct sockaddr *)&a, &size) == 0);
    p->port = ntohs(a.sin_port);
    GB_ASSERT(pthread_create(&p->thread, NULL, run_listener, p) == 0);
    return p;
}

uint16_t gb_peer_port(const struct gb_peer *p)
{
    return p->port;
}

int gb_peer_accepted(struct gb_peer *p)
{
    pthread_mutex_lock(&p->lock);
    int count = p->count;
    pthread_mutex_unlock(&p->lock);
    return count;
}

void gb_peer_stop(struct gb_peer *p)
{
    if (p == NULL) return;
    GB_ASSERT(write(p->stop_pipe[1], "x", 1) == 1);
    GB_ASSERT(pthread_join(p->thread, NULL) == 0);
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->count; i++) {
        if (p->conns[i].fd >= 0) (void)shutdown(p->conns[i].fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->count; i++) GB_ASSERT(pthread_join(p->conns[i].thread, NULL) == 0);
    close(p->listener);
    close(p->stop_pipe[0]);
    close(p->stop_pipe[1]);
    SSL_CTX_free(p->ctx);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
