#ifndef GB_APP_SOURCE_H
#define GB_APP_SOURCE_H

#include "base/digest.h"
#include "base/op.h"
#include "blueprint/blueprint.h"
#include "io/loop.h"

/* Watches the files of a document (spec 07 §2.1, §2.2): reads them on a thread of its own, and says
 * what it sees only once two readings, a debounce apart, agree. It hands over the very bytes that
 * agreed: whoever opened the files once more could meet the middle of the next change.
 * Owns:   its worker; paths are borrowed until gb_source_close has completed.
 * Thread: loop thread only.
 * Errors: gb_source_new: GB_UNAVAILABLE. What can't be read is an observation. */
struct gb_source;

enum gb_observation {
    GB_SOURCE_PRESENT = 0, /* other bytes than gb_source_loaded named */
    GB_SOURCE_MISSING,     /* no such name, in a folder that can be read */
    GB_SOURCE_READ_ERROR,  /* all else */
    GB_SOURCE_SAME,        /* readable again, bytes as loaded: after one of the two above */
};
/* One reading of all layers. */
struct gb_source_texts {
    struct gb_bytes layers[GB_BLUEPRINT_LAYERS_MAX];
    bool too_large[GB_BLUEPRINT_LAYERS_MAX]; /* such a layer counts as empty */
    size_t count;
    char digest[GB_SHA256_HEX]; /* of gb_source_digest */
};
struct gb_source_cfg {
    struct gb_loop *loop;
    const char *const *paths; /* the document, then its overlays */
    size_t path_count;
    int64_t poll_interval_ns; /* of reading everything */
    int64_t debounce_ns;
    bool notify; /* look for a changed file once a second, too */
    /* `texts` with GB_SOURCE_PRESENT and `err` with GB_SOURCE_READ_ERROR, for the call only. */
    void (*observed)(void *arg, enum gb_observation what, const struct gb_source_texts *texts,
                     const struct gb_err *err);
    void *arg;
};
struct gb_err gb_source_new(const struct gb_source_cfg *cfg, struct gb_source **out);
/* What is in use from now on; NULL: nothing is, so that whatever is there is told (again). */
void gb_source_loaded(struct gb_source *s, const char digest[GB_SHA256_HEX]);
/* Reads now instead of at the next interval; never less than a debounce behind a change. */
void gb_source_check(struct gb_source *s);
/* Other settings from now on. */
void gb_source_pace(struct gb_source *s, int64_t poll_interval_ns, int64_t debounce_ns,
                    bool notify);
/* Completes when nothing is read any more, then frees `s`. */
void gb_source_close(struct gb_source *s, struct gb_op *op, gb_done_fn *done, void *arg);

/* Of the bytes of all layers, in order. */
void gb_source_digest(const struct gb_bytes *layers, size_t count, char out[GB_SHA256_HEX]);

#endif
