#ifndef GB_IO_HTTP_CURL_H
#define GB_IO_HTTP_CURL_H

#include "io/http.h"
#include "io/loop.h"

/* The HTTP client on libcurl multi (io/http.h has the contract): HTTP/1.1, TLS >= 1.2, no
 * redirects; proxies from the environment as libcurl reads them.
 * Owns:   a gb_http made here is freed by its close operation; the cfg is copied.
 * Thread: loop thread only.
 * Errors: GB_UNAVAILABLE (out of memory, libcurl without TLS). */
struct gb_http_curl_cfg {
    uint32_t connections_max; /* per host; 0 = 16; more requests wait */
    const char *ca_file;      /* AWS_CA_BUNDLE / SSL_CERT_FILE; NULL = system bundle */
    const char *ca_path;      /* SSL_CERT_DIR */
};
struct gb_err gb_http_curl_new(struct gb_loop *l, const struct gb_http_curl_cfg *cfg,
                               struct gb_http **out);

#endif
