#ifndef GB_BLUEPRINT_UNITS_H
#define GB_BLUEPRINT_UNITS_H

#include "base/digest.h"
#include "blueprint/blueprint.h"

/* The units of a blueprint (spec 07 §6.1): groups of sessions, receivers, senders, bindings and
 * routes that are connected by the ids they name, each with the identity of its content.
 * Owns:   its arrays (gb_units_deinit accepts zeroed memory); ids belong to the blueprint.
 * Thread: any. Pure.
 * Errors: GB_INVALID_CONFIG as gb_blueprint_digest, GB_UNAVAILABLE: out of memory. */

struct gb_unit {
    /* Of the sections that concern the whole bridge and of all members. */
    uint8_t identity[GB_SHA256_SIZE];
    bool http; /* a member serves HTTP */
};
struct gb_unit_member {
    const char *id;
    size_t index; /* in the blueprint; GB_UNIT_UNDECLARED: named only */
    size_t unit;
};
#define GB_UNIT_UNDECLARED SIZE_MAX

struct gb_units {
    struct gb_unit *units;
    size_t count;
    struct gb_unit_member *routes, *sessions; /* by id */
    size_t route_count, session_count;
};

struct gb_err gb_units_init(struct gb_units *units, const struct gb_blueprint *b);
void gb_units_deinit(struct gb_units *units);

/* The sections whose every change concerns the whole bridge, ends with NULL. */
extern const char *const gb_units_bridge_wide[];

#endif
