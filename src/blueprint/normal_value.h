#ifndef GB_BLUEPRINT_NORMAL_VALUE_H
#define GB_BLUEPRINT_NORMAL_VALUE_H

#include "base/json_write.h"
#include "blueprint/document.h"
#include "blueprint/schema.h"

/* Scalars and lists of texts in the normal form (normal.h).
 * Owns:   nothing.
 * Thread: any. Pure.
 * Errors: collected in the writer. */
struct gb_normal_writer {
    struct gb_json_writer json;
    struct gb_err err; /* what has no normal form */
    bool failed;       /* out of memory */
};

/* A written or filled field; `node` NULL: its default. `as_written`: inside options. */
void gb_normal_field(struct gb_normal_writer *to, const struct gb_field *f,
                     const struct gb_node *node, bool as_written);
/* A scalar that no table types: plain text is what the decoder would take it for, integers are
 * exact unless `doubles`. */
void gb_normal_scalar(struct gb_normal_writer *to, const struct gb_node *node, bool doubles);

#endif
