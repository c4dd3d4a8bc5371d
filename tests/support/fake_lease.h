#ifndef GB_TESTS_SUPPORT_FAKE_LEASE_H
#define GB_TESTS_SUPPORT_FAKE_LEASE_H

#include "ports/lease.h"
#include "ports/session.h"
#include "support/fake_script.h"

/* One lease row by script: version and owner as spec 06 §6 has them, taken over when the test says
 * that its owner is dead. Each operation has its own script; a deadline that passes while an
 * operation is held ends it as GB_TIMEOUT.
 * Owns:   its row.
 * Thread: loop thread only.
 * Errors: those of ports/lease.h and what the scripts say. */

enum fake_lease_kind {
    FAKE_ACQUIRE = 0,
    FAKE_RENEW,
    FAKE_LEASE_RELEASE,
    FAKE_CURRENT,
    FAKE_LEASE_KINDS,
};
struct fake_lease {
    struct gb_lease lease;
    struct gb_reactor *reactor;
    struct fake_script script[FAKE_LEASE_KINDS];
    unsigned calls[FAKE_LEASE_KINDS];
    char owner[64]; /* "" = released */
    uint64_t version;
    int64_t expires_ms;
    struct gb_op *held; /* at most one */
    bool deaf;          /* a cancel comes too late */
    enum fake_lease_kind held_kind;
    struct gb_timer deadline;
};
void fake_lease_init(struct fake_lease *f, struct gb_reactor *reactor);
void fake_lease_deinit(struct fake_lease *f);
/* Lets the held operation end so; GB_OK: it is done first. */
void fake_lease_answer(struct fake_lease *f, enum gb_code code);
/* Somebody else has it now. */
void fake_lease_steal(struct fake_lease *f, const char *owner);

/* A session that connects when the test says so. */
struct fake_session {
    struct gb_session session;
    struct gb_reactor *reactor;
    struct gb_session_health health;
    unsigned starts, stops;
    bool running;
    bool hang;          /* stop stays pending */
    enum gb_code error; /* what stop ends with */
    struct gb_op *stopping;
    uint64_t stopped_ns;
};
void fake_session_init(struct fake_session *f, struct gb_reactor *reactor);
void fake_session_serve(struct fake_session *f, bool full);
/* A stop that hung returns after all. */
void fake_session_let_go(struct fake_session *f);

#endif
