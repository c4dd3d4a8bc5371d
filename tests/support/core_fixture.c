#include "support/core_fixture.h"

#include "base/assert.h"
#include "base/log.h"

static void discard(void *arg, enum gb_log_level level, const char *line, size_t size)
{
    (void)arg, (void)level, (void)line, (void)size;
}

void core_fixture_init(struct core_fixture *x)
{
    gb_log_set_sink(discard, NULL);
    *x = (struct core_fixture){.now_ns = (uint64_t)GB_SEC};
    struct gb_err err = gb_reactor_new(1, &x->reactor);
    if (!gb_failed(err)) err = gb_metrics_new(&x->metrics);
    GB_ASSERT(!gb_failed(err));
    gb_reactor_set_now(x->reactor, x->now_ns, CORE_FIXTURE_WALL_MS + 1000);
    fake_receiver_init(&x->receiver, x->reactor);
    fake_sender_init(&x->sender, x->reactor);
    fake_outbox_init(&x->outbox, x->reactor);
    fake_dlq_init(&x->dlq, x->reactor);
}

void core_fixture_deinit(struct core_fixture *x)
{
    fake_receiver_deinit(&x->receiver);
    fake_sender_deinit(&x->sender);
    fake_outbox_deinit(&x->outbox);
    fake_dlq_deinit(&x->dlq);
    gb_metrics_free(x->metrics);
    gb_reactor_free(x->reactor);
    gb_log_set_sink(NULL, NULL);
}

static void turn(struct core_fixture *x)
{
    gb_reactor_run(x->reactor, x->now_ns,
                   CORE_FIXTURE_WALL_MS + (int64_t)(x->now_ns / (uint64_t)GB_MS));
}

void core_fixture_run(struct core_fixture *x, int64_t duration_ns)
{
    uint64_t until_ns = x->now_ns + (uint64_t)duration_ns;
    uint64_t next_ns;
    while ((next_ns = gb_reactor_next_ns(x->reactor)) <= until_ns) {
        if (next_ns > x->now_ns) x->now_ns = next_ns;
        turn(x);
    }
    x->now_ns = until_ns;
    turn(x);
}

uint64_t core_fixture_count(const struct core_fixture *x, const char *counter)
{
    return gb_metrics_sum(x->metrics, counter);
}

struct query {
    const char *name, *dimension, *value;
    uint64_t sum;
};

static void visit(void *arg, enum gb_metric_kind kind, const char *name,
                  const struct gb_dimension *dimensions, size_t count,
                  const struct gb_metric *metric)
{
    struct query *q = arg;
    (void)kind;
    if (strcmp(name, q->name) != 0) return;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(dimensions[i].name, q->dimension) == 0 &&
            strcmp(dimensions[i].value, q->value) == 0)
            q->sum += metric->count;
    }
}

uint64_t core_fixture_count_of(const struct core_fixture *x, const char *counter,
                               const char *dimension, const char *value)
{
    struct query q = {.name = counter, .dimension = dimension, .value = value};
    gb_metrics_visit(x->metrics, visit, &q);
    return q.sum;
}
