#ifndef GB_ADAPTERS_MQTT_MQTT_SESSION_PARTS_H
#define GB_ADAPTERS_MQTT_MQTT_SESSION_PARTS_H

#include "adapters/mqtt/mqtt_inbound.h"
#include "adapters/mqtt/mqtt_link.h"
#include "adapters/mqtt/mqtt_publisher.h"
#include "base/log.h"

/* Inside of the session (src/adapters/mqtt/mqtt_session*.c and mqtt_sender.c only).
 * Owns:   see struct gb_mqtt_session.
 * Thread: loop thread only.
 * Errors: none of its own. */

enum gb_mqtt_session_state {
    GB_MQTT_S_NEW = 0,
    GB_MQTT_S_HISTORY,      /* the store lists H */
    GB_MQTT_S_HISTORY_WAIT, /* no baseline or store outage: asked again */
    GB_MQTT_S_BACKOFF,      /* waits before the next attempt */
    GB_MQTT_S_CONNECTING,
    GB_MQTT_S_ONLINE,
    GB_MQTT_S_DRAINING, /* recycle: accepted deliveries settle, then the connection is replaced */
    GB_MQTT_S_CYCLING,  /* recycle: the old connection is closing */
    GB_MQTT_S_STOPPING,
    GB_MQTT_S_STOPPED,
    GB_MQTT_S_TERMINAL, /* spec 03 §12: waits for stop */
    GB_MQTT_S_STATES,
};

struct gb_mqtt_sender {
    struct gb_sender base;
    struct gb_mqtt_session *session;
    struct gb_mqtt_publish_options options;
    struct gb_list_node node;
};

struct gb_mqtt_session_metrics {
    struct gb_metric *reconnects, *takeovers, *resume_lost, *rejected, *recoveries,
        *connect_latency, *poison_dropped, *properties_truncated, *header_dropped;
};

struct gb_mqtt_session {
    struct gb_session base;
    struct gb_mqtt_session_cfg cfg; /* strings and arrays are the session's own copies */
    void **owned;
    size_t owned_count;
    struct gb_mqtt_endpoint *endpoints;
    size_t endpoint_next;
    char identity[GB_MQTT_IDENTITY_SIZE];
    struct gb_str urls_joined; /* for content_hash ids */
    enum gb_mqtt_session_state state;
    struct gb_timer timer;
    struct gb_mqtt_link link;
    struct gb_mqtt_acks acks;
    struct gb_mqtt_inbound *inbound;
    struct gb_mqtt_publisher *publisher;
    struct gb_mqtt_reconcile *reconcile;
    struct gb_list senders;
    /* history */
    struct gb_subscriptions_list list;
    bool listing;
    int64_t history_wait_ns;
    /* attempts and penalties */
    uint64_t epoch;           /* successful CONNACKs */
    bool connected_once;      /* since the start */
    uint64_t failed_attempts; /* the same */
    uint32_t failures;
    uint64_t started_ns, up_ns;
    uint32_t takeover_streak, reject_streak;
    uint64_t rejected_ns;
    bool rejecting; /* not ready until a connection has lasted 30 s */
    bool topics_shared;
    bool excess; /* messages of this connection were left with the broker (docs/decisions/0304) */
    bool excess_told;
    /* recycle */
    bool recovery_wanted, recovery_running;
    uint64_t recovery_ended_ns;
    uint64_t recovery_count;
    struct gb_log_limit poison_limit;
    struct gb_str orphan_topic; /* unsubscribed last */
    /* replays of removed filters */
    struct gb_dlq_write replay_write;
    struct gb_dlq_entry *replay_entry;
    struct gb_delivery *replay;
    bool replaying;
    bool replays_moved; /* some went to the DLQ since the last quiet interval */
    struct gb_timer replay_quiet;
    /* stop */
    struct gb_op *stop_op;
    struct gb_err last_error;
    struct gb_err terminal_cause;
    struct gb_task terminal_task;
    struct gb_mqtt_session_metrics m;
};

struct gb_mqtt_session *gb_mqtt_session_of(struct gb_session *s);
/* mqtt_session_config.c: copies, checks, part construction. */
struct gb_err gb_mqtt_session_copy_cfg(struct gb_mqtt_session *s,
                                       const struct gb_mqtt_session_cfg *cfg);
void gb_mqtt_session_init_metrics(struct gb_mqtt_session *s);
/* mqtt_session_packets.c */
void gb_mqtt_session_packet(void *arg, const struct gb_mqtt_packet *p);
void gb_mqtt_session_oversized(void *arg, uint8_t qos, uint16_t packet_id);
void gb_mqtt_session_subscribe(void *arg, uint16_t id, const struct gb_mqtt_subscription *subs,
                               size_t count);
void gb_mqtt_session_unsubscribe(void *arg, uint16_t id, const struct gb_mqtt_subscription *subs,
                                 size_t count);
void gb_mqtt_session_orphan(void *arg, struct gb_bytes topic);
/* mqtt_session_replay.c */
void gb_mqtt_session_replays(void *arg);
void gb_mqtt_session_replays_quiet(struct gb_timer *t);
/* mqtt_session.c */
void gb_mqtt_session_reject(struct gb_mqtt_session *s, uint8_t reason, struct gb_err cause);
void gb_mqtt_session_fail(struct gb_mqtt_session *s, struct gb_err cause); /* terminal */

#endif
