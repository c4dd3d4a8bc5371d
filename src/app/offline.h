#ifndef GB_APP_OFFLINE_H
#define GB_APP_OFFLINE_H

#include "app/options.h"

/* The modes that answer a question about documents on stdout and open nothing else (spec 08 §2).
 * Each returns the exit code.
 * Owns:   nothing after it returns.
 * Thread: the main thread.
 * Errors: printed on stderr, 1. */
int gb_offline_digest(const struct gb_options *o);      /* 0 */
int gb_offline_fingerprint(const struct gb_options *o); /* 0 */
int gb_offline_inspect(const struct gb_options *o);     /* 0, 1: the document has errors */
int gb_offline_diff(const struct gb_options *o);        /* 0 equal, 1 different */

#endif
