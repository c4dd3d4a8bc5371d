#include "adapters/mqtt/mqtt_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_egress.h"
#include "adapters/mqtt/mqtt_reason.h"
#include "base/log.h"

enum exchange_state {
    EXCHANGE_FREE = 0,
    EXCHANGE_WAITING,   /* no id yet: the window is full */
    EXCHANGE_PUBLISHED, /* PUBLISH written, answer outstanding */
    EXCHANGE_RELEASED,  /* QoS 2: PUBREL written, PUBCOMP outstanding */
    EXCHANGE_WRITING,   /* QoS 0: in the outgoing buffer */
};

enum { PUBREL = 0x62, DUP = 0x08, PACKET_ID_NOT_FOUND = 0x92, QUOTA_EXCEEDED = 0x97 };

struct exchange {
    struct gb_list_node node; /* in waiting, writing or idle */
    struct gb_mqtt_publisher *publisher;
    struct gb_send *send; /* NULL: the caller got its answer (timed out, cancelled) */
    const struct gb_mqtt_publish_options *options;
    struct gb_str packet; /* QoS > 0: kept for a resend until PUBACK or PUBREC */
    struct gb_timer deadline;
    enum exchange_state state;
    uint16_t id;
    uint8_t qos;
    uint64_t started_ns;
};

struct gb_mqtt_publisher {
    struct gb_mqtt_publisher_cfg cfg;
    struct gb_mqtt_publisher_peer peer;
    bool up;
    struct exchange *by_id[GB_MQTT_EXCHANGES_MAX + 1]; /* index = packet id; 0 unused */
    uint32_t in_flight;
    uint16_t last_id;
    bool was_up;    /* there was a connection since the session was started */
    bool inherited; /* the broker's session is older than that: see clear_id */
    bool cleared[GB_MQTT_EXCHANGES_MAX + 1]; /* the broker answered a QoS 2 publish of this id */
    size_t pending;
    struct gb_list waiting; /* in order of send */
    struct gb_list writing;
    struct gb_list idle; /* for reuse */
    struct gb_metric *latency, *failures, *egress_rejected, *non_string_dropped;
};

static void set_state(struct exchange *x, enum exchange_state next)
{
    GB_ASSERT(next == EXCHANGE_FREE || next > x->state ||
              (x->state == EXCHANGE_RELEASED && next == EXCHANGE_RELEASED));
    x->state = next;
}

static void deadline_passed(struct gb_timer *t);

struct gb_err gb_mqtt_publisher_new(const struct gb_mqtt_publisher_cfg *cfg,
                                    struct gb_mqtt_publisher **out)
{
    struct gb_mqtt_publisher *p = calloc(1, sizeof *p);
    if (p == NULL) return gb_err_no_memory("MQTT publisher");
    p->cfg = *cfg;
    gb_list_init(&p->waiting);
    gb_list_init(&p->writing);
    gb_list_init(&p->idle);
    p->latency = gb_metrics_get(cfg->metrics, GB_METRIC_TIMER, "MQTTPublishLatency",
                                GB_DIMS({"session_id", cfg->session_id}));
    p->failures = gb_metrics_get(cfg->metrics, GB_METRIC_COUNTER, "MQTTPublishFailures",
                                 GB_DIMS({"session_id", cfg->session_id}));
    p->egress_rejected =
        gb_metrics_get(cfg->metrics, GB_METRIC_COUNTER, "MQTTEgressRejected", NULL, 0);
    p->non_string_dropped =
        gb_metrics_get(cfg->metrics, GB_METRIC_COUNTER, "MQTTNonStringHeaderDropped", NULL, 0);
    *out = p;
    return gb_ok();
}

static void free_exchange(struct exchange *x)
{
    gb_timer_deinit(&x->deadline);
    gb_str_deinit(&x->packet);
    free(x);
}

void gb_mqtt_publisher_free(struct gb_mqtt_publisher *p)
{
    if (p == NULL) return;
    GB_ASSERT(p->pending == 0);
    for (size_t id = 1; id <= GB_MQTT_EXCHANGES_MAX; id++)
        if (p->by_id[id] != NULL) free_exchange(p->by_id[id]);
    struct gb_list_node *n;
    while ((n = gb_list_pop(&p->idle)) != NULL)
        free_exchange(GB_CONTAINER_OF(n, struct exchange, node));
    free(p);
}

bool gb_mqtt_publisher_is_up(const struct gb_mqtt_publisher *p)
{
    return p->up;
}

size_t gb_mqtt_publisher_pending(const struct gb_mqtt_publisher *p)
{
    return p->pending;
}

static struct exchange *take_exchange(struct gb_mqtt_publisher *p)
{
    struct gb_list_node *n = gb_list_pop(&p->idle);
    if (n != NULL) return GB_CONTAINER_OF(n, struct exchange, node);
    struct exchange *x = calloc(1, sizeof *x);
    if (x == NULL) return NULL;
    x->publisher = p;
    if (gb_failed(gb_timer_init(&x->deadline, p->cfg.reactor, deadline_passed))) {
        free(x);
        return NULL;
    }
    return x;
}

/* The caller gets its answer; the exchange itself may live on. */
static void answer(struct exchange *x, struct gb_err result)
{
    struct gb_mqtt_publisher *p = x->publisher;
    struct gb_send *send = x->send;
    if (send == NULL) return;
    x->send = NULL;
    gb_timer_stop(&x->deadline);
    p->pending--;
    if (result.code == GB_OK) {
        gb_metric_time(p->latency, (int64_t)(gb_reactor_now_ns(p->cfg.reactor) - x->started_ns));
    } else if (result.code != GB_CANCELLED) {
        gb_metric_add(p->failures, 1);
    }
    gb_op_finish(&send->op, result);
}

/* The exchange is over: its id is free. */
static void retire(struct exchange *x)
{
    struct gb_mqtt_publisher *p = x->publisher;
    GB_ASSERT(x->send == NULL);
    if (x->id != 0) {
        p->by_id[x->id] = NULL;
        p->in_flight--;
        x->id = 0;
    }
    gb_list_remove(&x->node);
    if (x->packet.capacity > 4096) {
        gb_str_deinit(&x->packet);
    } else {
        gb_str_clear(&x->packet);
    }
    set_state(x, EXCHANGE_FREE);
    gb_list_push(&p->idle, &x->node);
}

static uint32_t window(const struct gb_mqtt_publisher *p)
{
    uint32_t limit = p->peer.receive_maximum == 0 ? 65535 : p->peer.receive_maximum;
    return limit < GB_MQTT_EXCHANGES_MAX ? limit : GB_MQTT_EXCHANGES_MAX;
}

static uint16_t next_id(struct gb_mqtt_publisher *p)
{
    do {
        p->last_id = p->last_id == GB_MQTT_EXCHANGES_MAX ? 1 : (uint16_t)(p->last_id + 1);
    } while (p->by_id[p->last_id] != NULL);
    return p->last_id;
}

static void append_pubrel(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason)
{
    char bytes[5] = {(char)PUBREL, 2, (char)(id >> 8), (char)id, (char)reason};
    if (reason != 0) bytes[1] = 3;
    gb_str_append(p->cfg.tx, gb_bytes(bytes, reason != 0 ? 5 : 4));
    p->cfg.flush(p->cfg.arg);
}

/* A process that crashed may have left this id at the broker as received and not released. A new
 * QoS 2 message under it would pass for the old one there and be lost without a word, so the id is
 * released first, until the broker has answered once. PUBCOMP for an id it does not know is no
 * error (MQTT 5.0 §4.3.3, §3.7.2.1). */
static void clear_id(struct gb_mqtt_publisher *p, const struct exchange *x)
{
    if (p->inherited && x->qos == 2 && !p->cleared[x->id]) append_pubrel(p, x->id, 0);
}

/* Encodes and queues one waiting exchange for this connection. A local refusal ends the send (spec
 * 03 §6.2). */
static void publish(struct exchange *x)
{
    struct gb_mqtt_publisher *p = x->publisher;
    struct gb_mqtt_egress egress = {
        .v5 = p->peer.v5,
        .default_topic = x->options->default_topic,
        .qos = x->qos,
        .retain = x->options->retain,
        .maximum_packet_size = p->peer.maximum_packet_size,
        .maximum_qos = p->peer.maximum_qos,
        .retain_available = p->peer.retain_available,
        .now_ms = gb_reactor_wall_ms(p->cfg.reactor),
    };
    uint32_t dropped = 0;
    uint16_t id = x->qos > 0 ? next_id(p) : 0;
    struct gb_str *out = x->qos > 0 ? &x->packet : p->cfg.tx;
    struct gb_err err =
        gb_mqtt_egress_encode(&egress, x->send->envelope, x->send->address, id, out, &dropped);
    gb_list_remove(&x->node);
    if (gb_failed(err)) {
        if (!gb_err_is_transient(&err)) gb_metric_add(p->egress_rejected, 1);
        answer(x, err);
        retire(x);
        return;
    }
    gb_metric_add(p->non_string_dropped, dropped);
    if (x->qos > 0) {
        x->id = id;
        p->by_id[id] = x;
        p->in_flight++;
        set_state(x, EXCHANGE_PUBLISHED);
        clear_id(p, x);
        gb_str_append(p->cfg.tx, gb_str_bytes(&x->packet));
    } else {
        set_state(x, EXCHANGE_WRITING);
        gb_list_push(&p->writing, &x->node);
    }
    p->cfg.flush(p->cfg.arg);
}

static void publish_waiting(struct gb_mqtt_publisher *p)
{
    struct gb_list_node *n = gb_list_first(&p->waiting);
    while (p->up && n != NULL) {
        struct exchange *x = GB_CONTAINER_OF(n, struct exchange, node);
        if (x->qos > 0 && p->in_flight >= window(p)) return; /* order is kept: QoS 0 waits too */
        publish(x);
        n = gb_list_first(&p->waiting);
    }
}

/* Ends the caller's wait. Before the PUBLISH went out nothing is left; afterwards the broker still
 * owes an answer, so the id stays taken. */
static void give_up(struct exchange *x, struct gb_err why)
{
    answer(x, why);
    if (x->state == EXCHANGE_WAITING) retire(x);
}

static void deadline_passed(struct gb_timer *t)
{
    struct exchange *x = GB_CONTAINER_OF(t, struct exchange, deadline);
    give_up(x, gb_err(GB_TIMEOUT, "MQTT session %s: the broker did not confirm the publish in time",
                      x->publisher->cfg.session_id));
}

static void cancel(struct gb_op *op)
{
    give_up(op->provider, (struct gb_err){.code = GB_CANCELLED});
}

static void refuse(struct gb_mqtt_publisher *p, struct gb_send *q, struct gb_err err,
                   gb_done_fn *done, void *arg)
{
    gb_metric_add(p->failures, 1);
    gb_op_start(&q->op, p->cfg.reactor, done, arg, NULL, NULL);
    gb_op_finish(&q->op, err);
}

void gb_mqtt_publisher_send(struct gb_mqtt_publisher *p,
                            const struct gb_mqtt_publish_options *options, struct gb_send *q,
                            gb_done_fn *done, void *arg)
{
    if (!p->up) {
        refuse(p, q,
               gb_err(GB_CONNECTION_LOST, "MQTT session %s is not connected", p->cfg.session_id),
               done, arg);
        return;
    }
    struct exchange *x = take_exchange(p);
    if (x == NULL) {
        refuse(p, q, gb_err_no_memory("MQTT publish"), done, arg);
        return;
    }
    uint64_t now_ns = gb_reactor_now_ns(p->cfg.reactor);
    uint64_t deadline_ns = now_ns + (uint64_t)options->timeout_ns;
    if (q->op.deadline_ns > 0 && q->op.deadline_ns < deadline_ns) deadline_ns = q->op.deadline_ns;
    gb_op_start(&q->op, p->cfg.reactor, done, arg, cancel, x);
    p->pending++;
    x->send = q;
    x->options = options;
    x->qos = options->qos;
    x->started_ns = now_ns;
    set_state(x, EXCHANGE_WAITING);
    gb_list_push(&p->waiting, &x->node);
    gb_timer_start(&x->deadline, deadline_ns);
    publish_waiting(p);
}

static void fail_exchange(struct exchange *x)
{
    answer(x, gb_err(GB_CONNECTION_LOST,
                     "MQTT session %s lost its connection before the broker confirmed",
                     x->publisher->cfg.session_id));
    retire(x);
}

static void fail_list(struct gb_list *list)
{
    struct gb_list_node *n;
    while ((n = gb_list_first(list)) != NULL)
        fail_exchange(GB_CONTAINER_OF(n, struct exchange, node));
}

/* Spec 03 §11: Session Present 1 resends what is open, 0 fails it. */
void gb_mqtt_publisher_up(struct gb_mqtt_publisher *p, const struct gb_mqtt_publisher_peer *peer,
                          bool session_present)
{
    p->peer = *peer;
    p->up = true;
    p->inherited = session_present && (p->inherited || !p->was_up);
    p->was_up = true;
    for (size_t id = 1; id <= GB_MQTT_EXCHANGES_MAX; id++) {
        struct exchange *x = p->by_id[id];
        if (x == NULL) continue;
        bool too_large =
            peer->maximum_packet_size > 0 && x->packet.size > peer->maximum_packet_size;
        if (!session_present || (x->state == EXCHANGE_PUBLISHED && too_large)) {
            fail_exchange(x);
        } else if (x->state == EXCHANGE_RELEASED) {
            append_pubrel(p, x->id, 0);
        } else {
            x->packet.data[0] = (char)(x->packet.data[0] | DUP);
            clear_id(p, x);
            gb_str_append(p->cfg.tx, gb_str_bytes(&x->packet));
            p->cfg.flush(p->cfg.arg);
        }
    }
    publish_waiting(p);
}

void gb_mqtt_publisher_down(struct gb_mqtt_publisher *p, bool keep)
{
    p->up = false;
    if (!keep) { /* other owners of the session may leave ids behind until it comes up again */
        p->was_up = false;
        memset(p->cleared, 0, sizeof p->cleared);
    }
    fail_list(&p->waiting);
    fail_list(&p->writing);
    for (size_t id = 1; id <= GB_MQTT_EXCHANGES_MAX && !keep; id++)
        if (p->by_id[id] != NULL) fail_exchange(p->by_id[id]);
}

void gb_mqtt_publisher_written(struct gb_mqtt_publisher *p)
{
    struct gb_list_node *n;
    while ((n = gb_list_first(&p->writing)) != NULL) {
        struct exchange *x = GB_CONTAINER_OF(n, struct exchange, node);
        answer(x, gb_ok());
        retire(x);
    }
}

static struct exchange *find(struct gb_mqtt_publisher *p, uint16_t id, uint8_t qos)
{
    struct exchange *x = id <= GB_MQTT_EXCHANGES_MAX ? p->by_id[id] : NULL;
    return x != NULL && x->qos == qos ? x : NULL;
}

static struct gb_err reason_of(const struct exchange *x, uint8_t reason)
{
    struct gb_err err = gb_mqtt_reason_puback(reason);
    if (reason == QUOTA_EXCEEDED) err.retry_after_ns = x->options->throttle_retry_after_ns;
    return err;
}

static void end_exchange(struct exchange *x, uint8_t reason)
{
    struct gb_mqtt_publisher *p = x->publisher;
    answer(x, reason_of(x, reason));
    retire(x);
    publish_waiting(p);
}

void gb_mqtt_publisher_puback(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason)
{
    struct exchange *x = find(p, id, 1);
    if (x != NULL) end_exchange(x, reason);
}

void gb_mqtt_publisher_pubrec(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason)
{
    struct exchange *x = find(p, id, 2);
    if (x != NULL) p->cleared[id] = true;
    if (x == NULL) {
        append_pubrel(p, id, p->peer.v5 ? PACKET_ID_NOT_FOUND : 0);
    } else if (reason >= 0x80) {
        end_exchange(x, reason); /* the broker refused: the exchange ends without PUBREL */
    } else {
        set_state(x, EXCHANGE_RELEASED);
        gb_str_deinit(&x->packet);
        append_pubrel(p, id, 0);
    }
}

void gb_mqtt_publisher_pubcomp(struct gb_mqtt_publisher *p, uint16_t id, uint8_t reason)
{
    struct exchange *x = find(p, id, 2);
    if (x != NULL && x->state == EXCHANGE_RELEASED) end_exchange(x, reason);
}
