#ifndef GB_IO_HTTP_PROBE_H
#define GB_IO_HTTP_PROBE_H

#include "base/err.h"

/* One GET without a loop, for a process that does nothing else.
 * Owns:   nothing.
 * Thread: main thread; blocks up to `timeout_ms`. No proxy, no redirect, no look at certificates.
 * Errors: GB_UNAVAILABLE: no answer. */
struct gb_err gb_http_probe(const char *url, long timeout_ms, unsigned *status);

#endif
