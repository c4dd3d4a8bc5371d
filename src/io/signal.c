#include <stdlib.h>
#include <uv.h>

#include "io/loop.h"

struct gb_signal {
    uv_signal_t uv;
    struct gb_loop *loop;
    void (*fn)(void *arg, int signum);
    void *arg;
};

static void on_signal(uv_signal_t *uv, int signum)
{
    struct gb_signal *s = uv->data;
    gb_loop_refresh_clock(s->loop);
    s->fn(s->arg, signum);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

struct gb_err gb_signal_new(struct gb_loop *l, int signum, void (*fn)(void *arg, int signum),
                            void *arg, struct gb_signal **out)
{
    struct gb_signal *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("a signal handler");
    *s = (struct gb_signal){.loop = l, .fn = fn, .arg = arg};
    int rc = uv_signal_init(gb_loop_uv(l), &s->uv);
    if (rc != 0) {
        free(s);
        return gb_err(GB_UNAVAILABLE, "signal %d: %s", signum, uv_strerror(rc));
    }
    s->uv.data = s;
    rc = uv_signal_start(&s->uv, on_signal, signum);
    if (rc != 0) {
        uv_close((uv_handle_t *)&s->uv, on_closed);
        return gb_err(GB_UNAVAILABLE, "signal %d: %s", signum, uv_strerror(rc));
    }
    *out = s;
    return gb_ok();
}

void gb_signal_free(struct gb_signal *s)
{
    if (s != NULL) uv_close((uv_handle_t *)&s->uv, on_closed);
}
