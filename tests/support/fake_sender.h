#ifndef GB_TESTS_SUPPORT_FAKE_SENDER_H
#define GB_TESTS_SUPPORT_FAKE_SENDER_H

#include "ports/sender.h"
#include "support/fake_script.h"

/* A destination by script; it notes each send in order.
 * Owns:   its notes; held sends belong to their callers.
 * Thread: loop thread only.
 * Errors: asserts when more than FAKE_SENDS_MAX sends arrive. */

enum { FAKE_SENDS_MAX = 20000 };
struct fake_sent {
    char id[64];      /* envelope id */
    char address[64]; /* cut */
    uint64_t at_ns;
    bool accepted; /* the destination has it */
};
struct fake_sender {
    struct gb_sender sender;
    struct gb_reactor *reactor;
    struct fake_script script;
    const char *fail_id; /* sends of this id get `fail_answer`, `fail_times` times */
    struct fake_answer fail_answer;
    unsigned fail_times;
    bool not_ready, ignore_cancel;
    struct gb_list held; /* ops */
    size_t held_count, held_max;
    struct fake_sent *sent;
    size_t count;
    unsigned cancels;
    void (*observe)(void *arg, const struct gb_send *q); /* may be NULL */
    void *observe_arg;
};

void fake_sender_init(struct fake_sender *f, struct gb_reactor *r);
void fake_sender_deinit(struct fake_sender *f);
/* Answers the oldest held send; GB_OK means accepted. */
void fake_sender_answer(struct fake_sender *f, enum gb_code code);
size_t fake_sender_accepted(const struct fake_sender *f, const char *id); /* NULL: all */

#endif
