#include "adapters/mqtt/mqtt_reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/mqtt/mqtt_reason.h"
#include "base/duration.h"
#include "base/log.h"

enum { CODE_UNKNOWN = 0xff, CODE_FAILURE = 0x80, CODE_NO_SUBSCRIPTION = 0x11 };
enum { EQUAL_ANSWERS = 3 }; /* three equal lower grants are accepted (spec 03 §8.2) */
static const uint64_t confirm_wait_ns = 5 * 1000000000ull;
static const int64_t retry_first_ns = GB_SEC;
static const int64_t retry_max_ns = 30 * GB_SEC;

struct filter {
    char *name;
    bool wanted, in_history;
    bool removed;    /* the broker gave it up; waits for its window and the forget */
    bool answered;   /* SUBACK or UNSUBACK seen on this epoch */
    bool in_change;  /* part of the store operation under way */
    uint8_t qos;     /* wanted */
    uint8_t granted; /* code of the last SUBACK of this epoch */
    uint8_t equal_answers;
    int64_t recheck_interval_ns;
    uint64_t recheck_ns; /* 0 = none */
};
struct packet { /* outstanding */
    uint16_t id;
    size_t members[GB_MQTT_FILTERS_PER_PACKET];
    size_t count;
};

struct gb_mqtt_reconcile {
    struct gb_reactor *reactor;
    struct gb_subscriptions *store; /* NULL: ephemeral */
    char *identity, *session_id;
    bool durable, v5;
    int64_t phase_timeout_ns, grace_ns;
    const struct gb_mqtt_reconcile_events *events;
    void *arg;
    enum gb_mqtt_reconcile_state state;
    struct filter *filters;
    size_t count;
    struct packet *packets;
    size_t packet_count;
    uint16_t next_id;
    struct gb_timer timer;
    uint64_t connected_ns;
    int64_t retry_ns;
    struct gb_err last_error;
    bool recycle_due;
    bool store_busy;
    const char **names; /* argument of the store operation */
    struct gb_subscriptions_change change;
    struct gb_metric *failures, *downgraded, *downgraded_active, *latency;
};

#define GB_BIT(state) (1u << (state))
#define GB_ANYWHERE (GB_BIT(GB_MQTT_R_DOWN) | GB_BIT(GB_MQTT_R_RETRY))
#define GB_NEXT                                                                                    \
    (GB_BIT(GB_MQTT_R_REMEMBER) | GB_BIT(GB_MQTT_R_SUBSCRIBE) | GB_BIT(GB_MQTT_R_CONFIRM) |        \
     GB_BIT(GB_MQTT_R_UNSUBSCRIBE) | GB_BIT(GB_MQTT_R_WINDOW) | GB_BIT(GB_MQTT_R_CONVERGED))
static const uint16_t exits[GB_MQTT_R_STATES] = {
    [GB_MQTT_R_DOWN] = GB_NEXT,
    [GB_MQTT_R_REMEMBER] = GB_ANYWHERE | GB_NEXT,
    [GB_MQTT_R_SUBSCRIBE] = GB_ANYWHERE | GB_NEXT,
    [GB_MQTT_R_CONFIRM] = GB_ANYWHERE | GB_NEXT,
    [GB_MQTT_R_UNSUBSCRIBE] = GB_ANYWHERE | GB_NEXT | GB_BIT(GB_MQTT_R_RECYCLE),
    [GB_MQTT_R_RECYCLE] = GB_BIT(GB_MQTT_R_DOWN),
    [GB_MQTT_R_WINDOW] = GB_BIT(GB_MQTT_R_DOWN) | GB_BIT(GB_MQTT_R_REPLAYS),
    [GB_MQTT_R_REPLAYS] = GB_ANYWHERE | GB_BIT(GB_MQTT_R_FORGET),
    [GB_MQTT_R_FORGET] = GB_ANYWHERE | GB_NEXT,
    [GB_MQTT_R_CONVERGED] = GB_ANYWHERE | GB_NEXT,
    [GB_MQTT_R_RETRY] = GB_BIT(GB_MQTT_R_DOWN) | GB_NEXT,
};

static void next_step(struct gb_mqtt_reconcile *r);
static void timer_fired(struct gb_timer *t);

static void set_state(struct gb_mqtt_reconcile *r, enum gb_mqtt_reconcile_state next)
{
    GB_ASSERT((exits[r->state] & GB_BIT(next)) != 0);
    r->state = next;
}

static struct filter *add_filter(struct gb_mqtt_reconcile *r, const char *name)
{
    struct filter *grown = realloc(r->filters, (r->count + 1) * sizeof *grown);
    if (grown == NULL) return NULL;
    r->filters = grown;
    struct filter *f = &grown[r->count];
    *f = (struct filter){.name = gb_strdup(name), .granted = CODE_UNKNOWN};
    if (f->name == NULL) return NULL;
    r->count++;
    return f;
}

static struct filter *find_filter(struct gb_mqtt_reconcile *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->filters[i].name, name) == 0) return &r->filters[i];
    return NULL;
}

static struct gb_err init_plan(struct gb_mqtt_reconcile *r, const struct gb_mqtt_session_cfg *cfg)
{
    for (size_t i = 0; i < cfg->topic_count; i++) {
        struct filter *f = find_filter(r, cfg->topics[i].filter);
        if (f == NULL) f = add_filter(r, cfg->topics[i].filter);
        if (f == NULL) return gb_err_no_memory("MQTT subscriptions");
        f->wanted = true;
        f->qos = cfg->topics[i].qos;
        f->recheck_interval_ns = cfg->topics[i].qos_recheck_interval_ns;
    }
    return gb_ok();
}

struct gb_err gb_mqtt_reconcile_new(const struct gb_mqtt_session_cfg *cfg, const char *identity,
                                    const struct gb_mqtt_reconcile_events *events, void *arg,
                                    struct gb_mqtt_reconcile **out)
{
    struct gb_mqtt_reconcile *r = calloc(1, sizeof *r);
    if (r == NULL) return gb_err_no_memory("MQTT subscriptions");
    r->reactor = cfg->reactor;
    r->durable = cfg->mode != GB_MQTT_EPHEMERAL;
    r->store = r->durable ? cfg->subscriptions : NULL;
    r->v5 = cfg->version == GB_MQTT_V5;
    r->phase_timeout_ns = cfg->reconcile_timeout_ns;
    r->grace_ns = cfg->unmatched_grace_ns;
    r->events = events;
    r->arg = arg;
    r->next_id = GB_MQTT_RECONCILE_ID_FIRST;
    r->retry_ns = retry_first_ns;
    r->identity = gb_strdup(identity);
    r->session_id = gb_strdup(cfg->id);
    struct gb_err err = gb_err_no_memory("MQTT subscriptions");
    if (r->identity == NULL || r->session_id == NULL) goto fail;
    err = init_plan(r, cfg);
    if (gb_failed(err)) goto fail;
    err = gb_timer_init(&r->timer, r->reactor, timer_fired);
    if (gb_failed(err)) goto fail;
    const struct gb_dimension d[] = {{"session_id", r->session_id}};
    r->failures = gb_metrics_get(cfg->metrics, GB_METRIC_COUNTER, "ReconcileFailures", d, 1);
    r->downgraded = gb_metrics_get(cfg->metrics, GB_METRIC_COUNTER, "MQTTQoSDowngraded", d, 1);
    r->downgraded_active =
        gb_metrics_get(cfg->metrics, GB_METRIC_GAUGE, "MQTTQoSDowngradedActive", d, 1);
    r->latency = gb_metrics_get(cfg->metrics, GB_METRIC_TIMER, "MQTTReconcileLatency", d, 1);
    *out = r;
    return gb_ok();
fail:
    gb_mqtt_reconcile_free(r);
    return err;
}

void gb_mqtt_reconcile_free(struct gb_mqtt_reconcile *r)
{
    if (r == NULL) return;
    GB_ASSERT(!r->store_busy);
    gb_timer_deinit(&r->timer);
    for (size_t i = 0; i < r->count; i++) free(r->filters[i].name);
    free(r->filters);
    free(r->packets);
    free(r->names);
    free(r->identity);
    free(r->session_id);
    free(r);
}

bool gb_mqtt_reconcile_busy(const struct gb_mqtt_reconcile *r)
{
    return r->store_busy;
}

struct gb_err gb_mqtt_reconcile_history(struct gb_mqtt_reconcile *r, const struct gb_filter_list *h)
{
    for (size_t i = 0; i < h->count; i++) {
        struct filter *f = find_filter(r, h->filters[i]);
        if (f == NULL) f = add_filter(r, h->filters[i]);
        if (f == NULL) return gb_err_no_memory("MQTT subscription history");
        f->in_history = true;
    }
    return gb_ok();
}

size_t gb_mqtt_reconcile_history_size(const struct gb_mqtt_reconcile *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) n += r->filters[i].in_history;
    return n;
}

static bool is_granted(const struct filter *f)
{
    return f->answered && f->granted < CODE_FAILURE;
}
static bool is_lower(const struct filter *f)
{
    return f->wanted && is_granted(f) && f->granted < f->qos;
}
static bool needs_subscribe(const struct filter *f)
{
    return f->wanted && !is_granted(f);
}
static bool needs_confirm(const struct filter *f)
{
    return is_lower(f) && f->equal_answers < EQUAL_ANSWERS;
}
static bool needs_unsubscribe(const struct filter *f)
{
    return f->in_history && !f->wanted && !f->removed;
}
static bool needs_remember(const struct filter *f)
{
    return f->wanted && !f->in_history;
}
static bool needs_forget(const struct filter *f)
{
    return f->in_history && !f->wanted && f->removed;
}

static bool any(const struct gb_mqtt_reconcile *r, bool (*test)(const struct filter *))
{
    for (size_t i = 0; i < r->count; i++)
        if (test(&r->filters[i])) return true;
    return false;
}

static void fail_pass(struct gb_mqtt_reconcile *r, struct gb_err err)
{
    r->last_error = err;
    r->packet_count = 0;
    gb_metric_add(r->failures, 1);
    set_state(r, GB_MQTT_R_RETRY);
    int64_t half_ns = r->retry_ns / 2;
    uint64_t wait_ns = (uint64_t)half_ns + gb_reactor_random_below(r->reactor, (uint64_t)half_ns);
    gb_timer_start(&r->timer, gb_reactor_now_ns(r->reactor) + wait_ns);
    GB_LOG(GB_LOG_WARN, "mqtt subscriptions not converged; trying again",
           gb_lf_str("session_id", r->session_id),
           gb_lf_int("wait_ms", (int64_t)(wait_ns / 1000000)), gb_lf_err(&err));
    r->retry_ns = r->retry_ns * 2 > retry_max_ns ? retry_max_ns : r->retry_ns * 2;
    r->events->changed(r->arg);
}

static void store_done(struct gb_op *op, void *arg)
{
    struct gb_mqtt_reconcile *r = arg;
    bool remembered = r->state == GB_MQTT_R_REMEMBER;
    bool forgotten = r->state == GB_MQTT_R_FORGET;
    r->store_busy = false;
    if (op->result.code == GB_OK) {
        for (size_t i = r->count; i > 0; i--) {
            struct filter *f = &r->filters[i - 1];
            if (!f->in_change) continue;
            f->in_change = false;
            if (f->wanted) {
                f->in_history = true;
            } else {
                free(f->name);
                memmove(f, f + 1, (r->count - i) * sizeof *f);
                r->count--;
            }
        }
    } else {
        for (size_t i = 0; i < r->count; i++) r->filters[i].in_change = false;
        if (remembered || forgotten) fail_pass(r, op->result);
        return;
    }
    if (remembered || forgotten) next_step(r);
}

/* One store operation over the filters that pass `test`. The result counts even if the connection
 * was lost meanwhile. */
static void change_store(struct gb_mqtt_reconcile *r, bool (*test)(const struct filter *),
                         enum gb_mqtt_reconcile_state state)
{
    GB_ASSERT(!r->store_busy);
    set_state(r, state);
    const char **names = realloc(r->names, (r->count + 1) * sizeof *names);
    if (names == NULL) {
        fail_pass(r, gb_err_no_memory("MQTT subscriptions"));
        return;
    }
    r->names = names;
    memset(&r->change, 0, sizeof r->change);
    for (size_t i = 0; i < r->count; i++) {
        if (!test(&r->filters[i])) continue;
        r->filters[i].in_change = true;
        names[r->change.count++] = r->filters[i].name;
    }
    r->change.identity = r->identity;
    r->change.filters = names;
    r->change.op.deadline_ns = gb_reactor_now_ns(r->reactor) + (uint64_t)r->phase_timeout_ns;
    r->store_busy = true;
    if (state == GB_MQTT_R_REMEMBER) {
        r->store->ops->remember(r->store, &r->change, store_done, r);
    } else {
        r->store->ops->forget(r->store, &r->change, store_done, r);
    }
}

static struct packet *add_packet(struct gb_mqtt_reconcile *r)
{
    struct packet *grown = realloc(r->packets, (r->packet_count + 1) * sizeof *grown);
    if (grown == NULL) return NULL;
    r->packets = grown;
    struct packet *p = &grown[r->packet_count++];
    *p = (struct packet){.id = r->next_id};
    r->next_id = r->next_id == 65535 ? GB_MQTT_RECONCILE_ID_FIRST : (uint16_t)(r->next_id + 1);
    return p;
}

static void send_packet(struct gb_mqtt_reconcile *r, struct packet *p)
{
    struct gb_mqtt_subscription subs[GB_MQTT_FILTERS_PER_PACKET];
    for (size_t i = 0; i < p->count; i++) {
        const struct filter *f = &r->filters[p->members[i]];
        subs[i] = (struct gb_mqtt_subscription){
            .filter = gb_bytes_c(f->name),
            .qos = f->qos,
            .shared = gb_mqtt_filter_is_shared(gb_bytes_c(f->name)),
            .again = is_granted(f),
        };
    }
    if (r->state == GB_MQTT_R_SUBSCRIBE) {
        r->events->subscribe(r->arg, p->id, subs, p->count);
    } else {
        r->events->unsubscribe(r->arg, p->id, subs, p->count);
    }
}

/* At most eight filters a packet; all packets of the phase share one deadline (spec 03 §7 item
 * 2). */
static void send_phase(struct gb_mqtt_reconcile *r, bool (*test)(const struct filter *),
                       enum gb_mqtt_reconcile_state state)
{
    set_state(r, state);
    r->packet_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (!test(&r->filters[i])) continue;
        struct packet *p = r->packet_count == 0 ? NULL : &r->packets[r->packet_count - 1];
        if (p == NULL || p->count == GB_MQTT_FILTERS_PER_PACKET) p = add_packet(r);
        if (p == NULL) {
            fail_pass(r, gb_err_no_memory("MQTT subscriptions"));
            return;
        }
        p->members[p->count++] = i;
    }
    gb_timer_start(&r->timer, gb_reactor_now_ns(r->reactor) + (uint64_t)r->phase_timeout_ns);
    for (size_t i = 0; i < r->packet_count; i++) send_packet(r, &r->packets[i]);
}

static void start_recheck_timer(struct gb_mqtt_reconcile *r)
{
    uint64_t earliest = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct filter *f = &r->filters[i];
        if (!is_lower(f) || f->recheck_ns == 0) continue;
        if (earliest == 0 || f->recheck_ns < earliest) earliest = f->recheck_ns;
    }
    if (earliest > 0) gb_timer_start(&r->timer, earliest);
}

static void converge(struct gb_mqtt_reconcile *r)
{
    set_state(r, GB_MQTT_R_CONVERGED);
    r->last_error = gb_ok();
    r->retry_ns = retry_first_ns;
    size_t lower = 0;
    for (size_t i = 0; i < r->count; i++) lower += is_lower(&r->filters[i]);
    gb_metric_set(r->downgraded_active, (double)lower);
    gb_metric_time(r->latency, (int64_t)(gb_reactor_now_ns(r->reactor) - r->connected_ns));
    GB_LOG(GB_LOG_INFO, "mqtt subscriptions converged", gb_lf_str("session_id", r->session_id),
           gb_lf_int("filters", gb_mqtt_reconcile_active(r)),
           gb_lf_int("best_effort", (int64_t)lower));
    start_recheck_timer(r);
    r->events->changed(r->arg);
}

/* What is to be done next follows from the filters alone (spec 03 §8.2 items 1-5). */
static void next_step(struct gb_mqtt_reconcile *r)
{
    gb_timer_stop(&r->timer);
    uint64_t now_ns = gb_reactor_now_ns(r->reactor);
    if (r->store != NULL && any(r, needs_remember)) {
        change_store(r, needs_remember, GB_MQTT_R_REMEMBER);
    } else if (any(r, needs_subscribe)) {
        send_phase(r, needs_subscribe, GB_MQTT_R_SUBSCRIBE);
    } else if (any(r, needs_confirm)) {
        set_state(r, GB_MQTT_R_CONFIRM);
        gb_timer_start(&r->timer, now_ns + confirm_wait_ns);
        r->events->changed(r->arg);
    } else if (any(r, needs_unsubscribe)) {
        send_phase(r, needs_unsubscribe, GB_MQTT_R_UNSUBSCRIBE);
    } else if (any(r, needs_forget)) {
        set_state(r, GB_MQTT_R_WINDOW);
        gb_timer_start(&r->timer, r->connected_ns + (uint64_t)r->grace_ns);
    } else {
        converge(r);
    }
}

static void recheck_due(struct gb_mqtt_reconcile *r)
{
    uint64_t now_ns = gb_reactor_now_ns(r->reactor);
    for (size_t i = 0; i < r->count; i++) {
        struct filter *f = &r->filters[i];
        if (!is_lower(f) || f->recheck_ns == 0 || f->recheck_ns > now_ns) continue;
        f->equal_answers = EQUAL_ANSWERS - 1; /* one question, then best effort again */
        f->recheck_ns = now_ns + (uint64_t)f->recheck_interval_ns;
    }
    if (any(r, needs_confirm)) send_phase(r, needs_confirm, GB_MQTT_R_SUBSCRIBE);
}

static void timer_fired(struct gb_timer *t)
{
    struct gb_mqtt_reconcile *r = GB_CONTAINER_OF(t, struct gb_mqtt_reconcile, timer);
    switch (r->state) {
    case GB_MQTT_R_SUBSCRIBE:
    case GB_MQTT_R_UNSUBSCRIBE:
        fail_pass(r,
                  gb_err(GB_TIMEOUT, "MQTT session %s: no %s within reconcile_timeout",
                         r->session_id, r->state == GB_MQTT_R_SUBSCRIBE ? "SUBACK" : "UNSUBACK"));
        break;
    case GB_MQTT_R_CONFIRM:
        send_phase(r, needs_confirm, GB_MQTT_R_SUBSCRIBE);
        break;
    case GB_MQTT_R_WINDOW:
        set_state(r, GB_MQTT_R_REPLAYS);
        r->events->replays(r->arg);
        break;
    case GB_MQTT_R_RETRY:
        next_step(r);
        break;
    case GB_MQTT_R_CONVERGED:
        recheck_due(r);
        break;
    case GB_MQTT_R_DOWN:
    case GB_MQTT_R_REMEMBER:
    case GB_MQTT_R_RECYCLE:
    case GB_MQTT_R_REPLAYS:
    case GB_MQTT_R_FORGET:
    case GB_MQTT_R_STATES:
        break;
    }
}

/* v3.1.1: a resumed session does not subscribe confirmed filters again (spec 03 §13), so retained
 * messages do not come again. */
void gb_mqtt_reconcile_connected(struct gb_mqtt_reconcile *r, bool session_present)
{
    bool keep = !r->v5 && r->durable && session_present;
    for (size_t i = 0; i < r->count; i++) {
        struct filter *f = &r->filters[i];
        if (keep && is_granted(f) && !is_lower(f)) continue;
        f->answered = false;
        f->granted = CODE_UNKNOWN;
        f->equal_answers = 0;
    }
    r->packet_count = 0;
    r->connected_ns = gb_reactor_now_ns(r->reactor);
    r->recycle_due = false;
    if (r->store_busy) {
        set_state(r, GB_MQTT_R_REMEMBER); /* an operation of the last connection ends first */
    } else {
        next_step(r);
    }
}

void gb_mqtt_reconcile_disconnected(struct gb_mqtt_reconcile *r)
{
    if (r->state == GB_MQTT_R_DOWN) return;
    gb_timer_stop(&r->timer);
    r->packet_count = 0;
    set_state(r, GB_MQTT_R_DOWN);
    r->events->changed(r->arg);
}

/* Takes the outstanding packet out; NULL when it is unknown or of an old phase. */
static bool take_packet(struct gb_mqtt_reconcile *r, uint16_t id, struct packet *out)
{
    for (size_t i = 0; i < r->packet_count; i++) {
        if (r->packets[i].id != id) continue;
        *out = r->packets[i];
        r->packets[i] = r->packets[--r->packet_count];
        return true;
    }
    return false;
}

static void note_grant(struct gb_mqtt_reconcile *r, struct filter *f, uint8_t code)
{
    if (code < f->qos) {
        bool equal = f->granted == code;
        if (!equal) gb_metric_add(r->downgraded, 1);
        f->equal_answers = equal ? (uint8_t)(f->equal_answers + 1) : 1;
        f->recheck_ns = f->recheck_interval_ns == 0
                            ? 0
                            : gb_reactor_now_ns(r->reactor) + (uint64_t)f->recheck_interval_ns;
        if (f->equal_answers == EQUAL_ANSWERS) {
            GB_LOG(GB_LOG_ERROR,
                   "the broker grants a lower QoS than wanted; going on with best effort",
                   gb_lf_str("session_id", r->session_id), gb_lf_str("filter", f->name),
                   gb_lf_int("wanted", f->qos), gb_lf_int("granted", code));
        }
    } else {
        f->equal_answers = 0;
    }
    f->granted = code;
    f->answered = true;
}

void gb_mqtt_reconcile_suback(struct gb_mqtt_reconcile *r, uint16_t packet_id,
                              struct gb_bytes codes)
{
    struct packet p;
    if (r->state != GB_MQTT_R_SUBSCRIBE || !take_packet(r, packet_id, &p)) return;
    for (size_t i = 0; i < p.count; i++) {
        struct filter *f = &r->filters[p.members[i]];
        if (i >= codes.size) {
            r->last_error =
                gb_err(GB_PROTOCOL_ERROR, "SUBACK has %zu codes for %zu filters, none for %s",
                       codes.size, p.count, f->name);
        } else if (codes.data[i] >= CODE_FAILURE) {
            struct gb_err err = gb_mqtt_reason_suback(codes.data[i]);
            if (!gb_failed(r->last_error)) r->last_error = gb_err_in(err, "filter %s", f->name);
            f->granted = codes.data[i];
            f->answered = true;
        } else {
            note_grant(r, f, codes.data[i]);
        }
    }
    if (r->packet_count > 0) return;
    gb_timer_stop(&r->timer);
    if (any(r, needs_subscribe)) {
        struct gb_err err = r->last_error;
        if (!gb_failed(err)) err = gb_err(GB_UNAVAILABLE, "a subscription was not granted");
        fail_pass(r, err);
        return;
    }
    r->last_error = gb_ok();
    next_step(r);
}

void gb_mqtt_reconcile_unsuback(struct gb_mqtt_reconcile *r, uint16_t packet_id,
                                struct gb_bytes codes)
{
    struct packet p;
    if (r->state != GB_MQTT_R_UNSUBSCRIBE || !take_packet(r, packet_id, &p)) return;
    for (size_t i = 0; i < p.count; i++) {
        struct filter *f = &r->filters[p.members[i]];
        uint8_t code = r->v5 ? (i < codes.size ? codes.data[i] : CODE_FAILURE) : 0;
        if (code == 0 || code == CODE_NO_SUBSCRIPTION) f->removed = true;
        if (code == 0) r->recycle_due = true;
    }
    if (r->packet_count > 0) return;
    gb_timer_stop(&r->timer);
    if (any(r, needs_unsubscribe)) {
        fail_pass(r, gb_err(GB_UNAVAILABLE, "MQTT session %s: the broker did not remove a filter",
                            r->session_id));
    } else if (r->recycle_due) {
        set_state(r, GB_MQTT_R_RECYCLE);
        r->events->recycle(r->arg);
    } else {
        next_step(r);
    }
}

void gb_mqtt_reconcile_replays_done(struct gb_mqtt_reconcile *r, struct gb_err result)
{
    if (r->state != GB_MQTT_R_REPLAYS) return;
    if (gb_failed(result)) {
        fail_pass(r, result);
    } else {
        change_store(r, needs_forget, GB_MQTT_R_FORGET);
    }
}

bool gb_mqtt_reconcile_converged(const struct gb_mqtt_reconcile *r)
{
    return r->state == GB_MQTT_R_CONVERGED;
}

bool gb_mqtt_reconcile_degraded(const struct gb_mqtt_reconcile *r)
{
    return any(r, needs_confirm);
}

enum gb_mqtt_reconcile_state gb_mqtt_reconcile_state(const struct gb_mqtt_reconcile *r)
{
    return r->state;
}

uint32_t gb_mqtt_reconcile_active(const struct gb_mqtt_reconcile *r)
{
    uint32_t n = 0;
    for (size_t i = 0; i < r->count; i++) n += r->filters[i].wanted && is_granted(&r->filters[i]);
    return n;
}

const struct gb_err *gb_mqtt_reconcile_error(const struct gb_mqtt_reconcile *r)
{
    return &r->last_error;
}

bool gb_mqtt_reconcile_wants(const struct gb_mqtt_reconcile *r, struct gb_bytes topic)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->filters[i].wanted && gb_mqtt_filter_matches(gb_bytes_c(r->filters[i].name), topic))
            return true;
    }
    return false;
}

const char *gb_mqtt_reconcile_removing(const struct gb_mqtt_reconcile *r, struct gb_bytes topic)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct filter *f = &r->filters[i];
        if (f->in_history && !f->wanted && gb_mqtt_filter_matches(gb_bytes_c(f->name), topic))
            return f->name;
    }
    return NULL;
}
