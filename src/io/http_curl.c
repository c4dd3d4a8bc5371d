#include "io/http_curl.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "io/http_transfer.h"

enum { CONNECTIONS_MAX_DEFAULT = 16, POOL_MIN = 64, FREE_TRANSFERS_MAX = 64, FD_STEP = 64 };

/* libcurl repeats a request whose idle connection the peer had closed, but counts that over the
 * whole life of an easy handle and gives up at the sixth (7.88). Each repetition makes a
 * connection, so a handle that made this many is not used again. */
enum { CONNECTS_MAX = 3 };

struct http_curl {
    struct gb_http http;
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    struct gb_http_curl_cfg cfg; /* strings are our own copies */
    CURLM *multi;
    struct gb_timer timer; /* libcurl's next time-out */
    struct gb_task due;    /* libcurl's time-out of zero: later in this turn */
    struct gb_list busy;   /* gb_transfer */
    struct gb_list free;
    size_t free_count;
    struct http_socket **sockets; /* by descriptor */
    size_t sockets_capacity;
};

/* libcurl stops wanting events of a connection with each answer and wants them again with the next
 * request. We keep polling meanwhile, which saves two system calls per request, and stop at the
 * first event that nobody wants (the peer has closed the idle connection). */
struct http_socket {
    uv_poll_t poll;
    struct http_curl *client;
    curl_socket_t fd;
    int wanted; /* UV_READABLE, UV_WRITABLE: by libcurl */
    int polled; /* by uv */
    bool ours;  /* made by open_socket; the resolver closes its own without telling */
};

/* --- completion --- */

static void release(struct http_curl *h, struct gb_transfer *t)
{
    gb_list_remove(&t->node);
    gb_timer_stop(&t->deadline);
    t->request = NULL;
    if (h->free_count < FREE_TRANSFERS_MAX && t->connects < CONNECTS_MAX) {
        h->free_count++;
        gb_list_push_front(&h->free, &t->node);
    } else {
        gb_timer_deinit(&t->deadline);
        gb_transfer_free(t);
    }
}

static void finish(struct http_curl *h, struct gb_transfer *t, struct gb_err result)
{
    struct gb_http_request *q = t->request;
    (void)curl_multi_remove_handle(h->multi, t->easy); /* fine for one that was never added */
    release(h, t);
    gb_op_finish(&q->op, result);
}

/* Finishes what libcurl has completed. */
static void collect(struct http_curl *h)
{
    int left = 0;
    CURLMsg *message = NULL;
    while ((message = curl_multi_info_read(h->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result;
        char *private = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct gb_transfer *t = (struct gb_transfer *)(void *)private;
        finish(h, t, gb_transfer_outcome(t, code));
    }
}

static void drive(struct http_curl *h, curl_socket_t fd, int flags)
{
    int running = 0;
    CURLMcode rc = curl_multi_socket_action(h->multi, fd, flags, &running);
    /* Its errors are wrong arguments, or a callback of ours that said "abort", which none does. */
    GB_ASSERT(rc == CURLM_OK || rc == CURLM_OUT_OF_MEMORY || rc == CURLM_INTERNAL_ERROR);
    collect(h);
}

/* --- libcurl's time-outs --- */

static void on_due(struct gb_task *task)
{
    drive(GB_CONTAINER_OF(task, struct http_curl, due), CURL_SOCKET_TIMEOUT, 0);
}

static void on_timer(struct gb_timer *timer)
{
    drive(GB_CONTAINER_OF(timer, struct http_curl, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct http_curl *h = arg;
    gb_task_cancel(&h->due);
    gb_timer_stop(&h->timer);
    if (timeout_ms == 0) {
        gb_reactor_defer(h->reactor, &h->due); /* libcurl must not be called from its callback */
    } else if (timeout_ms > 0) {
        /* From this moment, not from the turn's: libcurl has a clock of its own. */
        gb_timer_start(&h->timer, uv_hrtime() + (uint64_t)timeout_ms * 1000000);
    }
    return 0;
}

/* --- sockets --- */

static struct http_socket *socket_of(const struct http_curl *h, curl_socket_t fd)
{
    return (size_t)fd < h->sockets_capacity ? h->sockets[fd] : NULL;
}

static bool reserve_sockets(struct http_curl *h, curl_socket_t fd)
{
    if ((size_t)fd < h->sockets_capacity) return true;
    size_t capacity = (size_t)fd + FD_STEP; /* bounded by the limit of open files */
    struct http_socket **sockets = realloc(h->sockets, capacity * sizeof(struct http_socket *));
    if (sockets == NULL) return false;
    for (size_t i = h->sockets_capacity; i < capacity; i++) sockets[i] = NULL;
    h->sockets = sockets;
    h->sockets_capacity = capacity;
    return true;
}

static struct http_socket *track(struct http_curl *h, curl_socket_t fd, bool ours)
{
    if (!reserve_sockets(h, fd)) return NULL;
    struct http_socket *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    if (uv_poll_init(gb_loop_uv(h->loop), &s->poll, fd) != 0) {
        free(s);
        return NULL;
    }
    s->poll.data = s;
    s->client = h;
    s->fd = fd;
    s->ours = ours;
    h->sockets[fd] = s;
    return s;
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* uv forgets the descriptor at once, so the caller may close it. */
static void untrack(struct http_curl *h, struct http_socket *s)
{
    h->sockets[s->fd] = NULL;
    uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void poll_wanted(struct http_socket *s)
{
    if (s->wanted == s->polled) return;
    int rc = uv_poll_start(&s->poll, s->wanted, on_poll);
    GB_ASSERT(rc == 0); /* uv refuses a closing handle only */
    s->polled = s->wanted;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct http_socket *s = poll->data;
    struct http_curl *h = s->client;
    curl_socket_t fd = s->fd;
    if (status < 0) s->polled = 0; /* uv has stopped for a socket error */
    if (s->wanted == 0) {
        (void)uv_poll_stop(poll); /* always 0 */
        s->polled = 0;
        return;
    }
    /* A socket error is passed as "ready": libcurl then meets the error itself, knows its text and
     * repeats the request when the peer had just closed the idle connection. */
    if (status < 0) events = UV_READABLE | UV_WRITABLE;
    int flags = (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    if ((events & UV_WRITABLE) != 0) flags |= CURL_CSELECT_OUT;
    gb_loop_refresh_clock(h->loop);
    drive(h, fd, flags);
    if (status < 0 && socket_of(h, fd) == s && s->wanted != 0)
        poll_wanted(s); /* unless libcurl has closed it */
}

/* libcurl 7.88 closes a socket of a connection that did not come about without asking
 * close_socket, before it stops wanting its events or after it has opened the next one. */
static bool may_be_closed(const struct http_socket *s, CURL *easy)
{
    long status = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status); /* a valid handle: OK */
    return !s->ours || status == 0;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)socket_arg;
    struct http_curl *h = arg;
    struct http_socket *s = socket_of(h, fd);
    if (what == CURL_POLL_REMOVE) {
        if (s == NULL) return 0;
        s->wanted = 0;
        if (may_be_closed(s, easy)) untrack(h, s);
        return 0;
    }
    /* Without memory the socket goes unwatched; the deadline ends the request. Telling libcurl
     * would end all others, too. */
    if (s == NULL) s = track(h, fd, false);
    if (s == NULL) return 0;
    s->wanted = ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) |
                ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
    poll_wanted(s);
    return 0;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_curl *h = arg;
    int wanted = 0;
    (void)purpose;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) return CURL_SOCKET_BAD;
    struct http_socket *former = socket_of(h, fd);
    if (former != NULL) { /* closed silently; libcurl takes what it wants of it as asked already */
        wanted = former->wanted;
        untrack(h, former);
    }
    struct http_socket *s = track(h, fd, true);
    if (s == NULL) {
        (void)close(fd);
        return CURL_SOCKET_BAD;
    }
    s->wanted = wanted;
    poll_wanted(s);
    return fd;
}

static int close_socket(void *arg, curl_socket_t fd)
{
    struct http_socket *s = socket_of(arg, fd);
    if (s != NULL) untrack(arg, s);
    return close(fd);
}

/* --- requests --- */

static void on_deadline(struct gb_timer *timer)
{
    struct gb_transfer *t = GB_CONTAINER_OF(timer, struct gb_transfer, deadline);
    finish(t->client, t, gb_transfer_err(t->request, GB_TIMEOUT, "no answer by the deadline"));
}

static void cancel(struct gb_op *op)
{
    struct gb_transfer *t = op->provider;
    finish(t->client, t, (struct gb_err){.code = GB_CANCELLED});
}

static struct gb_err take_transfer(struct http_curl *h, struct gb_transfer **out)
{
    struct gb_list_node *node = gb_list_pop(&h->free);
    if (node != NULL) {
        h->free_count--;
        *out = GB_CONTAINER_OF(node, struct gb_transfer, node);
        gb_list_push(&h->busy, node);
        return gb_ok();
    }
    struct gb_transfer *t = NULL;
    struct gb_transfer_cfg cfg = {&h->cfg, open_socket, close_socket, h};
    struct gb_err err = gb_transfer_new(&cfg, &t);
    if (gb_failed(err)) return err;
    err = gb_timer_init(&t->deadline, h->reactor, on_deadline);
    if (gb_failed(err)) {
        gb_transfer_free(t);
        return err;
    }
    gb_list_push(&h->busy, &t->node);
    *out = t;
    return gb_ok();
}

static void request(struct gb_http *http, struct gb_http_request *q, gb_done_fn *done, void *arg)
{
    struct http_curl *h = GB_CONTAINER_OF(http, struct http_curl, http);
    struct gb_transfer *t = NULL;
    gb_op_start(&q->op, h->reactor, done, arg, cancel, NULL);
    q->sends = 0;
    struct gb_err err = take_transfer(h, &t);
    if (gb_failed(err)) {
        gb_op_finish(&q->op, err);
        return;
    }
    q->op.provider = t;
    err = gb_transfer_prepare(t, q, &h->cfg);
    if (!gb_failed(err)) {
        CURLMcode rc = curl_multi_add_handle(h->multi, t->easy);
        if (rc != CURLM_OK) err = gb_transfer_err(q, GB_UNAVAILABLE, curl_multi_strerror(rc));
    }
    if (gb_failed(err)) {
        release(h, t);
        gb_op_finish(&q->op, err);
        return;
    }
    if (q->op.deadline_ns != 0) gb_timer_start(&t->deadline, q->op.deadline_ns);
}

/* --- construction and end --- */

static void destroy_transfers(struct gb_list *list)
{
    struct gb_list_node *node = NULL;
    while ((node = gb_list_pop(list)) != NULL) {
        struct gb_transfer *t = GB_CONTAINER_OF(node, struct gb_transfer, node);
        gb_timer_deinit(&t->deadline);
        gb_transfer_free(t);
    }
}

static void destroy(struct http_curl *h)
{
    destroy_transfers(&h->free);
    if (h->multi != NULL) (void)curl_multi_cleanup(h->multi); /* closes the pooled connections */
    for (size_t fd = 0; fd < h->sockets_capacity; fd++) {
        if (h->sockets[fd] != NULL) untrack(h, h->sockets[fd]);
    }
    gb_task_cancel(&h->due); /* after the clean-up, which may set time-outs */
    gb_timer_deinit(&h->timer);
    free(h->sockets);
    free((char *)h->cfg.ca_file);
    free((char *)h->cfg.ca_path);
    free(h);
    curl_global_cleanup();
}

static void close_client(struct gb_http *http, struct gb_op *op, gb_done_fn *done, void *arg)
{
    struct http_curl *h = GB_CONTAINER_OF(http, struct http_curl, http);
    gb_op_start(op, h->reactor, done, arg, NULL, NULL);
    while (!gb_list_empty(&h->busy)) {
        struct gb_list_node *node = gb_list_first(&h->busy);
        struct gb_transfer *t = GB_CONTAINER_OF(node, struct gb_transfer, node);
        finish(h, t, (struct gb_err){.code = GB_CANCELLED});
    }
    destroy(h);
    gb_op_finish(op, gb_ok()); /* behind those of the cancelled requests */
}

static const struct gb_http_ops ops = {.request = request, .close = close_client};

static CURLMcode set_up_multi(struct http_curl *h)
{
    h->multi = curl_multi_init();
    if (h->multi == NULL) return CURLM_OUT_OF_MEMORY;
    long per_host = (long)h->cfg.connections_max;
    CURLMcode rc = curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    if (rc == CURLM_OK) rc = curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    if (rc == CURLM_OK) rc = curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    if (rc == CURLM_OK) rc = curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    if (rc == CURLM_OK) rc = curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, per_host);
    if (rc == CURLM_OK) {
        long pool = per_host * 4 > POOL_MIN ? per_host * 4 : POOL_MIN;
        rc = curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, pool);
    }
    return rc;
}

static struct gb_err set_up(struct http_curl *h, const struct gb_http_curl_cfg *cfg)
{
    h->cfg.connections_max =
        cfg->connections_max == 0 ? CONNECTIONS_MAX_DEFAULT : cfg->connections_max;
    h->cfg.ca_file = gb_strdup(cfg->ca_file);
    h->cfg.ca_path = gb_strdup(cfg->ca_path);
    if ((cfg->ca_file != NULL && h->cfg.ca_file == NULL) ||
        (cfg->ca_path != NULL && h->cfg.ca_path == NULL)) {
        return gb_err_no_memory("the HTTP client");
    }
    if ((curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL) == 0) {
        return gb_err(GB_UNAVAILABLE, "libcurl was built without TLS; install one with OpenSSL");
    }
    struct gb_err err = gb_timer_init(&h->timer, h->reactor, on_timer);
    if (gb_failed(err)) return err;
    CURLMcode rc = set_up_multi(h);
    if (rc != CURLM_OK) return gb_err(GB_UNAVAILABLE, "HTTP client: %s", curl_multi_strerror(rc));
    return gb_ok();
}

struct gb_err gb_http_curl_new(struct gb_loop *l, const struct gb_http_curl_cfg *cfg,
                               struct gb_http **out)
{
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT); /* counts its calls */
    if (rc != CURLE_OK) {
        return gb_err(GB_UNAVAILABLE, "HTTP client: %s", curl_easy_strerror(rc));
    }
    struct http_curl *h = calloc(1, sizeof *h);
    if (h == NULL) {
        curl_global_cleanup();
        return gb_err_no_memory("the HTTP client");
    }
    *h = (struct http_curl){.http.ops = &ops, .loop = l, .reactor = gb_loop_reactor(l)};
    h->due.run = on_due;
    gb_list_init(&h->busy);
    gb_list_init(&h->free);
    struct gb_err err = set_up(h, cfg);
    if (gb_failed(err)) {
        destroy(h);
        return err;
    }
    *out = &h->http;
    return gb_ok();
}
