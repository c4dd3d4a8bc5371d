#include "adapters/dynamodb/dynamodb_error.h"

#include <strings.h>

static const struct kind {
    const char *name;
    enum gb_code code;
} kinds[] = {
    [GB_DYNAMODB_NO_ERROR] = {"none", GB_OK},
    [GB_DYNAMODB_CONDITION_FAILED] = {"condition_failed", GB_VERSION_MISMATCH},
    [GB_DYNAMODB_CANCELLED] = {"transaction_cancelled", GB_VERSION_MISMATCH},
    [GB_DYNAMODB_CONFLICT] = {"transaction_conflict", GB_UNAVAILABLE},
    [GB_DYNAMODB_IN_PROGRESS] = {"transaction_in_progress", GB_UNAVAILABLE},
    [GB_DYNAMODB_OTHER_PARAMETERS] = {"idempotent_parameter_mismatch", GB_INTERNAL},
    [GB_DYNAMODB_THROTTLED] = {"throttled", GB_THROTTLED},
    [GB_DYNAMODB_THROUGHPUT_EXCEEDED] = {"throughput_exceeded", GB_THROTTLED},
    [GB_DYNAMODB_REQUEST_LIMIT] = {"request_limit", GB_THROTTLED},
    [GB_DYNAMODB_COLLECTION_TOO_LARGE] = {"item_collection_too_large", GB_INVALID_CONFIG},
    [GB_DYNAMODB_NO_TABLE] = {"no_table", GB_NOT_FOUND},
    [GB_DYNAMODB_TABLE_IN_USE] = {"table_in_use", GB_ALREADY_EXISTS},
    [GB_DYNAMODB_SERVER_FAULT] = {"server_fault", GB_UNAVAILABLE},
    [GB_DYNAMODB_INVALID] = {"invalid", GB_INVALID_PAYLOAD},
    [GB_DYNAMODB_ITEM_TOO_LARGE] = {"item_too_large", GB_PAYLOAD_TOO_LARGE},
    [GB_DYNAMODB_NOT_AUTHORIZED] = {"not_authorized", GB_NOT_AUTHORIZED},
    [GB_DYNAMODB_TOKEN_EXPIRED] = {"token_expired", GB_TEMPORARY_AUTH_FAILURE},
    [GB_DYNAMODB_UNKNOWN] = {"unknown", GB_UNAVAILABLE},
};

struct row {
    const char *code;
    enum gb_dynamodb_error error;
};
static const struct row rows[] = {
    {"ConditionalCheckFailedException", GB_DYNAMODB_CONDITION_FAILED},
    {"TransactionCanceledException", GB_DYNAMODB_CANCELLED},
    {"TransactionConflictException", GB_DYNAMODB_CONFLICT},
    {"TransactionInProgressException", GB_DYNAMODB_IN_PROGRESS},
    {"IdempotentParameterMismatchException", GB_DYNAMODB_OTHER_PARAMETERS},
    {"ProvisionedThroughputExceededException", GB_DYNAMODB_THROUGHPUT_EXCEEDED},
    {"RequestLimitExceeded", GB_DYNAMODB_REQUEST_LIMIT},
    {"LimitExceededException", GB_DYNAMODB_THROTTLED}, /* too many tables are being made */
    {"ItemCollectionSizeLimitExceededException", GB_DYNAMODB_COLLECTION_TOO_LARGE},
    {"ResourceNotFoundException", GB_DYNAMODB_NO_TABLE},
    {"ResourceInUseException", GB_DYNAMODB_TABLE_IN_USE},
    {"InternalServerError", GB_DYNAMODB_SERVER_FAULT},
    {"InternalFailure", GB_DYNAMODB_SERVER_FAULT},
    {"ServiceUnavailable", GB_DYNAMODB_SERVER_FAULT},
    {"ServiceUnavailableException", GB_DYNAMODB_SERVER_FAULT},
};
/* Codes of a cancelled transaction's reasons. */
static const struct row reason_rows[] = {
    {"None", GB_DYNAMODB_NO_ERROR},
    {"ConditionalCheckFailed", GB_DYNAMODB_CONDITION_FAILED},
    {"TransactionConflict", GB_DYNAMODB_CONFLICT},
    {"ThrottlingError", GB_DYNAMODB_THROTTLED},
    {"ProvisionedThroughputExceeded", GB_DYNAMODB_THROUGHPUT_EXCEEDED},
    {"ItemCollectionSizeLimitExceeded", GB_DYNAMODB_COLLECTION_TOO_LARGE},
    {"ValidationError", GB_DYNAMODB_INVALID},
    {"AccessDenied", GB_DYNAMODB_NOT_AUTHORIZED},
    {"ResourceNotFound", GB_DYNAMODB_NO_TABLE},
};
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum gb_code gb_dynamodb_error_code(enum gb_dynamodb_error error)
{
    return kinds[error].code;
}

const char *gb_dynamodb_error_name(enum gb_dynamodb_error error)
{
    return kinds[error].name;
}

/* What the common rows of spec 04 A6 say. */
static enum gb_dynamodb_error of_code(enum gb_code code)
{
    if (code == GB_THROTTLED) return GB_DYNAMODB_THROTTLED;
    if (code == GB_TEMPORARY_AUTH_FAILURE) return GB_DYNAMODB_TOKEN_EXPIRED;
    if (code == GB_NOT_AUTHORIZED) return GB_DYNAMODB_NOT_AUTHORIZED;
    if (code == GB_PAYLOAD_TOO_LARGE) return GB_DYNAMODB_ITEM_TOO_LARGE;
    return code == GB_INVALID_PAYLOAD ? GB_DYNAMODB_INVALID : GB_DYNAMODB_UNKNOWN;
}

enum gb_dynamodb_error gb_dynamodb_error_of(const struct gb_aws_error *e)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (gb_aws_error_is(e, rows[i].code)) return rows[i].error;
    }
    enum gb_dynamodb_error error = of_code(gb_aws_classify_default(e).code);
    return error == GB_DYNAMODB_UNKNOWN && e->status >= 500 ? GB_DYNAMODB_SERVER_FAULT : error;
}

static bool names_item_size(struct gb_bytes message)
{
    static const char text[] = "item size";
    for (size_t i = 0; i + sizeof text - 1 <= message.size; i++) {
        if (strncasecmp((const char *)message.data + i, text, sizeof text - 1) == 0) return true;
    }
    return false;
}

enum gb_dynamodb_error gb_dynamodb_reason_of(struct gb_bytes code, struct gb_bytes message)
{
    for (size_t i = 0; i < COUNT(reason_rows); i++) {
        if (!gb_bytes_equal_nocase(code, gb_bytes_c(reason_rows[i].code))) continue;
        enum gb_dynamodb_error error = reason_rows[i].error;
        bool too_large = error == GB_DYNAMODB_INVALID && names_item_size(message);
        return too_large ? GB_DYNAMODB_ITEM_TOO_LARGE : error;
    }
    return GB_DYNAMODB_UNKNOWN;
}

struct gb_err gb_dynamodb_classify(const struct gb_aws_error *e)
{
    enum gb_dynamodb_error error = gb_dynamodb_error_of(e);
    struct gb_err err = gb_aws_classify_default(e); /* has the advice for operators */
    enum gb_code code = gb_dynamodb_error_code(error);
    return err.code == code ? err : gb_err(code, "%s: %s", gb_aws_error_code(e), e->message);
}

bool gb_dynamodb_is_retryable(const struct gb_aws_error *e)
{
    enum gb_dynamodb_error error = gb_dynamodb_error_of(e);
    return error == GB_DYNAMODB_CONFLICT || error == GB_DYNAMODB_IN_PROGRESS;
}
