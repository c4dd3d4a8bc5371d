#ifndef GB_CORE_LEDGER_H
#define GB_CORE_LEDGER_H

#include "base/bytes.h"
#include "base/err.h"
#include "domain/envelope.h"

/* The bridge's own replay ledger for sources without a receive counter (spec 02 §5.2): attempts per
 * identity, in memory, at most GB_LEDGER_MAX, the oldest evicted. Only failed deliveries enter it,
 * so the good path costs one lookup in an empty map.
 * Owns:   its keys.
 * Thread: loop thread only.
 * Errors: gb_ledger_charge: out of memory forgets the charge (counted by the caller's retry
 *         anyway). */
enum { GB_LEDGER_MAX = 100000 };
struct gb_ledger;
struct gb_err gb_ledger_new(size_t entries_max, struct gb_ledger **out); /* 0 = GB_LEDGER_MAX */
void gb_ledger_free(struct gb_ledger *l);
uint32_t gb_ledger_attempts(const struct gb_ledger *l, const struct gb_envelope *e);
void gb_ledger_charge(struct gb_ledger *l, const struct gb_envelope *e);
/* After a successful source ack. */
void gb_ledger_forget(struct gb_ledger *l, const struct gb_envelope *e);
size_t gb_ledger_size(const struct gb_ledger *l);
/* False: the identity is marked generated and there is no dedup or idempotency key (spec 02 §5.2
 *        "uncountable"). */
bool gb_ledger_countable(const struct gb_envelope *e);

#endif
