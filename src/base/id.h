#ifndef GB_BASE_ID_H
#define GB_BASE_ID_H

#include "base/reactor.h"

/* Random identities from the reactor's generator (seeded from the kernel by io, from the seed in
 * the simulator).
 * Owns:   nothing.
 * Thread: loop thread only.
 * Errors: none. */
enum { GB_ID_HEX_SIZE = 33, GB_ID_UUID_SIZE = 37 };
void gb_id_hex(struct gb_reactor *r, char out[GB_ID_HEX_SIZE]);   /* 32 hex digits */
void gb_id_uuid(struct gb_reactor *r, char out[GB_ID_UUID_SIZE]); /* UUIDv4 text */

#endif
