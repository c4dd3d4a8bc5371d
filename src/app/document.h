#ifndef GB_APP_DOCUMENT_H
#define GB_APP_DOCUMENT_H

#include "app/options.h"
#include "blueprint/blueprint.h"

/* For a document that another program writes into a pipe. */
enum { GB_DOCUMENT_WAIT_MS = 60000 };

/* Reads and checks the document of the command line.
 * Owns:   the blueprint belongs to the caller (gb_blueprint_free).
 * Thread: the main thread.
 * Errors: GB_NOT_FOUND (no such file), GB_INVALID_CONFIG after printing the findings, and the file
 *         errors. */
enum gb_document_use {
    GB_DOCUMENT_VALIDATE = 0,
    GB_DOCUMENT_VALIDATE_STRICT, /* warnings fail too */
    GB_DOCUMENT_RUN,             /* what this release can't run fails too */
};
struct gb_err gb_document_load(const char *path, enum gb_document_use use,
                               struct gb_blueprint **out);

#endif
