#ifndef GB_PORTS_SENDER_H
#define GB_PORTS_SENDER_H

#include "base/op.h"
#include "domain/envelope.h"

/* A destination (spec 02 §6, §7.3; 04 B9; 03 §11).
 * Owns:   a gb_send belongs to the caller and is borrowed, with envelope and address, until `done`.
 * Thread: loop thread only.
 * Errors: any code of spec 02 §4.1 with its class; GB_TIMEOUT at op.deadline_ns; GB_CANCELLED.
 *         GB_OK means that the destination accepted (QoS 0: written to the socket). */
struct gb_send {
    struct gb_op op; /* op.deadline_ns required */
    /* immutable; counters and internal headers are left out by the sender */
    const struct gb_envelope *envelope;
    struct gb_bytes address;
    bool batch; /* the sender may put sends of the same turn into one request (drain cycle) */
};

struct gb_sender;
struct gb_sender_ops {
    void (*send)(struct gb_sender *s, struct gb_send *q, gb_done_fn *done, void *arg);
    /* False: a drainer claims nothing for it at present (disconnected). */
    bool (*ready)(const struct gb_sender *s);
    /* Refuses new sends, finishes pending ones (within op.deadline_ns, then cancels), completes,
     * frees `s`. */
    void (*close)(struct gb_sender *s, struct gb_op *op, gb_done_fn *done, void *arg);
};
struct gb_sender {
    const struct gb_sender_ops *ops;
    const char *id;
    uint32_t batch_max; /* entries that one request can carry; 1 = no batches */
};

#endif
