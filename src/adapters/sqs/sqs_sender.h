#ifndef GB_ADAPTERS_SQS_SQS_SENDER_H
#define GB_ADAPTERS_SQS_SQS_SENDER_H

#include "adapters/aws/aws_client.h"
#include "base/metrics.h"
#include "ports/sender.h"

/* SQS destination (spec 04 B2, B9-B12): SendMessage for a single record, SendMessageBatch for the
 * records of a drain cycle or, with `linger`, for concurrent direct sends. Many requests in flight.
 * Owns:   copies its configuration; borrows reactor, http, metrics; references credentials.
 * Thread: loop thread only.
 * Errors: gb_sqs_sender_new: GB_INVALID_CONFIG naming the option, GB_UNAVAILABLE. Sends: spec 04
 *         B10, B11. */
enum gb_payload_encoding { GB_ENCODING_AUTO = 0, GB_ENCODING_TEXT, GB_ENCODING_BASE64 };
struct gb_sqs_sender_cfg {
    const char *id;
    const char *queue_url; /* one of the two */
    const char *queue_name;
    const char *region;   /* NULL = chain, then the label in queue_url */
    const char *profile;  /* whose region the chain reads; NULL = AWS_PROFILE, default */
    const char *endpoint; /* NULL = chain */
    uint32_t batch_size;  /* resolved 1-10 */
    uint32_t delay_seconds;
    int64_t timeout_ns;
    int64_t linger_ns;
    bool fifo;
    const char *message_group_id;
    uint64_t max_message_bytes;
    enum gb_payload_encoding payload_encoding;
    /* in flight; 0 = 16; more sends wait in a queue bounded by their callers */
    uint32_t requests_max;

    struct gb_reactor *reactor;
    struct gb_http *http;
    struct gb_metrics *metrics;
    struct gb_aws_credentials *credentials;
    struct gb_aws_env env;
};
struct gb_err gb_sqs_sender_new(const struct gb_sqs_sender_cfg *cfg, struct gb_sender **out);

#endif
