#ifndef GB_ADAPTERS_MEMORY_MEMORY_LEASE_H
#define GB_ADAPTERS_MEMORY_MEMORY_LEASE_H

#include "ports/lease.h"

/* Leases of one process (spec 06 §6): expiry by the reactor's clock, gone with the process.
 * Owns:   its rows; borrows the reactor.
 * Thread: loop thread only.
 * Errors: gb_memory_lease_new: GB_UNAVAILABLE. */
struct gb_err gb_memory_lease_new(struct gb_reactor *reactor, struct gb_lease **out);

#endif
