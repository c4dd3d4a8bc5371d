#include "api/prometheus.h"

#include <string.h>

/* Timers come apart into families; a family's lines have to stand together, so each has its own
 * round over the series. */
enum part { PART_VALUE = 0, PART_SUM, PART_MIN, PART_MAX, PART_COUNT };
static const char *const suffixes[] = {"", "_sum", "_min", "_max", "_count"};

struct print {
    struct gb_str *out;
    enum part part;
    const char *family; /* whose TYPE line is written */
};

static void print_label(struct gb_str *out, const struct gb_dimension *d)
{
    gb_str_append_c(out, d->name);
    gb_str_append_c(out, "=\"");
    for (const char *p = d->value; *p != '\0'; p++) {
        if (*p == '\n') {
            gb_str_append_c(out, "\\n");
            continue;
        }
        if (*p == '"' || *p == '\\') gb_str_append_char(out, '\\');
        gb_str_append_char(out, *p);
    }
    gb_str_append_char(out, '"');
}

static void print_series(struct print *p, const char *name, const struct gb_dimension *dimensions,
                         size_t count)
{
    gb_str_append_c(p->out, name);
    gb_str_append_c(p->out, suffixes[p->part]);
    for (size_t i = 0; i < count; i++) {
        gb_str_append_char(p->out, i == 0 ? '{' : ',');
        print_label(p->out, &dimensions[i]);
    }
    gb_str_append_c(p->out, count > 0 ? "} " : " ");
}

static void print_value(struct print *p, enum gb_metric_kind kind, const struct gb_metric *m)
{
    if (kind == GB_METRIC_COUNTER || p->part == PART_COUNT) {
        gb_str_append_u64(p->out, m->count);
    } else {
        double value = kind == GB_METRIC_GAUGE ? m->last
                       : p->part == PART_SUM   ? m->sum
                       : p->part == PART_MIN   ? m->min
                                               : m->max;
        gb_str_appendf(p->out, "%.17g", value);
    }
    gb_str_append_char(p->out, '\n');
}

static void visit(void *arg, enum gb_metric_kind kind, const char *name,
                  const struct gb_dimension *dimensions, size_t count,
                  const struct gb_metric *metric)
{
    struct print *p = arg;
    if ((kind == GB_METRIC_TIMER) != (p->part != PART_VALUE)) return;
    if (kind == GB_METRIC_GAUGE && !metric->set) return;
    bool extreme = p->part == PART_MIN || p->part == PART_MAX;
    if (extreme && metric->count == 0) return;
    if (p->family == NULL || strcmp(p->family, name) != 0) {
        bool counter = kind == GB_METRIC_COUNTER || (kind == GB_METRIC_TIMER && !extreme);
        gb_str_appendf(p->out, "# TYPE %s%s %s\n", name, suffixes[p->part],
                       counter ? "counter" : "gauge");
    }
    p->family = name;
    print_series(p, name, dimensions, count);
    print_value(p, kind, metric);
}

void gb_prometheus_print(const struct gb_metrics *m, struct gb_str *out)
{
    for (int part = PART_VALUE; part <= PART_COUNT; part++) {
        struct print p = {.out = out, .part = (enum part)part};
        gb_metrics_visit(m, visit, &p);
    }
}
