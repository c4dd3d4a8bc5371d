#ifndef GB_DOMAIN_ENVELOPE_JSON_H
#define GB_DOMAIN_ENVELOPE_JSON_H

#include "base/str.h"
#include "domain/envelope.h"

/* The envelope snapshot of outbox rows and DLQ entries (spec 05 §2.1, `envelope_json`), and header lists.
 * Layout: {"id","subject","payload":text | "payload_b64":base64,"created_at":ms,"expires_at":ms,
 * "headers":{"name":"text" | {"int":n} | {"decimal":"1.50"} | {"bool":b} | {"time":ms} | {"bytes":base64}}};
 * empty and zero members are left out; payload as text only when it is well-formed UTF-8 without U+0000.
 * The header kind survives (spec 02 §1.1).
 * Owns:   decode gives the caller one reference.
 * Thread: any (a worker may encode an envelope that the loop keeps alive).
 * Errors: decode: GB_INVALID_OUTBOX_RECORD with line and column; unknown members are refused. */
void gb_envelope_encode(struct gb_str *out, const struct gb_envelope *e);
struct gb_err gb_envelope_decode(struct gb_bytes json, struct gb_envelope **out);

/* `headers_json` of dispatch headers: {"name": value ...}; the same value forms. */
void gb_headers_encode(struct gb_str *out, const struct gb_header *headers, size_t count);
/* Puts the decoded headers onto `e`. */
struct gb_err gb_headers_decode_into(struct gb_bytes json, struct gb_envelope *e);

#endif
