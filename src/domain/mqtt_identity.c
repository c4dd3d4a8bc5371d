#include "base/digest.h"
#include "domain/mqtt_topic.h"

void gb_mqtt_storage_identity(const struct gb_mqtt_endpoint *e, struct gb_bytes client_id,
                              char out[GB_MQTT_IDENTITY_SIZE])
{
    char endpoint[GB_MQTT_ENDPOINT_TEXT_MAX];
    gb_mqtt_endpoint_print(e, endpoint);
    const struct gb_bytes parts[] = {
        gb_bytes_c("gobridge-mqtt-state-v1"),
        gb_bytes_c(endpoint),
        client_id,
    };
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts(parts, sizeof parts / sizeof parts[0], 8, digest);
    gb_hex(gb_bytes(digest, sizeof digest), out);
}

void gb_mqtt_content_id(struct gb_bytes client_id, struct gb_bytes urls, struct gb_bytes topic,
                        struct gb_bytes payload, char out[GB_MQTT_CONTENT_ID_SIZE])
{
    const struct gb_bytes parts[] = {client_id, urls, topic};
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts_tail(parts, sizeof parts / sizeof parts[0], 8, payload, digest);
    struct gb_str text = gb_str_over(out, GB_MQTT_CONTENT_ID_SIZE);
    gb_str_append_c(&text, "mqtt-sha256:");
    gb_base64url_append(&text, gb_bytes(digest, sizeof digest));
}
