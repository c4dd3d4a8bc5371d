#ifndef GB_APP_DOCUMENT_H
#define GB_APP_DOCUMENT_H

#include "app/options.h"
#include "app/source.h"
#include "base/digest.h"
#include "blueprint/blueprint.h"
#include "blueprint/bootstrap.h"

/* For a document that another program writes into a pipe. */
enum { GB_DOCUMENT_WAIT_MS = 60000 };

/* Reads and checks the document of the command line, with its -overlay and -set.
 * Owns:   the blueprint belongs to the caller (gb_blueprint_free); a gb_document belongs to him too
 *         (gb_document_forget, which overwrites it: it holds secrets).
 * Thread: the main thread.
 * Errors: GB_NOT_FOUND (no such file), GB_INVALID_CONFIG after printing the findings, and the file
 *         errors. */
enum gb_document_use {
    GB_DOCUMENT_VALIDATE = 0,
    GB_DOCUMENT_VALIDATE_STRICT, /* warnings fail too */
    GB_DOCUMENT_RUN,             /* what this release can't run fails too */
};
struct gb_err gb_document_load(const struct gb_options *o, const char *path,
                               enum gb_document_use use, struct gb_blueprint **out);
/* For GB_DOCUMENT_RUN, admitted under `boot` (NULL: flag mode), from `texts` (NULL: read now). The
 * digest is that of the bytes, set once they were read; "" when they were not. */
struct gb_err gb_document_load_deployed(const struct gb_options *o, const struct gb_bootstrap *boot,
                                        const struct gb_source_texts *texts,
                                        char digest[GB_SHA256_HEX], struct gb_blueprint **out);

/* What belongs to one document, as read; zeroed before. */
struct gb_document {
    const struct gb_source_texts *given; /* read already; NULL: not */
    struct gb_blueprint_input input;     /* points into the rest */
    const char *names[GB_BLUEPRINT_NAMES_MAX];
    struct gb_str texts[GB_BLUEPRINT_LAYERS_MAX]; /* private from here on */
    struct gb_blueprint_layer layers[GB_BLUEPRINT_LAYERS_MAX];
    struct gb_blueprint_override overrides[GB_BLUEPRINT_OVERRIDES_MAX];
    char *set_names[GB_BLUEPRINT_OVERRIDES_MAX], *set_paths[GB_BLUEPRINT_OVERRIDES_MAX];
};
/* The error is about `path` itself; an overlay that can't be read becomes a finding. */
struct gb_err gb_document_read(struct gb_document *d, const struct gb_options *o, const char *path,
                               struct gb_findings *findings);
void gb_document_forget(struct gb_document *d);
/* On stderr, one a line. */
void gb_document_print_findings(const struct gb_findings *findings, const struct gb_document *d);
/* What this release can't run of a valid document, on stdout. */
void gb_document_print_unsupported(const struct gb_blueprint *b, const struct gb_options *o);

#endif
