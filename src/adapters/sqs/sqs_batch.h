#ifndef GB_ADAPTERS_SQS_SQS_BATCH_H
#define GB_ADAPTERS_SQS_SQS_BATCH_H

#include "adapters/sqs/sqs_errors.h"
#include "adapters/sqs/sqs_message.h"
#include "adapters/sqs/sqs_response.h"

/* The entries of one request and what became of them (spec 04 B9, B10). A batch that SQS finds too
 * long goes again in halves, in order, without the entries that are settled. Pure but for finishing
 * the sends.
 * Owns:   borrows the sends until they are finished here; a send that its caller cancelled is taken
 *         out.
 * Thread: loop thread only.
 * Errors: each send gets its own result. */
enum { GB_SQS_BATCH_BYTES_MAX = 1048576 }; /* all entries: bodies and attributes */

struct gb_sqs_batch {
    struct gb_send *sends[GB_SQS_ENTRIES_MAX]; /* NULL: settled */
    uint64_t groups[GB_SQS_ENTRIES_MAX];       /* FIFO: hash of the group; 0 = none */
    struct gb_sqs_digests digests[GB_SQS_ENTRIES_MAX];
    size_t count;
    size_t next;  /* entries before it are settled */
    size_t sent;  /* entries of the request in flight: [next, next + sent) */
    size_t limit; /* entries of a request; halved */
    size_t bytes; /* of the entries that were added */
    bool single;  /* the request is a SendMessage */
};

void gb_sqs_batch_init(struct gb_sqs_batch *b, size_t limit);
/* True when an entry with that group is in it and not settled. */
bool gb_sqs_batch_has_group(const struct gb_sqs_batch *b, uint64_t group);
/* False: full by count or bytes; nothing was added. */
bool gb_sqs_batch_add(struct gb_sqs_batch *b, struct gb_send *send, size_t bytes, uint64_t group);
bool gb_sqs_batch_settled(const struct gb_sqs_batch *b);

struct gb_sqs_request {
    const char *queue_url;
    const struct gb_sqs_rules *rules;
    struct gb_str *body;
    struct gb_str *scratch;
};
/* Begins the body of a request. */
void gb_sqs_batch_begin(struct gb_sqs_batch *b, const struct gb_sqs_request *q,
                        struct gb_json_writer *w, bool single);
/* Writes entry `index` (position index - next in the request). */
void gb_sqs_batch_write(struct gb_sqs_batch *b, const struct gb_sqs_request *q,
                        struct gb_json_writer *w, size_t index, const struct gb_sqs_message *m);
void gb_sqs_batch_end(struct gb_sqs_batch *b, struct gb_json_writer *w);
/* Writes the next request again from the entries that are left, at most `limit`. GB_UNAVAILABLE
 * (out of memory). */
struct gb_err gb_sqs_batch_rewrite(struct gb_sqs_batch *b, const struct gb_sqs_request *q);

/* Settles what was in the request, by its answer or with `err`. */
void gb_sqs_batch_answered(struct gb_sqs_batch *b, struct gb_bytes answer);
void gb_sqs_batch_failed(struct gb_sqs_batch *b, struct gb_err err);
/* True: the request was too long and is to go again in halves. */
bool gb_sqs_batch_halve(struct gb_sqs_batch *b, const struct gb_aws_error *e);

#endif
