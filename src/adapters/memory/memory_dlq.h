#ifndef GB_ADAPTERS_MEMORY_DLQ_H
#define GB_ADAPTERS_MEMORY_DLQ_H

#include "base/reactor.h"
#include "ports/dlq.h"

/* Dead letters in this process's memory (spec 05 §3, §7): volatile. Every call does its work at
 * once; only `done` is deferred, so a cancel never wins and a deadline is never missed.
 * Owns:   copies of the entries.
 * Thread: loop thread only.
 * Errors: gb_memory_dlq_new: GB_UNAVAILABLE. A write above `entries_max`: GB_UNAVAILABLE. */
struct gb_memory_dlq_cfg {
    size_t entries_max; /* 0 = 10000 */
};
struct gb_err gb_memory_dlq_new(struct gb_reactor *r, const struct gb_memory_dlq_cfg *cfg,
                                struct gb_dlq **out);

#endif
