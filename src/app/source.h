#ifndef GB_APP_SOURCE_H
#define GB_APP_SOURCE_H

#include "base/digest.h"
#include "base/op.h"
#include "io/loop.h"

/* Watches the files of a document (spec 07 §2.1, §2.2): reads them on a thread of its own, and says
 * what it sees only once two readings, a debounce apart, agree.
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
struct gb_source_cfg {
    struct gb_loop *loop;
    const char *const *paths; /* the document, then its overlays */
    size_t path_count;
    int64_t poll_interval_ns; /* of reading everything */
    int64_t debounce_ns;
    bool notify; /* look for a changed file once a second, too */
    void (*observed)(void *arg, enum gb_observation what, const struct gb_err *err);
    void *arg;
};
struct gb_err gb_source_new(const struct gb_source_cfg *cfg, struct gb_source **out);
/* What is in use from now on; NULL: nothing is, so that whatever is there is told (again). */
void gb_source_loaded(struct gb_source *s, const char digest[GB_SHA256_HEX]);
/* Reads now instead of at the next interval. */
void gb_source_check(struct gb_source *s);
/* Other settings from now on. */
void gb_source_pace(struct gb_source *s, int64_t poll_interval_ns, int64_t debounce_ns,
                    bool notify);
/* Completes when nothing is read any more, then frees `s`. */
void gb_source_close(struct gb_source *s, struct gb_op *op, gb_done_fn *done, void *arg);

/* Of the bytes of all layers, in order. */
void gb_source_digest(const struct gb_bytes *layers, size_t count, char out[GB_SHA256_HEX]);

#endif
