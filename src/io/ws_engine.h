#ifndef GB_IO_WS_ENGINE_H
#define GB_IO_WS_ENGINE_H

#include "base/reactor.h"
#include "base/str.h"

/* The client half of one WebSocket connection with sub-protocol "mqtt" (RFC 6455, spec 03 §3.1): bytes in, bytes out.
 * Owns:   its receive buffer, bounded by GB_WS_BUFFER_MAX.
 * Thread: loop thread (the reactor's generator makes keys and masks).
 * Errors: GB_CONNECTION_LOST for a refused upgrade or a broken peer, with the cause; GB_CANCELLED when the peer said
 *         close; GB_UNAVAILABLE (out of memory). */
enum { GB_WS_HEADER_MAX = 16384, GB_WS_BUFFER_MAX = 1024 * 1024 };

struct gb_ws;
struct gb_err gb_ws_new(const char *host, uint16_t port, const char *path, struct gb_reactor *r,
                        struct gb_ws **out);
void gb_ws_free(struct gb_ws *ws);                        /* NULL ok */
void gb_ws_request(struct gb_ws *ws, struct gb_str *out); /* the upgrade request */
/* Takes bytes of the peer. `*open` is true from the moment on that the upgrade was accepted. */
struct gb_err gb_ws_feed(struct gb_ws *ws, struct gb_bytes bytes, struct gb_str *answer,
                         bool *open);
/* Hands the payload that has arrived to `payload` (in pieces, as it came) and appends pongs and the close answer. */
struct gb_err gb_ws_deliver(struct gb_ws *ws, void (*payload)(void *arg, struct gb_bytes bytes),
                            void *arg, struct gb_reactor *r, struct gb_str *answer);
/* One masked binary frame. */
void gb_ws_frame(struct gb_ws *ws, struct gb_bytes payload, struct gb_reactor *r,
                 struct gb_str *out);

#endif
