#ifndef GB_ADAPTERS_AWS_AWS_CLIENT_H
#define GB_ADAPTERS_AWS_AWS_CLIENT_H

#include "adapters/aws/aws_credentials.h"
#include "base/op.h"
#include "io/http.h"

/* One AWS service endpoint with signing, retries, throttling and clock-skew correction (spec 04
 * A1-A5).
 * Owns:   borrows reactor, http; references credentials. A call belongs to the caller until `done`.
 * Thread: loop thread only.
 * Errors: op.result is the transport's or the service's error by `classify`; `call.code` keeps the
 *         service's code. A service error that `classify` maps to GB_OK cannot happen
 *         (asserted). */
struct gb_aws_client;

/* A parsed service error (spec 04 A1): code after '#', cut at ':'; header; legacy code; HTTP
 * status. */
struct gb_aws_error {
    char code[96];        /* new form */
    char legacy_code[96]; /* from x-amzn-query-error, before ';' */
    bool sender_fault;    /* legacy ";Sender" */
    char message[160];
    int status;
};
void gb_aws_error_parse(int status, struct gb_bytes body, struct gb_bytes errortype_header,
                        struct gb_bytes query_error_header, struct gb_aws_error *out);
/* True when either code equals `code` (case-insensitive). */
bool gb_aws_error_is(const struct gb_aws_error *e, const char *code);
/* The code to show to an operator: the new form, else the legacy one, else the status as text. */
const char *gb_aws_error_code(const struct gb_aws_error *e);
/* Throttling by code or status 429 (spec 04 A6, B10). */
bool gb_aws_error_is_throttle(const struct gb_aws_error *e);
/* ExpiredToken, ExpiredTokenException (spec 04 A5). */
bool gb_aws_error_is_expired_token(const struct gb_aws_error *e);
/* The codes that a wrong clock causes (spec 04 A2). */
bool gb_aws_error_is_skew(const struct gb_aws_error *e);
/* DynamoDB, SSM, STS mapping (spec 04 A6); services may give their own. */
struct gb_err gb_aws_classify_default(const struct gb_aws_error *e);

struct gb_aws_client_cfg {
    struct gb_reactor *reactor;
    struct gb_http *http;
    struct gb_aws_credentials *credentials;
    const char *service;       /* "sqs" */
    const char *target_prefix; /* "AmazonSQS" */
    const char *content_type;  /* "application/x-amz-json-1.0" */
    const char *region;
    const char *endpoint;       /* absolute URL */
    int64_t attempt_timeout_ns; /* 0 = the call's own deadline alone */
    uint32_t attempts_max;      /* 0 = 3 */
    int64_t backoff_cap_ns;     /* no wait between attempts is longer; 0 = 20 s */
    struct gb_err (*classify)(const struct gb_aws_error *e);
    /* Service errors to try again besides 5xx and throttling; NULL = none. */
    bool (*is_retryable)(const struct gb_aws_error *e);
};
/* GB_INVALID_CONFIG: the endpoint is no http(s) URL with a host. */
struct gb_err gb_aws_client_new(const struct gb_aws_client_cfg *cfg, struct gb_aws_client **out);
/* No call may be pending; NULL ok. */
void gb_aws_client_free(struct gb_aws_client *c);

struct gb_aws_call {
    struct gb_op op;    /* op.deadline_ns required: covers all attempts */
    const char *action; /* "SendMessageBatch" */
    struct gb_str body; /* JSON; freed by gb_aws_call_deinit */
    /* No further attempt once one of them may have been carried out without our knowing. */
    bool send_once;
    /* out */
    struct gb_str answer; /* body of the service's last answer, of an error, too */
    /* An attempt reached the service and had no certain end (5xx, time-out, cut or damaged answer),
     * so what was asked may have been done, whatever op.result says. */
    bool maybe_done;
    struct gb_aws_error error;
    char request_id[64];
    uint32_t attempts;
    /* private */
    struct gb_aws_client *client;
    struct gb_http_request http;
    struct gb_str headers; /* the texts that http.headers borrows */
    struct gb_op wait_credentials;
    struct gb_timer retry_timer;
    uint64_t credentials_generation;
    bool token_refreshed, skew_corrected;
};
/* `call->body` is kept (moved out and back), so that a caller can reuse the struct and its
 * memory. */
void gb_aws_call_start(struct gb_aws_client *c, struct gb_aws_call *call, gb_done_fn *done,
                       void *arg);
void gb_aws_call_deinit(struct gb_aws_call *call); /* not while pending; accepts zeroed memory */

#endif
