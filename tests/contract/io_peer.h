#ifndef GB_TESTS_CONTRACT_IO_PEER_H
#define GB_TESTS_CONTRACT_IO_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The other side of socket tests: a listener on 127.0.0.1 whose connections are each handled by a
 * blocking function on a thread of its own, over TCP or TLS; and certificates made on the spot.
 * Owns:   gb_peer_stop ends all connections and joins their threads; texts of a gb_test_cert are
 *         freed by gb_test_cert_deinit.
 * Thread: handlers run on their own thread; all else on the test's.
 * Errors: set-up failures end the test; reads and writes answer what the connection did. */

struct gb_peer;
struct gb_peer_conn;
typedef void gb_peer_fn(struct gb_peer_conn *c, void *arg);

struct gb_test_cert {
    char *cert_pem;
    char *key_pem;
};
struct gb_test_cert_cfg {
    const char *name;                  /* subject and DNS name */
    const char *ip;                    /* as well, or NULL */
    const struct gb_test_cert *issuer; /* NULL = self-signed authority */
    long valid_from_s, valid_to_s;     /* relative to now */
};
void gb_test_cert_make(const struct gb_test_cert_cfg *cfg, struct gb_test_cert *out);
void gb_test_cert_deinit(struct gb_test_cert *cert);

struct gb_peer_cfg {
    gb_peer_fn *handle;
    void *arg;
    const struct gb_test_cert *tls;       /* NULL = plain TCP */
    const struct gb_test_cert *client_ca; /* asks for a client certificate of this authority */
    int receive_buffer;                   /* 0 = the system's; small ones fill early */
};
struct gb_peer *gb_peer_start(const struct gb_peer_cfg *cfg);
uint16_t gb_peer_port(const struct gb_peer *p);
int gb_peer_accepted(struct gb_peer *p); /* connections so far */
void gb_peer_stop(struct gb_peer *p);

/* At least one byte, 0 = the end or an error. */
size_t gb_peer_read(struct gb_peer_conn *c, void *data, size_t size_max);
bool gb_peer_read_all(struct gb_peer_conn *c, void *data, size_t size);
bool gb_peer_write(struct gb_peer_conn *c, const void *data, size_t size);
/* Waits for the time or the end of the test; false = the end. */
bool gb_peer_wait(struct gb_peer_conn *c, int ms);
void gb_peer_reset(struct gb_peer_conn *c);        /* RST */
void gb_peer_close_notify(struct gb_peer_conn *c); /* TLS's orderly end; nothing for TCP */
bool gb_peer_got_close_notify(const struct gb_peer_conn *c); /* always for TCP */

#endif
