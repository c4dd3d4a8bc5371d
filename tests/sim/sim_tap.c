#include "sim/sim_tap.h"

#include <stdlib.h>

#include "base/assert.h"

struct proxy {
    struct gb_delivery delivery;
    struct sim_tap *tap;
    struct gb_delivery *inner; /* NULL: acknowledged already (planted) */
    bool settled;
    gb_settled_fn *done;
    void *arg;
    struct gb_task task;
};

static struct proxy *proxy_of(struct gb_delivery *d)
{
    return GB_CONTAINER_OF(d, struct proxy, delivery);
}

static void finish(struct proxy *p, struct gb_err result)
{
    gb_settled_fn *done = p->done;
    void *arg = p->arg;
    if (p->inner == NULL) gb_envelope_unref(p->delivery.envelope);
    free(p);
    if (done != NULL) done(arg, result);
}

static void inner_settled(void *arg, struct gb_err result)
{
    finish(arg, result);
}

static void settled_later(struct gb_task *t)
{
    finish(GB_CONTAINER_OF(t, struct proxy, task), gb_ok());
}

/* False: nothing is left to settle at the source. */
static bool settle(struct proxy *p, gb_settled_fn *done, void *arg)
{
    if (p->settled) sim_violate(p->tap->world, "a delivery was settled twice");
    p->settled = true;
    p->done = done;
    p->arg = arg;
    if (p->inner != NULL) return true;
    p->task.run = settled_later;
    gb_reactor_defer(p->tap->reactor, &p->task);
    return false;
}

static void ack(struct gb_delivery *d, gb_settled_fn *done, void *arg)
{
    struct proxy *p = proxy_of(d);
    p->tap->acks++;
    if (settle(p, done, arg)) p->inner->ops->ack(p->inner, inner_settled, p);
}

static void retry(struct gb_delivery *d, int64_t delay_ns, gb_settled_fn *done, void *arg)
{
    struct proxy *p = proxy_of(d);
    p->tap->retries++;
    sim_trace(p->tap->world, "handed back", p->tap->retries, 0);
    if (settle(p, done, arg)) p->inner->ops->retry(p->inner, delay_ns, inner_settled, p);
}

static void abandon(struct gb_delivery *d)
{
    struct proxy *p = proxy_of(d);
    p->tap->abandons++;
    if (p->settled) sim_violate(p->tap->world, "a delivery was settled twice");
    if (p->inner != NULL) {
        p->inner->ops->abandon(p->inner);
    } else {
        gb_envelope_unref(p->delivery.envelope);
    }
    free(p);
}

static const struct gb_delivery_ops proxy_ops = {ack, retry, abandon};

static enum gb_emit emit(void *arg, struct gb_delivery *inner)
{
    struct sim_tap *t = arg;
    struct proxy *p = calloc(1, sizeof *p);
    GB_ASSERT(p != NULL);
    p->delivery = *inner;
    p->delivery.ops = &proxy_ops;
    p->tap = t;
    p->inner = inner;
    bool acks_first = t->world->fault == SIM_FAULT_ACK_FIRST;
    if (acks_first) { /* the route works on a copy, the source is told at once */
        GB_ASSERT(!gb_failed(gb_envelope_copy(inner->envelope, &p->delivery.envelope)));
        p->inner = NULL;
    }
    enum gb_emit e = t->sink.emit(t->sink.arg, &p->delivery);
    if (e == GB_EMIT_TAKEN) {
        t->taken++;
        if (acks_first) inner->ops->ack(inner, NULL, NULL);
        return e;
    }
    if (acks_first) gb_envelope_unref(p->delivery.envelope);
    free(p);
    return e;
}

static void start(struct gb_receiver *r, struct gb_sink sink)
{
    struct sim_tap *t = GB_CONTAINER_OF(r, struct sim_tap, receiver);
    t->sink = sink;
    t->inner->ops->start(t->inner, (struct gb_sink){.emit = emit, .arg = t});
}

static void resume(struct gb_receiver *r)
{
    struct sim_tap *t = GB_CONTAINER_OF(r, struct sim_tap, receiver);
    t->inner->ops->resume(t->inner);
}

static void stop(struct gb_receiver *r)
{
    struct sim_tap *t = GB_CONTAINER_OF(r, struct sim_tap, receiver);
    t->inner->ops->stop(t->inner);
}

void sim_tap_init(struct sim_tap *t, struct sim_world *w, struct gb_reactor *r,
                  struct gb_receiver *inner)
{
    static const struct gb_receiver_ops ops = {start, resume, stop};
    *t = (struct sim_tap){
        .receiver = {.ops = &ops, .id = inner->id, .durable = inner->durable},
        .inner = inner,
        .world = w,
        .reactor = r,
    };
}
