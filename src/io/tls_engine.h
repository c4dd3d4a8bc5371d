#ifndef GB_IO_TLS_ENGINE_H
#define GB_IO_TLS_ENGINE_H

#include "io/tls_material.h"

/* One TLS client connection on memory buffers: bytes in, bytes out, no socket.
 * Owns:   its OpenSSL objects.
 * Thread: one at a time.
 * Errors: GB_CONNECTION_LOST with the check that failed and the host; GB_UNAVAILABLE (out of memory). */
struct gb_tls;
struct gb_err gb_tls_new(const struct gb_tls_cfg *cfg, const char *host, struct gb_tls **out);
void gb_tls_free(struct gb_tls *t); /* NULL ok */
/* Bytes from the peer. */
struct gb_err gb_tls_feed(struct gb_tls *t, struct gb_bytes raw);
/* Goes on with the handshake; what is to be sent is appended to `raw`. */
struct gb_err gb_tls_handshake(struct gb_tls *t, struct gb_str *raw, bool *established);
/* Next plain bytes, 0 when there are none at present; `*ended`: the peer said close_notify. */
struct gb_err gb_tls_read(struct gb_tls *t, char *buffer, size_t size, size_t *got, bool *ended);
struct gb_err gb_tls_write(struct gb_tls *t, struct gb_bytes plain, struct gb_str *raw);
/* Records that reading made necessary (key updates, alerts). */
void gb_tls_flush(struct gb_tls *t, struct gb_str *raw);
void gb_tls_goodbye(struct gb_tls *t, struct gb_str *raw); /* close_notify */

#endif
