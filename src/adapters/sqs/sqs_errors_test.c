#include "adapters/sqs/sqs_errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"

static void copy(char *out, size_t size, const char *text)
{
    assert_true(snprintf(out, size, "%s", text) < (int)size);
}

static void call_codes(void **state)
{
    static const struct {
        const char *code, *legacy, *message;
        int status;
        enum gb_code want;
        bool auth;
    } rows[] = {
        {"QueueDoesNotExist", "", "", 400, GB_NOT_FOUND, false},
        {"", "AWS.SimpleQueueService.NonExistentQueue", "", 400, GB_NOT_FOUND, false},
        {"queuedoesnotexist", "", "", 503, GB_NOT_FOUND, false}, /* top row wins */
        {"MessageNotInflight", "", "", 400, GB_UNAVAILABLE, false},
        {"KmsThrottled", "", "", 400, GB_THROTTLED, false},
        {"KmsAccessDenied", "", "", 400, GB_TEMPORARY_AUTH_FAILURE, false},
        {"KmsOptInRequired", "", "", 400, GB_NOT_AUTHORIZED, false},
        {"InvalidParameterCombination", "", "", 400, GB_INVALID_PAYLOAD, false},
        {"InvalidMessageContents", "", "", 400, GB_INVALID_PAYLOAD, false},
        {"BatchRequestTooLong", "", "", 400, GB_PAYLOAD_TOO_LARGE, false},
        {"HTTP 413", "", "", 413, GB_PAYLOAD_TOO_LARGE, false},
        {"OverLimit", "", "", 400, GB_THROTTLED, false},
        {"SomeThrottlingThing", "", "", 400, GB_THROTTLED, false},
        {"X", "", "Rate exceeded", 400, GB_THROTTLED, false},
        {"HTTP 429", "", "", 429, GB_THROTTLED, false},
        {"UnsupportedOperation", "", "", 400, GB_PROTOCOL_ERROR, false},
        {"HTTP 502", "", "", 502, GB_UNAVAILABLE, false},
        {"AccessDeniedException", "", "", 400, GB_NOT_AUTHORIZED, true},
        {"SignatureDoesNotMatch", "", "", 403, GB_NOT_AUTHORIZED, true},
        {"HTTP 403", "", "", 403, GB_NOT_AUTHORIZED, true},
        {"InvalidAddress", "", "", 404, GB_INVALID_CONFIG, false},
        {"ExpiredTokenException", "", "", 400, GB_TEMPORARY_AUTH_FAILURE, false},
        {"Whatever", "", "", 400, GB_UNAVAILABLE, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_aws_error e = {.status = rows[i].status};
        copy(e.code, sizeof e.code, rows[i].code);
        copy(e.legacy_code, sizeof e.legacy_code, rows[i].legacy);
        copy(e.message, sizeof e.message, rows[i].message);
        struct gb_err err = gb_sqs_classify(&e);
        if (err.code != rows[i].want)
            fail_msg("%s%s: %s", rows[i].code, rows[i].legacy, gb_code_name(err.code));
        assert_int_equal(gb_sqs_is_plain_auth(&e), rows[i].auth);
    }
}

static void check_04_05_entry_codes(void **state)
{
    static const struct {
        const char *code;
        bool fault;
        enum gb_code want;
    } rows[] = {{"KmsAccessDenied", true, GB_TEMPORARY_AUTH_FAILURE},
                {"KmsDisabled", false, GB_NOT_AUTHORIZED},
                {"KMS.DisabledException", true, GB_NOT_AUTHORIZED},
                {"RequestThrottled", true, GB_THROTTLED},
                {"InternalError", true, GB_UNAVAILABLE},
                {"InvalidParameterValue", true, GB_INVALID_PAYLOAD},
                {"AccessDenied", false, GB_UNAVAILABLE},
                {"", true, GB_INVALID_PAYLOAD}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_err err = gb_sqs_classify_entry(rows[i].code, rows[i].fault, "m");
        if (err.code != rows[i].want) fail_msg("%s: %s", rows[i].code, gb_code_name(err.code));
    }
    assert_true(gb_code_class(GB_TEMPORARY_AUTH_FAILURE) == GB_CLASS_TRANSIENT);
    assert_true(gb_code_class(GB_NOT_AUTHORIZED) == GB_CLASS_PERMANENT);
}

static void check_04_20_grace_window(void **state)
{
    struct gb_sqs_grace g = {0};
    const uint64_t start = 5;
    (void)state;
    assert_int_equal(gb_sqs_grace_failure(&g, start, "m").code, GB_TEMPORARY_AUTH_FAILURE);
    assert_int_equal(gb_sqs_grace_failure(&g, start + (uint64_t)(120 * GB_SEC), "m").code,
                     GB_TEMPORARY_AUTH_FAILURE);
    assert_int_equal(gb_sqs_grace_failure(&g, start + (uint64_t)(120 * GB_SEC) + 1, "m").code,
                     GB_NOT_AUTHORIZED);
    gb_sqs_grace_success(&g);
    assert_int_equal(gb_sqs_grace_failure(&g, start + (uint64_t)(500 * GB_SEC), "m").code,
                     GB_TEMPORARY_AUTH_FAILURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_codes),
        cmocka_unit_test(check_04_05_entry_codes),
        cmocka_unit_test(check_04_20_grace_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
