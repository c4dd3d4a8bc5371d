#ifndef GB_BASE_METRICS_H
#define GB_BASE_METRICS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"

/* The registry of counters, gauges and timers (spec 08 §8). A user asks once for a handle and then
 * writes through it: no lookup, no lock, no allocation on the message path.
 * Owns:   the registry owns all series; handles are valid until gb_metrics_free.
 * Thread: loop thread only.
 * Errors: a series that can't be made (out of memory, or more than GB_METRICS_SERIES_MAX) yields
 *         the shared overflow handle, so that callers need no check; the registry counts it in
 *         `SeriesDropped`, which is visited once it is not 0. A name has one kind (assertion). */

enum { GB_METRICS_SERIES_MAX = 20000, GB_METRICS_DIMENSIONS_MAX = 4 };

enum gb_metric_kind { GB_METRIC_COUNTER, GB_METRIC_GAUGE, GB_METRIC_TIMER };

struct gb_metric {
    double last;          /* gauge */
    bool set;             /* gauge: has a value */
    uint64_t count;       /* counter value, or number of timer samples */
    double sum, min, max; /* timer, milliseconds */
};
struct gb_dimension {
    const char *name;
    const char *value; /* empty or NULL: dropped */
};

struct gb_metrics;
struct gb_err gb_metrics_new(struct gb_metrics **out);
void gb_metrics_free(struct gb_metrics *m);

/* Never NULL. Same name and dimensions: same handle. Up to four dimensions. */
struct gb_metric *gb_metrics_get(struct gb_metrics *m, enum gb_metric_kind kind, const char *name,
                                 const struct gb_dimension *dimensions, size_t count);
#define GB_DIMS(...)                                                                               \
    (const struct gb_dimension[]){__VA_ARGS__},                                                    \
        sizeof((const struct gb_dimension[]){__VA_ARGS__}) / sizeof(struct gb_dimension)

static inline void gb_metric_add(struct gb_metric *c, uint64_t n)
{
    c->count += n;
}
void gb_metric_set(struct gb_metric *gauge, double value);
void gb_metric_clear(struct gb_metric *gauge); /* no value is emitted */
void gb_metric_time(struct gb_metric *timer, int64_t duration_ns);

/* Sum of a counter over all series of the name (tests, conservation check). */
uint64_t gb_metrics_sum(const struct gb_metrics *m, const char *name);
/* Iterates all series, in the order of name then dimensions. */
typedef void gb_metrics_visit_fn(void *arg, enum gb_metric_kind kind, const char *name,
                                 const struct gb_dimension *dimensions, size_t count,
                                 const struct gb_metric *metric);
void gb_metrics_visit(const struct gb_metrics *m, gb_metrics_visit_fn *visit, void *arg);
/* One JSON object: {"metrics":[{"name","kind","dimensions":{},"value"|"count","sum","min","max"}]};
 * gauges without a value are left out. */
void gb_metrics_print(const struct gb_metrics *m, struct gb_str *out);

#endif
