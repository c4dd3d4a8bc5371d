#include "domain/failover_budget.h"

/* A sum or product that outgrew 64 bits names the term at which it did; the first one stays. */
struct ledger {
    const char *overflow;
};

static int64_t outgrown(struct ledger *l, const char *term)
{
    if (l->overflow == NULL) l->overflow = term;
    return INT64_MAX;
}

static int64_t plus(struct ledger *l, int64_t a, int64_t b, const char *term)
{
    int64_t sum;
    return gb_add_i64(a, b, &sum) ? sum : outgrown(l, term);
}

static int64_t times(struct ledger *l, int64_t count, int64_t value, const char *term)
{
    int64_t product;
    return gb_mul_i64(count, value, &product) ? product : outgrown(l, term);
}

static struct gb_err check_ledger(const struct ledger *l)
{
    if (l->overflow == NULL) return gb_ok();
    return gb_err(GB_INVALID_CONFIG,
                  "the failover budget has no value: %s exceeds the longest duration, "
                  "2562047h47m16.854775807s",
                  l->overflow);
}

static struct gb_err check_positive(const char *name, int64_t ns)
{
    if (ns > 0) return gb_ok();
    char shown[GB_DURATION_TEXT_MAX];
    gb_duration_print(ns, shown);
    return gb_err(GB_INVALID_CONFIG,
                  "the failover budget has no value: %s is %s and must be greater than zero", name,
                  shown);
}

/* What both budgets need. */
static struct gb_err check_terms(const struct gb_failover_terms *t)
{
    const struct {
        const char *name;
        int64_t ns;
    } positive[] = {{"lease_ttl", t->ttl_ns},
                    {"acquire_poll_interval", t->poll_ns},
                    {"renew_call_timeout", t->call_ns}};
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++) {
        struct gb_err err = check_positive(positive[i].name, positive[i].ns);
        if (gb_failed(err)) return err;
    }
    if (t->activation_ns <= 0) {
        return gb_err(GB_INVALID_CONFIG,
                      "the failover budget has no value: the activation is unknown; only MQTT "
                      "sessions of mode persistent or exclusive declare one");
    }
    if (t->startup_ns >= 0 && t->jitter_ns >= 0) return gb_ok();
    return gb_err(GB_INVALID_CONFIG, "the failover budget has no value: %s is negative",
                  t->startup_ns < 0 ? "startup_allowance" : "lease_renew_jitter");
}

/* ceil(1.25 * poll) */
static int64_t max_poll(struct ledger *l, int64_t poll_ns)
{
    int64_t margin = poll_ns / 4 + (poll_ns % 4 != 0 ? 1 : 0);
    return gb_max_i64(GB_MS, plus(l, poll_ns, margin, "1.25 x acquire_poll_interval"));
}

struct gb_err gb_failover_owner_death(const struct gb_failover_terms *terms,
                                      struct gb_owner_death *out)
{
    struct gb_err err = check_terms(terms);
    if (gb_failed(err)) return err;
    struct ledger l = {0};
    struct gb_owner_death b = {.max_poll_ns = max_poll(&l, terms->poll_ns)};
    b.min_poll_ns = gb_max_i64(GB_MS, terms->poll_ns - terms->poll_ns / 2 / 2);
    int64_t rounds = terms->ttl_ns / b.min_poll_ns + (terms->ttl_ns % b.min_poll_ns != 0 ? 1 : 0);
    b.calls = plus(&l, 1, rounds, "the count of acquire calls");
    b.polls_ns = times(&l, 2, b.max_poll_ns, "2 x the longest poll");
    b.calls_ns = times(&l, b.calls, terms->call_ns, "acquire calls x renew_call_timeout");
    b.total_ns = plus(&l, terms->ttl_ns, b.polls_ns, "lease_ttl + polls");
    b.total_ns = plus(&l, b.total_ns, b.calls_ns, "lease_ttl + polls + calls");
    b.total_ns = plus(&l, b.total_ns, terms->activation_ns, "the sum with the activation");
    b.total_ns = plus(&l, b.total_ns, terms->startup_ns, "the sum with startup_allowance");
    err = check_ledger(&l);
    if (!gb_failed(err)) *out = b;
    return err;
}

struct gb_err gb_failover_broker_path(const struct gb_failover_terms *terms,
                                      struct gb_broker_path *out)
{
    struct gb_err err = check_terms(terms);
    if (!gb_failed(err)) err = check_positive("renew_interval", terms->renew_ns);
    if (!gb_failed(err)) err = check_positive("step_down_grace", terms->grace_ns);
    if (!gb_failed(err)) err = check_positive("broker_health_step_down", terms->step_down_ns);
    if (gb_failed(err)) return err;
    struct ledger l = {0};
    int64_t close_ns = gb_min_i64(terms->grace_ns, 5 * GB_SEC);
    struct gb_broker_path b = {
        .tick_ns = plus(&l, terms->renew_ns, terms->jitter_ns / 2, "renew_interval + jitter / 2"),
        .closes_ns = 2 * close_ns,
        .polls_ns = times(&l, 2, max_poll(&l, terms->poll_ns), "2 x the longest poll"),
        .calls_ns = times(&l, 4, terms->call_ns, "4 x renew_call_timeout"),
    };
    const struct {
        const char *name;
        int64_t ns;
    } sum[] = {{"broker_health_step_down", terms->step_down_ns},
               {"the sum with one renewal", b.tick_ns},
               {"the sum with close and release", b.closes_ns},
               {"the sum with step_down_grace", terms->grace_ns},
               {"the sum with two polls", b.polls_ns},
               {"the sum with four calls", b.calls_ns},
               {"the sum with the activation", terms->activation_ns},
               {"the sum with startup_allowance", terms->startup_ns}};
    for (size_t i = 0; i < sizeof sum / sizeof sum[0]; i++) {
        b.total_ns = plus(&l, b.total_ns, sum[i].ns, sum[i].name);
    }
    err = check_ledger(&l);
    if (!gb_failed(err)) *out = b;
    return err;
}
