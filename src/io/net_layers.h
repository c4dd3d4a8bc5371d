#ifndef GB_IO_NET_LAYERS_H
#define GB_IO_NET_LAYERS_H

#include "io/net_uv.h"

/* How a stream is built (private to io/net_*.c): TCP at the bottom, TLS and WebSocket as layers on
 * it. A layer is a gb_stream to the one above and gets the events of the one below; each is freed
 * after it has passed on `closed`.
 * Owns:   see above; `destroy` is for a layer that was never joined to one below.
 * Thread: loop thread only.
 * Errors: GB_UNAVAILABLE (out of memory); TLS: GB_INVALID_CONFIG (material); WebSocket:
 *         GB_INVALID_CONFIG (path). */
enum { GB_NET_CHUNK_MAX = 65536 };

struct gb_net_uv {
    struct gb_net net;
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    size_t streams; /* TCP streams whose `closed` has not run */
    /* `data` events borrow their bytes for the call only, so all streams share these. */
    char received[GB_NET_CHUNK_MAX];
    char decrypted[GB_NET_CHUNK_MAX];
};

struct gb_net_layer {
    struct gb_stream stream;               /* the face to the user or the layer above */
    const struct gb_stream_events *events; /* of the user or the layer above */
    void *arg;
    const struct gb_stream_events *own_events; /* for the stream below; its `arg` is the layer */
    struct gb_stream *lower;
    void (*destroy)(struct gb_net_layer *layer);
};

struct gb_err gb_net_tcp_dial(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                              const struct gb_stream_events *events, void *arg,
                              struct gb_stream **out);
struct gb_err gb_net_tls_new(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                             struct gb_net_layer **out);
struct gb_err gb_net_ws_new(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                            struct gb_net_layer **out);

#endif
