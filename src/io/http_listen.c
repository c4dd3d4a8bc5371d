#include "io/http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"

enum { HOST_MAX = 256, BACKLOG = 128 };

static struct gb_err split(const char *address, char host[HOST_MAX], const char **port)
{
    const char *colon = strrchr(address, ':');
    size_t size = colon == NULL ? 0 : (size_t)(colon - address);
    if (colon == NULL || colon[1] == '\0' || size >= HOST_MAX) {
        return gb_err(GB_INVALID_CONFIG,
                      "\"%.100s\" is not host:port; write one such as :8081 or 127.0.0.1:8081",
                      address);
    }
    if (size >= 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    }
    memcpy(host, address, size);
    host[size] = '\0';
    *port = colon + 1;
    return gb_ok();
}

static unsigned bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6; /* its port stands where that of v4 does */
    } a;
    socklen_t size = sizeof a;
    memset(&a, 0, sizeof a);
    if (getsockname(fd, &a.any, &size) != 0) return 0;
    return ntohs(a.v4.sin_port);
}

/* -1: errno says why. */
static int open_one(const struct addrinfo *a)
{
    const int on = 1, off = 0;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

static struct gb_err open_any(const struct addrinfo *list, const char *address, int *out)
{
    static const int families[] = {AF_INET6, AF_INET}; /* the first one serves both */
    int why = EADDRNOTAVAIL;
    for (size_t f = 0; f < 2; f++) {
        for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
            if (a->ai_family != families[f]) continue;
            *out = open_one(a);
            if (*out >= 0) return gb_ok();
            why = errno;
            if (why == EADDRINUSE || why == EACCES) break;
        }
        if (why == EADDRINUSE || why == EACCES) break;
    }
    return gb_err(GB_UNAVAILABLE, "can't listen on %.100s: %s%s", address, strerror(why),
                  why == EADDRINUSE ? "; another process listens there" : "");
}

struct gb_err gb_http_listen(const char *address, int *fd, unsigned *port)
{
    char host[HOST_MAX] = {0};
    const char *service = NULL;
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct gb_err err = split(address, host, &service);
    if (gb_failed(err)) return err;
    int rc = getaddrinfo(host[0] == '\0' ? NULL : host, service, &hints, &list);
    if (rc != 0) {
        return gb_err(GB_INVALID_CONFIG, "can't listen on %.100s: %s", address, gai_strerror(rc));
    }
    err = open_any(list, address, fd);
    freeaddrinfo(list);
    if (!gb_failed(err)) *port = bound_port(*fd);
    return err;
}
