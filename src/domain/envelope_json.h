#ifndef GB_DOMAIN_ENVELOPE_JSON_H
#define GB_DOMAIN_ENVELOPE_JSON_H

#include "base/str.h"
#include "domain/envelope.h"

/* The envelope snapshot of outbox rows and DLQ entries (spec 05 §2.1, `envelope_json`), and header
 * lists. Layout: {"id","subject","payload":text | "payload_b64":base64,"created_at":ms,
 * "expires_at":ms,"headers":{"name":"text" | {"int":n} | {"decimal":"1.50"} | {"bool":b} |
 * {"time":ms} | {"bytes":base64} | {"text_b64":base64}}}; empty and zero members are left out;
 * payload as text only when it is well-formed UTF-8 without U+0000, a text header as base64 only
 * when it is not UTF-8. The header kind survives (spec 02 §1.1), and so does every byte of payload
 * and values; id, subject, names and decimals are UTF-8 (envelope.h), a bad byte in them becomes
 * U+FFFD.
 * Owns:   decode gives the caller one reference.
 * Thread: any (a worker may encode an envelope that the loop keeps alive).
 * Errors: encode: `out->failed`. Decode: GB_INVALID_OUTBOX_RECORD with line and column, also for
 *         unknown and repeated members; GB_UNAVAILABLE (out of memory). */
void gb_envelope_encode(struct gb_str *out, const struct gb_envelope *e);
struct gb_err gb_envelope_decode(struct gb_bytes json, struct gb_envelope **out);

/* `headers_json` of dispatch headers: {"name": value ...}; the same value forms. */
void gb_headers_encode(struct gb_str *out, const struct gb_header *headers, size_t count);
/* Puts the decoded headers onto `e`, replacing those of the same name; on failure some may have
 * been put. */
struct gb_err gb_headers_decode_into(struct gb_bytes json, struct gb_envelope *e);

#endif
