#include "adapters/sqs/sqs_errors.h"

#include <string.h>
#include <strings.h>

#include "base/duration.h"

#define GRACE_NS ((uint64_t)(120 * GB_SEC)) /* spec 04 B11 */

/* The table of spec 04 B10, top row first. A code ending in '*' is a prefix. */
struct row {
    const char *code;
    enum gb_code result;
};
static const struct row specific[] = {
    {"QueueDoesNotExist", GB_NOT_FOUND},
    {"AWS.SimpleQueueService.NonExistentQueue", GB_NOT_FOUND},
    {"MessageNotInflight", GB_UNAVAILABLE},
    {"AWS.SimpleQueueService.MessageNotInflight", GB_UNAVAILABLE},
    {"ReceiptHandleIsInvalid", GB_UNAVAILABLE},
};
static const struct row kms[] = {
    {"KmsThrottled", GB_THROTTLED},
    {"KMS.ThrottlingException", GB_THROTTLED},
    {"KmsAccessDenied", GB_TEMPORARY_AUTH_FAILURE},
    {"KMS.AccessDeniedException", GB_TEMPORARY_AUTH_FAILURE},
    {"KmsDisabled", GB_NOT_AUTHORIZED},
    {"KMS.DisabledException", GB_NOT_AUTHORIZED},
    {"KmsInvalidState", GB_NOT_AUTHORIZED},
    {"KMS.InvalidStateException", GB_NOT_AUTHORIZED},
    {"KmsNotFound", GB_NOT_AUTHORIZED},
    {"KMS.NotFoundException", GB_NOT_AUTHORIZED},
    {"KmsOptInRequired", GB_NOT_AUTHORIZED},
    {"KMS.OptInRequired", GB_NOT_AUTHORIZED},
    {"KmsInvalidKeyUsage", GB_NOT_AUTHORIZED},
    {"KMS.InvalidKeyUsageException", GB_NOT_AUTHORIZED},
};
static const struct row request[] = {
    {"BatchEntryIdsNotDistinct", GB_INVALID_PAYLOAD},
    {"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", GB_INVALID_PAYLOAD},
    {"EmptyBatchRequest", GB_INVALID_PAYLOAD},
    {"AWS.SimpleQueueService.EmptyBatchRequest", GB_INVALID_PAYLOAD},
    {"TooManyEntriesInBatchRequest", GB_INVALID_PAYLOAD},
    {"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", GB_INVALID_PAYLOAD},
    {"InvalidMessageContents", GB_INVALID_PAYLOAD},
    {"InvalidParameter*", GB_INVALID_PAYLOAD},
    {"MissingParameter", GB_INVALID_PAYLOAD},
    {"ValidationError", GB_INVALID_PAYLOAD},
    {"MalformedQueryString", GB_INVALID_PAYLOAD},
    {"BatchRequestTooLong", GB_PAYLOAD_TOO_LARGE},
    {"AWS.SimpleQueueService.BatchRequestTooLong", GB_PAYLOAD_TOO_LARGE},
};
static const struct row throttle[] = {
    {"OverLimit", GB_THROTTLED},
    {"RequestThrottled", GB_THROTTLED},
    {"RequestLimitExceeded", GB_THROTTLED},
};
static const struct row service[] = {
    {"ServiceUnavailable", GB_UNAVAILABLE},
    {"InternalError", GB_UNAVAILABLE},
    {"InternalFailure", GB_UNAVAILABLE},
};
static const struct row auth[] = {
    {"AccessDenied*", GB_NOT_AUTHORIZED},
    {"UnauthorizedAccess", GB_NOT_AUTHORIZED},
    {"InvalidClientTokenId", GB_NOT_AUTHORIZED},
    {"UnrecognizedClientException", GB_NOT_AUTHORIZED},
    {"InvalidSecurity", GB_NOT_AUTHORIZED},
    {"RequestTimeTooSkewed", GB_NOT_AUTHORIZED},
    {"RequestExpired", GB_NOT_AUTHORIZED},
    {"InvalidSignatureException", GB_NOT_AUTHORIZED},
    {"SignatureDoesNotMatch", GB_NOT_AUTHORIZED},
    {"IncompleteSignature", GB_NOT_AUTHORIZED},
    {"MissingAuthenticationToken", GB_NOT_AUTHORIZED},
};
#define ROWS(table) (table), sizeof(table) / sizeof(table)[0]

static bool matches(const char *pattern, const char *code)
{
    size_t size = strlen(pattern);
    if (pattern[size - 1] == '*') return strncasecmp(pattern, code, size - 1) == 0;
    return strcasecmp(pattern, code) == 0;
}

static const struct row *find(const struct row *rows, size_t count, const struct gb_aws_error *e)
{
    for (size_t i = 0; i < count; i++) {
        if (matches(rows[i].code, e->code) || matches(rows[i].code, e->legacy_code))
            return &rows[i];
    }
    return NULL;
}

static bool contains(const struct gb_aws_error *e, const char *part)
{
    return strcasestr(e->code, part) != NULL || strcasestr(e->legacy_code, part) != NULL ||
           strcasestr(e->message, part) != NULL;
}

static bool is_throttle(const struct gb_aws_error *e)
{
    return e->status == 429 || find(ROWS(throttle), e) != NULL || contains(e, "throttl") ||
           contains(e, "rate exceeded");
}

static bool has_bare_status(const struct gb_aws_error *e, int status)
{
    return e->status == status && strncmp(e->code, "HTTP ", 5) == 0;
}

/* GB_OK: none of the rows above plain authorization. */
static enum gb_code code_of(const struct gb_aws_error *e)
{
    const struct row *row = find(ROWS(specific), e);
    if (row == NULL) row = find(ROWS(kms), e);
    if (row == NULL) row = find(ROWS(request), e);
    if (row != NULL) return row->result;
    if (e->status == 413) return GB_PAYLOAD_TOO_LARGE;
    if (is_throttle(e)) return GB_THROTTLED;
    if (gb_aws_error_is(e, "UnsupportedOperation") ||
        gb_aws_error_is(e, "AWS.SimpleQueueService.UnsupportedOperation"))
        return GB_PROTOCOL_ERROR;
    if (find(ROWS(service), e) != NULL || e->status >= 500) return GB_UNAVAILABLE;
    if (gb_aws_error_is_expired_token(e)) return GB_TEMPORARY_AUTH_FAILURE;
    return GB_OK;
}

bool gb_sqs_is_plain_auth(const struct gb_aws_error *e)
{
    return code_of(e) == GB_OK && (find(ROWS(auth), e) != NULL || has_bare_status(e, 403));
}

bool gb_sqs_is_batch_too_long(const struct gb_aws_error *e)
{
    return code_of(e) == GB_PAYLOAD_TOO_LARGE;
}

struct gb_err gb_sqs_classify(const struct gb_aws_error *e)
{
    const char *shown = gb_aws_error_code(e);
    enum gb_code code = code_of(e);
    if (code == GB_OK && gb_sqs_is_plain_auth(e)) code = GB_NOT_AUTHORIZED;
    if (code == GB_OK && gb_aws_error_is(e, "InvalidAddress")) code = GB_INVALID_CONFIG;
    if (code == GB_OK) code = GB_UNAVAILABLE;
    return gb_err(code, "%s: %s", shown, e->message);
}

static void copy(char *out, size_t size, const char *text)
{
    size_t n = strnlen(text, size - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

struct gb_err gb_sqs_classify_entry(const char *code, bool sender_fault, const char *message)
{
    struct gb_aws_error e = {0};
    copy(e.code, sizeof e.code, code);
    copy(e.message, sizeof e.message, message);
    const struct row *row = find(ROWS(kms), &e);
    if (row != NULL) return gb_err(row->result, "%s: %s", code, message);
    if (is_throttle(&e)) return gb_err(GB_THROTTLED, "%s: %s", code, message);
    bool outage = find(ROWS(service), &e) != NULL;
    return gb_err(outage || !sender_fault ? GB_UNAVAILABLE : GB_INVALID_PAYLOAD, "%s: %s", code,
                  message);
}

struct gb_err gb_sqs_grace_failure(struct gb_sqs_grace *g, uint64_t now_ns, const char *message)
{
    if (!g->open) *g = (struct gb_sqs_grace){.open = true, .since_ns = now_ns};
    bool inside = now_ns - g->since_ns <= GRACE_NS;
    return gb_err(inside ? GB_TEMPORARY_AUTH_FAILURE : GB_NOT_AUTHORIZED, "%s", message);
}

void gb_sqs_grace_success(struct gb_sqs_grace *g)
{
    g->open = false;
}
