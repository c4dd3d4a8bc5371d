#ifndef GB_API_PROMETHEUS_H
#define GB_API_PROMETHEUS_H

#include "base/metrics.h"

/* The registry as Prometheus text 0.0.4 (spec 08 §8): names as they are, a timer as <Name>_count,
 * _sum, _min and _max.
 * Owns:   nothing; appends to `out`.
 * Thread: loop thread only.
 * Errors: `out` fails when it is full. */
void gb_prometheus_print(const struct gb_metrics *m, struct gb_str *out);

#endif
