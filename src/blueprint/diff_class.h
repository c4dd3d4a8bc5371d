#ifndef GB_BLUEPRINT_DIFF_CLASS_H
#define GB_BLUEPRINT_DIFF_CLASS_H

#include "blueprint/diff.h"
#include "blueprint/units.h"

/* Whether a change may be applied live (spec 07 §5.2, §7): each reason against it is added.
 * Owns:   the reasons belong to the diff.
 * Thread: any. Pure.
 * Errors: GB_UNAVAILABLE: out of memory. */
struct gb_err gb_diff_classify(struct gb_diff *d, const struct gb_blueprint *before,
                               const struct gb_units *before_units,
                               const struct gb_blueprint *after);

#endif
