#include "domain/policy.h"

#include <math.h>

struct gb_policy gb_policy_default(void)
{
    return (struct gb_policy){
        .max_in_flight = 100,
        .max_replay_attempts = 5,
        .replay_budget_ns = 15 * GB_MINUTE,
        .send_timeout_ns = 30 * GB_SEC,
        .send_retry_budget_ns = 60 * GB_SEC,
        .processor_timeout_ns = 30 * GB_SEC,
        .max_outbox_depth = 10000,
        .depth_cache_ttl_ns = GB_SEC,
        .on_expired = GB_ACTION_DLQ,
        .on_permanent_failure = GB_ACTION_DLQ,
        .on_filtered = GB_ACTION_DROP,
        .backoff = {.initial_ns = GB_SEC, .max_ns = 30 * GB_SEC, .multiplier = 2.0, .jitter = 0.2},
    };
}

struct gb_drain_policy gb_drain_policy_default(void)
{
    return (struct gb_drain_policy){
        .type = GB_DRAIN_ADAPTIVE,
        .interval_ns = GB_SEC,
        .min_interval_ns = 100 * GB_MS,
        .max_interval_ns = 30 * GB_SEC,
        .multiplier = 2.0,
        .batch_size = 100,
        .max_batch_size = 500,
        .max_concurrency = 10,
        .per_record_timeout_ns = 3 * GB_SEC,
        .max_timeout_ns = 10 * GB_SEC,
        .stale_claim_ns = 30 * GB_SEC,
    };
}

int64_t gb_backoff_base_ns(const struct gb_backoff *b, uint32_t attempt)
{
    if (b->initial_ns <= 0 || b->max_ns <= 0) return 0;
    double exponent = attempt > 1 ? (double)(attempt - 1) : 0;
    double d = (double)b->initial_ns * pow(b->multiplier, exponent); /* perhaps infinite */
    return d >= (double)b->max_ns ? b->max_ns : (int64_t)d;
}

int64_t gb_backoff_delay_ns(const struct gb_backoff *b, uint32_t attempt, int64_t retry_after_ns,
                            struct gb_reactor *r)
{
    if (retry_after_ns > 0) return retry_after_ns;
    int64_t d = gb_backoff_base_ns(b, attempt);
    double share = (double)d * b->jitter;
    int64_t spread = share >= (double)d ? d : (int64_t)share;
    return d - spread + (int64_t)gb_reactor_random_below(r, (uint64_t)spread);
}

int64_t gb_drain_ceiling_ns(const struct gb_drain_policy *p, uint64_t records)
{
    if (p->legacy_ceiling_ns > 0) return p->legacy_ceiling_ns;
    int64_t n = records > INT64_MAX ? INT64_MAX : (int64_t)records;
    int64_t ceiling = gb_mul_sat_i64(n < 1 ? 1 : n, p->per_record_timeout_ns);
    if (ceiling > p->max_timeout_ns) ceiling = p->max_timeout_ns;
    return ceiling < p->per_record_timeout_ns ? p->per_record_timeout_ns : ceiling;
}

int64_t gb_drain_budget_ns(const struct gb_drain_policy *p, uint64_t records,
                           uint64_t longest_group, int64_t send_timeout_ns)
{
    uint64_t concurrency = p->max_concurrency == 0 ? 1 : p->max_concurrency;
    uint64_t depth = records / concurrency + (records % concurrency != 0 ? 1 : 0);
    if (depth < longest_group) depth = longest_group;
    if (depth < 1) depth = 1;
    int64_t grace_ns = send_timeout_ns < 5 * GB_SEC ? send_timeout_ns : 5 * GB_SEC;
    int64_t budget = gb_mul_sat_i64(depth > INT64_MAX ? INT64_MAX : (int64_t)depth,
                                    gb_add_sat_i64(send_timeout_ns, grace_ns));
    if (budget < 2 * GB_SEC) budget = 2 * GB_SEC;
    int64_t ceiling = gb_drain_ceiling_ns(p, records);
    return budget > ceiling ? budget : ceiling; /* the ceiling may only raise it */
}

int64_t gb_drain_next_interval_ns(const struct gb_drain_policy *p, int64_t current_ns, bool found)
{
    if (p->type == GB_DRAIN_FIXED) return p->interval_ns;
    if (found || current_ns < p->min_interval_ns) return p->min_interval_ns;
    double next = (double)current_ns * p->multiplier;
    return next >= (double)p->max_interval_ns ? p->max_interval_ns : (int64_t)next;
}

int64_t gb_drain_jitter_ns(int64_t interval_ns, struct gb_reactor *r)
{
    if (interval_ns < 1) return 1;
    int64_t quarter = interval_ns / 4;
    int64_t extra = (int64_t)gb_reactor_random_below(r, (uint64_t)quarter * 2 + 1);
    return gb_add_sat_i64(interval_ns - quarter, extra);
}
