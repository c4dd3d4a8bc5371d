#include "adapters/dynamodb/dynamodb_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Spec 04 A6 and what DynamoDB adds. */
static void codes(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum gb_dynamodb_error error;
        enum gb_code code;
        bool retryable;
    } rows[] = {
        {400, "ConditionalCheckFailedException", GB_DYNAMODB_CONDITION_FAILED, GB_VERSION_MISMATCH,
         false},
        {400, "TransactionCanceledException", GB_DYNAMODB_CANCELLED, GB_VERSION_MISMATCH, false},
        {400, "TransactionConflictException", GB_DYNAMODB_CONFLICT, GB_UNAVAILABLE, true},
        {400, "TransactionInProgressException", GB_DYNAMODB_IN_PROGRESS, GB_UNAVAILABLE, true},
        {400, "IdempotentParameterMismatchException", GB_DYNAMODB_OTHER_PARAMETERS, GB_INTERNAL,
         false},
        {400, "ProvisionedThroughputExceededException", GB_DYNAMODB_THROUGHPUT_EXCEEDED,
         GB_THROTTLED, false},
        {400, "ThrottlingException", GB_DYNAMODB_THROTTLED, GB_THROTTLED, false},
        {400, "RequestLimitExceeded", GB_DYNAMODB_REQUEST_LIMIT, GB_THROTTLED, false},
        {400, "LimitExceededException", GB_DYNAMODB_THROTTLED, GB_THROTTLED, false},
        {400, "ItemCollectionSizeLimitExceededException", GB_DYNAMODB_COLLECTION_TOO_LARGE,
         GB_INVALID_CONFIG, false},
        {400, "ResourceNotFoundException", GB_DYNAMODB_NO_TABLE, GB_NOT_FOUND, false},
        {400, "ResourceInUseException", GB_DYNAMODB_TABLE_IN_USE, GB_ALREADY_EXISTS, false},
        {500, "InternalServerError", GB_DYNAMODB_SERVER_FAULT, GB_UNAVAILABLE, false},
        {503, "ServiceUnavailable", GB_DYNAMODB_SERVER_FAULT, GB_UNAVAILABLE, false},
        {502, "", GB_DYNAMODB_SERVER_FAULT, GB_UNAVAILABLE, false},
        {429, "", GB_DYNAMODB_THROTTLED, GB_THROTTLED, false},
        {400, "ValidationException\",\"message\":\"One or more parameter values were invalid",
         GB_DYNAMODB_INVALID, GB_INVALID_PAYLOAD, false},
        {400, "ValidationException\",\"message\":\"Item size has exceeded the maximum allowed size",
         GB_DYNAMODB_ITEM_TOO_LARGE, GB_PAYLOAD_TOO_LARGE, false},
        {400, "AccessDeniedException", GB_DYNAMODB_NOT_AUTHORIZED, GB_NOT_AUTHORIZED, false},
        {400, "UnrecognizedClientException", GB_DYNAMODB_NOT_AUTHORIZED, GB_NOT_AUTHORIZED, false},
        {400, "ExpiredTokenException", GB_DYNAMODB_TOKEN_EXPIRED, GB_TEMPORARY_AUTH_FAILURE, false},
        {400, "SomethingNew", GB_DYNAMODB_UNKNOWN, GB_UNAVAILABLE, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[300];
        struct gb_aws_error e;
        (void)snprintf(body, sizeof body,
                       "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"x\":{\"y\":[1]}}",
                       rows[i].body);
        gb_aws_error_parse(rows[i].status, gb_bytes_c(rows[i].body[0] == '\0' ? "" : body),
                           gb_bytes_c(""), gb_bytes_c(""), &e);
        enum gb_dynamodb_error error = gb_dynamodb_error_of(&e);
        struct gb_err err = gb_dynamodb_classify(&e);
        if (error != rows[i].error || err.code != rows[i].code)
            fail_msg("%d %s: %s", rows[i].status, rows[i].body, gb_dynamodb_error_name(error));
        assert_int_equal(gb_dynamodb_error_code(error), rows[i].code);
        assert_int_equal(gb_dynamodb_is_retryable(&e), rows[i].retryable);
    }
}

static void reasons(void **state)
{
    static const struct {
        const char *code, *message;
        enum gb_dynamodb_error error;
    } rows[] = {
        {"None", "", GB_DYNAMODB_NO_ERROR},
        {"ConditionalCheckFailed", "", GB_DYNAMODB_CONDITION_FAILED},
        {"TransactionConflict", "", GB_DYNAMODB_CONFLICT},
        {"ThrottlingError", "", GB_DYNAMODB_THROTTLED},
        {"ProvisionedThroughputExceeded", "", GB_DYNAMODB_THROUGHPUT_EXCEEDED},
        {"ItemCollectionSizeLimitExceeded", "", GB_DYNAMODB_COLLECTION_TOO_LARGE},
        {"ValidationError", "The update expression is wrong", GB_DYNAMODB_INVALID},
        {"ValidationError", "Item size to update has exceeded", GB_DYNAMODB_ITEM_TOO_LARGE},
        {"AccessDenied", "", GB_DYNAMODB_NOT_AUTHORIZED},
        {"", "", GB_DYNAMODB_UNKNOWN},
        {"New", "item size", GB_DYNAMODB_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            gb_dynamodb_reason_of(gb_bytes_c(rows[i].code), gb_bytes_c(rows[i].message)),
            rows[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
