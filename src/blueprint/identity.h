#ifndef GB_BLUEPRINT_IDENTITY_H
#define GB_BLUEPRINT_IDENTITY_H

#include "base/digest.h"
#include "blueprint/blueprint.h"

/* What a blueprint is, in 64 characters. Both are lower-case hex SHA-256, terminated.
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG when the document has no normal form (normal.h), GB_UNAVAILABLE when
 *         out of memory; `out` is untouched then. A caller that compares digests takes a failure
 *         for a change (spec 01 §9.1). */

/* Of all content (spec 01 §9.1). */
struct gb_err gb_blueprint_digest(const struct gb_blueprint *b, char out[GB_SHA256_HEX]);
/* Of what the deployment owns (spec 07 §9, decision 0131). */
struct gb_err gb_blueprint_fingerprint(const struct gb_blueprint *b, char out[GB_SHA256_HEX]);
/* What the fingerprint is the digest of, one key a line. */
struct gb_err gb_blueprint_fingerprint_text(const struct gb_blueprint *b, struct gb_str *out);
/* What the rows of a store belong to: its table or path, NULL for `memory` and for no store. */
const char *gb_blueprint_store_target(const struct gb_bp_store *store);
/* "dynamodb" ...; only for a configured store. */
const char *gb_blueprint_store_type(const struct gb_bp_store *store);

#endif
