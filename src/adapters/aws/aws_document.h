#ifndef GB_ADAPTERS_AWS_AWS_DOCUMENT_H
#define GB_ADAPTERS_AWS_AWS_DOCUMENT_H

#include "base/str.h"

/* Credential documents: JSON of the container endpoint and of instance metadata (spec 04 A4.6,
 * A4.7), XML of STS.
 * Owns:   a document owns its texts; gb_aws_document_deinit wipes them and accepts zeroed memory.
 * Thread: any. Pure.
 * Errors: GB_TEMPORARY_AUTH_FAILURE (malformed, a key is missing, `Code` other than Success, an STS
 *         error with its code); GB_UNAVAILABLE (out of memory). The document is untouched on
 *         failure; no text holds a secret. */
struct gb_aws_document {
    struct gb_str access_key_id, secret_access_key, token;
    int64_t expires_ms; /* 0 = none given */
};
struct gb_err gb_aws_document_parse(struct gb_bytes json, struct gb_aws_document *out);
/* The <Credentials> of an AssumeRole... answer, or the <Error> of an ErrorResponse. Strict:
 * elements must nest and close; no DTD, CDATA or processing instruction but the leading XML
 * declaration. */
struct gb_err gb_aws_sts_parse(struct gb_bytes xml, struct gb_aws_document *out);
void gb_aws_document_deinit(struct gb_aws_document *d);

#endif
