#ifndef GB_ADAPTERS_SQS_SQS_MESSAGE_H
#define GB_ADAPTERS_SQS_SQS_MESSAGE_H

#include "adapters/sqs/sqs_sender.h"
#include "base/digest.h"
#include "base/json_write.h"

/* An envelope as an SQS message (spec 04 B9, 02 §1.6): first a plan (what goes, how many bytes),
 * then one pass of writing. Pure.
 * Owns:   a plan borrows from the envelope and points into itself: it is not to be copied.
 * Thread: one at a time.
 * Errors: gb_sqs_message_plan: GB_INVALID_PAYLOAD, GB_PAYLOAD_TOO_LARGE; GB_UNAVAILABLE (out of
 *         memory). */
enum { GB_SQS_ATTRIBUTES_MAX = 10, GB_SQS_ID_MAX = 128 };

struct gb_sqs_rules {
    enum gb_payload_encoding encoding;
    uint64_t bytes_max; /* body and attributes */
    bool fifo;
    const char *group; /* default group; NULL = none */
    uint32_t delay_seconds;
};

enum gb_sqs_type { GB_SQS_STRING, GB_SQS_NUMBER, GB_SQS_BINARY };
struct gb_sqs_attribute {
    struct gb_bytes name;
    enum gb_sqs_type type;
    struct gb_bytes value;
    char text[40]; /* of a number, boolean or time */
};

struct gb_sqs_message {
    const struct gb_envelope *envelope;
    bool base64;           /* the body is base64, or "=" for an empty payload */
    size_t size;           /* body and attributes, as SQS counts */
    struct gb_bytes group; /* FIFO only */
    struct gb_bytes dedup; /* FIFO only */
    char dedup_text[GB_MD5_HEX];
    struct gb_sqs_attribute attributes[GB_SQS_ATTRIBUTES_MAX];
    size_t attribute_count;
    uint32_t dropped; /* for SQSDroppedAttributes */
};
/* `scratch` is emptied and used. */
struct gb_err gb_sqs_message_plan(const struct gb_envelope *e, const struct gb_sqs_rules *rules,
                                  struct gb_str *scratch, struct gb_sqs_message *out);

/* The FIFO group the plan would take, or the empty view. Cheap. */
struct gb_bytes gb_sqs_message_group(const struct gb_envelope *e, const struct gb_sqs_rules *rules);

/* What SQS must answer (spec 04 A1). */
struct gb_sqs_digests {
    char body[GB_MD5_HEX];
    char attributes[GB_MD5_HEX]; /* "" without attributes */
};
/* Writes the members of the message into the object that is open in `w`. A full buffer shows in
 * w->out. */
void gb_sqs_message_write(const struct gb_sqs_message *m, const struct gb_sqs_rules *rules,
                          struct gb_json_writer *w, struct gb_str *scratch,
                          struct gb_sqs_digests *digests);

#endif
