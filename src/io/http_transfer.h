#ifndef GB_IO_HTTP_TRANSFER_H
#define GB_IO_HTTP_TRANSFER_H

#include <curl/curl.h>

#include "io/http_curl.h"

/* One libcurl easy handle, used for one request after the other (private to io/http_*.c). What is
 * the same for all requests is set once; per request only what differs.
 * Owns:   the easy handle and the header text; the request is borrowed from start to finish.
 * Thread: loop thread only.
 * Errors: gb_transfer_new: GB_UNAVAILABLE. gb_transfer_prepare: GB_INVALID_CONFIG (header or method
 *         that would break the request apart), GB_UNAVAILABLE. */
struct gb_transfer {
    struct gb_list_node node; /* the client's list of busy or free ones */
    struct gb_timer deadline; /* started and set up by the client */
    void *client;
    CURL *easy;
    struct gb_http_request *request;
    char error_text[CURL_ERROR_SIZE];
    bool answer_too_large;
    long connects; /* connections made over the life of the easy handle */
    /* private */
    struct curl_slist headers[GB_HTTP_HEADERS_MAX + 3]; /* nodes point into header_text */
    struct gb_str header_text;
    long connect_timeout_ms;
    const char *method;
    bool own_ca_file;
};

/* The socket functions of `cfg` get `client`. */
struct gb_transfer_cfg {
    const struct gb_http_curl_cfg *http;
    curl_opensocket_callback open_socket;
    curl_closesocket_callback close_socket;
    void *client;
};
struct gb_err gb_transfer_new(const struct gb_transfer_cfg *cfg, struct gb_transfer **out);
void gb_transfer_free(struct gb_transfer *t); /* the deadline timer is the client's; accepts NULL */
struct gb_err gb_transfer_prepare(struct gb_transfer *t, struct gb_http_request *q,
                                  const struct gb_http_curl_cfg *cfg);
/* The outcome of the transfer that ended with `code`; sets the request's status. */
struct gb_err gb_transfer_outcome(struct gb_transfer *t, CURLcode code);
/* An error text about the request: method, scheme, host and port, never user info, path or
 * query. */
struct gb_err gb_transfer_err(const struct gb_http_request *q, enum gb_code code, const char *why);

#endif
