#ifndef GB_DOMAIN_MQTT_TOPIC_H
#define GB_DOMAIN_MQTT_TOPIC_H

#include "base/bytes.h"
#include "base/err.h"

/* MQTT topic names and filters (MQTT 5 §4.7, spec 03 §3.2, §7), endpoints and derived identities
 * (§3.3, §3.4, §13).
 * Owns:   nothing; results go into the caller's buffers.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG for filters and endpoints, GB_INVALID_TOPIC for publish topics; the
 *         message shows the value and the rule (no URL: it may hold a password). */
enum { GB_MQTT_TOPIC_MAX = 65535 };

struct gb_err gb_mqtt_filter_check(struct gb_bytes filter); /* also $share/<group>/<filter> */
struct gb_err gb_mqtt_publish_topic_check(struct gb_bytes topic);
/* For an expanded address template (spec 02 §8.3): a publish topic without an empty level. */
struct gb_err gb_mqtt_address_check(struct gb_bytes address);
bool gb_mqtt_filter_is_shared(struct gb_bytes filter);
/* Without $share/<group>/ ; the filter itself when not shared. */
struct gb_bytes gb_mqtt_filter_plain(struct gb_bytes filter);
/* `filter` may be shared; leading wildcards don't match $... topics. */
bool gb_mqtt_filter_matches(struct gb_bytes filter, struct gb_bytes topic);

enum gb_mqtt_scheme { GB_MQTT_TCP, GB_MQTT_TLS, GB_MQTT_WS, GB_MQTT_WSS };
struct gb_mqtt_endpoint {
    enum gb_mqtt_scheme scheme;
    char host[256];
    uint16_t port;
    char path[1024]; /* ws, wss: path with query, at least "/" ; else empty */
};
struct gb_err gb_mqtt_endpoint_parse(struct gb_bytes url, struct gb_mqtt_endpoint *out);
static inline bool gb_mqtt_scheme_is_tls(enum gb_mqtt_scheme scheme)
{
    return scheme == GB_MQTT_TLS || scheme == GB_MQTT_WSS;
}
enum { GB_MQTT_ENDPOINT_TEXT_MAX = 1400 };
/* family://host:port[/path?query] (spec 03 §3.3). */
void gb_mqtt_endpoint_print(const struct gb_mqtt_endpoint *e, char out[GB_MQTT_ENDPOINT_TEXT_MAX]);

enum { GB_MQTT_IDENTITY_SIZE = 65, GB_MQTT_CONTENT_ID_SIZE = 64 };
/* History identity (spec 03 §3.4): 64 hex digits. */
void gb_mqtt_storage_identity(const struct gb_mqtt_endpoint *e, struct gb_bytes client_id,
                              char out[GB_MQTT_IDENTITY_SIZE]);
/* `mqtt-sha256:...` (spec 03 §13); `urls` newline-joined canonical URLs as in the vector
 * tcp://broker:1883. */
void gb_mqtt_content_id(struct gb_bytes client_id, struct gb_bytes urls, struct gb_bytes topic,
                        struct gb_bytes payload, char out[GB_MQTT_CONTENT_ID_SIZE]);

/* Spec 03 §9: activation of a durable session; inputs <= 0 take 30 s; saturates. */
int64_t gb_mqtt_activation_ns(int64_t connect_timeout_ns, int64_t reconcile_timeout_ns,
                              int64_t unmatched_grace_ns);

#endif
