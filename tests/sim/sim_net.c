#include "sim/sim_net.h"

#include <stdlib.h>

#include "base/assert.h"
#include "sim/sim_bridge.h"
#include "sim/sim_broker.h"
#include "sim/sim_intercept.h"
#include "sim/sim_member.h"

/* Both ends are done with it. It is freed between two moments, because one of its own events may be
 * running. */
static void maybe_free(struct sim_conn *c)
{
    if (c->bridge != NULL || c->at_broker || gb_list_linked(&c->node)) return;
    gb_timer_deinit(&c->up.timer);
    gb_timer_deinit(&c->down.timer);
    gb_timer_deinit(&c->dial);
    gb_list_push(&c->world->dead_conns, &c->node);
}

void sim_net_bury(struct sim_world *w)
{
    struct gb_list_node *next = NULL;
    for (struct gb_list_node *n = gb_list_first(&w->dead_conns); n != NULL; n = next) {
        next = gb_list_next(&w->dead_conns, n);
        struct sim_conn *c = GB_CONTAINER_OF(n, struct sim_conn, node);
        gb_str_deinit(&c->up.bytes);
        gb_str_deinit(&c->down.bytes);
        gb_str_deinit(&c->rx);
        gb_list_remove(n);
        free(c);
    }
}

static bool is_asleep(const struct sim_conn *c)
{
    return c->bridge != NULL && c->host->resume_ns > c->world->now_ns;
}

static void schedule(struct sim_pipe *p)
{
    struct sim_world *w = p->conn->world;
    if (gb_timer_running(&p->timer)) return;
    uint64_t at_ns = w->now_ns + sim_delay_ns(w, w->cfg.net_delay_max_ns);
    const struct sim_host *h = p->conn->host;
    uint64_t cut_ns = p->to_broker ? h->up_cut_ns : h->down_cut_ns;
    if (!w->healed && at_ns < w->net_stalled_until_ns) at_ns = w->net_stalled_until_ns;
    if (!w->healed && at_ns < cut_ns) at_ns = cut_ns;
    gb_timer_start(&p->timer, at_ns);
}

static void broker_gone(struct sim_conn *c)
{
    if (!c->at_broker) return;
    c->at_broker = false;
    sim_broker_lost(c->world->broker, c);
    gb_timer_stop(&c->up.timer);
}

/* Tells the bridge's end, later and once. */
static void close_client(struct sim_conn *c, struct gb_err reason)
{
    if (c->state == SIM_CLOSED || c->bridge == NULL) return;
    c->state = SIM_CLOSED;
    c->close_reason = reason;
    gb_timer_stop(&c->down.timer);
    gb_timer_start(&c->dial, c->world->now_ns + sim_delay_ns(c->world, GB_MS));
}

void sim_conn_cut(struct sim_conn *c)
{
    sim_trace(c->world, "cut", c->up.bytes.size, c->down.bytes.size);
    bool open = c->state != SIM_CLOSED && c->bridge != NULL;
    close_client(c, gb_err(GB_CONNECTION_LOST, "simulated cut"));
    if (open && !c->world->healed && c->host->down_cut_ns > c->world->now_ns)
        gb_timer_start(&c->dial, c->host->down_cut_ns); /* a dead line tells nobody */
    broker_gone(c);
    maybe_free(c);
}

static void deliver(struct sim_pipe *p, size_t size)
{
    struct sim_conn *c = p->conn;
    struct gb_str rest = {0};
    gb_str_append(&rest, gb_bytes(p->bytes.data + size, p->bytes.size - size));
    struct gb_str now = p->bytes;
    now.size = size;
    p->bytes = rest;
    if (p->to_broker) {
        if (c->at_broker) sim_broker_data(c->world->broker, c, gb_str_bytes(&now));
    } else if (c->state == SIM_OPEN && c->bridge != NULL && !c->bridge->dead) {
        c->events->data(c->arg, gb_str_bytes(&now));
    }
    gb_str_deinit(&now);
}

static void pipe_step(struct sim_pipe *p)
{
    struct sim_conn *c = p->conn;
    struct sim_world *w = c->world;
    size_t size = p->bytes.size;
    bool cut = size > 0 && sim_chance(w, w->cfg.net_cut);
    if (size > 1 && (cut || sim_chance(w, w->cfg.net_split))) size = 1 + sim_below(w, size - 1);
    if (size > 0) deliver(p, size); /* the half that made it; may close either end */
    if (cut) {
        sim_conn_cut(c);
        return;
    }
    bool open = p->to_broker ? c->at_broker : c->state == SIM_OPEN && c->bridge != NULL;
    if (!open) return;
    if (p->bytes.size > 0) {
        schedule(p);
    } else if (p->end) {
        if (p->to_broker) {
            broker_gone(c);
        } else {
            close_client(c, gb_ok());
        }
    }
}

static void pipe_due(struct gb_timer *t)
{
    struct sim_pipe *p = GB_CONTAINER_OF(t, struct sim_pipe, timer);
    struct sim_conn *c = p->conn;
    if (!p->to_broker && is_asleep(c)) {
        gb_timer_start(t, c->host->resume_ns);
        return;
    }
    struct sim_world *w = c->world;
    w->actor = c->host;
    pipe_step(p);
    w->actor = NULL;
    maybe_free(c);
}

/* --- bridge side --- */

/* The last event of the bridge's end. The broker notices when what is on its way has arrived. */
static void client_gone(struct sim_conn *c)
{
    c->bridge = NULL;
    gb_list_remove(&c->node);
    c->up.end = true;
    if (c->at_broker) schedule(&c->up);
    c->events->closed(c->arg, c->close_reason);
    maybe_free(c);
}

static void dial_ends(struct sim_conn *c)
{
    struct sim_world *w = c->world;
    if (c->state == SIM_CLOSED) {
        client_gone(c);
        return;
    }
    if (w->now_ns >= sim_host_world_ns(c->host, c->dial_deadline_ns)) {
        close_client(c, gb_err(GB_TIMEOUT, "simulated dial time-out"));
        return;
    }
    c->state = SIM_OPEN;
    c->at_broker = true;
    sim_broker_accept(w->broker, c);
    c->events->connected(c->arg);
}

static void dial_due(struct gb_timer *t)
{
    struct sim_conn *c = GB_CONTAINER_OF(t, struct sim_conn, dial);
    struct sim_world *w = c->world;
    if (is_asleep(c)) {
        gb_timer_start(t, c->host->resume_ns);
        return;
    }
    w->actor = c->host;
    dial_ends(c);
    w->actor = NULL;
}

static struct gb_err dial(struct gb_net *n, const struct gb_stream_cfg *cfg,
                          const struct gb_stream_events *events, void *arg, struct gb_stream **out);

static struct sim_conn *conn_of(struct gb_stream *s)
{
    return GB_CONTAINER_OF(s, struct sim_conn, stream);
}

static void stream_write(struct gb_stream *s, struct gb_str *take)
{
    struct sim_conn *c = conn_of(s);
    if (c->bridge != NULL && c->state == SIM_OPEN) {
        sim_bridge_step(c->bridge);
        if (!c->bridge->dead && c->at_broker) {
            sim_intercept_write(c, take);
            if (c->bridge->member != NULL)
                sim_member_check_write(c->bridge->member, gb_str_bytes(take));
            gb_str_append(&c->up.bytes, gb_str_bytes(take));
            if (c->up.bytes.size > 0) schedule(&c->up);
            sim_bridge_step(c->bridge);
        }
    }
    gb_str_deinit(take);
}

static size_t stream_pending(const struct gb_stream *s)
{
    (void)s;
    return 0; /* the kernel takes everything */
}

static void stream_close(struct gb_stream *s, uint64_t deadline_ns)
{
    struct sim_conn *c = conn_of(s);
    if (c->state == SIM_CLOSED) { /* what a dead line would tell later */
        bool dead_line = c->host->down_cut_ns > c->world->now_ns && gb_timer_running(&c->dial);
        if (dead_line) gb_timer_start(&c->dial, c->world->now_ns + (uint64_t)GB_MS);
        return;
    }
    bool flush = deadline_ns > 0 && !c->bridge->dead;
    if (!flush) gb_str_clear(&c->up.bytes);
    close_client(c, gb_err(GB_CANCELLED, "closed by the user"));
}

static const struct gb_stream_ops stream_ops = {stream_write, stream_pending, stream_close};

static struct gb_err dial(struct gb_net *n, const struct gb_stream_cfg *cfg,
                          const struct gb_stream_events *events, void *arg, struct gb_stream **out)
{
    struct sim_bridge *b = GB_CONTAINER_OF(n, struct sim_net_port, net)->bridge;
    struct sim_world *w = b->world;
    sim_bridge_step(b);
    if (b->dead) return gb_err(GB_UNAVAILABLE, "the process is gone");
    if (b->member != NULL) sim_member_check_dial(b->member);
    struct sim_conn *c = calloc(1, sizeof *c);
    GB_ASSERT(c != NULL);
    c->stream.ops = &stream_ops;
    c->world = w;
    c->bridge = b;
    c->host = b->host;
    c->events = events;
    c->arg = arg;
    c->dial_deadline_ns = cfg->deadline_ns;
    c->up = (struct sim_pipe){.conn = c, .to_broker = true};
    c->down = (struct sim_pipe){.conn = c};
    struct gb_err err = gb_timer_init(&c->up.timer, w->reactor, pipe_due);
    if (!gb_failed(err)) err = gb_timer_init(&c->down.timer, w->reactor, pipe_due);
    if (!gb_failed(err)) err = gb_timer_init(&c->dial, w->reactor, dial_due);
    GB_ASSERT(!gb_failed(err));
    gb_list_push(&b->conns, &c->node);
    *out = &c->stream;
    uint64_t at_ns = w->now_ns + sim_delay_ns(w, w->cfg.net_delay_max_ns);
    if (sim_chance(w, w->cfg.dial_fail)) {
        if (sim_below(w, 2) == 0) {
            close_client(c, gb_err(GB_CONNECTION_LOST, "simulated refusal"));
            return gb_ok();
        }
        at_ns = sim_host_world_ns(b->host, cfg->deadline_ns); /* silence */
    }
    uint64_t cut_ns =
        b->host->up_cut_ns > b->host->down_cut_ns ? b->host->up_cut_ns : b->host->down_cut_ns;
    uint64_t end_ns = sim_host_world_ns(b->host, cfg->deadline_ns);
    if (!w->healed && at_ns < cut_ns) at_ns = cut_ns < end_ns ? cut_ns : end_ns;
    gb_timer_start(&c->dial, at_ns);
    return gb_ok();
}

void sim_net_port(struct sim_net_port *p, struct sim_bridge *b)
{
    static const struct gb_net_ops ops = {dial};
    *p = (struct sim_net_port){.net = {.ops = &ops}, .bridge = b};
}

void sim_net_process_gone(struct sim_bridge *b)
{
    struct gb_list_node *n;
    while ((n = gb_list_pop(&b->conns)) != NULL) {
        struct sim_conn *c = GB_CONTAINER_OF(n, struct sim_conn, node);
        struct gb_err reason = c->state == SIM_CLOSED
                                   ? c->close_reason
                                   : gb_err(GB_CONNECTION_LOST, "the process is gone");
        c->state = SIM_CLOSED;
        c->close_reason = reason;
        gb_timer_stop(&c->dial);
        gb_timer_stop(&c->down.timer);
        client_gone(c);
    }
}

/* --- broker side --- */

void sim_conn_send(struct sim_conn *c, struct gb_str *take)
{
    gb_str_append(&c->down.bytes, gb_str_bytes(take));
    gb_str_deinit(take);
    if (c->bridge != NULL && c->state == SIM_OPEN) schedule(&c->down);
}

void sim_conn_close(struct sim_conn *c)
{
    c->down.end = true;
    if (c->bridge != NULL && c->state == SIM_OPEN) schedule(&c->down);
    broker_gone(c);
    maybe_free(c);
}
