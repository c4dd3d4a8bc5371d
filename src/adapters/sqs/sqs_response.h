#ifndef GB_ADAPTERS_SQS_SQS_RESPONSE_H
#define GB_ADAPTERS_SQS_SQS_RESPONSE_H

#include "base/bytes.h"
#include "base/err.h"

/* Answers of SendMessage, SendMessageBatch and GetQueueUrl, read without allocation. Pure.
 * Owns:   views point into the answer.
 * Thread: any.
 * Errors: GB_UNAVAILABLE: the answer is no JSON of the expected shape (what was sent may have
 *         arrived). */
enum { GB_SQS_ENTRIES_MAX = 10 };

enum gb_sqs_outcome { GB_SQS_MISSING = 0, GB_SQS_ACCEPTED, GB_SQS_FAILED };
struct gb_sqs_entry {
    enum gb_sqs_outcome outcome;
    struct gb_bytes md5_body;       /* empty when not given */
    struct gb_bytes md5_attributes; /* empty when not given */
    bool sender_fault;
    char code[96];
    char message[128];
};

struct gb_err gb_sqs_read_send(struct gb_bytes answer, struct gb_sqs_entry *out);
/* `entries[i]` is the one with id "i"; ids beyond `count` are ignored; one that is in both lists
 * has failed. */
struct gb_err gb_sqs_read_batch(struct gb_bytes answer, size_t count, struct gb_sqs_entry *entries);
/* `*out` is malloced. */
struct gb_err gb_sqs_read_queue_url(struct gb_bytes answer, char **out);

#endif
