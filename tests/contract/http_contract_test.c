#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "contract/io_peer.h"
#include "io/http_curl.h"

/* The HTTP client against a real peer: answers, limits, faults, deadline, cancel, reuse, TLS. */

enum { HEAD_MAX = 16384, REQUESTS = 40, BIG_BYTES = 1 << 20 };

/* --- the peer: the path says what it does --- */

struct http_head {
    char text[HEAD_MAX];
    size_t size;
    size_t body_size;
};

static bool read_head(struct gb_peer_conn *c, struct http_head *h)
{
    h->size = 0;
    h->body_size = 0;
    while (h->size < 4 || memcmp(h->text + h->size - 4, "\r\n\r\n", 4) != 0) {
        if (h->size + 1 >= HEAD_MAX || gb_peer_read(c, h->text + h->size, 1) == 0) return false;
        h->size++;
    }
    h->text[h->size] = '\0';
    const char *length = strstr(h->text, "Content-Length: ");
    if (length != NULL) h->body_size = (size_t)strtoul(length + 16, NULL, 10);
    return true;
}

static void answer(struct gb_peer_conn *c, const char *status, const char *headers,
                   struct gb_bytes body)
{
    char *head =
        gb_asprintf("HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, headers, body.size);
    (void)gb_peer_write(c, head, strlen(head));
    (void)gb_peer_write(c, body.data, body.size);
    free(head);
}

static void answer_slowly(struct gb_peer_conn *c)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n";
    char quarter[1024] = {0};
    bool more = gb_peer_write(c, head, sizeof head - 1);
    while (more && gb_peer_wait(c, 250)) more = gb_peer_write(c, quarter, sizeof quarter);
}

/* False ends the connection. */
static bool answer_one(struct gb_peer_conn *c, const struct http_head *h, struct gb_bytes body)
{
    const char *path = strchr(h->text, ' ') + 1;
    if (strncmp(h->text, "HEAD", 4) == 0) {
        answer(c, "200 OK", "", gb_bytes_c(""));
    } else if (strncmp(path, "/echo", 5) == 0) {
        struct gb_str all = {0};
        gb_str_append(&all, gb_bytes(h->text, h->size));
        gb_str_append(&all, body);
        answer(c, "200 OK", "X-Kept:  a value \r\nX-Other: b\r\n", gb_str_bytes(&all));
        gb_str_deinit(&all);
    } else if (strncmp(path, "/status503", 10) == 0) {
        answer(c, "503 Busy", "Retry-After: 7\r\n", gb_bytes_c("busy"));
    } else if (strncmp(path, "/redirect", 9) == 0) {
        answer(c, "302 Found", "Location: /echo\r\n", gb_bytes_c(""));
    } else if (strncmp(path, "/big", 4) == 0) {
        char *big = calloc(1, BIG_BYTES);
        answer(c, "200 OK", "", gb_bytes(big, BIG_BYTES));
        free(big);
    } else if (strncmp(path, "/once", 5) == 0) {
        answer(c, "200 OK", "", gb_bytes_c("once"));
        return false; /* closes a connection that the client may reuse */
    } else if (strncmp(path, "/silent", 7) == 0) {
        (void)gb_peer_wait(c, 20000);
        return false;
    } else if (strncmp(path, "/slow", 5) == 0) {
        answer_slowly(c);
        return false;
    } else if (strncmp(path, "/half", 5) == 0) {
        static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
        (void)gb_peer_write(c, half, sizeof half - 1);
        return false;
    } else if (strncmp(path, "/last", 5) == 0) {
        answer(c, "200 OK", "Connection: close\r\n", gb_bytes_c("last"));
        return false; /* and the client knows */
    } else if (strncmp(path, "/mute", 5) == 0) {
        return false; /* took the request and closes without a word */
    } else if (strncmp(path, "/reset", 6) == 0) {
        gb_peer_reset(c);
        return false;
    } else if (strncmp(path, "/garbage", 8) == 0) {
        (void)gb_peer_write(c, "this is no HTTP\r\n\r\n", 19);
        return false;
    }
    return true;
}

static void serve(struct gb_peer_conn *c, void *arg)
{
    (void)arg;
    struct http_head *h = malloc(sizeof *h);
    bool more = true;
    while (more && read_head(c, h)) {
        char *body = malloc(h->body_size + 1);
        more = gb_peer_read_all(c, body, h->body_size) &&
               answer_one(c, h, gb_bytes(body, h->body_size));
        free(body);
    }
    free(h);
}

/* --- the fixture --- */

struct fixture {
    struct gb_loop *loop;
    struct gb_reactor *reactor;
    struct gb_http *http;
    struct gb_peer *peer;
    struct gb_op close_op;
    struct gb_timer timer;
    struct gb_http_request requests[REQUESTS];
    int running;
    int done;
    int passes;
    bool pending[REQUESTS];
    char url[256];
};

static struct fixture f;

static int set_up_with(const struct gb_peer_cfg *peer, const struct gb_http_curl_cfg *cfg)
{
    f = (struct fixture){0};
    assert_int_equal(gb_loop_new(&f.loop).code, GB_OK);
    f.reactor = gb_loop_reactor(f.loop);
    f.peer = gb_peer_start(peer);
    assert_int_equal(gb_http_curl_new(f.loop, cfg, &f.http).code, GB_OK);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_with(&(struct gb_peer_cfg){.handle = serve},
                       &(struct gb_http_curl_cfg){.connections_max = 4});
}

static void on_closed(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
    gb_loop_stop(f.loop);
}

static int tear_down(void **state)
{
    (void)state;
    f.http->ops->close(f.http, &f.close_op, on_closed, NULL);
    gb_loop_run(f.loop);
    gb_timer_deinit(&f.timer);
    gb_loop_drain_closing(f.loop);
    gb_loop_free(f.loop);
    gb_peer_stop(f.peer);
    for (int i = 0; i < REQUESTS; i++) gb_http_deinit(&f.requests[i]);
    return 0;
}

static void on_done(struct gb_op *op, void *arg)
{
    (void)op;
    (void)arg;
    f.done++;
    if (--f.running == 0) gb_loop_stop(f.loop);
}

static const char *url_of(const char *scheme, const char *path)
{
    (void)snprintf(f.url, sizeof f.url, "%s://127.0.0.1:%d%s", scheme, gb_peer_port(f.peer), path);
    return f.url;
}

static void start(struct gb_http_request *q, const char *method, const char *url)
{
    q->method = method;
    q->url = url;
    if (q->op.deadline_ns == 0) q->op.deadline_ns = gb_reactor_now_ns(f.reactor) + 10 * GB_SEC;
    f.running++;
    int done = f.done;
    f.http->ops->request(f.http, q, on_done, NULL);
    assert_int_equal(f.done, done); /* never from inside the call */
}

static struct gb_http_request *run(const char *method, const char *path)
{
    struct gb_http_request *q = &f.requests[0];
    start(q, method, url_of("http", path));
    gb_loop_run(f.loop);
    return q;
}

static bool answer_has(const struct gb_http_request *q, const char *text)
{
    return q->answer.data != NULL && strstr(q->answer.data, text) != NULL;
}

/* --- requests and answers --- */

static void request_is_sent_as_given(void **state)
{
    (void)state;
    struct gb_http_request *q = &f.requests[0];
    static const char *const want[] = {"x-kept", "x-absent", NULL};
    q->headers[0] = (struct gb_http_header){"X-Test", "some value"};
    q->headers[1] = (struct gb_http_header){"X-Empty", ""};
    q->header_count = 2;
    q->want_headers = want;
    gb_str_append_c(&q->body, "the body");
    run("POST", "/echo?a=b");
    assert_int_equal(q->op.result.code, GB_OK);
    assert_int_equal(q->status, 200);
    assert_true(answer_has(q, "POST /echo?a=b HTTP/1.1\r\n"));
    assert_true(answer_has(q, "X-Test: some value\r\n"));
    assert_true(answer_has(q, "X-Empty:"));
    assert_true(answer_has(q, "\r\n\r\nthe body"));
    assert_false(answer_has(q, "Expect"));
    assert_false(answer_has(q, "Content-Type"));
    assert_true(gb_bytes_equal_c(gb_http_answer_header(q, "x-kept"), "a value"));
    assert_int_equal(gb_http_answer_header(q, "x-absent").size, 0);
    assert_int_equal(gb_http_answer_header(q, "x-other").size, 0); /* not asked for */
}

static void large_body_is_sent_without_asking(void **state)
{
    (void)state;
    struct gb_http_request *q = &f.requests[0];
    for (int i = 0; i < 200000; i++) gb_str_append_char(&q->body, (char)('a' + i % 26));
    run("PUT", "/echo");
    assert_int_equal(q->op.result.code, GB_OK);
    assert_true(answer_has(q, "PUT /echo"));
    assert_false(answer_has(q, "Expect"));
    assert_memory_equal(q->answer.data + q->answer.size - q->body.size, q->body.data, q->body.size);
}

/* One easy handle serves these one after the other, so what one sets must not reach the next. */
static void methods_follow_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body, *want;
    } rows[] = {
        {"POST", "x", "POST /echo"},  {"POST", "", "Content-Length: 0"},
        {"GET", "", "GET /echo"},     {"HEAD", "", NULL},
        {"POST", "y", "\r\n\r\ny"},   {"DELETE", "", "DELETE /echo"},
        {"DELETE", "z", "\r\n\r\nz"}, {"GET", "", "GET /echo"},
        {"HEAD", "", NULL},           {"GET", "", "GET /echo"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_http_request *q = &f.requests[0];
        gb_str_clear(&q->body);
        gb_str_append_c(&q->body, rows[i].body);
        run(rows[i].method, "/echo");
        print_message("row: %s %s\n", rows[i].method, rows[i].body);
        assert_int_equal(q->op.result.code, GB_OK);
        assert_int_equal(q->status, 200);
        if (rows[i].want == NULL) assert_int_equal(q->answer.size, 0);
        if (rows[i].want != NULL) assert_true(answer_has(q, rows[i].want));
        if (strcmp(rows[i].method, "GET") == 0) assert_false(answer_has(q, "Content-Length"));
    }
    assert_int_equal(gb_peer_accepted(f.peer), 1); /* kept alive */
}

static void outcomes(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t limit;
        enum gb_code want;
        int status;
        const char *message;
    } rows[] = {
        {"/status503", 0, GB_OK, 503, ""},
        {"/redirect", 0, GB_OK, 302, ""},
        {"/big", BIG_BYTES, GB_OK, 200, ""},
        {"/big", BIG_BYTES - 1, GB_PAYLOAD_TOO_LARGE, 0, "limit of 1048575 bytes"},
        {"/half", 0, GB_CONNECTION_LOST, 0, "POST http://127.0.0.1:"},
        {"/reset", 0, GB_CONNECTION_LOST, 0, ""},
        {"/garbage", 0, GB_CONNECTION_LOST, 0, ""},
        {"/echo", 0, GB_OK, 200, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s\n", rows[i].path);
        f.requests[0].answer_bytes_max = rows[i].limit;
        struct gb_http_request *q = run("POST", rows[i].path);
        assert_int_equal(q->op.result.code, rows[i].want);
        assert_int_equal(q->status, rows[i].status);
        assert_non_null(strstr(q->op.result.message, rows[i].message));
    }
}

static void connection_that_the_peer_closed_is_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(run("POST", "/once")->op.result.code, GB_OK);
        assert_true(answer_has(&f.requests[0], "once"));
    }
    assert_int_equal(gb_peer_accepted(f.peer), 50);
}

/* The caller must know how often the peer may have seen a request. */
static void sends_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool kept, once;
        uint32_t sends;
    } rows[] = {
        {"/echo", false, false, 1}, {"/echo", true, false, 1}, {"/mute", false, false, 1},
        {"/mute", true, false, 2},  {"/mute", true, true, 1},  {"/reset", false, true, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_http_request *q = &f.requests[0];
        q->send_once = false;
        if (rows[i].kept) assert_int_equal(run("POST", "/echo")->sends, 1);
        q->send_once = rows[i].once;
        run("POST", rows[i].path);
        print_message("row %zu: %s\n", i, rows[i].path);
        bool ok = strcmp(rows[i].path, "/echo") == 0;
        assert_int_equal(q->op.result.code, ok ? GB_OK : GB_CONNECTION_LOST);
        assert_int_equal(q->sends, rows[i].sends);
        q->send_once = false;
        run("POST", "/last"); /* leaves no connection behind */
    }
    struct gb_http_request *q = &f.requests[0];
    const char *url = url_of("http", "/echo");
    gb_peer_stop(f.peer);
    start(q, "POST", url); /* nobody listens */
    gb_loop_run(f.loop);
    assert_int_equal(q->op.result.code, GB_CONNECTION_LOST);
    assert_int_equal(q->sends, 0);
    f.peer = gb_peer_start(&(struct gb_peer_cfg){.handle = serve});
}

static void many_requests_share_few_connections(void **state)
{
    (void)state;
    const char *url = url_of("http", "/echo");
    for (int i = 0; i < REQUESTS; i++) start(&f.requests[i], "POST", url);
    gb_loop_run(f.loop);
    assert_int_equal(f.done, REQUESTS);
    for (int i = 0; i < REQUESTS; i++) assert_int_equal(f.requests[i].status, 200);
    assert_in_range(gb_peer_accepted(f.peer), 1, 4);
}

/* --- what can't be sent --- */

static void refused_requests(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        struct gb_http_header header;
        enum gb_code want;
        const char *message;
    } rows[] = {
        {"http://h/", {"X", "a\r\nEvil: 1"}, GB_INVALID_CONFIG, "control character"},
        {"http://h/", {"X\r\nEvil: 1\r\nY", "a"}, GB_INVALID_CONFIG, "control character"},
        {"http://h/", {"", "a"}, GB_INVALID_CONFIG, "control character"},
        {"ftp://u:secret@h/", {"X", "a"}, GB_INVALID_CONFIG, "POST ftp://h: "},
        {"file:///etc/passwd", {"X", "a"}, GB_INVALID_CONFIG, ""},
        {"http://u:secret@127.0.0.1:1/?k=secret",
         {"X", "a"},
         GB_CONNECTION_LOST,
         "POST http://127.0.0.1:1: "},
        {"http://no-such-host.invalid/?k=secret",
         {"X", "a"},
         GB_CONNECTION_LOST,
         "no-such-host.invalid: "},
        {"http://127.0.0.1:99999/?secret", {"X", "a"}, GB_INVALID_CONFIG, "127.0.0.1:99999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %zu %s\n", i, rows[i].url);
        struct gb_http_request *q = &f.requests[0];
        q->headers[0] = rows[i].header;
        q->header_count = 1;
        start(q, "POST", rows[i].url);
        gb_loop_run(f.loop);
        assert_int_equal(q->op.result.code, rows[i].want);
        assert_non_null(strstr(q->op.result.message, rows[i].message));
        assert_null(strstr(q->op.result.message, "secret"));
    }
}

/* --- deadline and cancel --- */

static void deadline_ends_a_request(void **state)
{
    (void)state;
    static const char *const paths[] = {"/silent", "/slow"};
    for (size_t i = 0; i < 2; i++) {
        f.requests[0].op.deadline_ns = gb_reactor_now_ns(f.reactor) + 300 * GB_MS;
        uint64_t deadline_ns = f.requests[0].op.deadline_ns;
        struct gb_http_request *q = run("POST", paths[i]);
        assert_int_equal(q->op.result.code, GB_TIMEOUT);
        assert_in_range(gb_reactor_now_ns(f.reactor), deadline_ns, deadline_ns + 10 * GB_SEC);
    }
    f.requests[0].op.deadline_ns = 0;
    assert_int_equal(run("POST", "/echo")->op.result.code, GB_OK);
}

static void deadline_in_the_past_ends_it_at_once(void **state)
{
    (void)state;
    f.requests[0].op.deadline_ns = 1;
    assert_int_equal(run("POST", "/silent")->op.result.code, GB_TIMEOUT);
}

static void waiting_request_has_its_deadline_too(void **state)
{
    (void)state;
    char *url = gb_strdup(url_of("http", "/silent"));
    for (int i = 0; i < 10; i++) {
        f.requests[i].op.deadline_ns = gb_reactor_now_ns(f.reactor) + 200 * GB_MS;
        start(&f.requests[i], "POST", url);
    }
    gb_loop_run(f.loop);
    for (int i = 0; i < 10; i++) assert_int_equal(f.requests[i].op.result.code, GB_TIMEOUT);
    free(url);
}

static void cancel_all(struct gb_timer *t)
{
    (void)t;
    for (int i = 0; i < 10; i++) gb_op_cancel(&f.requests[i].op);
}

static void cancelled_requests_complete(void **state)
{
    (void)state;
    const char *url = url_of("http", "/silent");
    for (int i = 0; i < 10; i++) start(&f.requests[i], "POST", url);
    gb_op_cancel(&f.requests[9].op); /* before anything was sent */
    assert_int_equal(f.done, 0);
    assert_int_equal(gb_timer_init(&f.timer, f.reactor, cancel_all).code, GB_OK);
    gb_timer_start(&f.timer, gb_reactor_now_ns(f.reactor) + 100 * GB_MS);
    gb_loop_run(f.loop);
    assert_int_equal(f.done, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(f.requests[i].op.result.code, GB_CANCELLED);
    gb_op_cancel(&f.requests[0].op); /* after: nothing happens */
    assert_int_equal(run("POST", "/echo")->op.result.code, GB_OK);
}

/* In the turn in which their sockets were made, before the first of them was ever polled; libcurl
 * closes such a socket without a word. The descriptors are used again at once. */
static void cancel_in_this_turn(struct gb_task *task)
{
    if (++f.passes < 3) {
        gb_reactor_defer(f.reactor, task);
        return;
    }
    for (int i = 0; i < 5; i++) {
        f.pending[i] = gb_op_pending(&f.requests[i].op); /* a machine that stood still: answered */
        gb_op_cancel(&f.requests[i].op);
    }
}

static void cancelled_while_connecting(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        const char *url = url_of("http", "/echo");
        struct gb_task task = {.run = cancel_in_this_turn};
        f.passes = 0;
        for (int i = 0; i < 10; i++) start(&f.requests[i], "POST", url);
        gb_reactor_defer(f.reactor, &task);
        gb_loop_run(f.loop);
        for (int i = 0; i < 10; i++) {
            bool cancelled = i < 5 && f.pending[i];
            assert_int_equal(f.requests[i].op.result.code, cancelled ? GB_CANCELLED : GB_OK);
        }
    }
}

static void close_cancels_what_is_pending(void **state)
{
    (void)state;
    const char *url = url_of("http", "/silent");
    for (int i = 0; i < 10; i++) start(&f.requests[i], "POST", url);
    f.running = 100; /* the close stops the loop, not the requests */
    f.http->ops->close(f.http, &f.close_op, on_closed, NULL);
    assert_int_equal(f.done, 0);
    gb_loop_run(f.loop);
    assert_int_equal(f.done, 10);
    for (int i = 0; i < 10; i++) assert_int_equal(f.requests[i].op.result.code, GB_CANCELLED);
    assert_int_equal(gb_http_curl_new(f.loop, &(struct gb_http_curl_cfg){0}, &f.http).code, GB_OK);
}

/* --- TLS --- */

static char *write_temporary(const char *text)
{
    char *path = gb_strdup("/tmp/gb_http_test_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    return path;
}

static void tls_trusts_the_given_authority_only(void **state)
{
    (void)state;
    struct gb_test_cert ca, other, leaf, wrong_name;
    gb_test_cert_make(&(struct gb_test_cert_cfg){"Test CA", NULL, NULL, -60, 3600}, &ca);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"Other CA", NULL, NULL, -60, 3600}, &other);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"localhost", "127.0.0.1", &ca, -60, 3600}, &leaf);
    gb_test_cert_make(&(struct gb_test_cert_cfg){"else.example", NULL, &ca, -60, 3600},
                      &wrong_name);
    char *ca_file = write_temporary(ca.cert_pem);
    char *other_file = write_temporary(other.cert_pem);
    const struct {
        const char *name;
        const struct gb_test_cert *server;
        const char *client_ca, *request_ca;
        enum gb_code want;
    } rows[] = {
        {"client's authority", &leaf, ca_file, NULL, GB_OK},
        {"request's authority", &leaf, other_file, ca_file, GB_OK},
        {"wrong authority", &leaf, other_file, NULL, GB_CONNECTION_LOST},
        {"wrong authority of the request", &leaf, ca_file, other_file, GB_CONNECTION_LOST},
        {"system trust", &leaf, NULL, NULL, GB_CONNECTION_LOST},
        {"wrong name", &wrong_name, ca_file, NULL, GB_CONNECTION_LOST},
        {"no such file", &leaf, "/nonexistent.pem", NULL, GB_INVALID_CONFIG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("row: %s\n", rows[i].name);
        set_up_with(&(struct gb_peer_cfg){.handle = serve, .tls = rows[i].server},
                    &(struct gb_http_curl_cfg){.ca_file = rows[i].client_ca});
        f.requests[0].ca_file = rows[i].request_ca;
        start(&f.requests[0], "POST", url_of("https", "/echo"));
        gb_loop_run(f.loop);
        print_message("     %s\n", f.requests[0].op.result.message);
        assert_int_equal(f.requests[0].op.result.code, rows[i].want);
        /* The request's own trust must not stay with the handle. */
        f.requests[0].ca_file = NULL;
        start(&f.requests[0], "POST", url_of("https", "/echo"));
        gb_loop_run(f.loop);
        bool trusted = rows[i].client_ca == ca_file && rows[i].server == &leaf;
        assert_int_equal(f.requests[0].op.result.code == GB_OK, trusted);
        tear_down(NULL);
    }
    unlink(ca_file);
    unlink(other_file);
    free(ca_file);
    free(other_file);
    gb_test_cert_deinit(&ca);
    gb_test_cert_deinit(&other);
    gb_test_cert_deinit(&leaf);
    gb_test_cert_deinit(&wrong_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(request_is_sent_as_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_body_is_sent_without_asking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(methods_follow_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outcomes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(connection_that_the_peer_closed_is_replaced, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sends_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_requests_share_few_connections, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deadline_ends_a_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deadline_in_the_past_ends_it_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_request_has_its_deadline_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelled_requests_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cancelled_while_connecting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(close_cancels_what_is_pending, set_up, tear_down),
        cmocka_unit_test(tls_trusts_the_given_authority_only),
    };
    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
