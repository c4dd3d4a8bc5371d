#ifndef GB_APP_BOOTSTRAP_H
#define GB_APP_BOOTSTRAP_H

#include "app/options.h"
#include "blueprint/bootstrap.h"

/* The bootstrap that the environment gives (spec 09 §4.3), and what it settles for the process.
 * Owns:   the bootstrap belongs to the caller and must outlive `o`, which then points into it.
 * Thread: the main thread, before any other runs: it may change the environment.
 * Errors: GB_INVALID_CONFIG: contradicting variables, and what gb_bootstrap_read says; the file
 *         errors. `*out` stays NULL in flag mode. */
/* First: flags that contradict the environment are a usage error. */
struct gb_err gb_bootstrap_check_flags(const struct gb_options *o);
struct gb_err gb_bootstrap_load(struct gb_options *o, struct gb_bootstrap **out);

#endif
