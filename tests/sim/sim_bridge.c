#include "sim/sim_bridge.h"

#include <stdlib.h>

#include "adapters/mqtt/mqtt_session.h"
#include "base/assert.h"
#include "sim/sim_call.h"
#include "sim/sim_check.h"
#include "sim/sim_member.h"

static const char *const urls[] = {"tcp://broker:1883"};
/* Before and after: in/0 and in/1 go on, in/2 to in/4 are given up, with what is queued for
 * them. */
static const struct gb_mqtt_topic filters[] = {{.filter = "in/#", .qos = 2}};
static const struct gb_mqtt_topic other_filters[] = {{.filter = "in/0", .qos = 2},
                                                     {.filter = "in/1", .qos = 2}};
static const char *const binding_ids[SIM_LEGS_MAX] = {"b0", "b1"};
static const char *const session_ids[SIM_LEGS_MAX] = {"p0", "p1"};
static const char *const partitions[SIM_LEGS_MAX] = {"SESSION#p0", "SESSION#p1"};
static const char *const addresses[SIM_LEGS_MAX] = {"out/0", "out/1"};

size_t sim_bridge_partitions(const struct sim_cfg *c)
{
    return c->same_partition ? 1 : sim_legs(c);
}

const char *sim_bridge_partition(size_t i)
{
    return partitions[i];
}

uint8_t sim_bridge_leg(struct gb_bytes name)
{
    GB_ASSERT(name.size > 0);
    return name.data[name.size - 1] == '1';
}

const char *sim_bridge_filter(const char *text)
{
    if (strcmp(text, filters[0].filter) == 0) return filters[0].filter;
    size_t i = strcmp(text, other_filters[0].filter) == 0 ? 0 : 1;
    GB_ASSERT(strcmp(text, other_filters[i].filter) == 0);
    return other_filters[i].filter;
}

/* --- ends --- */

void sim_bridge_end(struct sim_bridge *b, const char *why)
{
    if (b->dead || b->ended) return;
    b->ended = true;
    b->why = why;
}

static void on_wedged(void *arg, const char *route_id, struct gb_err cause)
{
    (void)route_id, (void)cause;
    sim_bridge_end(arg, "wedged");
}

static void on_stalled(void *arg, const char *partition, struct gb_err cause)
{
    (void)partition, (void)cause;
    sim_bridge_end(arg, "stalled");
}

static void on_terminal(void *arg, const char *session_id, struct gb_err cause)
{
    (void)session_id, (void)cause;
    sim_bridge_end(arg, "session terminal");
}

static void on_persisted(void *arg, struct gb_bytes partition)
{
    struct sim_bridge *b = arg;
    for (size_t i = 0; i < b->drain_count && i < SIM_LEGS_MAX; i++)
        if (gb_bytes_equal_c(partition, partitions[i])) gb_drainer_wake(b->drains[i].drainer);
}

void sim_bridge_wake_drains(struct sim_bridge *b)
{
    for (size_t i = 0; i < b->drain_count; i++) gb_drainer_wake(b->drains[i].drainer);
}

bool sim_bridge_drained(const struct sim_bridge *b)
{
    for (size_t i = 0; i < b->drain_count; i++)
        if (!gb_drainer_idle(b->drains[i].drainer)) return false;
    return true;
}

void sim_bridge_step(struct sim_bridge *b)
{
    if (b->dead || b->steps_to_crash == 0) return;
    if (--b->steps_to_crash > 0) return;
    b->dead = true;
    b->why = "crash";
}

/* --- construction --- */

static const char *instance_of(const struct sim_bridge *b)
{
    return b->member != NULL ? sim_member_instance(b->member) : "i1";
}

static void build_session(struct sim_bridge *b)
{
    const struct sim_cfg *c = &b->world->cfg;
    const bool other = b->world->refiltered;
    const struct gb_mqtt_session_cfg cfg = {
        .id = "mqtt",
        .mode = b->member != NULL ? GB_MQTT_EXCLUSIVE
                : c->ephemeral    ? GB_MQTT_EPHEMERAL
                                  : GB_MQTT_PERSISTENT,
        .version = c->v5 ? GB_MQTT_V5 : GB_MQTT_V311,
        .urls = urls,
        .url_count = 1,
        .client_id = "bridge",
        .keep_alive_s = c->keep_alive_s,
        .connect_timeout_ns = SIM_CONNECT_S * GB_SEC,
        .reconnect_timeout_ns = SIM_CONNECT_S * GB_SEC,
        .reconcile_timeout_ns = SIM_RECONCILE_S * GB_SEC,
        .reconnect_delay_ns = c->reconnect_delay_ns,
        .reconnect_max_delay_ns = 8 * c->reconnect_delay_ns,
        .unmatched_grace_ns = SIM_UNMATCHED_S * GB_SEC,
        .session_expiry_interval_s = 86400,
        .receive_maximum = c->receive_maximum,
        .max_payload_bytes = 262144,
        .topics = other ? other_filters : filters,
        .topic_count = other ? 2 : 1,
        .receiver_id = "in",
        .ingress_route_id = "r",
        .reactor = b->reactor,
        .net = &b->net.net,
        .metrics = b->metrics,
        .subscriptions = &b->subscriptions.subscriptions,
        .dlq = c->has_dlq ? &b->dlq.dlq : NULL,
        .terminal = on_terminal,
        .arg = b,
    };
    GB_ASSERT(!gb_failed(gb_mqtt_session_new(&cfg, &b->session)));
    sim_tap_init(&b->tap, b->world, b->reactor, gb_mqtt_session_receiver(b->session));
}

static void build_senders(struct sim_bridge *b)
{
    const struct sim_cfg *c = &b->world->cfg;
    for (size_t leg = 0; leg < sim_legs(c); leg++) {
        struct gb_sender *through = NULL;
        const struct gb_mqtt_sender_cfg sender = {.id = binding_ids[leg],
                                                  .default_topic = addresses[leg],
                                                  .qos = c->sender_qos,
                                                  .timeout_ns = c->policy.send_timeout_ns,
                                                  .throttle_retry_after_ns = 500 * GB_MS};
        if (c->to_mqtt)
            GB_ASSERT(!gb_failed(gb_mqtt_session_add_sender(b->session, &sender, &through)));
        sim_sink_port(&b->sinks[leg], b, (uint8_t)leg, through);
    }
}

static void build_route(struct sim_bridge *b)
{
    const struct sim_cfg *c = &b->world->cfg;
    struct gb_route_binding bindings[SIM_LEGS_MAX];
    for (size_t leg = 0; leg < sim_legs(c); leg++) {
        bindings[leg] = (struct gb_route_binding){
            .id = binding_ids[leg],
            .sender = &b->sinks[leg].sender,
            .address = addresses[leg],
            .session_id = session_ids[c->same_partition ? 0 : leg],
            .mqtt = c->to_mqtt,
        };
    }
    const struct gb_route_cfg cfg = {
        .id = "r",
        .instance_id = instance_of(b),
        .source_session_id = "mqtt",
        .delivery_mode = c->shared_outbox ? GB_SHARED_OUTBOX : GB_DIRECT_HOLD,
        .every_binding = c->shared_outbox && c->fan_out,
        .trust_bridge_headers = true,
        .policy = c->policy,
        .bindings = bindings,
        .binding_count = sim_legs(c),
        .reactor = b->reactor,
        .metrics = b->metrics,
        .receiver = &b->tap.receiver,
        .outbox = c->shared_outbox ? &b->outbox.outbox : NULL,
        .dlq = c->has_dlq ? &b->dlq.dlq : NULL,
        .ledger = b->ledger,
        .persisted = on_persisted,
        .wedged = on_wedged,
        .arg = b,
    };
    GB_ASSERT(!gb_failed(gb_route_new(&cfg, &b->route)));
}

static void read_authority(struct sim_drain *d);

static void authority_read(struct gb_op *op, void *arg)
{
    struct sim_drain *d = arg;
    d->reading = false;
    d->has_authority = op->result.code == GB_OK;
    if (!d->has_authority && !d->bridge->dead)
        gb_timer_start(&d->again, gb_reactor_now_ns(d->bridge->reactor) + (uint64_t)GB_SEC);
}

static void read_again(struct gb_timer *t)
{
    struct sim_drain *d = GB_CONTAINER_OF(t, struct sim_drain, again);
    gb_local_authority_deinit(&d->authority);
    read_authority(d);
}

static void read_authority(struct sim_drain *d)
{
    struct sim_bridge *b = d->bridge;
    d->reading = true;
    d->authority_op.deadline_ns = gb_reactor_now_ns(b->reactor) + (uint64_t)(10 * GB_SEC);
    const struct gb_local_authority_cfg cfg = {.reactor = b->reactor,
                                               .outbox = &b->outbox.outbox,
                                               .owner = "i1#boot",
                                               .partition = partitions[d - b->drains]};
    gb_local_authority_start(&d->authority, &cfg, &d->authority_op, authority_read, d);
}

static void build_drain(struct sim_bridge *b, size_t i)
{
    const struct sim_cfg *c = &b->world->cfg;
    struct sim_drain *d = &b->drains[i];
    struct gb_drainer_target targets[SIM_LEGS_MAX];
    size_t count = 0;
    for (size_t leg = 0; leg < sim_legs(c); leg++) {
        if (!c->same_partition && leg != i) continue;
        targets[count++] = (struct gb_drainer_target){.route_id = "r",
                                                      .binding_id = binding_ids[leg],
                                                      .sender = &b->sinks[leg].sender,
                                                      .policy = c->policy};
    }
    d->bridge = b;
    GB_ASSERT(!gb_failed(gb_timer_init(&d->again, b->reactor, read_again)));
    const struct gb_drainer_cfg cfg = {
        .partition = partitions[i],
        .session_id = session_ids[i],
        .instance_id = instance_of(b),
        .policy = c->drain,
        .targets = targets,
        .target_count = count,
        .reactor = b->reactor,
        .metrics = b->metrics,
        .outbox = &b->outbox.outbox,
        .dlq = c->has_dlq ? &b->dlq.dlq : NULL,
        .authority =
            b->member != NULL ? sim_member_authority(b->member) : gb_local_authority(&d->authority),
        .stalled = on_stalled,
        .arg = b,
    };
    GB_ASSERT(!gb_failed(gb_drainer_new(&cfg, &d->drainer)));
    if (b->member == NULL) read_authority(d);
    gb_drainer_start(d->drainer);
}

struct sim_bridge *sim_bridge_new(struct sim_world *w, struct sim_host *h)
{
    struct sim_bridge *b = calloc(1, sizeof *b);
    GB_ASSERT(b != NULL);
    b->world = w;
    b->host = h;
    gb_list_init(&b->calls);
    gb_list_init(&b->conns);
    struct gb_err err = gb_reactor_new(gb_reactor_random(w->reactor), &b->reactor);
    if (!gb_failed(err)) err = gb_metrics_new(&b->metrics);
    if (!gb_failed(err)) err = gb_ledger_new(0, &b->ledger);
    GB_ASSERT(!gb_failed(err));
    gb_reactor_set_now(b->reactor, sim_host_mono_ns(h), sim_host_wall_ms(h));
    gb_reactor_set_suspended(b->reactor, h->suspended_ns);
    if (w->cfg.instances > 0) b->member = sim_member_new(b);
    sim_store_port(&b->outbox, b);
    sim_dlq_port(&b->dlq, b);
    sim_subscriptions_port(&b->subscriptions, b);
    sim_net_port(&b->net, b);
    build_session(b);
    build_senders(b);
    if (b->member != NULL) sim_member_build(b->member);
    build_route(b);
    b->drain_count = w->cfg.shared_outbox ? sim_bridge_partitions(&w->cfg) : 0;
    for (size_t i = 0; i < b->drain_count; i++) build_drain(b, i);
    gb_route_start(b->route);
    if (b->member != NULL) {
        sim_member_start(b->member);
    } else {
        b->session->ops->start(b->session);
    }
    return b;
}

/* --- stop --- */

static void session_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    struct sim_bridge *b = arg;
    b->stopped = true;
    sim_bridge_end(b, "stopped");
}

static void stop_session(struct sim_bridge *b)
{
    if (b->member != NULL) {
        sim_member_close(b->member, &b->session_op, session_stopped);
        return;
    }
    b->session_op.deadline_ns = gb_reactor_now_ns(b->reactor) + (uint64_t)(2 * GB_SEC);
    b->session->ops->stop(b->session, &b->session_op, session_stopped, b);
}

static void drain_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    struct sim_bridge *b = arg;
    if (--b->drains_stopping == 0) stop_session(b);
}

static void route_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    struct sim_bridge *b = arg;
    b->drains_stopping = b->drain_count;
    if (b->drain_count == 0) stop_session(b);
    for (size_t i = 0; i < b->drain_count; i++) {
        struct sim_drain *d = &b->drains[i];
        gb_timer_stop(&d->again);
        d->stop_op.deadline_ns =
            gb_reactor_now_ns(b->reactor) + (uint64_t)(b->dead ? 0 : 10 * GB_SEC);
        gb_drainer_stop(d->drainer, &d->stop_op, drain_stopped, b);
    }
}

void sim_bridge_stop(struct sim_bridge *b)
{
    if (b->stopping) return;
    b->stopping = true;
    b->route_op.deadline_ns = gb_reactor_now_ns(b->reactor) + (uint64_t)(b->dead ? 0 : 25 * GB_SEC);
    gb_route_stop(b->route, &b->route_op, route_stopped, b);
}

void sim_bridge_run(struct sim_bridge *b)
{
    gb_reactor_run(b->reactor, sim_host_mono_ns(b->host), sim_host_wall_ms(b->host));
}

/* Runs the dead process in a time of its own until it has stopped and nothing is left to do. */
static void run_down(struct sim_bridge *b)
{
    uint64_t now_ns = gb_reactor_now_ns(b->reactor);
    for (unsigned turns = 0; turns < 100000; turns++) {
        uint64_t next_ns = gb_reactor_next_ns(b->reactor);
        bool session_ends = b->member != NULL && b->member->inner_stopping;
        if (b->stopped && !session_ends && next_ns > now_ns) return;
        if (next_ns == UINT64_MAX) break;
        if (next_ns > now_ns) now_ns = next_ns;
        gb_reactor_run(b->reactor, now_ns, sim_wall_ms(b->world));
    }
    sim_violate(b->world, "a process did not stop");
}

void sim_bridge_free(struct sim_bridge *b)
{
    b->dead = true;
    sim_net_process_gone(b);
    sim_call_end_all(b);
    if (b->member != NULL) sim_member_gone(b->member);
    sim_bridge_stop(b);
    run_down(b);
    if (!b->stopped) return; /* reported; its memory is left */
    for (size_t i = 0; i < b->drain_count; i++) {
        gb_timer_deinit(&b->drains[i].again);
        gb_drainer_free(b->drains[i].drainer);
        gb_local_authority_deinit(&b->drains[i].authority);
    }
    gb_route_free(b->route);
    sim_member_free(b->member);
    b->session->ops->free(b->session);
    gb_ledger_free(b->ledger);
    gb_metrics_free(b->metrics);
    gb_reactor_free(b->reactor);
    free(b);
}

/* --- checks --- */

uint64_t sim_bridge_drops(const struct sim_bridge *b)
{
    return gb_metrics_sum(b->metrics, "MessagesDropped") +
           gb_metrics_sum(b->metrics, "MessagesExpired");
}

void sim_bridge_check_bounds(struct sim_bridge *b)
{
    const struct sim_cfg *c = &b->world->cfg;
    struct gb_route_state s;
    gb_route_get_state(b->route, &s);
    size_t calls = 0;
    for (struct gb_list_node *n = gb_list_first(&b->calls); n != NULL;
         n = gb_list_next(&b->calls, n))
        calls++;
    /* Each delivery one, each partition one depth query, each drainer its batch and one more. */
    size_t limit = c->policy.max_in_flight + 4 + b->drain_count * (c->drain.max_batch_size + 4);
    if (s.in_flight > c->policy.max_in_flight || calls > limit) {
        sim_violate(b->world, "%u deliveries in flight, %zu calls out, limits %u and %zu",
                    s.in_flight, calls, c->policy.max_in_flight, limit);
    }
}

/* Replays of a removed filter never reached the route: they are left out (spec 02 §4.2). */
static void count_ends(void *arg, enum gb_metric_kind kind, const char *name,
                       const struct gb_dimension *dimensions, size_t count,
                       const struct gb_metric *metric)
{
    static const char *const ends[] = {"MessagesSent", "MessagesDropped", "MessagesExpired",
                                       "DLQEntries", "DLQDuplicateSuppressed"};
    uint64_t *sum = arg;
    if (kind != GB_METRIC_COUNTER) return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(dimensions[i].value, "subscription_removed") == 0) return;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(name, ends[i]) == 0) *sum += metric->count;
}

void sim_bridge_check_conservation(struct sim_bridge *b)
{
    const struct sim_tap *t = &b->tap;
    struct gb_route_state s;
    gb_route_get_state(b->route, &s);
    if (t->taken != t->acks + t->retries + t->abandons + s.in_flight) {
        sim_violate(b->world, "taken %llu, but acknowledged %llu, handed back %llu, abandoned %llu",
                    (unsigned long long)t->taken, (unsigned long long)t->acks,
                    (unsigned long long)t->retries, (unsigned long long)t->abandons);
    }
    if (b->world->cfg.shared_outbox || s.in_flight > 0) return;
    uint64_t sum = t->retries + t->abandons;
    gb_metrics_visit(b->metrics, count_ends, &sum);
    uint64_t received = gb_metrics_sum(b->metrics, "MessagesReceived");
    if (sum != received) {
        sim_violate(b->world, "received %llu, but %llu ends", (unsigned long long)received,
                    (unsigned long long)sum);
    }
}
