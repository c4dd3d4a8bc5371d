#ifndef GB_BLUEPRINT_NORMAL_H
#define GB_BLUEPRINT_NORMAL_H

#include "base/digest.h"
#include "blueprint/blueprint.h"

/* The normal form of a blueprint (spec 01 §9.1): equal text, same content. Canonical JSON: UTF-8,
 * keys in byte order, no white space, escapes only where JSON demands them, numbers as
 * gb_json_w_double writes them (decision 0130 says it key by key). It holds the secrets: it is
 * hashed or compared, never shown, and whoever made it wipes it.
 * Owns:   nothing; appends to the caller's buffer.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG: a number beyond the range of a double, which JSON can't say.
 *         GB_UNAVAILABLE: out of memory, or past the buffer's limit. */

struct gb_err gb_normal_document(const struct gb_blueprint *b, struct gb_str *out);

/* SHA-256 of normal forms, which are hashed as they come: a document may expand to tens of MiB. */
struct gb_err gb_normal_document_digest(const struct gb_blueprint *b, uint8_t out[GB_SHA256_SIZE]);
/* Of {<key>:<value>} for one key of the document, such as `bridge`; of {} when it is absent. */
struct gb_err gb_normal_section_digest(const struct gb_blueprint *b, const char *key,
                                       uint8_t out[GB_SHA256_SIZE]);
/* Of one entry of a section, by its index in the blueprint. */
struct gb_err gb_normal_entry_digest(const struct gb_blueprint *b, const char *section,
                                     size_t index, uint8_t out[GB_SHA256_SIZE]);

#endif
