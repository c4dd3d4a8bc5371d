#include "sim/sim_lease.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/sim_bridge.h"
#include "sim/sim_cluster.h"
#include "sim/sim_table.h"

enum plan { OK, THROTTLED, LOST_ANSWER, SILENT, LATE };

struct task { /* one call of the port */
    struct gb_list_node node;
    struct sim_lease_port *port;
    struct gb_op *op;
    struct gb_timer deadline;
    struct sim_request_body body; /* of the request that is out, or to be sent again */
    struct request *out;
    bool unsure;        /* an attempt that was not answered may have been applied */
    bool classifying;   /* a renewal or release was refused: the row tells why */
    uint64_t began_ns;  /* of the world */
    uint64_t sent_mono; /* of the request that is out */
    struct gb_takeover_verdict verdict;
    struct sim_row_image read;
    enum sim_table_kind kind; /* of the call: TAKE stands for acquire */
};
struct request {
    struct gb_list_node node; /* of the table */
    struct sim_table *table;
    struct task *task; /* NULL: nobody waits */
    struct gb_timer timer;
    struct sim_request_body body;
    enum plan plan;
    bool applied, refused;
    struct sim_row_image result;
};

static void answered(struct task *k, const struct request *q);

static struct sim_world *world_of(const struct task *k)
{
    return k->port->bridge->world;
}

static void request_free(struct request *q)
{
    if (q->task != NULL) q->task->out = NULL;
    gb_timer_deinit(&q->timer);
    gb_list_remove(&q->node);
    free(q);
}

static void request_due(struct gb_timer *t)
{
    struct request *q = GB_CONTAINER_OF(t, struct request, timer);
    struct sim_world *w = q->table->world;
    if (!q->applied && q->plan != THROTTLED) {
        q->applied = true;
        q->refused = !sim_table_apply(q->table, &q->body, &q->result);
        if (q->task != NULL) { /* the answer is on its way */
            gb_timer_start(t, w->now_ns + sim_delay_ns(w, w->cfg.lease_delay_max_ns));
            return;
        }
    }
    struct task *k = q->task;
    if (k != NULL) {
        struct request answer = *q;
        request_free(q);
        answered(k, &answer);
    } else {
        request_free(q);
    }
}

/* --- sending --- */

static enum plan draw_plan(struct sim_world *w, const struct sim_host *h)
{
    const struct sim_cfg *c = &w->cfg;
    if (!w->healed && w->now_ns < h->store_cut_ns) return h->store_hears ? LATE : SILENT;
    if (sim_chance(w, c->lease_throttle)) return THROTTLED;
    if (sim_chance(w, c->lease_lost_answer)) return LOST_ANSWER;
    if (sim_chance(w, c->lease_silent)) return SILENT;
    if (sim_chance(w, c->lease_late)) return LATE;
    return OK;
}

static void send(struct task *k)
{
    struct sim_world *w = world_of(k);
    struct sim_bridge *b = k->port->bridge;
    sim_bridge_step(b);
    if (b->dead) return; /* sim_lease_process_gone ends the call */
    struct sim_table *t = sim_cluster_table(w);
    enum plan plan = draw_plan(w, b->host);
    k->sent_mono = sim_host_mono_ns(b->host);
    if (w->fault == SIM_FAULT_TABLE_DEAF && k->kind == SIM_TAKE) plan = SILENT;
    if (plan == SILENT) return; /* the deadline ends it */
    struct request *q = calloc(1, sizeof *q);
    GB_ASSERT(q != NULL);
    q->table = t;
    q->body = k->body;
    q->plan = plan;
    GB_ASSERT(!gb_failed(gb_timer_init(&q->timer, w->reactor, request_due)));
    gb_list_push(&t->requests, &q->node);
    uint64_t due_ns = w->now_ns + sim_delay_ns(w, w->cfg.lease_delay_max_ns);
    if (plan == LATE) {
        due_ns += sim_below(w, (uint64_t)w->cfg.lease_late_max_ns);
    } else {
        q->task = k;
        k->out = q;
    }
    gb_timer_start(&q->timer, due_ns);
    sim_bridge_step(b); /* it may crash behind the request */
}

static void send_kind(struct task *k, enum sim_table_kind kind)
{
    k->body.kind = kind;
    k->unsure = false;
    send(k);
}

/* --- ends --- */

static void end(struct task *k, struct gb_err result)
{
    struct sim_bridge *b = k->port->bridge;
    struct gb_op *op = k->op;
    bool contention = result.code == GB_ALREADY_EXISTS;
    if (k->out != NULL) k->out->task = NULL;
    if (k->kind == SIM_TAKE && !contention) gb_takeover_forget(&k->port->seen);
    if (!gb_failed(result) && (k->kind == SIM_TAKE || k->kind == SIM_RENEW) && !b->dead)
        k->port->answered(b, op, k->began_ns, k->kind == SIM_RENEW);
    gb_list_remove(&k->node);
    gb_timer_deinit(&k->deadline);
    free(k);
    gb_op_finish(op, result);
}

static void deadline_due(struct gb_timer *t)
{
    end(GB_CONTAINER_OF(t, struct task, deadline), gb_err(GB_TIMEOUT, "simulated time-out"));
}

static void cancel(struct gb_op *op)
{
    struct task *k = op->provider;
    if (!k->port->bridge->dead && sim_chance(world_of(k), 500)) return; /* it comes too late */
    end(k, gb_err(GB_CANCELLED, "cancelled"));
}

static struct gb_lease_acquire *acquire_of(struct task *k)
{
    return GB_CONTAINER_OF(k->op, struct gb_lease_acquire, op);
}

static void set_times(struct task *k, int64_t ttl_ns)
{
    k->body.now_ms = sim_host_wall_ms(k->port->bridge->host);
    k->body.expires_ms = k->body.now_ms + gb_max_i64(ttl_ns / GB_MS, 1);
}

/* --- acquire (spec 06 §6.1) --- */

static void held(struct task *k)
{
    end(k, gb_err(GB_ALREADY_EXISTS, "held by %s", k->read.owner));
}

static void take(struct task *k)
{
    set_times(k, acquire_of(k)->ttl_ns);
    k->body.as_read = k->read;
    k->body.version = k->read.version + 1;
    send_kind(k, SIM_TAKE);
}

/* Planted: another judgement. */
static void misjudge(struct task *k, const struct gb_lease_row *row)
{
    struct sim_world *w = world_of(k);
    int64_t wall_ms = sim_host_wall_ms(k->port->bridge->host);
    struct gb_takeover_verdict *v = &k->verdict;
    bool foreign = v->required_ns > 0;
    if (w->fault == SIM_FAULT_WALL_EXPIRY && foreign && wall_ms > row->expires_ms)
        v->step = GB_TAKEOVER_SEIZE;
    if (w->fault == SIM_FAULT_HALF_THE_TIME && foreign) {
        bool enough = v->elapsed_ns >= v->required_ns / 2;
        if (v->step == GB_TAKEOVER_OBSERVE) v->then_seize = enough;
        if (v->step == GB_TAKEOVER_WAIT && enough) v->step = GB_TAKEOVER_SEIZE;
    }
}

static void judge(struct task *k, const struct sim_row_image *read)
{
    struct sim_world *w = world_of(k);
    struct sim_host *h = k->port->bridge->host;
    struct gb_lease_acquire *q = acquire_of(k);
    struct gb_lease_row row;
    k->read = *read;
    sim_row_view(&k->read, &row);
    if (w->fault == SIM_FAULT_EVIDENCE_STAYS && k->read.evidence)
        gb_lease_fingerprint(&row, k->read.fingerprint);
    uint64_t answered_ns = sim_host_mono_ns(h);
    if (w->fault == SIM_FAULT_BASELINE_DROPPED) gb_takeover_forget(&k->port->seen);
    struct gb_err err = gb_lease_row_check(&row, q->lease_id);
    if (!gb_failed(err))
        err = gb_takeover_judge(&k->port->seen, &row, q->owner, answered_ns, &k->verdict);
    if (!gb_failed(err) && k->verdict.required_ns > 0) {
        err = gb_lease_holder_set(&q->seen, &row, NULL, 0);
        q->seen.observed_ns = k->verdict.elapsed_ns;
        q->seen.required_ns = k->verdict.required_ns;
    }
    if (gb_failed(err)) {
        end(k, err);
        return;
    }
    misjudge(k, &row);
    bool early = w->fault == SIM_FAULT_BASELINE_EARLY;
    if (early && k->port->seen.at_ns == answered_ns) k->port->seen.at_ns = k->sent_mono;
    if (k->verdict.step == GB_TAKEOVER_WAIT) {
        held(k);
    } else if (k->verdict.step == GB_TAKEOVER_SEIZE) {
        take(k);
    } else {
        k->body.as_read = k->read;
        memcpy(k->body.fingerprint, k->verdict.fingerprint, sizeof k->body.fingerprint);
        k->body.elapsed_ns = k->verdict.elapsed_ns;
        bool restarts = w->fault == SIM_FAULT_GENERATION_RESTARTS && !k->read.evidence;
        if (restarts) k->verdict.generation = 1;
        k->body.generation = k->verdict.generation;
        send_kind(k, SIM_OBSERVE);
    }
}

static void observed(struct task *k, const struct request *q)
{
    if (q->refused) {
        gb_takeover_forget(&k->port->seen);
        held(k);
    } else if (k->verdict.then_seize) {
        k->read.evidence = true;
        memcpy(k->read.fingerprint, k->verdict.fingerprint, sizeof k->read.fingerprint);
        k->read.elapsed_ns = k->verdict.elapsed_ns;
        k->read.generation = k->verdict.generation;
        take(k);
    } else {
        bool early = world_of(k)->fault == SIM_FAULT_BASELINE_EARLY;
        uint64_t now_ns = sim_host_mono_ns(k->port->bridge->host);
        gb_takeover_observed(&k->port->seen, &k->verdict, early ? k->sent_mono : now_ns);
        held(k);
    }
}

/* Created or taken over, or not. */
static void took(struct task *k, const struct request *q)
{
    bool own = k->unsure && q->result.version == k->body.version &&
               strcmp(q->result.owner, k->body.owner) == 0 &&
               q->result.renewed_ms == k->body.now_ms;
    bool lies = world_of(k)->fault == SIM_FAULT_ACQUIRE_LIES;
    if (q->refused && !own && !lies) {
        gb_takeover_forget(&k->port->seen);
        held(k);
        return;
    }
    acquire_of(k)->version = lies ? k->body.version : q->result.version;
    end(k, gb_ok());
}

/* --- renew, release, current --- */

static void classified(struct task *k, const struct sim_row_image *row)
{
    bool released = !row->exists || row->owner[0] == '\0';
    if (released && row->exists && k->kind == SIM_RELEASE && k->unsure &&
        row->version == k->body.version) {
        end(k, gb_ok());
    } else if (released) {
        end(k, gb_err(GB_NOT_FOUND, "absent or released"));
    } else {
        end(k, gb_err(GB_STALE_FENCING_TOKEN, "version %llu of %s",
                      (unsigned long long)row->version, row->owner));
    }
}

static void shown(struct task *k, const struct sim_row_image *row)
{
    struct gb_lease_current *q = GB_CONTAINER_OF(k->op, struct gb_lease_current, op);
    struct gb_lease_row view;
    sim_row_view(row, &view);
    struct gb_err err = gb_err(GB_NOT_FOUND, "absent or released");
    if (row->exists && row->owner[0] != '\0') err = gb_lease_holder_set(&q->holder, &view, NULL, 0);
    end(k, err);
}

/* --- answers --- */

static void read_answered(struct task *k, const struct request *q)
{
    if (k->classifying) {
        classified(k, &q->result);
    } else if (k->kind == SIM_READ) {
        shown(k, &q->result);
    } else if (q->result.exists) {
        judge(k, &q->result);
    } else {
        set_times(k, acquire_of(k)->ttl_ns);
        k->body.version = 1;
        send_kind(k, SIM_CREATE);
    }
}

static void held_answered(struct task *k, const struct request *q)
{
    if (!q->refused) {
        end(k, gb_ok());
        return;
    }
    k->classifying = true;
    bool unsure = k->unsure;
    k->body.kind = SIM_READ;
    send(k);
    k->unsure = unsure;
}

static void answered(struct task *k, const struct request *q)
{
    enum plan plan = q->plan;
    bool repeatable = k->body.kind != SIM_OBSERVE;
    if (plan == LOST_ANSWER && repeatable && !k->unsure) {
        k->unsure = k->body.kind != SIM_READ || k->unsure;
        send(k);
    } else if (plan == LOST_ANSWER || plan == THROTTLED) {
        struct gb_err err = plan == THROTTLED ? gb_err(GB_THROTTLED, "simulated throttling")
                                              : gb_err(GB_UNAVAILABLE, "the answer was lost");
        if (k->classifying) err = gb_err(GB_STALE_FENCING_TOKEN, "refused, and can't be read");
        end(k, err);
    } else if (k->body.kind == SIM_READ) {
        read_answered(k, q);
    } else if (k->body.kind == SIM_OBSERVE) {
        observed(k, q);
    } else if (k->body.kind == SIM_RENEW || k->body.kind == SIM_RELEASE) {
        held_answered(k, q);
    } else {
        took(k, q);
    }
}

/* --- the port --- */

static struct task *begin(struct gb_lease *l, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct sim_lease_port *p = GB_CONTAINER_OF(l, struct sim_lease_port, lease);
    struct sim_world *w = p->bridge->world;
    if (p->bridge->dead) {
        gb_op_start(op, p->bridge->reactor, done, arg, NULL, NULL);
        gb_op_finish(op, gb_err(GB_CANCELLED, "the process is gone"));
        return NULL;
    }
    struct task *k = calloc(1, sizeof *k);
    GB_ASSERT(k != NULL && op->deadline_ns > 0);
    k->port = p;
    k->op = op;
    k->began_ns = w->now_ns;
    gb_list_push(&p->tasks, &k->node);
    GB_ASSERT(!gb_failed(gb_timer_init(&k->deadline, w->reactor, deadline_due)));
    gb_timer_start(&k->deadline, sim_host_world_ns(p->bridge->host, op->deadline_ns));
    gb_op_start(op, p->bridge->reactor, done, arg, cancel, k);
    return k;
}

static void set_owner(struct task *k, struct gb_bytes owner)
{
    (void)snprintf(k->body.owner, sizeof k->body.owner, "%.*s", (int)owner.size,
                   (const char *)owner.data);
}

static void acquire(struct gb_lease *l, struct gb_lease_acquire *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->seen);
    struct task *k = begin(l, &q->op, done, arg);
    if (k == NULL) return;
    k->kind = SIM_TAKE;
    set_owner(k, q->owner);
    send_kind(k, SIM_READ);
}

static void renew(struct gb_lease *l, struct gb_lease_renew *q, gb_done_fn *done, void *arg)
{
    struct task *k = begin(l, &q->op, done, arg);
    if (k == NULL) return;
    k->kind = SIM_RENEW;
    set_owner(k, q->token.owner);
    k->body.version = q->token.version;
    set_times(k, q->ttl_ns);
    send_kind(k, SIM_RENEW);
}

static void release(struct gb_lease *l, struct gb_lease_release *q, gb_done_fn *done, void *arg)
{
    struct task *k = begin(l, &q->op, done, arg);
    if (k == NULL) return;
    k->kind = SIM_RELEASE;
    sim_member_check_release(k->port->bridge->member);
    set_owner(k, q->token.owner);
    k->body.version = q->token.version;
    send_kind(k, SIM_RELEASE);
}

static void current(struct gb_lease *l, struct gb_lease_current *q, gb_done_fn *done, void *arg)
{
    gb_lease_holder_deinit(&q->holder);
    struct task *k = begin(l, &q->op, done, arg);
    if (k == NULL) return;
    k->kind = SIM_READ;
    send_kind(k, SIM_READ);
}

void sim_lease_port(struct sim_lease_port *p, struct sim_bridge *b)
{
    static const struct gb_lease_ops ops = {
        .acquire = acquire, .renew = renew, .release = release, .current = current};
    *p = (struct sim_lease_port){.lease = {&ops}, .bridge = b};
    gb_list_init(&p->tasks);
}

void sim_lease_process_gone(struct sim_lease_port *p)
{
    struct gb_list_node *n;
    while ((n = gb_list_first(&p->tasks)) != NULL)
        end(GB_CONTAINER_OF(n, struct task, node), gb_err(GB_CANCELLED, "the process is gone"));
}

void sim_table_drop_requests(struct sim_table *t)
{
    struct gb_list_node *next = NULL;
    for (struct gb_list_node *n = gb_list_first(&t->requests); n != NULL; n = next) {
        next = gb_list_next(&t->requests, n);
        struct request *q = GB_CONTAINER_OF(n, struct request, node);
        if (q->task == NULL) request_free(q);
    }
}
