#ifndef GB_TESTS_SUPPORT_FAKE_OUTBOX_H
#define GB_TESTS_SUPPORT_FAKE_OUTBOX_H

#include "ports/outbox.h"
#include "support/fake_script.h"

/* A small outbox store by script, with the state machine, identity, ordering and fencing rules of
 * spec 05 §2 over a plain array, so that the core's tests need no adapter. Each operation kind has
 * its own script.
 * Owns:   its rows.
 * Thread: loop thread only.
 * Errors: those of ports/outbox.h and what the scripts say. */

enum { FAKE_ROWS_MAX = 2048 };
enum fake_outbox_kind {
    FAKE_PERSIST = 0,
    FAKE_CLAIM,
    FAKE_COMPLETE,
    FAKE_RELEASE,
    FAKE_EXPIRE,
    FAKE_DEPTH,
    FAKE_STATS,
    FAKE_OUTBOX_KINDS,
};
struct fake_row {
    char id[64], partition[64], route[32], binding[32], session[32], address[64], key[32];
    struct gb_envelope *envelope;
    enum gb_outbox_status status;
    int64_t created_at_ms, expires_at_ms, first_attempted_at_ms;
    uint64_t version;
    uint32_t replay_count;
};
struct fake_outbox {
    struct gb_outbox outbox;
    struct gb_reactor *reactor;
    struct fake_script script[FAKE_OUTBOX_KINDS];
    unsigned calls[FAKE_OUTBOX_KINDS];
    unsigned cancels;
    struct gb_list held; /* ops */
    struct fake_row *rows;
    size_t count;
    uint64_t mark;        /* one partition's worth is enough here */
    uint64_t force_depth; /* > 0: what depth answers */
    uint32_t last_limit;  /* of the last claim */
};

void fake_outbox_init(struct fake_outbox *f, struct gb_reactor *r);
void fake_outbox_deinit(struct fake_outbox *f);
/* Answers the oldest held operation without doing it. */
void fake_outbox_answer(struct fake_outbox *f, enum gb_code code);
size_t fake_outbox_rows(const struct fake_outbox *f, enum gb_outbox_status status);
/* A pending record of route "r", binding "b", session "s"; key NULL = keyless. */
struct fake_row *fake_outbox_add(struct fake_outbox *f, const char *envelope_id, const char *key);

#endif
