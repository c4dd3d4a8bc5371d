#ifndef GB_IO_NET_UV_H
#define GB_IO_NET_UV_H

#include "io/loop.h"
#include "io/net.h"

/* Real network: TCP on libuv, TLS on OpenSSL (>= 1.2, chain and host verified), WebSocket (RFC
 * 6455, binary frames).
 * Owns:   gb_net_uv_free when every stream is closed.
 * Thread: loop thread only.
 * Errors: gb_net_uv_new: GB_UNAVAILABLE. gb_tls_check: GB_INVALID_CONFIG naming the key
 *         (`tls.cert_file` ...), the file and what is wrong (missing, not PEM, key does not match
 *         the certificate, half a pair). */
struct gb_err gb_net_uv_new(struct gb_loop *l, struct gb_net **out);
void gb_net_uv_free(struct gb_net *n);
struct gb_err gb_tls_check(const struct gb_tls_cfg *cfg);

#endif
