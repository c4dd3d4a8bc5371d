#ifndef GB_IO_HTTP_SERVER_H
#define GB_IO_HTTP_SERVER_H

#include "base/bytes.h"
#include "base/str.h"
#include "io/loop.h"

/* An HTTP/1.1 listener on libmicrohttpd, whose epoll descriptor the loop polls (design §8). A
 * request is handed over whole and answered when `handle` returns: exactly one answer each, in the
 * order of the connection.
 * Owns:   socket and connections; requests and answers are valid inside `handle` only.
 * Thread: loop thread only.
 * Errors: gb_http_server_new: GB_INVALID_CONFIG (address), GB_UNAVAILABLE (it can't be bound; out
 *         of descriptors or memory). A client's faults are answered or end its connection.
 * Bounds: `connections_max`, beyond them the one that waits the longest is cut; 16 KiB for line and
 *         headers (414, 431); `body_max` (413); `request_ns` for a whole request and for the whole
 *         answer, however slowly the bytes trickle; `idle_ns` between two. */
struct gb_http_server;

struct gb_http_server_request {
    const char *method;
    const char *path;     /* decoded, without query */
    const char *peer;     /* its IP address */
    struct gb_bytes body; /* empty: none */
    void *connection;     /* private */
};
const char *gb_http_server_header(const struct gb_http_server_request *r, const char *name);
/* Decoded; NULL: absent, "" when it has no value. */
const char *gb_http_server_query(const struct gb_http_server_request *r, const char *name);

enum { GB_HTTP_ANSWER_HEADERS_MAX = 16 };
struct gb_http_server_answer {
    unsigned status;
    struct gb_str body; /* left out of the answer to HEAD */
    struct {
        const char *name; /* static */
        char *value;
    } headers[GB_HTTP_ANSWER_HEADERS_MAX]; /* private */
    size_t header_count;
};
/* Copies the value; one that holds a line break is left out. */
void gb_http_server_add(struct gb_http_server_answer *a, const char *name, const char *value);

struct gb_http_server_cfg {
    struct gb_loop *loop;
    const char *address; /* host:port, :port; port 0: any that is free */
    unsigned connections_max;
    size_t body_max;
    int64_t request_ns, idle_ns;
    void (*handle)(void *arg, const struct gb_http_server_request *request,
                   struct gb_http_server_answer *answer);
    void *arg;
};
struct gb_err gb_http_server_new(const struct gb_http_server_cfg *cfg, struct gb_http_server **out);
unsigned gb_http_server_port(const struct gb_http_server *s); /* as bound */
/* Cuts what is left; the memory goes with the next turn of the loop. NULL ok. */
void gb_http_server_free(struct gb_http_server *s);

#endif
