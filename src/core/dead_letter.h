#ifndef GB_CORE_DEAD_LETTER_H
#define GB_CORE_DEAD_LETTER_H

#include "domain/dlq_entry.h"

/* Builds the DLQ entry of one terminal failure (spec 02 §10), with its derived id.
 * Owns:   the entry belongs to the caller.
 * Thread: loop thread. Pure.
 * Errors: GB_UNAVAILABLE (out of memory). */
struct gb_dead_letter {
    struct gb_envelope *envelope;
    const char *route_id;
    const char *binding_id; /* NULL or "" before dispatch */
    struct gb_bytes address;
    struct gb_bytes session_id;
    const char *source_id;
    const struct gb_err *cause;
    uint32_t attempts;
    int64_t now_ms;
};
struct gb_err gb_dead_letter_build(const struct gb_dead_letter *d, struct gb_dlq_entry **out);
/* The event word of spec 02 §4.2 for a classified failure: expired, rejected or permanent. */
const char *gb_dead_letter_word(const struct gb_err *cause);

#endif
