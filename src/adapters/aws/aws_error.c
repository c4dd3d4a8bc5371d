#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "adapters/aws/aws_client.h"
#include "base/json_read.h"

/* Copies printable ASCII and well-formed text only, cut at the size: codes and messages go to
 * logs. */
static void copy_text(char *out, size_t size, struct gb_bytes text)
{
    size_t n = text.size < size - 1 ? text.size : size - 1;
    size_t at = 0;
    for (; at < n; at++) {
        uint8_t c = text.data[at];
        if (c == '\n' || c == '\r') break; /* signature errors go on with the signed headers */
        out[at] = c < 0x20 || c > 0x7E ? '?' : (char)c;
    }
    out[at] = '\0';
}

/* "com.amazonaws.sqs#QueueDoesNotExist:http://..." -> "QueueDoesNotExist" (spec 04 A1). */
static void copy_code(char *out, size_t size, struct gb_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '#') {
            text = gb_bytes(text.data + i + 1, text.size - i - 1);
            i = (size_t)-1;
        }
    }
    const uint8_t *colon = text.size == 0 ? NULL : memchr(text.data, ':', text.size);
    if (colon != NULL) text.size = (size_t)(colon - text.data);
    copy_text(out, size, text);
}

static void take_member(struct gb_json_reader *r, struct gb_str *scratch, struct gb_aws_error *out)
{
    bool is_code = gb_json_text_is(r, "__type");
    bool is_message = gb_json_text_is(r, "message") || gb_json_text_is(r, "Message");
    if (gb_json_next(r) != GB_JSON_STRING) {
        (void)gb_json_skip(r);
        return;
    }
    gb_str_clear(scratch);
    if ((!is_code && !is_message) || !gb_json_string(r, scratch, NULL)) return;
    if (is_code) copy_code(out->code, sizeof out->code, gb_str_bytes(scratch));
    if (is_message) copy_text(out->message, sizeof out->message, gb_str_bytes(scratch));
}

static void parse_body(struct gb_bytes body, struct gb_aws_error *out)
{
    struct gb_json_reader r;
    struct gb_str scratch = {.size_max = 4096};
    gb_json_init(&r, body);
    if (gb_json_next(&r) == GB_JSON_OBJECT_BEGIN) {
        while (gb_json_next(&r) == GB_JSON_KEY) take_member(&r, &scratch, out);
    }
    gb_str_deinit(&scratch);
}

void gb_aws_error_parse(int status, struct gb_bytes body, struct gb_bytes errortype_header,
                        struct gb_bytes query_error_header, struct gb_aws_error *out)
{
    *out = (struct gb_aws_error){.status = status};
    parse_body(body, out);
    if (out->code[0] == '\0') copy_code(out->code, sizeof out->code, errortype_header);
    struct gb_bytes legacy = query_error_header;
    const uint8_t *semicolon = legacy.size == 0 ? NULL : memchr(legacy.data, ';', legacy.size);
    if (semicolon != NULL) {
        legacy.size = (size_t)(semicolon - legacy.data);
        struct gb_bytes fault = gb_bytes(semicolon + 1, query_error_header.size - legacy.size - 1);
        out->sender_fault = gb_bytes_equal_nocase(fault, gb_bytes_c("Sender"));
    }
    copy_text(out->legacy_code, sizeof out->legacy_code, legacy);
    if (out->code[0] == '\0' && out->legacy_code[0] == '\0' && status != 0)
        (void)snprintf(out->code, sizeof out->code, "HTTP %d", status);
    /* The service may repeat what was signed, which includes the session token (spec 04 D8). */
    if (gb_aws_error_is_skew(out) || gb_aws_error_is(out, "IncompleteSignature"))
        copy_text(out->message, sizeof out->message, gb_bytes_c("the signature was refused"));
}

bool gb_aws_error_is(const struct gb_aws_error *e, const char *code)
{
    return strcasecmp(e->code, code) == 0 || strcasecmp(e->legacy_code, code) == 0;
}

const char *gb_aws_error_code(const struct gb_aws_error *e)
{
    return e->code[0] != '\0' ? e->code : e->legacy_code;
}

static bool is_any(const struct gb_aws_error *e, const char *const *codes)
{
    for (; *codes != NULL; codes++) {
        if (gb_aws_error_is(e, *codes)) return true;
    }
    return false;
}

static bool contains(const struct gb_aws_error *e, const char *part)
{
    return strcasestr(e->code, part) != NULL || strcasestr(e->legacy_code, part) != NULL;
}

bool gb_aws_error_is_throttle(const struct gb_aws_error *e)
{
    static const char *const codes[] = {"ProvisionedThroughputExceededException",
                                        "ProvisionedThroughputExceeded",
                                        "RequestLimitExceeded",
                                        "RequestThrottled",
                                        "TooManyRequestsException",
                                        "SlowDown",
                                        NULL};
    return e->status == 429 || contains(e, "throttl") || is_any(e, codes) ||
           strcasestr(e->message, "rate exceeded") != NULL;
}

bool gb_aws_error_is_expired_token(const struct gb_aws_error *e)
{
    return gb_aws_error_is(e, "ExpiredToken") || gb_aws_error_is(e, "ExpiredTokenException");
}

bool gb_aws_error_is_skew(const struct gb_aws_error *e)
{
    static const char *const codes[] = {"RequestTimeTooSkewed", "RequestExpired",
                                        "InvalidSignatureException", "SignatureDoesNotMatch", NULL};
    return is_any(e, codes);
}

static bool is_auth(const struct gb_aws_error *e)
{
    static const char *const codes[] = {"UnrecognizedClientException",
                                        "InvalidClientTokenId",
                                        "MissingAuthenticationToken",
                                        "MissingAuthenticationTokenException",
                                        "IncompleteSignature",
                                        "IncompleteSignatureException",
                                        "OptInRequired",
                                        "NotAuthorized",
                                        NULL};
    return strncasecmp(e->code, "AccessDenied", 12) == 0 ||
           strncasecmp(e->legacy_code, "AccessDenied", 12) == 0 || gb_aws_error_is_skew(e) ||
           is_any(e, codes) || (e->status == 403 && strncmp(e->code, "HTTP ", 5) == 0);
}

struct gb_err gb_aws_classify_default(const struct gb_aws_error *e)
{
    const char *code = gb_aws_error_code(e);
    if (gb_aws_error_is_throttle(e)) return gb_err(GB_THROTTLED, "%s: %s", code, e->message);
    if (gb_aws_error_is_expired_token(e))
        return gb_err(GB_TEMPORARY_AUTH_FAILURE, "%s: %s", code, e->message);
    if (gb_aws_error_is(e, "ResourceNotFoundException") || gb_aws_error_is(e, "ParameterNotFound"))
        return gb_err(GB_NOT_FOUND, "%s: %s", code, e->message);
    if (is_auth(e)) {
        return gb_err(GB_NOT_AUTHORIZED, "%s: %s; check the credentials and the role's policy",
                      code, e->message);
    }
    if (gb_aws_error_is(e, "ValidationException")) {
        bool too_large = strcasestr(e->message, "item size") != NULL;
        return gb_err(too_large ? GB_PAYLOAD_TOO_LARGE : GB_INVALID_PAYLOAD, "%s: %s", code,
                      e->message);
    }
    return gb_err(GB_UNAVAILABLE, "%s: %s", code, e->message);
}
