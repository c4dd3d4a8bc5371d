#include "adapters/dynamodb/dynamodb_lease.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/dynamodb/dynamodb_lease_row.h"
#include "adapters/dynamodb/dynamodb_task.h"
#include "base/duration.h"
#include "base/map.h"
#include "domain/takeover.h"

enum { BASELINES_MAX = 4096 }; /* lease ids; a document has far fewer sessions */

struct store {
    struct gb_lease port;
    struct gb_dynamodb_desk desk;
    struct gb_dynamodb_lease_cfg cfg;
    struct gb_map baselines; /* lease id -> struct gb_takeover */
};
struct acquiring {
    struct gb_dynamodb_task task;
    struct gb_lease_acquire *q;
    struct gb_takeover *seen;
    struct gb_takeover_verdict verdict;
    struct gb_dlease_row row; /* as read, with what was written to it since */
    struct gb_str texts;      /* behind the row */
    int64_t now_ms, expires_ms;
};
struct holding { /* renew, release */
    struct gb_dynamodb_task task;
    struct gb_bytes lease_id;
    const struct gb_token *token;
    bool release;
    bool unsure; /* the write may have been applied although its condition failed at last */
};
struct looking {
    struct gb_dynamodb_task task;
    struct gb_lease_current *q;
};

static const struct gb_dynamodb_name names[] = {
    {"#owner", "owner"},
    {"#version", "version"},
    {"#ttl", "ttl"},
    {"#fp", "takeover_observation_fingerprint"},
    {"#ns", "takeover_observation_elapsed_ns"},
    {"#gen", "takeover_observation_generation"},
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

static struct store *self(struct gb_lease *l)
{
    return GB_CONTAINER_OF(l, struct store, port);
}

static struct store *store_of(const struct gb_dynamodb_task *t)
{
    return GB_CONTAINER_OF(t->desk, struct store, desk);
}

static int64_t wall_ms(const struct store *s)
{
    return s->cfg.wall_ms != NULL ? s->cfg.wall_ms(s->cfg.clock_arg)
                                  : gb_reactor_wall_ms(s->desk.reactor);
}

static uint64_t mono_ns(const struct store *s)
{
    return s->cfg.mono_ns != NULL ? s->cfg.mono_ns(s->cfg.clock_arg)
                                  : gb_reactor_now_ns(s->desk.reactor);
}

static struct gb_err check_request(struct gb_bytes lease_id, struct gb_bytes owner, int64_t ttl_ns)
{
    if (lease_id.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease id is empty");
    if (owner.size == 0) return gb_err(GB_INVALID_CONFIG, "a lease's owner is empty");
    if (ttl_ns <= 0) return gb_err(GB_INVALID_CONFIG, "a lease's ttl is not positive");
    return gb_ok();
}

/* --- requests --- */

static void begin_read(struct gb_dynamodb_task *t, struct gb_bytes lease_id)
{
    gb_dynamodb_begin(&t->call, GB_DYNAMODB_GET_ITEM, t->desk->table);
    gb_dynamodb_object(&t->call, GB_DYNAMODB_KEY);
    gb_dlease_write_key(&t->call.w, lease_id);
    gb_dynamodb_object_end(&t->call);
    gb_dynamodb_flag(&t->call, GB_DYNAMODB_CONSISTENT_READ);
}

static void begin_update(struct gb_dynamodb_task *t, struct gb_bytes lease_id)
{
    gb_dynamodb_begin(&t->call, GB_DYNAMODB_UPDATE_ITEM, t->desk->table);
    gb_dynamodb_object(&t->call, GB_DYNAMODB_KEY);
    gb_dlease_write_key(&t->call.w, lease_id);
    gb_dynamodb_object_end(&t->call);
    gb_dynamodb_names(&t->call, names, NAME_COUNT);
}

static struct gb_err read_row(const struct gb_dynamodb_task *t, struct gb_bytes lease_id,
                              struct gb_str *texts, struct gb_dlease_row *out)
{
    const struct gb_dynamodb_source from = {t->desk->table, "GetItem"};
    return gb_dlease_row_read(&from, t->call.answer.item, lease_id, texts, out);
}

/* --- acquire (spec 06 §6.1) --- */

static struct gb_takeover *baseline_of(struct store *s, struct gb_bytes lease_id)
{
    struct gb_takeover *t = gb_map_get(&s->baselines, lease_id);
    if (t != NULL || s->baselines.count == BASELINES_MAX) return t;
    t = calloc(1, sizeof *t);
    if (t != NULL && gb_failed(gb_map_put(&s->baselines, lease_id, t))) {
        free(t);
        t = NULL;
    }
    return t;
}

static void acquire_end(struct acquiring *a, struct gb_err result)
{
    bool contention = result.code == GB_ALREADY_EXISTS;
    if (!contention) gb_takeover_forget(a->seen);
    gb_dynamodb_task_end(&a->task, result);
}

/* Lost to another writer: nothing of this interval is counted. */
static void acquire_lost(struct acquiring *a)
{
    gb_takeover_forget(a->seen);
    acquire_end(a, gb_err(GB_ALREADY_EXISTS, "lease %.*s: another instance was faster",
                          (int)a->q->lease_id.size, (const char *)a->q->lease_id.data));
}

static void acquire_won(struct acquiring *a, uint64_t version)
{
    a->q->version = version;
    acquire_end(a, gb_ok());
}

/* What stands there after a condition failed is this very write: an attempt whose answer got lost
 * had applied it. */
static bool is_own_write(struct acquiring *a, uint64_t version)
{
    const struct gb_dynamodb_call *call = &a->task.call;
    struct gb_dlease_row row;
    if (call->outcome != GB_DYNAMODB_OUTCOME_UNKNOWN || call->answer.item.size == 0) return false;
    if (gb_failed(read_row(&a->task, a->q->lease_id, &a->task.scratch, &row))) return false;
    return row.row.version == version && gb_bytes_equal(row.row.owner, a->q->owner) &&
           row.row.renewed_ms == a->now_ms;
}

static void acquired(struct acquiring *a, uint64_t version)
{
    if (a->task.call.error == GB_DYNAMODB_CONDITION_FAILED) {
        if (is_own_write(a, version)) {
            acquire_won(a, version);
        } else {
            acquire_lost(a);
        }
    } else if (gb_failed(a->task.call.op.result)) {
        acquire_end(a, a->task.call.op.result);
    } else {
        acquire_won(a, version);
    }
}

static void set_times(struct acquiring *a)
{
    a->now_ms = wall_ms(store_of(&a->task));
    a->expires_ms = gb_add_sat_i64(a->now_ms, gb_max_i64(a->q->ttl_ns / GB_MS, 1));
}

static void created(struct gb_dynamodb_task *t)
{
    acquired(GB_CONTAINER_OF(t, struct acquiring, task), 1);
}

static void create(struct acquiring *a)
{
    struct gb_dynamodb_call *call = &a->task.call;
    set_times(a);
    gb_dynamodb_begin(call, GB_DYNAMODB_PUT_ITEM, a->task.desk->table);
    call->repeatable = true;
    gb_dynamodb_object(call, GB_DYNAMODB_ITEM);
    gb_dlease_write_key(&call->w, a->q->lease_id);
    gb_dynamodb_w_s(&call->w, "owner", a->q->owner);
    gb_dynamodb_w_u64(&call->w, "version", 1);
    gb_dynamodb_w_i64(&call->w, "acquired_at", a->now_ms);
    gb_dynamodb_w_i64(&call->w, "renewed_at", a->now_ms);
    gb_dynamodb_w_i64(&call->w, "expires_at", a->expires_ms);
    gb_dlease_write_endpoints(&call->w, "endpoints", a->q->endpoints, a->q->endpoint_count);
    gb_dynamodb_object_end(call);
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "attribute_not_exists(PK)");
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dynamodb_task_send(&a->task, created);
}

#define AS_READ                                                                                    \
    "#owner = :was_owner AND #version = :was_version AND renewed_at = :was_renewed AND "           \
    "expires_at = :was_expires AND "
#define WITHOUT_EVIDENCE                                                                           \
    "attribute_not_exists(#fp) AND attribute_not_exists(#ns) AND attribute_not_exists(#gen)"
#define WITH_EVIDENCE "#fp = :was_fp AND #ns = :was_ns AND #gen = :was_gen"

/* The row is still exactly what was read: key, owner, version, both times and the evidence. */
static void demand_as_read(struct acquiring *a)
{
    bool evidence = a->row.row.evidence_parts > 0;
    gb_dynamodb_text(&a->task.call, GB_DYNAMODB_CONDITION,
                     evidence ? AS_READ WITH_EVIDENCE : AS_READ WITHOUT_EVIDENCE);
}

/* The values of that. */
static void write_as_read(struct acquiring *a)
{
    struct gb_json_writer *w = &a->task.call.w;
    const struct gb_lease_row *r = &a->row.row;
    gb_dynamodb_w_s(w, ":was_owner", r->owner);
    gb_dynamodb_w_u64(w, ":was_version", r->version);
    gb_dynamodb_w_i64(w, ":was_renewed", r->renewed_ms);
    gb_dynamodb_w_i64(w, ":was_expires", r->expires_ms);
    if (r->evidence_parts == 0) return;
    gb_dynamodb_w_s(w, ":was_fp", r->evidence.fingerprint);
    gb_dynamodb_w_i64(w, ":was_ns", r->evidence.elapsed_ns);
    gb_dynamodb_w_u64(w, ":was_gen", r->evidence.generation);
}

static void taken_over(struct gb_dynamodb_task *t)
{
    struct acquiring *a = GB_CONTAINER_OF(t, struct acquiring, task);
    acquired(a, a->row.row.version + 1);
}

static void take_over(struct acquiring *a)
{
    struct gb_dynamodb_call *call = &a->task.call;
    if (a->row.row.version >= GB_LEASE_VERSION_MAX) {
        acquire_end(a, gb_err(GB_INVALID_CONFIG, "lease %.*s: its version can't rise any more",
                              (int)a->q->lease_id.size, (const char *)a->q->lease_id.data));
        return;
    }
    set_times(a);
    begin_update(&a->task, a->q->lease_id);
    call->repeatable = true;
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     a->q->endpoint_count > 0
                         ? "SET #owner = :owner, #version = :version, acquired_at = :now, "
                           "renewed_at = :now, expires_at = :expires, endpoints = :endpoints "
                           "REMOVE #fp, #ns, #gen, #ttl"
                         : "SET #owner = :owner, #version = :version, acquired_at = :now, "
                           "renewed_at = :now, expires_at = :expires "
                           "REMOVE endpoints, #fp, #ns, #gen, #ttl");
    demand_as_read(a);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":owner", a->q->owner);
    gb_dynamodb_w_u64(&call->w, ":version", a->row.row.version + 1);
    gb_dynamodb_w_i64(&call->w, ":now", a->now_ms);
    gb_dynamodb_w_i64(&call->w, ":expires", a->expires_ms);
    gb_dlease_write_endpoints(&call->w, ":endpoints", a->q->endpoints, a->q->endpoint_count);
    write_as_read(a);
    gb_dynamodb_object_end(call);
    gb_dynamodb_flag(call, GB_DYNAMODB_RETURN_ON_FAILURE);
    gb_dynamodb_task_send(&a->task, taken_over);
}

static void acquire_held(struct acquiring *a)
{
    acquire_end(a,
                gb_err(GB_ALREADY_EXISTS, "lease %.*s is held by %.100s", (int)a->q->lease_id.size,
                       (const char *)a->q->lease_id.data, a->q->seen.owner));
}

static void observed(struct gb_dynamodb_task *t)
{
    struct acquiring *a = GB_CONTAINER_OF(t, struct acquiring, task);
    if (t->call.error == GB_DYNAMODB_CONDITION_FAILED) {
        acquire_lost(a);
    } else if (gb_failed(t->call.op.result)) {
        acquire_end(a, t->call.op.result);
    } else if (a->verdict.then_seize) { /* what was written is part of the condition now */
        struct gb_lease_row *r = &a->row.row;
        r->owner = gb_bytes_c(a->q->seen.owner); /* that of the row went with its answer */
        r->evidence_parts = 3;
        r->evidence = (struct gb_lease_evidence){gb_bytes_c(a->verdict.fingerprint),
                                                 a->verdict.elapsed_ns, a->verdict.generation};
        take_over(a);
    } else {
        gb_takeover_observed(a->seen, &a->verdict, mono_ns(store_of(t)));
        acquire_held(a);
    }
}

static void observe(struct acquiring *a)
{
    struct gb_dynamodb_call *call = &a->task.call;
    begin_update(&a->task, a->q->lease_id);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE, "SET #fp = :fp, #ns = :ns, #gen = :gen REMOVE #ttl");
    demand_as_read(a);
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":fp", a->verdict.fingerprint);
    gb_dynamodb_w_i64(&call->w, ":ns", a->verdict.elapsed_ns);
    gb_dynamodb_w_u64(&call->w, ":gen", a->verdict.generation);
    write_as_read(a);
    gb_dynamodb_object_end(call);
    gb_dynamodb_task_send(&a->task, observed);
}

/* Who holds it, as a copy; empty when there is no memory for one. */
static struct gb_err show(struct gb_lease_holder *h, const struct gb_dlease_row *r,
                          int64_t observed_ns, int64_t required_ns)
{
    struct gb_err err = gb_lease_holder_set(h, &r->row, r->endpoints, r->endpoint_count);
    if (gb_failed(err)) return err;
    h->observed_ns = observed_ns;
    h->required_ns = required_ns;
    return err;
}

static void judge(struct acquiring *a, uint64_t answered_ns)
{
    struct gb_err err = read_row(&a->task, a->q->lease_id, &a->texts, &a->row);
    if (!gb_failed(err)) {
        err = gb_takeover_judge(a->seen, &a->row.row, a->q->owner, answered_ns, &a->verdict);
    }
    bool foreign = !gb_failed(err) && a->verdict.required_ns > 0;
    if (foreign) err = show(&a->q->seen, &a->row, a->verdict.elapsed_ns, a->verdict.required_ns);
    if (gb_failed(err)) {
        acquire_end(a, err);
    } else if (a->verdict.step == GB_TAKEOVER_WAIT) {
        acquire_held(a);
    } else if (a->verdict.step == GB_TAKEOVER_OBSERVE) {
        observe(a);
    } else {
        take_over(a);
    }
}

/* The row is asked for first: a put that fails because it is there would cost a write unit for
 * each poll of each standby (docs/decisions/0630). */
static void looked(struct gb_dynamodb_task *t)
{
    struct acquiring *a = GB_CONTAINER_OF(t, struct acquiring, task);
    if (gb_failed(t->call.op.result)) {
        acquire_end(a, t->call.op.result);
    } else if (t->call.answer.item.size == 0) {
        create(a);
    } else {
        judge(a, mono_ns(store_of(t)));
    }
}

static void acquire_deinit(struct gb_dynamodb_task *t)
{
    gb_str_deinit(&GB_CONTAINER_OF(t, struct acquiring, task)->texts);
}

static void acquire(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->seen);
    struct acquiring *a = gb_dynamodb_task_new(&self(l)->desk, sizeof *a, &q->op, done, arg);
    if (a == NULL) return;
    a->task.deinit = acquire_deinit;
    a->q = q;
    struct gb_err err = check_request(q->lease_id, q->owner, q->ttl_ns);
    if (!gb_failed(err)) {
        a->seen = baseline_of(self(l), q->lease_id);
        if (a->seen == NULL) err = gb_err_no_memory("a lease's observation");
    }
    if (gb_failed(err)) {
        gb_dynamodb_task_end(&a->task, err);
        return;
    }
    begin_read(&a->task, q->lease_id);
    gb_dynamodb_task_send(&a->task, looked);
}

/* --- renew, release --- */

/* Spec 06 §6.2: why the condition failed. */
static void classified(struct gb_dynamodb_task *t)
{
    struct holding *h = GB_CONTAINER_OF(t, struct holding, task);
    struct gb_dlease_row r = {.row = {.key = {0}}};
    struct gb_err err = t->call.op.result;
    int size = (int)h->lease_id.size;
    const char *id = (const char *)h->lease_id.data;
    if (gb_failed(err)) {
        err = gb_err(GB_STALE_FENCING_TOKEN, "lease %.*s was refused, and can't be read: %.120s",
                     size, id, err.message);
    } else if (t->call.answer.item.size > 0) {
        err = read_row(t, h->lease_id, &t->scratch, &r);
    }
    if (!gb_failed(err) && gb_lease_is_released(&r.row)) {
        bool own = h->release && h->unsure && r.row.version == h->token->version;
        err = own ? gb_ok() : gb_err(GB_NOT_FOUND, "lease %.*s is absent or released", size, id);
    } else if (!gb_failed(err)) {
        err = gb_err(GB_STALE_FENCING_TOKEN, "lease %.*s is at version %llu of %.*s", size, id,
                     (unsigned long long)r.row.version, (int)r.row.owner.size,
                     (const char *)r.row.owner.data);
    }
    gb_dynamodb_task_end(t, err);
}

static void held(struct gb_dynamodb_task *t)
{
    struct holding *h = GB_CONTAINER_OF(t, struct holding, task);
    if (t->call.error != GB_DYNAMODB_CONDITION_FAILED) {
        gb_dynamodb_task_end(t, t->call.op.result);
        return;
    }
    h->unsure = t->call.outcome == GB_DYNAMODB_OUTCOME_UNKNOWN;
    begin_read(t, h->lease_id);
    gb_dynamodb_task_send(t, classified);
}

static struct holding *new_holding(struct store *s, struct gb_op *op, struct gb_bytes lease_id,
                                   const struct gb_token *token, gb_done_fn *done, void *arg)
{
    struct holding *h = gb_dynamodb_task_new(&s->desk, sizeof *h, op, done, arg);
    if (h == NULL) return NULL;
    h->lease_id = lease_id;
    h->token = token;
    begin_update(&h->task, lease_id);
    h->task.call.repeatable = true; /* applied twice it says the same */
    return h;
}

static void renew(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg)
{
    struct store *s = self(l);
    struct holding *h = new_holding(s, &q->op, q->lease_id, &q->token, done, arg);
    if (h == NULL) return;
    struct gb_err err = check_request(q->lease_id, q->token.owner, q->ttl_ns);
    if (gb_failed(err)) {
        gb_dynamodb_task_end(&h->task, err);
        return;
    }
    struct gb_dynamodb_call *call = &h->task.call;
    int64_t now_ms = wall_ms(s);
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     q->endpoint_count > 0
                         ? "SET renewed_at = :now, expires_at = :expires, endpoints = :endpoints "
                           "REMOVE #fp, #ns, #gen, #ttl"
                         : "SET renewed_at = :now, expires_at = :expires "
                           "REMOVE endpoints, #fp, #ns, #gen, #ttl");
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION,
                     "#owner = :owner AND #version = :version AND expires_at >= :now");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s(&call->w, ":owner", q->token.owner);
    gb_dynamodb_w_u64(&call->w, ":version", q->token.version);
    gb_dynamodb_w_i64(&call->w, ":now", now_ms);
    gb_dynamodb_w_i64(&call->w, ":expires",
                      gb_add_sat_i64(now_ms, gb_max_i64(q->ttl_ns / GB_MS, 1)));
    gb_dlease_write_endpoints(&call->w, ":endpoints", q->endpoints, q->endpoint_count);
    gb_dynamodb_object_end(call);
    gb_dynamodb_task_send(&h->task, held);
}

static void release(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg)
{
    struct holding *h = new_holding(self(l), &q->op, q->lease_id, &q->token, done, arg);
    if (h == NULL) return;
    struct gb_err err = check_request(q->lease_id, q->token.owner, 1);
    if (gb_failed(err)) {
        gb_dynamodb_task_end(&h->task, err);
        return;
    }
    struct gb_dynamodb_call *call = &h->task.call;
    h->release = true;
    gb_dynamodb_text(call, GB_DYNAMODB_UPDATE,
                     "SET #owner = :nobody, expires_at = :zero "
                     "REMOVE endpoints, #fp, #ns, #gen, #ttl");
    gb_dynamodb_text(call, GB_DYNAMODB_CONDITION, "#owner = :owner AND #version = :version");
    gb_dynamodb_object(call, GB_DYNAMODB_VALUES);
    gb_dynamodb_w_s_c(&call->w, ":nobody", "");
    gb_dynamodb_w_i64(&call->w, ":zero", 0);
    gb_dynamodb_w_s(&call->w, ":owner", q->token.owner);
    gb_dynamodb_w_u64(&call->w, ":version", q->token.version);
    gb_dynamodb_object_end(call);
    gb_dynamodb_task_send(&h->task, held);
}

/* --- current --- */

static void shown(struct gb_dynamodb_task *t)
{
    struct looking *k = GB_CONTAINER_OF(t, struct looking, task);
    struct gb_dlease_row r = {.row = {.key = {0}}};
    struct gb_err err = t->call.op.result;
    if (!gb_failed(err) && t->call.answer.item.size > 0)
        err = read_row(t, k->q->lease_id, &t->scratch, &r);
    if (!gb_failed(err) && gb_lease_is_released(&r.row)) {
        err = gb_err(GB_NOT_FOUND, "lease %.*s is absent or released", (int)k->q->lease_id.size,
                     (const char *)k->q->lease_id.data);
    } else if (!gb_failed(err)) {
        err = show(&k->q->holder, &r, r.row.evidence.elapsed_ns, gb_lease_required_ns(&r.row));
    }
    gb_dynamodb_task_end(t, err);
}

static void current(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->holder);
    struct looking *k = gb_dynamodb_task_new(&self(l)->desk, sizeof *k, &q->op, done, arg);
    if (k == NULL) return;
    k->q = q;
    begin_read(&k->task, q->lease_id);
    gb_dynamodb_task_send(&k->task, shown);
}

/* --- construction and close --- */

static void close_store(struct gb_lease *l, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_dynamodb_desk_close(&self(l)->desk, op, done, arg);
}

static void store_free(struct gb_dynamodb_desk *desk)
{
    struct store *s = GB_CONTAINER_OF(desk, struct store, desk);
    size_t cursor = 0;
    struct gb_bytes key;
    void *value;
    while (gb_map_next(&s->baselines, &cursor, &key, &value)) free(value);
    gb_map_deinit(&s->baselines);
    gb_dynamodb_desk_deinit(desk);
    free(s);
}

static const struct gb_lease_ops port_ops = {
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .current = current,
    .close = close_store,
};

struct gb_err gb_dynamodb_lease_new(const struct gb_dynamodb_lease_cfg *cfg, struct gb_lease **out)
{
    struct store *s = calloc(1, sizeof *s);
    if (s == NULL) return gb_err_no_memory("a DynamoDB lease store");
    s->port.ops = &port_ops;
    s->cfg = *cfg;
    s->desk = (struct gb_dynamodb_desk){.reactor = cfg->reactor,
                                        .client = cfg->client,
                                        .queue_max = cfg->queue_max,
                                        .free = store_free};
    struct gb_err err = gb_dynamodb_desk_init(&s->desk, cfg->table);
    if (gb_failed(err)) {
        free(s);
    } else {
        *out = &s->port;
    }
    return err;
}
