#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_CLIENT_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_CLIENT_H

#include "adapters/dynamodb/dynamodb_call.h"

/* DynamoDB on the AWS client (spec 04 A, 05 §9.1): independent calls over one pool of connections,
 * a bounded number of them under way, in the order of their starts; consumed capacity is counted.
 * Owns:   borrows reactor, http; references credentials; the rest of the cfg is copied. A call
 *         belongs to its caller until `done`.
 * Thread: loop thread only.
 * Errors: gb_dynamodb_client_new: GB_INVALID_CONFIG (no region, bad endpoint), GB_UNAVAILABLE.
 *         Calls: the codes of enum gb_dynamodb_error, GB_TIMEOUT, GB_CONNECTION_LOST,
 *         GB_PAYLOAD_TOO_LARGE (an item above 400 KB: not sent), GB_INVALID_PAYLOAD (more than 100
 *         actions: not sent), GB_UNAVAILABLE (too many calls wait, the client is closed, a
 *         malformed answer, out of memory), GB_CANCELLED. Texts begin with the table's name. */
struct gb_dynamodb_client;

struct gb_dynamodb_client_cfg {
    struct gb_reactor *reactor;
    struct gb_http *http; /* its pool should have calls_max connections */
    struct gb_aws_credentials *credentials;
    struct gb_aws_env env;      /* region and endpoint (spec 04 A3) */
    int64_t attempt_timeout_ns; /* 0 = 5 s */
    uint32_t attempts_max;      /* 0 = 3 */
    int64_t backoff_cap_ns;     /* 0 = 20 s */
    uint32_t calls_max;         /* under way; 0 = 16 */
    uint32_t waiting_max;       /* started beyond those; 0 = 4096 */
};
struct gb_err gb_dynamodb_client_new(const struct gb_dynamodb_client_cfg *cfg,
                                     struct gb_dynamodb_client **out);
/* Cancels what is pending, completes when all of it is done, frees the client. */
void gb_dynamodb_client_close(struct gb_dynamodb_client *c, struct gb_op *op, gb_done_fn *done,
                              void *arg);
/* At once; no call may be pending. NULL ok. */
void gb_dynamodb_client_free(struct gb_dynamodb_client *c);

/* Sends what was written since gb_dynamodb_begin; it stays for a start with the same bytes. */
void gb_dynamodb_start(struct gb_dynamodb_client *c, struct gb_dynamodb_call *call,
                       gb_done_fn *done, void *arg);

/* --- consumed capacity --- */

/* One series: an operation on a table, or on one of its indexes. */
struct gb_dynamodb_usage {
    enum gb_dynamodb_action action;
    const char *table;
    const char *index; /* "" = the table; calls, failures and attempts are counted there only */
    uint64_t calls, failures, attempts;
    uint64_t read_units, write_units; /* thousandths, as reported; failed calls report none */
};
enum { GB_DYNAMODB_USAGE_MAX = 1024 };
typedef void gb_dynamodb_usage_fn(void *arg, const struct gb_dynamodb_usage *usage);
/* In the order in which the series were first seen. */
void gb_dynamodb_usage_visit(const struct gb_dynamodb_client *c, gb_dynamodb_usage_fn *visit,
                             void *arg);
/* Sum over the series of a table and an action; NULL and GB_DYNAMODB_ACTIONS for all. */
struct gb_dynamodb_usage gb_dynamodb_usage_sum(const struct gb_dynamodb_client *c,
                                               const char *table, enum gb_dynamodb_action action);
/* Reports that had no room (more than GB_DYNAMODB_USAGE_MAX series, or out of memory). */
uint64_t gb_dynamodb_usage_lost(const struct gb_dynamodb_client *c);

#endif
