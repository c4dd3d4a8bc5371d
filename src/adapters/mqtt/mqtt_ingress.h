#ifndef GB_ADAPTERS_MQTT_MQTT_INGRESS_H
#define GB_ADAPTERS_MQTT_MQTT_INGRESS_H

#include "adapters/mqtt/mqtt_packet.h"
#include "domain/envelope.h"
#include "domain/reserved.h"

/* PUBLISH to envelope (spec 03 §6.1, §6.3, §13; 02 §1.5).
 * Owns:   nothing; the envelope in the result belongs to the caller.
 * Thread: loop thread (the reactor's clock and generator). Otherwise pure.
 * Errors: gb_mqtt_ingress_build: GB_UNAVAILABLE (out of memory); the result is untouched. */

struct gb_mqtt_ingress { /* of one session */
    enum gb_mqtt_version version;
    bool content_hash;          /* v3.1.1: `message_id: content_hash` */
    struct gb_bytes client_id;  /* content_hash only */
    struct gb_bytes urls;       /* content_hash only: canonical URLs, newline-joined */
    uint32_t max_payload_bytes; /* for gb_mqtt_ingress_classify */
};

enum { GB_MQTT_INGRESS_TEXT_MAX = 256, GB_MQTT_INGRESS_METADATA_MAX = 131072 };

enum gb_mqtt_poison { /* the order of the checks of spec 03 §6.3 */
                      GB_MQTT_POISON_NONE = 0,
                      GB_MQTT_POISON_PAYLOAD,
                      GB_MQTT_POISON_USER_PROPERTIES,
                      GB_MQTT_POISON_METADATA,
};
/* What is not NONE is acknowledged, dropped and counted in order, never built. `*truncated` (may be
 * NULL): count MQTTIngressUserPropertiesTruncated. */
enum gb_mqtt_poison gb_mqtt_ingress_classify(const struct gb_mqtt_ingress *in,
                                             const struct gb_mqtt_publish *p, bool *truncated);
const char *
gb_mqtt_poison_name(enum gb_mqtt_poison poison); /* "payload", "user_properties", "metadata" */

struct gb_mqtt_ingress_result {
    struct gb_envelope *envelope; /* one reference */
    unsigned derived;             /* gb_derived bits */
    uint32_t header_dropped;      /* MQTTIngressHeaderDropped */
};
/* `p` must not be poison. created_at and expires_at count from the reactor's wall clock. */
struct gb_err gb_mqtt_ingress_build(const struct gb_mqtt_ingress *in,
                                    const struct gb_mqtt_publish *p, struct gb_reactor *r,
                                    struct gb_mqtt_ingress_result *out);

#endif
