#include "blueprint/validate.h"

enum { KEY_BYTES_MIN = 16 };

static void check_key(struct gb_check *c, const char *key, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (value == NULL || size >= KEY_BYTES_MIN) return;
    gb_check_error(c, GB_RULE_V10, key, "%s has %zu bytes; at least %d are required", key, size,
                   KEY_BYTES_MIN);
}

/* V10; the rules of spec 01 §3.7. */
void gb_validate_http(struct gb_check *c)
{
    const struct gb_bp_http *h = &c->b->http;
    gb_check_leave(c);
    if (h->node == NULL) return;
    check_key(c, "http.admin_api_key", h->admin_api_key);
    check_key(c, "http.monitor_api_key", h->monitor_api_key);
    for (size_t i = 0; i < h->cors_origins.count; i++) {
        if (strcmp(h->cors_origins.items[i], "*") != 0) continue;
        gb_check_error(c, GB_RULE_V10, "http.cors_origins",
                       "http.cors_origins must not hold \"*\"; list the origins");
    }
    if ((h->tls_cert_file == NULL) != (h->tls_key_file == NULL)) {
        gb_check_error(c, GB_RULE_V10,
                       h->tls_cert_file != NULL ? "http.tls_cert_file" : "http.tls_key_file",
                       "http.tls_cert_file and http.tls_key_file are only accepted together");
    }
}
