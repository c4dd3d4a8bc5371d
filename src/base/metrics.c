#include "base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/json_write.h"

enum { CAPACITY_MIN = 64, NUMBER_TEXT_MAX = 40 };

/* One allocation: the copies of name and dimensions follow the struct. */
struct series {
    struct gb_metric metric;
    enum gb_metric_kind kind;
    const char *name;
    struct gb_dimension dimensions[GB_METRICS_DIMENSIONS_MAX];
    size_t count;
    char text[];
};

struct gb_metrics {
    struct series **sorted; /* by name, then dimensions; owned */
    size_t count, capacity;
    struct series *dropped;    /* counts the series that could not be made */
    struct gb_metric overflow; /* what the callers of those write to */
};

static int compare(const struct series *a, const struct series *b)
{
    int order = strcmp(a->name, b->name);
    for (size_t i = 0; order == 0 && i < a->count && i < b->count; i++) {
        order = strcmp(a->dimensions[i].name, b->dimensions[i].name);
        if (order == 0) order = strcmp(a->dimensions[i].value, b->dimensions[i].value);
    }
    if (order != 0) return order;
    return (a->count > b->count) - (a->count < b->count);
}

/* The index of the first series that is not before `key`. */
static size_t lower_bound(const struct gb_metrics *m, const struct series *key)
{
    size_t low = 0;
    size_t high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(m->sorted[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const char *copy_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static struct series *series_new(const struct series *key)
{
    size_t size = strlen(key->name) + 1;
    for (size_t i = 0; i < key->count; i++) {
        size += strlen(key->dimensions[i].name) + strlen(key->dimensions[i].value) + 2;
    }
    struct series *s = malloc(sizeof *s + size);
    if (s == NULL) return NULL;
    *s = (struct series){.kind = key->kind, .count = key->count};
    char *at = s->text;
    s->name = copy_text(&at, key->name);
    for (size_t i = 0; i < key->count; i++) {
        s->dimensions[i].name = copy_text(&at, key->dimensions[i].name);
        s->dimensions[i].value = copy_text(&at, key->dimensions[i].value);
    }
    return s;
}

static bool make_room(struct gb_metrics *m)
{
    if (m->count == GB_METRICS_SERIES_MAX) return false;
    if (m->count < m->capacity) return true;
    size_t capacity = m->capacity == 0 ? CAPACITY_MIN : m->capacity * 2;
    struct series **sorted = realloc(m->sorted, capacity * sizeof(struct series *));
    if (sorted == NULL) return false;
    m->sorted = sorted;
    m->capacity = capacity;
    return true;
}

/* The series of the key, made when there is none; NULL when it can't be. */
static struct series *find_or_add(struct gb_metrics *m, const struct series *key)
{
    size_t at = lower_bound(m, key);
    if (at < m->count && compare(m->sorted[at], key) == 0) return m->sorted[at];
    if (!make_room(m)) return NULL;
    struct series *s = series_new(key);
    if (s == NULL) return NULL;
    memmove(&m->sorted[at + 1], &m->sorted[at], (m->count - at) * sizeof(struct series *));
    m->sorted[at] = s;
    m->count++;
    return s;
}

struct gb_err gb_metrics_new(struct gb_metrics **out)
{
    struct gb_metrics *m = calloc(1, sizeof *m);
    if (m == NULL) return gb_err_no_memory("the metrics registry");
    m->dropped =
        find_or_add(m, &(struct series){.name = "SeriesDropped", .kind = GB_METRIC_COUNTER});
    if (m->dropped == NULL) {
        gb_metrics_free(m);
        return gb_err_no_memory("the metrics registry");
    }
    *out = m;
    return gb_ok();
}

void gb_metrics_free(struct gb_metrics *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->count; i++) free(m->sorted[i]);
    free(m->sorted);
    free(m);
}

struct gb_metric *gb_metrics_get(struct gb_metrics *m, enum gb_metric_kind kind, const char *name,
                                 const struct gb_dimension *dimensions, size_t count)
{
    GB_ASSERT(count <= GB_METRICS_DIMENSIONS_MAX);
    struct series key = {.kind = kind, .name = name};
    for (size_t i = 0; i < count; i++) {
        if (dimensions[i].value == NULL || dimensions[i].value[0] == '\0') continue;
        key.dimensions[key.count++] = dimensions[i];
    }
    struct series *s = find_or_add(m, &key);
    if (s == NULL) {
        m->dropped->metric.count++;
        return &m->overflow;
    }
    GB_ASSERT(s->kind == kind); /* spec 08 §8: a name has one kind */
    return &s->metric;
}

void gb_metric_set(struct gb_metric *gauge, double value)
{
    gauge->last = value;
    gauge->set = true;
}

void gb_metric_clear(struct gb_metric *gauge)
{
    gauge->set = false;
}

void gb_metric_time(struct gb_metric *timer, int64_t duration_ns)
{
    /* Latencies from wall clocks of two machines may come out negative. */
    double ms = duration_ns < 0 ? 0 : (double)duration_ns / 1e6;
    if (timer->count == 0 || ms < timer->min) timer->min = ms;
    if (timer->count == 0 || ms > timer->max) timer->max = ms;
    timer->sum += ms;
    timer->count++;
}

uint64_t gb_metrics_sum(const struct gb_metrics *m, const char *name)
{
    /* Without dimensions the key is before all other series of its name. */
    size_t at = lower_bound(m, &(struct series){.name = name});
    uint64_t sum = 0;
    for (; at < m->count && strcmp(m->sorted[at]->name, name) == 0; at++) {
        sum += m->sorted[at]->metric.count;
    }
    return sum;
}

void gb_metrics_visit(const struct gb_metrics *m, gb_metrics_visit_fn *visit, void *arg)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct series *s = m->sorted[i];
        if (s == m->dropped && s->metric.count == 0) continue; /* shown once it happened */
        visit(arg, s->kind, s->name, s->dimensions, s->count, &s->metric);
    }
}

/* JSON has no NaN and no infinity. */
static void print_double(struct gb_json_writer *w, double value)
{
    if (!isfinite(value)) {
        gb_json_w_null(w);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    int size = snprintf(text, sizeof text, "%.15g", value);
    GB_ASSERT(size > 0 && size < NUMBER_TEXT_MAX);
    gb_json_w_raw(w, gb_bytes(text, (size_t)size));
}

static void print_values(struct gb_json_writer *w, enum gb_metric_kind kind,
                         const struct gb_metric *metric)
{
    switch (kind) {
    case GB_METRIC_COUNTER:
        gb_json_w_key(w, "value");
        gb_json_w_u64(w, metric->count);
        return;
    case GB_METRIC_GAUGE:
        gb_json_w_key(w, "value");
        print_double(w, metric->last);
        return;
    case GB_METRIC_TIMER:
        gb_json_w_key(w, "count");
        gb_json_w_u64(w, metric->count);
        gb_json_w_key(w, "sum");
        print_double(w, metric->sum);
        gb_json_w_key(w, "min");
        print_double(w, metric->min);
        gb_json_w_key(w, "max");
        print_double(w, metric->max);
        return;
    }
}

static void print_series(void *arg, enum gb_metric_kind kind, const char *name,
                         const struct gb_dimension *dimensions, size_t count,
                         const struct gb_metric *metric)
{
    static const char *const kind_names[] = {
        [GB_METRIC_COUNTER] = "counter",
        [GB_METRIC_GAUGE] = "gauge",
        [GB_METRIC_TIMER] = "timer",
    };
    struct gb_json_writer *w = arg;
    if (kind == GB_METRIC_GAUGE && !metric->set) return;
    gb_json_w_object(w);
    gb_json_w_key(w, "name");
    gb_json_w_string_c(w, name);
    gb_json_w_key(w, "kind");
    gb_json_w_string_c(w, kind_names[kind]);
    gb_json_w_key(w, "dimensions");
    gb_json_w_object(w);
    for (size_t i = 0; i < count; i++) {
        gb_json_w_key_bytes(w, gb_bytes_c(dimensions[i].name));
        gb_json_w_string_c(w, dimensions[i].value);
    }
    gb_json_w_object_end(w);
    print_values(w, kind, metric);
    gb_json_w_object_end(w);
}

void gb_metrics_print(const struct gb_metrics *m, struct gb_str *out)
{
    struct gb_json_writer w;
    gb_json_w_init(&w, out);
    gb_json_w_object(&w);
    gb_json_w_key(&w, "metrics");
    gb_json_w_array(&w);
    gb_metrics_visit(m, print_series, &w);
    gb_json_w_array_end(&w);
    gb_json_w_object_end(&w);
}
