#ifndef GB_ADAPTERS_MQTT_MQTT_SESSION_H
#define GB_ADAPTERS_MQTT_MQTT_SESSION_H

#include "adapters/mqtt/mqtt_version.h"
#include "base/metrics.h"
#include "domain/mqtt_topic.h"
#include "io/net.h"
#include "ports/authority.h"
#include "ports/dlq.h"
#include "ports/receiver.h"
#include "ports/sender.h"
#include "ports/session.h"
#include "ports/subscriptions.h"

/* One MQTT session: connection, epochs, acknowledgement order, managed subscriptions, publishing
 * (spec 03). It has no clock and no socket of its own: time comes from the reactor, bytes from
 * gb_net, so that the simulator can run it unchanged.
 * Owns:   the session owns its receiver and senders; the configuration's strings are copied;
 *         reactor, net, stores and metrics are borrowed until the session is freed.
 * Thread: loop thread only.
 * Errors: constructors: GB_INVALID_CONFIG naming the key, GB_UNAVAILABLE (out of memory). */

enum gb_mqtt_mode { GB_MQTT_EPHEMERAL = 0, GB_MQTT_PERSISTENT, GB_MQTT_EXCLUSIVE };

struct gb_mqtt_topic {
    const char *filter;
    uint8_t qos;
    int64_t qos_recheck_interval_ns; /* 0 = off */
};
struct gb_mqtt_will {
    const char *topic; /* NULL = no will */
    const char *payload;
    uint8_t qos;
    bool retain;
};
struct gb_mqtt_session_cfg {
    const char *id;
    enum gb_mqtt_mode mode;
    enum gb_mqtt_version version;
    const char *const *urls; /* one for durable sessions */
    size_t url_count;
    const char *client_id; /* effective: with its suffix */
    uint16_t keep_alive_s;
    int64_t connect_timeout_ns, reconnect_timeout_ns, reconcile_timeout_ns;
    int64_t reconnect_delay_ns, reconnect_max_delay_ns;
    int64_t unmatched_grace_ns;
    bool clean_start;                   /* of a persistent session, at its first connect */
    uint32_t session_expiry_interval_s; /* resolved: durable 0 -> 86400 */
    uint16_t receive_maximum;           /* resolved: 0 -> 192 */
    /* messages beyond receive_maximum (docs/decisions/0304); 0 -> 64 MiB */
    uint32_t excess_bytes_max;
    uint32_t max_payload_bytes; /* resolved: 0 -> 262144 */
    bool no_local;
    bool content_hash_id;            /* v3.1.1 only */
    const char *username, *password; /* NULL = absent */
    struct gb_mqtt_will will;
    struct gb_tls_cfg tls; /* used for TLS schemes only */
    const struct gb_mqtt_topic *topics;
    size_t topic_count; /* 0: publish only, no receiver */
    const char *receiver_id;
    const char *ingress_route_id; /* for DLQ entries of removed filters; NULL unless single */

    struct gb_reactor *reactor;
    struct gb_net *net;
    struct gb_metrics *metrics;
    struct gb_subscriptions *subscriptions; /* durable with topics or history */
    struct gb_dlq *dlq;                     /* may be NULL */
    struct gb_authority authority;          /* see gb_mqtt_session_fence */
    /* The session became terminal (spec 03 §12): the process must end. Runs deferred, once. */
    void (*terminal)(void *arg, const char *session_id, struct gb_err cause);
    void *arg;
};
struct gb_mqtt_sender_cfg {
    const char *id;
    const char *default_topic; /* NULL or "" = none */
    uint8_t qos;
    bool retain;
    int64_t timeout_ns;
    int64_t throttle_retry_after_ns;
};

struct gb_err gb_mqtt_session_new(const struct gb_mqtt_session_cfg *cfg, struct gb_session **out);
/* The session's one receiver, or NULL when it has no topics. */
struct gb_receiver *gb_mqtt_session_receiver(struct gb_session *s);
/* Before the first start: without this authority nothing is written to the broker but DISCONNECT.
 * It lives as long as the session. */
void gb_mqtt_session_fence(struct gb_session *s, struct gb_authority authority);
/* Before start only; lives as long as the session. */
struct gb_err gb_mqtt_session_add_sender(struct gb_session *s, const struct gb_mqtt_sender_cfg *cfg,
                                         struct gb_sender **out);

#endif
