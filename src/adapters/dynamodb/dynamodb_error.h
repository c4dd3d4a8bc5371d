#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_ERROR_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_ERROR_H

#include "adapters/aws/aws_client.h"

/* What DynamoDB refuses a request with, typed, and the program's code for it (spec 04 A6, 05
 * §1.3).
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: these functions make them. */

enum gb_dynamodb_error {
    GB_DYNAMODB_NO_ERROR = 0,        /* in a cancelled transaction: this action was not to blame */
    GB_DYNAMODB_CONDITION_FAILED,    /* VERSION_MISMATCH: the store says what that means */
    GB_DYNAMODB_CANCELLED,           /* a transaction; the code is that of its reasons, see below */
    GB_DYNAMODB_CONFLICT,            /* UNAVAILABLE: a transaction is at work on the item */
    GB_DYNAMODB_IN_PROGRESS,         /* UNAVAILABLE: the transaction with this token still runs */
    GB_DYNAMODB_OTHER_PARAMETERS,    /* INTERNAL: the token was used for another transaction */
    GB_DYNAMODB_THROTTLED,           /* THROTTLED: Throttling*, and limits of the control plane */
    GB_DYNAMODB_THROUGHPUT_EXCEEDED, /* THROTTLED: of table, index or partition */
    GB_DYNAMODB_REQUEST_LIMIT,       /* THROTTLED: of the account */
    GB_DYNAMODB_COLLECTION_TOO_LARGE, /* INVALID_CONFIG: only a local index of a foreign table has
                                         such a limit */
    GB_DYNAMODB_NO_TABLE,             /* NOT_FOUND: table or index */
    GB_DYNAMODB_TABLE_IN_USE,         /* ALREADY_EXISTS: it exists, or is being made or changed */
    GB_DYNAMODB_SERVER_FAULT,         /* UNAVAILABLE: 5xx */
    GB_DYNAMODB_INVALID,              /* INVALID_PAYLOAD: ValidationException */
    GB_DYNAMODB_ITEM_TOO_LARGE,       /* PAYLOAD_TOO_LARGE */
    GB_DYNAMODB_NOT_AUTHORIZED,       /* NOT_AUTHORIZED */
    GB_DYNAMODB_TOKEN_EXPIRED,        /* TEMPORARY_AUTH_FAILURE */
    GB_DYNAMODB_UNKNOWN,              /* UNAVAILABLE: any other */
};

enum gb_dynamodb_error gb_dynamodb_error_of(const struct gb_aws_error *e);
/* The one of a CancellationReasons[].Code with its Message. */
enum gb_dynamodb_error gb_dynamodb_reason_of(struct gb_bytes code, struct gb_bytes message);
enum gb_code gb_dynamodb_error_code(enum gb_dynamodb_error error);
const char *gb_dynamodb_error_name(enum gb_dynamodb_error error); /* "condition_failed" */

/* For struct gb_aws_client_cfg. */
struct gb_err gb_dynamodb_classify(const struct gb_aws_error *e);
/* Besides outages and throttling: CONFLICT and IN_PROGRESS pass by themselves. */
bool gb_dynamodb_is_retryable(const struct gb_aws_error *e);

#endif
