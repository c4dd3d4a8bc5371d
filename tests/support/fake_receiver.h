#ifndef GB_TESTS_SUPPORT_FAKE_RECEIVER_H
#define GB_TESTS_SUPPORT_FAKE_RECEIVER_H

#include "base/reactor.h"
#include "ports/receiver.h"

/* A source by hand: the test emits, the fake notes what became of each delivery.
 * Owns:   its deliveries and, until they are settled, their envelopes; all are freed by deinit.
 * Thread: loop thread only.
 * Errors: asserts (GB_ASSERT) that a delivery is settled once only. */

enum fake_fate { FAKE_HELD = 0, FAKE_ACKED, FAKE_RETRIED, FAKE_ABANDONED, FAKE_NOT_TAKEN };

struct fake_delivery {
    struct gb_delivery delivery;
    struct fake_receiver *receiver;
    enum fake_fate fate;
    int64_t retry_delay_ns;
    unsigned calls; /* of ack, retry, abandon */
    gb_settled_fn *settled;
    void *arg;
    struct gb_task task;
    struct gb_err result;
};
struct fake_receiver {
    struct gb_receiver receiver;
    struct gb_reactor *reactor;
    struct gb_sink sink;
    unsigned starts, resumes, stops;
    enum gb_emit last_emit;
    struct gb_err settle_result; /* of the settlements to come */
    bool hold_settled;           /* `settled` waits for fake_receiver_settle */
    struct fake_delivery *deliveries[4096];
    size_t count;
};

void fake_receiver_init(struct fake_receiver *f, struct gb_reactor *r);
void fake_receiver_deinit(struct fake_receiver *f);
/* Makes a delivery that can be handed back; change its fields before fake_receiver_emit. */
struct fake_delivery *fake_receiver_make(struct fake_receiver *f, const char *id);
void fake_receiver_emit(struct fake_delivery *d);
struct fake_delivery *fake_receiver_push(struct fake_receiver *f, const char *id); /* both */
void fake_receiver_settle(struct fake_delivery *d);
size_t fake_receiver_fates(const struct fake_receiver *f, enum fake_fate fate);

#endif
