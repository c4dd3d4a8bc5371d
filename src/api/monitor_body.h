#ifndef GB_API_MONITOR_BODY_H
#define GB_API_MONITOR_BODY_H

#include "api/monitor_snapshot.h"

/* The longer bodies of the monitor API as JSON (spec 08 §6).
 * Owns:   nothing; appends to `out`.
 * Thread: loop thread only.
 * Errors: `out` fails when it is full. */
void gb_monitor_print_topology(const struct gb_monitor_snapshot *s, struct gb_str *out);
void gb_monitor_print_routes(const struct gb_monitor_snapshot *s, struct gb_str *out);
void gb_monitor_print_deephealth(const struct gb_monitor_snapshot *s, struct gb_str *out);

#endif
