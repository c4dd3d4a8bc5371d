#include "support/fake_receiver.h"

#include <stdlib.h>

#include "base/assert.h"

static void run_settled(struct gb_task *t)
{
    struct fake_delivery *d = GB_CONTAINER_OF(t, struct fake_delivery, task);
    gb_settled_fn *settled = d->settled;
    d->settled = NULL;
    if (d->result.code == GB_OK) {
        gb_envelope_unref(d->delivery.envelope);
        d->delivery.envelope = NULL;
    }
    if (settled != NULL) settled(d->arg, d->result);
}

static void note(struct fake_delivery *d, enum fake_fate fate, gb_settled_fn *settled, void *arg)
{
    struct fake_receiver *f = d->receiver;
    bool taken_back = d->fate == FAKE_RETRIED && d->result.code == GB_NOT_SUPPORTED;
    GB_ASSERT(d->fate == FAKE_HELD || taken_back);
    d->fate = fate;
    d->calls++;
    d->settled = settled;
    d->arg = arg;
    d->result = f->settle_result;
    d->task.run = run_settled;
    if (!f->hold_settled) gb_reactor_defer(f->reactor, &d->task);
}

static void ack(struct gb_delivery *g, gb_settled_fn *settled, void *arg)
{
    note(GB_CONTAINER_OF(g, struct fake_delivery, delivery), FAKE_ACKED, settled, arg);
}

static void retry(struct gb_delivery *g, int64_t delay_ns, gb_settled_fn *settled, void *arg)
{
    struct fake_delivery *d = GB_CONTAINER_OF(g, struct fake_delivery, delivery);
    d->retry_delay_ns = delay_ns;
    note(d, FAKE_RETRIED, settled, arg);
}

static void abandon(struct gb_delivery *g)
{
    struct fake_delivery *d = GB_CONTAINER_OF(g, struct fake_delivery, delivery);
    GB_ASSERT(d->fate == FAKE_HELD);
    d->fate = FAKE_ABANDONED;
    d->calls++;
}

static const struct gb_delivery_ops delivery_ops = {ack, retry, abandon};

static void start(struct gb_receiver *r, struct gb_sink sink)
{
    struct fake_receiver *f = GB_CONTAINER_OF(r, struct fake_receiver, receiver);
    f->sink = sink;
    f->starts++;
}

static void resume(struct gb_receiver *r)
{
    GB_CONTAINER_OF(r, struct fake_receiver, receiver)->resumes++;
}

static void stop(struct gb_receiver *r)
{
    GB_CONTAINER_OF(r, struct fake_receiver, receiver)->stops++;
}

static const struct gb_receiver_ops receiver_ops = {start, resume, stop};

void fake_receiver_init(struct fake_receiver *f, struct gb_reactor *r)
{
    *f = (struct fake_receiver){
        .receiver = {.ops = &receiver_ops, .id = "in", .durable = true},
        .reactor = r,
    };
}

void fake_receiver_deinit(struct fake_receiver *f)
{
    for (size_t i = 0; i < f->count; i++) {
        gb_task_cancel(&f->deliveries[i]->task);
        gb_envelope_unref(f->deliveries[i]->delivery.envelope);
        free(f->deliveries[i]);
    }
    *f = (struct fake_receiver){0};
}

struct fake_delivery *fake_receiver_make(struct fake_receiver *f, const char *id)
{
    GB_ASSERT(f->count < sizeof f->deliveries / sizeof f->deliveries[0]);
    struct fake_delivery *d = calloc(1, sizeof *d);
    GB_ASSERT(d != NULL);
    f->deliveries[f->count++] = d;
    d->receiver = f;
    d->delivery.ops = &delivery_ops;
    d->delivery.can_retry = true;
    struct gb_err err = gb_envelope_new(256, &d->delivery.envelope);
    if (!gb_failed(err)) err = gb_envelope_set_id(d->delivery.envelope, gb_bytes_c(id));
    GB_ASSERT(!gb_failed(err));
    return d;
}

void fake_receiver_emit(struct fake_delivery *d)
{
    struct fake_receiver *f = d->receiver;
    f->last_emit = f->sink.emit(f->sink.arg, &d->delivery);
    if (f->last_emit != GB_EMIT_TAKEN) d->fate = FAKE_NOT_TAKEN;
}

struct fake_delivery *fake_receiver_push(struct fake_receiver *f, const char *id)
{
    struct fake_delivery *d = fake_receiver_make(f, id);
    fake_receiver_emit(d);
    return d;
}

void fake_receiver_settle(struct fake_delivery *d)
{
    gb_reactor_defer(d->receiver->reactor, &d->task);
}

size_t fake_receiver_fates(const struct fake_receiver *f, enum fake_fate fate)
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) n += f->deliveries[i]->fate == fate;
    return n;
}
