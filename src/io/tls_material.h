#ifndef GB_IO_TLS_MATERIAL_H
#define GB_IO_TLS_MATERIAL_H

#include <openssl/ssl.h>

#include "io/net.h"

/* Client contexts from PEM texts and files (spec 04 D4): TLS >= 1.2, chain verified against the
 * given CA or the system's.
 * Owns:   the context belongs to the caller (SSL_CTX_free).
 * Thread: any; reads files, so not on the message path.
 * Errors: GB_INVALID_CONFIG naming the key, the file and what is wrong; GB_UNAVAILABLE (out of
 *         memory). */
struct gb_err gb_tls_context_new(const struct gb_tls_cfg *cfg, SSL_CTX **out);

#endif
