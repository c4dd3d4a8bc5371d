#ifndef GB_BASE_ERR_H
#define GB_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* The one error type of the program (spec 02 §4.1): a plain value, nothing to free.
 * Owns:   nothing; copy it freely.
 * Thread: any.
 * Errors: this is the error. Results travel through out parameters, untouched on failure. */

enum gb_class {
    GB_CLASS_NONE = 0, /* only with GB_OK and GB_CANCELLED */
    GB_CLASS_TRANSIENT,
    GB_CLASS_PERMANENT,
    GB_CLASS_REJECTED,
    GB_CLASS_EXPIRED,
};

/* X(enum suffix = printed name, default class) */
#define GB_CODES(X)                                                                                \
    X(TIMEOUT, TRANSIENT)                                                                          \
    X(CONNECTION_LOST, TRANSIENT)                                                                  \
    X(UNAVAILABLE, TRANSIENT)                                                                      \
    X(THROTTLED, TRANSIENT)                                                                        \
    X(BROKER_BUSY, TRANSIENT)                                                                      \
    X(TEMPORARY_AUTH_FAILURE, TRANSIENT)                                                           \
    X(TENANT_QUOTA_EXCEEDED, TRANSIENT)                                                            \
    X(PROCESSOR_TIMEOUT, TRANSIENT)                                                                \
    X(NO_ROUTE_OWNER, TRANSIENT)                                                                   \
    X(NOT_AUTHORIZED, PERMANENT)                                                                   \
    X(FORBIDDEN, PERMANENT)                                                                        \
    X(NOT_FOUND, PERMANENT)                                                                        \
    X(PROTOCOL_ERROR, PERMANENT)                                                                   \
    X(QOS_NOT_SUPPORTED, PERMANENT)                                                                \
    X(NOT_SUPPORTED, PERMANENT)                                                                    \
    X(POISON_MESSAGE, PERMANENT)                                                                   \
    X(PROCESSOR_PANIC, PERMANENT)                                                                  \
    X(INTERNAL, PERMANENT)                                                                         \
    X(INVALID_CONFIG, PERMANENT)                                                                   \
    X(ADDRESS_TEMPLATE, PERMANENT)                                                                 \
    X(FORWARD_FAILED, PERMANENT)                                                                   \
    X(ROLLOUT_DIGEST_MISMATCH, PERMANENT)                                                          \
    X(SUBSCRIPTION_REMOVED, PERMANENT)                                                             \
    X(VERSION_MISMATCH, PERMANENT)                                                                 \
    X(ALREADY_EXISTS, PERMANENT)                                                                   \
    X(STALE_FENCING_TOKEN, PERMANENT)                                                              \
    X(DUPLICATE_RECORD, PERMANENT)                                                                 \
    X(INVALID_OUTBOX_RECORD, PERMANENT)                                                            \
    X(OUTBOX_NOT_CLAIMABLE, PERMANENT)                                                             \
    X(OUTBOX_NOT_IN_CLAIMED_STATE, PERMANENT)                                                      \
    X(OUTBOX_ALREADY_TERMINAL, PERMANENT)                                                          \
    X(INVALID_PAYLOAD, REJECTED)                                                                   \
    X(PAYLOAD_TOO_LARGE, REJECTED)                                                                 \
    X(INVALID_TOPIC, REJECTED)                                                                     \
    X(SCHEMA_VIOLATION, REJECTED)                                                                  \
    X(MESSAGE_FILTERED, REJECTED)                                                                  \
    X(NO_BINDING_MATCH, REJECTED)                                                                  \
    X(MESSAGE_EXPIRED, EXPIRED)

enum gb_code {
    GB_OK = 0,
    GB_CANCELLED, /* the caller cancelled; never reported as UNAVAILABLE */
#define GB_CODE_ENUM(name, class_suffix) GB_##name,
    GB_CODES(GB_CODE_ENUM)
#undef GB_CODE_ENUM
        GB_CODE_COUNT,
};

enum { GB_ERR_MESSAGE_MAX = 232 };

struct gb_err {
    enum gb_code code;
    enum gb_class class_;
    int64_t retry_after_ns;           /* > 0: the peer's own hint */
    char message[GB_ERR_MESSAGE_MAX]; /* for operators: what, which value, which rule, what to do;
                                         no secrets, no payload; always terminated */
};

static inline struct gb_err gb_ok(void)
{
    return (struct gb_err){.code = GB_OK};
}

/* Builds an error of the code's default class; a message that does not fit is cut on a UTF-8
 * border. */
__attribute__((format(printf, 2, 3))) struct gb_err gb_err(enum gb_code code, const char *format,
                                                           ...);
struct gb_err gb_err_v(enum gb_code code, const char *format, va_list args);
/* The same error with "context: " in front of its message. */
__attribute__((format(printf, 2, 3))) struct gb_err gb_err_in(struct gb_err err, const char *format,
                                                              ...);
/* Out of memory is UNAVAILABLE (transient); `what` names what was being built. */
struct gb_err gb_err_no_memory(const char *what);

const char *gb_code_name(enum gb_code code);     /* "TIMEOUT"; GB_OK is "OK" */
enum gb_class gb_code_class(enum gb_code code);  /* default class */
const char *gb_class_name(enum gb_class class_); /* "transient" ...; NONE is "unknown" */
/* False for an unknown name. */
bool gb_code_parse(const char *name, enum gb_code *out);

static inline bool gb_failed(struct gb_err err)
{
    return err.code != GB_OK;
}
/* Transient or without class (spec 02 §4.1). False for GB_OK and GB_CANCELLED. */
bool gb_err_is_transient(const struct gb_err *err);

#endif
