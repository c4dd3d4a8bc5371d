#include "support/fake_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static struct gb_fake_stream *of(const struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct gb_fake_stream, base);
}

static void end_now(struct gb_task *t)
{
    struct gb_fake_stream *s = GB_CONTAINER_OF(t, struct gb_fake_stream, end_task);
    s->ended = true;
    s->events->closed(s->arg, s->reason);
}

static void end_later(struct gb_fake_stream *s, struct gb_err reason)
{
    if (s->closing) return;
    s->closing = true;
    s->reason = reason;
    gb_reactor_defer(s->net->reactor, &s->end_task);
}

static void fake_write(struct gb_stream *base, struct gb_str *take)
{
    struct gb_fake_stream *s = of(base);
    GB_ASSERT(s->connected && !s->closing);
    gb_str_append(&s->written, gb_str_bytes(take));
    gb_str_clear(take);
    s->writes++;
}

static size_t fake_pending(const struct gb_stream *base)
{
    (void)base;
    return 0;
}

static void fake_close(struct gb_stream *base, uint64_t deadline_ns)
{
    struct gb_fake_stream *s = of(base);
    s->flush_deadline_ns = deadline_ns;
    end_later(s, (struct gb_err){.code = GB_CANCELLED});
}

static const struct gb_stream_ops stream_ops = {
    .write = fake_write, .pending = fake_pending, .close = fake_close};

static struct gb_err fake_dial(struct gb_net *base, const struct gb_stream_cfg *cfg,
                               const struct gb_stream_events *events, void *arg,
                               struct gb_stream **out)
{
    struct gb_fake_net *n = GB_CONTAINER_OF(base, struct gb_fake_net, base);
    if (gb_failed(n->refuse)) return n->refuse;
    GB_ASSERT(n->dialled < GB_FAKE_STREAMS_MAX);
    struct gb_fake_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("fake stream");
    s->base.ops = &stream_ops;
    s->net = n;
    s->events = events;
    s->arg = arg;
    s->port = cfg->port;
    s->tls = cfg->tls;
    s->end_task.run = end_now;
    (void)snprintf(s->host, sizeof s->host, "%s", cfg->host);
    n->streams[n->dialled++] = s;
    *out = &s->base;
    return gb_ok();
}

static const struct gb_net_ops net_ops = {.dial = fake_dial};

void gb_fake_net_init(struct gb_fake_net *n, struct gb_reactor *r)
{
    memset(n, 0, sizeof *n);
    n->base.ops = &net_ops;
    n->reactor = r;
}

void gb_fake_net_deinit(struct gb_fake_net *n)
{
    for (size_t i = 0; i < n->dialled; i++) {
        GB_ASSERT(n->streams[i]->ended);
        gb_str_deinit(&n->streams[i]->written);
        free(n->streams[i]);
    }
}

struct gb_fake_stream *gb_fake_net_last(const struct gb_fake_net *n)
{
    return n->dialled == 0 ? NULL : n->streams[n->dialled - 1];
}

void gb_fake_stream_connect(struct gb_fake_stream *s)
{
    GB_ASSERT(!s->connected && !s->closing);
    s->connected = true;
    s->events->connected(s->arg);
}

void gb_fake_stream_feed(struct gb_fake_stream *s, struct gb_bytes bytes)
{
    if (!s->closing) s->events->data(s->arg, bytes);
}

void gb_fake_stream_cut(struct gb_fake_stream *s, struct gb_err reason)
{
    end_later(s, reason);
}
