#ifndef GB_ADAPTERS_AWS_AWS_URL_H
#define GB_ADAPTERS_AWS_AWS_URL_H

#include "base/str.h"

/* The parts of an absolute http(s) URL that a signed request needs.
 * Owns:   its strings; release with gb_aws_url_deinit, which accepts zeroed memory.
 * Thread: any. Pure.
 * Errors: gb_aws_url_parse: GB_INVALID_CONFIG (no http(s) URL, no host, user info, query, fragment,
 *         bad port), GB_UNAVAILABLE (out of memory). */
struct gb_aws_url {
    char *url;        /* normalised: lower-case scheme and host, a path */
    char *host;       /* as in the Host header: with the port unless it is the scheme's own */
    char *hostname;   /* without port; an IPv6 address keeps its brackets */
    const char *path; /* into `url`, begins with '/' */
    bool tls;
};
struct gb_err gb_aws_url_parse(const char *text, struct gb_aws_url *out);
void gb_aws_url_deinit(struct gb_aws_url *u);

#endif
