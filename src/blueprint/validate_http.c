#include "blueprint/validate.h"

enum { KEY_BYTES_MIN = 16, NAME_MAX_SIZE = 64 };

static void check_key(struct gb_check *c, const char *key, const char *value)
{
    size_t size = value == NULL ? 0 : strlen(value);
    if (value == NULL || size >= KEY_BYTES_MIN) return;
    gb_check_error(c, key, "%s has %zu bytes; at least %d are required", key, size, KEY_BYTES_MIN);
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
        gb_check_error(c, "http.cors_origins",
                       "http.cors_origins must not hold \"*\"; list the origins");
    }
    if ((h->tls_cert_file == NULL) != (h->tls_key_file == NULL)) {
        gb_check_error(c, h->tls_cert_file != NULL ? "http.tls_cert_file" : "http.tls_key_file",
                       "http.tls_cert_file and http.tls_key_file are only accepted together");
    }
}

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_SIZE) return false;
    for (const char *p = name; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        bool digit = *p >= '0' && *p <= '9';
        if (!letter && !digit && strchr("._-", *p) == NULL) return false;
    }
    return true;
}

static bool is_listed(const struct gb_blueprint *b, const char *name)
{
    for (size_t i = 0; i < b->route_count; i++) {
        const struct gb_bp_strings *names = &b->routes[i].processors;
        for (size_t j = 0; j < names->count; j++) {
            if (strcmp(names->items[j], name) == 0) return true;
        }
    }
    return false;
}

/* Spec 01 §3.8. */
void gb_validate_processors(struct gb_check *c)
{
    gb_check_leave(c);
    for (size_t i = 0; i < c->b->processor_count; i++) {
        const struct gb_bp_processor *p = &c->b->processors[i];
        struct gb_check at = *c;
        at.entry = p->node;
        if (!is_name(p->name)) {
            gb_check_error(&at, "", "processors: name \"%.*s\" must match [A-Za-z0-9._-]{1,64}",
                           GB_SHOWN_MAX, p->name);
        }
        if (!is_listed(c->b, p->name)) {
            gb_check_warning(&at, "", "processors.%.*s is listed by no route", GB_SHOWN_MAX,
                             p->name);
        }
    }
}
