#ifndef GB_ADAPTERS_MEMORY_OUTBOX_H
#define GB_ADAPTERS_MEMORY_OUTBOX_H

#include "base/reactor.h"
#include "ports/outbox.h"

/* Outbox in this process's memory (spec 05 §7): volatile, same identity, ordering, head-of-line and
 * fencing rules as the durable backends, reclaim by version only. Every call does its work at once;
 * only `done` is deferred, so a cancel never wins and a deadline is never missed.
 * Owns:   copies of the record's strings and one reference of its envelope until the record ends;
 *         of an ended record only the identity stays, for an hour or until `ended_max` newer ones
 *         exist.
 * Thread: loop thread only.
 * Errors: gb_memory_outbox_new: GB_UNAVAILABLE. persist above `records_max` pending and claimed
 *         records: GB_UNAVAILABLE, nothing stored. A record id that names another message:
 *         GB_INVALID_OUTBOX_RECORD. */
struct gb_memory_outbox_cfg {
    size_t records_max; /* pending and claimed; 0 = 100000 */
    size_t ended_max;   /* completed and expired identities; 0 = 100000 */
};
struct gb_err gb_memory_outbox_new(struct gb_reactor *r, const struct gb_memory_outbox_cfg *cfg,
                                   struct gb_outbox **out);

#endif
