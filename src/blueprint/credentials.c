#include <string.h>

#include "blueprint/validate.h"

bool gb_blueprint_plain_broker(const struct gb_bp_mqtt_session *m,
                               char out[GB_MQTT_ENDPOINT_TEXT_MAX])
{
    if (m->allow_plaintext_credentials.value || m->allow_plaintext_credentials.broken) return false;
    for (size_t i = 0; i < m->urls.count; i++) {
        struct gb_mqtt_endpoint endpoint;
        if (gb_failed(gb_mqtt_endpoint_parse(gb_bytes_c(m->urls.items[i]), &endpoint))) continue;
        if (gb_mqtt_scheme_is_tls(endpoint.scheme)) continue;
        gb_mqtt_endpoint_print(&endpoint, out);
        return true;
    }
    return false;
}

struct gb_err gb_blueprint_check_credentials(const struct gb_bp_session *session,
                                             const char *username, const char *password)
{
    enum { FIELD_MAX = 65535 };
    char broker[GB_MQTT_ENDPOINT_TEXT_MAX];
    if (username == NULL && password == NULL) return gb_ok();
    if ((username != NULL && strlen(username) > FIELD_MAX) ||
        (password != NULL && strlen(password) > FIELD_MAX)) {
        return gb_err(GB_INVALID_CONFIG,
                      "username or password is longer than MQTT can carry, %d bytes [%s]",
                      FIELD_MAX, gb_rule_name(GB_RULE_M6));
    }
    if (!gb_blueprint_plain_broker(&session->mqtt, broker)) return gb_ok();
    return gb_err(GB_INVALID_CONFIG,
                  "username and password would be sent in plain text to \"%.60s\"; use tls:// or "
                  "wss://, or set allow_plaintext_credentials: true [%s]",
                  broker, gb_rule_name(GB_RULE_M3));
}
