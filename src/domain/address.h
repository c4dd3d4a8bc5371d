#ifndef GB_DOMAIN_ADDRESS_H
#define GB_DOMAIN_ADDRESS_H

#include "base/str.h"
#include "domain/envelope.h"

/* Address templates of bindings (spec 02 §8.3): `{name}` is the text header of exactly that name,
 * one pass: inserted text is never expanded.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: check: GB_INVALID_CONFIG (unbalanced or empty braces); expand: GB_ADDRESS_TEMPLATE
 *         (missing, empty or non-text header, empty result), GB_UNAVAILABLE (out of memory). */
struct gb_err gb_address_check(struct gb_bytes address);
bool gb_address_has_placeholders(struct gb_bytes address);
/* Appends to `out`, on failure perhaps a part. */
struct gb_err gb_address_expand(struct gb_bytes address, const struct gb_envelope *e,
                                struct gb_str *out);

#endif
