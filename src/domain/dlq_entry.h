#ifndef GB_DOMAIN_DLQ_ENTRY_H
#define GB_DOMAIN_DLQ_ENTRY_H

#include "base/str.h"
#include "domain/envelope.h"

/* Dead-letter entry (spec 02 §10, 05 §3).
 * Owns:   an entry made by gb_dlq_entry_new owns its strings and a reference of its envelope.
 * Thread: loop thread; a worker may read it while the loop keeps it alive.
 * Errors: GB_UNAVAILABLE (out of memory). */
struct gb_dlq_entry {
    char id[65]; /* derived, see gb_dlq_entry_derive_id */
    char *route_id, *binding_id, *session_id, *source_id, *correlation_id, *address;
    char *reason;     /* the error's message, else "internal error" */
    char *category;   /* transient permanent rejected expired unknown */
    char *error_code; /* name of the code */
    char *last_error;
    struct gb_envelope *envelope;
    int64_t failed_at_ms;
    uint32_t attempts;
    char *redrive_mode; /* "" or "auto" */
    char *extra_info;   /* JSON object text, "{}" if empty */
};
/* All strings empty, extra_info "{}"; takes its own reference of `envelope`. */
struct gb_err gb_dlq_entry_new(struct gb_envelope *envelope, struct gb_dlq_entry **out);
void gb_dlq_entry_free(struct gb_dlq_entry *e); /* NULL ok */
struct gb_err gb_dlq_entry_copy(const struct gb_dlq_entry *e, struct gb_dlq_entry **out);
/* Replaces one string member: gb_dlq_set(&e->route_id, bytes). */
struct gb_err gb_dlq_set(char **member, struct gb_bytes text);
/* As a store keeps it: nothing is {}, and what is no JSON object (only another program can have
 * written it) becomes {"unreadable": text}, so that views stay JSON. */
struct gb_err gb_dlq_entry_set_extra_info(struct gb_dlq_entry *e, struct gb_bytes stored);
/* Fills reason, category, error_code, last_error from the error. */
struct gb_err gb_dlq_entry_set_error(struct gb_dlq_entry *e, const struct gb_err *cause);
/* SHA-256 over (envelope id, route, binding, source), each with a 32-bit big-endian length; lower
 * hex into `id`. */
void gb_dlq_entry_derive_id(struct gb_dlq_entry *e);

#endif
