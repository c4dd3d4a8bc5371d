#include "sim/sim_member.h"

#include <stdio.h>
#include <stdlib.h>

#include "adapters/mqtt/mqtt_session.h"
#include "base/assert.h"
#include "core/session_manager_parts.h" /* for the faults that are planted in it */
#include "sim/sim_bridge.h"
#include "sim/sim_cluster.h"

enum { DISCONNECT_BYTE = 0xe0 };
static const uint64_t late_stop_ns = 300 * UINT64_C(1000000);

static struct sim_world *world_of(const struct sim_member *m)
{
    return m->bridge->world;
}

struct sim_member *sim_member_new(struct sim_bridge *b)
{
    struct sim_member *m = calloc(1, sizeof *m);
    GB_ASSERT(m != NULL);
    struct sim_world *w = b->world;
    m->bridge = b;
    (void)snprintf(m->instance, sizeof m->instance, "i%u",
                   w->cfg.same_instance_id ? 0 : b->host->index);
    unsigned long long nonce = gb_reactor_random(w->reactor);
    if (w->fault == SIM_FAULT_NO_NONCE) {
        (void)snprintf(m->owner, sizeof m->owner, "%s#", m->instance);
    } else {
        (void)snprintf(m->owner, sizeof m->owner, "%s#%016llx", m->instance, nonce);
    }
    return m;
}

/* --- the account of the authority --- */

static void lease_answered(struct sim_bridge *b, struct gb_op *op, uint64_t began_ns, bool renewal)
{
    struct sim_member *m = b->member;
    struct sim_world *w = b->world;
    uint64_t end_ns = began_ns + (uint64_t)w->cfg.cadence.ttl_ns;
    if (end_ns > m->deadline_ns) m->deadline_ns = end_ns;
    if (!renewal) m->version = GB_CONTAINER_OF(op, struct gb_lease_acquire, op)->version;
    if (w->fault == SIM_FAULT_DEADLINE_FROM_ANSWER)
        m->manager->call_boot_ns = gb_reactor_boot_ns(b->reactor);
}

bool sim_member_holds(struct sim_member *m)
{
    struct gb_token token;
    struct gb_authority a = gb_session_manager_authority(m->manager);
    return a.current(a.ctx, &token);
}

bool sim_member_in_term(const struct sim_member *m)
{
    return m->manager->holds;
}

struct gb_authority sim_member_authority(struct sim_member *m)
{
    return gb_session_manager_authority(m->manager);
}

const char *sim_member_instance(const struct sim_member *m)
{
    return m->instance;
}

void sim_member_wall_jumped(struct sim_member *m, int64_t ms)
{
    if (world_of(m)->fault != SIM_FAULT_DEADLINE_BY_WALL || !m->manager->holds) return;
    int64_t deadline_ns = (int64_t)m->manager->deadline_boot_ns - ms * GB_MS;
    m->manager->deadline_boot_ns = deadline_ns < 1 ? 1 : (uint64_t)deadline_ns;
}

/* --- the session behind a gate --- */

static struct sim_member *gate_of(struct gb_session *s)
{
    return GB_CONTAINER_OF(s, struct sim_member, gate);
}

static void gate_start(struct gb_session *s)
{
    struct sim_member *m = gate_of(s);
    if (m->inner_stopping) return; /* only with a planted fault */
    m->inner_running = true;
    m->bridge->session->ops->start(m->bridge->session);
}

static void gate_quiesce(struct gb_session *s)
{
    struct gb_session *inner = gate_of(s)->bridge->session;
    inner->ops->quiesce(inner);
}

static void return_stop(struct sim_member *m)
{
    struct gb_op *op = m->gate_stop;
    m->gate_stop = NULL;
    if (op != NULL) gb_op_finish(op, m->stop_result);
}

static void inner_stopped(struct gb_op *op, void *arg)
{
    struct sim_member *m = arg;
    m->inner_stopping = m->inner_running = false;
    m->stop_result = op->result;
    if (!m->hangs) return_stop(m);
}

static void stop_inner(struct sim_member *m)
{
    m->bridge->session->ops->stop(m->bridge->session, &m->inner_stop, inner_stopped, m);
}

static void late_stop_due(struct gb_timer *t)
{
    stop_inner(GB_CONTAINER_OF(t, struct sim_member, late_stop));
}

static void gate_stop(struct gb_session *s, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct sim_member *m = gate_of(s);
    gb_op_start(op, m->bridge->reactor, done, arg, NULL, m);
    if (!m->inner_running || m->inner_stopping) { /* only with a planted fault */
        gb_op_finish(op, gb_ok());
        return;
    }
    m->inner_stop = (struct gb_op){.deadline_ns = op->deadline_ns};
    m->inner_stopping = true;
    if (world_of(m)->fault == SIM_FAULT_RELEASE_FIRST && !m->bridge->dead) {
        gb_timer_start(&m->late_stop, gb_reactor_now_ns(m->bridge->reactor) + late_stop_ns);
        gb_op_finish(op, gb_ok()); /* planted: it says that it is closed before it is */
        return;
    }
    m->gate_stop = op;
    m->hangs = !m->bridge->dead && sim_chance(world_of(m), world_of(m)->cfg.close_hang);
    if (m->hangs) sim_trace(world_of(m), "close hangs", m->bridge->host->index, m->version);
    if (m->hangs && world_of(m)->fault == SIM_FAULT_HANG_RETURNS) return_stop(m);
    stop_inner(m);
}

static void gate_health(const struct gb_session *s, struct gb_session_health *out)
{
    const struct sim_member *m =
        (const struct sim_member *)(const void *)((const char *)s -
                                                  offsetof(struct sim_member, gate));
    m->bridge->session->ops->health(m->bridge->session, out);
}

/* --- building --- */

static bool drained(void *arg)
{
    const struct sim_member *m = arg;
    return world_of(m)->fault == SIM_FAULT_GRACE_SKIPPED || sim_bridge_drained(m->bridge);
}

static void authority_changed(void *arg, bool held)
{
    struct sim_member *m = arg;
    sim_trace(world_of(m), held ? "authority" : "authority gone", m->bridge->host->index,
              m->version);
    if (held) {
        sim_bridge_wake_drains(m->bridge);
    } else {
        m->authority_gone_ns = world_of(m)->now_ns;
    }
}

static void terminal(void *arg, const char *session_id, struct gb_err cause)
{
    struct sim_member *m = arg;
    (void)session_id, (void)cause;
    sim_bridge_end(m->bridge, "lease terminal");
}

void sim_member_build(struct sim_member *m)
{
    static const struct gb_session_ops gate = {
        .start = gate_start, .quiesce = gate_quiesce, .stop = gate_stop, .health = gate_health};
    struct sim_world *w = world_of(m);
    m->gate = (struct gb_session){.ops = &gate, .id = "mqtt"};
    sim_lease_port(&m->lease, m->bridge);
    m->lease.answered = lease_answered;
    GB_ASSERT(!gb_failed(gb_timer_init(&m->late_stop, m->bridge->reactor, late_stop_due)));
    const struct gb_session_manager_cfg cfg = {
        .session_id = "mqtt",
        .owner = m->owner,
        .cadence = w->cfg.cadence,
        .activation_ns = sim_cluster_activation_ns(),
        .step_down_ns = w->cfg.step_down_ns,
        .connect_after_lease = w->fault != SIM_FAULT_CONNECT_FIRST,
        .reactor = m->bridge->reactor,
        .metrics = m->bridge->metrics,
        .lease = &m->lease.lease,
        .session = &m->gate,
        .drained = drained,
        .authority_changed = authority_changed,
        .terminal = terminal,
        .arg = m,
    };
    GB_ASSERT(!gb_failed(gb_session_manager_new(&cfg, &m->manager)));
    if (w->fault != SIM_FAULT_UNFENCED_WIRE && w->fault != SIM_FAULT_CONNECT_FIRST)
        gb_mqtt_session_fence(m->bridge->session, gb_session_manager_authority(m->manager));
}

void sim_member_start(struct sim_member *m)
{
    gb_session_manager_start(m->manager);
}

void sim_member_close(struct sim_member *m, struct gb_op *op, gb_done_fn *done)
{
    m->closing = true;
    op->deadline_ns = gb_reactor_now_ns(m->bridge->reactor) + (uint64_t)(10 * GB_SEC);
    gb_session_manager_close(m->manager, op, done, m->bridge);
}

void sim_member_gone(struct sim_member *m)
{
    sim_lease_process_gone(&m->lease);
    if (m->hangs && !m->inner_stopping) return_stop(m);
    m->hangs = false;
}

void sim_member_free(struct sim_member *m)
{
    if (m == NULL) return;
    gb_session_manager_free(m->manager);
    gb_timer_deinit(&m->late_stop);
    free(m);
}

/* --- checks --- */

void sim_member_check(struct sim_member *m)
{
    struct sim_world *w = world_of(m);
    bool ignores = w->fault == SIM_FAULT_DEADLINE_IGNORED && m->manager->holds;
    if (ignores) m->manager->deadline_boot_ns = UINT64_MAX / 2;
    if (sim_member_holds(m) && w->now_ns >= m->deadline_ns) {
        sim_violate(w, "instance %u has authority %llu ms after its deadline",
                    m->bridge->host->index,
                    (unsigned long long)(w->now_ns - m->deadline_ns) / 1000000);
    }
    bool serves = m->manager->state == GB_MANAGER_ACTIVE;
    if (serves && !m->serves) sim_cluster_serves(w, m->bridge->host->index, m->version);
    m->serves = serves;
}

/* Spec 06 check 21. */
void sim_member_check_dial(struct sim_member *m)
{
    bool term =
        m->manager->state == GB_MANAGER_ACTIVATING || m->manager->state == GB_MANAGER_ACTIVE;
    if (!term) {
        sim_violate(world_of(m), "instance %u connects to the broker without a lease",
                    m->bridge->host->index);
    }
}

/* Spec 06 check 18, docs/decisions/0510: nothing but DISCONNECT. */
void sim_member_check_write(struct sim_member *m, struct gb_bytes bytes)
{
    struct sim_world *w = world_of(m);
    if (bytes.size == 0 || bytes.data[0] == DISCONNECT_BYTE || w->now_ns < m->deadline_ns) return;
    sim_violate(w, "instance %u wrote to the broker %llu ms after its deadline",
                m->bridge->host->index, (unsigned long long)(w->now_ns - m->deadline_ns) / 1000000);
}

/* Spec 06 §7.4: the source is closed, and what is in flight had its time. */
void sim_member_check_release(struct sim_member *m)
{
    struct sim_bridge *b = m->bridge;
    struct sim_world *w = b->world;
    if (m->hangs)
        sim_violate(w, "instance %u released the lease although its close hangs", b->host->index);
    for (struct gb_list_node *n = gb_list_first(&b->conns); n != NULL;
         n = gb_list_next(&b->conns, n)) {
        const struct sim_conn *c = GB_CONTAINER_OF(n, struct sim_conn, node);
        if (c->state == SIM_CLOSED) continue;
        sim_violate(w, "instance %u released the lease before its source was closed",
                    b->host->index);
    }
    bool waited = w->now_ns >= m->authority_gone_ns + (uint64_t)w->cfg.cadence.grace_ns;
    if (!m->closing && !waited && !sim_bridge_drained(b))
        sim_violate(w, "instance %u released the lease with work in flight", b->host->index);
}
