#ifndef GB_DOMAIN_TAKEOVER_H
#define GB_DOMAIN_TAKEOVER_H

#include "domain/lease_row.h"

/* When may a standby take a lease over (spec 06 §6.1, steps 3 to 10)? One of these for each lease
 * and process. No clock is compared with another host's: a row is taken once it was seen unchanged
 * for its own duration, and what one observer saw is kept in the row for the next.
 * Owns:   nothing but its values.
 * Thread: one at a time. Pure: instants are given, from one monotonic clock.
 * Errors: GB_INVALID_CONFIG: the evidence's generation can't rise any more. */

struct gb_takeover { /* zeroed: no baseline */
    bool known;
    char fingerprint[GB_SHA256_HEX]; /* of the row seen */
    int64_t elapsed_ns;              /* and its evidence */
    uint64_t generation;
    uint64_t at_ns; /* the instant after the answer that showed it */
};

enum gb_takeover_step {
    GB_TAKEOVER_WAIT = 0, /* it is held: ask again at the next poll */
    GB_TAKEOVER_OBSERVE,  /* write the evidence, then gb_takeover_observed */
    GB_TAKEOVER_SEIZE,    /* take it over now */
};
struct gb_takeover_verdict {
    enum gb_takeover_step step;
    bool then_seize;                 /* OBSERVE: once it is written, take over in the same call */
    char fingerprint[GB_SHA256_HEX]; /* OBSERVE: what to write */
    int64_t elapsed_ns;              /* also of WAIT and SEIZE: what is confirmed */
    uint64_t generation;
    int64_t required_ns; /* 0: released or own, nothing to observe */
};

/* `row` is valid, `owner` this process's token, `answered_ns` the instant after the answer that
 * brought the row: never one before the request. */
struct gb_err gb_takeover_judge(struct gb_takeover *t, const struct gb_lease_row *row,
                                struct gb_bytes owner, uint64_t answered_ns,
                                struct gb_takeover_verdict *out);
/* The evidence of `verdict` was written; `answered_ns` is the instant after that answer, so that
 * the call's own duration is not counted. */
void gb_takeover_observed(struct gb_takeover *t, const struct gb_takeover_verdict *verdict,
                          uint64_t answered_ns);
/* A read or write failed, or the row changed hands: what was seen since is not counted. */
void gb_takeover_forget(struct gb_takeover *t);

#endif
