#ifndef GB_BENCH_SINK_SQS_H
#define GB_BENCH_SINK_SQS_H

#include "base/bytes.h"
#include "base/str.h"

/* SendMessage and SendMessageBatch of SQS's JSON protocol: parses the request whole and answers for
 * each entry with the digests that a client checks (spec 04 A2, B9).
 * Owns:   its buffers; release with gb_bench_sqs_deinit.
 * Thread: one.
 * Errors: a request it does not understand is answered with status 400 and the reason. */

typedef void gb_bench_sqs_message_fn(void *arg, struct gb_bytes body);

struct gb_bench_sqs {
    gb_bench_sqs_message_fn *message; /* each accepted body, before its answer is sent */
    void *arg;
    uint64_t requests, batches, messages, refused;
    /* private */
    struct gb_str text, digest_input;
};
void gb_bench_sqs_deinit(struct gb_bench_sqs *s);
/* `operation` is the X-Amz-Target. Appends the JSON of the answer; its HTTP status. */
unsigned gb_bench_sqs_answer(struct gb_bench_sqs *s, struct gb_bytes operation,
                             struct gb_bytes request, struct gb_str *answer);

#endif
