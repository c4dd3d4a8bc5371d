#include "support/fake_sender.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

static void cancel(struct gb_op *op)
{
    struct fake_sender *f = op->provider;
    f->cancels++;
    if (f->ignore_cancel) return;
    f->held_count--;
    gb_op_finish(op, gb_err(GB_CANCELLED, "cancelled"));
}

static void send(struct gb_sender *s, struct gb_send *q, gb_done_fn *done, void *arg)
{
    struct fake_sender *f = GB_CONTAINER_OF(s, struct fake_sender, sender);
    GB_ASSERT(f->count < FAKE_SENDS_MAX);
    GB_ASSERT(q->op.deadline_ns > 0);
    struct fake_sent *note = &f->sent[f->count++];
    *note = (struct fake_sent){.at_ns = gb_reactor_now_ns(f->reactor)};
    (void)snprintf(note->id, sizeof note->id, "%.*s", (int)q->envelope->id.size,
                   (const char *)q->envelope->id.data);
    (void)snprintf(note->address, sizeof note->address, "%.*s", (int)q->address.size,
                   (const char *)q->address.data);
    if (f->observe != NULL) f->observe(f->observe_arg, q);
    struct fake_answer a = fake_script_take(&f->script);
    if (f->fail_id != NULL && f->fail_times > 0 && gb_bytes_equal_c(q->envelope->id, f->fail_id)) {
        f->fail_times--;
        a = f->fail_answer;
    }
    gb_op_start(&q->op, f->reactor, done, arg, cancel, f);
    note->accepted = a.action == FAKE_DO || a.action == FAKE_DO_THEN_FAIL;
    if (a.action == FAKE_HOLD) {
        gb_list_push(&f->held, &q->op.node);
        if (++f->held_count > f->held_max) f->held_max = f->held_count;
    } else {
        gb_op_finish(&q->op, a.action == FAKE_DO ? gb_ok() : a.err);
    }
}

static bool ready(const struct gb_sender *s)
{
    return !((const struct fake_sender *)(const void *)s)->not_ready;
}

static const struct gb_sender_ops ops = {send, ready, NULL};

void fake_sender_init(struct fake_sender *f, struct gb_reactor *r)
{
    *f = (struct fake_sender){
        .sender = {.ops = &ops, .id = "out", .batch_max = 1},
        .reactor = r,
        .sent = calloc(FAKE_SENDS_MAX, sizeof(struct fake_sent)),
    };
    GB_ASSERT(f->sent != NULL);
    gb_list_init(&f->held);
}

void fake_sender_deinit(struct fake_sender *f)
{
    free(f->sent);
    *f = (struct fake_sender){0};
}

void fake_sender_answer(struct fake_sender *f, enum gb_code code)
{
    struct gb_list_node *n = gb_list_pop(&f->held);
    GB_ASSERT(n != NULL);
    f->held_count--;
    gb_op_finish(GB_CONTAINER_OF(n, struct gb_op, node),
                 code == GB_OK ? gb_ok() : gb_err(code, "answered"));
}

size_t fake_sender_accepted(const struct fake_sender *f, const char *id)
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        n += f->sent[i].accepted && (id == NULL || strcmp(f->sent[i].id, id) == 0);
    return n;
}
