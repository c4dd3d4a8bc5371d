#ifndef GB_DOMAIN_CREDENTIAL_SET_H
#define GB_DOMAIN_CREDENTIAL_SET_H

#include "base/bytes.h"
#include "base/err.h"

/* What a credentials_uri leads to (spec 04 D1-D3): a password part, a TLS part, or both.
 * Owns:   its texts; gb_credential_set_deinit overwrites them first and accepts zeroed memory.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG (URI), GB_INVALID_PAYLOAD (content), GB_UNAVAILABLE (out of memory).
 *         No text holds a secret, and of a URI its scheme alone. */

enum gb_credential_scheme { GB_CREDENTIAL_FILE = 0, GB_CREDENTIAL_PMS };
const char *gb_credential_scheme_name(enum gb_credential_scheme scheme); /* "file" */
/* The path behind `scheme://`, without a leading slash: one or more segments, none of them empty,
 * "." or "..". A view into `uri`. */
struct gb_err gb_credential_uri_parse(const char *uri, enum gb_credential_scheme *scheme,
                                      struct gb_bytes *path);

struct gb_credential_set {
    char *username, *password; /* NULL: no password part; `password` may be NULL alone */
    char *cert_pem, *key_pem;
    char *ca_pem; /* all of the list, one after the other */
    bool insecure_skip_verify;
};
/* The JSON file of spec 04 D2. */
struct gb_err gb_credential_set_read_file(struct gb_bytes json, struct gb_credential_set *out);
/* The value of a parameter: JSON, or username:password (spec 04 D3). */
struct gb_err gb_credential_set_read_parameter(struct gb_bytes value,
                                               struct gb_credential_set *out);
void gb_credential_set_deinit(struct gb_credential_set *c);

#endif
