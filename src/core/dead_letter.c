#include "core/dead_letter.h"

#include "domain/reserved.h"

struct gb_err gb_dead_letter_build(const struct gb_dead_letter *d, struct gb_dlq_entry **out)
{
    struct gb_dlq_entry *e = NULL;
    struct gb_err err = gb_dlq_entry_new(d->envelope, &e);
    if (gb_failed(err)) return err;
    const struct {
        char **member;
        struct gb_bytes text;
    } texts[] = {
        {&e->route_id, gb_bytes_c(d->route_id)},
        {&e->binding_id, gb_bytes_c(d->binding_id)},
        {&e->address, d->address},
        {&e->session_id, d->session_id},
        {&e->source_id, gb_bytes_c(d->source_id)},
        {&e->correlation_id, gb_envelope_text(d->envelope, GB_H_CORRELATION_ID)},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        err = gb_dlq_set(texts[i].member, texts[i].text);
        if (gb_failed(err)) goto fail;
    }
    err = gb_dlq_entry_set_error(e, d->cause);
    if (gb_failed(err)) goto fail;
    e->failed_at_ms = d->now_ms;
    e->attempts = d->attempts;
    gb_dlq_entry_derive_id(e);
    *out = e;
    return gb_ok();
fail:
    gb_dlq_entry_free(e);
    return err;
}

const char *gb_dead_letter_word(const struct gb_err *cause)
{
    switch (cause->class_) {
    case GB_CLASS_EXPIRED:
        return "expired";
    case GB_CLASS_REJECTED:
        return "rejected";
    case GB_CLASS_NONE:
    case GB_CLASS_TRANSIENT:
    case GB_CLASS_PERMANENT:
        break;
    }
    return "permanent";
}
