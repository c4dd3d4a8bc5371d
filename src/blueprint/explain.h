#ifndef GB_BLUEPRINT_EXPLAIN_H
#define GB_BLUEPRINT_EXPLAIN_H

#include "base/str.h"
#include "blueprint/blueprint.h"

/* What a document comes to, for operators: how each session connects, the resolved lease cadence,
 * the activation and both failover budgets term by term against failover_slo, the effective
 * stale_claim_duration, the content digest (spec 06 §4, §9; 05 §2.6; 01 §9.1). Holds no secret.
 * Owns:   nothing; appends to the caller's buffer.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: out of memory, or past the buffer's limit; else that of the digest. */

struct gb_explanation {
    const struct gb_blueprint *b; /* NULL: it has errors, and JSON says only those */
    const struct gb_findings *findings;
    const char *const *names; /* of the layers */
};

/* Aligned lines. Findings are only counted: they are read beside it, on stderr. */
struct gb_err gb_explain_text(const struct gb_explanation *of, struct gb_str *out);
/* One object and a newline; durations as {"ns":...,"text":"5m0s"}. */
struct gb_err gb_explain_json(const struct gb_explanation *of, struct gb_str *out);

#endif
