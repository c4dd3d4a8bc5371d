#include "adapters/memory/memory_lease.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/map.h"

struct row {
    char *owner; /* "" = released */
    struct gb_lease_row value;
    uint64_t expires_ns; /* on the reactor's clock */
    struct gb_lease_holder holder;
};
struct memory_lease {
    struct gb_lease port;
    struct gb_reactor *reactor;
    struct gb_map rows; /* lease id -> struct row */
    struct gb_op *closing;
    struct gb_task close_task;
};

static struct memory_lease *self(struct gb_lease *l)
{
    return GB_CONTAINER_OF(l, struct memory_lease, port);
}

static bool begin(struct memory_lease *m, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, m->reactor, done, arg, NULL, m);
    if (m->closing == NULL) return true;
    gb_op_finish(op, gb_err(GB_UNAVAILABLE, "the memory lease store is closing"));
    return false;
}

static struct row *row_of(struct memory_lease *m, struct gb_bytes lease_id)
{
    return gb_map_get(&m->rows, lease_id);
}

static bool expired(const struct memory_lease *m, const struct row *r)
{
    return gb_reactor_now_ns(m->reactor) >= r->expires_ns;
}

static struct gb_err check_request(struct gb_bytes lease_id, struct gb_bytes owner, int64_t ttl_ns)
{
    if (lease_id.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease id is empty");
    if (owner.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease's owner is empty");
    if (ttl_ns <= 0) return gb_err(GB_INVALID_CONFIG, "a lease's ttl is not positive");
    return gb_ok();
}

/* The row's times and endpoints; nothing changes on a failure. */
static struct gb_err extend(struct memory_lease *m, struct row *r, int64_t ttl_ns,
                            const struct gb_lease_endpoint *endpoints, size_t count)
{
    struct gb_lease_row value = r->value;
    value.owner = gb_bytes_c(r->owner);
    value.renewed_ms = gb_reactor_wall_ms(m->reactor);
    value.expires_ms = gb_add_sat_i64(value.renewed_ms, gb_max_i64(ttl_ns / GB_MS, 1));
    struct gb_err err = gb_lease_holder_set(&r->holder, &value, endpoints, count);
    if (gb_failed(err)) return err;
    r->value = value;
    r->expires_ns = gb_reactor_now_ns(m->reactor) + (uint64_t)ttl_ns;
    return gb_ok();
}

static struct gb_err new_row(struct memory_lease *m, struct gb_bytes lease_id, struct row **out)
{
    struct row *r = calloc(1, sizeof *r);
    if (r != NULL) r->owner = gb_strdup("");
    if (r == NULL || r->owner == NULL || gb_failed(gb_map_put(&m->rows, lease_id, r))) {
        if (r != NULL) free(r->owner);
        free(r);
        return gb_err_no_memory("a lease");
    }
    *out = r;
    return gb_ok();
}

static struct gb_err take(struct memory_lease *m, struct row *r, struct gb_lease_acquire *q)
{
    bool foreign = r->owner[0] != '\0' && !gb_bytes_equal_c(q->owner, r->owner);
    if (foreign) {
        struct gb_err err =
            gb_lease_holder_set(&q->seen, &r->value, r->holder.endpoints, r->holder.endpoint_count);
        if (gb_failed(err)) return err;
    }
    if (foreign && !expired(m, r))
        return gb_err(GB_ALREADY_EXISTS, "lease is held by %.100s", r->owner);
    char *owner = gb_bytes_dup(q->owner);
    char *before = r->owner;
    if (owner == NULL) return gb_err_no_memory("a lease");
    r->owner = owner;
    struct gb_err err = extend(m, r, q->ttl_ns, q->endpoints, q->endpoint_count);
    if (gb_failed(err)) {
        r->owner = before;
        free(owner);
        return err;
    }
    free(before);
    r->value.acquired_ms = r->value.renewed_ms;
    r->value.version++;
    r->holder.version = r->value.version;
    r->holder.acquired_ms = r->value.acquired_ms;
    q->version = r->value.version;
    return gb_ok();
}

static void acquire(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg)
{
    struct memory_lease *m = self(l);
    if (!begin(m, &q->op, done, arg)) return;
    gb_lease_holder_deinit(&q->seen);
    struct gb_err err = check_request(q->lease_id, q->owner, q->ttl_ns);
    struct row *r = gb_failed(err) ? NULL : row_of(m, q->lease_id);
    if (!gb_failed(err) && r == NULL) err = new_row(m, q->lease_id, &r);
    gb_op_finish(&q->op, r == NULL ? err : take(m, r, q));
}

/* Spec 06 §6.2. */
static struct gb_err check_token(const struct row *r, const struct gb_token *token)
{
    if (r == NULL || r->owner[0] == '\0')
        return gb_err(GB_NOT_FOUND, "the lease is absent or released");
    if (r->value.version == token->version && gb_bytes_equal_c(token->owner, r->owner))
        return gb_ok();
    return gb_err(GB_STALE_FENCING_TOKEN, "the lease is at version %llu of %.100s",
                  (unsigned long long)r->value.version, r->owner);
}

static void renew(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg)
{
    struct memory_lease *m = self(l);
    if (!begin(m, &q->op, done, arg)) return;
    struct row *r = row_of(m, q->lease_id);
    struct gb_err err = check_request(q->lease_id, q->token.owner, q->ttl_ns);
    if (!gb_failed(err)) err = check_token(r, &q->token);
    if (!gb_failed(err) && expired(m, r))
        err = gb_err(GB_STALE_FENCING_TOKEN, "the lease has expired before it was renewed");
    if (!gb_failed(err)) err = extend(m, r, q->ttl_ns, q->endpoints, q->endpoint_count);
    gb_op_finish(&q->op, err);
}

static void release(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg)
{
    struct memory_lease *m = self(l);
    if (!begin(m, &q->op, done, arg)) return;
    struct row *r = row_of(m, q->lease_id);
    struct gb_err err = check_token(r, &q->token);
    if (!gb_failed(err)) {
        r->owner[0] = '\0';
        r->value.owner = gb_bytes_c(r->owner);
        r->value.expires_ms = 0;
        gb_lease_holder_deinit(&r->holder);
    }
    gb_op_finish(&q->op, err);
}

static void current(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg)
{
    struct memory_lease *m = self(l);
    if (!begin(m, &q->op, done, arg)) return;
    gb_lease_holder_deinit(&q->holder);
    const struct row *r = row_of(m, q->lease_id);
    struct gb_err err = r == NULL || r->owner[0] == '\0'
                            ? gb_err(GB_NOT_FOUND, "the lease is absent or released")
                            : gb_lease_holder_set(&q->holder, &r->value, r->holder.endpoints,
                                                  r->holder.endpoint_count);
    gb_op_finish(&q->op, err);
}

/* --- life --- */

static void close_now(struct gb_task *task)
{
    struct memory_lease *m = GB_CONTAINER_OF(task, struct memory_lease, close_task);
    struct gb_op *op = m->closing;
    size_t cursor = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&m->rows, &cursor, &key, &value)) {
        struct row *r = value;
        gb_lease_holder_deinit(&r->holder);
        free(r->owner);
        free(r);
    }
    gb_map_deinit(&m->rows);
    free(m);
    gb_op_finish(op, gb_ok());
}

static void close_store(struct gb_lease *l, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct memory_lease *m = self(l);
    gb_op_start(op, m->reactor, done, arg, NULL, m);
    m->closing = op;
    m->close_task.run = close_now;
    gb_reactor_defer(m->reactor, &m->close_task); /* behind the answers under way */
}

static const struct gb_lease_ops ops = {
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .current = current,
    .close = close_store,
};

struct gb_err gb_memory_lease_new(struct gb_reactor *reactor, struct gb_lease **out)
{
    struct memory_lease *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("a memory lease store");
    m->port.ops = &ops;
    m->reactor = reactor;
    *out = &m->port;
    return gb_ok();
}
