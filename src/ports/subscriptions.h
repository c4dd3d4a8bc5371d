#ifndef GB_PORTS_SUBSCRIPTIONS_H
#define GB_PORTS_SUBSCRIPTIONS_H

#include "base/op.h"
#include "domain/filter_list.h"

/* Managed-subscription history (spec 05 §5, 03 §8): the filters ever requested for a broker
 * session.
 * Owns:   requests belong to the caller until `done`; a listed set belongs to the caller
 *         (gb_filter_list_free).
 * Thread: loop thread only.
 * Errors: GB_NOT_FOUND = no baseline = history unknown; GB_INVALID_CONFIG for an empty identity or
 *         filter; GB_UNAVAILABLE, GB_TIMEOUT, GB_CANCELLED. */
struct gb_subscriptions_list {
    struct gb_op op;
    const char *identity;
    struct gb_filter_list filters; /* out */
};
struct gb_subscriptions_change {
    struct gb_op op;
    const char *identity;
    const char *const *filters; /* remember with count 0 seeds an empty baseline */
    size_t count;
};

struct gb_subscriptions;
struct gb_subscriptions_ops {
    void (*list)(struct gb_subscriptions *s, struct gb_subscriptions_list *q, gb_done_fn *done,
                 void *arg);
    void (*remember)(struct gb_subscriptions *s, struct gb_subscriptions_change *q,
                     gb_done_fn *done, void *arg);
    void (*forget)(struct gb_subscriptions *s, struct gb_subscriptions_change *q, gb_done_fn *done,
                   void *arg);
    void (*close)(struct gb_subscriptions *s, struct gb_op *op, gb_done_fn *done, void *arg);
};
struct gb_subscriptions {
    const struct gb_subscriptions_ops *ops;
};

#endif
