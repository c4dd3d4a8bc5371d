#include "domain/reserved.h"

static const char prefix[] = "x-bridge.";

struct name_row {
    const char *name;
    size_t size;
    enum gb_reserved kind;
    unsigned derived; /* the bit that keeps it from the strip, 0: none does */
};

#define ROW(name, kind, derived)                                                                   \
    {                                                                                              \
        (name), sizeof(name) - 1, (kind), (derived)                                                \
    }
static const struct name_row rows[] = {
    ROW(GB_H_ROUTE_ID, GB_RESERVED_INTERNAL, 0),
    ROW(GB_H_ROUTE_OVERRIDE, GB_RESERVED_INTERNAL, 0),
    ROW(GB_H_SOURCE_ID, GB_RESERVED_INTERNAL, 0),
    ROW(GB_H_CONTENT_TYPE, GB_RESERVED_INTERNAL, GB_DERIVED_CONTENT_TYPE),
    ROW(GB_H_GENERATED_ID, GB_RESERVED_INTERNAL, GB_DERIVED_GENERATED_ID),
    ROW(GB_H_CORRELATION_DATA, GB_RESERVED_INTERNAL, GB_DERIVED_CORRELATION_DATA),
    ROW(GB_H_CORRELATION_ID, GB_RESERVED_BRIDGE, GB_DERIVED_CORRELATION_ID),
    ROW(GB_H_CAUSATION_ID, GB_RESERVED_BRIDGE, 0),
    ROW(GB_H_IDEMPOTENCY_KEY, GB_RESERVED_BRIDGE, GB_DERIVED_IDEMPOTENCY_KEY),
    ROW(GB_H_DEDUP_ID, GB_RESERVED_BRIDGE, GB_DERIVED_DEDUP_ID),
    ROW(GB_H_ORDERING_KEY, GB_RESERVED_BRIDGE, GB_DERIVED_ORDERING_KEY),
    ROW(GB_H_TENANT_ID, GB_RESERVED_BRIDGE, 0),
    ROW(GB_H_FORWARDED_FROM, GB_RESERVED_BRIDGE, 0),
    ROW(GB_H_FORWARDED_HOP, GB_RESERVED_BRIDGE, 0),
};
#undef ROW

static bool is_prefixed(struct gb_bytes name)
{
    return name.size > 0 && (name.data[0] | 0x20) == 'x' &&
           gb_bytes_starts_with_nocase(name, prefix);
}

static const struct name_row *find(struct gb_bytes name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct name_row *row = &rows[i];
        if (row->size == name.size && gb_bytes_equal_nocase(name, gb_bytes(row->name, row->size))) {
            return row;
        }
    }
    return NULL;
}

enum gb_reserved gb_reserved_kind(struct gb_bytes name)
{
    if (!is_prefixed(name)) return GB_RESERVED_NONE;
    const struct name_row *row = find(name);
    return row == NULL ? GB_RESERVED_OTHER : row->kind;
}

bool gb_is_redelivery_counter(struct gb_bytes name)
{
    return gb_bytes_equal_nocase(
        name, gb_bytes(GB_H_SQS_RECEIVE_COUNT, sizeof GB_H_SQS_RECEIVE_COUNT - 1));
}

/* Spec 02 §1.3 item 1: what the wire brought under a reserved name goes, what the adapter derived
 * stays. A trusted name in another case is given its own one, so that its readers find it; of two
 * such the one already in its own case, else the last one, stays. */
static bool keep_reserved(struct gb_envelope *e, struct gb_header *h, const struct gb_sanitise *s)
{
    const struct name_row *row = find(h->name);
    if (row == NULL) return false;
    struct gb_bytes own = gb_bytes(row->name, row->size);
    bool exact = gb_bytes_equal(h->name, own);
    if (exact && (s->derived & row->derived) != 0) return true;
    if (row->kind != GB_RESERVED_BRIDGE || !s->trust_bridge_headers) return false;
    if (exact) return true;
    if (gb_envelope_find(e, own) != NULL) return false;
    h->name = own; /* lives for ever */
    return true;
}

static void strip(struct gb_envelope *e, const struct gb_sanitise *s)
{
    for (size_t i = e->header_count; i > 0; i--) {
        struct gb_header *h = &e->headers[i - 1];
        bool keep = is_prefixed(h->name) ? keep_reserved(e, h, s)
                                         : s->source_counts || !gb_is_redelivery_counter(h->name);
        if (!keep) gb_envelope_remove_at(e, i - 1);
    }
}

struct gb_err gb_sanitise_ingress(struct gb_envelope *e, const struct gb_sanitise *s,
                                  struct gb_reactor *r)
{
    char fresh[GB_ID_HEX_SIZE];
    const char *correlation = NULL;
    strip(e, s);
    if (gb_envelope_get(e, GB_H_CORRELATION_ID) == NULL) {
        gb_id_hex(r, fresh);
        correlation = fresh;
    }
    const struct {
        const char *name;
        const char *value; /* NULL: left alone */
    } stamps[] = {
        {GB_H_CORRELATION_ID, correlation},   {GB_H_ROUTE_ID, s->route_id},
        {GB_H_SOURCE_ID, s->instance_id},     {GB_H_ROUTE_OVERRIDE, s->binding_override},
        {GB_H_CAUSATION_ID, s->causation_id},
    };
    for (size_t i = 0; i < sizeof stamps / sizeof stamps[0]; i++) {
        if (stamps[i].value == NULL) continue;
        struct gb_err err = gb_envelope_put_text(e, stamps[i].name, gb_bytes_c(stamps[i].value));
        if (gb_failed(err)) return err;
    }
    return gb_ok();
}
