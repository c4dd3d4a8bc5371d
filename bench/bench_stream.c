#include "bench_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_process.h"

static struct sockaddr_in local_address(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

int gb_bench_listen(uint16_t *port)
{
    struct sockaddr_in address = local_address(*port);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        gb_bench_die("listen on 127.0.0.1:%u: %s", *port, strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

int gb_bench_connect(uint16_t port)
{
    struct sockaddr_in address = local_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        gb_bench_die("connect to 127.0.0.1:%u: %s", port, strerror(errno));
    return fd;
}

struct gb_bench_stream *gb_bench_stream_new(int fd)
{
    struct gb_bench_stream *s = malloc(sizeof *s);
    if (s == NULL) gb_bench_die("out of memory");
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        gb_bench_die("TCP_NODELAY: %s", strerror(errno));
    s->fd = fd;
    s->begin = s->end = s->sent = 0;
    s->out = (struct gb_str){0};
    return s;
}

void gb_bench_stream_close(struct gb_bench_stream *s)
{
    if (s == NULL) return;
    (void)close(s->fd); /* the peer is gone, or the run is over */
    gb_str_deinit(&s->out);
    free(s);
}

static bool is_lull(void)
{
    return errno == EAGAIN || errno == EINTR;
}

bool gb_bench_fill(struct gb_bench_stream *s)
{
    size_t left = s->end - s->begin;
    if (s->begin > 0) memmove(s->input, s->input + s->begin, left);
    s->begin = 0;
    s->end = left;
    if (left == sizeof s->input) return true;
    ssize_t got = recv(s->fd, s->input + left, sizeof s->input - left, 0);
    if (got > 0) s->end += (size_t)got;
    return got > 0 || (got < 0 && is_lull());
}

bool gb_bench_flush(struct gb_bench_stream *s)
{
    if (s->out.failed) gb_bench_die("out of memory");
    while (gb_bench_unsent(s)) {
        ssize_t put = send(s->fd, s->out.data + s->sent, s->out.size - s->sent, MSG_NOSIGNAL);
        if (put < 0) return is_lull();
        s->sent += (size_t)put;
    }
    gb_str_clear(&s->out);
    s->sent = 0;
    return true;
}
