#include "adapters/mqtt/mqtt_inbound.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { UNMATCHED_BYTES_MAX = 64 * 1024 * 1024 };

enum delivery_place {
    PLACE_READY = 1, /* matched, waits for the route */
    PLACE_UNMATCHED,
    PLACE_HELD,  /* with the route, or with a replay */
    PLACE_ENDED, /* settled; its callback runs at the end of the turn */
};

struct delivery {
    struct gb_delivery base;
    struct gb_list_node node; /* in the list of its place */
    struct gb_mqtt_inbound *in;
    enum delivery_place place;
    uint8_t qos;
    uint64_t epoch;
    uint64_t seq;
    uint64_t received_ns;
    size_t size;
    char *topic; /* only while unmatched */
    struct gb_task settled_task;
    gb_settled_fn *settled;
    void *settled_arg;
    struct gb_err result;
};

struct gb_mqtt_inbound_metrics {
    struct gb_metric *ack_after_reconnect, *emit_recovering, *emit_lost, *router_dropped, *overflow,
        *unmatched_dropped, *covered_retained, *covered_dropped, *stale_purged, *buffered,
        *unsettled, *oldest_age, *utilization;
};

struct gb_mqtt_inbound {
    struct gb_receiver receiver;
    struct gb_mqtt_inbound_cfg cfg;
    struct gb_reactor *reactor;
    bool durable;
    uint64_t epoch; /* 0 = no live connection ever */
    bool live;      /* the epoch's connection is up: acknowledgements count */
    bool started, stopped, quiesced, blocked, pumping;
    bool route_ended; /* the receiver was stopped */
    struct gb_sink sink;
    struct gb_list ready, unmatched, held, idle;
    uint32_t queued; /* ready + unmatched */
    uint32_t held_count;
    size_t bytes; /* of all deliveries that are not idle */
    size_t unmatched_qos0_bytes;
    uint64_t grace_end_ns;
    struct gb_timer grace;
    struct gb_task pump_task;
    struct gb_mqtt_inbound_metrics m;
};

static void pump(struct gb_mqtt_inbound *in);
static void pump_later(struct gb_task *t);
static void grace_over(struct gb_timer *t);
static void settled_later(struct gb_task *t);
static const struct gb_delivery_ops delivery_ops;
static const struct gb_receiver_ops receiver_ops;

static struct delivery *of(struct gb_delivery *d)
{
    return GB_CONTAINER_OF(d, struct delivery, base);
}

static void init_metrics(struct gb_mqtt_inbound *in)
{
    struct gb_metrics *m = in->cfg.session->metrics;
    const char *id = in->cfg.session->id;
    const struct {
        struct gb_metric **handle;
        const char *name;
        enum gb_metric_kind kind;
    } rows[] = {
        {&in->m.ack_after_reconnect, "MQTTAckAfterReconnect", GB_METRIC_COUNTER},
        {&in->m.router_dropped, "MQTTRouterDropped", GB_METRIC_COUNTER},
        {&in->m.overflow, "MQTTRouterOverflowDropped", GB_METRIC_COUNTER},
        {&in->m.unmatched_dropped, "MQTTRouterUnmatchedDropped", GB_METRIC_COUNTER},
        {&in->m.covered_retained, "MQTTRouterCoveredRetained", GB_METRIC_COUNTER},
        {&in->m.covered_dropped, "MQTTRouterCoveredDropped", GB_METRIC_COUNTER},
        {&in->m.stale_purged, "MQTTRouterStalePurged", GB_METRIC_COUNTER},
        {&in->m.unsettled, "MQTTUnsettled", GB_METRIC_GAUGE},
        {&in->m.oldest_age, "MQTTOldestUnsettledAge", GB_METRIC_GAUGE},
        {&in->m.utilization, "MQTTReceiveWindowUtilization", GB_METRIC_GAUGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].handle =
            gb_metrics_get(m, rows[i].kind, rows[i].name, GB_DIMS({"session_id", id}));
    }
    in->m.buffered = gb_metrics_get(m, GB_METRIC_COUNTER, "MQTTRouterBuffered", NULL, 0);
    in->m.emit_recovering = gb_metrics_get(m, GB_METRIC_COUNTER, "MQTTReceiverEmitRejected",
                                           GB_DIMS({"session_id", id}, {"outcome", "recovering"}));
    in->m.emit_lost = gb_metrics_get(m, GB_METRIC_COUNTER, "MQTTReceiverEmitRejected",
                                     GB_DIMS({"session_id", id}, {"outcome", "lost"}));
}

struct gb_err gb_mqtt_inbound_new(const struct gb_mqtt_inbound_cfg *cfg,
                                  struct gb_mqtt_inbound **out)
{
    struct gb_mqtt_inbound *in = calloc(1, sizeof *in);
    if (in == NULL) return gb_err_no_memory("MQTT receiver");
    in->cfg = *cfg;
    in->reactor = cfg->session->reactor;
    in->durable = cfg->session->mode != GB_MQTT_EPHEMERAL;
    in->receiver = (struct gb_receiver){
        .ops = &receiver_ops, .id = cfg->session->receiver_id, .durable = in->durable};
    gb_list_init(&in->ready);
    gb_list_init(&in->unmatched);
    gb_list_init(&in->held);
    gb_list_init(&in->idle);
    in->pump_task.run = pump_later;
    struct gb_err err = gb_timer_init(&in->grace, in->reactor, grace_over);
    if (gb_failed(err)) {
        free(in);
        return err;
    }
    init_metrics(in);
    *out = in;
    return gb_ok();
}

static void free_list(struct gb_list *list)
{
    struct gb_list_node *n;
    while ((n = gb_list_pop(list)) != NULL) {
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        gb_envelope_unref(d->base.envelope);
        free(d->topic);
        free(d);
    }
}

void gb_mqtt_inbound_free(struct gb_mqtt_inbound *in)
{
    if (in == NULL) return;
    GB_ASSERT(in->held_count == 0);
    gb_task_cancel(&in->pump_task);
    gb_timer_deinit(&in->grace);
    free_list(&in->ready);
    free_list(&in->unmatched);
    free_list(&in->idle);
    free(in);
}

struct gb_receiver *gb_mqtt_inbound_receiver(struct gb_mqtt_inbound *in)
{
    return &in->receiver;
}

uint32_t gb_mqtt_inbound_held(const struct gb_mqtt_inbound *in)
{
    return in->held_count;
}

size_t gb_mqtt_inbound_bytes(const struct gb_mqtt_inbound *in)
{
    return in->bytes;
}

void gb_mqtt_inbound_overflow(struct gb_mqtt_inbound *in, uint64_t seq)
{
    gb_metric_add(in->m.overflow, 1);
    gb_mqtt_acks_settle(in->cfg.acks, seq, in->cfg.tx);
    in->cfg.flush(in->cfg.arg);
}

bool gb_mqtt_inbound_buffering(const struct gb_mqtt_inbound *in)
{
    return !gb_list_empty(&in->unmatched);
}

int64_t gb_mqtt_inbound_oldest_age_ms(const struct gb_mqtt_inbound *in)
{
    uint64_t oldest_ns = UINT64_MAX;
    const struct gb_list *lists[] = {&in->ready, &in->unmatched, &in->held};
    for (size_t i = 0; i < 3; i++) {
        for (struct gb_list_node *n = gb_list_first(lists[i]); n != NULL;
             n = gb_list_next(lists[i], n)) {
            const struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
            if (d->qos > 0 && d->received_ns < oldest_ns) oldest_ns = d->received_ns;
        }
    }
    uint64_t now_ns = gb_reactor_now_ns(in->reactor);
    return oldest_ns == UINT64_MAX ? 0 : (int64_t)((now_ns - oldest_ns) / 1000000);
}

static void update_gauges(struct gb_mqtt_inbound *in)
{
    uint32_t unsettled = gb_mqtt_acks_unsettled(in->cfg.acks);
    gb_metric_set(in->m.unsettled, unsettled);
    gb_metric_set(in->m.utilization, (double)unsettled / (double)in->cfg.session->receive_maximum);
}

/* Takes the delivery out of its place's list and counts. */
static void leave_place(struct delivery *d)
{
    struct gb_mqtt_inbound *in = d->in;
    gb_list_remove(&d->node);
    if (d->place == PLACE_READY || d->place == PLACE_UNMATCHED) in->queued--;
    if (d->place == PLACE_UNMATCHED && d->qos == 0)
        in->unmatched_qos0_bytes -= d->base.envelope->payload.size;
}

static void enter_place(struct delivery *d, enum delivery_place place)
{
    struct gb_mqtt_inbound *in = d->in;
    struct gb_list *list = place == PLACE_READY       ? &in->ready
                           : place == PLACE_UNMATCHED ? &in->unmatched
                                                      : &in->held;
    d->place = place;
    gb_list_push(list, &d->node);
    if (place == PLACE_HELD) {
        in->held_count++;
    } else {
        in->queued++;
    }
    if (place == PLACE_UNMATCHED && d->qos == 0)
        in->unmatched_qos0_bytes += d->base.envelope->payload.size;
}

static void recycle_memory(struct delivery *d)
{
    gb_envelope_unref(d->base.envelope);
    free(d->topic);
    struct gb_mqtt_inbound *in = d->in;
    in->bytes -= d->size;
    memset(d, 0, sizeof *d);
    d->in = in;
    d->settled_task.run = settled_later;
    gb_list_push(&in->idle, &d->node);
}

/* Appends the acknowledgement if the delivery's connection still lives (spec 03 §5.1). */
static bool acknowledge(struct delivery *d)
{
    struct gb_mqtt_inbound *in = d->in;
    if (d->qos == 0) return true;
    if (!in->live || d->epoch != in->epoch) {
        gb_metric_add(in->m.ack_after_reconnect, 1);
        return false;
    }
    gb_mqtt_acks_settle(in->cfg.acks, d->seq, in->cfg.tx);
    in->cfg.flush(in->cfg.arg);
    return true;
}

static void discard(struct delivery *d, bool with_ack)
{
    if (with_ack) acknowledge(d);
    leave_place(d);
    recycle_memory(d);
}

static void settled_later(struct gb_task *t)
{
    struct delivery *d = GB_CONTAINER_OF(t, struct delivery, settled_task);
    gb_settled_fn *settled = d->settled;
    void *arg = d->settled_arg;
    struct gb_err result = d->result;
    recycle_memory(d);
    if (settled != NULL) settled(arg, result);
}

static void end_held(struct delivery *d, struct gb_err result, gb_settled_fn *settled, void *arg)
{
    struct gb_mqtt_inbound *in = d->in;
    GB_ASSERT(d->place == PLACE_HELD); /* acknowledge and retry exclude each other */
    gb_list_remove(&d->node);
    d->place = PLACE_ENDED;
    d->settled = settled;
    d->settled_arg = arg;
    d->result = result;
    in->held_count--;
    gb_reactor_defer(in->reactor, &d->settled_task);
    update_gauges(in);
    if (in->held_count == 0) in->cfg.drained(in->cfg.arg);
}

static void delivery_ack(struct gb_delivery *base, gb_settled_fn *settled, void *arg)
{
    struct delivery *d = of(base);
    struct gb_err result = gb_ok();
    if (!acknowledge(d)) {
        result = gb_err(GB_CONNECTION_LOST,
                        "the connection that delivered the message is gone; it comes again");
    }
    end_held(d, result, settled, arg);
}

static void delivery_retry(struct gb_delivery *base, int64_t delay_ns, gb_settled_fn *settled,
                           void *arg)
{
    struct delivery *d = of(base);
    struct gb_mqtt_inbound *in = d->in;
    (void)delay_ns; /* the broker decides when it redelivers (spec 02 §4.3) */
    GB_ASSERT(base->can_retry);
    bool current = in->live && d->epoch == in->epoch;
    end_held(d, gb_ok(), settled, arg);
    if (current) in->cfg.recycle(in->cfg.arg);
}

static void delivery_abandon(struct gb_delivery *base)
{
    end_held(of(base), gb_ok(), NULL, NULL);
}

static const struct gb_delivery_ops delivery_ops = {
    .ack = delivery_ack, .retry = delivery_retry, .abandon = delivery_abandon};

/* The route takes nothing any more (spec 03 §5.3). */
static void emit_refused(struct delivery *d)
{
    struct gb_mqtt_inbound *in = d->in;
    bool recovering = in->durable && d->qos > 0;
    gb_metric_add(recovering ? in->m.emit_recovering : in->m.emit_lost, 1);
    discard(d, !recovering);
    if (recovering) in->cfg.recycle(in->cfg.arg);
}

static void pump(struct gb_mqtt_inbound *in)
{
    if (in->pumping) return;
    in->pumping = true;
    while (in->started && !in->stopped && !in->route_ended && !in->quiesced && !in->blocked) {
        struct gb_list_node *n = gb_list_first(&in->ready);
        if (n == NULL) break;
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        leave_place(d);
        enter_place(d, PLACE_HELD);
        enum gb_emit e = in->sink.emit(in->sink.arg, &d->base);
        if (e == GB_EMIT_TAKEN) continue;
        in->held_count--;
        gb_list_remove(&d->node);
        d->place = PLACE_READY;
        gb_list_push_front(&in->ready, &d->node);
        in->queued++;
        if (e == GB_EMIT_REFUSED) {
            emit_refused(d);
        } else {
            in->blocked = true;
        }
    }
    in->pumping = false;
}

static void pump_later(struct gb_task *t)
{
    pump(GB_CONTAINER_OF(t, struct gb_mqtt_inbound, pump_task));
}

/* A wanted filter covers it: it may go to the route. Removed filters wait for their window (spec 03
 * §8.3). */
static bool is_covered(const struct gb_mqtt_inbound *in, struct gb_bytes topic)
{
    return gb_mqtt_reconcile_wants(in->cfg.reconcile, topic);
}

static bool evict_unmatched_qos0(struct gb_mqtt_inbound *in)
{
    for (struct gb_list_node *n = gb_list_first(&in->unmatched); n != NULL;
         n = gb_list_next(&in->unmatched, n)) {
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        if (d->qos > 0) continue;
        gb_metric_add(in->m.router_dropped, 1);
        discard(d, false);
        return true;
    }
    return false;
}

/* Spec 03 §6.4: QoS 0 is dropped when the queue is full; QoS 1/2 is bounded by the window and
 * evicts QoS 0. */
static bool has_room(struct gb_mqtt_inbound *in, const struct gb_mqtt_message *m)
{
    if (in->queued < in->cfg.session->receive_maximum) return true;
    if (m->qos > 0) {
        evict_unmatched_qos0(in);
        return true;
    }
    gb_metric_add(in->m.router_dropped, 1);
    return false;
}

static struct delivery *take_delivery(struct gb_mqtt_inbound *in)
{
    struct gb_list_node *n = gb_list_pop(&in->idle);
    if (n != NULL) return GB_CONTAINER_OF(n, struct delivery, node);
    struct delivery *d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    d->in = in;
    d->settled_task.run = settled_later;
    return d;
}

static void no_memory(struct gb_mqtt_inbound *in, const struct gb_mqtt_message *m)
{
    gb_envelope_unref(m->envelope);
    bool recovering = in->durable && m->qos > 0;
    gb_metric_add(recovering ? in->m.emit_recovering : in->m.emit_lost, 1);
    if (recovering) {
        in->cfg.recycle(in->cfg.arg);
    } else if (m->qos > 0 && in->live) {
        gb_mqtt_acks_settle(in->cfg.acks, m->seq, in->cfg.tx);
    }
}

/* No filter matches and no window is open: a subscription that we don't know (spec 03 §7 item
 * 4). */
static void orphan(struct delivery *d)
{
    struct gb_mqtt_inbound *in = d->in;
    gb_metric_add(in->m.unmatched_dropped, 1);
    if (!in->durable) in->cfg.orphan(in->cfg.arg, gb_bytes_c(d->topic));
    discard(d, true);
}

void gb_mqtt_inbound_accept(struct gb_mqtt_inbound *in, const struct gb_mqtt_message *m)
{
    if (!has_room(in, m)) {
        gb_envelope_unref(m->envelope);
        return;
    }
    struct delivery *d = take_delivery(in);
    bool covered = is_covered(in, m->topic);
    if (d != NULL && !covered) d->topic = gb_bytes_dup(m->topic);
    if (d == NULL || (!covered && d->topic == NULL)) {
        if (d != NULL) gb_list_push(&in->idle, &d->node);
        no_memory(in, m);
        return;
    }
    d->base = (struct gb_delivery){
        .ops = &delivery_ops,
        .envelope = m->envelope,
        .derived = m->derived,
        .can_retry = in->durable && m->qos > 0,
    };
    d->qos = m->qos;
    d->epoch = in->epoch;
    d->seq = m->seq;
    d->size = m->size;
    in->bytes += m->size;
    d->received_ns = gb_reactor_now_ns(in->reactor);
    enter_place(d, covered ? PLACE_READY : PLACE_UNMATCHED);
    update_gauges(in);
    if (covered) {
        gb_reactor_defer(in->reactor, &in->pump_task);
        return;
    }
    bool removing = gb_mqtt_reconcile_removing(in->cfg.reconcile, m->topic) != NULL;
    bool in_grace = d->received_ns < in->grace_end_ns;
    if (removing || in_grace) gb_metric_add(in->m.buffered, 1);
    if (d->qos == 0 && in->unmatched_qos0_bytes > UNMATCHED_BYTES_MAX) {
        gb_metric_add(in->m.router_dropped, 1);
        discard(d, false);
    } else if (!removing && !in_grace) {
        orphan(d);
    }
}

/* The grace after a connect is over: messages of filters on their way out stay, others are
 * orphans. */
static void grace_over(struct gb_timer *t)
{
    struct gb_mqtt_inbound *in = GB_CONTAINER_OF(t, struct gb_mqtt_inbound, grace);
    if (!in->started) {
        for (struct gb_list_node *n = gb_list_first(&in->ready); n != NULL;
             n = gb_list_next(&in->ready, n))
            gb_metric_add(in->m.covered_retained, 1);
    }
    gb_mqtt_inbound_rematch(in);
}

void gb_mqtt_inbound_rematch(struct gb_mqtt_inbound *in)
{
    struct gb_list_node *n = gb_list_first(&in->unmatched);
    bool in_grace = gb_reactor_now_ns(in->reactor) < in->grace_end_ns;
    while (n != NULL) {
        struct gb_list_node *next = gb_list_next(&in->unmatched, n);
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        struct gb_bytes topic = gb_bytes_c(d->topic);
        if (is_covered(in, topic)) {
            leave_place(d);
            enter_place(d, PLACE_READY);
        } else if (!in_grace && gb_mqtt_reconcile_removing(in->cfg.reconcile, topic) == NULL) {
            orphan(d);
        }
        n = next;
    }
    gb_reactor_defer(in->reactor, &in->pump_task);
}

struct gb_delivery *gb_mqtt_inbound_next_replay(struct gb_mqtt_inbound *in, const char **filter)
{
    for (struct gb_list_node *n = gb_list_first(&in->unmatched); n != NULL;
         n = gb_list_next(&in->unmatched, n)) {
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        *filter = gb_mqtt_reconcile_removing(in->cfg.reconcile, gb_bytes_c(d->topic));
        if (*filter == NULL || is_covered(in, gb_bytes_c(d->topic))) continue;
        leave_place(d);
        enter_place(d, PLACE_HELD);
        return &d->base;
    }
    return NULL;
}

void gb_mqtt_inbound_replay_done(struct gb_mqtt_inbound *in, struct gb_delivery *base, bool ack)
{
    struct delivery *d = of(base);
    if (ack) {
        delivery_ack(base, NULL, NULL);
        return;
    }
    if (in->live &&
        d->epoch == in->epoch) { /* back to the buffer: tried again with the next pass */
        in->held_count--;
        gb_list_remove(&d->node);
        enter_place(d, PLACE_UNMATCHED);
    } else {
        delivery_abandon(base);
    }
}

void gb_mqtt_inbound_connected(struct gb_mqtt_inbound *in)
{
    in->epoch++;
    in->live = true;
    in->quiesced = false;
    in->grace_end_ns =
        gb_reactor_now_ns(in->reactor) + (uint64_t)in->cfg.session->unmatched_grace_ns;
    gb_timer_start(&in->grace, in->grace_end_ns);
    gb_reactor_defer(in->reactor, &in->pump_task);
    update_gauges(in);
}

/* Queued QoS 1/2 of this epoch can't be acknowledged any more: durable sessions get them again,
 * ephemeral ones lost them with the connection; QoS 0 was delivered once and stays. */
static void drop_queued(struct gb_mqtt_inbound *in, struct gb_list *list, bool qos0_too)
{
    struct gb_list_node *n = gb_list_first(list);
    while (n != NULL) {
        struct gb_list_node *next = gb_list_next(list, n);
        struct delivery *d = GB_CONTAINER_OF(n, struct delivery, node);
        if (d->qos > 0 || qos0_too) {
            if (qos0_too) gb_metric_add(in->m.stale_purged, 1);
            leave_place(d);
            recycle_memory(d);
        }
        n = next;
    }
}

void gb_mqtt_inbound_disconnected(struct gb_mqtt_inbound *in)
{
    in->live = false;
    gb_timer_stop(&in->grace);
    drop_queued(in, &in->ready, false);
    drop_queued(in, &in->unmatched, false);
}

void gb_mqtt_inbound_quiesce(struct gb_mqtt_inbound *in)
{
    in->quiesced = true;
    drop_queued(in, &in->ready, true);
    drop_queued(in, &in->unmatched, true);
}

void gb_mqtt_inbound_stop(struct gb_mqtt_inbound *in)
{
    in->stopped = true;
}

void gb_mqtt_inbound_start(struct gb_mqtt_inbound *in)
{
    in->stopped = false;
}

static void receiver_start(struct gb_receiver *r, struct gb_sink sink)
{
    struct gb_mqtt_inbound *in = GB_CONTAINER_OF(r, struct gb_mqtt_inbound, receiver);
    in->sink = sink;
    in->started = true;
    gb_reactor_defer(in->reactor, &in->pump_task);
}

static void receiver_resume(struct gb_receiver *r)
{
    struct gb_mqtt_inbound *in = GB_CONTAINER_OF(r, struct gb_mqtt_inbound, receiver);
    in->blocked = false;
    gb_reactor_defer(in->reactor, &in->pump_task);
}

static void receiver_stop(struct gb_receiver *r)
{
    GB_CONTAINER_OF(r, struct gb_mqtt_inbound, receiver)->route_ended = true;
}

static const struct gb_receiver_ops receiver_ops = {
    .start = receiver_start, .resume = receiver_resume, .stop = receiver_stop};
