#ifndef GB_BLUEPRINT_DIFF_H
#define GB_BLUEPRINT_DIFF_H

#include "blueprint/blueprint.h"

/* What a change of the document means for a bridge that runs (spec 07 §6, §7): which units stop and
 * start, whether it may be applied live, and how runtimes are swapped. Decided from the two
 * documents alone; what only a running bridge knows is not here.
 * Owns:   arrays and reasons (gb_diff_deinit accepts zeroed memory); ids belong to the blueprints,
 *         which must outlive the diff.
 * Thread: any. Pure; the same for every order of the entries.
 * Errors: GB_INVALID_CONFIG when a document has no normal form: take it for a change that can't be
 *         applied live. GB_UNAVAILABLE: out of memory. */

enum gb_diff_class { GB_DIFF_LIVE_SAFE = 0, GB_DIFF_REPLACEMENT_REQUIRED };
enum gb_diff_swap { GB_DIFF_IN_PLACE = 0, GB_DIFF_OVERLAP, GB_DIFF_SERIALIZED };
enum { GB_DIFF_REASONS_MAX = 16 };

struct gb_diff_ids {
    const char **items; /* ascending */
    size_t count;
};
struct gb_diff {
    bool equal; /* the same content */
    size_t unchanged_units, retired_units, added_units;
    struct gb_diff_ids retired_routes, added_routes;
    struct gb_diff_ids retired_sessions, added_sessions;
    enum gb_diff_class class_;
    char *reasons[GB_DIFF_REASONS_MAX]; /* why it is replacement-required; further ones are left
                                           out */
    size_t reason_count;
    enum gb_diff_swap swap;
    const char *swap_reason; /* why not in place; NULL: it is */
};

struct gb_err gb_diff_init(struct gb_diff *diff, const struct gb_blueprint *before,
                           const struct gb_blueprint *after);
void gb_diff_deinit(struct gb_diff *diff);
const char *gb_diff_class_name(enum gb_diff_class class_);
const char *gb_diff_swap_name(enum gb_diff_swap swap);

#endif
