#ifndef GB_BLUEPRINT_INSPECT_H
#define GB_BLUEPRINT_INSPECT_H

#include "base/str.h"
#include "blueprint/blueprint.h"
#include "blueprint/diff.h"

/* The blueprint as JSON for programs: what a deployment has to know of a document (spec 09 §1.2),
 * and the diff of two (spec 08 §2). Neither holds a secret. One object each, without white space,
 * and a newline.
 * Owns:   nothing; appends to the caller's buffer.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: out of memory, or past the buffer's limit; else that of the digest. */

struct gb_inspection {
    struct gb_bytes bytes;              /* the document's, as read */
    const struct gb_findings *findings; /* of the load */
    const char *const *names;           /* of the layers */
    const struct gb_blueprint *b;       /* NULL when it has errors: only those are said then */
};

struct gb_err gb_inspect(const struct gb_inspection *of, struct gb_str *out);
struct gb_err gb_diff_print(const struct gb_diff *diff, struct gb_str *out);

#endif
