#include "io/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "io/http_listen.h"

/* What libmicrohttpd may hold beyond `connections_max`: those on their way out. */
enum { SPARE_CONNECTIONS = 16, HEADER_BYTES_MAX = 16384, PEER_MAX = INET6_ADDRSTRLEN };
static const uint64_t scan_ns = 500 * 1000000ull;

struct client {
    struct gb_list_node node; /* not once it is cut */
    struct gb_http_server *server;
    int fd;
    char peer[PEER_MAX];
    uint64_t due_ns; /* cut then */
    bool cut;
};
/* One request: `con_cls` of libmicrohttpd. */
struct request {
    struct gb_str body;
    bool too_large;
    bool begun; /* its handler was called once, with headers only */
};

struct gb_http_server {
    struct gb_http_server_cfg cfg;
    struct gb_reactor *reactor;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    struct gb_timer timer;   /* what libmicrohttpd waits for */
    struct gb_timer scanner; /* connections that are due */
    struct gb_list clients;  /* the longest wait first */
    unsigned client_count;
    unsigned port;
};

/* --- connections --- */

static uint64_t now_ns(const struct gb_http_server *s)
{
    return gb_reactor_now_ns(s->reactor);
}

/* libmicrohttpd sees the end of the stream and closes. */
static void cut(struct client *c)
{
    if (c->cut) return;
    c->cut = true;
    gb_list_remove(&c->node);
    c->server->client_count--;
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void wait_for(struct client *c, int64_t span_ns)
{
    if (c->cut) return;
    c->due_ns = now_ns(c->server) + (uint64_t)span_ns;
    gb_list_remove(&c->node);
    gb_list_push(&c->server->clients, &c->node);
}

static void print_peer(const struct sockaddr *a, char out[PEER_MAX])
{
    const void *ip = NULL;
    int family = a == NULL ? AF_UNSPEC : a->sa_family;
    if (family == AF_INET) {
        ip = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    } else if (family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(v6);
        family = mapped ? AF_INET : AF_INET6;
        ip = mapped ? (const void *)&v6->s6_addr[12] : v6;
    }
    if (ip == NULL || inet_ntop(family, ip, out, PEER_MAX) == NULL) out[0] = '\0';
}

static struct client *add_client(struct gb_http_server *s, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *addr =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (fd == NULL) return NULL;
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        (void)shutdown(fd->connect_fd, SHUT_RDWR);
        return NULL;
    }
    c->server = s;
    c->fd = fd->connect_fd;
    print_peer(addr == NULL ? NULL : addr->client_addr, c->peer);
    if (s->client_count >= s->cfg.connections_max)
        cut(GB_CONTAINER_OF(gb_list_first(&s->clients), struct client, node));
    s->client_count++;
    wait_for(c, s->cfg.request_ns);
    if (!gb_timer_running(&s->scanner)) gb_timer_start(&s->scanner, now_ns(s) + scan_ns);
    return c;
}

static void connection_news(void *arg, struct MHD_Connection *connection, void **context,
                            enum MHD_ConnectionNotificationCode news)
{
    if (news == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = add_client(arg, connection);
        return;
    }
    struct client *c = *context;
    if (c == NULL) return;
    if (!c->cut) {
        gb_list_remove(&c->node);
        c->server->client_count--;
    }
    free(c);
    *context = NULL;
}

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* --- requests --- */

/* The request line is there: the rest has to follow in time. */
static void *line_read(void *arg, const char *uri, struct MHD_Connection *connection)
{
    const struct gb_http_server *s = arg;
    struct client *c = client_of(connection);
    (void)uri;
    if (c != NULL) wait_for(c, s->cfg.request_ns);
    return calloc(1, sizeof(struct request)); /* NULL: the connection is closed below */
}

static void request_over(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    const struct gb_http_server *s = arg;
    struct request *q = *context;
    struct client *c = client_of(connection);
    (void)why;
    if (c != NULL) wait_for(c, s->cfg.idle_ns);
    if (q == NULL) return;
    gb_str_deinit(&q->body);
    free(q);
    *context = NULL;
}

void gb_http_server_add(struct gb_http_server_answer *a, const char *name, const char *value)
{
    if (value == NULL || a->header_count == GB_HTTP_ANSWER_HEADERS_MAX) return;
    char *copy = gb_strdup(value);
    if (copy == NULL) return;
    a->headers[a->header_count].name = name;
    a->headers[a->header_count++].value = copy;
}

static enum MHD_Result send_answer(struct MHD_Connection *connection,
                                   struct gb_http_server_answer *a)
{
    size_t size = a->body.size;
    if (a->body.failed) a->status = 500;
    char *body = gb_str_take(&a->body);
    if (body == NULL) size = 0;
    gb_str_deinit(&a->body); /* what failed is still there */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, body, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result rc = MHD_NO;
    if (response == NULL) free(body);
    for (size_t i = 0; i < a->header_count; i++) {
        if (response != NULL) /* it refuses line breaks */
            (void)MHD_add_response_header(response, a->headers[i].name, a->headers[i].value);
        free(a->headers[i].value);
    }
    if (response == NULL) return MHD_NO;
    rc = MHD_queue_response(connection, a->status, response);
    MHD_destroy_response(response);
    return rc;
}

const char *gb_http_server_header(const struct gb_http_server_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result find_query(void *arg, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    const char **found = arg; /* [0] the name, [1] the value */
    (void)kind;
    if (strcmp(key, found[0]) != 0) return MHD_YES;
    found[1] = value == NULL ? "" : value;
    return MHD_NO;
}

const char *gb_http_server_query(const struct gb_http_server_request *r, const char *name)
{
    const char *found[2] = {name, NULL};
    (void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, find_query,
                                    (void *)found);
    return found[1];
}

static enum MHD_Result refuse_body(struct MHD_Connection *connection)
{
    struct gb_http_server_answer answer = {.status = 413};
    gb_http_server_add(&answer, "Content-Type", "application/json");
    gb_http_server_add(&answer, "Connection", "close");
    gb_str_append_c(&answer.body, "{\"error\":\"invalid request body\"}");
    return send_answer(connection, &answer);
}

/* Of the headers; libmicrohttpd has refused what is no number. */
static bool announces_too_much(const struct gb_http_server *s, struct MHD_Connection *connection)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    return text != NULL && strtoull(text, NULL, 10) > s->cfg.body_max;
}

static void take_body(const struct gb_http_server *s, struct request *q, const char *data,
                      size_t size)
{
    if (size > s->cfg.body_max - q->body.size) q->too_large = true;
    if (!q->too_large) gb_str_append(&q->body, gb_bytes(data, size));
}

/* Called once with the headers, then for each piece of the body, then for the end of it. The
 * parameters are libmicrohttpd's. */
static enum MHD_Result on_request(/* NOLINT(readability-function-size) */
                                  void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    struct gb_http_server *s = arg;
    struct request *q = *context;
    struct client *c = client_of(connection);
    (void)version;
    if (q == NULL || c == NULL || c->cut) return MHD_NO;
    if (!q->begun) {
        q->begun = true;
        return announces_too_much(s, connection) ? refuse_body(connection) : MHD_YES;
    }
    if (*data_size > 0) {
        take_body(s, q, data, *data_size);
        *data_size = 0;
        return MHD_YES;
    }
    wait_for(c, s->cfg.request_ns);
    if (q->too_large || q->body.failed) return refuse_body(connection);
    const struct gb_http_server_request request = {.method = method,
                                                   .path = url,
                                                   .peer = c->peer,
                                                   .body = gb_str_bytes(&q->body),
                                                   .connection = connection};
    struct gb_http_server_answer answer = {.status = 500};
    s->cfg.handle(s->cfg.arg, &request, &answer);
    return send_answer(connection, &answer);
}

/* --- the loop --- */

static void turn(struct gb_http_server *s)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    (void)MHD_run(s->daemon); /* MHD_NO: nothing was there */
    if (MHD_get_timeout(s->daemon, &wait_ms) == MHD_YES) {
        gb_timer_start(&s->timer, now_ns(s) + (uint64_t)wait_ms * 1000000);
    } else {
        gb_timer_stop(&s->timer);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct gb_http_server *s = poll->data;
    (void)status;
    (void)events;
    gb_loop_refresh_clock(s->cfg.loop);
    turn(s);
}

static void on_timer(struct gb_timer *timer)
{
    turn(GB_CONTAINER_OF(timer, struct gb_http_server, timer));
}

static void on_scan(struct gb_timer *timer)
{
    struct gb_http_server *s = GB_CONTAINER_OF(timer, struct gb_http_server, scanner);
    struct gb_list_node *n = gb_list_first(&s->clients);
    while (n != NULL) {
        struct client *c = GB_CONTAINER_OF(n, struct client, node);
        n = gb_list_next(&s->clients, n);
        if (c->due_ns <= now_ns(s)) cut(c);
    }
    if (s->client_count > 0) gb_timer_start(&s->scanner, now_ns(s) + scan_ns);
    turn(s);
}

/* --- construction --- */

static struct gb_err start_daemon(struct gb_http_server *s, int fd)
{
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, s->cfg.connections_max + SPARE_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES_MAX, MHD_OPTION_NOTIFY_CONNECTION,
        connection_news, s, MHD_OPTION_NOTIFY_COMPLETED, request_over, s,
        MHD_OPTION_URI_LOG_CALLBACK, line_read, s, MHD_OPTION_END);
    if (s->daemon == NULL) {
        return gb_err(GB_UNAVAILABLE,
                      "the HTTP server on %.100s did not start; check the limits "
                      "of memory and open files",
                      s->cfg.address);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int rc =
        info == NULL ? UV_EBADF : uv_poll_init(gb_loop_uv(s->cfg.loop), &s->poll, info->epoll_fd);
    if (rc == 0) {
        s->poll.data = s;
        rc = uv_poll_start(&s->poll, UV_READABLE, on_poll);
        if (rc != 0) uv_close((uv_handle_t *)&s->poll, NULL);
    }
    if (rc == 0) return gb_ok();
    MHD_stop_daemon(s->daemon);
    return gb_err(GB_UNAVAILABLE, "the HTTP server on %.100s: %s", s->cfg.address, uv_strerror(rc));
}

struct gb_err gb_http_server_new(const struct gb_http_server_cfg *cfg, struct gb_http_server **out)
{
    struct gb_http_server *s = calloc(1, sizeof *s);
    int fd = -1;
    if (s == NULL) return gb_err_no_memory("HTTP server");
    s->cfg = *cfg;
    s->reactor = gb_loop_reactor(cfg->loop);
    gb_list_init(&s->clients);
    struct gb_err err = gb_timer_init(&s->timer, s->reactor, on_timer);
    if (!gb_failed(err)) err = gb_timer_init(&s->scanner, s->reactor, on_scan);
    if (!gb_failed(err)) err = gb_http_listen(cfg->address, &fd, &s->port);
    if (!gb_failed(err)) err = start_daemon(s, fd);
    if (!gb_failed(err)) {
        *out = s;
        return err;
    }
    gb_timer_deinit(&s->timer);
    gb_timer_deinit(&s->scanner);
    free(s);
    return err;
}

unsigned gb_http_server_port(const struct gb_http_server *s)
{
    return s->port;
}

static void poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void gb_http_server_free(struct gb_http_server *s)
{
    if (s == NULL) return;
    gb_timer_deinit(&s->timer);
    gb_timer_deinit(&s->scanner);
    (void)uv_poll_stop(&s->poll); /* always 0; before its descriptor goes */
    MHD_stop_daemon(s->daemon);
    uv_close((uv_handle_t *)&s->poll, poll_closed);
}
