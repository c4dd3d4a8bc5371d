#ifndef GB_APP_DOCUMENT_H
#define GB_APP_DOCUMENT_H

#include "app/options.h"
#include "blueprint/blueprint.h"

/* Reads and checks the document of the command line.
 * Owns:   the blueprint belongs to the caller (gb_blueprint_free).
 * Thread: the main thread.
 * Errors: GB_NOT_FOUND (no such file), GB_INVALID_CONFIG after printing the findings, and the file
 *         errors. */
struct gb_err gb_document_load(const char *path, bool warnings_fail, struct gb_blueprint **out);

#endif
