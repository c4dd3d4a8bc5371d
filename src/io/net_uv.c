#include "io/net_uv.h"

#include <stdlib.h>

#include "io/net_layers.h"

enum { LAYERS_MAX = 2 };

/* From the user down: WebSocket, TLS. */
static struct gb_err make_layers(struct gb_net_uv *n, const struct gb_stream_cfg *cfg,
                                 struct gb_net_layer *layers[LAYERS_MAX], size_t *count)
{
    struct gb_err err = gb_ok();
    if (cfg->ws_path != NULL) {
        err = gb_net_ws_new(n, cfg, &layers[*count]);
        if (gb_failed(err)) return err;
        (*count)++;
    }
    if (cfg->tls) {
        err = gb_net_tls_new(n, cfg, &layers[*count]);
        if (gb_failed(err)) return err;
        (*count)++;
    }
    return err;
}

static struct gb_err dial(struct gb_net *net, const struct gb_stream_cfg *cfg,
                          const struct gb_stream_events *events, void *arg, struct gb_stream **out)
{
    struct gb_net_uv *n = GB_CONTAINER_OF(net, struct gb_net_uv, net);
    struct gb_net_layer *layers[LAYERS_MAX] = {NULL};
    size_t count = 0;
    struct gb_err err = make_layers(n, cfg, layers, &count);
    for (size_t i = 0; i < count; i++) {
        layers[i]->events = events;
        layers[i]->arg = arg;
        events = layers[i]->own_events;
        arg = layers[i];
    }
    struct gb_stream *stream = NULL;
    if (!gb_failed(err)) err = gb_net_tcp_dial(n, cfg, events, arg, &stream);
    if (gb_failed(err)) {
        for (size_t i = 0; i < count; i++) layers[i]->destroy(layers[i]);
        return err;
    }
    for (size_t i = count; i > 0; i--) {
        layers[i - 1]->lower = stream;
        stream = &layers[i - 1]->stream;
    }
    *out = stream;
    return err;
}

static const struct gb_net_ops ops = {.dial = dial};

struct gb_err gb_net_uv_new(struct gb_loop *l, struct gb_net **out)
{
    struct gb_net_uv *n = calloc(1, sizeof *n);
    if (n == NULL) return gb_err_no_memory("the network");
    n->net.ops = &ops;
    n->loop = l;
    n->reactor = gb_loop_reactor(l);
    *out = &n->net;
    return gb_ok();
}

void gb_net_uv_free(struct gb_net *net)
{
    if (net == NULL) return;
    struct gb_net_uv *n = GB_CONTAINER_OF(net, struct gb_net_uv, net);
    GB_ASSERT(n->streams == 0);
    free(n);
}
