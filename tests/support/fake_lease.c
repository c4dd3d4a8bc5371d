#include "support/fake_lease.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/duration.h"

static struct fake_lease *self(struct gb_lease *l)
{
    return GB_CONTAINER_OF(l, struct fake_lease, lease);
}

static void set_owner(struct fake_lease *f, struct gb_bytes owner, int64_t ttl_ns)
{
    (void)snprintf(f->owner, sizeof f->owner, "%.*s", (int)owner.size, (const char *)owner.data);
    f->expires_ms = gb_reactor_wall_ms(f->reactor) + ttl_ns / GB_MS;
}

static bool holds(const struct fake_lease *f, const struct gb_token *t)
{
    return f->version == t->version && gb_bytes_equal_c(t->owner, f->owner);
}

static struct gb_err refused(const struct fake_lease *f)
{
    return f->owner[0] == '\0' ? gb_err(GB_NOT_FOUND, "released")
                               : gb_err(GB_STALE_FENCING_TOKEN, "held by %s", f->owner);
}

static struct gb_err do_acquire(struct fake_lease *f, struct gb_lease_acquire *q)
{
    if (f->owner[0] != '\0' && !gb_bytes_equal_c(q->owner, f->owner)) {
        struct gb_lease_row row = {.owner = gb_bytes_c(f->owner), .version = f->version};
        struct gb_err err = gb_lease_holder_set(&q->seen, &row, NULL, 0);
        return gb_failed(err) ? err : gb_err(GB_ALREADY_EXISTS, "held by %s", f->owner);
    }
    set_owner(f, q->owner, q->ttl_ns);
    q->version = ++f->version;
    return gb_ok();
}

static struct gb_err perform(struct fake_lease *f, enum fake_lease_kind kind, struct gb_op *op)
{
    if (kind == FAKE_ACQUIRE)
        return do_acquire(f, GB_CONTAINER_OF(op, struct gb_lease_acquire, op));
    if (kind == FAKE_RENEW) {
        struct gb_lease_renew *q = GB_CONTAINER_OF(op, struct gb_lease_renew, op);
        if (!holds(f, &q->token)) return refused(f);
        set_owner(f, q->token.owner, q->ttl_ns);
        return gb_ok();
    }
    if (kind == FAKE_LEASE_RELEASE) {
        struct gb_lease_release *q = GB_CONTAINER_OF(op, struct gb_lease_release, op);
        if (!holds(f, &q->token)) return refused(f);
        f->owner[0] = '\0';
        return gb_ok();
    }
    struct gb_lease_current *q = GB_CONTAINER_OF(op, struct gb_lease_current, op);
    if (f->owner[0] == '\0') return refused(f);
    struct gb_lease_row row = {
        .owner = gb_bytes_c(f->owner), .version = f->version, .expires_ms = f->expires_ms};
    return gb_lease_holder_set(&q->holder, &row, NULL, 0);
}

static void timed_out(struct gb_timer *t)
{
    struct fake_lease *f = GB_CONTAINER_OF(t, struct fake_lease, deadline);
    struct gb_op *op = f->held;
    f->held = NULL;
    gb_op_finish(op, gb_err(GB_TIMEOUT, "the store did not answer"));
}

static void cancelled(struct gb_op *op)
{
    struct fake_lease *f = op->provider;
    if (f->held != op || f->deaf) return;
    f->held = NULL;
    gb_timer_stop(&f->deadline);
    gb_op_finish(op, (struct gb_err){.code = GB_CANCELLED});
}

static void run(struct fake_lease *f, enum fake_lease_kind kind, struct gb_op *op, gb_done_fn *done,
                void *arg)
{
    struct fake_answer a = fake_script_take(&f->script[kind]);
    f->calls[kind]++;
    gb_op_start(op, f->reactor, done, arg, cancelled, f);
    if (a.action == FAKE_HOLD) {
        GB_ASSERT(f->held == NULL);
        f->held = op;
        f->held_kind = kind;
        gb_timer_start(&f->deadline, op->deadline_ns);
        return;
    }
    struct gb_err err = a.err;
    if (a.action != FAKE_FAIL) {
        struct gb_err mine = perform(f, kind, op);
        if (a.action == FAKE_DO || gb_failed(mine)) err = mine;
    }
    gb_op_finish(op, err);
}

static void acquire(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg)
{
    run(self(l), FAKE_ACQUIRE, &q->op, done, arg);
}

static void renew(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg)
{
    run(self(l), FAKE_RENEW, &q->op, done, arg);
}

static void release(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg)
{
    run(self(l), FAKE_LEASE_RELEASE, &q->op, done, arg);
}

static void current(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg)
{
    run(self(l), FAKE_CURRENT, &q->op, done, arg);
}

static const struct gb_lease_ops ops = {
    .acquire = acquire, .renew = renew, .release = release, .current = current};

void fake_lease_init(struct fake_lease *f, struct gb_reactor *reactor)
{
    *f = (struct fake_lease){.lease = {&ops}, .reactor = reactor};
    struct gb_err err = gb_timer_init(&f->deadline, reactor, timed_out);
    GB_ASSERT(!gb_failed(err));
}

void fake_lease_deinit(struct fake_lease *f)
{
    GB_ASSERT(f->held == NULL);
    gb_timer_deinit(&f->deadline);
}

void fake_lease_answer(struct fake_lease *f, enum gb_code code)
{
    struct gb_op *op = f->held;
    GB_ASSERT(op != NULL);
    f->held = NULL;
    gb_timer_stop(&f->deadline);
    gb_op_finish(op, code == GB_OK ? perform(f, f->held_kind, op) : gb_err(code, "scripted"));
}

void fake_lease_steal(struct fake_lease *f, const char *owner)
{
    set_owner(f, gb_bytes_c(owner), GB_MINUTE);
    f->version++;
}

/* --- session --- */

static struct fake_session *session_of(struct gb_session *s)
{
    return GB_CONTAINER_OF(s, struct fake_session, session);
}

static void start(struct gb_session *s)
{
    struct fake_session *f = session_of(s);
    GB_ASSERT(!f->running);
    f->running = true;
    f->starts++;
    f->health = (struct gb_session_health){.service_level = GB_LEVEL_NONE};
}

static void quiesce(struct gb_session *s)
{
    (void)s;
}

static void ended(struct fake_session *f)
{
    f->running = false;
    f->stopped_ns = gb_reactor_now_ns(f->reactor);
    f->health = (struct gb_session_health){.service_level = GB_LEVEL_NONE};
}

static void stop(struct gb_session *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct fake_session *f = session_of(s);
    GB_ASSERT(f->running);
    f->stops++;
    gb_op_start(op, f->reactor, done, arg, NULL, f);
    if (f->hang) {
        f->stopping = op;
        return;
    }
    ended(f);
    gb_op_finish(op, f->error == GB_OK ? gb_ok() : gb_err(f->error, "scripted"));
}

static void health(const struct gb_session *s, struct gb_session_health *out)
{
    *out = GB_CONTAINER_OF(s, struct fake_session, session)->health;
}

static const struct gb_session_ops session_ops = {
    .start = start, .quiesce = quiesce, .stop = stop, .health = health};

void fake_session_init(struct fake_session *f, struct gb_reactor *reactor)
{
    *f = (struct fake_session){.session = {&session_ops, "s"}, .reactor = reactor};
}

void fake_session_serve(struct fake_session *f, bool full)
{
    f->health.connected = full;
    f->health.ready = full;
    f->health.service_level = full ? GB_LEVEL_FULL : GB_LEVEL_NONE;
}

void fake_session_let_go(struct fake_session *f)
{
    struct gb_op *op = f->stopping;
    GB_ASSERT(op != NULL);
    f->stopping = NULL;
    ended(f);
    gb_op_finish(op, gb_ok());
}
