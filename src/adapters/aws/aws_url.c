#include "adapters/aws/aws_url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { URL_MAX = 2048 };

static bool allowed(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p <= ' ' || *p == 0x7F || (unsigned char)*p > 0x7F || *p == '?' || *p == '#' ||
            *p == '@' || *p == '\\')
            return false;
    }
    return true;
}

/* Length of the host name at `at`, 0 when there is none. */
static size_t hostname_size(const char *at)
{
    if (*at != '[') return strcspn(at, ":/");
    const char *end = strchr(at, ']');
    return end == NULL || end == at + 1 ? 0 : (size_t)(end + 1 - at);
}

/* The port text after the colon: 1 to 5 digits, 1-65535. */
static bool port_ok(const char *text, size_t size)
{
    unsigned value = 0;
    if (size == 0 || size > 5) return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return value >= 1 && value <= 65535;
}

static char *lower_copy(const char *text, size_t size)
{
    char *copy = gb_bytes_dup(gb_bytes(text, size));
    if (copy == NULL) return NULL;
    for (size_t i = 0; i < size; i++) copy[i] = (char)tolower((unsigned char)copy[i]);
    return copy;
}

static struct gb_err build(struct gb_aws_url *u, const char *authority, size_t name_size,
                           const char *port, const char *path)
{
    const char *own_port = u->tls ? "443" : "80";
    bool with_port = port != NULL && (strncmp(port, own_port, strlen(own_port)) != 0 ||
                                      isdigit((unsigned char)port[strlen(own_port)]));
    size_t port_size = port == NULL ? 0 : strcspn(port, "/");
    u->hostname = lower_copy(authority, name_size);
    if (u->hostname == NULL) return gb_err_no_memory("URL");
    u->host = with_port ? gb_asprintf("%s:%.*s", u->hostname, (int)port_size, port)
                        : gb_strdup(u->hostname);
    if (u->host == NULL) return gb_err_no_memory("URL");
    u->url =
        gb_asprintf("%s://%s%s", u->tls ? "https" : "http", u->host, *path == '\0' ? "/" : path);
    if (u->url == NULL) return gb_err_no_memory("URL");
    u->path = strchr(u->url + (u->tls ? 8 : 7), '/');
    return gb_ok();
}

struct gb_err gb_aws_url_parse(const char *text, struct gb_aws_url *out)
{
    struct gb_aws_url u = {0};
    const char *shown = text == NULL ? "" : text;
    u.tls = strncasecmp(shown, "https://", 8) == 0;
    bool plain = strncasecmp(shown, "http://", 7) == 0;
    const char *authority = shown + (u.tls ? 8 : 7);
    if ((!u.tls && !plain) || strlen(shown) > URL_MAX || !allowed(shown)) {
        return gb_err(GB_INVALID_CONFIG,
                      "endpoint: not an absolute http:// or https:// URL (without user, query and "
                      "fragment)");
    }
    size_t name_size = hostname_size(authority);
    const char *rest = authority + name_size;
    const char *port = *rest == ':' ? rest + 1 : NULL;
    const char *path = port == NULL ? rest : port + strcspn(port, "/");
    if (name_size == 0 || (*path != '\0' && *path != '/') ||
        (port != NULL && !port_ok(port, (size_t)(path - port)))) {
        return gb_err(GB_INVALID_CONFIG, "endpoint \"%s\": host or port is missing or malformed",
                      shown);
    }
    struct gb_err err = build(&u, authority, name_size, port, path);
    if (gb_failed(err)) {
        gb_aws_url_deinit(&u);
        return err;
    }
    *out = u;
    return err;
}

void gb_aws_url_deinit(struct gb_aws_url *u)
{
    free(u->url);
    free(u->host);
    free(u->hostname);
    *u = (struct gb_aws_url){0};
}
