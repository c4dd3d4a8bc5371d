#ifndef GB_ADAPTERS_SQS_SQS_ERRORS_H
#define GB_ADAPTERS_SQS_SQS_ERRORS_H

#include "adapters/aws/aws_client.h"

/* SQS codes as errors (spec 04 B10) and the grace for authorization (B11). Pure.
 * Owns:   nothing.
 * Thread: any; a grace belongs to one sender or receiver.
 * Errors: these functions make them. */

struct gb_err gb_sqs_classify(const struct gb_aws_error *e);
/* A plain authorization failure, which the grace applies to. */
bool gb_sqs_is_plain_auth(const struct gb_aws_error *e);
/* A batch that is to be halved. */
bool gb_sqs_is_batch_too_long(const struct gb_aws_error *e);
/* An entry of `Failed`. */
struct gb_err gb_sqs_classify_entry(const char *code, bool sender_fault, const char *message);

/* The first plain failure opens a window; only a success closes it. Zeroed memory is ready. */
struct gb_sqs_grace {
    bool open;
    uint64_t since_ns;
};
/* Inside the window (edge included) the failure is TEMPORARY_AUTH_FAILURE, later NOT_AUTHORIZED. */
struct gb_err gb_sqs_grace_failure(struct gb_sqs_grace *g, uint64_t now_ns, const char *message);
void gb_sqs_grace_success(struct gb_sqs_grace *g);

#endif
