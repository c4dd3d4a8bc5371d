#ifndef GB_IO_HTTP_H
#define GB_IO_HTTP_H

#include "base/op.h"
#include "base/str.h"

/* HTTP client: one request, one answer, bodies in memory with limits (io/http_curl.c on libcurl
 * multi; a fake in tests). Keep-alive connections are pooled per client.
 * Owns:   request strings are borrowed until `done`; the answer belongs to the request struct and
 *         is released by gb_http_deinit (which keeps nothing). A body is moved in with gb_str and
 *         freed by gb_http_deinit.
 * Thread: loop thread only.
 * Errors: GB_TIMEOUT at op.deadline_ns, GB_CONNECTION_LOST (connect, DNS, TLS, reset),
 *         GB_PAYLOAD_TOO_LARGE (answer above the limit), GB_INVALID_CONFIG (URL, method, header or
 *         CA file that can't be used), GB_UNAVAILABLE (out of memory), GB_CANCELLED. Any HTTP
 *         status is GB_OK. */
struct gb_http_header {
    const char *name;
    const char *value;
};
enum { GB_HTTP_HEADERS_MAX = 16 };

struct gb_http_request {
    struct gb_op op;
    const char *method; /* "POST" */
    const char *url;
    struct gb_http_header headers[GB_HTTP_HEADERS_MAX];
    size_t header_count;
    struct gb_str body;
    size_t answer_bytes_max;    /* 0 = 8 MiB */
    int64_t connect_timeout_ns; /* 0 = the rest of the deadline */
    const char *ca_file;        /* NULL = the client's trust */
    const char *const
        *want_headers; /* names of answer headers to keep, lower case; NULL-terminated */
    /* Not sent a second time by itself: else a kept connection that dies without an answer is
     * replaced, although the peer may have got the request. */
    bool send_once;
    /* out */
    uint32_t sends; /* how often it went to a connection; 0 = the peer never saw it */
    int status;
    struct gb_str answer;
    struct gb_str answer_headers; /* "name: value\n" for each wanted one, lower-case names */
};
void gb_http_deinit(
    struct gb_http_request *q); /* releases body and answer; accepts zeroed memory */
/* Value of a kept answer header, or the empty view. */
struct gb_bytes gb_http_answer_header(const struct gb_http_request *q, const char *name);

struct gb_http;
struct gb_http_ops {
    void (*request)(struct gb_http *h, struct gb_http_request *q, gb_done_fn *done, void *arg);
    /* Cancels what is pending, completes, frees `h`. */
    void (*close)(struct gb_http *h, struct gb_op *op, gb_done_fn *done, void *arg);
};
struct gb_http {
    const struct gb_http_ops *ops;
};

#endif
