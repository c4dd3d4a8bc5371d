#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "blueprint/validate.h"

/* The http block (V10; spec 01 §3.7, 08 §4) and the endpoints of transport http (spec 04 C1,
 * C2). */

enum { KEY_BYTES_MIN = 16, PORT_MAX = 65535 };

static void check_key(struct gb_check *c, const char *key, const char *value)
{
    if (value == NULL) return;
    size_t size = strlen(value);
    if (size >= KEY_BYTES_MIN) return;
    gb_check_error(c, GB_RULE_V10, key,
                   "%s has %zu bytes; at least %d are required, make it longer", key, size,
                   KEY_BYTES_MIN);
}

/* [host]:port; the host is left to the listener. */
static bool is_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL) return false;
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0') return false;
    return strtoul(colon + 1, NULL, 10) <= PORT_MAX;
}

static void check_listener(struct gb_check *c, const char *key, const char *address)
{
    if (address == NULL || is_address(address)) return;
    gb_check_error(c, GB_RULE_V10, key,
                   "%s \"%.*s\" must be host:port with a port of 0-65535; write one such as :8080",
                   key, GB_SHOWN_MAX, address);
}

static void check_origins(struct gb_check *c, const struct gb_bp_strings *origins)
{
    for (size_t i = 0; i < origins->count; i++) {
        if (strchr(origins->items[i], '*') == NULL) continue;
        gb_check_error(
            c, GB_RULE_V10, "http.cors_origins",
            "http.cors_origins must not hold \"*\", as in \"%.*s\"; list the origins, such "
            "as https://ops.example.com",
            GB_SHOWN_MAX, origins->items[i]);
    }
}

static void check_tls(struct gb_check *c, const struct gb_bp_http *h)
{
    bool cert = gb_check_written(c, "tls_cert_file");
    if (cert == gb_check_written(c, "tls_key_file")) return;
    const char *file = cert ? h->tls_cert_file : h->tls_key_file;
    if (file == NULL) return; /* the decoder has spoken */
    gb_check_error(c, GB_RULE_V10, cert ? "tls_cert_file" : "tls_key_file",
                   "http.tls_cert_file and http.tls_key_file are only accepted together, and only "
                   "%s \"%.*s\" is written; add the other",
                   cert ? "tls_cert_file" : "tls_key_file", GB_SHOWN_MAX, file);
}

/* H2. */
static void check_token(struct gb_check *c, const char *api_key)
{
    const char *token = c->b->bridge.cluster.forwarder.forward_token;
    if (api_key == NULL || token == NULL || strcmp(api_key, token) != 0) return;
    gb_check_error(c, GB_RULE_H2, "options.api_key",
                   "options.api_key equals bridge.cluster.forwarder.forward_token; a client with "
                   "the key could pose as a peer, make one of them differ");
}

/* H1: the second user of a path is refused. */
static void take_path(struct gb_check *c, struct gb_map *seen, const char *path, const char *key)
{
    struct gb_bytes text = gb_bytes_c(path);
    if (gb_map_has(seen, text)) {
        gb_check_error(c, GB_RULE_H1, key,
                       "%s \"%.*s\" is also that of another endpoint; give each its own", key,
                       GB_SHOWN_MAX, path);
    } else if (gb_failed(gb_map_put(seen, text, c))) {
        c->findings->failed = true;
    }
}

static void check_paths(struct gb_check *c, struct gb_map *seen, const char *section,
                        const char *id, const char *path)
{
    char own[GB_BLUEPRINT_ID_MAX + 64];
    bool receiver = section[0] == 'r';
    if (path != NULL) take_path(c, seen, path, "options.path");
    if (id == NULL || (path != NULL && !receiver)) return;
    /* The default path of a receiver stays mounted for forwarded requests. */
    (void)snprintf(own, sizeof own, "/transport/http/%s/%s/%s", section, id,
                   receiver ? "messages" : "events");
    if (path == NULL || strcmp(path, own) != 0) take_path(c, seen, own, "path");
}

static void check_endpoints(struct gb_check *c)
{
    struct gb_map paths = {0};
    for (size_t i = 0; i < c->b->receiver_count; i++) {
        const struct gb_bp_receiver *r = &c->b->receivers[i];
        if (r->transport.value != GB_BP_HTTP) continue;
        gb_check_enter(c, "receivers", i, r->id, r->node);
        check_token(c, r->http.api_key);
        check_paths(c, &paths, "receivers", r->id, r->http.path);
    }
    for (size_t i = 0; i < c->b->sender_count; i++) {
        const struct gb_bp_sender *s = &c->b->senders[i];
        if (s->transport.value != GB_BP_HTTP) continue;
        gb_check_enter(c, "senders", i, s->id, s->node);
        check_token(c, s->http.api_key);
        check_paths(c, &paths, "senders", s->id, s->http.path);
    }
    gb_map_deinit(&paths);
}

void gb_validate_http_endpoint(struct gb_check *c, const char *path, const char *api_key,
                               const char *credentials_uri)
{
    check_key(c, "options.api_key", api_key);
    gb_validate_credentials_uri(c, credentials_uri);
    if (path == NULL) return;
    bool literal = path[0] == '/';
    for (const char *p = path; literal && *p != '\0'; p++) {
        literal = *p > ' ' && *p != 0x7f && *p != '{' && *p != '}';
    }
    if (literal) return;
    gb_check_error(
        c, GB_RULE_H1, "options.path",
        "options.path \"%.*s\" must begin with \"/\" and hold no braces, spaces and control "
        "characters; write one such as /orders/in",
        GB_SHOWN_MAX, path);
}

void gb_validate_http(struct gb_check *c)
{
    const struct gb_bp_http *h = &c->b->http;
    check_endpoints(c);
    gb_check_leave(c);
    if (h->node == NULL || h->node->kind != GB_NODE_MAP) return;
    struct gb_check at = *c;
    at.entry = h->node;
    check_key(c, "http.admin_api_key", h->admin_api_key);
    check_key(c, "http.monitor_api_key", h->monitor_api_key);
    check_listener(c, "http.admin_addr", h->admin_addr);
    check_listener(c, "http.monitor_addr", h->monitor_addr);
    check_listener(c, "http.transport_addr", h->transport_addr);
    check_origins(c, &h->cors_origins);
    check_tls(&at, h);
}
