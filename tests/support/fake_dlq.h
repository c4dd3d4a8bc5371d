#ifndef GB_TESTS_SUPPORT_FAKE_DLQ_H
#define GB_TESTS_SUPPORT_FAKE_DLQ_H

#include "ports/dlq.h"
#include "support/fake_script.h"

/* A dead-letter store by script: `write` only; it keeps copies, one for each id.
 * Owns:   the copies.
 * Thread: loop thread only.
 * Errors: GB_DUPLICATE_RECORD for a known id, and what the script says. */

struct fake_dlq {
    struct gb_dlq dlq;
    struct gb_reactor *reactor;
    struct fake_script script;
    struct gb_list held; /* ops */
    struct gb_dlq_entry *entries[256];
    size_t count;
    unsigned writes;
};

void fake_dlq_init(struct fake_dlq *f, struct gb_reactor *r);
void fake_dlq_deinit(struct fake_dlq *f);
/* Answers the oldest held write; GB_OK stores nothing, so tests of success let the script do it. */
void fake_dlq_answer(struct fake_dlq *f, enum gb_code code);

#endif
