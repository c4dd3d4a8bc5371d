#ifndef GB_DOMAIN_POLICY_H
#define GB_DOMAIN_POLICY_H

#include "base/duration.h"
#include "base/reactor.h"

/* Route policy (spec 02 §2.2) with defaults, and retry arithmetic (spec 02 §5.1).
 * Owns:   nothing; plain values.
 * Thread: any.
 * Errors: none. Values were checked by the blueprint. */

enum gb_delivery_mode { GB_DIRECT_HOLD = 0, GB_SHARED_OUTBOX };
enum gb_dispatch_mode { GB_DISPATCH_SINGLE = 0, GB_DISPATCH_FAN_OUT };
enum gb_terminal_action { GB_ACTION_DLQ = 0, GB_ACTION_DROP };

struct gb_backoff {
    int64_t initial_ns;
    int64_t max_ns;
    double multiplier; /* >= 1 */
    double jitter;     /* 0..1 */
};
struct gb_policy {
    uint32_t max_in_flight;
    uint32_t max_replay_attempts;
    int64_t replay_budget_ns;
    int64_t send_timeout_ns;
    int64_t send_retry_budget_ns; /* 0 = off */
    int64_t processor_timeout_ns;
    uint64_t max_outbox_depth;
    int64_t depth_cache_ttl_ns;
    enum gb_terminal_action on_expired;
    enum gb_terminal_action on_permanent_failure;
    enum gb_terminal_action on_filtered;
    bool allow_unfenced;
    bool allow_retry_drop;
    struct gb_backoff backoff;
};
struct gb_policy gb_policy_default(void);

/* Base delay before jitter of attempt n >= 1: min(initial * multiplier^(n-1), max), no overflow. */
int64_t gb_backoff_base_ns(const struct gb_backoff *b, uint32_t attempt);
/* d*(1-jitter) + random[0, d*jitter), within [0, max]; `retry_after_ns` > 0 wins as is. */
int64_t gb_backoff_delay_ns(const struct gb_backoff *b, uint32_t attempt, int64_t retry_after_ns,
                            struct gb_reactor *r);

enum gb_drain_strategy_type { GB_DRAIN_ADAPTIVE = 0, GB_DRAIN_FIXED };
struct gb_drain_policy {
    enum gb_drain_strategy_type type;
    int64_t interval_ns; /* fixed */
    int64_t min_interval_ns, max_interval_ns;
    double multiplier;
    uint32_t batch_size, max_batch_size, max_concurrency;
    int64_t per_record_timeout_ns; /* batch ceiling, resolved per spec 02 §7.4 */
    int64_t max_timeout_ns;
    int64_t legacy_ceiling_ns; /* > 0: bridge.drain_timeout governs */
    int64_t stale_claim_ns;
};
struct gb_drain_policy gb_drain_policy_default(void);

/* Spec 02 §7.4: the configured ceiling for a batch, and the working budget it may only raise. */
int64_t gb_drain_ceiling_ns(const struct gb_drain_policy *p, uint64_t records);
int64_t gb_drain_budget_ns(const struct gb_drain_policy *p, uint64_t records,
                           uint64_t longest_group, int64_t send_timeout_ns);
/* Spec 02 §7.3 item 1: next wait, without and with the +-25 % jitter (never zero). */
int64_t gb_drain_next_interval_ns(const struct gb_drain_policy *p, int64_t current_ns, bool found);
int64_t gb_drain_jitter_ns(int64_t interval_ns, struct gb_reactor *r);

#endif
