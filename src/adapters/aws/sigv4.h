#ifndef GB_ADAPTERS_AWS_SIGV4_H
#define GB_ADAPTERS_AWS_SIGV4_H

#include "base/digest.h"
#include "base/str.h"

/* Signature Version 4 (spec 04 A2): pure functions over one request.
 * Owns:   nothing; gb_sigv4_key caches a derived signing key by value.
 * Thread: one at a time for a key.
 * Errors: GB_UNAVAILABLE (out of memory), GB_NOT_SUPPORTED (more than GB_SIGV4_HEADERS_MAX
 *         headers). */
enum { GB_SIGV4_HEADERS_MAX = 64 };
struct gb_sigv4_credentials {
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL or "" = none */
};
struct gb_sigv4_header {
    struct gb_bytes name; /* any case */
    struct gb_bytes value;
};
struct gb_sigv4_request {
    const char *method;
    struct gb_bytes path;                  /* as on the request line, percent-encoded; "" = "/" */
    struct gb_bytes query;                 /* raw query without '?' */
    const struct gb_sigv4_header *headers; /* all that are to be signed; host included */
    size_t header_count;
    struct gb_bytes body;
    int64_t time_ms;
    const char *region;
    const char *service;
};
/* Derived key, valid for one secret, date, region and service; re-derived when one of them
 * changes. */
struct gb_sigv4_key {
    char scope[96];                        /* private: date/region/service/aws4_request */
    uint8_t secret_sha256[GB_SHA256_SIZE]; /* private: a rotated secret derives anew */
    uint8_t key[GB_SHA256_SIZE];
    bool valid;
};
/* Appends the value of the Authorization header. `x-amz-date` and, with a token,
 * `x-amz-security-token` must be among the headers (the caller adds them, gb_time_print_basic). */
struct gb_err gb_sigv4_sign(const struct gb_sigv4_request *q, const struct gb_sigv4_credentials *c,
                            struct gb_sigv4_key *key, struct gb_str *authorization);

#endif
