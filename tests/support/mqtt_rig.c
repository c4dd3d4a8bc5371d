#include "support/mqtt_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const int64_t wall_start_ms = 1800000000000;

/* --- history store ---------------------------------------------------------------------------- */

static struct mqtt_rig_history *history_of(struct gb_subscriptions *s)
{
    return GB_CONTAINER_OF(s, struct mqtt_rig_history, port);
}

static struct mqtt_rig *rig_of(struct mqtt_rig_history *h)
{
    return GB_CONTAINER_OF(h, struct mqtt_rig, history);
}

static size_t find_filter(const struct mqtt_rig_history *h, const char *filter)
{
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->filters[i], filter) == 0) return i;
    return h->count;
}

static void add_filter(struct mqtt_rig_history *h, const char *filter)
{
    if (find_filter(h, filter) < h->count) return;
    GB_ASSERT(h->count < MQTT_RIG_FILTERS);
    h->filters[h->count++] = gb_strdup(filter);
}

static void cancel_held(struct gb_op *op)
{
    struct mqtt_rig_history *h = op->provider;
    h->held = NULL;
    gb_op_finish(op, (struct gb_err){.code = GB_CANCELLED});
}

static bool begin(struct mqtt_rig_history *h, struct gb_op *op, gb_done_fn *done, void *arg)
{
    gb_op_start(op, rig_of(h)->reactor, done, arg, cancel_held, h);
    if (h->hold) {
        h->held = op;
        return false;
    }
    if (h->fail == GB_OK) return true;
    gb_op_finish(op, gb_err(h->fail, "scripted failure"));
    return false;
}

static void history_list(struct gb_subscriptions *s, struct gb_subscriptions_list *q,
                         gb_done_fn *done, void *arg)
{
    struct mqtt_rig_history *h = history_of(s);
    h->lists++;
    if (!begin(h, &q->op, done, arg)) return;
    if (!h->seeded) {
        gb_op_finish(&q->op, gb_err(GB_NOT_FOUND, "no baseline"));
        return;
    }
    q->filters.filters = calloc(h->count + 1, sizeof(char *));
    for (size_t i = 0; i < h->count; i++)
        q->filters.filters[q->filters.count++] = gb_strdup(h->filters[i]);
    gb_op_finish(&q->op, gb_ok());
}

static void history_remember(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                             gb_done_fn *done, void *arg)
{
    struct mqtt_rig_history *h = history_of(s);
    h->remembers++;
    if (!begin(h, &q->op, done, arg)) return;
    h->seeded = true;
    for (size_t i = 0; i < q->count; i++) add_filter(h, q->filters[i]);
    gb_op_finish(&q->op, gb_ok());
}

static void history_forget(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                           gb_done_fn *done, void *arg)
{
    struct mqtt_rig_history *h = history_of(s);
    h->forgets++;
    if (!begin(h, &q->op, done, arg)) return;
    for (size_t i = 0; i < q->count; i++) {
        size_t at = find_filter(h, q->filters[i]);
        if (at == h->count) continue;
        free(h->filters[at]);
        h->filters[at] = h->filters[--h->count];
    }
    gb_op_finish(&q->op, gb_ok());
}

static const struct gb_subscriptions_ops history_ops = {
    .list = history_list, .remember = history_remember, .forget = history_forget};

/* --- route ------------------------------------------------------------------------------------ */

static enum gb_emit take(void *arg, struct gb_delivery *d)
{
    struct mqtt_rig *r = arg;
    if (r->emit != GB_EMIT_TAKEN) return r->emit;
    GB_ASSERT(r->delivered < MQTT_RIG_DELIVERIES);
    (void)snprintf(r->payloads[r->delivered], sizeof r->payloads[0], "%.*s",
                   (int)d->envelope->payload.size, (const char *)d->envelope->payload.data);
    r->deliveries[r->delivered++] = d;
    return GB_EMIT_TAKEN;
}

static void on_settled(void *arg, struct gb_err result)
{
    struct mqtt_rig_settled *s = arg;
    s->calls++;
    s->result = result;
}

void mqtt_rig_ack(struct mqtt_rig *r, size_t i)
{
    struct gb_delivery *d = r->deliveries[i];
    r->deliveries[i] = NULL;
    d->ops->ack(d, on_settled, &r->settled[i]);
    GB_ASSERT(r->settled[i].calls == 0); /* never from inside the call */
    mqtt_rig_run(r, 0);
    GB_ASSERT(r->settled[i].calls == 1);
}

void mqtt_rig_retry(struct mqtt_rig *r, size_t i)
{
    struct gb_delivery *d = r->deliveries[i];
    r->deliveries[i] = NULL;
    d->ops->retry(d, 0, on_settled, &r->settled[i]);
    mqtt_rig_run(r, 0);
    GB_ASSERT(r->settled[i].calls == 1);
}

static void on_terminal(void *arg, const char *session_id, struct gb_err cause)
{
    struct mqtt_rig *r = arg;
    (void)session_id;
    r->terminals++;
    r->terminal = cause;
}

/* --- life ------------------------------------------------------------------------------------- */

void mqtt_rig_init(struct mqtt_rig *r)
{
    memset(r, 0, sizeof *r);
    r->now_ns = UINT64_C(1000000000000);
    GB_ASSERT(!gb_failed(gb_reactor_new(42, &r->reactor)));
    GB_ASSERT(!gb_failed(gb_metrics_new(&r->metrics)));
    gb_reactor_run(r->reactor, r->now_ns, wall_start_ms);
    gb_fake_net_init(&r->net, r->reactor);
    fake_dlq_init(&r->dlq, r->reactor);
    r->history.port.ops = &history_ops;
    r->topics[0] = (struct gb_mqtt_topic){.filter = "a/#", .qos = 1};
    r->urls[0] = "tcp://127.0.0.1:1883";
    r->urls[1] = "tcp://127.0.0.1:1884";
    r->emit = GB_EMIT_TAKEN;
    r->cfg = (struct gb_mqtt_session_cfg){
        .id = "s1",
        .mode = GB_MQTT_EPHEMERAL,
        .version = GB_MQTT_V5,
        .urls = r->urls,
        .url_count = 1,
        .client_id = "client-1",
        .keep_alive_s = 10,
        .connect_timeout_ns = 30 * INT64_C(1000000000),
        .reconnect_timeout_ns = 30 * INT64_C(1000000000),
        .reconcile_timeout_ns = 30 * INT64_C(1000000000),
        .reconnect_delay_ns = 10 * INT64_C(1000000000),
        .reconnect_max_delay_ns = 120 * INT64_C(1000000000),
        .unmatched_grace_ns = 30 * INT64_C(1000000000),
        .session_expiry_interval_s = 86400,
        .receive_maximum = 16,
        .max_payload_bytes = 1000,
        .topics = r->topics,
        .topic_count = 1,
        .receiver_id = "r1",
        .ingress_route_id = "route-1",
        .reactor = r->reactor,
        .net = &r->net.base,
        .metrics = r->metrics,
        .subscriptions = &r->history.port,
        .terminal = on_terminal,
        .arg = r,
    };
}

void mqtt_rig_build(struct mqtt_rig *r)
{
    r->version = r->cfg.version;
    struct gb_err err = gb_mqtt_session_new(&r->cfg, &r->session);
    if (gb_failed(err)) (void)fprintf(stderr, "session: %s\n", err.message);
    GB_ASSERT(!gb_failed(err));
    const struct gb_mqtt_sender_cfg sender = {.id = "out",
                                              .qos = 1,
                                              .timeout_ns = 30 * INT64_C(1000000000),
                                              .throttle_retry_after_ns = 500000000};
    GB_ASSERT(!gb_failed(gb_mqtt_session_add_sender(r->session, &sender, &r->sender)));
}

void mqtt_rig_run(struct mqtt_rig *r, uint64_t ms)
{
    uint64_t end_ns = r->now_ns + ms * 1000000;
    for (;;) {
        gb_reactor_run(r->reactor, r->now_ns, wall_start_ms + (int64_t)(r->now_ns / 1000000));
        uint64_t next_ns = gb_reactor_next_ns(r->reactor);
        if (next_ns <= r->now_ns) continue;
        if (next_ns > end_ns) break;
        r->now_ns = next_ns;
    }
    if (r->now_ns == end_ns) return;
    r->now_ns = end_ns;
    gb_reactor_run(r->reactor, r->now_ns, wall_start_ms + (int64_t)(r->now_ns / 1000000));
}

void mqtt_rig_start(struct mqtt_rig *r)
{
    mqtt_rig_build(r);
    struct gb_receiver *receiver = gb_mqtt_session_receiver(r->session);
    if (receiver != NULL) receiver->ops->start(receiver, (struct gb_sink){.emit = take, .arg = r});
    r->session->ops->start(r->session);
    mqtt_rig_run(r, 0);
}

/* --- broker side ------------------------------------------------------------------------------ */

bool mqtt_rig_next(struct mqtt_rig *r, struct gb_mqtt_packet *out)
{
    struct gb_fake_stream *s = r->stream;
    struct gb_bytes rest = gb_bytes(s->written.data == NULL ? NULL : s->written.data + r->taken,
                                    s->written.size - r->taken);
    struct gb_mqtt_frame frame;
    enum gb_mqtt_frame_result result = gb_mqtt_frame_next(rest, GB_MQTT_REMAINING_MAX, &frame);
    if (result == GB_MQTT_FRAME_NEED_MORE && rest.size == 0) return false;
    GB_ASSERT(result == GB_MQTT_FRAME_OK);
    struct gb_err err = gb_mqtt_decode_client(&frame, r->version, out);
    if (gb_failed(err)) (void)fprintf(stderr, "the client sent: %s\n", err.message);
    GB_ASSERT(!gb_failed(err));
    r->taken += frame.size;
    return true;
}

struct gb_mqtt_packet mqtt_rig_expect(struct mqtt_rig *r, enum gb_mqtt_packet_type type)
{
    struct gb_mqtt_packet p;
    bool there = mqtt_rig_next(r, &p);
    if (!there) (void)fprintf(stderr, "expected packet type %d, there is none\n", (int)type);
    GB_ASSERT(there);
    if (p.type != type)
        (void)fprintf(stderr, "expected packet type %d, got %d\n", (int)type, (int)p.type);
    GB_ASSERT(p.type == type);
    return p;
}

void mqtt_rig_expect_nothing(struct mqtt_rig *r)
{
    struct gb_mqtt_packet p;
    bool there = mqtt_rig_next(r, &p);
    if (there) (void)fprintf(stderr, "unexpected packet type %d\n", (int)p.type);
    GB_ASSERT(!there);
}

void mqtt_rig_feed(struct mqtt_rig *r, struct gb_str *bytes)
{
    GB_ASSERT(!bytes->failed);
    gb_fake_stream_feed(r->stream, gb_str_bytes(bytes));
    gb_str_deinit(bytes);
    mqtt_rig_run(r, 0);
}

void mqtt_rig_accept(struct mqtt_rig *r, bool session_present, struct gb_mqtt_connect *connect)
{
    struct gb_fake_stream *s = gb_fake_net_last(&r->net);
    GB_ASSERT(s != NULL && !s->connected && !s->closing);
    r->stream = s;
    r->taken = 0;
    gb_fake_stream_connect(s);
    mqtt_rig_run(r, 0);
    struct gb_mqtt_packet p = mqtt_rig_expect(r, GB_MQTT_CONNECT);
    if (connect != NULL) *connect = p.connect;
    struct gb_str bytes = {0};
    gb_mqtt_encode_connack(&bytes, r->version, session_present, 0, NULL);
    mqtt_rig_feed(r, &bytes);
}

void mqtt_rig_suback(struct mqtt_rig *r, uint16_t id, const char *codes, size_t count)
{
    struct gb_str bytes = {0};
    gb_mqtt_encode_suback(&bytes, r->version, id, gb_bytes(codes, count));
    mqtt_rig_feed(r, &bytes);
}

void mqtt_rig_grant(struct mqtt_rig *r)
{
    struct gb_mqtt_packet p = mqtt_rig_expect(r, GB_MQTT_SUBSCRIBE);
    char codes[64];
    size_t count = 0;
    struct gb_mqtt_subscribe_entry e;
    while (gb_mqtt_subscribe_next(&p.subscribe.entries, false, &e)) codes[count++] = (char)e.qos;
    mqtt_rig_suback(r, p.subscribe.packet_id, codes, count);
}

void mqtt_rig_online(struct mqtt_rig *r)
{
    mqtt_rig_start(r);
    mqtt_rig_accept(r, false, NULL);
    if (r->cfg.topic_count > 0) mqtt_rig_grant(r);
}

void mqtt_rig_publish(struct mqtt_rig *r, const char *topic, uint8_t qos, uint16_t id,
                      const char *payload)
{
    const struct gb_mqtt_publish p = {
        .qos = qos, .packet_id = id, .topic = gb_bytes_c(topic), .payload = gb_bytes_c(payload)};
    struct gb_str bytes = {0};
    gb_mqtt_encode_publish(&bytes, r->version, &p);
    mqtt_rig_feed(r, &bytes);
}

void mqtt_rig_cut(struct mqtt_rig *r)
{
    gb_fake_stream_cut(r->stream, gb_err(GB_CONNECTION_LOST, "cut"));
    mqtt_rig_run(r, 0);
}

/* --- looking ---------------------------------------------------------------------------------- */

uint64_t mqtt_rig_metric(const struct mqtt_rig *r, const char *name)
{
    return gb_metrics_sum(r->metrics, name);
}

struct metric_query {
    const char *name, *value;
    uint64_t count;
    double gauge;
};

static void find_metric(void *arg, enum gb_metric_kind kind, const char *name,
                        const struct gb_dimension *dimensions, size_t count,
                        const struct gb_metric *metric)
{
    struct metric_query *q = arg;
    if (strcmp(name, q->name) != 0) return;
    if (kind == GB_METRIC_GAUGE && metric->set) q->gauge = metric->last;
    for (size_t i = 0; i < count && q->value != NULL; i++)
        if (strcmp(dimensions[i].value, q->value) == 0) q->count += metric->count;
}

uint64_t mqtt_rig_metric_of(const struct mqtt_rig *r, const char *name, const char *value)
{
    struct metric_query q = {.name = name, .value = value};
    gb_metrics_visit(r->metrics, find_metric, &q);
    return q.count;
}

double mqtt_rig_gauge(const struct mqtt_rig *r, const char *name)
{
    struct metric_query q = {.name = name};
    gb_metrics_visit(r->metrics, find_metric, &q);
    return q.gauge;
}

struct gb_session_health mqtt_rig_health(const struct mqtt_rig *r)
{
    struct gb_session_health h;
    r->session->ops->health(r->session, &h);
    return h;
}

void mqtt_rig_seed(struct mqtt_rig *r, const char *filter)
{
    r->history.seeded = true;
    if (filter != NULL) add_filter(&r->history, filter);
}

static void on_stopped(struct gb_op *op, void *arg)
{
    (void)op;
    ((struct mqtt_rig *)arg)->stopped = true;
}

void mqtt_rig_close(struct mqtt_rig *r)
{
    for (size_t i = 0; i < r->delivered; i++)
        if (r->deliveries[i] != NULL) r->deliveries[i]->ops->abandon(r->deliveries[i]);
    mqtt_rig_run(r, 0);
    struct gb_op op = {.deadline_ns = r->now_ns + UINT64_C(1000000000)};
    r->session->ops->stop(r->session, &op, on_stopped, r);
    mqtt_rig_run(r, 2000);
    GB_ASSERT(r->stopped);
    r->session->ops->free(r->session);
    gb_fake_net_deinit(&r->net);
    fake_dlq_deinit(&r->dlq);
    for (size_t i = 0; i < r->history.count; i++) free(r->history.filters[i]);
    gb_metrics_free(r->metrics);
    gb_reactor_free(r->reactor);
}
