#include <stdio.h>
#include <string.h>

#include "domain/mqtt_topic.h"

/* Broker URLs and their canonical form (spec 03 §3.3). */

static const struct scheme_row {
    const char *name;
    enum gb_mqtt_scheme scheme;
} schemes[] = {
    {"tcp", GB_MQTT_TCP},  {"mqtt", GB_MQTT_TCP},  {"tls", GB_MQTT_TLS},
    {"ssl", GB_MQTT_TLS},  {"mqtts", GB_MQTT_TLS}, {"mqtt+ssl", GB_MQTT_TLS},
    {"tcps", GB_MQTT_TLS}, {"ws", GB_MQTT_WS},     {"wss", GB_MQTT_WSS},
};
static const struct {
    const char *family;
    uint16_t port;
} families[] = {
    [GB_MQTT_TCP] = {"tcp", 1883},
    [GB_MQTT_TLS] = {"ssl", 8883},
    [GB_MQTT_WS] = {"ws", 80},
    [GB_MQTT_WSS] = {"wss", 443},
};

static struct gb_err bad(const char *why)
{
    return gb_err(GB_INVALID_CONFIG, "broker URL: %s; write scheme://host:port", why);
}

static struct gb_err parse_scheme(struct gb_bytes *rest, enum gb_mqtt_scheme *out)
{
    *out = GB_MQTT_TCP;
    for (size_t i = 0; i + 3 <= rest->size; i++) {
        if (memcmp(rest->data + i, "://", 3) != 0) continue;
        struct gb_bytes name = gb_bytes(rest->data, i);
        for (size_t k = 0; k < sizeof schemes / sizeof schemes[0]; k++) {
            if (!gb_bytes_equal_nocase(name, gb_bytes_c(schemes[k].name))) continue;
            *out = schemes[k].scheme;
            *rest = gb_bytes(rest->data + i + 3, rest->size - i - 3);
            return gb_ok();
        }
        return gb_err(GB_INVALID_CONFIG,
                      "broker URL: scheme \"%.*s\" is unknown; use tcp, mqtt, tls, ssl, mqtts, "
                      "mqtt+ssl, tcps, ws or wss",
                      (int)(i > 40 ? 40 : i), (const char *)rest->data);
    }
    return gb_ok(); /* no scheme: tcp */
}

static struct gb_err parse_port(struct gb_bytes text, uint16_t *out)
{
    uint32_t port = 0;
    if (text.size == 0 || text.size > 5) return bad("the port is not a number from 1 to 65535");
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return bad("the port is not a number from 1 to 65535");
        port = port * 10 + (uint32_t)(text.data[i] - '0');
    }
    if (port == 0 || port > 65535) return bad("the port is not a number from 1 to 65535");
    *out = (uint16_t)port;
    return gb_ok();
}

static bool host_char_ok(uint8_t c, bool bracketed)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool digit = c >= '0' && c <= '9';
    return letter || digit || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
}

static struct gb_err copy_host(struct gb_bytes host, bool bracketed, struct gb_mqtt_endpoint *out)
{
    if (host.size == 0) return bad("the host is missing");
    if (host.size >= sizeof out->host) return bad("the host is too long");
    for (size_t i = 0; i < host.size; i++) {
        uint8_t c = host.data[i];
        if (!host_char_ok(c, bracketed))
            return bad("the host holds a character that host names don't have");
        out->host[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    out->host[host.size] = '\0';
    return gb_ok();
}

static struct gb_err parse_authority(struct gb_bytes a, struct gb_mqtt_endpoint *out)
{
    for (size_t i = a.size; i > 0; i--) {
        if (a.data[i - 1] != '@') continue;
        a = gb_bytes(a.data + i, a.size - i); /* user info is removed */
        break;
    }
    bool bracketed = a.size > 0 && a.data[0] == '[';
    const uint8_t *end = bracketed ? memchr(a.data, ']', a.size) : NULL;
    if (bracketed && end == NULL) return bad("[ without ]");
    struct gb_bytes host = a, port = gb_bytes(NULL, 0);
    size_t after = bracketed ? (size_t)(end - a.data) + 1 : 0;
    const uint8_t *colon = a.size > after ? memchr(a.data + after, ':', a.size - after) : NULL;
    if (bracketed && a.size > after && colon != a.data + after) return bad("text after ]");
    if (colon != NULL) {
        host = gb_bytes(a.data, (size_t)(colon - a.data));
        port = gb_bytes(colon + 1, (size_t)(a.data + a.size - colon - 1));
    }
    if (bracketed) host = gb_bytes(a.data + 1, after - 2);
    out->port = families[out->scheme].port;
    if (colon != NULL) {
        struct gb_err err = parse_port(port, &out->port);
        if (gb_failed(err)) return err;
    }
    return copy_host(host, bracketed, out);
}

struct gb_err gb_mqtt_endpoint_parse(struct gb_bytes url, struct gb_mqtt_endpoint *out)
{
    struct gb_mqtt_endpoint e = {0};
    struct gb_bytes rest = url;
    struct gb_err err = parse_scheme(&rest, &e.scheme);
    if (gb_failed(err)) return err;
    size_t end = 0, path_end = 0;
    while (end < rest.size && memchr("/?#", rest.data[end], 3) == NULL) end++;
    for (path_end = end; path_end < rest.size && rest.data[path_end] != '#';) path_end++;
    err = parse_authority(gb_bytes(rest.data, end), &e);
    if (gb_failed(err)) return err;
    if (e.scheme == GB_MQTT_WS || e.scheme == GB_MQTT_WSS) {
        bool slash = end < rest.size && rest.data[end] == '/';
        size_t size = path_end - end;
        if (size + 2 > sizeof e.path) return bad("the path is too long");
        for (size_t i = end; i < path_end; i++)
            if (rest.data[i] <= 0x20 || rest.data[i] >= 0x7f)
                return bad("the path holds a space or control character");
        if (!slash) e.path[0] = '/';
        if (size > 0) memcpy(e.path + (slash ? 0 : 1), rest.data + end, size);
    }
    *out = e;
    return gb_ok();
}

void gb_mqtt_endpoint_print(const struct gb_mqtt_endpoint *e, char out[GB_MQTT_ENDPOINT_TEXT_MAX])
{
    bool v6 = strchr(e->host, ':') != NULL;
    const char *path = strcmp(e->path, "/") == 0 ? "" : e->path;
    snprintf(out, GB_MQTT_ENDPOINT_TEXT_MAX, "%s://%s%s%s:%u%s", families[e->scheme].family,
             v6 ? "[" : "", e->host, v6 ? "]" : "", e->port, path);
}
