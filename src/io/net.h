#ifndef GB_IO_NET_H
#define GB_IO_NET_H

#include "base/op.h"
#include "base/str.h"

/* Outgoing byte streams behind one interface: TCP, TLS, WebSocket, secure WebSocket (io/net_uv.c),
 * or the simulator's network. MQTT frames for ws/wss are handled inside: the user sees plain bytes.
 * Owns:   gb_stream is freed by the network after `closed` ran; events are borrowed from the user,
 *         who stays alive until then. gb_stream_cfg is borrowed for the call only.
 * Thread: loop thread only. No event runs from inside a call of the user.
 * Errors: dial fails only by `closed`: GB_CONNECTION_LOST, GB_TIMEOUT, GB_INVALID_CONFIG (TLS
 *         material), GB_UNAVAILABLE; text names host, port and cause. */

struct gb_tls_cfg {
    /* PEM texts win over files; cert and key come as a pair (checked by gb_tls_check). NULL =
     * absent. */
    const char *ca_pem, *cert_pem, *key_pem;
    const char *ca_file, *cert_file, *key_file;
    bool insecure_skip_verify;
};
struct gb_stream_cfg {
    const char *host; /* also SNI and the name to verify; IP literals verified as such */
    uint16_t port;
    bool tls;
    const struct gb_tls_cfg *tls_cfg; /* NULL = system trust */
    const char *ws_path;              /* NULL = no WebSocket; sub-protocol "mqtt" */
    uint64_t deadline_ns;             /* dial + TLS + WebSocket upgrade; 0 = none */
    size_t read_chunk_max;            /* 0 = 64 KiB */
};

struct gb_stream;
struct gb_stream_events {
    void (*connected)(void *arg);
    /* Bytes are valid during the call only. */
    void (*data)(void *arg, struct gb_bytes bytes);
    /* The kernel took everything written so far (only after `pending` was > 0). */
    void (*drained)(void *arg);
    /* Exactly once, last event. GB_OK = orderly end by the peer, GB_CANCELLED = gb_stream close by
     * the user. */
    void (*closed)(void *arg, struct gb_err reason);
};
struct gb_stream_ops {
    /* Sends the buffer's bytes, after `connected`; the buffer is empty afterwards. Tries to write
     * at once: only what the kernel does not take costs the buffer its memory, so a writer that
     * reuses one rarely allocates. How much may be pending is the user's to bound. */
    void (*write)(struct gb_stream *s, struct gb_str *take);
    size_t (*pending)(
        const struct gb_stream *s); /* bytes accepted by write, not yet by the kernel */
    /* Flushes what is pending until `deadline_ns` (0: cut at once), says the layers' goodbyes, then
     * closes; `closed` follows. No `data` or `drained` afterwards. Idempotent, but a later cut
     * cuts. */
    void (*close)(struct gb_stream *s, uint64_t deadline_ns);
};
struct gb_stream {
    const struct gb_stream_ops *ops;
};

struct gb_net;
struct gb_net_ops {
    /* Returns a stream at once, or an error when nothing was started (bad TLS material, out of
     * memory). */
    struct gb_err (*dial)(struct gb_net *n, const struct gb_stream_cfg *cfg,
                          const struct gb_stream_events *events, void *arg, struct gb_stream **out);
};
struct gb_net {
    const struct gb_net_ops *ops;
};

#endif
