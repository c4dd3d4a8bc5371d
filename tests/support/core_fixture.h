#ifndef GB_TESTS_SUPPORT_CORE_FIXTURE_H
#define GB_TESTS_SUPPORT_CORE_FIXTURE_H

#include "base/duration.h"
#include "base/metrics.h"
#include "domain/policy.h"
#include "support/fake_dlq.h"
#include "support/fake_outbox.h"
#include "support/fake_receiver.h"
#include "support/fake_sender.h"

/* The surroundings of a core object in a unit test: a reactor whose clock the test moves, metrics,
 * and the fake ports.
 * Owns:   everything in it.
 * Thread: one.
 * Errors: asserts. */

#define CORE_FIXTURE_WALL_MS INT64_C(1764547200000) /* at monotonic time 0 */

struct core_fixture {
    struct gb_reactor *reactor;
    struct gb_metrics *metrics;
    struct fake_receiver receiver;
    struct fake_sender sender;
    struct fake_outbox outbox;
    struct fake_dlq dlq;
    uint64_t now_ns;
};

void core_fixture_init(struct core_fixture *x);
void core_fixture_deinit(struct core_fixture *x);
/* Runs every turn that is due, moving the clock from event to event, until `duration_ns` passed. */
void core_fixture_run(struct core_fixture *x, int64_t duration_ns);
uint64_t core_fixture_count(const struct core_fixture *x, const char *counter);
/* The counter of one route with one more dimension, e.g. ("DLQEntries", "category",
 * "permanent"). */
uint64_t core_fixture_count_of(const struct core_fixture *x, const char *counter,
                               const char *dimension, const char *value);

#endif
