#ifndef GB_IO_HTTP_LISTEN_H
#define GB_IO_HTTP_LISTEN_H

#include "base/err.h"

/* A listening TCP socket from host:port; an empty host is every interface, IPv6 and IPv4.
 * Owns:   the descriptor belongs to the caller.
 * Thread: any; a host name is looked up in the DNS, so before the loop runs.
 * Errors: GB_INVALID_CONFIG: not host:port, or an unknown host. GB_UNAVAILABLE: it can't be bound;
 *         the text says why. */
struct gb_err gb_http_listen(const char *address, int *fd, unsigned *port);

#endif
