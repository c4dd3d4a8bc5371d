#include "domain/reserved.h"

static const char prefix[] = "x-bridge.";

struct name_row {
    const char *name;
    enum gb_reserved kind;
    unsigned derived; /* bit that protects it from the strip */
};

static const struct name_row rows[] = {
    {GB_H_ROUTE_ID, GB_RESERVED_INTERNAL, 0},
    {GB_H_ROUTE_OVERRIDE, GB_RESERVED_INTERNAL, 0},
    {GB_H_SOURCE_ID, GB_RESERVED_INTERNAL, 0},
    {GB_H_CONTENT_TYPE, GB_RESERVED_INTERNAL, GB_DERIVED_CONTENT_TYPE},
    {GB_H_GENERATED_ID, GB_RESERVED_INTERNAL, GB_DERIVED_GENERATED_ID},
    {GB_H_CORRELATION_DATA, GB_RESERVED_INTERNAL, GB_DERIVED_CORRELATION_DATA},
    {GB_H_CORRELATION_ID, GB_RESERVED_BRIDGE, GB_DERIVED_CORRELATION_ID},
    {GB_H_CAUSATION_ID, GB_RESERVED_BRIDGE, 0},
    {GB_H_IDEMPOTENCY_KEY, GB_RESERVED_BRIDGE, GB_DERIVED_IDEMPOTENCY_KEY},
    {GB_H_DEDUP_ID, GB_RESERVED_BRIDGE, GB_DERIVED_DEDUP_ID},
    {GB_H_ORDERING_KEY, GB_RESERVED_BRIDGE, GB_DERIVED_ORDERING_KEY},
    {GB_H_TENANT_ID, GB_RESERVED_BRIDGE, 0},
    {GB_H_FORWARDED_FROM, GB_RESERVED_BRIDGE, 0},
    {GB_H_FORWARDED_HOP, GB_RESERVED_BRIDGE, 0},
};

static const struct name_row *find(struct gb_bytes name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (gb_bytes_equal_nocase(name, gb_bytes_c(rows[i].name))) return &rows[i];
    return NULL;
}

static bool is_prefixed(struct gb_bytes name)
{
    return name.size > 0 && (name.data[0] | 0x20) == 'x' &&
           gb_bytes_starts_with_nocase(name, prefix);
}

enum gb_reserved gb_reserved_kind(struct gb_bytes name)
{
    if (!is_prefixed(name)) return GB_RESERVED_NONE;
    const struct name_row *row = find(name);
    return row == NULL ? GB_RESERVED_OTHER : row->kind;
}

bool gb_is_redelivery_counter(struct gb_bytes name)
{
    return gb_bytes_equal_nocase(name, gb_bytes_c(GB_H_SQS_RECEIVE_COUNT)) ||
           gb_bytes_equal_nocase(name, gb_bytes_c("aws.sqs.ApproximateReceiveCount"));
}

/* Spec 02 §1.3 item 1: what the wire brought under a reserved name goes, what the adapter derived stays. */
static bool survives(struct gb_bytes name, const struct gb_sanitise *s)
{
    if (!is_prefixed(name)) return s->source_counts || !gb_is_redelivery_counter(name);
    const struct name_row *row = find(name);
    if (row == NULL) return false;
    bool exact = gb_bytes_equal_c(name, row->name);
    if (exact && row->derived != 0 && (s->derived & row->derived) != 0) return true;
    return row->kind == GB_RESERVED_BRIDGE && s->trust_bridge_headers;
}

struct gb_err gb_sanitise_ingress(struct gb_envelope *e, const struct gb_sanitise *s,
                                  struct gb_reactor *r)
{
    for (size_t i = e->header_count; i > 0; i--)
        if (!survives(e->headers[i - 1].name, s)) gb_envelope_remove_at(e, i - 1);
    struct gb_err err = gb_ok();
    if (gb_envelope_get(e, GB_H_CORRELATION_ID) == NULL) {
        char id[GB_ID_HEX_SIZE];
        gb_id_hex(r, id);
        err = gb_envelope_put_text(e, GB_H_CORRELATION_ID, gb_bytes_c(id));
    }
    if (!gb_failed(err)) err = gb_envelope_put_text(e, GB_H_ROUTE_ID, gb_bytes_c(s->route_id));
    if (!gb_failed(err)) err = gb_envelope_put_text(e, GB_H_SOURCE_ID, gb_bytes_c(s->instance_id));
    if (!gb_failed(err) && s->binding_override != NULL)
        err = gb_envelope_put_text(e, GB_H_ROUTE_OVERRIDE, gb_bytes_c(s->binding_override));
    if (!gb_failed(err) && s->causation_id != NULL)
        err = gb_envelope_put_text(e, GB_H_CAUSATION_ID, gb_bytes_c(s->causation_id));
    return err;
}
