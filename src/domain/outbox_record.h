#ifndef GB_DOMAIN_OUTBOX_RECORD_H
#define GB_DOMAIN_OUTBOX_RECORD_H

#include "base/str.h"
#include "domain/envelope.h"

/* Outbox record (spec 02 §7.2, 05 §2.1) as a value of views. In a persist the caller's memory backs
 * the views until the operation is done; in a claimed batch the batch does.
 * Owns:   struct gb_outbox_record nothing; struct gb_outbox_batch everything its records point to.
 * Thread: loop thread, or the worker that builds a batch before handing it over.
 * Errors: GB_UNAVAILABLE (out of memory), GB_INVALID_OUTBOX_RECORD for a corrupt row. */

enum gb_outbox_status {
    GB_OUTBOX_PENDING,
    GB_OUTBOX_CLAIMED,
    GB_OUTBOX_COMPLETED,
    GB_OUTBOX_EXPIRED
};

struct gb_outbox_record {
    struct gb_bytes id; /* 32 hex */
    struct gb_bytes route_id, binding_id, session_id, address;
    struct gb_envelope *envelope;     /* envelope id = envelope->id; borrowed */
    struct gb_bytes dispatch_headers; /* JSON object; empty = absent */
    struct gb_bytes ordering_key;     /* empty = keyless */
    int64_t created_at_ms;            /* 0 = the store's clock */
    int64_t expires_at_ms;            /* 0 = never */
    uint64_t seq;                     /* assigned by the store */
    int64_t first_attempted_at_ms;    /* 0 = never claimed */
    uint64_t claim_version;
    uint32_t replay_count;
};

/* SESSION#<session_id>, or BINDING#<binding_id> without session. */
void gb_outbox_partition(struct gb_str *out, struct gb_bytes session_id,
                         struct gb_bytes binding_id);

struct gb_outbox_batch {
    struct gb_outbox_record *records;
    size_t count;
    size_t capacity;                /* private */
    struct gb_outbox_chunk *chunks; /* private */
};
struct gb_err gb_outbox_batch_new(size_t capacity, struct gb_outbox_batch **out);
/* Deep-copies the strings and the record's values; takes over one reference of `envelope`, on
 * failure it stays the caller's. A batch holds `capacity` records; one more is GB_UNAVAILABLE. */
struct gb_err gb_outbox_batch_add(struct gb_outbox_batch *b, const struct gb_outbox_record *record);
void gb_outbox_batch_free(struct gb_outbox_batch *b); /* unrefs the envelopes; NULL ok */

#endif
