#ifndef GB_ADAPTERS_AWS_AWS_STS_H
#define GB_ADAPTERS_AWS_AWS_STS_H

#include "adapters/aws/aws_provider.h"

/* The two STS calls of the credential chain (spec 04 A1, A4), made ready in f->http.
 * Owns:   the texts are kept in the fetch.
 * Thread: loop thread only.
 * Errors: GB_INVALID_CONFIG (no region, bad endpoint), GB_UNAVAILABLE (out of memory). */

/* AssumeRole, signed with f->set. */
struct gb_err gb_aws_sts_assume_role(struct gb_aws_fetch *f, const struct gb_aws_role *role);
/* AssumeRoleWithWebIdentity, unsigned. */
struct gb_err gb_aws_sts_web_identity(struct gb_aws_fetch *f, const struct gb_aws_role *role,
                                      struct gb_bytes token);
/* Replaces f->set by what STS answered. */
struct gb_err gb_aws_sts_take(struct gb_aws_fetch *f);

#endif
