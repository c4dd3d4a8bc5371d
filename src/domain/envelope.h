#ifndef GB_DOMAIN_ENVELOPE_H
#define GB_DOMAIN_ENVELOPE_H

#include "base/bytes.h"
#include "base/err.h"

/* The message inside the bridge (spec 02 §1.1). Reference counted; one allocation in the usual case
 * (struct, headers, strings and payload share one block sized by the hint).
 * Owns:   all bytes it points to. Whoever holds a reference may read; only the sole holder may
 *         change it (asserted), so a shared envelope is immutable. Use gb_envelope_copy to change a
 *         shared one.
 * Thread: loop thread; a worker may read an envelope whose reference the loop holds for the whole
 *         time.
 * Errors: setters: GB_UNAVAILABLE (out of memory), envelope unchanged. */

enum gb_value_kind {
    GB_VALUE_TEXT = 0, /* text */
    GB_VALUE_INT,      /* number */
    GB_VALUE_DECIMAL,  /* text: the original decimal text */
    GB_VALUE_BOOL,     /* number 0, 1 */
    GB_VALUE_TIME,     /* number: epoch milliseconds */
    GB_VALUE_BYTES,    /* text: raw bytes */
};

struct gb_value {
    enum gb_value_kind kind;
    struct gb_bytes text;
    int64_t number;
};
struct gb_header {
    struct gb_bytes name;
    struct gb_value value;
};

struct gb_envelope {
    struct gb_bytes id; /* never empty once built; id, subject and names are UTF-8 */
    struct gb_bytes subject;
    struct gb_bytes payload;
    struct gb_header *headers; /* in the order of first insertion; names unique, exact case */
    size_t header_count;
    int64_t created_at_ms;
    int64_t expires_at_ms; /* 0 = never; expired when now >= expires_at */
    /* private */
    size_t header_capacity;
    uint32_t refs;
    struct gb_envelope_chunk *chunks;
    char *free_at;
    size_t free_size;
};

enum { GB_ENVELOPE_HEADERS_MAX = 1024 };

/* `size_hint`: bytes of payload, names and values expected. */
struct gb_err gb_envelope_new(size_t size_hint, struct gb_envelope **out);
struct gb_envelope *gb_envelope_ref(struct gb_envelope *e);
void gb_envelope_unref(struct gb_envelope *e); /* NULL ok */
/* Deep copy with one reference. */
struct gb_err gb_envelope_copy(const struct gb_envelope *e, struct gb_envelope **out);

struct gb_err gb_envelope_set_id(struct gb_envelope *e, struct gb_bytes id);
struct gb_err gb_envelope_set_subject(struct gb_envelope *e, struct gb_bytes subject);
struct gb_err gb_envelope_set_payload(struct gb_envelope *e, struct gb_bytes payload);
/* Payload of `size` uninitialised bytes that the caller fills; NULL: out of memory. */
uint8_t *gb_envelope_reserve_payload(struct gb_envelope *e, size_t size);
/* Uninitialised memory that lives as long as the envelope, for a decoder that writes texts where
 * they stay; NULL: out of memory. */
char *gb_envelope_alloc(struct gb_envelope *e, size_t size);
/* Adds or replaces (name and value are copied). GB_PAYLOAD_TOO_LARGE above
 * GB_ENVELOPE_HEADERS_MAX. A replaced text keeps its memory until the envelope goes. */
struct gb_err gb_envelope_put(struct gb_envelope *e, struct gb_bytes name, struct gb_value value);
struct gb_err gb_envelope_put_text(struct gb_envelope *e, const char *name, struct gb_bytes text);
struct gb_err gb_envelope_put_number(struct gb_envelope *e, const char *name,
                                     enum gb_value_kind kind, int64_t number);
/* Like put, for a name and a text that are in the envelope's own memory or live for ever. */
struct gb_err gb_envelope_put_view(struct gb_envelope *e, struct gb_bytes name,
                                   struct gb_value value);
void gb_envelope_remove(struct gb_envelope *e, struct gb_bytes name);
void gb_envelope_remove_at(struct gb_envelope *e, size_t index); /* order of the rest kept */

const struct gb_value *gb_envelope_get(const struct gb_envelope *e,
                                       const char *name); /* exact case */
const struct gb_value *gb_envelope_find(const struct gb_envelope *e, struct gb_bytes name);
/* The text of a TEXT header, or the empty view. */
struct gb_bytes gb_envelope_text(const struct gb_envelope *e, const char *name);
bool gb_envelope_expired(const struct gb_envelope *e, int64_t now_ms);
/* Bytes held: payload, strings, headers; for memory accounting. */
size_t gb_envelope_size(const struct gb_envelope *e);

#endif
