#ifndef GB_CORE_MESSAGE_LOG_H
#define GB_CORE_MESSAGE_LOG_H

#include <string.h>

#include "base/log.h"
#include "domain/envelope.h"
#include "domain/reserved.h"

/* The ids that tie the log lines of one message together (spec 08 §7), as log fields.
 * Owns:   copies, each cut at its bound: a log line is no place for ids of a kilobyte.
 * Thread: any.
 * Errors: none; a message without an id gets an empty field. */
enum { GB_MESSAGE_LOG_ID_SIZE = 129 };
struct gb_message_log {
    char envelope_id[GB_MESSAGE_LOG_ID_SIZE];
    char correlation_id[GB_MESSAGE_LOG_ID_SIZE];
};

static inline void gb_message_log_copy(char *out, struct gb_bytes id)
{
    size_t size = id.size < GB_MESSAGE_LOG_ID_SIZE - 1 ? id.size : GB_MESSAGE_LOG_ID_SIZE - 1;
    if (size > 0) memcpy(out, id.data, size);
    out[size] = '\0';
}

static inline void gb_message_log_set(struct gb_message_log *m, const struct gb_envelope *e)
{
    gb_message_log_copy(m->envelope_id, e->id);
    gb_message_log_copy(m->correlation_id, gb_envelope_text(e, GB_H_CORRELATION_ID));
}

#define GB_LF_MESSAGE(m)                                                                           \
    gb_lf_str("envelope_id", (m).envelope_id), gb_lf_str("correlation_id", (m).correlation_id)

#endif
