#ifndef GB_DOMAIN_RESERVED_H
#define GB_DOMAIN_RESERVED_H

#include "base/id.h"
#include "domain/envelope.h"

/* Reserved headers and ingress sanitation (spec 02 §1.2-1.4), shared by adapters and pipeline.
 * Owns:   nothing.
 * Thread: loop thread.
 * Errors: gb_sanitise_ingress: GB_UNAVAILABLE (out of memory). */

#define GB_H_ROUTE_ID "x-bridge.route-id"
#define GB_H_ROUTE_OVERRIDE "x-bridge.route-override"
#define GB_H_SOURCE_ID "x-bridge.source-id"
#define GB_H_CONTENT_TYPE "x-bridge.content-type"
#define GB_H_GENERATED_ID "x-bridge.generated-id"
#define GB_H_CORRELATION_DATA "x-bridge.correlation-data"
#define GB_H_CORRELATION_ID "x-bridge.correlation-id"
#define GB_H_CAUSATION_ID "x-bridge.causation-id"
#define GB_H_IDEMPOTENCY_KEY "x-bridge.idempotency-key"
#define GB_H_DEDUP_ID "x-bridge.dedup-id"
#define GB_H_ORDERING_KEY "x-bridge.ordering-key"
#define GB_H_TENANT_ID "x-bridge.tenant-id"
#define GB_H_FORWARDED_FROM "x-bridge.forwarded-from"
#define GB_H_FORWARDED_HOP "x-bridge.forwarded-hop"
#define GB_H_PAYLOAD_ENCODING "x-bridge.payload-encoding" /* SQS attribute only, never a header */
#define GB_H_SQS_RECEIVE_COUNT "sqs.ApproximateReceiveCount"

enum gb_reserved {
    GB_RESERVED_NONE,     /* an ordinary header */
    GB_RESERVED_INTERNAL, /* always removed on arrival, never sent */
    GB_RESERVED_BRIDGE,   /* bridge-to-bridge: removed on arrival unless trusted */
    GB_RESERVED_OTHER,    /* any other x-bridge.*: removed in both modes */
};
enum gb_reserved gb_reserved_kind(struct gb_bytes name); /* case-insensitive */

/* A header the adapter derived itself from protocol fields is kept by the strip of spec 02 §1.3
 * item 1: the adapter names it in `derived`. */
enum gb_derived {
    GB_DERIVED_GENERATED_ID = 1u << 0,
    GB_DERIVED_CORRELATION_ID = 1u << 1,
    GB_DERIVED_CORRELATION_DATA = 1u << 2,
    GB_DERIVED_CONTENT_TYPE = 1u << 3,
    GB_DERIVED_IDEMPOTENCY_KEY = 1u << 4,
    GB_DERIVED_DEDUP_ID = 1u << 5,
    GB_DERIVED_ORDERING_KEY = 1u << 6,
};

struct gb_sanitise {
    const char *route_id;
    const char *instance_id;
    bool trust_bridge_headers;
    bool source_counts;           /* the source is SQS: its receive count is genuine */
    unsigned derived;             /* gb_derived bits */
    const char *causation_id;     /* redrive only, else NULL */
    const char *binding_override; /* redrive only, else NULL */
};
/* Steps 1-4 of spec 02 §1.3, in place. */
struct gb_err gb_sanitise_ingress(struct gb_envelope *e, const struct gb_sanitise *s,
                                  struct gb_reactor *r);
/* Redelivery counters never cross a hop: true when `name` is one (spec 02 §1.3 end). */
bool gb_is_redelivery_counter(struct gb_bytes name);

#endif
