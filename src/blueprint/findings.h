#ifndef GB_BLUEPRINT_FINDINGS_H
#define GB_BLUEPRINT_FINDINGS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/str.h"
#include "blueprint/rules.h"

/* What is wrong, or worth a warning, in a document: `<path> (<id>): <text>` at a line and column
 * (spec 01 §5.1). Texts name the key, the value unless it is secret, the rule and the remedy.
 * Owns:   every finding's strings; gb_findings_deinit releases them and accepts zeroed memory.
 *         Control characters in them become `?`, so that a finding is one line of UTF-8.
 * Thread: one at a time.
 * Errors: adding never fails at the call: out of memory is sticky and gb_findings_check tells. At
 *         most GB_FINDINGS_MAX errors and as many warnings are kept, the rest only counted; a text
 *         longer than GB_FINDING_TEXT_MAX is cut. */

enum gb_severity { GB_FINDING_ERROR = 0, GB_FINDING_WARNING };
enum { GB_FINDINGS_MAX = 200, GB_FINDING_TEXT_MAX = 768 };

struct gb_finding {
    enum gb_severity severity;
    enum gb_rule rule;
    uint32_t layer;        /* which document it is about, 0: the base (spec 01 §8.1) */
    uint32_t line, column; /* 1-based; 0: the document as a whole */
    size_t order;          /* private: of adding, keeps the sort stable */
    char *path; /* entry such as routes[0]; "" for the whole document and single blocks */
    char *id;   /* of the entry; "" when unknown */
    char *text; /* leads with the key below the path */
};
struct gb_findings {
    struct gb_finding *items;
    size_t count;
    size_t error_count, warning_count; /* of all, also of those not kept */
    size_t kept[2];                    /* private: by severity */
    size_t capacity;                   /* private */
    bool failed;                       /* out of memory */
};

/* Where a finding is. */
struct gb_finding_at {
    uint32_t layer, line, column;
    const char *path, *id; /* NULL is "" */
    enum gb_rule rule;
};

void gb_findings_deinit(struct gb_findings *f);
__attribute__((format(printf, 4, 5))) void gb_findings_add(struct gb_findings *f,
                                                           enum gb_severity severity,
                                                           struct gb_finding_at at,
                                                           const char *format, ...);
void gb_findings_add_v(struct gb_findings *f, enum gb_severity severity, struct gb_finding_at at,
                       const char *format, va_list args);
/* True when no more of this severity are kept; one is then counted. For callers that would walk the
 * document for a finding's place or text: a million findings must not cost a million walks. */
bool gb_findings_skip(struct gb_findings *f, enum gb_severity severity);
/* By layer, then line, then column, then order of adding. */
void gb_findings_sort(struct gb_findings *f);
/* GB_UNAVAILABLE when memory ran out; else GB_INVALID_CONFIG with the count of errors; else OK. */
struct gb_err gb_findings_check(const struct gb_findings *f);
/* FILE:LINE:COLUMN: error: <path> (<id>): <text> [<rule>], without a newline; parts that are not
 * known are left out. `names` has a file for every layer. */
void gb_finding_print(const struct gb_finding *finding, const char *const *names,
                      struct gb_str *out);
/* One line per finding, and one for those not kept. */
void gb_findings_print(const struct gb_findings *f, const char *const *names, struct gb_str *out);

#endif
