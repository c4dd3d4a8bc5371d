#include <string.h>

#include "adapters/mqtt/mqtt_session_parts.h"
#include "base/json_write.h"
#include "domain/reserved.h"

/* Replays for a removed filter (spec 03 §8.3): each goes to the DLQ, then it is acknowledged;
 * without a DLQ the session keeps them at the broker and ends. */

static void next_replay(struct gb_mqtt_session *s);

/* Each acknowledgement lets the broker send more of a long queue: the filter is forgotten only when
 * none has come for this long, or what follows would be taken for orphans. */
static const uint64_t quiet_ns = 1000000000ull;

static struct gb_err set_extra_info(struct gb_dlq_entry *e, const struct gb_mqtt_session *s,
                                    const char *filter)
{
    struct gb_str json = {0};
    struct gb_json_writer w;
    gb_json_w_init(&w, &json);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "session_id");
    gb_json_w_string_c(&w, s->cfg.id);
    gb_json_w_key(&w, "subscription");
    gb_json_w_string_c(&w, filter);
    gb_json_w_key(&w, "managed_identity");
    gb_json_w_string_c(&w, s->identity);
    gb_json_w_object_end(&w);
    struct gb_err err = gb_str_check(&json, "DLQ entry");
    if (!gb_failed(err)) err = gb_dlq_set(&e->extra_info, gb_str_bytes(&json));
    gb_str_deinit(&json);
    return err;
}

static struct gb_err build_entry(struct gb_mqtt_session *s, const char *filter,
                                 struct gb_dlq_entry **out)
{
    struct gb_dlq_entry *e = NULL;
    struct gb_err err = gb_dlq_entry_new(s->replay->envelope, &e);
    if (gb_failed(err)) return err;
    const struct gb_err cause = gb_err(GB_SUBSCRIPTION_REMOVED, "subscription removed");
    const struct {
        char **member;
        const char *text;
    } rows[] = {
        {&e->route_id, s->cfg.ingress_route_id},
        {&e->session_id, s->cfg.id},
        {&e->source_id, s->cfg.id},
        {&e->address, filter},
        {&e->redrive_mode, "auto"},
    };
    err = gb_dlq_entry_set_error(e, &cause);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !gb_failed(err); i++)
        err = gb_dlq_set(rows[i].member, gb_bytes_c(rows[i].text));
    if (!gb_failed(err)) err = set_extra_info(e, s, filter);
    if (gb_failed(err)) {
        gb_dlq_entry_free(e);
        return err;
    }
    e->failed_at_ms = gb_reactor_wall_ms(s->cfg.reactor);
    e->attempts = 1;
    gb_dlq_entry_derive_id(e);
    *out = e;
    return gb_ok();
}

static void end_replay(struct gb_mqtt_session *s, bool acknowledge)
{
    struct gb_delivery *d = s->replay;
    s->replay = NULL;
    gb_mqtt_inbound_replay_done(s->inbound, d, acknowledge);
}

static void write_failed(struct gb_mqtt_session *s, struct gb_err err)
{
    end_replay(s, false);
    gb_metric_add(gb_metrics_get(s->cfg.metrics, GB_METRIC_COUNTER, "DLQWriteFailures", NULL, 0),
                  1);
    gb_mqtt_reconcile_replays_done(
        s->reconcile,
        gb_err(GB_UNAVAILABLE, "replays of a removed filter stay at the broker: %s", err.message));
}

static void written(struct gb_op *op, void *arg)
{
    struct gb_mqtt_session *s = arg;
    struct gb_err err = op->result;
    bool duplicate = err.code == GB_DUPLICATE_RECORD;
    s->replaying = false;
    gb_dlq_entry_free(s->replay_entry);
    s->replay_entry = NULL;
    if (gb_failed(err) && !duplicate) {
        write_failed(s, err);
        return;
    }
    if (!duplicate) {
        gb_metric_add(gb_metrics_get(s->cfg.metrics, GB_METRIC_COUNTER, "DLQEntries",
                                     GB_DIMS({"route_id", s->cfg.ingress_route_id},
                                             {"category", "subscription_removed"})),
                      1);
    }
    end_replay(s, true);
    s->replays_moved = true;
    next_replay(s);
}

static void next_replay(struct gb_mqtt_session *s)
{
    if (s->state != GB_MQTT_S_ONLINE) return; /* the next connection opens a new window */
    const char *filter = NULL;
    s->replay = gb_mqtt_inbound_next_replay(s->inbound, &filter);
    if (s->replay == NULL && s->replays_moved) {
        s->replays_moved = false;
        gb_timer_start(&s->replay_quiet, gb_reactor_now_ns(s->cfg.reactor) + quiet_ns);
        return;
    }
    if (s->replay == NULL) {
        gb_mqtt_reconcile_replays_done(s->reconcile, gb_ok());
        return;
    }
    if (s->cfg.dlq == NULL) {
        end_replay(s, false);
        gb_mqtt_session_fail(
            s,
            gb_err(GB_INVALID_CONFIG,
                   "messages of the removed filter %s are still queued and there is no stores.dlq: "
                   "migration requires the old configuration",
                   filter));
        return;
    }
    struct gb_err err = build_entry(s, filter, &s->replay_entry);
    if (gb_failed(err)) {
        write_failed(s, err);
        return;
    }
    memset(&s->replay_write, 0, sizeof s->replay_write);
    s->replay_write.entry = s->replay_entry;
    s->replay_write.op.deadline_ns =
        gb_reactor_now_ns(s->cfg.reactor) + (uint64_t)s->cfg.reconcile_timeout_ns;
    s->replaying = true;
    s->cfg.dlq->ops->write(s->cfg.dlq, &s->replay_write, written, s);
}

void gb_mqtt_session_replays(void *arg)
{
    struct gb_mqtt_session *s = arg;
    if (s->replaying) return; /* `written` goes on */
    s->replays_moved = false;
    gb_timer_stop(&s->replay_quiet);
    next_replay(s);
}

void gb_mqtt_session_replays_quiet(struct gb_timer *t)
{
    struct gb_mqtt_session *s = GB_CONTAINER_OF(t, struct gb_mqtt_session, replay_quiet);
    if (!s->replaying && gb_mqtt_reconcile_state(s->reconcile) == GB_MQTT_R_REPLAYS) {
        next_replay(s);
    }
}
