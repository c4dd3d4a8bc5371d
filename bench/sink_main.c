/* The fast SQS sink of `make bench`: SendMessage and SendMessageBatch over kept connections.
 *
 *   sink [--port P] [--counter FILE]   on 127.0.0.1:P (0 = any); first prints {"listening":P}
 *
 * Orders on stdin, one JSON line each on stdout: `report`, `requests`, `reset`, `quit` (also the
 * end of stdin). SIGTERM prints a last report and ends. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_arrivals.h"
#include "bench_counter.h"
#include "bench_process.h"
#include "bench_stream.h"
#include "sink_http.h"
#include "sink_sqs.h"

enum { CONNECTIONS_MAX = 256, EVENTS_MAX = 64 };

struct sink {
    int epoll, listener, signals;
    size_t connections;
    struct gb_bench_arrivals arrivals;
    uint64_t distinct_before;  /* the last reset */
    _Atomic uint64_t *counter; /* NULL: nobody asks */
    struct gb_bench_sqs sqs;
    struct gb_str answer;
    uint64_t now_ns; /* one reading for what one recv brought */
};

static void arrived(void *arg, struct gb_bytes body)
{
    struct sink *sink = arg;
    gb_bench_arrivals_add(&sink->arrivals, body, sink->now_ns);
}

/* `ptr` NULL: listener; &sink->signals: signals; &sink->epoll: stdin; else a stream. */
static void watch(const struct sink *sink, int fd, uint32_t events, void *ptr)
{
    struct epoll_event event = {.events = events, .data.ptr = ptr};
    if (epoll_ctl(sink->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        gb_bench_die("epoll: %s", strerror(errno));
}

static void accept_all(struct sink *sink)
{
    for (;;) {
        int fd = accept4(sink->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        if (++sink->connections > CONNECTIONS_MAX)
            gb_bench_die("more than %d connections", CONNECTIONS_MAX);
        struct gb_bench_stream *s = gb_bench_stream_new(fd);
        watch(sink, fd, EPOLLIN, s);
    }
}

/* False: no more use in this connection. */
static bool answer_requests(struct sink *sink, struct gb_bench_stream *s)
{
    for (;;) {
        struct gb_bench_http_request request;
        enum gb_bench_http_result result = gb_bench_http_next(gb_bench_input(s), &request);
        if (result == GB_BENCH_HTTP_BAD) return false;
        if (result == GB_BENCH_HTTP_NEED_MORE) {
            if (request.expects_continue) gb_str_append_c(&s->out, "HTTP/1.1 100 Continue\r\n\r\n");
            return true;
        }
        gb_str_clear(&sink->answer);
        unsigned status =
            gb_bench_sqs_answer(&sink->sqs, request.target, request.body, &sink->answer);
        if (sink->answer.failed) gb_bench_die("out of memory");
        gb_bench_http_answer(&s->out, status, gb_str_bytes(&sink->answer));
        gb_bench_consume(s, request.size);
    }
}

/* While an answer waits for the client to read, no further request is taken from it. */
static void serve(struct sink *sink, struct gb_bench_stream *s)
{
    bool was_stuck = gb_bench_unsent(s);
    bool open = was_stuck || gb_bench_fill(s);
    sink->now_ns = gb_bench_now_ns();
    if (!was_stuck) open = answer_requests(sink, s) && open;
    open = gb_bench_flush(s) && open;
    if (sink->counter != NULL) {
        atomic_store_explicit(sink->counter, sink->distinct_before + sink->arrivals.distinct,
                              memory_order_relaxed);
    }
    if (!open) {
        sink->connections--;
        gb_bench_stream_close(s); /* takes it out of the epoll set as well */
        return;
    }
    if (gb_bench_unsent(s) == was_stuck) return;
    struct epoll_event event = {.events = was_stuck ? EPOLLIN : EPOLLOUT, .data.ptr = s};
    if (epoll_ctl(sink->epoll, EPOLL_CTL_MOD, s->fd, &event) != 0)
        gb_bench_die("epoll: %s", strerror(errno));
}

static void say_requests(const struct sink *sink)
{
    gb_bench_say("{\"requests\":%" PRIu64 ",\"batches\":%" PRIu64 ",\"messages\":%" PRIu64
                 ",\"refused\":%" PRIu64 ",\"connections\":%zu}",
                 sink->sqs.requests, sink->sqs.batches, sink->sqs.messages, sink->sqs.refused,
                 sink->connections);
}

/* False: end. */
static bool obey(struct sink *sink, struct gb_bench_orders *orders)
{
    char order[GB_BENCH_ORDER_MAX];
    enum gb_bench_order_result result;
    while ((result = gb_bench_next_order(orders, order)) == GB_BENCH_ORDER) {
        if (strcmp(order, "quit") == 0) return false;
        if (strcmp(order, "report") == 0) {
            gb_bench_arrivals_say(&sink->arrivals);
        } else if (strcmp(order, "requests") == 0) {
            say_requests(sink);
        } else if (strcmp(order, "reset") == 0) {
            sink->distinct_before += sink->arrivals.distinct;
            gb_bench_arrivals_reset(&sink->arrivals);
            gb_bench_say("{\"reset\":true}");
        } else {
            gb_bench_die("unknown order: %s", order);
        }
    }
    return result == GB_BENCH_NO_ORDER;
}

static int signal_descriptor(void)
{
    sigset_t set;
    if (sigemptyset(&set) != 0 || sigaddset(&set, SIGTERM) != 0 || sigaddset(&set, SIGINT) != 0 ||
        sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        gb_bench_die("signals: %s", strerror(errno));
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0) gb_bench_die("signalfd: %s", strerror(errno));
    return fd;
}

/* Events for one turn; false: end. */
static bool turn(struct sink *sink, struct gb_bench_orders *orders)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(sink->epoll, events, EVENTS_MAX, -1);
    if (count < 0 && errno != EINTR) gb_bench_die("epoll: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        void *ptr = events[i].data.ptr;
        if (ptr == NULL) {
            accept_all(sink);
        } else if (ptr == &sink->signals) {
            gb_bench_arrivals_say(&sink->arrivals);
            return false;
        } else if (ptr == &sink->epoll) {
            if (!obey(sink, orders)) return false;
        } else {
            serve(sink, ptr);
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--port", "--counter"};
    gb_bench_check_options(argc, argv, names, 2);
    uint16_t port = (uint16_t)gb_bench_option_u64(argc, argv, "--port", 0);
    struct sink *sink = calloc(1, sizeof *sink);
    if (sink == NULL) gb_bench_die("out of memory");
    const char *counter = gb_bench_option(argc, argv, "--counter", NULL);
    if (counter != NULL) sink->counter = gb_bench_counter_open(counter);
    sink->sqs.message = arrived;
    sink->sqs.arg = sink;
    sink->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (sink->epoll < 0) gb_bench_die("epoll: %s", strerror(errno));
    sink->signals = signal_descriptor();
    sink->listener = gb_bench_listen(&port);
    watch(sink, sink->listener, EPOLLIN, NULL);
    watch(sink, sink->signals, EPOLLIN, &sink->signals);
    watch(sink, STDIN_FILENO, EPOLLIN, &sink->epoll);
    gb_bench_say("{\"listening\":%u}", port);

    struct gb_bench_orders orders = {0};
    while (turn(sink, &orders)) {
    }
    gb_bench_sqs_deinit(&sink->sqs);
    gb_str_deinit(&sink->answer);
    free(sink->arrivals.seen);
    free(sink);
    return 0;
}
