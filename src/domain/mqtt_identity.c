#include <string.h>

#include "base/digest.h"
#include "base/duration.h"
#include "domain/mqtt_topic.h"

void gb_mqtt_storage_identity(const struct gb_mqtt_endpoint *e, struct gb_bytes client_id,
                              char out[GB_MQTT_IDENTITY_SIZE])
{
    char endpoint[GB_MQTT_ENDPOINT_TEXT_MAX];
    gb_mqtt_endpoint_print(e, endpoint);
    const struct gb_bytes parts[] = {gb_bytes_c("gobridge-mqtt-state-v1"), gb_bytes_c(endpoint),
                                     client_id};
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts(parts, 3, 8, digest);
    gb_hex(gb_bytes(digest, sizeof digest), out);
}

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Spec 03 §13: length-prefixed client id, URLs and topic, then the payload as it is. */
void gb_mqtt_content_id(struct gb_bytes client_id, struct gb_bytes urls, struct gb_bytes topic,
                        struct gb_bytes payload, char out[GB_MQTT_CONTENT_ID_SIZE])
{
    uint8_t digest[GB_SHA256_SIZE];
    const struct gb_bytes parts[] = {client_id, urls, topic};
    gb_sha256_parts_tail(parts, 3, 8, payload, digest);
    memcpy(out, "mqtt-sha256:", 12);
    size_t at = 12;
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < sizeof digest; i++) {
        bits = bits << 8 | digest[i];
        count += 8;
        while (count >= 6) {
            count -= 6;
            out[at++] = base64url[bits >> count & 63];
        }
    }
    if (count > 0) out[at++] = base64url[bits << (6 - count) & 63];
    out[at] = '\0';
}

int64_t gb_mqtt_activation_ns(int64_t connect_timeout_ns, int64_t reconcile_timeout_ns,
                              int64_t unmatched_grace_ns)
{
    const int64_t fallback = 30 * GB_SEC;
    int64_t connect = connect_timeout_ns <= 0 ? fallback : connect_timeout_ns;
    int64_t reconcile = reconcile_timeout_ns <= 0 ? fallback : reconcile_timeout_ns;
    int64_t grace = unmatched_grace_ns <= 0 ? fallback : unmatched_grace_ns;
    int64_t sum = gb_add_sat_i64(gb_mul_sat_i64(2, connect), gb_mul_sat_i64(4, reconcile));
    return gb_add_sat_i64(sum, gb_mul_sat_i64(2, grace));
}
