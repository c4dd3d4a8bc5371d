#include <stdio.h>

#include "domain/mqtt_topic.h"

/* Broker URLs and their canonical form (spec 03 §3.3). No message shows the URL: it may hold a
 * password. */

static const struct scheme_row {
    const char *name;
    enum gb_mqtt_scheme scheme;
} schemes[] = {
    {"tcp", GB_MQTT_TCP},  {"mqtt", GB_MQTT_TCP},  {"ssl", GB_MQTT_TLS},
    {"tls", GB_MQTT_TLS},  {"mqtts", GB_MQTT_TLS}, {"mqtt+ssl", GB_MQTT_TLS},
    {"tcps", GB_MQTT_TLS}, {"ws", GB_MQTT_WS},     {"wss", GB_MQTT_WSS},
};

static const struct family_row {
    const char *name;
    uint16_t port;
} families[] = {
    [GB_MQTT_TCP] = {"tcp", 1883},
    [GB_MQTT_TLS] = {"ssl", 8883},
    [GB_MQTT_WS] = {"ws", 80},
    [GB_MQTT_WSS] = {"wss", 443},
};

static struct gb_err refuse(const char *why)
{
    return gb_err(GB_INVALID_CONFIG, "broker URL: %s; write scheme://host:port", why);
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_scheme_char(uint8_t c) /* RFC 3986 §3.1 */
{
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
}

static struct gb_bytes from(struct gb_bytes text, size_t at)
{
    return gb_bytes(text.data + at, text.size - at);
}

/* Takes the scheme off `*rest`; none means tcp. */
static struct gb_err take_scheme(struct gb_bytes *rest, enum gb_mqtt_scheme *out)
{
    size_t size = 0;
    while (size < rest->size && is_scheme_char(rest->data[size])) size++;
    *out = GB_MQTT_TCP;
    if (rest->size - size < 3 || memcmp(rest->data + size, "://", 3) != 0) return gb_ok();
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct gb_bytes name = gb_bytes(rest->data, size);
        if (!gb_bytes_equal_nocase(name, gb_bytes_c(schemes[i].name))) continue;
        *out = schemes[i].scheme;
        *rest = from(*rest, size + 3);
        return gb_ok();
    }
    return gb_err(GB_INVALID_CONFIG,
                  "broker URL: unknown scheme \"%.*s\"; use tcp, mqtt, ssl, tls, mqtts, mqtt+ssl, "
                  "tcps, ws or wss",
                  (int)(size > 32 ? 32 : size), (const char *)rest->data);
}

static struct gb_err parse_port(struct gb_bytes text, uint16_t *out)
{
    uint32_t port = 0;
    bool ok = text.size > 0 && text.size <= 5;
    for (size_t i = 0; ok && i < text.size; i++) {
        ok = is_digit(text.data[i]);
        port = port * 10 + (uint32_t)(text.data[i] - '0');
    }
    if (!ok || port == 0 || port > UINT16_MAX) {
        return refuse("the port is not a number from 1 to 65535");
    }
    *out = (uint16_t)port;
    return gb_ok();
}

static bool is_host_char(uint8_t c, bool ip6)
{
    if (is_letter(c) || is_digit(c) || c == '.') return true;
    return ip6 ? c == ':' || c == '%' : c == '-' || c == '_';
}

static struct gb_err copy_host(struct gb_bytes host, bool ip6, struct gb_mqtt_endpoint *out)
{
    if (host.size == 0) return refuse("the host is missing");
    if (host.size >= sizeof out->host) return refuse("the host is longer than 255 bytes");
    if (ip6 && memchr(host.data, ':', host.size) == NULL) {
        return refuse("brackets are for IPv6 addresses");
    }
    for (size_t i = 0; i < host.size; i++) {
        uint8_t c = host.data[i];
        if (!is_host_char(c, ip6)) return refuse("the host has a character that no host name has");
        out->host[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    out->host[host.size] = '\0';
    return gb_ok();
}

/* [userinfo@]host[:port]; the user info is dropped. */
static struct gb_err parse_authority(struct gb_bytes a, struct gb_mqtt_endpoint *out)
{
    const uint8_t *sign = a.size == 0 ? NULL : memrchr(a.data, '@', a.size);
    if (sign != NULL) a = from(a, (size_t)(sign - a.data) + 1);
    bool ip6 = a.size > 0 && a.data[0] == '[';
    size_t host_size = 0;
    if (ip6) {
        const uint8_t *close = memchr(a.data, ']', a.size);
        if (close == NULL) return refuse("'[' is not closed");
        host_size = (size_t)(close - a.data) + 1;
    } else {
        while (host_size < a.size && a.data[host_size] != ':') host_size++;
    }
    struct gb_bytes host = ip6 ? gb_bytes(a.data + 1, host_size - 2) : gb_bytes(a.data, host_size);
    struct gb_err err = copy_host(host, ip6, out);
    if (gb_failed(err)) return err;
    out->port = families[out->scheme].port;
    if (host_size == a.size) return gb_ok();
    if (a.data[host_size] != ':') return refuse("text after ']'");
    return parse_port(from(a, host_size + 1), &out->port);
}

/* Path and query of a WebSocket URL, at least "/". */
static struct gb_err copy_path(struct gb_bytes path, struct gb_mqtt_endpoint *out)
{
    size_t at = 0;
    if (path.size == 0 || path.data[0] != '/') out->path[at++] = '/';
    if (path.size >= sizeof out->path - at) return refuse("the path is longer than 1022 bytes");
    for (size_t i = 0; i < path.size; i++) {
        uint8_t c = path.data[i];
        if (c <= 0x20 || c >= 0x7F) return refuse("the path needs its %-escapes");
        out->path[at++] = (char)c;
    }
    out->path[at] = '\0';
    return gb_ok();
}

static bool ends_authority(uint8_t c)
{
    return c == '/' || c == '?' || c == '#';
}

struct gb_err gb_mqtt_endpoint_parse(struct gb_bytes url, struct gb_mqtt_endpoint *out)
{
    struct gb_mqtt_endpoint e = {0};
    if (url.size == 0) return refuse("it is empty");
    struct gb_err err = take_scheme(&url, &e.scheme);
    if (gb_failed(err)) return err;
    size_t host_end = 0;
    while (host_end < url.size && !ends_authority(url.data[host_end])) host_end++;
    size_t path_end = host_end;
    while (path_end < url.size && url.data[path_end] != '#') path_end++;
    err = parse_authority(gb_bytes(url.data, host_end), &e);
    if (!gb_failed(err) && (e.scheme == GB_MQTT_WS || e.scheme == GB_MQTT_WSS)) {
        err = copy_path(gb_bytes(url.data + host_end, path_end - host_end), &e);
    }
    if (!gb_failed(err)) *out = e;
    return err;
}

void gb_mqtt_endpoint_print(const struct gb_mqtt_endpoint *e, char out[GB_MQTT_ENDPOINT_TEXT_MAX])
{
    bool ip6 = strchr(e->host, ':') != NULL;
    const char *path = strcmp(e->path, "/") == 0 ? "" : e->path; /* ws://h and ws://h/ are one */
    (void)snprintf(out, GB_MQTT_ENDPOINT_TEXT_MAX, "%s://%s%s%s:%u%s", families[e->scheme].name,
                   ip6 ? "[" : "", e->host, ip6 ? "]" : "", (unsigned)e->port, path);
}
